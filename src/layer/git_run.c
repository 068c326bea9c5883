/* See git_run.h. What git obeys besides its arguments is taken from it as far as it could come from somewhere else: all
 * variables but those that say who and where the user is, and the entries of $PATH that are no absolute directories. */
#include "layer/git_run.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OUTPUT_MAX = 1 << 20, WORDS_MAX = 2000 };

static char *find_git(void)
{
    const char *at = getenv("PATH");

    while (at && *at) {
        size_t len = strcspn(at, ":");
        AUTO_FREE char *dir = alloc_strn(at, len);
        AUTO_FREE char *path = path_join(dir, "git");

        if (*dir == '/' && access(path, X_OK) == 0)
            return TAKE_PTR(path);
        at += len + (at[len] == ':');
    }
    return NULL;
}

static void make_env(bool is_ours, struct strv *ret)
{
    static const char *const kept[] = {"PATH",   "HOME", "XDG_CONFIG_HOME", "USER", "LOGNAME",
                                       "TMPDIR", NULL};

    for (size_t i = 0; kept[i]; i++)
        if (getenv(kept[i]))
            strv_pushf(ret, "%s=%s", kept[i], getenv(kept[i]));
    strv_push(ret, "LC_ALL=C");
    strv_push(ret, "GIT_TERMINAL_PROMPT=0");
    strv_push(ret, "GIT_NO_REPLACE_OBJECTS=1");
    strv_push(ret, "GIT_NO_LAZY_FETCH=1");
    strv_push(ret, "GIT_OPTIONAL_LOCKS=0");
    strv_push(ret, "GIT_ALLOW_PROTOCOL=file");
    if (!is_ours)
        return;
    strv_push(ret, "GIT_CONFIG_GLOBAL=/dev/null");
    strv_push(ret, "GIT_CONFIG_NOSYSTEM=1");
}

static void make_argv(const struct git_call *call, struct strv *ret)
{
    static const char *const always[] = {
        "git",
        "--no-replace-objects",
        "--no-pager",
        "-c",
        "core.hooksPath=/dev/null",
        "-c",
        "core.fsmonitor=false",
        "-c",
        "gc.auto=0",
        "-c",
        "maintenance.auto=false",
        "-c",
        "fetch.fsckObjects=true",
        "-c",
        "fetch.recurseSubmodules=false",
        "-c",
        "fetch.writeCommitGraph=false",
        "-c",
        "protocol.file.allow=always",
        NULL,
    };

    for (size_t i = 0; always[i]; i++)
        strv_push(ret, always[i]);
    strv_pushf(ret, "--git-dir=%s", call->git_dir);
    for (const char *const *word = call->argv; *word; word++)
        strv_push(ret, *word);
}

static int spawn(const char *program, const struct git_call *call, int output, int words,
                 pid_t *ret, struct err *err)
{
    AUTO(strv_done) struct strv argv = {0};
    AUTO(strv_done) struct strv env = {0};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
    int error;

    make_argv(call, &argv);
    make_env(call->is_ours, &env);
    sigemptyset(&none);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, words, STDERR_FILENO);
    error = posix_spawn(ret, program, &actions, &attributes, strv_view(&argv), strv_view(&env));
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    errno = error;
    return error ? err_sys(err, "starting %s", program) : 0;
}

/* What it has said on stderr, without what would not fit a sentence. */
static char *read_words(int fd)
{
    char text[WORDS_MAX + 1];
    ssize_t len = pread(fd, text, WORDS_MAX, 0);
    size_t end = len < 0 ? 0 : (size_t)len;

    while (end && text[end - 1] == '\n')
        end--;
    text[end] = '\0';
    for (char *at = text; *at; at++)
        if ((unsigned char)*at < ' ')
            *at = *at == '\n' ? ';' : ' ';
    return alloc_str(text);
}

int git_run(const struct git_call *call, struct buf *ret, struct err *err)
{
    AUTO_FREE char *program = find_git();
    AUTO_CLOSE int words = -1;
    AUTO_CLOSE int from = -1;
    AUTO_FREE char *said = NULL;
    int ends[2], status = 0, read_status;
    pid_t pid;

    if (!program)
        return err_set(err, ERR_NOT_FOUND,
                       "there is no git on $PATH, and commits are taken by it: install git");
    words = memfd_create("git-words", MFD_CLOEXEC);
    if (words < 0)
        return err_sys(err, "memfd_create");
    if (pipe2(ends, O_CLOEXEC))
        return err_sys(err, "pipe2");
    from = ends[0];
    status = spawn(program, call, ends[1], words, &pid, err);
    close(ends[1]);
    if (status)
        return -1;
    ret->max = ret->max ? ret->max : OUTPUT_MAX;
    read_status = buf_read_fd(ret, from, err);
    auto_close(&from);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (read_status)
        return err_wrap(err, "git %s", call->argv[0]);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    said = read_words(words);
    return err_set(err, ERR_FORBIDDEN, "git %s: %s", call->argv[0],
                   *said                 ? said
                   : WIFSIGNALED(status) ? strsignal(WTERMSIG(status))
                                         : "it failed without a word");
}
