/* Files at the server, by the calls of the protocol: contents in blocks, directories, links, modes.
 * One file is open at a time. */
#pragma once

#include "base/err.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct connection;

enum { REMOTE_BLOCK = 512 * 1024 }; /* bytes; the protocol's limit is 1 MiB */

/* Borrowed. */
struct remote_file {
    struct connection *connection;
    const char *path;  /* absolute */
    const char *shown; /* in messages, behind "remote:" */
};

enum remote_kind { REMOTE_MISSING, REMOTE_DIR, REMOTE_OTHER };

struct remote_info {
    enum remote_kind kind;
    int mode; /* the nine permission bits; -1 when the server does not tell */
};

/* Behind links. */
int remote_stat(const struct remote_file *file, struct remote_info *ret, struct err *err);

enum remote_mode { REMOTE_READ, REMOTE_REPLACE };
int remote_open(const struct remote_file *file, enum remote_mode mode, struct err *err);

/* `ret` has room for REMOTE_BLOCK bytes. */
int remote_read(const struct remote_file *file, uint64_t offset, char *ret, size_t *ret_len,
                bool *ret_is_end, struct err *err);
int remote_write(const struct remote_file *file, uint64_t offset, const char *bytes, size_t len,
                 struct err *err);

/* Whatever happened, so that the handle is free for the next file; `status` of what was done with
 * the file decides which failure is reported. */
int remote_close(const struct remote_file *file, int status, struct err *err);

/* The array of entries of fs/readDirectory, with details where the server has them; a new
 * reference. NULL on failure. */
json_t *remote_list(const struct remote_file *file, struct err *err);

/* A directory that is there is taken as it is. */
int remote_make_dir(const struct remote_file *file, struct err *err);

/* Takes the place of a link or file. ERR_UNSUPPORTED when the server makes no links. */
int remote_make_link(const struct remote_file *file, const char *target, struct err *err);

/* ERR_UNSUPPORTED when the server sets no modes. */
int remote_set_mode(const struct remote_file *file, mode_t mode, struct err *err);

/* --- paths at the server, as people write them; pure --- */

/* The file: URI of `path` at a server whose own directory is `dir` (a file: URI; NULL: not known).
 * A relative path counts from there; NULL is the directory itself. Caller frees; NULL (ERR_INVALID)
 * when that is not known. */
char *remote_path_uri(const char *dir, const char *path, struct err *err);

/* What follows "remote:"; NULL for a path of this machine. Borrowed. */
const char *remote_path_of(const char *argument);
