/* What a layer would change in the real files: listed by walking its steps beside them. Reads only; the real
 * files may change meanwhile, and so may the layer when commands in it live.
 *
 * Directories are listed as files are: a new one is an A, one that is gone a D, and so is each file in it. */
#pragma once

#include "base/err.h"
#include "base/strv.h"
#include "layer/layer.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

enum change_kind {
    CHANGE_ADDED = 'A',
    CHANGE_MODIFIED = 'M', /* contents, or the text of a link */
    CHANGE_DELETED = 'D',
    CHANGE_RENAMED = 'R', /* `from`; perhaps with other contents */
    CHANGE_TYPE =
        'T', /* a file is a link now, or the other way; with directories it is a D and an A */
    CHANGE_MODE = 'm', /* permissions alone */
};

/* Why somebody should look at it before it is accepted. */
enum change_mark {
    MARK_EXECUTABLE = 1, /* x: may be executed, and could not before */
    MARK_LEAVES = 2,     /* l: a link that leads out of the root, or an absolute one */
    MARK_PROTECTED = 4,  /* p: a protected name: .git, .vscode, ... */
    MARK_RUNS_LATER =
        8, /* r: others run or obey it by themselves (run_by), or it was executable before */
    MARK_SET_ID = 16,   /* s: set-user-id or set-group-id; accepting takes that away */
    MARK_SPECIAL = 32,  /* d: a pipe, socket or device: cannot be accepted */
    MARK_CONFLICT = 64, /* c: the real one was changed since the step began (conflict.h) */
};
enum {
    MARKS_LATER = MARK_EXECUTABLE | MARK_LEAVES | MARK_PROTECTED | MARK_RUNS_LATER | MARK_SET_ID,
};

/* In place of a ctime of the layer's side: a command has the file open for writing, and may write unseen. */
enum { CHANGE_BEING_WRITTEN = 0 };

/* One side of a change as it was seen; of what is missing all is zero. As text (wire, --json): "DEV INO SIZE
 * CTIME_NS MODE" in hexadecimal with "-" between. */
struct change_stamp {
    uint64_t dev;
    uint64_t ino;
    uint64_t size;
    int64_t ctime_ns; /* since the epoch */
    uint32_t mode;    /* with the type */
};

struct change {
    size_t root; /* of the layer */
    char *path;  /* relative to that root, clean; any bytes but NUL */
    char *from;  /* RENAMED; NULL */
    enum change_kind kind;
    unsigned marks;     /* of enum change_mark */
    const char *run_by; /* with MARK_RUNS_LATER: who, for people; static; NULL: it was executable */
    int step;           /* whose the layer's side is; of a D the step that removed it */
    int first_step;     /* the first one that touched the path: its base time counts */
    int base_step; /* of the other side; 0: that is the real one, as it is but for change_query.step */
    bool
        is_copy; /* of an A, a file: it came from below (overlayfs's origin), and was changed or moved */
    bool is_edited; /* of a RENAMED file: its contents are not those of `from` */
    bool
        is_within; /* of a RENAMED one: it came with its folder, which is RENAMED, too; people need not see it */
    bool is_binary; /* contents, of files that were read to be compared; false for others */
    struct change_stamp layer; /* zero: D */
    struct change_stamp real;  /* zero: A; of a rename that of `from` */
    int64_t layer_mtime_ns, real_mtime_ns;
};

struct change_counts {
    size_t added, modified, deleted, renamed, other;
    size_t marked, conflicts; /* MARKS_LATER; MARK_CONFLICT */
};

struct changes {
    struct change
        *items; /* by root, then by path as path_compare() has it; of one path a D before an A */
    size_t len;
    size_t cap;
    struct change_counts counts;
};

enum change_flag {
    CHANGES_WITHOUT_RENAMES = 1,   /* an A and a D each: for accept and drop */
    CHANGES_WITHOUT_CONFLICTS = 2, /* MARK_CONFLICT is not looked for; nor is it of a single step */
    CHANGES_OF_GIT =
        4, /* also what is below git directories, of a layer that has them (layer_has_git()): it is never
                           taken file by file (commits.h) */
};

struct change_query {
    int step; /* only of this one, against what was before it; 0: all against the real files */
    char *const *paths; /* absolute, clean: these and what lies below; NULL: all */
    unsigned flags;     /* of enum change_flag */
};

/* changes_done() by the caller. `ret_problems` gets lines about what could not be looked at (a directory that may not
 * be read): none of it is in the list. */
int change_list(const struct layer *layer, const struct change_query *query, struct changes *ret,
                struct strv *ret_problems, struct err *err);
void changes_done(struct changes *changes);
void change_done(struct change *change);
void changes_sort(struct changes *changes);
void changes_count(struct changes *changes); /* fills in `counts` */

/* The place in the sorted list of the first change of that path, or of what would come behind it. */
size_t changes_place(const struct changes *changes, size_t root, const char *path);

/* Absolute; the caller frees. `from`: NULL where there is none. */
char *change_path(const struct layer *layer, const struct change *change);
char *change_from(const struct layer *layer, const struct change *change);

/* Since the epoch, as the times of stamps are. */
int64_t change_ns_of(const struct timespec *time);
struct timespec change_time_of(int64_t ns);

void change_stamp_of(const struct stat *st, struct change_stamp *ret);
bool change_stamp_equal(const struct change_stamp *one, const struct change_stamp *other);
char *change_stamp_format(const struct change_stamp *stamp); /* the caller frees; "" for nothing */
int change_stamp_parse(const char *text, struct change_stamp *ret, struct err *err);

/* {"path", "pathBase64"?, "from"?, "fromBase64"?, "kind": "A", "type": "file" | "directory" | "link" | "special",
 * "marks": ["runs-later", ...], "runBy"?, "edited"?, "within"?, "size", "mode", "binary", "step", "stamp", "realStamp"}: what every face says
 * of a change; a new reference. Paths are absolute; type, size and mode (the permissions, as a number) are those of the
 * layer's side, of a D those of the real one. And {"added", "modified", "deleted", "renamed", "other", "marked", "conflicts"}. */
json_t *change_to_json(const struct layer *layer, const struct change *change);
json_t *change_counts_to_json(const struct change_counts *counts);

/* Descriptors for reading, by type as listed: ERR_CONFLICT when it is something else now. -1 with ERR_NOT_FOUND where
 * there is no such side. Of what is no file it is one of O_PATH; what a link says readlinkat(2) reads from that. */
enum change_side { CHANGE_LAYER, CHANGE_REAL };
int change_open(const struct layer *layer, const struct change *change, enum change_side side,
                struct err *err);
