/* fd: descriptors that stay inside, stay ours and close themselves on exec. Everything is run in a
 * scratch directory that looks like this:
 *
 *     outside.txt   inside/file   inside/sub/deep   inside/fifo
 *     inside/link -> file   inside/out -> ../outside.txt   inside/dirlink -> sub
 *     inside/abs -> /       inside/dangling -> nowhere
 */
#include "support.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

struct world {
    char *root;
    char *inside;
    int dir; /* of inside */
    unsigned fds;
};

static int world_setup(void **state)
{
    struct world *world = alloc_zero(1, sizeof *world);

    world->root = support_scratch_new();
    world->inside = path_join(world->root, "inside");
    support_write(world->root, "outside.txt", "outside");
    assert_int_equal(mkdir(world->inside, 0700), 0);
    world->dir = open(world->inside, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(world->dir >= 0);
    support_write(world->inside, "file", "content");
    assert_int_equal(mkdirat(world->dir, "sub", 0700), 0);
    support_write(world->inside, "sub/deep", "deep");
    assert_int_equal(symlinkat("file", world->dir, "link"), 0);
    assert_int_equal(symlinkat("../outside.txt", world->dir, "out"), 0);
    assert_int_equal(symlinkat("sub", world->dir, "dirlink"), 0);
    assert_int_equal(symlinkat("/", world->dir, "abs"), 0);
    assert_int_equal(symlinkat("nowhere", world->dir, "dangling"), 0);
    assert_int_equal(mkfifoat(world->dir, "fifo", 0600), 0);
    world->fds = support_open_fds();
    *state = world;
    return 0;
}

/* Every test gives back every descriptor that it, or a function under test, has opened. */
static int world_teardown(void **state)
{
    struct world *world = *state;

    assert_int_equal(support_open_fds(), world->fds);
    close(world->dir);
    free(world->inside);
    support_scratch_remove(world->root);
    free(world);
    return 0;
}

static void kind_tells_without_following(void **state)
{
    const struct world *world = *state;
    static const struct {
        const char *path;
        enum fd_kind kind;
    } cases[] = {
        {"file", FD_OTHER},      {"sub", FD_DIR},         {".", FD_DIR},
        {"link", FD_OTHER},      {"dirlink", FD_OTHER},   {"dangling", FD_OTHER},
        {"fifo", FD_OTHER},      {"nothing", FD_MISSING}, {"no/such/parent", FD_MISSING},
        {"file/x", FD_MISSING},  {"sub/deep", FD_OTHER},  {"dirlink/deep", FD_OTHER},
        {"/dev/null", FD_OTHER},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct err err = ERR_UNTOUCHED;
        enum fd_kind kind = (enum fd_kind) - 1;

        assert_int_equal(fd_kind_at(world->dir, cases[i].path, &kind, &err), 0);
        if (kind != cases[i].kind)
            fail_msg("%s: kind %d", cases[i].path, kind);
        assert_untouched(err);
    }
}

static void kind_reports_what_is_not_mere_absence(void **state)
{
    const struct world *world = *state;
    enum fd_kind kind = FD_OTHER;
    struct err err;
    char name[300];

    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    assert_int_equal(fd_kind_at(world->dir, name, &kind, &err), -1);
    assert_int_equal(err.sys, ENAMETOOLONG);
    assert_int_equal(fd_kind_at(-1, "file", &kind, &err), -1);
    assert_int_equal(err.sys, EBADF);
    assert_int_equal(kind, FD_OTHER); /* outputs stay untouched */
}

static void strict_open_takes_plain_paths(void **state)
{
    const struct world *world = *state;
    static const char *const names[] = {"file", "sub", "sub/deep", "fifo"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        AUTO_FREE char *path = path_join(world->inside, names[i]);
        AUTO_FREE char *target = NULL;
        char link[32];
        struct err err = ERR_UNTOUCHED;
        AUTO_CLOSE int fd = fd_open_path_strict(path, &err);

        assert_true(fd >= 0);
        assert_untouched(err);
        assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
        assert_true(fcntl(fd, F_GETFL) & O_PATH);
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        target = realpath(link, NULL);
        assert_string_equal(target, path);
    }
}

static void strict_open_refuses_links_anywhere(void **state)
{
    const struct world *world = *state;
    static const char *const names[] = {"link", "out",     "dirlink", "dirlink/deep",
                                        "abs",  "abs/etc", "dangling"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        AUTO_FREE char *path = path_join(world->inside, names[i]);
        struct err err;

        assert_int_equal(fd_open_path_strict(path, &err), -1);
        if (err.sys != ELOOP)
            fail_msg("%s: %s", names[i], err.msg);
        assert_contains(err.msg, path);
    }
}

static void strict_open_refuses_magic_links(void **state)
{
    static const char *const paths[] = {"/proc/self/root", "/proc/self/root/etc", "/proc/self/cwd",
                                        "/proc/self/fd/0"};

    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        struct err err;

        assert_int_equal(fd_open_path_strict(paths[i], &err), -1);
        assert_int_equal(err.sys, ELOOP);
    }
}

struct opened {
    int error, flags;
    ino_t inode;
};

static struct opened open_at(int dir, const char *path, int flags)
{
    const struct sys_open_how how = {.flags = (uint64_t)(unsigned)flags,
                                     .resolve = SYS_RESOLVE_NO_SYMLINKS};
    struct opened ret = {0};
    struct stat st;
    AUTO_CLOSE int fd = sys_openat2(dir, path, &how);

    if (fd < 0 || fstat(fd, &st))
        ret.error = errno;
    else
        ret = (struct opened){.inode = st.st_ino, .flags = fcntl(fd, F_GETFL)};
    return ret;
}

/* As in our own sandbox (sandbox/linux/seccomp.c). */
static void lose_openat2(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {.len = 4, .filter = code};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
        _exit(99);
}

static void without_openat2_the_same_is_opened(void **state)
{
    static const char *const paths[] = {
        "file",         "sub/deep", "sub//deep", "./sub/./deep",
        "sub/",         "file/",    ".",         "/",
        "//",           "",         "missing",   "sub/gone",
        "file/x",       "link",     "out",       "dirlink/..",
        "dirlink/deep", "abs",      "dangling",  "/dev/null",
        "/dev",         "abs/",     "/dev/",
    };
    static const int flags[] = {O_PATH, O_RDONLY, O_RDONLY | O_DIRECTORY};
    enum { PATHS = sizeof paths / sizeof *paths, FLAGS = 3 };
    const struct world *world = *state;
    struct opened expected[PATHS][FLAGS];
    int status;
    pid_t pid;

    for (int i = 0; i < PATHS; i++)
        for (int j = 0; j < FLAGS; j++)
            expected[i][j] = open_at(world->dir, paths[i], flags[j]);
    assert_int_equal(expected[0][1].error, 0);
    pid = fork();
    if (pid == 0) {
        lose_openat2();
        if (syscall(SYS_openat2, -1, "", NULL, 0) != -1 || errno != ENOSYS)
            _exit(98);
        for (int i = 0; i < PATHS; i++)
            for (int j = 0; j < FLAGS; j++) {
                struct opened now = open_at(world->dir, paths[i], flags[j]);

                if (now.error == ENOTDIR && expected[i][j].error == ELOOP)
                    now.error = ELOOP; /* of open(2) with O_DIRECTORY */
                if (now.error != expected[i][j].error || now.inode != expected[i][j].inode ||
                    (now.flags ^ expected[i][j].flags) & (O_PATH | O_ACCMODE)) {
                    fprintf(stderr, "%s, %o: %s, not %s\n", paths[i], (unsigned)flags[j],
                            strerror(now.error), strerror(expected[i][j].error));
                    _exit(1);
                }
            }
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void read_file_whole_or_not(void **state)
{
    const struct world *world = *state;
    AUTO_FREE char *path = path_join(world->inside, "file");
    AUTO_FREE char *missing = path_join(world->inside, "nothing");
    AUTO(buf_done) struct buf buf = {0};
    struct err err = ERR_UNTOUCHED;

    assert_int_equal(fd_read_file(path, 7, &buf, &err), 0);
    assert_string_equal(buf.data, "content");
    assert_untouched(err);
    buf_done(&buf);
    assert_int_equal(fd_read_file(path, 6, &buf, &err), -1);
    assert_int_equal(err.code, ERR_LIMIT);
    assert_contains(err.msg, path);
    assert_null(buf.data);
    assert_int_equal(fd_read_file(missing, 6, &buf, &err), -1);
    assert_int_equal(err.sys, ENOENT);
    assert_contains(err.msg, missing);
    assert_int_equal(fd_read_file(world->inside, 6, &buf, &err), -1);
    assert_int_equal(err.sys, EISDIR);
}

/* A pipe without a writer would be waited for. */
static void only_regular_files_are_opened(void **state)
{
    const struct world *world = *state;
    const char *const others[] = {"fifo", "/dev/null", "/dev/zero"};
    struct err err;
    int fd;

    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_int_equal(fd_open_file(world->dir, others[i], 0, &err), -1);
        assert_int_equal(err.code, ERR_INVALID);
        assert_contains(err.msg, others[i]);
    }
    assert_int_equal(fd_open_file(world->dir, "link", O_NOFOLLOW, &err), -1);
    assert_int_equal(err.sys, ELOOP);
    fd = fd_open_file(world->dir, "link", 0, &err);
    assert_true(fd >= 0);
    assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
    close(fd);
}

/* Of those that the person named alone, a pipe is read to its end. */
static void given_pipe_is_read(void **state)
{
    AUTO(buf_done) struct buf buf = {0};
    struct err err;
    char name[32];
    int ends[2];

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(write(ends[1], "text", 4), 4);
    close(ends[1]);
    snprintf(name, sizeof name, "/dev/fd/%d", ends[0]);
    assert_int_equal(fd_read_file(name, 10, &buf, &err), -1);
    assert_int_equal(fd_read_given(name, 10, &buf, &err), 0);
    assert_string_equal(buf.data, "text");
    close(ends[0]);
}

/* procfs says size 0 and hands out pieces */
static void read_file_of_procfs(void **state)
{
    AUTO(buf_done) struct buf buf = {0};
    struct err err;

    assert_int_equal(fd_read_file("/proc/self/status", 100000, &buf, &err), 0);
    assert_contains(buf.data, "\nPid:\t");
}

/* A socket that takes a little at a time, with a reader that drains it. */
static void write_all_survives_short_writes(void **state)
{
    enum { SIZE = 1 << 20 };
    AUTO_FREE char *data = alloc_zero(SIZE, 1);
    AUTO(buf_done) struct buf got = {0};
    struct err err = ERR_UNTOUCHED;
    int ends[2];
    int small = 4096;
    pid_t pid;
    int status;

    for (size_t i = 0; i < SIZE; i++)
        data[i] = (char)(i * 2654435761u >> 24);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    assert_int_equal(setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &small, sizeof small), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        close(ends[0]);
        _exit(fd_write_all(ends[1], data, SIZE, &err) ? 1 : 0);
    }
    close(ends[1]);
    buf_init(&got, SIZE);
    assert_int_equal(buf_read_fd(&got, ends[0], &err), 0);
    close(ends[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(got.len, SIZE);
    assert_memory_equal(got.data, data, SIZE);
}

static void write_all_reports_the_end_of_the_reader(void **state)
{
    struct err err;
    int ends[2];

    signal(SIGPIPE, SIG_IGN);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    close(ends[0]);
    assert_int_equal(fd_write_all(ends[1], "x", 1, &err), -1);
    assert_int_equal(err.sys, EPIPE);
    assert_int_equal(fd_write_all(ends[1], NULL, 0, &err), 0);
    close(ends[1]);
}

static void sealed_memory_cannot_be_changed(void **state)
{
    const int seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
    struct err err = ERR_UNTOUCHED;
    AUTO_CLOSE int fd = fd_sealed_memory("plan", "0123456789", 10, &err);
    char text[16] = "";
    char link[40];

    assert_true(fd >= 0);
    assert_untouched(err);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    assert_int_equal(fcntl(fd, F_GET_SEALS), seals);
    assert_int_equal(read(fd, text, sizeof text), 10); /* offset is at the start */
    assert_string_equal(text, "0123456789");
    assert_int_equal(pwrite(fd, "x", 1, 0), -1);
    assert_int_equal(errno, EPERM);
    assert_int_equal(ftruncate(fd, 5), -1);
    assert_int_equal(ftruncate(fd, 50), -1);
    assert_int_equal(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4), -1);
    assert_ptr_equal(mmap(NULL, 10, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
    assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE), -1);

    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    AUTO_CLOSE int again = open(link, O_RDWR | O_CLOEXEC);
    assert_int_equal(pwrite(again, "x", 1, 0), -1); /* a second, writable way in is shut too */
}

static void sealed_memory_may_be_empty(void **state)
{
    struct err err;
    AUTO_CLOSE int fd = fd_sealed_memory("empty", NULL, 0, &err);
    struct stat st;

    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(st.st_size, 0);
}

static void nonblocking_on_and_off(void **state)
{
    struct err err = ERR_UNTOUCHED;
    int ends[2];
    char byte;

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(fd_set_nonblocking(ends[0], true, &err), 0);
    assert_int_equal(read(ends[0], &byte, 1), -1);
    assert_int_equal(errno, EAGAIN);
    assert_int_equal(fd_set_nonblocking(ends[0], true, &err), 0);
    assert_int_equal(fd_set_nonblocking(ends[0], false, &err), 0);
    assert_false(fcntl(ends[0], F_GETFL) & O_NONBLOCK);
    assert_untouched(err);
    close(ends[0]);
    close(ends[1]);
    assert_int_equal(fd_set_nonblocking(ends[0], true, &err), -1);
    assert_int_equal(err.sys, EBADF);
}

#define world_test(function) cmocka_unit_test_setup_teardown(function, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        world_test(kind_tells_without_following),
        world_test(kind_reports_what_is_not_mere_absence),
        world_test(strict_open_takes_plain_paths),
        world_test(strict_open_refuses_links_anywhere),
        world_test(strict_open_refuses_magic_links),
        world_test(without_openat2_the_same_is_opened),
        world_test(read_file_whole_or_not),
        world_test(only_regular_files_are_opened),
        world_test(given_pipe_is_read),
        world_test(read_file_of_procfs),
        world_test(write_all_survives_short_writes),
        world_test(write_all_reports_the_end_of_the_reader),
        world_test(sealed_memory_cannot_be_changed),
        world_test(sealed_memory_may_be_empty),
        world_test(nonblocking_on_and_off),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
