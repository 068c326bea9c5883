/* The roots that a client names (roots/list), judged: which of them commands may have as their workspace. Pure but for the
 * host_view. */
#pragma once

#include "base/strv.h"
#include "policy/config/config.h"

#include <jansson.h>

struct host_view;

enum { MCP_ROOTS_MAX = 64 }; /* more are left out */

struct mcp_roots_rule {
    enum config_mcp_roots roots; /* IGNORE takes none */
    const char *workspace;       /* absolute, clean: what it is otherwise */
    const char *home;            /* of the user; NULL: not known */
    char *const *own_paths;      /* clean: what belongs to Cordon; NULL-terminated */
    const struct host_view *view;
};

/* `result` of roots/list. `ret_roots` gets canonical paths of directories; `ret_refused` a line for each that was not taken. */
void mcp_roots_judge(const json_t *result, const struct mcp_roots_rule *rule,
                     struct strv *ret_roots, struct strv *ret_refused);
