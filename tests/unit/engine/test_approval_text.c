/* approval_key and approval_text: what is the same call, and what a person is shown. */
#include "base/alloc.h"
#include "base/auto.h"
#include "base/str.h"
#include "engine/approval_key.h"
#include "engine/approval_text.h"
#include "policy/profile_overlay.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define WORDS(...) ((char *const[]){__VA_ARGS__, NULL})
#define W(text) ((char *)(text))

static char *key(char *const *argv)
{
    return approval_key(&(struct approval_call){.argv = argv, .cwd = "/w"});
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
            AUTO_FREE char *a = approval_key(&calls[i]);
            AUTO_FREE char *b = approval_key(&calls[j]);

            assert_int_equal(str_eq(a, b), i == j);
        }
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

    assert_string_equal(text, "'a?[2Kb?c?d' e? f? g? \xc3\xa4\xe2\x82\xac \xef\xbf\xbd");
}

static void what_a_yes_covers_is_said(void **state)
{
    static const struct {
        struct approval_scope scope;
        const char *text;
    } cases[] = {
        {{.place = REQUIREMENT_SANDBOXED, .profile = "p"},
         "this command in its sandbox (profile p)"},
        {{.place = REQUIREMENT_WIDENED, .profile = "p", .widened = "writing /x"},
         "this command in its sandbox (profile p), and beyond that writing /x"},
        {{.place = REQUIREMENT_SANDBOXED, .profile = "p", .covers_retry = true},
         "this command in its sandbox (profile p); and once more without a sandbox, should it "
         "refuse something"},
        {{.place = REQUIREMENT_UNCONFINED, .profile = "p"},
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
        cmocka_unit_test(commands_are_shown_as_a_shell_reads_them),
        cmocka_unit_test(commands_cannot_write_over_the_question),
        cmocka_unit_test(what_a_yes_covers_is_said),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
