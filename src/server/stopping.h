/* How a server ends; server.c has the drawing. */
#pragma once

#include <stdint.h>

struct loop_timer;
struct server;

enum stopping_step { STOPPING_NOT, STOPPING_DRAIN, STOPPING_TERMINATE, STOPPING_CLOSE };

struct stopping {
    enum stopping_step step;
    struct loop_timer *timer; /* for the next look */
    uint64_t until_ns;        /* when the next step comes at the latest */
};

/* Something ended: perhaps the next step can come. */
void stopping_check(struct server *server);

/* To the last step at once: what runs is killed. */
void stopping_now(struct server *server);

void stopping_on_time(void *server);
