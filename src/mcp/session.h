/* One MCP session: what is known of one client, whichever its transport and its era, and the requests of its that are
 * being worked on.
 *
 *     transport                             session                           methods
 *     mcp_session_new(mcp, sender, who)
 *     mcp_session_take(message, stream) ->  finds the dialect, begins a call  handle(call)
 *     sender.send(stream, text)         <-  mcp_call_result(), mcp_call_fail(), once
 *     mcp_session_stream_closed(stream)     the era decides what this means
 *     mcp_session_free()                    ends calls, questions and what runs for it
 *
 * A call is answered once, at once or later, and then gone; mcp_call_on_cancel() says how to stop one. Tools, resources and
 * questions know calls, and neither transport nor era: what differs is in the rows of legacy.c (versions that begin with
 * initialize) and modern.c. */
#pragma once

#include "base/err.h"
#include "base/list.h"
#include "base/strv.h"
#include "mcp/message.h"
#include "mcp/version.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mcp;
struct mcp_call;
struct mcp_engine;
struct mcp_news;
struct mcp_parked;
struct mcp_question;

enum {
    MCP_CALLS_MAX = 256,     /* of a session, that are not answered yet */
    MCP_QUESTIONS_MAX = 256, /* of ours, that its client has not answered yet */
};

/* Of a transport. None of these calls a function of this header: what breaks while something is sent is told in a later turn of the
 * loop, because those who send are in the middle of their lists. */
struct mcp_sender {
    /* One message as JSON text, without a line's end. `stream`: what mcp_session_take() was given with the request that it
     * belongs to, NULL: to none. is_answer: nothing more comes for that request; `text` NULL: it was cancelled, and has no answer. */
    void (*send)(void *context, void *stream, const char *text, size_t len, bool is_answer);
    /* The transport does not take more for now: what may be lost (progress, log) is not sent. NULL: it always does. */
    bool (*is_full)(void *context, void *stream);
    /* Ends what its client reads of a stream, who comes back for what is still to be sent. NULL: it cannot. */
    void (*let_go)(void *context, void *stream);
    void *context;
};

/* RFC 5424, as logging/setLevel has them; the least important first. */
enum mcp_level {
    MCP_LEVEL_DEBUG,
    MCP_LEVEL_INFO,
    MCP_LEVEL_NOTICE,
    MCP_LEVEL_WARNING,
    MCP_LEVEL_ERROR,
    MCP_LEVEL_CRITICAL,
    MCP_LEVEL_ALERT,
    MCP_LEVEL_EMERGENCY,
    MCP_LEVEL_NONE, /* nothing is wanted */
};

/* false: no such level. */
bool mcp_level_parse(const char *word, enum mcp_level *ret);

struct mcp_session {
    struct mcp *mcp;
    struct list in_mcp;
    uint64_t number; /* in this process, from 1 */
    struct mcp_sender sender;
    char *principal; /* who it is: sessions with the same one belong to the same person */
    bool is_initialized;
    enum mcp_version version; /* that initialize agreed on */
    json_t *capabilities;     /* of the client, an object; owned, as is the next */
    json_t *client;           /* clientInfo; NULL: not said */
    enum mcp_level level;     /* logging/setLevel */
    struct list calls;        /* struct mcp_call.in_session, oldest first */
    size_t calls_len;
    struct mcp_engine *engine; /* what its commands run in; NULL until one is needed */
    struct mcp_news *news;
    struct strv
        roots; /* of the workspace, that its client named and its user's configuration takes (place.h) */
    int64_t roots_question; /* that is open about them; 0: none */
    struct list asked;      /* of ask.c: questions about commands that are open */
    struct list questions;  /* of ours */
    size_t questions_len;
    int64_t last_question;
};

/* `principal` is copied; "" where there is only one. */
struct mcp_session *mcp_session_new(struct mcp *mcp, struct mcp_sender sender,
                                    const char *principal);
void mcp_session_free(struct mcp_session *session);

/* One of mcp_messages_read(); whether the version allows a batch is for the transport to ask. Answers may be sent before it
 * returns. `stream` stays the transport's and has to live until its answer was sent or mcp_session_stream_closed() was called;
 * NULL: there is only one. */
void mcp_session_take(struct mcp_session *session, const struct mcp_message *message, void *stream);

/* Nobody reads it any more, and nothing more is sent to it; whether that cancels its calls is the era's matter. */
void mcp_session_stream_closed(struct mcp_session *session, void *stream);

/* Whether an array of messages is one of this session. */
bool mcp_session_has_batches(const struct mcp_session *session);

/* Whether the transport takes more on this stream (as in struct mcp_call; NULL: on none). What may be lost is not sent otherwise. */
bool mcp_session_has_room(const struct mcp_session *session, void *stream);

/* A notification that belongs to no request. Takes `params`. */
void mcp_session_notify(struct mcp_session *session, const char *method, json_t *params);

/* What its commands run in (engine.h). NULL on failure. */
struct mcp_engine *mcp_session_engine(struct mcp_session *session, struct err *err);

/* --- calls --- */

/* What is written differently in versions with initialize and those without. */
struct mcp_dialect {
    bool closing_cancels; /* the end of a call's stream is its cancellation */
    /* May change the result of a call before it is sent. NULL: as it is. */
    void (*finish)(const struct mcp_session *session, const char *method, json_t *result);
    int64_t (*code)(int64_t code); /* that an error has there; NULL: the same */
};

struct mcp_call {
    struct mcp_session *session;
    struct list in_session;
    const struct mcp_dialect *dialect;
    void *stream;    /* of the transport */
    bool is_unheard; /* its stream is closed: nothing of it is sent */
    json_t *id;      /* owned, as are the next three */
    char *method;
    json_t *params;         /* an object; NULL: none */
    json_t *progress_token; /* NULL: no progress is wanted */
    uint64_t progress;      /* that was told last; UINT64_MAX: none yet */
    enum mcp_version version;
    const json_t *capabilities; /* of the client; an object, borrowed */
    enum mcp_level level;       /* the least important that its client wants to read */
    void (*on_cancel)(void *data);
    void *data;
    struct mcp_parked
        *parked; /* of modern.c: it has asked, and waits for its client to call again */
};

/* params._meta[key]; NULL: not there. */
const json_t *mcp_call_meta(const struct mcp_call *call, const char *key);

/* `on_cancel(data)`: the call is not wanted any more, and must not be answered in it: it is gone when that returns. NULL: only
 * for a handler that answers before it returns. */
void mcp_call_on_cancel(struct mcp_call *call, void (*on_cancel)(void *data), void *data);

/* Each of these ends the call. The first two take the reference. */
void mcp_call_result(struct mcp_call *call, json_t *result);
void mcp_call_fail_data(struct mcp_call *call, int64_t code, const char *text, json_t *data);
void mcp_call_fail(struct mcp_call *call, int64_t code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Before it ends. Progress is told when a token asked for it and `progress` is more than before; `total` 0: not known;
 * `text` may be NULL. Takes `data`. */
void mcp_call_progress(struct mcp_call *call, uint64_t progress, uint64_t total, const char *text);
void mcp_call_notify(struct mcp_call *call, const char *method, json_t *params); /* taken */
void mcp_call_log(struct mcp_call *call, enum mcp_level level, const char *logger, json_t *data);

/* --- questions: requests to the client ---
 *
 * Only where the client has the capability, for which the caller looks in call->capabilities. In versions without sessions nothing
 * can be asked but by an answer: the call is answered with input_required, and goes on when its client calls again
 * (modern.c); who asks sees no difference. */

/* `message` NULL: there will be no answer (the session or the call ends, or nobody called again). Not called after
 * mcp_session_withdraw(). */
typedef void mcp_answer_fn(void *data, const struct mcp_message *message);
struct mcp_question {
    struct mcp_call
        *call; /* whose it is; NULL: of none, which only versions with initialize can take */
    const char *method;
    json_t *params; /* the reference is taken */
    mcp_answer_fn *on_answer;
    void *data;
};
/* Returns its id, from 1; 0 when too many are open, and on_answer is not called then. */
int64_t mcp_session_ask(struct mcp_session *session, const struct mcp_question *question);
/* The answer is not wanted any more, which the client is told. */
void mcp_session_withdraw(struct mcp_session *session, int64_t id, const char *why);

/* For modern.c: whether it is an open question of that call; to end one by its answer, or all of a call without. */
bool mcp_session_asks(const struct mcp_call *call, int64_t id);
bool mcp_session_answer(struct mcp_session *session, int64_t id, const struct mcp_message *answer);
void mcp_session_forget(const struct mcp_call *call);

/* For modern.c: frees a call that was answered, or became another one, and tells nobody. */
void mcp_call_drop(struct mcp_call *call);

/* --- methods --- */

enum mcp_era {
    MCP_LEGACY = 1, /* versions that begin with initialize */
    MCP_MODERN = 2, /* those without */
    MCP_BOTH = MCP_LEGACY | MCP_MODERN,
};

struct mcp_method {
    const char *name;                      /* NULL ends a table */
    unsigned eras;                         /* of enum mcp_era */
    bool is_early;                         /* also before initialize */
    void (*handle)(struct mcp_call *call); /* a request; NULL: it is none */
    void (*take)(struct mcp_session *session,
                 const struct mcp_message *message); /* a notification; NULL: it is none */
};

/* In which era it asks. Transports that have answers of their own for one (HTTP's status) want to know it; the code of an error is
 * told by mcp_messages_read(). */
enum mcp_era mcp_message_era(const struct mcp_message *message);

/* legacy.c: initialize and what belongs to it. */
extern const struct mcp_dialect mcp_legacy;
extern const struct mcp_method mcp_legacy_methods[];
