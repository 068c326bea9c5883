/* Every call that makes a name, with every spelling of its path: does the name come to be?
 *
 *     names ROOT NAME...      ROOT/sub/deep is there and may be written to
 *
 * One line for each pair, "@row CALL/SPELLING won|lost NAME", the names in turn. Each plays in a
 * process of its own, which may change its directory and its descriptors, or be killed. */
#include "names.h"
#include "attack.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

struct spelled {
    const char *root, *name;
    int dir;
    char path[PATH_MAX];
};

enum spelling_kind {
    ANY_CALL,
    WITH_DIR,   /* for calls that take a descriptor */
    FOLLOWER,   /* for those that follow a symlink at the end */
    OF_FOLDERS, /* for those that make a folder */
};

struct spelling {
    const char *name;
    enum spelling_kind kind;
    void (*spell)(struct spelled *it);
};

__attribute__((format(printf, 2, 3))) static void put(struct spelled *it, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(it->path, sizeof it->path, fmt, args);
    va_end(args);
}

static int open_dir(const char *path, int flags)
{
    int fd = open(path, O_DIRECTORY | flags);
    if (fd < 0)
        _exit(2);
    return fd;
}

static void enter(const char *path)
{
    if (chdir(path) < 0)
        _exit(2);
}

static const char *below(const struct spelled *it, const char *what)
{
    static char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", it->root, what);
    return path;
}

static void spell_absolute(struct spelled *it)
{
    put(it, "%s/%s", it->root, it->name);
}

static void spell_relative(struct spelled *it)
{
    enter(it->root);
    put(it, "%s", it->name);
}

static void spell_dot(struct spelled *it)
{
    enter(it->root);
    put(it, "./././%s", it->name);
}

static void spell_slashes(struct spelled *it)
{
    put(it, "/%s//.////%s", it->root, it->name);
}

static void spell_dot_dot(struct spelled *it)
{
    put(it, "%s/sub/deep/../../%s", it->root, it->name);
}

static void spell_from_below(struct spelled *it)
{
    enter(below(it, "sub/deep"));
    put(it, "../../%s", it->name);
}

static void spell_out_and_in(struct spelled *it)
{
    enter(it->root);
    put(it, "../%s/%s", strrchr(it->root, '/') + 1, it->name);
}

static void spell_above_root(struct spelled *it)
{
    put(it, "/../../..%s/%s", it->root, it->name);
}

static void spell_slash_at_end(struct spelled *it)
{
    put(it, "%s/%s/", it->root, it->name);
}

static void spell_slashes_at_end(struct spelled *it)
{
    enter(it->root);
    put(it, "%s////", it->name);
}

static void spell_by_link(struct spelled *it)
{
    put(it, "%s/sub/up/%s", it->root, it->name);
}

static void spell_by_absolute_link(struct spelled *it)
{
    put(it, "%s/sub/absolute/%s", it->root, it->name);
}

static void spell_by_link_of_proc(struct spelled *it)
{
    enter(it->root);
    put(it, "%s/sub/cwd/%s", it->root, it->name);
}

static void spell_by_links(struct spelled *it)
{
    size_t len;
    put(it, "%s", it->root);
    for (int i = 0; i < 15; i++) {
        len = strlen(it->path);
        snprintf(it->path + len, sizeof it->path - len, "/sub/up");
    }
    len = strlen(it->path);
    snprintf(it->path + len, sizeof it->path - len, "/%s", it->name);
}

static void spell_long(struct spelled *it)
{
    size_t len;
    put(it, "%s", it->root);
    len = strlen(it->path);
    while (len + strlen(it->name) + 4 < sizeof it->path) {
        memcpy(it->path + len, "/.", 3);
        len += 2;
    }
    snprintf(it->path + len, sizeof it->path - len, "/%s", it->name);
}

/* A dangling link under another name: what opens it makes what it leads to. */
static void link_to(const char *target, const char *link)
{
    if (symlink(target, link) < 0)
        _exit(2);
}

static void spell_dangling(struct spelled *it)
{
    char target[PATH_MAX];
    snprintf(target, sizeof target, "../%.200s", it->name);
    link_to(target, below(it, "sub/dangling"));
    put(it, "%s/sub/dangling", it->root);
}

static void spell_dangling_absolute(struct spelled *it)
{
    char target[PATH_MAX];
    snprintf(target, sizeof target, "%s", below(it, it->name));
    link_to(target, below(it, "sub/dangling"));
    put(it, "%s/sub/dangling", it->root);
}

static void spell_dangling_chain(struct spelled *it)
{
    char link[64], target[PATH_MAX];
    snprintf(target, sizeof target, "../%.200s", it->name);
    link_to(target, below(it, "sub/dangling"));
    snprintf(target, sizeof target, "dangling");
    for (int i = 0; i < 8; i++) {
        snprintf(link, sizeof link, "sub/dangling%d", i);
        link_to(target, below(it, link));
        snprintf(target, sizeof target, "dangling%d", i);
    }
    put(it, "%s/sub/dangling7", it->root);
}

static void spell_self_cwd(struct spelled *it)
{
    enter(it->root);
    put(it, "/proc/self/cwd/%s", it->name);
}

static void spell_self_cwd_below(struct spelled *it)
{
    enter(below(it, "sub"));
    put(it, "/proc/self/cwd/../%s", it->name);
}

static void spell_thread_cwd(struct spelled *it)
{
    enter(it->root);
    put(it, "/proc/thread-self/cwd/%s", it->name);
}

static void spell_pid_cwd(struct spelled *it)
{
    enter(it->root);
    put(it, "/proc/%d/cwd/%s", (int)getpid(), it->name);
}

static void spell_task_cwd(struct spelled *it)
{
    enter(it->root);
    put(it, "/proc/self/task/%d/cwd/%s", (int)getpid(), it->name);
}

/* By a process that waits there, with a directory of its own. */
static void spell_other_cwd(struct spelled *it)
{
    int gate[2];
    pid_t child;
    char byte = 0;
    if (pipe(gate) < 0)
        _exit(2);
    child = fork();
    if (child == 0) {
        enter(it->root);
        if (write(gate[1], &byte, 1) != 1)
            _exit(2);
        alarm(5);
        for (;;)
            pause();
    }
    if (read(gate[0], &byte, 1) != 1)
        _exit(2);
    put(it, "/proc/%d/cwd/%s", (int)child, it->name);
}

static void spell_self_root(struct spelled *it)
{
    put(it, "/proc/self/root%s/%s", it->root, it->name);
}

static void spell_pid_root(struct spelled *it)
{
    put(it, "/proc/%d/root%s/%s", (int)getpid(), it->root, it->name);
}

static void spell_thread_root(struct spelled *it)
{
    put(it, "/proc/thread-self/root/proc/self/root%s/%s", it->root, it->name);
}

static void spell_self_fd(struct spelled *it)
{
    put(it, "/proc/self/fd/%d/%s", open_dir(it->root, 0), it->name);
}

static void spell_self_fd_below(struct spelled *it)
{
    put(it, "/proc/self/fd/%d/../%s", open_dir(below(it, "sub"), 0), it->name);
}

static void spell_pid_fd(struct spelled *it)
{
    put(it, "/proc/%d/fd/%d/%s", (int)getpid(), open_dir(it->root, O_PATH), it->name);
}

static void spell_dev_fd(struct spelled *it)
{
    put(it, "/dev/fd/%d/%s", open_dir(it->root, 0), it->name);
}

static void spell_proc_dir(struct spelled *it)
{
    int root = open_dir(it->root, O_PATH);
    it->dir = open_dir("/proc/self/fd", 0);
    put(it, "%d/%s", root, it->name);
}

static void spell_dir(struct spelled *it)
{
    it->dir = open_dir(it->root, 0);
    put(it, "%s", it->name);
}

static void spell_path_dir(struct spelled *it)
{
    it->dir = open_dir(it->root, O_PATH);
    put(it, "./%s", it->name);
}

static void spell_dir_below(struct spelled *it)
{
    it->dir = open_dir(below(it, "sub"), 0);
    put(it, "../%s", it->name);
}

static void spell_dir_above(struct spelled *it)
{
    it->dir = open_dir("/", O_PATH);
    put(it, "%s/%s", it->root + 1, it->name);
}

static void spell_high_dir(struct spelled *it)
{
    it->dir = dup2(open_dir(it->root, 0), 200);
    put(it, "%s", it->name);
}

static void spell_dir_by_link(struct spelled *it)
{
    it->dir = open_dir(below(it, "sub/up"), 0);
    put(it, "%s", it->name);
}

static void spell_dir_by_proc(struct spelled *it)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", open_dir(it->root, O_PATH));
    it->dir = open_dir(path, O_PATH);
    put(it, "%s", it->name);
}

static void spell_unused_dir(struct spelled *it)
{
    it->dir = open_dir(below(it, "sub"), 0);
    put(it, "%s/%s", it->root, it->name);
}

static void spell_wrong_dir(struct spelled *it)
{
    it->dir = 12345;
    put(it, "%s/%s", it->root, it->name);
}

/* A directory that comes over a socket. */
static void spell_received_dir(struct spelled *it)
{
    int pair[2], fd = open_dir(it->root, O_PATH);
    char byte = 0, room[CMSG_SPACE(sizeof fd)] = {0};
    struct iovec part = {.iov_base = &byte, .iov_len = 1};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0)
        _exit(2);
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    *header = (struct cmsghdr){
        .cmsg_len = CMSG_LEN(sizeof fd), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    memcpy(CMSG_DATA(header), &fd, sizeof fd);
    if (sendmsg(pair[0], &message, 0) != 1)
        _exit(2);
    close(fd);
    if (recvmsg(pair[1], &message, 0) != 1)
        _exit(2);
    memcpy(&it->dir, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
    put(it, "%s", it->name);
}

static void spell_fchdir(struct spelled *it)
{
    if (fchdir(open_dir(it->root, O_PATH)) < 0)
        _exit(2);
    put(it, "%s", it->name);
}

/* A directory of this task's own, which the process that it came from does not share. */
static void spell_own_fs(struct spelled *it)
{
    enter(below(it, "sub"));
    unshare(CLONE_FS | CLONE_FILES);
    enter("..");
    put(it, "%s", it->name);
}

static void spell_upper(struct spelled *it)
{
    static char name[64];
    snprintf(name, sizeof name, "%s", it->name);
    for (char *at = name; *at; at++)
        *at = (char)(*at >= 'a' && *at <= 'z' ? *at - 32 : *at);
    it->name = name;
    put(it, "%s/%s", it->root, it->name);
}

static void spell_mixed(struct spelled *it)
{
    static char name[64];
    snprintf(name, sizeof name, "%s", it->name);
    name[2] = (char)(name[2] - 32);
    it->name = name;
    enter(it->root);
    put(it, "%s", it->name);
}

static const struct spelling spellings[] = {
    {"absolute", ANY_CALL, spell_absolute},
    {"relative", ANY_CALL, spell_relative},
    {"dot", ANY_CALL, spell_dot},
    {"slashes", ANY_CALL, spell_slashes},
    {"dot-dot", ANY_CALL, spell_dot_dot},
    {"from-below", ANY_CALL, spell_from_below},
    {"out-and-in", ANY_CALL, spell_out_and_in},
    {"above-root", ANY_CALL, spell_above_root},
    {"slash-at-end", OF_FOLDERS, spell_slash_at_end},
    {"slashes-at-end", OF_FOLDERS, spell_slashes_at_end},
    {"link", ANY_CALL, spell_by_link},
    {"absolute-link", ANY_CALL, spell_by_absolute_link},
    {"link-of-proc", ANY_CALL, spell_by_link_of_proc},
    {"links", WITH_DIR, spell_by_links},
    {"long", WITH_DIR, spell_long},
    {"dangling", FOLLOWER, spell_dangling},
    {"dangling-absolute", FOLLOWER, spell_dangling_absolute},
    {"dangling-chain", FOLLOWER, spell_dangling_chain},
    {"self-cwd", ANY_CALL, spell_self_cwd},
    {"self-cwd-below", ANY_CALL, spell_self_cwd_below},
    {"thread-cwd", ANY_CALL, spell_thread_cwd},
    {"pid-cwd", ANY_CALL, spell_pid_cwd},
    {"task-cwd", ANY_CALL, spell_task_cwd},
    {"other-cwd", ANY_CALL, spell_other_cwd},
    {"self-root", ANY_CALL, spell_self_root},
    {"pid-root", ANY_CALL, spell_pid_root},
    {"thread-root", ANY_CALL, spell_thread_root},
    {"self-fd", ANY_CALL, spell_self_fd},
    {"self-fd-below", ANY_CALL, spell_self_fd_below},
    {"pid-fd", ANY_CALL, spell_pid_fd},
    {"dev-fd", ANY_CALL, spell_dev_fd},
    {"proc-dir", WITH_DIR, spell_proc_dir},
    {"dir", WITH_DIR, spell_dir},
    {"path-dir", WITH_DIR, spell_path_dir},
    {"dir-below", WITH_DIR, spell_dir_below},
    {"dir-above", WITH_DIR, spell_dir_above},
    {"high-dir", WITH_DIR, spell_high_dir},
    {"dir-by-link", WITH_DIR, spell_dir_by_link},
    {"dir-by-proc", WITH_DIR, spell_dir_by_proc},
    {"unused-dir", WITH_DIR, spell_unused_dir},
    {"wrong-dir", WITH_DIR, spell_wrong_dir},
    {"received-dir", WITH_DIR, spell_received_dir},
    {"fchdir", ANY_CALL, spell_fchdir},
    {"own-fs", ANY_CALL, spell_own_fs},
    {"upper", ANY_CALL, spell_upper},
    {"mixed", ANY_CALL, spell_mixed},
};

static int applies(const struct maker *maker, const struct spelling *spelling)
{
    switch (spelling->kind) {
    case WITH_DIR:
        return maker->has_dir;
    case FOLLOWER:
        return maker->is_follower;
    case OF_FOLDERS:
        return maker->is_folder;
    default:
        return 1;
    }
}

/* In a process of its own, whose exit status tells: 0 when the name is there afterwards. */
static int play_row(const struct maker *maker, const struct spelling *spelling, const char *root,
                    const char *name)
{
    struct spelled it = {.root = root, .name = name, .dir = AT_FDCWD};
    char source[PATH_MAX], target[PATH_MAX];
    struct stat st;
    setpgid(0, 0);
    snprintf(source, sizeof source, "%s/sub/deep/source", root);
    maker_prepare(maker, source);
    spelling->spell(&it);
    maker->make(it.dir, it.path, source);
    snprintf(target, sizeof target, "%s/%s", root, it.name);
    if (lstat(target, &st) < 0)
        return 1;
    remove_name(target);
    return 0;
}

static void clear(const char *root)
{
    char path[PATH_MAX];
    static const char *const names[] = {"sub/deep/source", "sub/dangling"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", root, names[i]);
        remove_name(path);
    }
    for (int i = 0; i < 8; i++) {
        snprintf(path, sizeof path, "%s/sub/dangling%d", root, i);
        unlink(path);
    }
}

static int run_names(int argc, char **argv)
{
    const char *root = argv[0];
    int row = 0;
    for (const struct maker *maker = makers; maker->name != NULL; maker++) {
        for (size_t i = 0; i < sizeof spellings / sizeof spellings[0]; i++) {
            const struct spelling *spelling = &spellings[i];
            const char *name = argv[1 + row % (argc - 1)];
            int status = 0;
            if (!applies(maker, spelling))
                continue;
            row++;
            fflush(stdout);
            pid_t child = fork();
            if (child == 0)
                _exit(play_row(maker, spelling, root, name));
            waitpid(child, &status, 0);
            kill(-child, SIGKILL);
            clear(root);
            note("row %s/%s %s %s", maker->name, spelling->name,
                 WIFEXITED(status) && WEXITSTATUS(status) == 2 ? "broken"
                 : status == 0                                 ? "won"
                                                               : "lost",
                 name);
        }
    }
    return 0;
}

const struct attack name_attacks[] = {
    {"names", 2, run_names},
    {NULL, 0, NULL},
};
