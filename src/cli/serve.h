/* The options of `cordon serve`, which cordon-server reads as well. */
#pragma once

#include "base/log.h"
#include "base/strv.h"
#include "cli/options.h"
#include "rpc/transport/auth.h"
#include "server/server_limits.h"

#include <stdbool.h>
#include <stdint.h>

enum { SERVE_LISTEN_MAX = 16 };

/* Texts are borrowed from argv. */
struct serve_options {
    struct strv listen; /* as given */
    struct rpc_auth_options auth;
    const char *config;          /* NULL: where it usually is */
    const char *approval_hook;   /* as given; NULL: none */
    const char *default_sandbox; /* NULL: none */
    struct server_limits limits;
    uint64_t concurrent; /* taken for the sake of Codex's command line: nothing waits here */
    enum log_level log_level;
    enum log_form log_form;
    bool asks_terminal;
};

extern const struct option_group serve_option_groups[];
extern const struct option serve_auth_options[]; /* of struct rpc_auth_options */

/* --- of cordon-server --- */

struct config_file;
struct server_config;

/* For server_options.configure. `config` as in the options; `dir`: in which the program was started. */
int serve_configure(const char *config, const char *dir, struct server_config *ret,
                    struct err *err);

/* Whether there is such a profile, or word; NULL: none is asked for. Else every call that names none would be refused. */
int serve_check_sandbox(const struct config_file *file, const char *name, struct err *err);

/* Fills in the defaults and reads the options, as command_parse(). What `ret` lists is freed by the
 * caller. */
bool serve_parse(char **argv, struct serve_options *ret, int *ret_status);
