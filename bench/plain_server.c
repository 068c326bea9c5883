/* See plain_server.h. One process, one epoll, no queues: who does not read his flood gets no more
 * of it, and who does not read his answers is not read any more. Requests are known by
 * words in them. */
#include "plain_server.h"

#include "base/alloc.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BLOCK = 65536, FDS_MAX = 4096, EVENTS = 64, CHUNK = 48 * 1024 };

enum role { ROLE_NONE, ROLE_HEAD, ROLE_FRAMES, ROLE_FLOOD, ROLE_CHILD };

struct end {
    enum role role;
    uint64_t skip; /* bytes of the current frame that are dropped */
    bool is_last;  /* frame of its message */
    int owner;     /* of a child: who is told */
    unsigned process;
};

struct plain {
    const struct bench *bench;
    int epoll;
    int listening;
    struct end ends[FDS_MAX];
};

static void watch(const struct plain *plain, int fd, unsigned events)
{
    struct epoll_event event = {.events = events, .data.fd = fd};

    if (epoll_ctl(plain->epoll, EPOLL_CTL_ADD, fd, &event))
        epoll_ctl(plain->epoll, EPOLL_CTL_MOD, fd, &event);
}

static void forget(struct plain *plain, int fd)
{
    plain->ends[fd] = (struct end){0};
    close(fd);
}

static bool put(int fd, const char *text)
{
    size_t len = strlen(text);
    char frame[1024] = {(char)0x81, (char)len};
    size_t head = 2;

    if (len >= 126) {
        frame[1] = 126;
        frame[2] = (char)(len >> 8);
        frame[3] = (char)len;
        head = 4;
    }
    memcpy(frame + head, text, len);
    return send(fd, frame, head + len, MSG_DONTWAIT | MSG_NOSIGNAL) > 0;
}

static unsigned number_of(const char *text, const char *name)
{
    const char *at = strstr(text, name);

    return at ? (unsigned)strtoul(at + strlen(name), NULL, 10) : 0;
}

/* --- children --- */

static void run_true(struct plain *plain, int owner, unsigned process)
{
    char *const argv[] = {(char *)"/bin/true", NULL};
    char *const env[] = {NULL};
    pid_t pid;
    int fd;

    if (posix_spawn(&pid, argv[0], NULL, NULL, argv, env))
        bench_fail("/bin/true does not start");
    fd = pidfd_open(pid, 0);
    plain->ends[fd] = (struct end){.role = ROLE_CHILD, .owner = owner, .process = process};
    watch(plain, fd, EPOLLIN);
}

static void child_ended(struct plain *plain, int fd)
{
    static const char *const methods[] = {"exited", "closed"};
    siginfo_t info;

    waitid(P_PIDFD, (id_t)fd, &info, WEXITED);
    for (int i = 0; i < 2; i++) {
        char text[128];

        snprintf(text, sizeof text,
                 "{\"method\":\"process/%s\",\"params\":{\"processId\":\"p%u\",\"seq\":1}}",
                 methods[i], plain->ends[fd].process);
        put(plain->ends[fd].owner, text);
    }
    forget(plain, fd);
}

/* --- requests --- */

static void answer(const struct plain *plain, int fd, const char *request)
{
    char text[512];

    snprintf(text, sizeof text, "{\"id\":%u,\"result\":{\"padding\":\"%0300d\"}}",
             number_of(request, "\"id\":"), 0);
    if (!put(fd, text))
        watch(plain, fd, EPOLLRDHUP);
}

static void take_request(struct plain *plain, int fd, const char *text)
{
    answer(plain, fd, text);
    if (strstr(text, "/bin/true")) {
        run_true(plain, fd, number_of(text, "\"processId\":\"p"));
        return;
    }
    if (strstr(text, "process/write") || strstr(text, "/usr/bin/head"))
        put(fd, "{\"method\":\"process/output\",\"params\":{\"chunk\":\"eA==\"}}");
    if (strstr(text, "/usr/bin/head")) {
        plain->ends[fd].role = ROLE_FLOOD;
        watch(plain, fd, EPOLLOUT | EPOLLRDHUP);
    }
}

static size_t take_skipped(const struct plain *plain, struct end *end, int fd, size_t len)
{
    size_t part = end->skip < len ? (size_t)end->skip : len;

    end->skip -= part;
    if (!end->skip && end->is_last)
        answer(plain, fd, "");
    return part;
}

/* Heads come whole: nobody sends them in parts. Masks are zero. */
static size_t take_frame(struct plain *plain, int fd, char *bytes, size_t len)
{
    const unsigned char *head = (const unsigned char *)bytes;
    struct end *end = &plain->ends[fd];
    size_t code = head[1] & 127;
    size_t size = code == 126 ? 4 : code == 127 ? 10 : 2;
    uint64_t payload = code;
    char saved;

    if (size > 2)
        for (size_t i = payload = 0; i < size - 2; i++)
            payload = payload << 8 | head[2 + i];
    size += 4; /* the mask */
    if (size + payload > len) {
        end->is_last = head[0] & 0x80;
        end->skip = payload - (len - size);
        return len;
    }
    saved = bytes[size + payload];
    bytes[size + payload] = '\0';
    take_request(plain, fd, bytes + size);
    bytes[size + payload] = saved;
    return size + payload;
}

static void take_bytes(struct plain *plain, int fd, char *bytes, size_t len)
{
    struct end *end = &plain->ends[fd];

    for (size_t at = 0; at < len;)
        at += end->skip ? take_skipped(plain, end, fd, len - at)
                        : take_frame(plain, fd, bytes + at, len - at);
}

static void peer_ready(struct plain *plain, int fd)
{
    static const char upgraded[] = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                                   "Connection: Upgrade\r\n\r\n";
    static char bytes[BLOCK + 1];
    ssize_t len = recv(fd, bytes, BLOCK, MSG_DONTWAIT);

    if (len <= 0) {
        forget(plain, fd);
    } else if (plain->ends[fd].role == ROLE_HEAD) {
        plain->ends[fd].role = ROLE_FRAMES;
        send(fd, upgraded, sizeof upgraded - 1, MSG_NOSIGNAL);
    } else {
        bytes[len] = '\0';
        take_bytes(plain, fd, bytes, (size_t)len);
    }
}

static void flood_ready(struct plain *plain, int fd)
{
    static const char chunk[CHUNK]; /* he does not look at it */

    if (send(fd, chunk, sizeof chunk, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
        forget(plain, fd);
}

static void admit(struct plain *plain)
{
    int fd = accept4(plain->listening, NULL, NULL, SOCK_CLOEXEC);
    const int on = 1;

    if (fd < 0 || fd >= FDS_MAX)
        bench_fail("the plain server has no descriptors left");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    plain->ends[fd] = (struct end){.role = ROLE_HEAD};
    watch(plain, fd, EPOLLIN);
}

static void ready(struct plain *plain, int fd)
{
    switch (plain->ends[fd].role) {
    case ROLE_NONE:
        return;
    case ROLE_HEAD:
    case ROLE_FRAMES:
        peer_ready(plain, fd);
        return;
    case ROLE_FLOOD:
        flood_ready(plain, fd);
        return;
    case ROLE_CHILD:
        child_ended(plain, fd);
        return;
    }
}

static void serve(struct plain *plain)
{
    struct epoll_event events[EVENTS];

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    plain->epoll = epoll_create1(EPOLL_CLOEXEC);
    watch(plain, plain->listening, EPOLLIN);
    for (;;) {
        int count = epoll_wait(plain->epoll, events, EVENTS, -1);

        for (int i = 0; i < count; i++) {
            if (events[i].data.fd == plain->listening)
                admit(plain);
            else
                ready(plain, events[i].data.fd);
        }
    }
}

void plain_server_start(struct wire_server *server, const struct bench *bench)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;
    struct plain *plain = alloc_zero(1, sizeof *plain);

    plain->bench = bench;
    plain->listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(plain->listening, (struct sockaddr *)&address, len) ||
        listen(plain->listening, SOMAXCONN) ||
        getsockname(plain->listening, (struct sockaddr *)&address, &len))
        bench_fail("no socket to listen on");
    server->port = ntohs(address.sin_port);
    server->pid = fork();
    if (server->pid < 0)
        bench_fail("no process");
    if (server->pid == 0)
        serve(plain);
    close(plain->listening);
    free(plain);
}
