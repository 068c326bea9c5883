/* A call is put together from the table (op.h) and made as it is written: by this process, a child,
 * or another thread. What came of it is put into memory that all of them share. */
#include "play.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

enum { ROOM = 16384, FIRST_FD = 5, FILES_MAX = 64, DATA = 1 << 20, ERRORS = 256 };

struct outcome {
    long value;
    int error;
    bool is_descriptor;
    struct stat st;
    int status_flags, fd_flags;
    char link[4096];
};

struct player {
    struct stage *stage;
    struct log *log;
    int fds[SLOTS];
    const struct op *op;
    int index;
};

/* Each path ends where memory ends, so that whoever reads beyond it is seen. */
static char *rooms[3]; /* ends */
static char *data;
static struct outcome *outcome;
static struct rlimit files_limit, size_limit;
static unsigned counts[OP_KINDS][ERRORS];

static char *room(void)
{
    char *start =
        mmap(NULL, ROOM + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (start == MAP_FAILED || mprotect(start + ROOM, 4096, PROT_NONE))
        return NULL;
    return start + ROOM;
}

bool play_init(void)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct none[2] = {0};

    for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++)
        if (!(rooms[i] = room()))
            return false;
    data = malloc(DATA);
    outcome =
        mmap(NULL, sizeof *outcome, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    signal(SIGXFSZ, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGCHLD, SIG_DFL);
    /* a command has none, whoever runs it */
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    if (syscall(SYS_capset, &header, none))
        return false;
    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    getrlimit(RLIMIT_NOFILE, &files_limit);
    getrlimit(RLIMIT_FSIZE, &size_limit);
    files_limit.rlim_cur = FILES_MAX;
    return data && outcome != MAP_FAILED;
}

static int descriptor(const struct player *player, int slot)
{
    if (slot == SLOT_CWD)
        return AT_FDCWD;
    if (slot < 0 || slot >= SLOTS)
        return slot;
    return player->fds[slot] < 0 ? SLOT_CLOSED : player->fds[slot];
}

/* The text with its {}s replaced; -1 when it does not fit. */
static long expand(const struct player *player, const char *text, char ret[ROOM])
{
    size_t len = 0;
    long whole = 0;

    for (; *text; text++) {
        long number = text[0] == '{' && text[1] ? strtol(text + 2, NULL, 10) : 0;

        if (*text != '{') {
            ret[len++] = *text;
            continue;
        }
        switch (text[1]) {
        case 'B':
            len += (size_t)snprintf(ret + len, ROOM - len, "%s", player->stage->base);
            break;
        case 'f':
            len += (size_t)snprintf(ret + len, ROOM - len, "%d", descriptor(player, (int)number));
            break;
        case 'n':
            memset(ret + len, 'n', (size_t)number);
            len += (size_t)number;
            break;
        case 'P':
            whole = number;
            break;
        default:
            return -1;
        }
        text += strcspn(text, "}");
        if (!*text)
            return -1;
    }
    if (whole > (long)len && whole < ROOM) {
        size_t more = (size_t)whole - len;

        memmove(ret + more, ret, len);
        for (size_t i = 0; i < more; i++)
            ret[i] = i % 2 ? '/' : '.';
        if (more % 2)
            ret[more - 1] = '/';
        len += more;
    }
    ret[len] = '\0';
    return (long)len;
}

static const char *pointer(const struct player *player, const char *text, int index)
{
    static char whole[ROOM];
    long len;

    if (!strcmp(text, "NULL"))
        return NULL;
    if (!strcmp(text, "BAD"))
        return (const char *)8; /* NOLINT */
    len = expand(player, text, whole);
    if (!strcmp(text, "EDGE")) {
        memset(rooms[index] - 3, 'a', 3);
        return rooms[index] - 3;
    }
    if (len < 0)
        return NULL;
    memcpy(rooms[index] - len - 1, whole, (size_t)len + 1);
    return rooms[index] - len - 1;
}

/* What open descriptors say. */
static void look(struct outcome *ret, int fd)
{
    char path[64];
    ssize_t len;

    ret->is_descriptor = true;
    fstat(fd, &ret->st);
    ret->status_flags = fcntl(fd, F_GETFL);
    ret->fd_flags = fcntl(fd, F_GETFD);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    len = readlink(path, ret->link, sizeof ret->link - 1);
    ret->link[len < 0 ? 0 : len] = '\0';
    if (strstr(ret->link, "/#")) /* a file without a name has its inode's number for one */
        snprintf(ret->link, sizeof ret->link, "nameless");
    if (strncmp(ret->link, "/proc/", 6) == 0)
        snprintf(ret->link, sizeof ret->link, "/proc");
}

/* A raw list of access control entries: owner, the caller by name, group, mask, others. */
static long set_acl(const char *path, long kind)
{
    struct entry {
        uint16_t tag, permissions;
        uint32_t id;
    };
    const uint16_t owner[] = {7, 6, 5, 7}, group[] = {5, 0, 7, 1}, mask[] = {7, 5, 6, 1},
                   others[] = {5, 0, 1, 7};
    unsigned i = (unsigned)kind % 4;
    struct {
        uint32_t version;
        struct entry entries[5];
    } list = {2,
              {{1, owner[i], ~0u},
               {2, 7, geteuid()},
               {4, group[i], ~0u},
               {16, mask[i], ~0u},
               {32, others[i], ~0u}}};
    struct {
        uint32_t version;
        struct entry entries[3];
    } small = {2, {{1, owner[i], ~0u}, {4, group[i], ~0u}, {32, others[i], ~0u}}};
    const char *name = kind & 8 ? "system.posix_acl_access" : "system.posix_acl_default";

    if (kind & 16)
        return removexattr(path, name);
    return kind & 4 ? setxattr(path, name, &small, sizeof small, 0)
                    : setxattr(path, name, &list, sizeof list, 0);
}

static long set_limit(const char *what, long number)
{
    struct rlimit files = files_limit, size = size_limit;

    if (!strcmp(what, "files")) {
        files.rlim_cur = (rlim_t)number;
        return setrlimit(RLIMIT_NOFILE, &files);
    }
    size.rlim_cur = (rlim_t)number;
    return setrlimit(RLIMIT_FSIZE, &size);
}

static bool is_pointer(const char *text)
{
    return !strcmp(text, "NULL") || !strcmp(text, "BAD") || !strcmp(text, "EDGE");
}

static long bind_socket(const char *path, bool is_address)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t len = is_address ? 0 : strnlen(path, sizeof address.sun_path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    long value;
    int error;

    if (fd < 0)
        return -1;
    if (len)
        memcpy(address.sun_path, path, len);
    value = syscall(SYS_bind, fd, is_address ? (const void *)path : &address,
                    offsetof(struct sockaddr_un, sun_path) + len + (len < sizeof address.sun_path));
    error = errno;
    close(fd);
    errno = error;
    return value;
}

static long make_file(const char *path, unsigned mode, long size)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK | O_CLOEXEC, 0600);
    long value;

    if (fd < 0)
        return -1;
    value = write(fd, data, (size_t)size);
    if (fchmod(fd, mode))
        value = -1;
    close(fd);
    return value;
}

static bool is_pipe(int dir, const char *path)
{
    struct stat st;

    return path && fstatat(dir, path, &st, 0) == 0 && S_ISFIFO(st.st_mode);
}

/* The arguments of a system call; the path pointers are in `paths`, too. */
static void arguments(const struct player *player, long ret[6], const char *paths[2])
{
    const struct op *op = player->op;
    int slot = 0, path = 0, dir = AT_FDCWD;

    for (const char *a = signatures[op->kind].arguments; *a; a++) {
        long *value = ret++;

        if (*a == 'd')
            *value = dir = descriptor(player, op->slots[slot++]);
        else if (*a == 'p')
            *value = (long)(paths[path] = pointer(player, op->paths[path], path)), path++;
        else if (*a == 'o')
            *value = op->flags | (is_pipe(dir, paths[0]) ? O_NONBLOCK : 0);
        else if (*a == 'a' || *a == 'r')
            *value = op->flags;
        else if (*a == 'm' || *a == 't')
            *value = op->mode;
        else if (*a == 'n')
            *value = op->number;
        else if (*a == 'w')
            *value = (long)data;
        else
            *value = *a == 'u' ? (long)geteuid() : *a == 'g' ? (long)getegid() : 0;
    }
}

static void call(const struct player *player)
{
    const struct op *op = player->op;
    const char *paths[2] = {NULL, NULL};
    long args[6] = {0}, value;

    arguments(player, args, paths);
    errno = 0;
    switch ((int)op->kind) {
    case OP_CREAT:
        if (is_pipe(AT_FDCWD, paths[0])) { /* it would wait for somebody who reads */
            value = -1;
            errno = EINTR;
            break;
        }
        value = syscall(signatures[OP_CREAT].nr, args[0], args[1]);
        break;
    case OP_MAKE:
        value = make_file(paths[0], op->mode, op->number);
        break;
    case OP_LIMIT:
        value = set_limit(paths[0], op->number);
        break;
    case OP_BIND:
        value = bind_socket(paths[0], is_pointer(op->paths[0]));
        break;
    case OP_ACL:
        value = set_acl(paths[0], op->number);
        break;
    default:
        value =
            syscall(signatures[op->kind].nr, args[0], args[1], args[2], args[3], args[4], args[5]);
        break;
    }
    outcome->error = value < 0 ? errno : 0;
    outcome->value = value;
    if (value >= 0 && op_makes_descriptor(op))
        look(outcome, (int)value);
}

static void *in_thread(void *argument)
{
    const struct player *player = argument;
    const struct op *op = player->op;

    if (op->how == HOW_OWN) {
        if (unshare(CLONE_FS) || chdir(pointer(player, op->own_dir, 2)))
            log_add(player->log, "own: %s ", error_name(errno));
        umask(op->own_mask);
    }
    call(player);
    return NULL;
}

static void call_in_child(const struct player *player, bool is_vfork)
{
    /* allow vfork: what a shell or make does is to be seen */
    pid_t child = is_vfork ? vfork() : fork();

    if (child == 0) {
        call(player);
        _exit(0);
    }
    while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
        continue;
}

static void call_somehow(struct player *player)
{
    pthread_t thread;

    memset(outcome, 0, offsetof(struct outcome, link));
    switch (player->op->how) {
    case HOW_FORK:
    case HOW_VFORK:
        call_in_child(player, player->op->how == HOW_VFORK);
        break;
    case HOW_THREAD:
    case HOW_OWN:
        if (pthread_create(&thread, NULL, in_thread, player) == 0)
            pthread_join(thread, NULL);
        break;
    case HOW_PLAIN:
    case HOWS:
        call(player);
        break;
    }
}

/* Nothing is played above the folder. */
static bool is_within(const struct player *player, const char *path)
{
    const char *folder = player->stage->folder;

    return path[0] != '/' || strncmp(path, folder, strlen(folder)) == 0;
}

static void stay_within(struct player *player)
{
    char path[4096];

    if (syscall(SYS_getcwd, path, sizeof path) > 0 && !is_within(player, path)) {
        log_add(player->log, " (above)");
        if (chdir(player->stage->base))
            fchdir(FOLDER_FD);
    }
}

static void keep_descriptor(struct player *player)
{
    const struct op *op = player->op;
    int fd = (int)outcome->value;

    if (op->how == HOW_FORK || op->how == HOW_VFORK)
        return; /* it went with the child */
    if (op->into < 0 || (S_ISDIR(outcome->st.st_mode) && !is_within(player, outcome->link))) {
        close(fd);
        return;
    }
    if (player->fds[op->into] >= 0)
        close(player->fds[op->into]);
    player->fds[op->into] = fd;
}

static void tell(struct player *player)
{
    const struct op *op = player->op;
    char line[LINE];

    op_format(op, line);
    log_add(player->log, "%s = ", line);
    if (outcome->value < 0)
        log_add(player->log, "%s", error_name(outcome->error));
    else if (!outcome->is_descriptor)
        log_add(player->log, "%ld", outcome->value);
    else
        log_add(player->log, "fd %ld flags %#o,%d mode %#o size %ld links %ld %s", outcome->value,
                (unsigned)outcome->status_flags, outcome->fd_flags, outcome->st.st_mode,
                S_ISREG(outcome->st.st_mode) ? (long)outcome->st.st_size : 0,
                S_ISDIR(outcome->st.st_mode) ? 0 : (long)outcome->st.st_nlink, outcome->link);
    counts[op->kind][outcome->error % ERRORS]++;
}

static int step(struct player *player)
{
    const struct op *op = player->op;
    int wrong;

    if (!op_is_here(op->kind))
        return 0;
    memset(data, 'A' + player->index % 26,
           (size_t)(op->number > 0 && op->number < DATA ? op->number : 0));
    call_somehow(player);
    tell(player);
    if (outcome->is_descriptor)
        keep_descriptor(player);
    if (op->kind == OP_CLOSE && op->how != HOW_FORK && op->how != HOW_VFORK)
        for (int i = 0; i < SLOTS; i++)
            if (op->slots[0] == i && outcome->value == 0)
                player->fds[i] = -1;
    if (op->kind == OP_CHDIR || op->kind == OP_FCHDIR)
        stay_within(player);
    wrong = op->expected >= 0 && outcome->error != op->expected;
    log_add(player->log, "%s\n", wrong ? "   <-- not what was expected" : "");
    return wrong;
}

int play(struct stage *stage, struct log *log, const struct op *ops, int len)
{
    struct player player = {.stage = stage, .log = log};
    const char *place = len && ops[0].kind == OP_PLACE ? ops[0].paths[0] : "deep";
    int wrong = 0;

    for (int i = 0; i < SLOTS; i++)
        player.fds[i] = -1;
    setrlimit(RLIMIT_NOFILE, &files_limit);
    if (!stage_enter(stage, place)) {
        log_add(log, "place \"%s\" is not to be had: %s\n", place, error_name(errno));
        return 0;
    }
    log_add(log, "place \"%s\"\n", place);
    for (int i = 0; i < len; i++) {
        player.op = &ops[i];
        player.index = i;
        if (ops[i].kind != OP_PLACE)
            wrong += step(&player);
    }
    setrlimit(RLIMIT_NOFILE, &files_limit);
    setrlimit(RLIMIT_FSIZE, &size_limit);
    syscall(SYS_close_range, FIRST_FD, ~0u, 0);
    stage_leave(log);
    return wrong;
}

void play_print_results(void)
{
    for (int kind = 0; kind < OP_KINDS; kind++) {
        fprintf(stderr, "%-11s", signatures[kind].name);
        for (int error = 0; error < ERRORS; error++)
            if (counts[kind][error])
                fprintf(stderr, " %s:%u", error_name(error), counts[kind][error]);
        fprintf(stderr, "\n");
    }
}
