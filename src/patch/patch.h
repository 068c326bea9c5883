/* A patch in the apply_patch grammar of Codex, and the way of one:
 *
 *     patch_call_read()      is this command line a patch?                pure    call.h
 *     patch_parse()          text -> patch                                pure
 *     changes_compute()      patch + what is there -> what will be there  pure    changes.h
 *     changes_diff(), ...    for people and models                        pure    report.h
 *     apply_begin(), ...     all of it below one directory, or nothing       acts    apply.h
 */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct strv;

/* A program that is to apply a patch in a sandbox executes `cordon` with this as argv[0], then a
 * task, "apply", "check", "diff" or "recover", and a form, "text" or "json" (cordon-patch(1)); in
 * the directory of the patch, with the patch on stdin and no environment. It prints what the user is
 * to see; its exit status is 0, 1 when the patch cannot be applied, else 125. */
#define PATCH_HELPER_NAME "cordon-patch"

enum {
    PATCH_TEXT_MAX = 16 << 20, /* bytes of a patch */
    PATCH_PATH_MAX = 4095,     /* bytes of a path in it: PATH_MAX without the NUL */
};

/* Bytes that are borrowed from the text of the patch, or of a file. */
struct span {
    const char *text;
    size_t len;
};

enum patch_mark { PATCH_KEPT = ' ', PATCH_REMOVED = '-', PATCH_ADDED = '+' };

struct patch_line {
    enum patch_mark mark;
    struct span text; /* without mark and line ending */
};

struct patch_chunk {
    struct span context; /* a line to seek first; text NULL: none */
    size_t first;        /* its lines in patch.lines */
    size_t len;
    bool is_at_end; /* "*** End of File" */
    size_t line;    /* of the patch, from 1, where it begins */
};

enum patch_action { PATCH_ADD, PATCH_DELETE, PATCH_UPDATE };

struct patch_file {
    enum patch_action action;
    char *path;    /* as spelled */
    char *move_to; /* UPDATE: where the file goes; NULL: it stays */
    size_t first;  /* UPDATE: its chunks in patch.chunks, at least one */
    size_t len;    /* ADD: one chunk of added lines only */
    size_t line;
};

struct patch {
    char *text;
    struct patch_file *files; /* in the order of the patch; may be none */
    size_t files_len;
    size_t files_cap;
    struct patch_chunk *chunks;
    size_t chunks_len;
    size_t chunks_cap;
    struct patch_line *lines;
    size_t lines_len;
    size_t lines_cap;
};

/* Copies what it keeps of the text. ERR_INVALID begins with "line N of the patch: " and says what
 * would be right; ERR_LIMIT beyond PATCH_TEXT_MAX. NULL on failure; patch_free() by the caller. */
struct patch *patch_parse(const char *text, size_t len, struct err *err);
void patch_free(struct patch *patch);

static inline void patch_auto(struct patch **slot)
{
    patch_free(*slot);
}

/* Every path that the patch writes or removes, as spelled and in its order; the targets of moves
 * too. What a permission has to cover. */
void patch_paths(const struct patch *patch, struct strv *ret);

/* The text of a patch file is never NUL-terminated inside, so spans are compared by length. */
bool span_eq(struct span a, struct span b);
