/* `cordon patch`, in two processes: the one that was called, and a helper in the sandbox that does
 * everything that has to do with the patch. */
#pragma once

enum patch_task { PATCH_APPLY, PATCH_CHECK, PATCH_DIFF, PATCH_RECOVER };
enum patch_form { PATCH_TEXT, PATCH_JSON };

/* The words with which the helper is called (PATCH_HELPER_NAME). */
extern const char *const patch_task_words[]; /* "apply", "check", "diff", "recover" */
extern const char *const patch_form_words[]; /* "text", "json" */

/* The helper: the current directory is that of the patch, which comes on stdin. `argv` without
 * argv[0]. Returns the exit status. */
int patch_helper_main(char **argv);

/* `apply_patch [PATCH]` as models call it. `argv` without argv[0]. */
int patch_apply_main(char **argv);
