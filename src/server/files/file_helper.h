/* A running `cordon-files`: a process inside a sandbox that carries out file calls for us, one at a
 * time (files/call.h). The kernel decides there what may be done, as it does for a command.
 *
 *     file_helper_start()     launch it in a sandbox
 *     file_helper_call()      when it is not busy; exactly one on_answer follows
 *     file_helper_free()      any time, also from on_answer
 *
 * Once it is gone (it was killed, or could not be started) every call is answered by that failure:
 * free it and start another. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct file_helper;
struct loop;
struct sandbox;

struct file_helper_options {
    struct loop *loop; /* borrowed for its life, as is the sandbox */
    struct sandbox *sandbox;
    const char *program; /* path of cordon-files; the sandbox has to let it be read */
};

/* What became of a call. */
struct file_answer {
    struct buf *text;          /* JSON of the result; may be taken (buf_take()) */
    int *fd;                   /* an open file, or -1; may be taken (TAKE_FD()) */
    const struct err *failure; /* not NULL: the call failed, there is neither */
};
typedef void file_answer_fn(void *user, const struct file_answer *answer);

/* NULL on failure. That the program cannot be executed comes as the answer to the first call. */
struct file_helper *file_helper_start(const struct file_helper_options *options, struct err *err);
void file_helper_free(struct file_helper *helper);

bool file_helper_is_busy(const struct file_helper *helper);
bool file_helper_is_gone(const struct file_helper *helper);

struct file_call {
    char *text;   /* {"method": ..., "params": ...}; free()d */
    size_t len;   /* bytes of it */
    json_t *data; /* a string that goes beside it, in the place of params.dataBase64; a reference
                     that is given away; NULL: none */
    file_answer_fn *on_answer;
    void *user;
};

void file_call_done(struct file_call *call);

/* Takes the call over, also on failure: ERR_LIMIT when it is too large for a frame, ERR_SYSTEM or
 * ERR_BUG when the helper is gone; no answer comes then. */
int file_helper_call(struct file_helper *helper, struct file_call *call, struct err *err);
