/* See pager.h. The command is a shell's, as git(1) has it, and gets LESS=FRX unless the person has chosen other options:
 * a text that fits on the screen stays there, and colours are passed on.
 *
 * git is asked for the choice at "/", without what leads it to a repository: what a command has written must not choose a
 * program that is run here. */
#include "cli/pager.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/console.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int exit_of(pid_t child)
{
    int status = 0;

    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int program_wait(const char *const *argv, const char *dir, int out)
{
    pid_t child;

    signal(SIGINT, SIG_IGN); /* the program's own, as in a shell */
    signal(SIGQUIT, SIG_IGN);
    child = fork();
    if (child == 0) {
        signal(SIGINT, SIG_DFL);
        signal(SIGQUIT, SIG_DFL);
        signal(SIGPIPE, SIG_DFL);
        if ((out < 0 || dup2(out, STDOUT_FILENO) >= 0) && /* allow dup2: what it prints is ours */
            (!dir || chdir(dir) == 0))
            execvp(argv[0], (char *const *)argv);
        _exit(127);
    }
    if (child > 0)
        child = exit_of(child);
    signal(SIGINT, SIG_DFL);
    signal(SIGQUIT, SIG_DFL);
    return child < 0 ? 127 : child;
}

/* What git would use; NULL: there is no git. Caller frees. */
static char *ask_git(void)
{
    static const char *const argv[] = {
        "sh", "-c", "unset GIT_DIR GIT_WORK_TREE; exec git var GIT_PAGER 2>/dev/null", NULL};
    AUTO(buf_done) struct buf text = {.max = 4096};
    AUTO_CLOSE int from = -1;
    int ends[2], status;
    struct err ignored; /* then there is none */

    if (pipe2(ends, O_CLOEXEC))
        return NULL;
    from = ends[0];
    status = program_wait(argv, "/", ends[1]); /* a line fits into a pipe */
    close(ends[1]);
    if (status || buf_read_fd(&text, from, &ignored) || !text.len)
        return NULL;
    text.data[strcspn(text.data, "\n")] = '\0';
    return alloc_str(text.data);
}

/* "" when the person wants none. Caller frees. */
static char *choose(void)
{
    const char *gits = getenv("GIT_PAGER");
    const char *own = getenv("PAGER");
    AUTO_FREE char *asked = gits ? NULL : ask_git();
    const char *pager = gits ? gits : asked ? asked : own ? own : "less";

    return alloc_str(str_eq(pager, "cat") ? "" : pager);
}

void pager_start(struct pager *ret)
{
    AUTO_FREE char *command = NULL;
    AUTO_CLOSE int reader = -1;
    int ends[2];

    *ret = (struct pager){.fd = STDOUT_FILENO};
    signal(SIGPIPE, SIG_IGN);
    if (!isatty(STDOUT_FILENO))
        return;
    command = choose();
    if (!*command || pipe2(ends, O_CLOEXEC))
        return;
    reader = ends[0];
    ret->child = fork();
    if (ret->child == 0) {
        char *argv[] = {(char *)"sh", (char *)"-c", command, NULL};

        signal(SIGPIPE, SIG_DFL);
        setenv("LESS", "FRX", 0);
        setenv("LV", "-c", 0);
        if (dup2(reader, STDIN_FILENO) >= 0) /* allow dup2: what it reads */
            execv("/bin/sh", argv);
        _exit(127);
    }
    if (ret->child < 0) {
        close(ends[1]);
        ret->child = 0;
        return;
    }
    ret->fd = ends[1];
    signal(SIGINT, SIG_IGN); /* the pager's own */
    signal(SIGQUIT, SIG_IGN);
}

bool pager_write(struct pager *pager, const void *text, size_t len)
{
    struct err err;

    if (pager->is_gone || fd_write_all(pager->fd, text, len, &err) == 0)
        return !pager->is_gone;
    pager->is_gone = true;
    if (err.sys != EPIPE) {
        console_say("stdout: %s", err.msg);
        pager->has_failed = true;
    }
    return false;
}

int pager_end(struct pager *pager)
{
    int status;

    if (!pager->child)
        return pager->has_failed ? EXIT_FAILED : EXIT_OK;
    close(pager->fd);
    status = exit_of(pager->child);
    signal(SIGINT, SIG_DFL);
    signal(SIGQUIT, SIG_DFL);
    if (status == 127)
        return console_failf("the pager cannot be started; GIT_PAGER=cat does without");
    return EXIT_OK;
}
