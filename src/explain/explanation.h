/* What a command would be allowed, and who decided it: of a workspace, as values. `cordon explain` prints them, and a server
 * answers permissions/explain with them.
 *
 * The names below are stable.
 *
 *   {
 *     "profile": {"name": "workspace-write", "from": "the default", "extends": null,
 *                 "definition": {...}},              as policy/profile_json.h writes it
 *     "config": null,                                or the file
 *     "mode": "sandboxed" | "bare",
 *     "limits": {"pids": {"value": 4096, "default": true}, ...},     cpu-time in ns
 *     "network": {"access": "restricted" | "proxied" | "enabled" | "host", "decided_by": "...",
 *                 "policy": null,                    of a proxied one: network_policy_to_json()
 *                 "hooks": [], "credentials": [],    of a proxied one: network_hooks_describe(), without secrets
 *                 "publish": ["127.0.0.1:8080:3000"]},
 *     "watch": "facts" | "off" | "ask" | "learn", "judge": "command" | "every-exec", "git": "read" | "commit",
 *     "protect": ["git", "agents", "editors"],
 *     "tmp": {"whose": "private" | "host" | "none", "path": FOLDER or null, "why": ...},   of private ones
 *     "layer": null,                                 or where what is written goes: {"name": null, "git": false,
 *                 "in_memory": false, "roots": [{"path", "direct", "near"}]}
 *     "folder": "/work", "workspace_roots": ["/work"],
 *     "restricted": true,                            what no entry names is denied
 *     "entries": [{"path", "access", "state": "folder" | "file" | "missing", "protected",
 *                  "decided_by"}],
 *     "layers": {"user-namespace": {"state": "enforced", "why": null}, ...},   {} when refused
 *     "degraded": false, "refusal": null,
 *     "environment": {"passed": [{"name", "reason", "value"}],       value only with --values
 *                     "dropped": [{"name", "reason", "pattern"}]},
 *     "plan": [{"op": ...}, ...],
 *     "warnings": [],
 *     "command": null                                or as explain/command.h has it
 *   }
 */
#pragma once

#include "policy/access.h"

#include <stdbool.h>

struct environment_report;
struct err;
struct execution_options;
struct explained_command;
struct json_t;
struct sandbox;
struct workspace;

/* What is explained; all of it is borrowed. */
struct explained {
    const struct workspace *workspace;
    const struct sandbox *sandbox; /* NULL: none can be made, because of */
    const struct err *refusal;
    const struct execution_options *execution; /* whose rules count, and who is asked */
    const char *approval_from; /* who chose the policy; NULL: no policy was chosen */
    const char *config;        /* the file; NULL: none */
    const char *home;          /* for "~/" in paths; NULL: not known */
    const char *dir;           /* that other paths count from */
    char *const *env;          /* that commands begin with */
    const struct environment_report *env_report; /* what it left out, and why; NULL: not known */
    char *const *warnings;
};

/* The map that holds: with what was added for Cordon's own files when there is a sandbox. */
const struct access_map *explained_access(const struct explained *about);

/* "private", "host" or "none": whose /tmp and /var/tmp commands have. */
const char *explained_whose_tmp(const struct explained *about);

/* "missing", "folder", "file" */
const char *explained_kind_name(enum access_kind kind);

/* The part "environment", and all of it. `command` may be NULL: none was asked about. New references. */
struct json_t *explained_environment(const struct explained *about, bool with_values);
struct json_t *explained_to_json(const struct explained *about,
                                 const struct explained_command *command, bool with_values);
