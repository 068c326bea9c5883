/* config.toml: Cordon's own, or a Codex one. Two steps, so that a command pays only for the profile
 * that it uses:
 *
 *     config_load()       text -> struct config; syntax, types of the general keys, warnings
 *     config_profile()    one profile with everything it extends; errors of that chain
 *     config_free()
 *
 * Pure: reading the file is the caller's business (no file: no call, no cost). Every error message
 * starts with "FILE:LINE: "; for a syntax error the column follows. The keys: cordon-config(5). */
#pragma once

#include "base/err.h"
#include "base/strv.h"
#include "policy/environment.h"
#include "policy/profile.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct config;
struct protect_choice;

enum { CONFIG_SIZE_MAX = 1 << 20 }; /* bytes of text that config_load() takes */

/* Something that is probably a mistake, but stops nothing: a profile that denies everything, and in a file of
 * Codex's what is not known or has no effect. */
struct config_warning {
    char *file;
    unsigned line;
    char *key;           /* dotted: "permissions.dev.filesytem" */
    const char *nearest; /* the known key that was probably meant, NULL when none is near; static */
    char *text;          /* the whole thing as a sentence, without file and line */
};

/* `file` is used in messages, and in a directory ".codex" it is one of Codex's, which may be for a newer
 * program. In any other what is not known and what has no effect is ERR_INVALID: it could leave something
 * open. NULL on failure. */
struct config *config_load(const char *text, size_t len, const char *file, struct err *err);
void config_free(struct config *config);

const struct config_warning *config_warnings(const struct config *config, size_t *ret_len);

/* [shell_environment_policy]; the default policy when there is none. Owned by the config. */
const struct environment_policy *config_environment(const struct config *config);

/* [mcp]: what clients of `cordon mcp` may decide. Each first word is what holds when nothing is said. */
enum config_mcp_roots { CONFIG_MCP_ROOTS_IGNORE, CONFIG_MCP_ROOTS_NARROW, CONFIG_MCP_ROOTS_TRUST };
enum config_mcp_cancel {
    CONFIG_MCP_CANCEL_INTERRUPT,
    CONFIG_MCP_CANCEL_LEAVE,
    CONFIG_MCP_CANCEL_TERMINATE
};
enum config_mcp_approvals {
    CONFIG_MCP_APPROVALS_PROFILE,
    CONFIG_MCP_APPROVALS_ASK,
    CONFIG_MCP_APPROVALS_NEVER
};
enum config_mcp_sandbox { CONFIG_MCP_SANDBOX_NARROW, CONFIG_MCP_SANDBOX_IGNORE };
enum config_mcp_at_end { CONFIG_MCP_AT_END_KEEP, CONFIG_MCP_AT_END_ACCEPT, CONFIG_MCP_AT_END_DROP };

struct config_mcp {
    enum config_mcp_roots roots;         /* "ignore", "narrow", "trust" */
    enum config_mcp_cancel on_cancel;    /* "interrupt", "leave", "terminate" */
    enum config_mcp_approvals approvals; /* "profile", "ask", "never" */
    enum config_mcp_sandbox sandbox;     /* `client_sandbox`: "narrow", "ignore" */
    uint64_t yield_max_ms;               /* 0: nothing is said */
    const char *layer;                   /* the config's: "new", or a name; NULL: none */
    enum config_mcp_at_end at_end;       /* "keep", "accept", "drop" */
};

/* `config` may be NULL. */
const struct config_mcp *config_mcp(const struct config *config);

/* [audit] trace: what commands do that the audit log gets, too. 1: files, 2: network, 4: exec, as in enum
 * timeline_topic. `config` may be NULL. */
unsigned config_audit_trace(const struct config *config);

/* [undo] default = "layer": commands can be undone, as with --undo of cordon-run(1). `config` may be NULL. */
bool config_undo_is_default(const struct config *config);

/* [layers] at_end: 1: "ask", 2: "keep", 3: "accept", 4: "drop", as --at-end of cordon-run(1), when that says nothing; 0: this
 * says nothing either. `config` may be NULL. */
unsigned config_layer_end(const struct config *config);

/* `ws_auth`: the word for --ws-auth of cordon-serve(1), when that says nothing; NULL: this says nothing
 * either. `config` may be NULL. */
const char *config_ws_auth(const struct config *config);

/* `sandbox`: "auto", "require" or "landlock", as --sandbox of cordon-run(1), when that says nothing; NULL: this
 * says nothing either. `config` may be NULL. */
const char *config_sandbox(const struct config *config);

/* [limits]; what it does not say is 0. NULL: `config` is. */
const struct resource_limits *config_limits(const struct config *config);

/* `protect`: which names are protected; NULL: nothing is said of it. `config` may be NULL. */
const struct protect_choice *config_protect(const struct config *config);

/* The nearest of `dir` (absolute, clean) and the directories above it that has a
 * [projects."PATH"] table with a `trust_level`, when that is "trusted": its own rules count. NULL
 * when it is anything else, or there is none; caller frees. `config` may be NULL. */
char *config_trusted_project(const struct config *config, const char *dir);

/* What rules and configures commands in the trusted projects: paths that need not be there. `config` may be
 * NULL. */
void config_trusted_paths(const struct config *config, struct strv *ret);

/* The name that config_profile() takes when asked with NULL: the `sandbox_mode` ("read-only",
 * "workspace-write", "danger-full-access") if that is set, else `default_permissions`, else NULL
 * (the caller has to choose). */
const char *config_default_profile(const struct config *config);

/* What config_profile() gives; a zeroed one is empty. */
struct config_profile {
    struct profile profile;      /* id and extends set */
    struct strv workspace_roots; /* additional ones, absolute, "~/" expanded */
    struct strv presets;         /* names of presets for tools (workspace/presets.h) */
    char *presets_from;          /* "FILE:LINE: with"; NULL: there are none */
};

void config_profile_done(struct config_profile *profile);

/* The profile `name` (NULL: config_default_profile(), an error when that is NULL): a
 * [permissions.NAME] table, else a built-in by ":name" or by sandbox mode, which are two names of the
 * same: "workspace-write" takes [sandbox_workspace_write] into account by either, but for ":workspace" of a
 * file of Codex's.
 * `config` may be NULL (no file): built-ins only. `home` expands "~/"; NULL makes that an error.
 * The network is enabled by `network.enabled = true`; with rules on domains or mode "limited" it is
 * proxied, unless `enabled = false`, and in a file of Codex's only if `enabled = true`. `ret` is overwritten. */
int config_profile(const struct config *config, const char *name, const char *home,
                   struct config_profile *ret, struct err *err);
