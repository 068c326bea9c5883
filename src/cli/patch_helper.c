/* The half of `cordon patch` that runs in the sandbox, with an empty environment: the patch is
 * read, placed and applied here, so neither its text nor the files that it names are ever parsed by
 * a process that may do more than the profile says.
 *
 * It prints what the user is to see, and its exit status is that of `cordon patch`. */
#include "cli/patch.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/console.h"
#include "patch/apply.h"
#include "patch/folder.h"
#include "patch/report.h"

#include <unistd.h>

enum {
    OUTPUT_MAX = 512 << 20, /* bytes: a diff of the largest changes there can be */
    DIFF_CONTEXT = 3,       /* lines, as diff(1) has it */
};

const char *const patch_task_words[] = {[PATCH_APPLY] = "apply",
                                        [PATCH_CHECK] = "check",
                                        [PATCH_DIFF] = "diff",
                                        [PATCH_RECOVER] = "recover",
                                        [PATCH_RECOVER + 1] = NULL};
const char *const patch_form_words[] = {
    [PATCH_TEXT] = "text", [PATCH_JSON] = "json", [PATCH_JSON + 1] = NULL};

struct helper {
    enum patch_task task;
    enum patch_form form;
    struct patch *patch;
    struct patch_folder folder;
    struct changes changes;
    struct apply apply;
    struct recovery recovery;
};

static void helper_done(struct helper *helper)
{
    apply_end(&helper->apply);
    recovery_done(&helper->recovery);
    changes_done(&helper->changes);
    patch_folder_done(&helper->folder);
    patch_free(helper->patch);
}

/* --- what is said --- */

static const char *recovery_word(const struct helper *helper)
{
    static const char *const words[] = {
        [RECOVERY_NONE] = NULL, [RECOVERY_COMPLETED] = "completed", [RECOVERY_UNDONE] = "undone"};

    return words[helper->recovery.what];
}

static void say_recovery(const struct helper *helper)
{
    const struct strv *left = &helper->recovery.left_alone;

    if (helper->recovery.what == RECOVERY_COMPLETED)
        console_say("an earlier patch that was interrupted has been completed");
    if (helper->recovery.what == RECOVERY_UNDONE)
        console_say("an earlier patch that was interrupted has been taken back");
    for (size_t i = 0; i < left->len; i++)
        console_say("%s was changed since by somebody else and was left as it is", left->items[i]);
}

static json_t *make_json(const struct helper *helper, const char *diff)
{
    json_t *left = json_array();

    for (size_t i = 0; i < helper->recovery.left_alone.len; i++)
        json_array_append_new(left, json_lossy(helper->recovery.left_alone.items[i]));
    return json_pack("{s:b, s:o, s:o, s:o, s:o, s:n}", "applied", helper->task == PATCH_APPLY,
                     "files", report_to_json(&helper->changes), "diff", json_lossy(diff),
                     "recovered", json_lossy(recovery_word(helper)), "left_alone", left, "error");
}

int patch_fail(enum patch_form form, const struct err *err, int status)
{
    if (form == PATCH_JSON) {
        AUTO_JSON json_t *json =
            json_pack("{s:b, s:[], s:n, s:n, s:[], s:{s:s, s:o}}", "applied", 0, "files", "diff",
                      "recovered", "left_alone", "error", "code", err_code_name(err->code),
                      "message", json_lossy(err->msg));

        (void)console_print_json(json);
    } else {
        (void)console_fail(err);
    }
    return status;
}

/* --- what is done --- */

static int helper_begin(struct helper *helper, struct err *err)
{
    if (patch_folder_open(".", &helper->folder, err))
        return -1;
    if (helper->task == PATCH_CHECK || helper->task == PATCH_DIFF)
        return apply_wait(&helper->folder, err);
    return apply_begin(&helper->folder, &helper->recovery, &helper->apply, err);
}

static int helper_work(struct helper *helper, const struct buf *text, struct err *err)
{
    struct source source = patch_folder_source(&helper->folder);

    if (helper->task != PATCH_RECOVER)
        helper->patch = patch_parse(text->data, text->len, err);
    if (helper->task != PATCH_RECOVER && !helper->patch)
        return -1;
    if (helper_begin(helper, err))
        return -1;
    if (helper->task == PATCH_RECOVER)
        return 0;
    if (changes_compute(helper->patch, &source, helper->folder.path, &helper->changes, err))
        return -1;
    return helper->task == PATCH_APPLY ? apply_commit(&helper->apply, &helper->changes, err) : 0;
}

static bool make_text(const struct helper *helper, struct buf *out)
{
    switch (helper->task) {
    case PATCH_APPLY:
        return report_summary(&helper->changes, out);
    case PATCH_DIFF:
        return report_diff(&helper->changes, DIFF_CONTEXT, out);
    case PATCH_CHECK:
        return buf_append_str(out, "The patch can be applied.\n");
    case PATCH_RECOVER:
        break;
    }
    if (helper->recovery.what == RECOVERY_NONE)
        return buf_append_str(out, "There is no interrupted patch.\n");
    return true;
}

static int helper_print(const struct helper *helper)
{
    AUTO(buf_done) struct buf text = {.max = OUTPUT_MAX};
    AUTO_JSON json_t *json = NULL;
    struct err err;

    if (!make_text(helper, &text)) {
        err_set(&err, ERR_LIMIT, "the diff has more than %d MiB", OUTPUT_MAX >> 20);
        return patch_fail(helper->form, &err, EXIT_FAILED);
    }
    if (helper->form == PATCH_TEXT)
        return console_print(&text);
    json = make_json(helper, helper->task == PATCH_DIFF ? text.data : NULL);
    return console_print_json(json);
}

/* The index of the word; -1 when it is none of them. */
static int word_index(const char *const *words, const char *word)
{
    for (int i = 0; word && words[i]; i++)
        if (str_eq(words[i], word))
            return i;
    return -1;
}

int patch_here(enum patch_task task, enum patch_form form, const struct buf *text)
{
    AUTO(helper_done)
    struct helper helper = {
        .task = task, .form = form, .folder = {.fd = -1}, .apply = {.ledger = {.fd = -1}}};
    struct err err;
    int status = helper_work(&helper, text, &err);

    if (form == PATCH_TEXT)
        say_recovery(&helper);
    return status ? patch_fail(form, &err, EXIT_NO) : helper_print(&helper);
}

int patch_helper_main(char **argv)
{
    AUTO(buf_done) struct buf text = {.max = PATCH_TEXT_MAX};
    int task = word_index(patch_task_words, argv[0]);
    int form = task < 0 ? -1 : word_index(patch_form_words, argv[1]);
    struct err err;

    if (form < 0) {
        console_say("this is the inner half of \"cordon patch\"; call that");
        return EXIT_FAILED;
    }
    if (buf_read_fd(&text, STDIN_FILENO, &err)) {
        err_wrap(&err, "the patch");
        return patch_fail((enum patch_form)form, &err, EXIT_NO);
    }
    return patch_here((enum patch_task)task, (enum patch_form)form, &text);
}
