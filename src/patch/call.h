/* Which command lines are patches that should not run as commands. */
#pragma once

#include <stddef.h>

struct strv;

enum patch_call_kind {
    PATCH_CALL_NONE,  /* run it as the command that it is */
    PATCH_CALL_PATCH, /* `text` is the patch; whether it is a good one, patch_parse() says */
    PATCH_CALL_BARE,  /* a patch without the word apply_patch in front: to be refused */
};

struct patch_call {
    enum patch_call_kind kind;
    char *text; /* owned; PATCH: the patch */
    size_t text_len;
    char *dir; /* owned; PATCH: the directory of `cd DIR &&`, relative to the command's own;
                        NULL: none */
};

/* Pure. `argv` is NULL-terminated. Taken are two words, `apply_patch TEXT` or `applypatch TEXT`,
 * and a shell (bash, zsh, sh with -c or -lc; pwsh, powershell with [-NoProfile] -Command; cmd with
 * /c) whose script is one heredoc for that command, with at most `cd DIR &&` before it. The text of
 * the heredoc is taken as it stands, also when its delimiter is not quoted. Whatever else there is,
 * it is NONE. patch_call_done() by the caller. */
void patch_call_read(char *const *argv, struct patch_call *ret);
void patch_call_done(struct patch_call *call);

/* Pure. Appends every path that the patch of a PATCH writes or removes, targets of moves too, made
 * absolute with `directory` (absolute; where it is applied) and clean, in the order of the patch.
 * Nothing when its text is no patch. */
void patch_call_paths(const struct patch_call *call, const char *root, struct strv *ret);

/* What to tell a model whose call is BARE; static. */
extern const char patch_call_advice[];
