/* The calls of the protocol that are about files: parameters in (the JSON of the wire without its
 * `sandbox`), JSON text or a descriptor out. What they take and answer, and their limits:
 * docs/protocol.md, the methods fs/ and capability.
 *
 * They run with the rights of the process that they run in, and nothing here asks whether a caller
 * may: that process is inside of the sandbox, or is not. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"

#include <stdbool.h>
#include <stddef.h>

/* --- answers --- */

/* What a call answers: JSON text that leaves in blocks while it is being made, so that a file of
 * 512 MiB needs no more memory than one of them; or a descriptor; or both. */
enum {
    REPLY_BLOCK = 256 * 1024,   /* text that is held back at most, about */
    REPLY_TEXT_MAX = 720 << 20, /* of the whole answer: base64 of 512 MiB, and some */
};

/* Takes a block of text on its way; the rest comes later. */
typedef int reply_flush_fn(void *data, const char *text, size_t len, struct err *err);

struct reply {
    struct buf text;       /* what was not flushed */
    int fd;                /* fs/open: the open file, owned; else -1 */
    reply_flush_fn *flush; /* NULL: all stays in `text` */
    void *data;
};

void reply_init(struct reply *ret, reply_flush_fn *flush, void *data);
void reply_done(struct reply *reply);

/* Each appends to the text. */
int reply_raw(struct reply *reply, const char *text, size_t len, struct err *err);
int reply_str(struct reply *reply, const char *text, struct err *err);
int reply_fmt(struct reply *reply, struct err *err, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* A JSON string of any bytes: ill-formed UTF-8 becomes U+FFFD. */
int reply_quoted(struct reply *reply, const char *text, struct err *err);

/* A JSON string with the file URI of an absolute path. */
int reply_uri(struct reply *reply, const char *path, struct err *err);

/* true or false. */
const char *reply_bool(bool value);

/* --- failures, in the words of the wire --- */

enum { ERROR_TEXT_SIZE = 256, ERROR_NOT_FOUND = -32004 };

/* The JSON-RPC code: -32004 what does not exist, -32600 wrong input and no permission, -32603 every
 * other answer of the system. */
int error_code(const struct err *err);

/* "No such file or directory (os error 2)" for a failed system call; otherwise the message. */
void error_text(const struct err *err, char ret_text[ERROR_TEXT_SIZE]);

/* --- calls --- */

enum { FILES_READ_MAX = 512 << 20 }; /* bytes of a file that fs/readFile takes */

/* All is borrowed for the call. */
struct files_request {
    const char *method;    /* "fs/readFile", ... */
    struct json_at params; /* an object */
    const char *data; /* fs/writeFile: what would be `dataBase64`, spared a way through JSON; NULL:
                         it is in the parameters */
    size_t data_len;
};

/* Failures say by code and errno what they are (error_code()). fs/open answers with `reply->fd`. */
int files_call(const struct files_request *request, struct reply *reply, struct err *err);

/* The handlers, one per method. */
typedef int files_handler(const struct files_request *request, struct reply *reply,
                          struct err *err);

files_handler files_read_file;
files_handler files_open;
files_handler files_write_file;
files_handler files_create_directory;
files_handler files_create_symlink;
files_handler files_set_mode;
files_handler files_get_metadata;
files_handler files_canonicalize;
files_handler files_read_directory;
files_handler files_walk;
files_handler files_remove;
files_handler files_copy;
files_handler files_discover;
files_handler files_capabilities;
