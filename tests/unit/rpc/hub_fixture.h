/* A hub and its peers, both ends in this process, for tests: the clock stands still, the other end
 * is a plain socket, and the loop runs until something can be read from it. */
#pragma once

#include "../base/support.h"

#include "loop/loop.h"
#include "rpc/rpc.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fixture {
    struct loop *loop;
    struct rpc_auth *auth; /* lets in anybody: both ends are in this process */
    struct rpc_hub *hub;
    struct rpc_listener *listener;
    struct rpc_peer *peer; /* the last that was opened */
    struct rpc_message message;
    bool is_opened;
    bool is_closed;
    bool is_idle;
    bool has_message;
    bool has_room;
    bool is_readable;
    bool is_answered;
    bool was_answered_before_close;
    char answer[200];
    char why[200];
    int messages;
};

#define PONG "\x8a\x80mask" /* empty, masked */

void fixture_on_open(void *data, struct rpc_peer *peer);
void fixture_on_closed(void *data, struct rpc_peer *peer, const char *why);
void open_hub(struct fixture *f, const struct rpc_hub_options *options);
int fixture_setup(void **state);
int fixture_teardown(void **state);
void wait_for(struct fixture *f, bool *flag);
/* What the other end reads next, after the loop did what there was to do; 0 at the end. */
size_t receive(struct fixture *f, int fd, char *ret, size_t size);
void later(struct fixture *f, uint64_t ms);
int dial(struct fixture *f);
void put(int fd, const void *data, size_t len);
/* A WebSocket, through its handshake. */
int dial_ws(struct fixture *f);
/* A peer that speaks lines; the other end of its socket. */
int attach(struct fixture *f);
void put_line(int fd, const char *line);
void assert_ping(struct fixture *f, int fd);
void assert_nothing_to_read(int fd);
/* `ms` later; a millisecond before nothing can be read yet. */
void later_exactly(struct fixture *f, int fd, uint64_t ms);
void wait_for_bytes(struct fixture *f, uint64_t bytes_in);
