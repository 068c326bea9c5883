/* The options of `cordon --connect URL COMMAND`, which cordon-client reads as well. */
#pragma once

#include "cli/command.h"
#include "cli/run_options.h"

#include <stdint.h>

enum connect_flag {
    CONNECT_DETACHED = 2,
    CONNECT_JSON = 4, /* of ps */
    CONNECT_READ_ONLY = 8,
    CONNECT_FOLLOW = 16,
};

/* Texts are borrowed from argv and are NULL where not given. */
struct connect_options {
    const char *url;
    const char *token_file;
    struct run_options run; /* of run: those of `cordon run` */
    const char *from;
    const char *detach_key;
    const char *signal;
    uint64_t grace_ns;
    unsigned flags; /* of enum connect_flag */
};

/* The command with its own options, by the word that a person types; NULL: there is none. Nothing
 * calls its `run`. */
const struct command *connect_find_command(const char *word);

/* Fills in the defaults and reads the options before the command; `*ret_rest` begins with the
 * command's word. False when there is nothing more to do; `*ret_status` is to be returned then. */
bool connect_parse(char **argv, struct connect_options *options, char ***ret_rest, int *ret_status);
