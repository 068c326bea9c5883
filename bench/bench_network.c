/* A proxied network beside those of others: how long it takes to be connected, how fast bytes come, what a connection
 * that waits costs, and what it adds to the start of a command.
 *
 * All of it happens in a network of this program's own, where a server has an address that is public: the last part
 * therefore, since there is no way back. Peers, where they are installed: slirp4netns (a tap for each command) and tinyproxy
 * (which programs have to ask). They take turns, so that a change of the machine's mood meets all alike. */
#include "bench.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/clock.h"
#include "base/path.h"
#include "base/str.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define ADDRESS "11.0.0.1"
enum { PORT = 7000, PROXY_PORT = 7001, TURNS = 5, BULK_MIB = 1024, HELD = 1000 };

/* --- a network with a server --- */

static void write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);

    if (fd < 0 || write(fd, text, strlen(text)) < 0)
        bench_fail("%s: %s", path, strerror(errno));
    close(fd);
}

/* An ordinary user may make one in a user namespace of its own, in which it stays who it is. */
static void enter_network(void)
{
    AUTO_FREE char *users = alloc_strf("%u %u 1", getuid(), getuid());
    AUTO_FREE char *groups = alloc_strf("%u %u 1", getgid(), getgid());

    if (unshare(geteuid() ? CLONE_NEWUSER | CLONE_NEWNET : CLONE_NEWNET))
        bench_fail("no network of its own: %s", strerror(errno));
    if (geteuid() == 0 || getuid() == 0)
        return;
    write_file("/proc/self/setgroups", "deny");
    write_file("/proc/self/uid_map", users);
    write_file("/proc/self/gid_map", groups);
}

static void set_up_loopback(void)
{
    struct ifreq up = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    struct ifreq more = {.ifr_name = "lo:1"};
    struct sockaddr_in *address = (struct sockaddr_in *)(void *)&more.ifr_addr;
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    address->sin_family = AF_INET;
    inet_pton(AF_INET, ADDRESS, &address->sin_addr);
    if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &up) || ioctl(fd, SIOCSIFADDR, &more))
        bench_fail("the loopback device: %s", strerror(errno));
    close(fd);
}

/* static_dial.c says what is asked for. One that reads slowly makes the others wait: there is one at a time. */
static void serve_one(int fd)
{
    static char block[256 << 10];
    char order[5];
    ssize_t len = recv(fd, order, sizeof order, 0);
    uint32_t size = 0;

    if (len <= 0 || (order[0] == 'e' && send(fd, order, 1, MSG_NOSIGNAL) != 1)) {
        close(fd);
        return;
    }
    if (order[0] != 'b')
        return;
    memcpy(&size, order + 1, sizeof size);
    for (uint64_t left = (uint64_t)size << 20; left; left -= (uint64_t)len) {
        len = send(fd, block, left < sizeof block ? (size_t)left : sizeof block, MSG_NOSIGNAL);
        if (len <= 0)
            return;
    }
}

__attribute__((noreturn)) static void serve(int listener)
{
    int poller = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listener};

    epoll_ctl(poller, EPOLL_CTL_ADD, listener, &event);
    for (;;) {
        int fd;

        if (epoll_wait(poller, &event, 1, -1) != 1)
            continue;
        if (event.data.fd != listener) {
            serve_one(event.data.fd);
            continue;
        }
        fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
        event.data.fd = fd;
        epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event);
    }
}

static pid_t start_server(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    pid_t pid;

    if (bind(listener, (struct sockaddr *)&at, sizeof at) || listen(listener, 4096))
        bench_fail("the server: %s", strerror(errno));
    pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        serve(listener);
    }
    close(listener);
    return pid;
}

static void stop(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

/* --- the ways to it --- */

enum way { DIRECT, CORDON, EXPLICIT, SLIRP, TINYPROXY, WAYS };

static const char *const way_names[] = {"direct", "cordon", "cordon, asked by CONNECT",
                                        "slirp4netns", "tinyproxy"};

struct networks {
    struct bench *bench;
    pid_t tinyproxy; /* 0: not installed */
    char *slirp;     /* NULL: not installed */
};

static char *find(const char *name)
{
    static const char *const folders[] = {"/usr/bin", "/usr/local/bin", "/usr/sbin", NULL};

    for (size_t i = 0; folders[i]; i++) {
        char *path = path_join(folders[i], name);

        if (access(path, X_OK) == 0)
            return path;
        free(path);
    }
    fprintf(stderr, "bench: %s is not installed, so it is not beside us\n", name);
    return NULL;
}

static bool has_way(const struct networks *networks, enum way way)
{
    return way == TINYPROXY ? networks->tinyproxy > 0 : way != SLIRP || networks->slirp;
}

/* In a network with nothing but a tap, of which slirp4netns has the other end. */
static pid_t start_slirp(const struct networks *networks, const char *const *argv, int in, int out)
{
    int ready[2], go[2], configured[2];
    AUTO_FREE char *pid_text = NULL;
    AUTO_FREE char *fd_text = NULL;
    pid_t pid, slirp;
    char byte;

    if (pipe2(ready, O_CLOEXEC) || pipe2(go, O_CLOEXEC) || pipe(configured))
        bench_fail("pipe: %s", strerror(errno));
    pid = fork();
    if (pid == 0) {
        enter_network();
        if (write(ready[1], "r", 1) != 1 || read(go[0], &byte, 1) != 1)
            _exit(1);
        dup2(in, 0);
        dup2(out, 1);
        execv(argv[0], (char *const *)(uintptr_t)argv);
        _exit(1);
    }
    if (read(ready[0], &byte, 1) != 1)
        bench_fail("no network for slirp4netns");
    pid_text = alloc_strf("%d", (int)pid);
    fd_text = alloc_strf("%d", configured[1]);
    slirp = fork();
    if (slirp == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(configured[0]);
        dup2(networks->bench->null, 1);
        dup2(networks->bench->null, 2);
        execl(networks->slirp, "slirp4netns", "--configure", "--mtu=65520", "--ready-fd", fd_text,
              pid_text, "tap0", (char *)NULL);
        _exit(1);
    }
    close(configured[1]);
    if (read(configured[0], &byte, 1) != 1)
        bench_fail("slirp4netns does not start");
    if (write(go[1], "g", 1) != 1)
        bench_fail("slirp4netns: %s", strerror(errno));
    for (int i = 0; i < 2; i++) {
        close(ready[i]);
        close(go[i]);
    }
    close(configured[0]);
    return pid; /* slirp4netns ends with us */
}

static pid_t start_dial(const struct networks *networks, enum way way, const char *kind,
                        unsigned count, int in, int out)
{
    AUTO_FREE char *number = alloc_strf("%u", count);
    AUTO_FREE char *port = alloc_strf("%d", PORT);
    AUTO_FREE char *proxy_port = alloc_strf("%d", PROXY_PORT);
    const char *argv[16] = {NULL};
    size_t len = 0;

    if (way == CORDON || way == EXPLICIT) {
        argv[len++] = networks->bench->cordon;
        argv[len++] = "run";
        argv[len++] = "--quiet";
        argv[len++] = "--allow-host";
        argv[len++] = ADDRESS;
        argv[len++] = "--";
    }
    argv[len++] = networks->bench->static_dial;
    argv[len++] = kind;
    argv[len++] = ADDRESS;
    argv[len++] = port;
    argv[len++] = number;
    if (way == EXPLICIT || way == TINYPROXY) {
        argv[len++] = way == EXPLICIT ? "127.0.0.1" : ADDRESS;
        argv[len++] = way == EXPLICIT ? "1008" : proxy_port;
    }
    return way == SLIRP ? start_slirp(networks, argv, in, out)
                        : run_spawn(networks->bench, argv, in, out);
}

static void finish(const struct networks *networks, pid_t pid, enum way way)
{
    int status;

    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (status)
        bench_fail("%s: static-dial ended with status %#x", way_names[way], (unsigned)status);
}

/* --- figures --- */

struct measured {
    struct sample connects[WAYS]; /* us */
    struct sample bytes[WAYS];
    struct sample bulks[WAYS]; /* MB/s */
};

static void measure_connects(const struct networks *networks, enum way way, unsigned count,
                             struct measured *ret)
{
    uint32_t took[2];
    int out[2];
    pid_t pid;
    FILE *file;

    if (pipe2(out, O_CLOEXEC))
        bench_fail("pipe: %s", strerror(errno));
    pid = start_dial(networks, way, "connect", count, networks->bench->null, out[1]);
    close(out[1]);
    file = fdopen(out[0], "r");
    while (fread(took, sizeof took, 1, file) == 1) {
        sample_add(&ret->connects[way], took[0] / 1e3);
        sample_add(&ret->bytes[way], took[1] / 1e3);
    }
    fclose(file);
    finish(networks, pid, way);
}

static void measure_bulk(const struct networks *networks, enum way way, unsigned mib,
                         struct measured *ret)
{
    uint64_t took = 0;
    int out[2];
    pid_t pid;

    if (pipe2(out, O_CLOEXEC))
        bench_fail("pipe: %s", strerror(errno));
    pid = start_dial(networks, way, "bulk", mib, networks->bench->null, out[1]);
    close(out[1]);
    if (read(out[0], &took, sizeof took) != sizeof took)
        bench_fail("%s: nothing came", way_names[way]);
    close(out[0]);
    finish(networks, pid, way);
    sample_add(&ret->bulks[way], (double)mib * 1048576 * 1e3 / (double)took);
}

/* The better of the peers that are there; 0: none is. */
static double best_peer(const struct sample samples[WAYS], bool is_least)
{
    double best = 0;

    for (enum way way = SLIRP; way < WAYS; way++) {
        double value = sample_median(&samples[way]);

        if (samples[way].len && (best <= 0 || (value < best) == is_least))
            best = value;
    }
    return best;
}

static void report_way(struct bench *bench, const struct sample *sample, const char *name,
                       const char *unit, enum goal goal, double target)
{
    if (sample->len)
        report_add_sample(&bench->report,
                          &(struct figure){.name = name,
                                           .unit = unit,
                                           .goal = target > 0 ? goal : GOAL_NONE,
                                           .target = target},
                          sample);
}

static void report_all(struct bench *bench, const struct measured *measured)
{
    static const char *const connects[] = {"network, connected, direct", "network, connected",
                                           "  asked by CONNECT", "  slirp4netns", "  tinyproxy"};
    static const char *const bytes[] = {"network, first byte back, direct",
                                        "network, first byte back", "  asked by CONNECT",
                                        "  slirp4netns", "  tinyproxy"};
    static const char *const bulks[] = {"network, bulk, direct", "network, bulk",
                                        "  asked by CONNECT", "  slirp4netns", "  tinyproxy"};
    double bulk = 0.9 * best_peer(measured->bulks, false);

    for (enum way way = DIRECT; way < WAYS; way++)
        report_way(bench, &measured->connects[way], connects[way], "us",
                   way == CORDON ? GOAL_AT_MOST : GOAL_NONE,
                   way == CORDON ? best_peer(measured->connects, true) : 0);
    for (enum way way = DIRECT; way < WAYS; way++)
        report_way(bench, &measured->bytes[way], bytes[way], "us", GOAL_NONE, 0);
    for (enum way way = DIRECT; way < WAYS; way++)
        report_way(bench, &measured->bulks[way], bulks[way], "MB/s",
                   way == CORDON ? GOAL_AT_LEAST : GOAL_NONE,
                   way == CORDON ? (bulk > 1000 ? bulk : 1000) : 0);
}

/* The proxy is a child of cordon. */
static pid_t find_proxy(pid_t cordon)
{
    AUTO_FREE char *path = alloc_strf("/proc/%d/task/%d/children", (int)cordon, (int)cordon);
    FILE *file = fopen(path, "re");
    pid_t found = 0;
    int pid;

    while (file && !found && fscanf(file, "%d", &pid) == 1) {
        AUTO_FREE char *name = alloc_strf("/proc/%d/comm", pid);
        FILE *comm = fopen(name, "re");
        char text[32] = "";

        if (comm && fgets(text, sizeof text, comm) && str_starts(text, "cordon-proxy"))
            found = pid;
        if (comm)
            fclose(comm);
    }
    if (file)
        fclose(file);
    if (!found)
        bench_fail("the proxy is nowhere");
    return found;
}

static double memory_with(const struct networks *networks, unsigned count)
{
    int in[2], out[2];
    double memory;
    pid_t pid;
    char byte;

    if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC))
        bench_fail("pipe: %s", strerror(errno));
    pid = start_dial(networks, CORDON, "hold", count, in[0], out[1]);
    close(in[0]);
    close(out[1]);
    if (read(out[0], &byte, 1) != 1)
        bench_fail("%u connections are too many", count);
    memory = bench_memory_of(find_proxy(pid));
    close(in[1]);
    finish(networks, pid, CORDON);
    close(out[0]);
    return memory;
}

static void measure_memory(const struct networks *networks)
{
    struct bench *bench = networks->bench;
    unsigned count = bench_is_quick(bench) ? HELD / 10 : HELD;
    double few = memory_with(networks, 1);

    report_add(&bench->report, &(struct figure){.name = "network, the proxy, one connection",
                                                .unit = "KiB",
                                                .value = few,
                                                .runs = 1});
    report_add(&bench->report,
               &(struct figure){.name = "network, each connection that waits",
                                .unit = "KiB",
                                .value = (memory_with(networks, count) - few) / (count - 1),
                                .runs = count,
                                .goal = GOAL_AT_MOST,
                                .target = 16});
}

static void measure_start(struct bench *bench)
{
    const char *const restricted[] = {bench->cordon, "run", "--", bench->static_true, NULL};
    const char *const proxied[] = {bench->cordon,      "run", "--allow-host", ADDRESS, "--",
                                   bench->static_true, NULL};
    struct sample without = {0}, with = {0};

    for (unsigned i = 0; i < bench->runs; i++) {
        uint64_t begin = clock_now_ns();

        run_bare(bench, restricted);
        sample_add_since(&without, begin);
        begin = clock_now_ns();
        run_bare(bench, proxied);
        sample_add_since(&with, begin);
    }
    report_way(bench, &without, "network, cordon run, restricted", "ms", GOAL_NONE, 0);
    report_way(bench, &with, "network, cordon run, proxied", "ms", GOAL_AT_MOST,
               sample_median(&without) + 0.4);
    sample_done(&without);
    sample_done(&with);
}

/* --- the whole --- */

static void start_tinyproxy(struct networks *networks)
{
    AUTO_FREE char *program = find("tinyproxy");
    AUTO_FREE char *config = path_join(networks->bench->other_ws, "tinyproxy.conf");
    AUTO_FREE char *text = alloc_strf("Port %d\nListen " ADDRESS "\nTimeout 600\nMaxClients 2000\n"
                                      "LogLevel Critical\nDisableViaHeader Yes\n",
                                      PROXY_PORT);
    FILE *file = program ? fopen(config, "we") : NULL;
    const char *const argv[] = {program, "-d", "-c", config, NULL};
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(PROXY_PORT)};
    int fd;

    if (!file)
        return;
    fputs(text, file);
    fclose(file);
    inet_pton(AF_INET, ADDRESS, &at.sin_addr);
    networks->tinyproxy =
        run_spawn(networks->bench, argv, networks->bench->null, networks->bench->null);
    for (;;) { /* until it listens */
        fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (connect(fd, (struct sockaddr *)&at, sizeof at) == 0)
            break;
        close(fd);
        if (waitpid(networks->tinyproxy, NULL, WNOHANG) != 0)
            bench_fail("tinyproxy does not start");
        sched_yield();
    }
    close(fd);
}

void bench_network(struct bench *bench)
{
    AUTO_FREE char *slirp = find("slirp4netns");
    struct networks networks = {.bench = bench, .slirp = slirp};
    struct measured measured = {0};
    bool is_quick = bench_is_quick(bench);
    pid_t server;

    enter_network();
    set_up_loopback();
    server = start_server();
    start_tinyproxy(&networks);
    for (unsigned turn = 0; turn < (is_quick ? 1 : TURNS); turn++)
        for (enum way way = DIRECT; way < WAYS; way++)
            if (has_way(&networks, way)) {
                measure_connects(&networks, way, bench->runs, &measured);
                measure_bulk(&networks, way, is_quick ? BULK_MIB / 32 : BULK_MIB, &measured);
            }
    report_all(bench, &measured);
    measure_memory(&networks);
    measure_start(bench);
    stop(server);
    if (networks.tinyproxy)
        stop(networks.tinyproxy);
    for (enum way way = DIRECT; way < WAYS; way++) {
        sample_done(&measured.connects[way]);
        sample_done(&measured.bytes[way]);
        sample_done(&measured.bulks[way]);
    }
}
