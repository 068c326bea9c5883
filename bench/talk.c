/* See talk.h. */
#include "talk.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

void talk_check(int status, const struct cordon_error *error)
{
    if (status)
        bench_fail("%s", error->message);
}

/* --- by a session --- */

static void on_change(void *data, struct cordon_session *session)
{
    static char bytes[TALK_READ_SIZE];
    struct talk *talk = data;
    struct cordon_record record;

    for (;;) {
        cordon_session_read(session, bytes, sizeof bytes, &record);
        if (record.kind == CORDON_GAP)
            bench_fail("output was lost");
        if (record.kind != CORDON_BYTES)
            break;
        talk->total += record.len;
    }
    talk->is_over = record.kind == CORDON_EOF;
}

void talk_start(struct talk *talk, struct cordon_engine *engine, const char *const *argv,
                unsigned flags, const struct cordon_policy *policy)
{
    struct cordon_session_options options = {.size = sizeof options,
                                             .argv = argv,
                                             .policy = policy,
                                             .flags = flags,
                                             .on_change = on_change,
                                             .data = talk};
    struct cordon_error error;

    *talk = (struct talk){.engine = engine};
    talk_check(cordon_session_start(engine, &options, &talk->session, &error), &error);
}

void talk_turn(struct cordon_engine *engine)
{
    struct cordon_error error;

    talk_check(cordon_wait(engine, -1, &error), &error);
}

void talk_finish(struct talk *talk)
{
    const struct cordon_end *end;

    while (!talk->is_over)
        talk_turn(talk->engine);
    end = cordon_session_end(talk->session);
    if (end->how == CORDON_FAILED_TO_START)
        bench_fail("%s", end->failure.message);
    if (end->exit_code)
        bench_fail("a session ended with %d", end->exit_code);
    cordon_session_free(talk->session);
}

/* --- with nothing between --- */

/* A program whose three descriptors are `fd`, or its output only; `fd` is closed. */
static pid_t spawn_bare(const struct bench *bench, const char *const *argv, int fd, bool is_tty)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    pid_t pid;

    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, is_tty ? fd : bench->null, 0);
    posix_spawn_file_actions_adddup2(&actions, fd, 1);
    posix_spawn_file_actions_adddup2(&actions, fd, 2);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
    if (posix_spawn(&pid, argv[0], &actions, &attributes, (char *const *)argv, environ))
        bench_fail("%s cannot be started", argv[0]);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    close(fd);
    return pid;
}

/* The reading end; `*ret_fd` is the program's. */
static int open_bare(bool is_tty, int *ret_fd)
{
    int ends[2];
    int unlocked = 0;

    if (!is_tty) {
        if (pipe2(ends, O_CLOEXEC))
            bench_fail("no pipe");
        *ret_fd = ends[1];
        return ends[0];
    }
    ends[0] = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (ends[0] < 0 || ioctl(ends[0], TIOCSPTLCK, &unlocked))
        bench_fail("no terminal");
    *ret_fd = ioctl(ends[0], TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    return ends[0];
}

void bare_start(struct bare *bare, const struct bench *bench, const char *const *argv, bool is_tty)
{
    int theirs;

    bare->fd = open_bare(is_tty, &theirs);
    bare->pid = spawn_bare(bench, argv, theirs, is_tty);
}

void bare_finish(struct bare *bare)
{
    int status;

    while (waitpid(bare->pid, &status, 0) < 0 && errno == EINTR)
        continue;
    if (status)
        bench_fail("a program ended with status %#x", (unsigned)status);
    close(bare->fd);
}
