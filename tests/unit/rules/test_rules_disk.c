/* rules_disk: layers as they lie in directories, and appending: what is written, that nothing is lost
 * when many append at once, and that a broken file stays as it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/strv.h"
#include "rules/rules.h"
#include "rules/rules_disk.h"
#include "rules/shell/shell_words.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void rules_auto(struct rules **slot)
{
    rules_free(*slot);
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    return remove(path);
}

static int dir_open(void **state)
{
    char *path = alloc_str("/tmp/cordon-rules-XXXXXX");

    *state = mkdtemp(path);
    return *state ? 0 : -1;
}

static int dir_close(void **state)
{
    nftw(*state, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    free(*state);
    return 0;
}

static void make_dir(const char *base, const char *name)
{
    AUTO_FREE char *path = path_join(base, name);

    assert_int_equal(mkdir(path, 0755), 0);
}

static void write_file(const char *base, const char *name, const char *text)
{
    AUTO_FREE char *path = path_join(base, name);
    AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
    struct err err;

    assert_true(fd >= 0);
    assert_int_equal(fd_write_all(fd, text, strlen(text), &err), 0);
}

static void assert_file(const char *base, const char *name, const char *wanted)
{
    AUTO_FREE char *path = path_join(base, name);
    AUTO(buf_done) struct buf text = {0};
    struct err err;

    if (fd_read_file(path, 1 << 20, &text, &err))
        fail_msg("%s", err.msg);
    assert_string_equal(text.data ? text.data : "", wanted);
}

static enum rule_verdict decide(const struct rules *rules, const char *word)
{
    AUTO(strv_done) struct strv words = {0};
    AUTO(rules_decision_done) struct rules_decision decision = {.len = 0};
    struct shell_command command;

    strv_push(&words, word);
    command = (struct shell_command){.words = words, .exact = 1};
    rules_decide(rules, &command, &decision);
    return decision.verdict;
}

static struct rules *load(const struct rules_dirs *places)
{
    struct rules *rules = rules_new();

    rules_load_layers(rules, places);
    rules_seal(rules);
    return rules;
}

/* --- layers --- */

static void layers_are_read_in_order(void **state)
{
    const char *base = *state;
    AUTO_FREE char *user = path_join(base, "user");
    AUTO_FREE char *project = path_join(base, "project");
    AUTO_FREE char *admin = path_join(base, "admin");
    struct rules_dirs places = {.user = user, .administrator = admin, .home = base};
    AUTO(rules_auto) struct rules *untrusted = NULL;
    AUTO(rules_auto) struct rules *trusted = NULL;
    size_t problems;

    make_dir(base, "user");
    make_dir(base, "user/rules");
    make_dir(base, "user/rules/folder.rules");
    make_dir(base, "project");
    make_dir(base, "project/.codex");
    make_dir(base, "project/.codex/rules");
    make_dir(base, "project/.cordon");
    make_dir(base, "project/.cordon/rules");
    write_file(base, "user/rules/b.rules", "host_executable(\"u\", [\"~/new/u\"])\n");
    write_file(base, "user/rules/a.rules",
               "prefix_rule([\"u\"])\nhost_executable(\"u\", [\"~/old/u\"])\n");
    write_file(base, "user/rules/c.txt", "no rules");
    write_file(base, "project/.codex/rules/x.rules", "prefix_rule([\"codex\"])\n");
    write_file(base, "project/.cordon/rules/x.rules", "prefix_rule([\"cordon\"])\n");
    untrusted = load(&places);
    assert_int_equal(decide(untrusted, "u"), RULE_BYPASS);
    assert_int_equal(decide(untrusted, "cordon"), RULE_NONE);
    places.project = project;
    trusted = load(&places);
    assert_int_equal(decide(trusted, "codex"), RULE_BYPASS);
    assert_int_equal(decide(trusted, "cordon"), RULE_BYPASS);
    (void)rules_problems(trusted, &problems);
    assert_int_equal(problems, 0);
    {
        AUTO_FREE char *old = path_join(base, "old/u");
        AUTO_FREE char *new = path_join(base, "new/u");

        assert_int_equal(decide(trusted, old), RULE_NONE);
        assert_int_equal(decide(trusted, new), RULE_BYPASS);
    }
}

static void the_administrator_forbids(void **state)
{
    const char *base = *state;
    AUTO_FREE char *user = path_join(base, "user");
    AUTO_FREE char *admin = path_join(base, "admin");
    const struct rules_dirs places = {.user = user, .administrator = admin};
    AUTO(rules_auto) struct rules *rules = NULL;

    make_dir(base, "user");
    make_dir(base, "user/rules");
    make_dir(base, "admin");
    make_dir(base, "admin/rules");
    write_file(base, "user/rules/x.rules", "prefix_rule([\"a\"])\n");
    write_file(base, "admin/rules/x.rules", "prefix_rule([\"a\"], decision=\"forbidden\")\n");
    rules = load(&places);
    assert_int_equal(decide(rules, "a"), RULE_FORBIDDEN);
}

/* A link to nothing, a directory that is a file, a file that is too large: each may have forbidden. */
static void what_cannot_be_read_is_a_problem(void **state)
{
    const char *base = *state;
    const struct rules_dirs places = {.user = base};
    AUTO_FREE char *link = path_join(base, "rules/gone.rules");
    AUTO_FREE char *large = path_join(base, "rules/large.rules");
    AUTO(rules_auto) struct rules *rules = NULL;
    const struct rules_problem *problems;
    size_t len;

    make_dir(base, "rules");
    assert_int_equal(symlink("nowhere", link), 0);
    write_file(base, "rules/large.rules", "");
    assert_int_equal(truncate(large, RULES_SIZE_MAX + 1), 0);
    rules = load(&places);
    problems = rules_problems(rules, &len);
    assert_int_equal(len, 2);
    assert_string_equal(problems[0].file, link);
    assert_non_null(strstr(problems[0].text, "No such file"));
    assert_string_equal(problems[1].file, large);
    assert_int_equal(decide(rules, "a"), RULE_PROMPT);
}

/* --- appending --- */

static void append(const char *base, const char *line, enum rules_append wanted)
{
    AUTO_FREE char *path = path_join(base, "rules/default.rules");
    enum rules_append outcome;
    struct err err;

    if (rules_append(path, NULL, line, &outcome, &err))
        fail_msg("%s", err.msg);
    assert_int_equal(outcome, wanted);
}

static void lines_as_codex_writes_them(void **state)
{
    char *const words[] = {(char *)"echo", (char *)"a \"b\"\n\\ä", NULL};
    char *const latin[] = {(char *)"\xe4", NULL};
    struct err err;
    AUTO_FREE char *bypass = rule_line_for_prefix(words, RULE_BYPASS, NULL, &err);
    AUTO_FREE char *keep = rule_line_for_prefix(words, RULE_KEEP, "it's fine", &err);
    AUTO_FREE char *host =
        rule_line_for_host("A.org:443", RULE_PROTOCOL_HTTPS, RULE_KEEP, NULL, &err);

    assert_string_equal(bypass, "prefix_rule(pattern=[\"echo\", \"a \\\"b\\\"\\n\\\\ä\"], "
                                "decision=\"allow\")");
    assert_string_equal(keep, "prefix_rule(pattern=[\"echo\", \"a \\\"b\\\"\\n\\\\ä\"], "
                              "decision=\"allow\", sandbox=\"keep\", justification=\"it's fine\")");
    assert_string_equal(host,
                        "network_rule(host=\"a.org\", protocol=\"https\", decision=\"allow\")");
    assert_null(rule_line_for_prefix(latin, RULE_PROMPT, NULL, &err));
    assert_null(rule_line_for_host("*", RULE_PROTOCOL_HTTP, RULE_KEEP, NULL, &err));
}

/* Every byte that a word can have comes back as it was. */
static void every_word_survives(void **state)
{
    const char *base = *state;
    const struct rules_dirs places = {.user = base};
    AUTO(rules_auto) struct rules *rules = NULL;
    struct err err;

    for (unsigned c = 1; c < 128; c++) {
        char word[] = {'a', (char)c, 'b', '\0'};
        char *const words[] = {word, NULL};
        AUTO_FREE char *line = rule_line_for_prefix(words, RULE_PROMPT, word, &err);

        append(base, line, RULES_APPENDED);
    }
    rules = load(&places);
    for (unsigned c = 1; c < 128; c++) {
        char word[] = {'a', (char)c, 'b', '\0'};

        assert_int_equal(decide(rules, word), RULE_PROMPT);
    }
}

static void appending_keeps_what_is_there(void **state)
{
    const char *base = *state;
    AUTO_FREE char *path = path_join(base, "rules/default.rules");
    struct stat st;

    append(base, "prefix_rule([\"a\"])", RULES_APPENDED);
    append(base, "prefix_rule([\"a\"])", RULES_THERE_ALREADY);
    assert_file(base, "rules/default.rules", "prefix_rule([\"a\"])\n");
    write_file(base, "rules/default.rules", "# mine\nprefix_rule([\"b\"])");
    append(base, "prefix_rule([\"b\"])", RULES_THERE_ALREADY);
    append(base, "prefix_rule([\"a\"])", RULES_APPENDED);
    assert_file(base, "rules/default.rules",
                "# mine\nprefix_rule([\"b\"])\nprefix_rule([\"a\"])\n");
    assert_int_equal(chmod(path, 0600), 0);
    append(base, "prefix_rule([\"c\"])", RULES_APPENDED);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
}

static void links_stay(void **state)
{
    const char *base = *state;
    AUTO_FREE char *link = path_join(base, "rules/default.rules");
    struct stat st;

    make_dir(base, "rules");
    make_dir(base, "dotfiles");
    write_file(base, "dotfiles/x.rules", "");
    assert_int_equal(symlink("../dotfiles/x.rules", link), 0);
    append(base, "prefix_rule([\"a\"])", RULES_APPENDED);
    assert_int_equal(lstat(link, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_file(base, "dotfiles/x.rules", "prefix_rule([\"a\"])\n");
}

static void broken_files_stay_as_they_are(void **state)
{
    const char *base = *state;
    AUTO_FREE char *path = path_join(base, "rules/default.rules");
    enum rules_append outcome;
    struct err err;

    make_dir(base, "rules");
    write_file(base, "rules/default.rules", "prefix_rule([\n");
    assert_int_equal(rules_append(path, NULL, "prefix_rule([\"a\"])", &outcome, &err), -1);
    assert_non_null(strstr(err.msg, "default.rules:2:1: "));
    assert_file(base, "rules/default.rules", "prefix_rule([\n");
    write_file(base, "rules/default.rules", "# fine\n");
    assert_int_equal(rules_append(path, NULL, "prefix_rule(", &outcome, &err), -1);
    assert_file(base, "rules/default.rules", "# fine\n");
}

static void folders_above_the_file_are_made(void **state)
{
    const char *base = *state;
    AUTO_FREE char *far = path_join(base, "no/such/default.rules");
    enum rules_append outcome;
    struct err err;

    assert_int_equal(rules_append(far, NULL, "prefix_rule([\"a\"])", &outcome, &err), 0);
    assert_file(base, "no/such/default.rules", "prefix_rule([\"a\"])\n");
}

/* The disk is full in the middle of the new text. */
static void a_failed_write_changes_nothing(void **state)
{
    const char *base = *state;
    AUTO_FREE char *path = path_join(base, "rules/default.rules");
    AUTO_FREE char *left = path_join(base, "rules/default.rules.new");
    const struct rlimit limit = {.rlim_cur = 30, .rlim_max = 30};
    enum rules_append outcome;
    struct err err;
    int status;

    append(base, "prefix_rule([\"first\"])", RULES_APPENDED);
    if (fork() == 0) {
        signal(SIGXFSZ, SIG_IGN);
        if (setrlimit(RLIMIT_FSIZE, &limit))
            _exit(1);
        _exit(rules_append(path, NULL, "prefix_rule([\"second\"])", &outcome, &err) == -1 &&
                      err.sys == EFBIG
                  ? 0
                  : 1);
    }
    assert_true(wait(&status) > 0);
    assert_int_equal(status, 0);
    assert_file(base, "rules/default.rules", "prefix_rule([\"first\"])\n");
    assert_int_equal(access(left, F_OK), -1);
}

/* What another writer left when it was killed hinders no later one. */
static void a_killed_writer_hinders_no_later_one(void **state)
{
    const char *base = *state;

    make_dir(base, "rules");
    write_file(base, "rules/default.rules.new", "prefix_rule([\"ha");
    append(base, "prefix_rule([\"a\"])", RULES_APPENDED);
    assert_file(base, "rules/default.rules", "prefix_rule([\"a\"])\n");
}

enum { WRITERS = 8, LINES = 12 };

static void write_many(const char *base, int writer)
{
    AUTO_FREE char *path = path_join(base, "rules/default.rules");
    enum rules_append outcome;
    struct err err;

    for (int i = 0; i < LINES; i++) {
        AUTO_FREE char *line = alloc_strf("prefix_rule([\"w%d\", \"%d\"])", writer, i);

        if (rules_append(path, NULL, line, &outcome, &err))
            _exit(1);
    }
    _exit(0);
}

/* Each finds its lines again, whichever others were writing. */
static void many_append_at_once(void **state)
{
    const char *base = *state;
    AUTO(buf_done) struct buf text = {0};
    AUTO_FREE char *path = path_join(base, "rules/default.rules");
    AUTO_FREE char *left = path_join(base, "rules/default.rules.new");
    struct err err;
    int status;

    for (int writer = 0; writer < WRITERS; writer++)
        if (fork() == 0)
            write_many(base, writer);
    for (int writer = 0; writer < WRITERS; writer++) {
        assert_true(wait(&status) > 0);
        assert_int_equal(status, 0);
    }
    assert_int_equal(fd_read_file(path, 1 << 20, &text, &err), 0);
    for (int writer = 0; writer < WRITERS; writer++)
        for (int i = 0; i < LINES; i++) {
            AUTO_FREE char *line = alloc_strf("prefix_rule([\"w%d\", \"%d\"])\n", writer, i);

            assert_non_null(strstr(text.data, line));
        }
    assert_int_equal(access(left, F_OK), -1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, dir_open, dir_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(layers_are_read_in_order),
        TEST(the_administrator_forbids),
        TEST(what_cannot_be_read_is_a_problem),
        cmocka_unit_test(lines_as_codex_writes_them),
        TEST(every_word_survives),
        TEST(appending_keeps_what_is_there),
        TEST(links_stay),
        TEST(broken_files_stay_as_they_are),
        TEST(folders_above_the_file_are_made),
        TEST(a_failed_write_changes_nothing),
        TEST(a_killed_writer_hinders_no_later_one),
        TEST(many_append_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
