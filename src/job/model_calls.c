/* See unified.h. Every function looks a session up by its id and starts a call on it; what a call
 * does until it is answered is in unified_call.c, what happens then in unified_answer.c.
 *
 * A session belongs to its calls and the store together: it is freed when neither has it. Its id is
 * reserved before anything is started and given back on every way on which no session comes of it.
 *
 * It does not choose a sandbox or an environment, and asks nobody for approval. */
#include "job/model_calls.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/str.h"
#include "job/model_call.h"
#include "output/match.h"
#include "output/model_cursor.h"

#include <stdlib.h>
#include <string.h>

/* --- life --- */

static bool is_busy(void *data, void *session)
{
    return unified_has_call(data, session);
}

struct unified *unified_new(const struct unified_options *options, struct err *err)
{
    struct unified *unified = alloc_zero(1, sizeof *unified);
    const struct store_options store = {
        .capacity = options->capacity, .ids = options->ids, .is_busy = is_busy, .data = unified};

    unified->options = *options;
    if (!unified->options.capacity)
        unified->options.capacity = STORE_CAPACITY_DEFAULT;
    if (!unified->options.output_memory)
        unified->options.output_memory = OUTPUT_MEMORY_DEFAULT;
    if (!unified->options.policy.limit)
        unified->options.policy.limit = UINT64_MAX;
    unified->store = store_new(&store, err);
    if (!unified->store) {
        free(unified);
        return NULL;
    }
    return unified;
}

/* Kills all before it waits for the first. */
static void kill_all(struct unified *unified)
{
    size_t len;
    AUTO_FREE int *ids = NULL;

    unified_terminate_all(unified, 0, 0);
    while (unified->calls)
        call_free(unified->calls);
    ids = store_list(unified->store, 0, &len);
    for (size_t i = 0; i < len; i++)
        session_free(
            store_remove(unified->store, ids[i], (struct store_end){.fate = STORE_TERMINATED}));
}

void unified_free(struct unified *unified)
{
    if (!unified)
        return;
    kill_all(unified);
    store_free(unified->store);
    free(unified);
}

/* --- finding --- */

static int fail_gone(int id, const struct store_end *end, struct err *err)
{
    switch (end->fate) {
    case STORE_EXITED:
        return err_set(err, ERR_NOT_FOUND, "session %d has ended: it exited with code %d", id,
                       end->number);
    case STORE_SIGNALED:
        return err_set(err, ERR_NOT_FOUND, "session %d has ended: signal %d ended it", id,
                       end->number);
    case STORE_TERMINATED:
        return err_set(err, ERR_NOT_FOUND, "session %d has ended: it was terminated", id);
    case STORE_PRUNED:
        return err_set(err, ERR_NOT_FOUND,
                       "session %d has ended: it was killed to make room for newer ones", id);
    case STORE_FAILED:
        break;
    }
    return err_set(err, ERR_NOT_FOUND, "session %d has ended: it failed to start", id);
}

static struct session *find_early(const struct unified *unified, int id)
{
    for (const struct unified_call *call = unified->calls; call; call = call->next)
        if (call->id == id && !call_is_stored(call))
            return call->session;
    return NULL;
}

struct session *unified_find(struct unified *unified, int id, struct err *err)
{
    struct session *session = store_find(unified->store, id);
    struct store_tombstone tombstone;

    if (!session)
        session = find_early(unified, id);
    if (session)
        return session;
    if (store_tombstone(unified->store, id, &tombstone))
        fail_gone(id, &tombstone.end, err);
    else
        err_set(err, ERR_NOT_FOUND, "there is no session %d", id);
    return NULL;
}

bool unified_tombstone(const struct unified *unified, int id, struct store_tombstone *ret)
{
    return store_tombstone(unified->store, id, ret);
}

/* --- calls --- */

static int pace_check(const struct unified_pace *pace, struct err *err)
{
    struct match *match;

    if (pace->until != UNIFIED_UNTIL_TEXT)
        return 0;
    match = match_new(pace->text, pace->text_len, err);
    match_free(match);
    return match ? 0 : -1;
}

static struct session *exec_start(struct unified *unified, const struct unified_exec *exec, int id,
                                  struct err *err)
{
    const struct spool_options spool = {.quota = unified->options.spool_quota};
    const struct unified_stand_in *stand_in = exec->stand_in;
    char *const argv[] = {(char *)exec->shell, (char *)(exec->is_login ? "-lc" : "-c"),
                          (char *)exec->cmd, NULL};
    const struct process_options process = {
        .loop = unified->options.loop,
        .sandbox = exec->sandbox,
        .argv = stand_in ? stand_in->argv : argv,
        .program = stand_in ? stand_in->program : NULL,
        .env = exec->env,
        .cwd = exec->workdir,
        .stdio = exec->stdio,
        .input = exec->input,
        .size = exec->size,
        .cgroup = -1,
    };

    return session_start(
        &(struct session_options){
            .id = id,
            .owner = exec->owner,
            .command = exec->cmd,
            .process = &process,
            .limits = &exec->limits,
            .access = exec->access,
            .screen = exec->screen,
            .output = {.memory_max = unified->options.output_memory,
                       .spool = spool.quota ? &spool : NULL},
        },
        err);
}

/* A command that does not read it all has ended, which the call tells. */
static int exec_feed(struct session *session, const struct unified_stand_in *stand_in,
                     struct err *err)
{
    enum session_written ignored;

    if (!stand_in || !stand_in->input)
        return 0;
    if (session_write(session, stand_in->input, stand_in->input_len, NULL, &ignored, err))
        return -1;
    session_close_input(session);
    return 0;
}

struct unified_call *unified_exec(struct unified *unified, const struct unified_exec *exec,
                                  unified_done_fn *on_done, void *data, struct err *err)
{
    struct session *session;
    int id;

    if (!*exec->cmd) {
        err_set(err, ERR_INVALID, "cmd is empty");
        return NULL;
    }
    if (pace_check(&exec->pace, err) || store_reserve(unified->store, &id, err))
        return NULL;
    session = exec_start(unified, exec, id, err);
    if (!session || exec_feed(session, exec->stand_in, err)) {
        session_free(session);
        store_release(unified->store, id);
        return NULL;
    }
    return call_new(unified, &(struct call_options){.kind = UNIFIED_EXEC,
                                                    .session = session,
                                                    .id = id,
                                                    .pace = &exec->pace,
                                                    .yield = YIELD_EXEC,
                                                    .note = exec->note,
                                                    .on_done = on_done,
                                                    .data = data});
}

/* What a write that was not done means for the call; 0 when the call goes on, with a note. */
static int check_written(enum session_written written, int id, const char **ret_note,
                         struct err *err)
{
    switch (written) {
    case SESSION_WRITTEN:
    case SESSION_INTERRUPTED:
    case SESSION_IS_OVER: /* its last output and its end are the answer */
        return 0;
    case SESSION_WRITTEN_BEFORE:
        *ret_note = "a write with this id was done before; nothing was written now";
        return 0;
    case SESSION_NO_INPUT:
        return err_set(err, ERR_INVALID,
                       "session %d takes no input: its stdin is closed. Run the command again "
                       "with tty=true to be able to write to it",
                       id);
    case SESSION_NO_ROOM:
        return err_set(err, ERR_LIMIT,
                       "session %d does not read its input: %zu bytes wait already, and nothing "
                       "more was taken",
                       id, SESSION_INPUT_MAX);
    }
    return 0;
}

static int do_write(struct session *session, const struct unified_write *write,
                    const char **ret_note, struct err *err)
{
    enum session_written written;

    if (write->len &&
        (session_write(session, write->chars, write->len, write->name, &written, err) ||
         check_written(written, write->session_id, ret_note, err)))
        return -1;
    if (write->closes)
        session_close_input(session);
    return 0;
}

struct unified_call *unified_write(struct unified *unified, const struct unified_write *write,
                                   unified_done_fn *on_done, void *data, struct err *err)
{
    struct session *session = unified_find(unified, write->session_id, err);
    const char *note = NULL;
    uint64_t offset;

    if (!session || pace_check(&write->pace, err))
        return NULL;
    store_touch(unified->store, write->session_id, clock_now_ns());
    offset = output_total(session_output(session));
    if (!write->len && !write->closes)
        offset -= unread_len(session_unread(session));
    if (do_write(session, write, &note, err))
        return NULL;
    return call_new(unified, &(struct call_options){
                                 .kind = UNIFIED_WRITE,
                                 .session = session,
                                 .id = write->session_id,
                                 .pace = &write->pace,
                                 .yield = write->len || write->closes ? YIELD_WRITE : YIELD_POLL,
                                 .offset = offset,
                                 .note = note,
                                 .on_done = on_done,
                                 .data = data,
                             });
}

struct unified_call *unified_wait(struct unified *unified, int session_id,
                                  const struct unified_pace *pace, unified_done_fn *on_done,
                                  void *data, struct err *err)
{
    struct session *session = unified_find(unified, session_id, err);

    if (!session || pace_check(pace, err))
        return NULL;
    store_touch(unified->store, session_id, clock_now_ns());
    return call_new(unified, &(struct call_options){
                                 .kind = UNIFIED_WAIT,
                                 .session = session,
                                 .id = session_id,
                                 .pace = pace,
                                 .yield = YIELD_POLL,
                                 .offset = output_total(session_output(session)) -
                                           unread_len(session_unread(session)),
                                 .on_done = on_done,
                                 .data = data,
                             });
}

struct unified_call *unified_terminate(struct unified *unified, int session_id, uint64_t grace_ns,
                                       unified_done_fn *on_done, void *data, struct err *err)
{
    static const struct unified_pace nothing;
    struct session *session = unified_find(unified, session_id, err);

    if (!session || session_terminate(session, grace_ns, err))
        return NULL;
    return call_new(unified, &(struct call_options){.kind = UNIFIED_TERMINATE,
                                                    .session = session,
                                                    .id = session_id,
                                                    .pace = &nothing,
                                                    .yield = YIELD_POLL,
                                                    .on_done = on_done,
                                                    .data = data});
}

void unified_cancel(struct unified_call *call)
{
    if (call->kind == UNIFIED_EXEC && !call_is_stored(call))
        call_store(call);
    call_free(call);
}

/* --- without waiting --- */

static int compare_ids(const void *left, const void *right)
{
    int a = *(const int *)left;
    int b = *(const int *)right;

    return (a > b) - (a < b);
}

static bool is_owned(const struct session *session, uint64_t owner)
{
    struct session_info info;

    session_info(session, &info);
    return !owner || info.owner == owner;
}

int *unified_list(const struct unified *unified, uint64_t owner, size_t *ret_len)
{
    size_t stored;
    size_t len = 0;
    size_t cap;
    int *ids = store_list(unified->store, owner, &stored);

    cap = stored;
    for (size_t i = 0; i < stored; i++)
        if (session_is_alive(store_find(unified->store, ids[i])))
            ids[len++] = ids[i];
    for (const struct unified_call *call = unified->calls; call; call = call->next) {
        if (call->kind != UNIFIED_EXEC || call_is_stored(call) || !is_owned(call->session, owner) ||
            !session_is_alive(call->session))
            continue;
        ids = alloc_grow(ids, len, &cap, sizeof *ids);
        ids[len++] = call->id;
    }
    qsort(ids, len, sizeof *ids, compare_ids);
    *ret_len = len;
    return ids;
}

size_t unified_terminate_all(struct unified *unified, uint64_t owner, uint64_t grace_ns)
{
    size_t len;
    AUTO_FREE int *ids = unified_list(unified, owner, &len);
    struct err ignored; /* then the harder way */

    for (size_t i = 0; i < len; i++) {
        struct session *session = unified_find(unified, ids[i], &ignored);

        if (session_terminate(session, grace_ns, &ignored))
            session_terminate(session, 0, &ignored);
    }
    return len;
}

int unified_resize(struct unified *unified, int session_id, struct pty_size size, struct err *err)
{
    struct session *session = unified_find(unified, session_id, err);

    return session ? session_resize(session, size, err) : -1;
}

const char *unified_shell(char *const *env)
{
    for (; env && *env; env++)
        if (str_starts(*env, "SHELL=/"))
            return *env + strlen("SHELL=");
    return "/bin/sh";
}
