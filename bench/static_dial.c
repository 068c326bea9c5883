/* Connects, and says how long that took.
 *
 *     static-dial KIND ADDRESS PORT COUNT [PROXY-ADDRESS PROXY-PORT]
 *
 * KIND is "connect" (COUNT times: connect, one byte there and back; writes for each what both took, two uint32_t of
 * nanoseconds), "bulk" (one connection, COUNT MiB from there; writes a uint64_t of nanoseconds) or "hold" (COUNT
 * connections, one byte there and back on each; writes a byte, and stays until standard input ends). With a proxy: by
 * CONNECT, which is part of connecting. What it speaks to is bench_network.c's server. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static const char *address, *proxy;
static int port, proxy_port;

static uint64_t now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static int connect_to(const char *host, int number)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)number)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    if (inet_pton(AF_INET, host, &to.sin_addr) != 1 ||
        connect(fd, (struct sockaddr *)&to, sizeof to)) {
        perror("static-dial: connect");
        exit(1);
    }
    return fd;
}

/* By CONNECT; the reply's head is read to its end. */
static void ask_proxy(int fd)
{
    char text[1024];
    int len = snprintf(text, sizeof text, "CONNECT %s:%d HTTP/1.1\r\nHost: %s:%d\r\n\r\n", address,
                       port, address, port);
    ssize_t have = 0, got = write(fd, text, (size_t)len);

    do {
        have += got = read(fd, text + have, sizeof text - 1 - (size_t)have);
        text[have] = '\0';
    } while (got > 0 && !strstr(text, "\r\n\r\n"));
    if (!strstr(text, " 200 ")) {
        fprintf(stderr, "static-dial: %s\n", text);
        exit(1);
    }
}

static int dial(void)
{
    int fd = connect_to(proxy ? proxy : address, proxy ? proxy_port : port);

    if (proxy)
        ask_proxy(fd);
    return fd;
}

static void echo(int fd)
{
    char byte = 'e';

    if (write(fd, &byte, 1) != 1 || read(fd, &byte, 1) != 1) {
        perror("static-dial: echo");
        exit(1);
    }
}

static void run_connect(long count)
{
    for (long i = 0; i < count; i++) {
        uint64_t begin = now(), connected;
        uint32_t took[2];
        int fd = dial();

        connected = now();
        echo(fd);
        took[0] = (uint32_t)(connected - begin);
        took[1] = (uint32_t)(now() - begin);
        close(fd);
        if (write(1, took, sizeof took) != sizeof took)
            exit(1);
    }
}

static void run_bulk(long count)
{
    static char block[256 << 10];
    uint64_t left = (uint64_t)count << 20, begin, took;
    uint32_t size = (uint32_t)count;
    char order[5] = "b";
    ssize_t len = 0;
    int fd = dial();

    memcpy(order + 1, &size, 4);
    begin = now();
    if (write(fd, order, sizeof order) != sizeof order)
        exit(1);
    while (left && (len = read(fd, block, sizeof block)) > 0)
        left -= (uint64_t)len;
    took = now() - begin;
    if (left || write(1, &took, sizeof took) != sizeof took)
        exit(1);
}

static void run_hold(long count)
{
    struct rlimit files = {(rlim_t)count + 64, (rlim_t)count + 64};
    char byte;

    setrlimit(RLIMIT_NOFILE, &files);
    for (long i = 0; i < count; i++)
        echo(dial());
    if (write(1, "r", 1) != 1 || read(0, &byte, 1) < 0)
        exit(1);
}

int main(int argc, char **argv)
{
    long count = argc > 4 ? atol(argv[4]) : 0;

    if (argc != 5 && argc != 7)
        return 2;
    address = argv[2];
    port = atoi(argv[3]);
    proxy = argc == 7 ? argv[5] : NULL;
    proxy_port = argc == 7 ? atoi(argv[6]) : 0;
    if (strcmp(argv[1], "connect") == 0)
        run_connect(count);
    else if (strcmp(argv[1], "bulk") == 0)
        run_bulk(count);
    else
        run_hold(count);
    return 0;
}
