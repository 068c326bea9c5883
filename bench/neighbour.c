/* See neighbour.h. Each is a process of its own, and as cheap as it can be: on few processors the
 * quiet client would pay for what it computes. */
#include "neighbour.h"

#include "base/alloc.h"
#include "base/auto.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    CROWD = 200,        /* connections that come and go together */
    PAUSE_US = 100000,  /* between their visits, and between large files */
    BREAK_US = 10000,   /* between messages that are broken off */
    BROKEN = 256 << 10, /* bytes of one of 1 MiB that are sent */
    FILE_BYTES = 24 << 20,
    PART = 8 << 20, /* bytes of one frame of it */
};

/* Tells by one byte that it is at it. */
static void tell(int ready)
{
    (void)!write(ready, "", 1);
}

/* Asks on and on, and takes no answer: until nothing more can be sent, and then waits. */
static void neighbour_stops(const struct bench *bench, const struct wire_server *server, int ready)
{
    static const char ask[] = "{\"id\":7,\"method\":\"environment/info\",\"params\":{}}";
    struct wire wire;
    struct pollfd fd;

    wire_open(&wire, server);
    fd = (struct pollfd){.fd = wire.fd, .events = POLLOUT};
    while (poll(&fd, 1, 200) > 0)
        wire_send_text(&wire, ask, sizeof ask - 1);
    tell(ready);
    for (;;)
        wire_send_text(&wire, ask, sizeof ask - 1);
}

/* Has 200 MB written for it, and reads nothing after the beginning. */
static void neighbour_ignores(const struct bench *bench, const struct wire_server *server,
                              int ready)
{
    struct wire wire;

    wire_open(&wire, server);
    wire_send(&wire, "process/start",
              "{\"processId\":\"p1\",\"argv\":[\"/usr/bin/head\",\"-c\",\"200000000\",\"/dev/"
              "zero\"],\"cwd\":\"file://%s\",\"env\":{},\"tty\":false,\"sandbox\":null}",
              bench->ws);
    wire_until(&wire, "process/output");
    tell(ready);
    for (;;)
        pause();
}

/* A connection without anything but the HTTP head. */
static void knock(int fd, const struct wire_server *server)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(server->port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    if (connect(fd, (struct sockaddr *)&address, sizeof address) && errno != EINPROGRESS)
        bench_fail("no connection: %s", strerror(errno));
    if (send(fd, wire_upgrade, strlen(wire_upgrade), MSG_NOSIGNAL) < 0)
        bench_fail("no upgrade: %s", strerror(errno));
}

static void take_upgraded(int fd)
{
    char head[512];

    if (recv(fd, head, sizeof head, 0) <= 0)
        bench_fail("no answer to an upgrade");
}

/* Resets the connection: what was sent last may never arrive. */
static void reset(int fd)
{
    const struct linger now = {.l_onoff = 1};

    setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close(fd);
}

static void neighbour_breaks_off(const struct bench *bench, const struct wire_server *server,
                                 int ready)
{
    /* text, masked with zeros, 1 MiB (RFC 6455, 5.2) */
    static char part[14 + BROKEN] = {(char)0x81, (char)0xff, 0, 0, 0, 0, 0, 16};

    memset(part + 14, ' ', BROKEN);
    for (;;) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        size_t sent = 0;

        knock(fd, server);
        take_upgraded(fd);
        while (sent < sizeof part) {
            ssize_t n = send(fd, part + sent, sizeof part - sent, MSG_NOSIGNAL);

            if (n <= 0)
                bench_fail("nobody takes what is broken off");
            sent += (size_t)n;
        }
        reset(fd);
        tell(ready);
        usleep(BREAK_US);
    }
}

static void neighbour_comes_and_goes(const struct bench *bench, const struct wire_server *server,
                                     int ready)
{
    int fds[CROWD];

    for (;;) {
        for (int i = 0; i < CROWD; i++) {
            fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
            knock(fds[i], server);
        }
        for (int i = 0; i < CROWD; i++)
            take_upgraded(fds[i]);
        for (int i = 0; i < CROWD; i++)
            close(fds[i]);
        tell(ready);
        usleep(PAUSE_US);
    }
}

/* Writes a large file, again and again. */
static void neighbour_writes(const struct bench *bench, const struct wire_server *server, int ready)
{
    AUTO_FREE char *head = alloc_strf("{\"id\":9,\"method\":\"fs/writeFile\",\"params\":{\"path\":"
                                      "\"file://%s/large\",\"dataBase64\":\"",
                                      bench->ws);
    size_t len = strlen(head);
    size_t base64 = FILE_BYTES / 3 * 4;
    char *text = alloc_zero(len + base64 + 3, 1);
    struct wire wire;

    memcpy(text, head, len);
    memset(text + len, 'x', base64);
    memcpy(text + len + base64, "\"}}", 3);
    wire_open(&wire, server);
    for (;;) {
        wire_send_parts(&wire, text, len + base64 + 3, PART);
        wire_until(&wire, "\"result\"");
        tell(ready);
        usleep(PAUSE_US);
    }
}

const struct neighbour neighbours[NEIGHBOURS] = {
    {"alone", NULL},
    {"one who stops reading", neighbour_stops},
    {"one who breaks off", neighbour_breaks_off},
    {"one who ignores 200 MB", neighbour_ignores},
    {"200 who come and go", neighbour_comes_and_goes},
    {"one who writes 24 MB", neighbour_writes},
};

pid_t neighbour_start(const struct neighbour *neighbour, const struct bench *bench,
                      const struct wire_server *server)
{
    char byte;
    int ends[2];
    pid_t pid;

    if (!neighbour->run)
        return 0;
    if (pipe2(ends, O_CLOEXEC) || (pid = fork()) < 0)
        bench_fail("no process");
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        fcntl(ends[1], F_SETFL, O_NONBLOCK);
        neighbour->run(bench, server, ends[1]);
        _exit(0);
    }
    close(ends[1]);
    if (read(ends[0], &byte, 1) != 1)
        bench_fail("%s: not today", neighbour->name);
    close(ends[0]);
    return pid;
}

void neighbour_stop(pid_t pid)
{
    if (!pid)
        return;
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}
