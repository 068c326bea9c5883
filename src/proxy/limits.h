/* Every ceiling of the proxy, in one place (docs/decisions/0036-network.md). What hits one is told which it was. */
#pragma once

#include "base/clock.h"

enum {
    LIMIT_HEAD = 8 << 10,      /* bytes of an HTTP head */
    LIMIT_HELLO = 16 << 10,    /* bytes of a TLS hello */
    LIMIT_CONNECTIONS = 1024,  /* of a command at a time */
    LIMIT_VISITORS = 1024,     /* of a published port at a time */
    LIMIT_NAMES = 4096,        /* different ones of a command */
    LIMIT_NAMES_AT_ONCE = 512, /* different ones, before their rate counts */
    LIMIT_NAMES_PER_S = 32,
    LIMIT_LOOK_UPS = 256,   /* questions of a command's resolver that wait for an answer */
    LIMIT_DNS_STREAMS = 32, /* connections of it to the DNS server */
    LIMIT_QUESTIONS = 32,   /* of a command, unanswered */
    LIMIT_ANSWERS = 256,    /* of a command, remembered */
    LIMIT_PIPE = 256 << 10, /* bytes on their way from one socket to the other */
    LIMIT_PIPES_SPARE = 16, /* kept for the next that has something to move */
};

/* Of a wait; shorter in the program that tests of the waits start (meson.build). */
#ifndef LIMIT_SECOND_NS
#define LIMIT_SECOND_NS CLOCK_NS_PER_S
#define LIMIT_IDLE_SECONDS 3600
#endif

#define LIMIT_RESOLVE_NS (10 * LIMIT_SECOND_NS)
#define LIMIT_CONNECT_NS (10 * LIMIT_SECOND_NS)
#define LIMIT_TRY_NS (3 * LIMIT_SECOND_NS)          /* of an address that is not the last */
#define LIMIT_FIRST_BYTES_NS (30 * LIMIT_SECOND_NS) /* of a hello or head that has begun */
#define LIMIT_EXPLICIT_HEAD_NS (10 * LIMIT_SECOND_NS)
#define LIMIT_CLOSING_NS (2 * LIMIT_SECOND_NS) /* for the client to take a refusal */
#define LIMIT_DNS_STREAM_NS (30 * LIMIT_SECOND_NS)
#define LIMIT_IDLE_NS (LIMIT_IDLE_SECONDS * LIMIT_SECOND_NS)
#define LIMIT_FRESH_NS                                                                             \
    (30 * CLOCK_NS_PER_S) /* how long what was looked up counts; that of DNS_TTL */
