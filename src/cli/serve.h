/* The options of `cordon serve`, which cordon-server reads as well. */
#pragma once

#include "cli/options.h"
#include "rpc/transport/auth.h"
#include "server/server_limits.h"

#include <stddef.h>

enum { SERVE_LISTEN_MAX = 16 };

enum serve_flag {
    SERVE_JSON_LOG = 1,      /* --log-format json */
    SERVE_ASKS_TERMINAL = 2, /* --approval-terminal */
};

/* Texts are borrowed from argv. */
struct serve_options {
    const char *listen[SERVE_LISTEN_MAX]; /* as given */
    size_t listen_len;
    struct rpc_auth_options auth;
    const char *config;        /* NULL: where it usually is */
    const char *approval_hook; /* as given; NULL: none */
    struct server_limits limits;
    unsigned flags; /* of enum serve_flag */
    const char *log_level;
};

extern const struct option_group serve_option_groups[];

void serve_options_init(struct serve_options *options);
