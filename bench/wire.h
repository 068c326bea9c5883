/* A client of `cordon serve` that costs next to nothing: WebSocket by hand on a blocking socket,
 * and messages as text, in which things are looked for and not parsed. */
#pragma once

#include "bench.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct wire_server {
    pid_t pid;
    unsigned short port;
};

void wire_server_start(struct wire_server *server, const struct bench *bench);
void wire_server_stop(struct wire_server *server);

/* "VmRSS" or another number of kilobytes of it, proc(5). */
double wire_server_memory(const struct wire_server *server, const char *name);

/* Of the processor, by the server alone, in ticks (proc(5)). */
uint64_t wire_server_ticks(const struct wire_server *server);

/* The head of the request for a WebSocket. */
extern const char wire_upgrade[];

/* The sandbox that an unmodified client sends for read-only, JSON. */
extern const char wire_read_only[];

struct wire {
    int fd;
    char *data; /* what was read and not taken yet is [at, end) */
    size_t cap;
    size_t at;
    size_t end;
    char saved; /* what stood behind the last message */
    unsigned next_id;
};

/* Connected and initialized. */
void wire_open(struct wire *wire, const struct wire_server *server);
void wire_close(struct wire *wire);

/* A request; returns its id. */
unsigned wire_send(struct wire *wire, const char *method, const char *params_fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* A message as it is. */
void wire_send_text(const struct wire *wire, const char *text, size_t len);
/* The same in frames of at most `part` bytes. */
void wire_send_parts(const struct wire *wire, const char *text, size_t len, size_t part);

/* The next message, NUL-terminated, good until the next call. */
const char *wire_next(struct wire *wire, size_t *ret_len);

/* Skips messages until one has this text near its beginning, and returns it. */
const char *wire_until(struct wire *wire, const char *text);

/* One read of the socket: whether anything waits. */
bool wire_is_ready(const struct wire *wire);
