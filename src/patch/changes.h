/* What a patch comes to, computed before anything is changed. */
#pragma once

#include "base/err.h"
#include "patch/patch.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CHANGES_FILE_MAX = 32 << 20,   /* bytes of one file, before or after */
    CHANGES_TOTAL_MAX = 256 << 20, /* of all files of a patch together */
    CHANGES_FILES_MAX = 10000,     /* files that one patch touches */
};

/* What tells one state of a file on the disk from another; zero in memory. */
struct stamp {
    uint64_t inode;
    uint64_t size;
    uint64_t mtime_ns; /* since the epoch */
};

/* A file's content at one moment. `text` NULL: there is no file. */
struct content {
    char *text;
    size_t len;
    struct stamp stamp; /* of what was read */
};

/* Where files are read from: a directory on the disk, or a tree in memory. */
struct source {
    void *data;
    /* Reads the regular file at `path`, relative and clean ("a/b"). A file that does not exist
     * gives 0 and no text, also when its directory is missing. Fails for everything that no patch may
     * touch: directories, links on the way, special files. The caller frees the text. */
    int (*read)(void *data, const char *path, size_t max, struct content *ret, struct err *err);
};

/* Lines that differ, from 0, between the old text and the new one. */
struct edit {
    size_t old_at;
    size_t old_len;
    size_t new_at;
    size_t new_len;
};

struct edits {
    struct edit *items; /* in order, with at least one equal line between two of them */
    size_t len;
    size_t cap;
};

/* One file, from before the patch to after all of it. */
struct change {
    char *path; /* relative, clean */
    struct content before;
    struct content after;
    struct edits edits; /* from before to after; of a renamed file from that one's before */
    const struct change *edits_from; /* whose text the edits were found in */
    char *moved_from;            /* the path on the disk whose permissions it takes over; or NULL */
    struct change *renamed_from; /* it is this one at another path, and nothing was here; or NULL */
    struct change *renamed_to;   /* the other end of that */
    size_t touched;              /* by so many sections of the patch */
    size_t line;                 /* of the patch, where it is first named */
};

/* What the patch said about one file, for the report; in the order of the patch. */
struct change_note {
    char letter;      /* 'A', 'M', 'D' */
    const char *path; /* as spelled; borrowed from the patch. Of a move the target */
};

struct changes {
    struct change **items; /* in the order in which the patch first names them; each path once */
    size_t len;
    size_t cap;
    struct change_note *notes;
    size_t notes_len;
    size_t notes_cap;
    void *by_path; /* of the items, by tsearch(3) */
};

/* Pure but for `source`. `root` is the directory in absolute form: absolute paths below it are taken
 * as relative ones. A file that the patch names twice is changed twice. Fails, and nothing is
 * there, when any part of the patch does not fit: ERR_INVALID, ERR_NOT_FOUND, ERR_LIMIT or what the
 * source says; the message names file and line. */
int changes_compute(const struct patch *patch, const struct source *source, const char *root,
                    struct changes *ret, struct err *err);
void patch_changes_done(struct changes *changes);

/* The change of just this clean path; NULL when there is none. */
struct change *changes_find(const struct changes *changes, const char *path);

/* Whether anything of the file differs. */
bool change_is_real(const struct change *change);
