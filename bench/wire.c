/* See wire.h. */
#include "wire.h"

#include "base/alloc.h"
#include "base/auto.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BUFFER = 4 << 20, LOOK_MAX = 200 };

/* First bytes of frames: the last of its message, and what it is (RFC 6455, 5.2). */
enum { FRAME_LAST = 0x80, FRAME_TEXT = 1, FRAME_PONG = 10 };

const char wire_upgrade[] = "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\n"
                            "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

const char wire_read_only[] =
    "{\"permissions\":{\"type\":\"managed\",\"network\":\"restricted\",\"file_system\":{\"type\":"
    "\"restricted\",\"entries\":[{\"path\":{\"type\":\"special\",\"value\":{\"kind\":\"root\"}},"
    "\"access\":\"read\"}]}},\"windowsSandboxLevel\":\"disabled\"}";

/* --- the server --- */

static pid_t running; /* a server that has to go however the benchmark ends; 0: none */

static void kill_running(void)
{
    if (running)
        kill(running, SIGKILL);
}

void wire_server_start(struct wire_server *server, const struct bench *bench)
{
    static bool is_prepared;
    char *const argv[] = {(char *)"cordon",           (char *)"serve",     (char *)"--listen",
                          (char *)"ws://127.0.0.1:0", (char *)"--ws-auth", (char *)"anybody",
                          (char *)"--log-level",      (char *)"error",     NULL};
    posix_spawn_file_actions_t actions;
    char line[128] = "";
    const char *port;
    int ends[2];

    if (!is_prepared && atexit(kill_running) == 0)
        is_prepared = true;
    if (pipe2(ends, O_CLOEXEC))
        bench_fail("no pipe");
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, bench->null, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    if (posix_spawn(&server->pid, bench->cordon, &actions, NULL, argv, environ))
        bench_fail("cordon serve does not start");
    running = server->pid;
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    if (read(ends[0], line, sizeof line - 1) <= 0)
        bench_fail("cordon serve says nothing");
    close(ends[0]);
    port = strrchr(line, ':');
    server->port = (unsigned short)(port ? strtoul(port + 1, NULL, 10) : 0);
}

void wire_server_stop(struct wire_server *server)
{
    kill(server->pid, SIGKILL);
    waitpid(server->pid, NULL, 0);
    running = 0;
}

double wire_server_memory(const struct wire_server *server, const char *name)
{
    char path[64];
    char line[256];
    double value = 0;
    FILE *file;

    snprintf(path, sizeof path, "/proc/%d/status", (int)server->pid);
    file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, name, strlen(name)) == 0)
            value = strtod(line + strlen(name) + 1, NULL);
    if (file)
        fclose(file);
    return value;
}

uint64_t wire_server_ticks(const struct wire_server *server)
{
    char path[64];
    unsigned long user = 0;
    unsigned long system = 0;
    FILE *file;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)server->pid);
    file = fopen(path, "re");
    if (!file || fscanf(file, "%*d %*s %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user,
                        &system) != 2)
        bench_fail("%s cannot be read", path);
    fclose(file);
    return user + system;
}

/* --- a connection --- */

static void read_more(struct wire *wire)
{
    ssize_t len;

    if (wire->at == wire->end)
        wire->at = wire->end = 0;
    if (wire->cap - wire->end < BUFFER / 4) {
        memmove(wire->data, wire->data + wire->at, wire->end - wire->at);
        wire->end -= wire->at;
        wire->at = 0;
    }
    if (wire->end == wire->cap)
        bench_fail("a message of more than %d bytes", BUFFER);
    do
        len = read(wire->fd, wire->data + wire->end, wire->cap - wire->end);
    while (len < 0 && errno == EINTR);
    if (len <= 0)
        bench_fail("the server closed the connection");
    wire->end += (size_t)len;
}

static void write_all(const struct wire *wire, const char *data, size_t len)
{
    while (len) {
        ssize_t n = write(wire->fd, data, len);

        if (n <= 0)
            bench_fail("the server takes nothing");
        data += n;
        len -= (size_t)n;
    }
}

/* Masked with zeros, which is a mask like any other. `first` is the first byte of the head. */
static void send_frame(const struct wire *wire, unsigned char first, const char *text, size_t len)
{
    AUTO_FREE char *frame = alloc_resize(NULL, len + 14, 1);
    size_t bytes = len < 126 ? 0 : len < 65536 ? 2 : 8;

    memset(frame, 0, 14);
    frame[0] = (char)first;
    frame[1] = (char)(0x80 | (bytes == 0 ? len : bytes == 2 ? 126 : 127));
    for (size_t i = 0; i < bytes; i++)
        frame[2 + i] = (char)(len >> 8 * (bytes - 1 - i));
    memcpy(frame + 2 + bytes + 4, text, len);
    write_all(wire, frame, 2 + bytes + 4 + len);
}

void wire_send_text(const struct wire *wire, const char *text, size_t len)
{
    send_frame(wire, FRAME_LAST | FRAME_TEXT, text, len);
}

void wire_send_parts(const struct wire *wire, const char *text, size_t len, size_t part)
{
    for (size_t at = 0; at < len; at += part) {
        bool is_last = len - at <= part;
        unsigned first = (at ? 0u : FRAME_TEXT) | (is_last ? FRAME_LAST : 0u);

        send_frame(wire, (unsigned char)first, text + at, is_last ? len - at : part);
    }
}

/* The head of the frame that begins at `at`, when all of the frame is there. */
static bool frame_is_whole(const struct wire *wire, size_t *ret_head, size_t *ret_len)
{
    const unsigned char *p = (const unsigned char *)wire->data + wire->at;
    size_t have = wire->end - wire->at;
    size_t bytes;

    if (have < 2)
        return false;
    bytes = p[1] == 127 ? 8 : p[1] == 126 ? 2 : 0;
    *ret_head = 2 + bytes;
    *ret_len = bytes ? 0 : p[1];
    if (have < *ret_head)
        return false;
    for (size_t i = 0; i < bytes; i++)
        *ret_len = *ret_len << 8 | p[2 + i];
    return have >= *ret_head + *ret_len;
}

const char *wire_next(struct wire *wire, size_t *ret_len)
{
    size_t head;
    char *text;

    wire->data[wire->at] = wire->saved;
    for (;;) {
        unsigned char opcode;

        while (!frame_is_whole(wire, &head, ret_len)) {
            read_more(wire);
        }
        opcode = (unsigned char)wire->data[wire->at] & 15;
        text = wire->data + wire->at + head;
        wire->at += head + *ret_len;
        if (opcode == 1)
            break;
        if (opcode != 9)
            bench_fail("the server says good-bye");
        send_frame(wire, FRAME_LAST | FRAME_PONG, text, *ret_len);
    }
    wire->saved = wire->data[wire->at];
    wire->data[wire->at] = '\0';
    return text;
}

const char *wire_until(struct wire *wire, const char *text)
{
    for (;;) {
        size_t len;
        const char *message = wire_next(wire, &len);

        if (memmem(message, len < LOOK_MAX ? len : LOOK_MAX, text, strlen(text)))
            return message;
    }
}

bool wire_is_ready(const struct wire *wire)
{
    struct pollfd fd = {.fd = wire->fd, .events = POLLIN};

    return wire->at < wire->end || poll(&fd, 1, 0) > 0;
}

unsigned wire_send(struct wire *wire, const char *method, const char *params_fmt, ...)
{
    AUTO_FREE char *params = NULL;
    AUTO_FREE char *text = NULL;
    va_list args;

    va_start(args, params_fmt);
    if (vasprintf(&params, params_fmt, args) < 0)
        bench_fail("no memory");
    va_end(args);
    text =
        alloc_strf("{\"id\":%u,\"method\":\"%s\",\"params\":%s}", ++wire->next_id, method, params);
    wire_send_text(wire, text, strlen(text));
    return wire->next_id;
}

static void upgrade(struct wire *wire)
{
    const char *end;

    write_all(wire, wire_upgrade, strlen(wire_upgrade));
    do {
        read_more(wire);
        end = memmem(wire->data, wire->end, "\r\n\r\n", 4);
    } while (!end);
    wire->at = (size_t)(end + 4 - wire->data);
    wire->saved = wire->data[wire->at];
}

void wire_open(struct wire *wire, const struct wire_server *server)
{
    static const char initialized[] = "{\"method\":\"initialized\",\"params\":{}}";
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(server->port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int on = 1;

    *wire = (struct wire){.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
                          .data = alloc_zero(BUFFER + 1, 1),
                          .cap = BUFFER};
    if (connect(wire->fd, (struct sockaddr *)&address, sizeof address))
        bench_fail("cordon serve cannot be reached");
    setsockopt(wire->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    upgrade(wire);
    wire_send(wire, "initialize", "{\"clientName\":\"bench\"}");
    wire_until(wire, "\"result\"");
    wire_send_text(wire, initialized, sizeof initialized - 1);
}

void wire_close(struct wire *wire)
{
    close(wire->fd);
    free(wire->data);
}
