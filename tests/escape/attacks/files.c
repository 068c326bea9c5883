/* Attacks on files outside what the sandbox lets the command write: each is one system call of
 * those that change a file, a name or an attribute, on a path or a descriptor that is given. */
#include "attack.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

static const char mark[] = "owned by the attack\n";

static int put_mark(int fd, const char *what)
{
    return judge(write(fd, mark, sizeof mark - 1), what);
}

int overwrite(const char *path)
{
    int fd = open(path, O_WRONLY | O_TRUNC | O_NONBLOCK | O_CLOEXEC);
    return fd < 0 ? lost("open %s for writing", path) : put_mark(fd, "write");
}

int show(int fd, const char *what)
{
    char text[4096];
    ssize_t len = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (len < 0)
        return lost("%s", what);
    text[len] = '\0';
    return won("%s: %s", what, text);
}

static int run_write(int argc, char **argv)
{
    (void)argc;
    return overwrite(argv[0]);
}

static int run_read(int argc, char **argv)
{
    (void)argc;
    return show(open(argv[0], O_RDONLY | O_NONBLOCK | O_CLOEXEC), "read");
}

static int run_open(int argc, char **argv)
{
    (void)argc;
    return judge(open(argv[0], O_RDONLY | O_NONBLOCK | O_NOCTTY), "open");
}

static int run_create(int argc, char **argv)
{
    (void)argc;
    int fd = open(argv[0], O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    return fd < 0 ? lost("create %s", argv[0]) : put_mark(fd, "write");
}

/* A file that has no name until linkat(2) gives it one. */
static int run_tmpfile(int argc, char **argv)
{
    (void)argc;
    int fd = open(argv[0], O_TMPFILE | O_WRONLY | O_CLOEXEC, 0644);
    if (fd < 0)
        return lost("O_TMPFILE in %s", argv[0]);
    char self[64];
    snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    return judge(linkat(AT_FDCWD, self, AT_FDCWD, argv[1], AT_SYMLINK_FOLLOW), "linkat");
}

static int run_rename(int argc, char **argv)
{
    (void)argc;
    return judge(rename(argv[0], argv[1]), "rename");
}

static int run_exchange(int argc, char **argv)
{
    (void)argc;
    return judge(renameat2(AT_FDCWD, argv[0], AT_FDCWD, argv[1], RENAME_EXCHANGE), "exchange");
}

static int run_link_write(int argc, char **argv)
{
    (void)argc;
    if (link(argv[0], argv[1]) < 0)
        return lost("link");
    return overwrite(argv[1]);
}

static int run_link_read(int argc, char **argv)
{
    if (link(argv[0], argv[1]) < 0)
        return lost("link");
    return run_read(argc - 1, argv + 1);
}

static int run_unlink(int argc, char **argv)
{
    (void)argc;
    return judge(remove(argv[0]), "remove");
}

static int run_mkdir(int argc, char **argv)
{
    (void)argc;
    return judge(mkdir(argv[0], 0755), "mkdir");
}

static int run_symlink(int argc, char **argv)
{
    (void)argc;
    return judge(symlink(argv[0], argv[1]), "symlink");
}

static int run_truncate(int argc, char **argv)
{
    (void)argc;
    return judge(truncate(argv[0], 0), "truncate");
}

static int run_chmod(int argc, char **argv)
{
    (void)argc;
    return judge(chmod(argv[0], (mode_t)number(argv[1])), "chmod");
}

static int run_chown(int argc, char **argv)
{
    (void)argc;
    return judge(chown(argv[0], (uid_t)number(argv[1]), (gid_t)number(argv[1])), "chown");
}

static int run_utimes(int argc, char **argv)
{
    (void)argc;
    const struct timespec times[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    return judge(utimensat(AT_FDCWD, argv[0], times, 0), "utimensat");
}

static int run_setxattr(int argc, char **argv)
{
    (void)argc;
    return judge(setxattr(argv[0], "user.attack", mark, sizeof mark - 1, 0), "setxattr");
}

/* chattr works on a descriptor that is open for reading only. */
static int run_setflags(int argc, char **argv)
{
    (void)argc;
    int fd = open(argv[0], O_RDONLY | O_CLOEXEC);
    int flags = 0;
    if (fd < 0 || ioctl(fd, FS_IOC_GETFLAGS, &flags) < 0)
        return lost("reading the flags");
    flags ^= FS_NODUMP_FL;
    return judge(ioctl(fd, FS_IOC_SETFLAGS, &flags), "FS_IOC_SETFLAGS");
}

static int run_chdir_write(int argc, char **argv)
{
    (void)argc;
    if (chdir(argv[0]) < 0)
        return lost("chdir %s", argv[0]);
    return overwrite(argv[1]);
}

/* Keeps exchanging a folder and a symlink while it writes to a file below that name: a checker
 * that looks first and acts later is passed in one of the tries. */
static int run_swap_race(int argc, char **argv)
{
    (void)argc;
    char file[4096];
    snprintf(file, sizeof file, "%s/victim", argv[0]);
    pid_t swapper = fork();
    if (swapper == 0)
        for (;;)
            renameat2(AT_FDCWD, argv[0], AT_FDCWD, argv[1], RENAME_EXCHANGE);
    for (int i = 0; i < 3000; i++) {
        int fd = open(file, O_WRONLY | O_TRUNC | O_CREAT | O_CLOEXEC, 0644);
        if (fd >= 0 && write(fd, mark, sizeof mark - 1) > 0 && access(argv[2], F_OK) == 0)
            i = 3000;
        if (fd >= 0)
            close(fd);
    }
    kill(swapper, SIGKILL);
    return won("done; the harness looks at the victim");
}

static int run_fd_write(int argc, char **argv)
{
    (void)argc;
    return put_mark((int)number(argv[0]), "write");
}

static int run_fd_reopen(int argc, char **argv)
{
    (void)argc;
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%ld", number(argv[0]));
    return overwrite(path);
}

/* The calls that change a file by its descriptor, or by the name that /proc has for it; each of
 * them needs no descriptor for writing. */
static int run_fd_truncate(int argc, char **argv)
{
    (void)argc;
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%ld", number(argv[0]));
    return judge(truncate(path, 0), "truncate");
}

static int run_fd_chmod(int argc, char **argv)
{
    (void)argc;
    return judge(fchmod((int)number(argv[0]), 0777), "fchmod");
}

static int run_fd_utimes(int argc, char **argv)
{
    (void)argc;
    const struct timespec times[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    return judge(futimens((int)number(argv[0]), times), "futimens");
}

static int run_fd_setxattr(int argc, char **argv)
{
    (void)argc;
    return judge(fsetxattr((int)number(argv[0]), "user.attack", mark, sizeof mark - 1, 0),
                 "fsetxattr");
}

static int run_fd_create(int argc, char **argv)
{
    (void)argc;
    int fd = openat((int)number(argv[0]), argv[1], O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    return fd < 0 ? lost("openat below descriptor %s", argv[0]) : put_mark(fd, "write");
}

static int run_fd_chdir(int argc, char **argv)
{
    if (fchdir((int)number(argv[0])) < 0)
        return lost("fchdir");
    return run_create(argc - 1, argv + 1);
}

/* openat2(2) whose path is taken as if the folder were the root, or without crossing checks. */
static int run_openat2(int argc, char **argv)
{
    (void)argc;
    struct {
        uint64_t flags, mode, resolve;
    } how = {.flags = O_RDWR | O_CLOEXEC, .resolve = (uint64_t)number(argv[2])};
    int dir = open(argv[0], O_PATH | O_DIRECTORY | O_CLOEXEC);
    int fd = (int)syscall(437, dir, argv[1], &how, sizeof how);
    return fd < 0 ? lost("openat2") : put_mark(fd, "write");
}

/* The handle of a file, in hex: made outside, used inside. */
static int run_handle(int argc, char **argv)
{
    (void)argc;
    union {
        struct file_handle handle;
        unsigned char bytes[sizeof(struct file_handle) + MAX_HANDLE_SZ];
    } h = {.handle.handle_bytes = MAX_HANDLE_SZ};
    int mount;
    if (name_to_handle_at(AT_FDCWD, argv[0], &h.handle, &mount, 0) < 0)
        return lost("name_to_handle_at");
    printf("@handle ");
    for (size_t i = 0; i < sizeof h.handle + h.handle.handle_bytes; i++)
        printf("%02x", h.bytes[i]);
    printf("\n");
    return 0;
}

static int run_open_handle(int argc, char **argv)
{
    (void)argc;
    union {
        struct file_handle handle;
        unsigned char bytes[sizeof(struct file_handle) + MAX_HANDLE_SZ];
    } h = {0};
    for (size_t i = 0; i < sizeof h && argv[1][2 * i] != '\0'; i++)
        sscanf(argv[1] + 2 * i, "%2hhx", &h.bytes[i]);
    int dir = open(argv[0], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return show(open_by_handle_at(dir, &h.handle, O_RDONLY), "open_by_handle_at");
}

/* mknod PATH TYPE MAJOR MINOR: makes a device node and opens it. */
static int run_mknod(int argc, char **argv)
{
    (void)argc;
    mode_t type = argv[1][0] == 'b' ? S_IFBLK : S_IFCHR;
    dev_t device = makedev((unsigned)number(argv[2]), (unsigned)number(argv[3]));
    if (mknod(argv[0], type | 0600, device) < 0)
        return lost("mknod");
    return judge(open(argv[0], O_RDONLY | O_NONBLOCK | O_NOCTTY), "open the node");
}

static int run_map_write(int argc, char **argv)
{
    (void)argc;
    int fd = open(argv[0], O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return lost("open %s read-write", argv[0]);
    char *map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        return lost("mmap");
    map[0] = '!';
    return won("wrote through a mapping");
}

const struct attack file_attacks[] = {
    {"write", 1, run_write},
    {"read", 1, run_read},
    {"open", 1, run_open},
    {"create", 1, run_create},
    {"tmpfile", 2, run_tmpfile},
    {"rename", 2, run_rename},
    {"exchange", 2, run_exchange},
    {"link-write", 2, run_link_write},
    {"link-read", 2, run_link_read},
    {"unlink", 1, run_unlink},
    {"mkdir", 1, run_mkdir},
    {"symlink", 2, run_symlink},
    {"truncate", 1, run_truncate},
    {"chmod", 2, run_chmod},
    {"chown", 2, run_chown},
    {"utimes", 1, run_utimes},
    {"setxattr", 1, run_setxattr},
    {"setflags", 1, run_setflags},
    {"chdir-write", 2, run_chdir_write},
    {"swap-race", 3, run_swap_race},
    {"fd-write", 1, run_fd_write},
    {"fd-reopen", 1, run_fd_reopen},
    {"fd-truncate", 1, run_fd_truncate},
    {"fd-chmod", 1, run_fd_chmod},
    {"fd-utimes", 1, run_fd_utimes},
    {"fd-setxattr", 1, run_fd_setxattr},
    {"fd-create", 2, run_fd_create},
    {"fd-chdir", 2, run_fd_chdir},
    {"openat2", 3, run_openat2},
    {"handle", 1, run_handle},
    {"open-handle", 2, run_open_handle},
    {"mknod", 4, run_mknod},
    {"map-write", 1, run_map_write},
    {NULL, 0, NULL},
};
