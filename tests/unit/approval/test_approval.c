/* approval_key and approval_text: what is the same call, and what a person is shown. */
#include "approval/approval.h"
#include "base/alloc.h"
#include "base/auto.h"
#include "base/str.h"
#include "policy/profile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define WORDS(...) ((char *const[]){__VA_ARGS__, NULL})
#define W(text) ((char *)(text))

/* The one key of a command. */
static char *key_of(const struct approval_call *call)
{
    AUTO(strv_done) struct strv keys = {0};

    approval_keys(call, &keys);
    assert_int_equal(keys.len, 1);
    return alloc_str(keys.items[0]);
}

static char *key(char *const *argv)
{
    return key_of(&(struct approval_call){.argv = argv, .cwd = "/w"});
}

static void assert_same(bool is_same, char *const *a, char *const *b)
{
    AUTO_FREE char *first = key(a);
    AUTO_FREE char *second = key(b);

    assert_int_equal(str_eq(first, second), is_same);
}

static void a_plain_command_is_itself_in_any_shell(void **state)
{
    char *const *plain = WORDS(W("git"), W("status"));

    assert_same(true, plain, WORDS(W("bash"), W("-lc"), W("git status")));
    assert_same(true, plain, WORDS(W("sh"), W("-c"), W("git  'status'")));
    assert_same(false, plain, WORDS(W("bash"), W("-lc"), W("git status; ls")));
    assert_same(false, plain, WORDS(W("git"), W("status"), W("")));
    assert_same(false, plain, WORDS(W("git status")));
    assert_same(false, plain, WORDS(W("bash"), W("-lc"), W("git status*")));
}

static void any_other_script_is_its_text(void **state)
{
    assert_same(true, WORDS(W("bash"), W("-c"), W("a; b")), WORDS(W("zsh"), W("-c"), W("a; b")));
    assert_same(false, WORDS(W("bash"), W("-c"), W("a; b")), WORDS(W("bash"), W("-lc"), W("a; b")));
    assert_same(false, WORDS(W("bash"), W("-c"), W("a; b")), WORDS(W("bash"), W("-c"), W("a;  b")));
    assert_same(false, WORDS(W("./bash"), W("-c"), W("a; b")), WORDS(W("sh"), W("-c"), W("a; b")));
}

static void bytes_that_are_no_text_stay_apart(void **state)
{
    assert_same(false, WORDS(W("a\xff")), WORDS(W("a\xfe")));
    assert_same(true, WORDS(W("a\xff")), WORDS(W("a\xff")));
}

static void folder_and_permissions_are_part_of_it(void **state)
{
    char *const *argv = WORDS(W("make"));
    AUTO(profile_overlay_done)
    struct profile_overlay overlay = {.network = OVERLAY_NETWORK_ENABLED};
    const struct approval_call calls[] = {
        {.argv = argv, .cwd = "/w"},
        {.argv = argv, .cwd = "/v"},
        {.argv = argv, .cwd = "/w", .permissions = SANDBOX_ESCALATED},
        {.argv = argv, .cwd = "/w", .additional = &overlay},
    };

    for (size_t i = 0; i < 4; i++)
        for (size_t j = 0; j < 4; j++) {
            AUTO_FREE char *a = key_of(&calls[i]);
            AUTO_FREE char *b = key_of(&calls[j]);

            assert_int_equal(str_eq(a, b), i == j);
        }
}

static void assert_keys(const struct strv *a, const struct strv *b)
{
    assert_int_equal(a->len, b->len);
    for (size_t i = 0; i < a->len; i++)
        assert_string_equal(a->items[i], b->items[i]);
}

/* Whatever the patch does to it, in whatever order, and wherever it is applied. */
static void a_patch_is_its_files(void **state)
{
    const struct approval_call calls[] = {
        {.argv = WORDS(W("apply_patch"), W("1")),
         .cwd = "/w",
         .patched = WORDS(W("/w/a"), W("/b"))},
        {.argv = WORDS(W("apply_patch"), W("2")),
         .cwd = "/v",
         .patched = WORDS(W("/b"), W("/w/a"), W("/b"))},
        {.argv = WORDS(W("apply_patch"), W("2")), .cwd = "/v", .patched = WORDS(W("/b"))},
        {.argv = WORDS(W("apply_patch"), W("2")),
         .cwd = "/v",
         .permissions = SANDBOX_ESCALATED,
         .patched = WORDS(W("/b"))},
        {.argv = WORDS(W("/b")), .cwd = "/v"},
    };
    AUTO(strv_done) struct strv both = {0}, again = {0}, one = {0}, escalated = {0}, command = {0};

    approval_keys(&calls[0], &both);
    approval_keys(&calls[1], &again);
    approval_keys(&calls[2], &one);
    approval_keys(&calls[3], &escalated);
    approval_keys(&calls[4], &command);
    assert_int_equal(both.len, 2);
    assert_keys(&both, &again);
    assert_int_equal(one.len, 1);
    assert_true(strv_has(&both, one.items[0]));
    assert_false(strv_has(&both, escalated.items[0]));
    assert_string_not_equal(one.items[0], command.items[0]);
}

static void a_patch_of_nothing_known_has_no_key(void **state)
{
    AUTO(strv_done) struct strv keys = {0}, files = {0};

    approval_keys(&(struct approval_call){.argv = WORDS(W("apply_patch"), W("")),
                                          .cwd = "/w",
                                          .patched = WORDS(NULL)},
                  &keys);
    assert_int_equal(keys.len, 0);
    while (files.len <= APPROVAL_FILES_MAX)
        strv_pushf(&files, "/w/%zu", files.len);
    approval_keys(&(struct approval_call){.argv = WORDS(W("apply_patch"), W("")),
                                          .cwd = "/w",
                                          .patched = strv_view(&files)},
                  &keys);
    assert_int_equal(keys.len, 0);
    free(files.items[--files.len]);
    files.items[files.len] = NULL;
    approval_keys(&(struct approval_call){.argv = WORDS(W("apply_patch"), W("")),
                                          .cwd = "/w",
                                          .patched = strv_view(&files)},
                  &keys);
    assert_int_equal(keys.len, APPROVAL_FILES_MAX);
}

static void commands_are_shown_as_a_shell_reads_them(void **state)
{
    AUTO_FREE char *text =
        approval_command_text(WORDS(W("git"), W("commit"), W("-m"), W("it's"), W("a b"), W("")));

    assert_string_equal(text, "git commit -m 'it'\\''s' 'a b' ''");
}

/* Escape sequences, C1, and marks that turn the direction of text: none gets to a terminal. */
static void commands_cannot_write_over_the_question(void **state)
{
    AUTO_FREE char *text =
        approval_command_text(WORDS(W("a\033[2Kb\rc\nd"), W("e\xc2\x9b"), W("f\xe2\x80\xae"),
                                    W("g\xe2\x81\xa6"), W("\xc3\xa4\xe2\x82\xac"), W("\xff")));

    assert_string_equal(text, "'a<U+001B>[2Kb<U+000D>c<U+000A>d' e<U+009B> f<U+202E> g<U+2066> "
                              "\xc3\xa4\xe2\x82\xac \xef\xbf\xbd");
}

static void what_a_yes_covers_is_said(void **state)
{
    const struct {
        struct approval_scope scope;
        const char *text;
    } cases[] = {
        {{.where = RUN_SANDBOXED, .profile = "p"}, "this command in its sandbox (profile p)"},
        {{.where = RUN_WIDENED, .profile = "p", .widened = "writing /x"},
         "this command in its sandbox (profile p), and beyond that writing /x"},
        {{.where = RUN_SANDBOXED, .profile = "p", .covers_retry = true},
         "this command in its sandbox (profile p); and once more without a sandbox, should it "
         "refuse something"},
        {{.where = RUN_SANDBOXED, .profile = "p", .patched = WORDS(W("/a"), W("/b"))},
         "this command in its sandbox (profile p); for the session: also every later patch of /a, "
         "/b"},
        {{.where = RUN_SANDBOXED, .profile = "p", .patched = WORDS(NULL)},
         "this command in its sandbox (profile p)"},
        {{.where = RUN_SANDBOXED,
          .profile = "p",
          .patched = WORDS(W("/1"), W("/2"), W("/3"), W("/4"), W("/5"), W("/6"), W("/7"), W("/8"),
                           W("/9"), W("/10"), W("/11"), W("/12"))},
         "this command in its sandbox (profile p); for the session: also every later patch of /1, "
         "/2, /3, /4, /5, /6, /7, /8, /9, /10 and 2 more files"},
        {{.where = RUN_UNCONFINED, .profile = "p"},
         "this command without a sandbox: it may do whatever you may, files and network"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        AUTO_FREE char *text = approval_covers(&cases[i].scope);

        assert_string_equal(text, cases[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plain_command_is_itself_in_any_shell),
        cmocka_unit_test(any_other_script_is_its_text),
        cmocka_unit_test(bytes_that_are_no_text_stay_apart),
        cmocka_unit_test(folder_and_permissions_are_part_of_it),
        cmocka_unit_test(a_patch_is_its_files),
        cmocka_unit_test(a_patch_of_nothing_known_has_no_key),
        cmocka_unit_test(commands_are_shown_as_a_shell_reads_them),
        cmocka_unit_test(commands_cannot_write_over_the_question),
        cmocka_unit_test(what_a_yes_covers_is_said),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
