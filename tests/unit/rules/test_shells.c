/* shell_choice and shell_snapshot. Snapshots are taken of the real shells, with
 * start-up files in a $HOME of the test's own. */
#include "../base/cases.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/str.h"
#include "rules/shell/shell_choice.h"
#include "rules/shell/shell_snapshot.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- which shell --- */

struct few {
    struct program_finder finder;
    const char *const *paths; /* bare names are found in the directory of the first that fits */
};

static bool few_find(const struct program_finder *finder, const char *name, char **ret_found,
                     char **ret_real)
{
    const struct few *few = (const struct few *)finder;

    for (size_t i = 0; few->paths[i]; i++)
        if (str_eq(few->paths[i], name) ||
            (!strchr(name, '/') && str_ends(few->paths[i], name) &&
             few->paths[i][strlen(few->paths[i]) - strlen(name) - 1] == '/')) {
            *ret_found = alloc_str(few->paths[i]);
            *ret_real = alloc_str(few->paths[i]);
            return true;
        }
    return false;
}

static void kinds(void **state)
{
    assert_int_equal(shell_kind_of("/usr/bin/bash"), SHELL_BASH);
    assert_int_equal(shell_kind_of("zsh"), SHELL_ZSH);
    assert_int_equal(shell_kind_of("/bin/sh"), SHELL_SH);
    assert_int_equal(shell_kind_of("C:\\Windows\\PowerShell.EXE"), SHELL_POWERSHELL);
    assert_int_equal(shell_kind_of("/opt/pwsh"), SHELL_POWERSHELL);
    assert_int_equal(shell_kind_of("cmd.exe"), SHELL_CMD);
    assert_int_equal(shell_kind_of("/usr/bin/fish"), SHELL_UNKNOWN);
    assert_int_equal(shell_kind_of("/usr/bin/bash/"), SHELL_UNKNOWN);
    assert_int_equal(shell_kind_of(""), SHELL_UNKNOWN);
}

static void check_choice(const char *login_shell, const char *const *paths, const char *wanted)
{
    const struct few few = {.finder.find = few_find, .paths = paths};
    AUTO_FREE char *got = shell_choose(login_shell, &few.finder);

    assert_string_equal(got, wanted);
}

static void choice(void **state)
{
    static const char *const all[] = {"/usr/bin/fish", "/usr/bin/zsh", "/usr/bin/bash",
                                      "/opt/zsh",      "/bin/sh",      NULL};
    static const char *const no_bash[] = {"/usr/bin/zsh", "/bin/sh", NULL};
    static const char *const none[] = {NULL};

    check_choice("/opt/zsh", all, "/opt/zsh");
    check_choice("/gone/zsh", all, "/usr/bin/zsh");
    check_choice("/usr/bin/fish", all, "/usr/bin/bash");
    check_choice(NULL, all, "/usr/bin/bash");
    check_choice("/usr/bin/fish", no_bash, "/usr/bin/zsh");
    check_choice("/gone/bash", no_bash, "/usr/bin/zsh");
    check_choice(NULL, none, "/bin/sh");
}

static void a_given_shell_comes_first(void **state)
{
    static const char *const paths[] = {"/usr/bin/bash", "/opt/bash", "/home/bash", NULL};
    const struct few few = {.finder.find = few_find, .paths = paths};
    AUTO_FREE char *given = shell_find(SHELL_BASH, "/opt/bash", "/home/bash", &few.finder);
    AUTO_FREE char *login = shell_find(SHELL_BASH, "/gone/bash", "/home/bash", &few.finder);
    AUTO_FREE char *other = shell_find(SHELL_BASH, "/opt/zsh", "/bin/zsh", &few.finder);
    AUTO_FREE char *none = shell_find(SHELL_ZSH, "/opt/bash", "/home/bash", &few.finder);

    assert_string_equal(given, "/opt/bash");
    assert_string_equal(login, "/home/bash");
    assert_string_equal(other, "/usr/bin/bash");
    assert_null(none);
}

/* --- words --- */

static char *joined(const struct strv *words)
{
    struct buf text = {.max = 1 << 20};

    for (size_t i = 0; i < words->len; i++)
        buf_appendf(&text, "%s%s", i ? "|" : "", words->items[i]);
    return buf_take(&text);
}

static void check_argv(const char *shell, enum shell_start start, const char *wanted)
{
    AUTO(strv_done) struct strv argv = {0};
    AUTO_FREE char *got = NULL;

    shell_argv_make(shell, start, "a b", &argv);
    got = joined(&argv);
    assert_string_equal(got, wanted);
}

static void argvs(void **state)
{
    check_argv("/bin/bash", SHELL_LOGIN, "/bin/bash|-lc|a b");
    check_argv("zsh", SHELL_PLAIN, "zsh|-c|a b");
    check_argv("/usr/bin/fish", SHELL_PLAIN, "/usr/bin/fish|-c|a b");
    check_argv("cmd.exe", SHELL_LOGIN, "cmd.exe|/c|a b");
}

static void powershell_writes_utf8(void **state)
{
#define UTF8 "[Console]::OutputEncoding=[System.Text.Encoding]::UTF8;\n"
    AUTO(strv_done) struct strv again = {0};

    check_argv("pwsh", SHELL_PLAIN, "pwsh|-NoProfile|-Command|" UTF8 "a b");
    check_argv("pwsh", SHELL_LOGIN, "pwsh|-Command|" UTF8 "a b");
    check_argv("C:\\PowerShell.exe", SHELL_LOGIN, "C:\\PowerShell.exe|-Command|" UTF8 "a b");
    shell_argv_make("pwsh", SHELL_LOGIN, UTF8 "ls", &again);
    assert_string_equal(again.items[2], UTF8 "ls");
}

/* --- snapshots --- */

static void check_cut(const char *output, const char *wanted)
{
    size_t len;
    const char *got = shell_snapshot_cut(output, strlen(output), &len);

    if (!wanted) {
        assert_null(got);
        return;
    }
    assert_non_null(got);
    assert_int_equal(len, strlen(wanted));
    assert_memory_equal(got, wanted, len);
}

static void the_marker(void **state)
{
    check_cut("# cordon shell snapshot 1\na\n", "a\n");
    check_cut("motd\nx # cordon shell snapshot 1\n# cordon shell snapshot 1\na\n", "a\n");
    check_cut("# cordon shell snapshot 1\n", "");
    check_cut("motd\n# cordon shell snapshot 12\n", NULL);
    check_cut("", NULL);
}

struct home {
    char path[64];
    struct strv state; /* as the environment carries it */
    char *env[8];
};

static void home_write(const struct home *home, const char *name, const char *text, size_t len)
{
    AUTO_FREE char *path = alloc_strf("%s/%s", home->path, name);
    AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    struct err err;

    assert_true(fd >= 0);
    assert_int_equal(fd_write_all(fd, text, len, &err), 0);
}

/* Start-up files that say something, take note of being read, and set up a little of everything. */
static void home_init(struct home *home)
{
    static const char common[] =
        "echo welcome\necho read >> \"$HOME/reads\"\nexport GREETING=\"it's \\\"me\\\"\nand $0x\"\n"
        "export PATH=\"$HOME/bin:$PATH\" KEPT=from-login\nalias hi='echo hi there'\n";
    static const char more[] = "greet() { echo \"greeting: $1 [$GREETING]\"; }\n";
    AUTO_FREE char *full = alloc_strf("%s%s", common, more);
    AUTO_FREE char *bash = alloc_strf("%sshopt -s extglob expand_aliases\nset -u\n", full);
    AUTO_FREE char *zsh = alloc_strf("%ssetopt extended_glob\n", full);

    snprintf(home->path, sizeof home->path, "/tmp/cordon-shells-XXXXXX");
    assert_non_null(mkdtemp(home->path));
    home->state = (struct strv){0};
    home_write(home, ".bash_profile", bash, strlen(bash));
    home_write(home, ".zprofile", zsh, strlen(zsh));
    home_write(home, ".profile", common, sizeof common - 1);
    home->env[0] = alloc_strf("HOME=%s", home->path);
    home->env[1] = alloc_str("PATH=/usr/bin:/bin");
    home->env[2] = alloc_str("KEPT=from-caller");
    home->env[3] = alloc_str("LC_ALL=C");
    home->env[4] = NULL;
}

static void home_done(struct home *home)
{
    static const char *const names[] = {".bash_profile", ".zprofile", ".profile", "reads",
                                        ".bash_history"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        AUTO_FREE char *path = alloc_strf("%s/%s", home->path, names[i]);

        unlink(path);
    }
    rmdir(home->path);
    for (size_t i = 0; i < 4; i++)
        free(home->env[i]);
    strv_done(&home->state);
}

static size_t home_reads(const struct home *home)
{
    AUTO_FREE char *path = alloc_strf("%s/reads", home->path);
    AUTO(buf_done) struct buf text = {0};
    struct err err;
    size_t lines = 0;

    if (fd_read_file(path, 1000, &text, &err))
        return 0;
    for (size_t i = 0; i < text.len; i++)
        lines += text.data[i] == '\n';
    return lines;
}

/* Exit code of the command; its output into `out`. */
static int run(const struct home *home, const struct strv *argv, struct buf *out)
{
    AUTO(strv_done) struct strv env = {0};
    posix_spawn_file_actions_t actions;
    struct err err;
    int ends[2], status;
    pid_t pid;

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    strv_push_all(&env, (char **)home->env);
    strv_push_all(&env, strv_view(&home->state));
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    assert_int_equal(
        posix_spawn(&pid, argv->items[0], &actions, NULL, argv->items, strv_view(&env)), 0);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    assert_int_equal(buf_read_fd(out, ends[0], &err), 0);
    close(ends[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void take(struct home *home, const char *shell)
{
    AUTO(strv_done) struct strv argv = {0};
    AUTO(strv_done) struct strv check = {0};
    AUTO(buf_done) struct buf out = {.max = SHELL_SNAPSHOT_MAX};
    AUTO(buf_done) struct buf said = {.max = SHELL_SNAPSHOT_MAX};
    const char *text;
    size_t len;

    assert_true(shell_snapshot_take(shell, &argv));
    assert_int_equal(run(home, &argv, &out), 0);
    assert_memory_equal(out.data, "welcome\n", 8);
    text = shell_snapshot_cut(out.data, out.len, &len);
    assert_non_null(text);
    shell_snapshot_carry(text, len, &home->state);
    shell_snapshot_check(shell, home->state.len, &check);
    if (run(home, &check, &said) || said.len)
        fail_msg("%s: %s\n%s", shell, said.data ? said.data : "", out.data);
}

enum start { BY_SNAPSHOT, BY_LOGIN };

static void check_run(struct home *home, const char *shell, enum start start, const char *script,
                      const char *wanted)
{
    char *const words[] = {(char *)shell, (char *)"-lc", (char *)script, NULL};
    char *const keep[] = {(char *)"KEPT", (char *)"not a name;", (char *)"UNSET", NULL};
    AUTO(strv_done) struct strv argv = {0};
    AUTO(buf_done) struct buf out = {.max = 1 << 16};

    if (start == BY_SNAPSHOT)
        assert_true(shell_snapshot_use(words, shell, home->state.len, keep, &argv));
    else
        strv_push_all(&argv, words);
    assert_int_equal(run(home, &argv, &out), 7);
    assert_string_equal(out.data ? out.data : "", wanted);
}

/* Whatever a login gives the script, the snapshot gives it too, and the files are not read again.
 */
static void check_shell(const char *shell, const char *script, const char *wanted)
{
    AUTO(home_done) struct home home;
    AUTO_FREE char *welcome = alloc_strf("welcome\n%s", wanted);
    AUTO_FREE char *kept = alloc_strf(
        "echo $KEPT ${UNSET-unset} ${_cordon-} ${_cordon_0-} ${_cordon_state_0-}; %s", script);
    AUTO_FREE char *wanted_kept = alloc_strf("from-caller unset\n%s", wanted);

    home_init(&home);
    take(&home, shell);
    assert_int_equal(home_reads(&home), 1);
    check_run(&home, shell, BY_SNAPSHOT, script, wanted);
    check_run(&home, shell, BY_SNAPSHOT, kept, wanted_kept);
    assert_int_equal(home_reads(&home), 1);
    check_run(&home, shell, BY_LOGIN, script, welcome);
    assert_int_equal(home_reads(&home), 2);
}

static void need(const char *shell)
{
    if (access(shell, X_OK) == 0)
        return;
    print_message("%s is not installed (scripts/deps test)\n", shell);
    if (getenv("CORDON_MUST_WORK"))
        fail();
    skip();
}

static void bash_snapshot(void **state)
{
    need("/bin/bash");
    check_shell(
        "/bin/bash",
        "greet \"o'n'e\"; hi 'x'; shopt -q extglob && echo glob; case $- in *u*) echo u; esac\n"
        "echo \"${PATH##*/bin:}|${#PATH}\" | wc -l; echo $# $0; exit 7",
        "greeting: o'n'e [it's \"me\"\nand /bin/bashx]\nhi there x\nglob\nu\n1\n0 /bin/bash\n");
}

static void zsh_snapshot(void **state)
{
    need("/bin/zsh");
    check_shell("/bin/zsh", "greet \"o'n'e\"; [[ -o extendedglob ]] && echo glob; echo $#; exit 7",
                "greeting: o'n'e [it's \"me\"\nand /bin/zshx]\nglob\n0\n");
}

static void sh_snapshot(void **state)
{
    check_shell("/bin/sh", "echo \"$GREETING\"; hi x; exit 7",
                "it's \"me\"\nand /bin/shx\nhi there x\n");
}

/* Larger than one variable may be, and cut in the middle of characters. */
static void a_large_state_is_carried_in_parts(void **state)
{
    AUTO(home_done) struct home home;
    AUTO(buf_done) struct buf text = {.max = SHELL_SNAPSHOT_MAX};
    AUTO(strv_done) struct strv env = {0};

    need("/bin/bash");
    home_init(&home);
    buf_append_str(&text, "big=x");
    while (text.len < 400 * 1024)
        buf_append_str(&text, "\u20ac");
    buf_append_str(&text, "\n");
    assert_int_equal(shell_snapshot_carry(text.data, text.len, &home.state), 4);
    check_run(&home, "/bin/bash", BY_SNAPSHOT, "echo ${#big} ${big##*x\u20ac*\u20ac}; exit 7",
              "409597\n");
    assert_int_equal(shell_snapshot_carry("", 0, &env), 0);
}

static void only_the_same_shell_with_a_login(void **state)
{
    AUTO_FREE char *large = alloc_zero(200001, 1);
    char *const keep[] = {NULL};
    char *const wrong[][5] = {{(char *)"/bin/bash", (char *)"-c", (char *)"a", NULL},
                              {(char *)"bash", (char *)"-lc", (char *)"a", NULL},
                              {(char *)"/bin/bash", (char *)"-lc", (char *)"a", (char *)"b", NULL},
                              {(char *)"/bin/bash", (char *)"-lc", NULL},
                              {(char *)"/bin/bash", (char *)"-lc", large, NULL},
                              {NULL}};
    AUTO(strv_done) struct strv ret = {0};

    memset(large, 'a', 200000);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(shell_snapshot_use(wrong[i], "/bin/bash", 1, keep, &ret));
    assert_int_equal(ret.len, 0);
    assert_false(shell_snapshot_take("/usr/bin/fish", &ret));
    assert_false(shell_snapshot_take("pwsh", &ret));
    assert_int_equal(ret.len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds),
        cmocka_unit_test(choice),
        cmocka_unit_test(argvs),
        cmocka_unit_test(a_given_shell_comes_first),
        cmocka_unit_test(powershell_writes_utf8),
        cmocka_unit_test(the_marker),
        cmocka_unit_test(bash_snapshot),
        cmocka_unit_test(zsh_snapshot),
        cmocka_unit_test(sh_snapshot),
        cmocka_unit_test(a_large_state_is_carried_in_parts),
        cmocka_unit_test(only_the_same_shell_with_a_login),
    };

    return cmocka_run_group_tests_name("shells", tests, NULL, NULL);
}
