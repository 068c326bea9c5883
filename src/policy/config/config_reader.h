/* What config.c, config_profile.c and approval.c share: the loaded file, and typed reading of its
 * nodes with errors that start with "FILE:LINE: ". */
#pragma once

#include "policy/config/approval.h"
#include "policy/config/config.h"
#include "policy/config/toml.h"
#include "policy/protect.h"

#include <stdbool.h>

struct config {
    char *file;
    bool is_codexs; /* may have keys that mean nothing here */
    struct toml_node *root;
    struct environment_policy environment;
    const char *sandbox_mode;        /* borrowed from the tree; NULL: not set */
    const char *default_permissions; /* likewise */
    struct approval_policy approval;
    bool has_approval;
    bool yes_means_unsandboxed;
    unsigned audit_trace;
    const char *ws_auth; /* static; NULL: not set */
    const char *sandbox; /* the same */
    struct protect_choice protect;
    struct resource_limits limits;
    struct config_mcp mcp;
    unsigned undo;      /* 0: nothing or "off", 1: "layer" */
    unsigned layer_end; /* as config_layer_end() */
    struct config_warning *warnings;
    size_t warnings_len;
    size_t warnings_cap;
};

/* ERR_INVALID; returns -1. */
int config_fail(const struct config *config, const struct toml_node *node, struct err *err,
                const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* The item `key` of `table`, which has to be of that kind. NULL in `*ret` when there is none. */
int config_item(const struct config *config, const struct toml_node *table, const char *key,
                enum toml_kind kind, const struct toml_node **ret, struct err *err);

/* The value of an item; `*ret` stays as it is when there is none. */
int config_bool(const struct config *config, const struct toml_node *table, const char *key,
                bool *ret, struct err *err);

/* The index of the node, which has to be a string, in the NULL-terminated `words`. */
int config_word(const struct config *config, const struct toml_node *node, const char *const *words,
                unsigned *ret, struct err *err);

/* The node has to be of that kind. */
int config_want(const struct config *config, const struct toml_node *node, enum toml_kind kind,
                struct err *err);

extern const char *const config_limit_keys[LIMIT_COUNT + 1]; /* in the order of the enum; NULL */

/* `limits` of the table, laid over `ret`. */
int config_read_limits(const struct config *config, const struct toml_node *table,
                       struct resource_limits *ret, struct err *err);

/* --- config_mcp.c, for config.c --- */

extern const char *const config_mcp_keys[]; /* NULL-terminated */

int config_read_mcp(struct config *config, struct err *err);

/* --- approval.c, for config.c --- */

/* The keys of a granular approval policy; NULL-terminated. */
extern const char *const approval_switches[];

/* Reads `approval_policy` into the config. */
int config_read_approval(struct config *config, struct err *err);

/* --- config_layer.c, for config.c --- */

extern const char *const config_undo_keys[];   /* NULL-terminated */
extern const char *const config_layers_keys[]; /* NULL-terminated */

/* [undo] and [layers] */
int config_read_layer(struct config *config, struct err *err);
