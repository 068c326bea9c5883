/* What the two directions of `cp` share: up to the server, and down from it. Of a directory that is
 * being copied no more is held than its list of names. What cannot be copied is reported, and the
 * rest is copied. Internal to cp. */
#pragma once

#include "base/err.h"
#include "client/remote_file.h"

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct client_console;
struct connection;

/* --- how far a copy is, on a terminal, when it takes longer than two seconds --- */

#define PROGRESS_AFTER_NS UINT64_C(2000000000)
#define PROGRESS_EVERY_NS UINT64_C(200000000)

struct progress {
    int fd; /* -1: nothing is shown */
    uint64_t files;
    uint64_t bytes;
    uint64_t next_ns; /* when it is to be shown next */
    bool is_shown;
};

/* From now on; nothing is shown when `fd` is no terminal. */
void progress_init(struct progress *progress, int fd);

void progress_add(struct progress *progress, unsigned files, size_t bytes);

/* Takes the line away, as long as something else is to be said, and at the end. */
void progress_clear(struct progress *progress);

enum { PROGRESS_TEXT_SIZE = 64 };

/* "12 files, 3.4 MiB". Pure. */
void progress_text(uint64_t files, uint64_t bytes, char ret[PROGRESS_TEXT_SIZE]);

/* --- one copy --- */

enum { CP_DEPTH_MAX = 128 }; /* directories in directories */

struct cp {
    struct connection *connection;
    const struct client_console *console;
    struct progress progress;
    char *block;     /* REMOTE_BLOCK bytes */
    size_t failed;   /* entries that are not copied */
    bool has_warned; /* that the server knows no modes */
};

/* A file at the server, by its path there. */
struct remote_file cp_remote(const struct cp *cp, const char *path);

/* Says what is wrong with one entry and counts it. */
void cp_report(struct cp *cp, const struct err *err);

/* A directory that is being copied. */
struct cp_level {
    DIR *stream;     /* up: what is read; NULL on the way down */
    json_t *entries; /* down: what is to be copied, */
    size_t next;     /* from this one on, */
    int dir;         /* into this directory */
    char *local;     /* for messages */
    char *remote;
    mode_t mode; /* of the copy, once it is finished */
};

/* The directories from the first one to the one that is being copied. */
struct cp_tree {
    struct cp *cp;
    struct cp_level levels[CP_DEPTH_MAX];
    size_t depth;
    mode_t usual;    /* down: what the umask leaves */
    bool keeps_root; /* up: its mode, since it was there before */
};

void cp_level_done(struct cp_level *level);
void cp_tree_done(struct cp_tree *tree);

/* Calls `step` until it has finished the first directory. */
int cp_tree_walk(struct cp_tree *tree, void (*step)(struct cp_tree *tree), struct err *err);

/* The own name of what is copied; "" for what has none, as "." and "/". Caller frees. */
char *cp_own_name(const char *path);

/* A file, or a directory: into one that is there already what is copied is merged, and its own mode
 * stays. "-" is stdin or stdout. -1: nothing more can be done. */
int upload(struct cp *cp, const char *from, const struct remote_file *to, struct err *err);
int download(struct cp *cp, const struct remote_file *from, const char *to, struct err *err);
