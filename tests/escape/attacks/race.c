/* Races with the guard: while it judges a call, somebody changes what the call is about. Each tries
 * COUNT times, or until it wins; every race succeeds bare in a few tries.
 *
 * What is changed is shared with the caller: memory (HOW = "thread", "process" by CLONE_VM, "vfork"
 * by a child that borrows everything), descriptors, the current directory, or names in a directory. */
#include "attack.h"
#include "names.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TEXT_MAX = 1024, STACK = 1 << 16 };

/* Two texts that take turns in one place. Only what differs is written, so that a reader gets one
 * of them, mostly. */
struct flip {
    volatile char *at;
    size_t first, len;
    char texts[2][TEXT_MAX];
};

static struct flip flip;

static void flip_init(struct flip *ret, const void *a, const void *b, size_t len)
{
    if (len > TEXT_MAX)
        exit(2);
    ret->at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    memcpy(ret->texts[0], a, len);
    memcpy(ret->texts[1], b, len);
    memcpy((char *)ret->at, a, len);
    while (ret->first < len && ret->texts[0][ret->first] == ret->texts[1][ret->first])
        ret->first++;
    ret->len = len - ret->first;
}

static void flip_texts(struct flip *ret, const char *a, const char *b)
{
    char wide[2][TEXT_MAX] = {"", ""};
    size_t len = strlen(a) > strlen(b) ? strlen(a) : strlen(b);
    snprintf(wide[0], sizeof wide[0], "%s", a);
    snprintf(wide[1], sizeof wide[1], "%s", b);
    flip_init(ret, wide[0], wide[1], len + 1);
}

__attribute__((noreturn)) static void flip_for_ever(void)
{
    for (;;)
        for (int i = 0; i < 2; i++) {
            memcpy((char *)flip.at + flip.first, flip.texts[i] + flip.first, flip.len);
            for (volatile int pause = 0; pause < 200; pause = pause + 1)
                ;
        }
}

/* --- those who change: each never returns, and dies with us --- */

__attribute__((noreturn)) static void *flip_thread(void *arg)
{
    (void)arg;
    flip_for_ever();
}

__attribute__((noreturn)) static int flip_process(void *arg)
{
    (void)arg;
    flip_for_ever();
}

static char dirs[2][PATH_MAX];
static int dir_fds[2], shared_fd = 100;

__attribute__((noreturn)) static int change_directory(void *arg)
{
    (void)arg;
    for (;;)
        for (int i = 0; i < 2; i++)
            if (fchdir(dir_fds[i]) < 0)
                _exit(2);
}

__attribute__((noreturn)) static int change_descriptor(void *arg)
{
    (void)arg;
    for (;;)
        for (int i = 0; i < 2; i++)
            dup2(dir_fds[i], shared_fd);
}

__attribute__((noreturn)) static int exchange_names(void *arg)
{
    (void)arg;
    for (;;)
        syscall(SYS_renameat2, AT_FDCWD, dirs[0], AT_FDCWD, dirs[1], RENAME_EXCHANGE);
}

__attribute__((noreturn)) static int move_there_and_back(void *arg)
{
    (void)arg;
    for (;;) {
        rename(dirs[0], dirs[1]);
        rename(dirs[1], dirs[0]);
    }
}

struct start {
    int (*function)(void *);
    void *arg;
};

static int started(void *arg)
{
    const struct start *start = arg;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    return start->function(start->arg);
}

/* The one who changes, as a process that shares what `flags` say; it dies with us. */
static pid_t start_process(int (*function)(void *), void *arg, int flags)
{
    enum { MAX = 4 };
    static char stacks[MAX][STACK] __attribute__((aligned(16)));
    static struct start starts[MAX];
    static int used;
    starts[used] = (struct start){function, arg};
    pid_t pid = clone(started, stacks[used] + STACK, flags | SIGCHLD, &starts[used]);
    used++;
    if (pid < 0) {
        perror("attacks: clone");
        exit(2);
    }
    return pid;
}

static pid_t start_flipping(const char *how)
{
    pthread_t thread;
    if (strcmp(how, "process") == 0)
        return start_process(flip_process, NULL, CLONE_VM);
    if (pthread_create(&thread, NULL, flip_thread, NULL) != 0)
        exit(2);
    return 0;
}

static void stop(pid_t pid)
{
    if (pid == 0)
        return;
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

/* --- names --- */

struct tries {
    const struct maker *maker;
    int dir;
    const char *path;
    const char *source;
    const char *mark;     /* the name that must not come to be */
    const char *harmless; /* what the other text makes; removed again */
    long count;
    long done, made; /* tries, and how many of them made something */
};

static int exists(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

static int play_tries(struct tries *tries)
{
    for (tries->done = 0; tries->done < tries->count; tries->done++) {
        maker_prepare(tries->maker, tries->source);
        if (tries->maker->make(tries->dir, tries->path, tries->source) < 0)
            continue;
        tries->made++;
        if (exists(tries->mark))
            return 1;
        remove_name(tries->harmless);
    }
    return exists(tries->mark);
}

static int tell(const struct tries *tries, int is_won)
{
    note("tries %ld made %ld", tries->done, tries->made);
    errno = EACCES;
    return is_won ? won("%s is there", tries->mark) : lost("%s", tries->mark);
}

static void *tries_thread(void *arg)
{
    return (void *)(intptr_t)play_tries(arg);
}

/* race-text HOW CALL SOURCE A B COUNT: the text of the path, A <-> B; B must not come to be. The
 * caller is no leading thread, or a child that has borrowed the memory. */
static int run_text(int argc, char **argv)
{
    (void)argc;
    struct tries tries = {
        .maker = maker_find(argv[1]),
        .dir = AT_FDCWD,
        .source = argv[2],
        .harmless = argv[3],
        .mark = argv[4],
        .count = number(argv[5]),
    };
    static volatile int is_won;
    void *result;
    pthread_t thread;
    flip_texts(&flip, argv[3], argv[4]);
    tries.path = (const char *)flip.at;
    pid_t other = start_flipping(argv[0]);
    if (strcmp(argv[0], "vfork") == 0) {
        pid_t child = vfork();
        if (child == 0) {
            is_won = play_tries(&tries);
            _exit(0);
        }
        waitpid(child, NULL, 0);
    } else {
        if (pthread_create(&thread, NULL, tries_thread, &tries) != 0)
            return 2;
        pthread_join(thread, &result);
        is_won = result != NULL;
    }
    stop(other);
    return tell(&tries, is_won);
}

/* race-source CALL A B TO COUNT: the text of what is renamed or linked. B is not to be had. */
static int run_source(int argc, char **argv)
{
    (void)argc;
    const struct maker *maker = maker_find(argv[0]);
    struct tries tries = {.maker = maker, .mark = argv[2], .count = number(argv[4])};
    struct stat before = {0}, there;
    flip_texts(&flip, argv[1], argv[2]);
    if (stat(argv[2], &before) < 0)
        return lost("%s", argv[2]);
    pid_t other = start_process(flip_process, NULL, CLONE_VM);
    for (tries.done = 0; tries.done < tries.count; tries.done++) {
        maker_prepare(maker, argv[1]);
        if (maker->make(AT_FDCWD, argv[3], (const char *)flip.at) < 0)
            continue;
        tries.made++;
        if (stat(argv[3], &there) == 0 && there.st_ino == before.st_ino)
            break;
        remove_name(argv[3]);
    }
    int is_won = stat(argv[3], &there) == 0 && there.st_ino == before.st_ino;
    stop(other);
    return tell(&tries, is_won);
}

static void open_dirs(const char *a, const char *b)
{
    snprintf(dirs[0], sizeof dirs[0], "%s", a);
    snprintf(dirs[1], sizeof dirs[1], "%s", b);
    for (int i = 0; i < 2; i++)
        dir_fds[i] = open(dirs[i], O_PATH | O_DIRECTORY);
}

/* race-dir HOW CALL SOURCE A B NAME COUNT: the directory of the caller is A and B in turn; HOW is
 * "cwd", "fd", "proc" (by /proc/self/fd) or "proc-cwd". B/NAME must not come to be. */
static int run_dir(int argc, char **argv)
{
    (void)argc;
    char mark[PATH_MAX], harmless[PATH_MAX], path[64];
    int is_cwd = strstr(argv[0], "cwd") != NULL;
    open_dirs(argv[3], argv[4]);
    snprintf(harmless, sizeof harmless, "%s/%s", argv[3], argv[5]);
    snprintf(mark, sizeof mark, "%s/%s", argv[4], argv[5]);
    if (strcmp(argv[0], "proc") == 0)
        snprintf(path, sizeof path, "/proc/self/fd/%d/%.32s", shared_fd, argv[5]);
    else if (strcmp(argv[0], "proc-cwd") == 0)
        snprintf(path, sizeof path, "/proc/self/cwd/%.32s", argv[5]);
    else
        snprintf(path, sizeof path, "%.32s", argv[5]);
    if (fchdir(dir_fds[0]) < 0 || dup2(dir_fds[0], shared_fd) < 0)
        return lost("%s", dirs[0]);
    struct tries tries = {
        .maker = maker_find(argv[1]),
        .dir = strcmp(argv[0], "fd") == 0 ? shared_fd : AT_FDCWD,
        .path = path,
        .source = argv[2],
        .harmless = harmless,
        .mark = mark,
        .count = number(argv[6]),
    };
    pid_t other = is_cwd ? start_process(change_directory, NULL, CLONE_VM | CLONE_FS)
                         : start_process(change_descriptor, NULL, CLONE_VM | CLONE_FILES);
    int is_won = play_tries(&tries);
    stop(other);
    return tell(&tries, is_won);
}

/* race-swap CALL SOURCE FOLDER LINK NAME MARK COUNT: a folder and a link take turns; the path goes
 * through them. */
static int run_swap(int argc, char **argv)
{
    (void)argc;
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", argv[2], argv[4]);
    open_dirs(argv[2], argv[3]);
    struct tries tries = {
        .maker = maker_find(argv[0]),
        .dir = AT_FDCWD,
        .path = path,
        .source = argv[1],
        .harmless = path,
        .mark = argv[5],
        .count = number(argv[6]),
    };
    pid_t other = start_process(exchange_names, NULL, CLONE_VM);
    int is_won = play_tries(&tries);
    stop(other);
    return tell(&tries, is_won);
}

/* race-move CALL SOURCE A B PATH MARK COUNT: a folder is A and B in turn; PATH starts in it, and
 * leads up. */
static int run_move(int argc, char **argv)
{
    (void)argc;
    struct tries tries = {
        .maker = maker_find(argv[0]),
        .source = argv[1],
        .path = argv[4],
        .mark = argv[5],
        .count = number(argv[6]),
    };
    char harmless[PATH_MAX];
    open_dirs(argv[2], argv[2]);
    snprintf(dirs[1], sizeof dirs[1], "%s", argv[3]);
    snprintf(harmless, sizeof harmless, "/proc/self/fd/%d/%s", dir_fds[0], argv[4]);
    tries.dir = dir_fds[0];
    tries.harmless = harmless;
    pid_t other = start_process(move_there_and_back, NULL, CLONE_VM);
    int is_won = play_tries(&tries);
    stop(other);
    return tell(&tries, is_won);
}

/* --- what is there --- */

/* race-write FLAGS A B COUNT: opens a path, A <-> B, and writes; the harness looks at B. */
static int run_write(int argc, char **argv)
{
    (void)argc;
    static const char mark[] = "owned by the attack\n";
    long count = number(argv[3]), opened = 0, done;
    int flags = (int)number(argv[0]);
    struct stat before = {0}, now;
    flip_texts(&flip, argv[1], argv[2]);
    stat(argv[2], &before);
    pid_t other = start_process(flip_process, NULL, CLONE_VM);
    for (done = 0; done < count; done++) {
        int fd = open((const char *)flip.at, flags | O_CLOEXEC | O_NONBLOCK, 0644);
        if (fd < 0)
            continue;
        opened++;
        if (fstat(fd, &now) == 0 && write(fd, mark, sizeof mark - 1) > 0 &&
            now.st_ino == before.st_ino && now.st_dev == before.st_dev) {
            close(fd);
            break;
        }
        close(fd);
        if (before.st_ino == 0 && exists(argv[2]))
            break;
    }
    stop(other);
    note("tries %ld made %ld", done, opened);
    return done < count ? won("opened %s", argv[2]) : lost("%s", argv[2]);
}

/* race-descriptor A B COUNT: a descriptor is A's and B's in turn, and the mode of what it is open for is
 * set; B's must stay. */
static int run_descriptor(int argc, char **argv)
{
    (void)argc;
    long count = number(argv[2]), changed = 0, done;
    struct stat before = {0}, now;
    for (int i = 0; i < 2; i++)
        dir_fds[i] = open(argv[i], O_RDONLY);
    if (dup2(dir_fds[0], shared_fd) < 0 || stat(argv[1], &before) < 0)
        return lost("%s", argv[1]);
    pid_t other = start_process(change_descriptor, NULL, CLONE_VM | CLONE_FILES);
    for (done = 0; done < count; done++) {
        changed += fchmod(shared_fd, done & 1 ? 0600 : 0640) == 0;
        if (stat(argv[1], &now) == 0 && now.st_mode != before.st_mode)
            break;
    }
    stop(other);
    note("tries %ld made %ld", done, changed);
    return done < count ? won("mode of %s", argv[1]) : lost("%s", argv[1]);
}

/* race-read A B COUNT: the same for what may not be read. */
static int run_read(int argc, char **argv)
{
    (void)argc;
    long count = number(argv[2]), done;
    char text[64] = "";
    flip_texts(&flip, argv[0], argv[1]);
    pid_t other = start_process(flip_process, NULL, CLONE_VM);
    for (done = 0; done < count; done++) {
        int fd = open((const char *)flip.at, O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0644);
        if (fd < 0)
            fd = open((const char *)flip.at, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (fd < 0)
            continue;
        ssize_t len = read(fd, text, sizeof text - 1);
        text[len > 0 ? len : 0] = '\0';
        close(fd);
        if (strstr(text, "secret") != NULL)
            break;
    }
    stop(other);
    note("tries %ld", done);
    return done < count ? won("read: %s", text) : lost("%s", argv[1]);
}

/* race-how A B COUNT: openat2's flags in memory: reading <-> making. B must not come to be. */
static int run_how(int argc, char **argv)
{
    (void)argc;
    struct how {
        uint64_t flags, mode, resolve;
    };
    const struct how a = {.flags = O_RDONLY}, b = {.flags = O_CREAT | O_WRONLY, .mode = 0644};
    struct tries tries = {.mark = argv[0], .count = number(argv[1])};
    flip_init(&flip, &a, &b, sizeof a);
    pid_t other = start_process(flip_process, NULL, CLONE_VM);
    for (; tries.done < tries.count && !exists(argv[0]); tries.done++) {
        long fd = syscall(437, AT_FDCWD, argv[0], flip.at, sizeof a);
        if (fd >= 0)
            close((int)fd);
    }
    int is_won = exists(argv[0]);
    stop(other);
    return tell(&tries, is_won);
}

/* race-exec A B COUNT: executes a path, A <-> B, until one of them takes our place. */
static int run_exec(int argc, char **argv)
{
    (void)argc;
    long count = number(argv[2]);
    char *words[] = {argv[1], NULL};
    flip_texts(&flip, argv[0], argv[1]);
    start_flipping("thread"); /* which an exec ends */
    for (long i = 0; i < count; i++)
        execv((const char *)flip.at, words);
    note("tries %ld", count);
    return lost("execv");
}

/* --- sockets --- */

static socklen_t address(const char *text, struct sockaddr_un *ret)
{
    size_t len = strlen(text);
    memset(ret, 0, sizeof *ret);
    ret->sun_family = AF_UNIX;
    memcpy(ret->sun_path, text, len < sizeof ret->sun_path ? len : sizeof ret->sun_path - 1);
    if (text[0] == '@')
        ret->sun_path[0] = '\0';
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len + (text[0] != '@'));
}

static int socket_of(int type)
{
    type |= SOCK_CLOEXEC | SOCK_NONBLOCK;
    int pair[2], fd = socket(AF_UNIX, type, 0);
    if (fd < 0 && socketpair(AF_UNIX, type, 0, pair) == 0) {
        fd = pair[0];
        close(pair[1]);
    }
    return fd;
}

static long reach(const char *call, int fd, const void *to, socklen_t len)
{
    static const char word[] = "attack";
    struct iovec part = {.iov_base = (char *)word, .iov_len = sizeof word - 1};
    if (strcmp(call, "sendto") == 0)
        return sendto(fd, word, sizeof word - 1, MSG_NOSIGNAL, to, len);
    if (strcmp(call, "connect") == 0)
        return connect(fd, to, len) < 0 ? -1 : 0;
    struct msghdr message = {
        .msg_name = (void *)(uintptr_t)to, .msg_namelen = len, .msg_iov = &part, .msg_iovlen = 1};
    struct mmsghdr many = {.msg_hdr = message};
    if (strcmp(call, "sendmmsg") == 0)
        return sendmmsg(fd, &many, 1, MSG_NOSIGNAL);
    return sendmsg(fd, &message, MSG_NOSIGNAL);
}

/* Whether the socket has reached the service: it says so, or (a datagram) has its word already. */
static int has_reached(const char *call, int fd, const char *service)
{
    struct sockaddr_un peer = {0};
    socklen_t len = sizeof peer;
    if (strcmp(call, "connect") != 0)
        return 0;
    if (getpeername(fd, (struct sockaddr *)&peer, &len) < 0)
        return 0;
    if (service[0] == '@' ? memcmp(peer.sun_path + 1, service + 1, strlen(service) - 1) != 0
                          : strcmp(peer.sun_path, service) != 0)
        return 0;
    return send(fd, "attack", 6, MSG_NOSIGNAL) == 6;
}

/* A service of our own at A, where there is none yet. */
static int serve(int type, const char *at)
{
    struct sockaddr_un here;
    socklen_t len = address(at, &here);
    int fd = socket_of(type);
    if (bind(fd, (const struct sockaddr *)&here, len) == 0 && type != SOCK_DGRAM)
        listen(fd, 64);
    return fd;
}

static void drain(int service)
{
    char word[16];
    int fd;
    while ((fd = accept(service, NULL, NULL)) >= 0)
        close(fd);
    while (recv(service, word, sizeof word, MSG_DONTWAIT) > 0)
        ;
}

/* race-socket CALL TYPE A B COUNT: the address, A <-> B ("@name": abstract); the service at B must
 * not be reached. */
static int run_socket(int argc, char **argv)
{
    (void)argc;
    struct sockaddr_un a, b;
    int type = (int)number(argv[1]);
    socklen_t len = address(argv[2], &a), other_len = address(argv[3], &b);
    long count = number(argv[4]), done, reached = 0;
    len = len > other_len ? len : other_len;
    if (argv[2][0] == '@' || argv[3][0] == '@')
        len = other_len; /* of an abstract name every byte counts */
    flip_init(&flip, &a, &b, sizeof a);
    int own = serve(type, argv[2]);
    pid_t other = start_process(flip_process, NULL, CLONE_VM);
    int is_won = 0;
    for (done = 0; done < count && !is_won; done++) {
        int fd = socket_of(type);
        if (fd < 0)
            break;
        long result = reach(argv[0], fd, (const void *)flip.at, len);
        reached += result >= 0;
        is_won = result >= 0 && has_reached(argv[0], fd, argv[3]);
        close(fd);
        drain(own);
    }
    stop(other);
    note("tries %ld made %ld", done, reached);
    return is_won ? won("reached %s", argv[3]) : lost("connect");
}

/* race-socket-swap A B SERVICE COUNT: the names A (a socket) and B (a link) take turns; A is
 * connected to. */
static int run_socket_swap(int argc, char **argv)
{
    (void)argc;
    struct sockaddr_un to;
    socklen_t len = address(argv[0], &to);
    long count = number(argv[3]), done;
    int is_won = 0;
    snprintf(dirs[0], sizeof dirs[0], "%s", argv[0]);
    snprintf(dirs[1], sizeof dirs[1], "%s", argv[1]);
    int own = serve(SOCK_STREAM, argv[0]);
    pid_t other = start_process(exchange_names, NULL, CLONE_VM);
    for (done = 0; done < count && !is_won; done++) {
        int fd = socket_of(SOCK_STREAM);
        if (fd < 0)
            break;
        if (connect(fd, (const struct sockaddr *)&to, len) == 0)
            is_won = has_reached("connect", fd, argv[2]);
        close(fd);
        drain(own);
    }
    stop(other);
    note("tries %ld", done);
    return is_won ? won("reached %s", argv[2]) : lost("connect");
}

/* --- a folder that becomes a repository --- */

static char parts[3][PATH_MAX];
static volatile long rounds, hold;

__attribute__((noreturn)) static int make_and_remove(void *arg)
{
    const char *path = arg;
    for (;; rounds = rounds + 1) {
        if (strstr(path, "HEAD") != NULL) {
            int fd = open(path, O_CREAT | O_WRONLY, 0644);
            if (fd >= 0)
                close(fd);
        } else {
            mkdir(path, 0755);
        }
        for (volatile long pause = 0; pause < hold << rounds % 6; pause = pause + 1)
            ;
        remove_name(path);
    }
}

/* race-parts ROOT HOLD COUNT: three processes each make, keep for a while and remove one of what makes
 * a repository, COUNT times together. */
static int run_parts(int argc, char **argv)
{
    (void)argc;
    static const char *const names[] = {"HEAD", "objects", "refs"};
    pid_t pids[3];
    long count = number(argv[2]);
    int is_won = 0;
    hold = number(argv[1]);
    for (int i = 0; i < 3; i++) {
        snprintf(parts[i], sizeof parts[i], "%s/%s", argv[0], names[i]);
        pids[i] = start_process(make_and_remove, parts[i], CLONE_VM);
    }
    while (rounds < count && !is_won) {
        is_won = exists(parts[0]) && exists(parts[1]) && exists(parts[2]);
        if (is_won) /* at the same moment, or one after the other? */
            for (int i = 0; i < 3; i++) {
                kill(pids[i], SIGSTOP);
                waitpid(pids[i], NULL, WUNTRACED);
            }
        is_won = is_won && exists(parts[0]) && exists(parts[1]) && exists(parts[2]);
        if (!is_won)
            for (int i = 0; i < 3; i++)
                kill(pids[i], SIGCONT);
    }
    for (int i = 0; i < 3; i++)
        stop(pids[i]);
    note("tries %ld", (long)rounds);
    errno = EACCES;
    return is_won ? won("a repository") : lost("all at once");
}

const struct attack race_attacks[] = {
    {"race-text", 6, run_text},
    {"race-source", 5, run_source},
    {"race-dir", 7, run_dir},
    {"race-swap", 7, run_swap},
    {"race-move", 7, run_move},
    {"race-write", 4, run_write},
    {"race-descriptor", 3, run_descriptor},
    {"race-read", 3, run_read},
    {"race-how", 2, run_how},
    {"race-exec", 3, run_exec},
    {"race-socket", 5, run_socket},
    {"race-socket-swap", 4, run_socket_swap},
    {"race-parts", 3, run_parts},
    {NULL, 0, NULL},
};
