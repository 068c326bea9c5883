/* Who wants to be asked before a command runs: the approval policy as a value, and its words in
 * configuration files and on the wire. The forms of `granular` and
 * of its forerunner `reject` are those of Codex's configuration and protocol. Pure. */
#pragma once

#include "base/err.h"

#include <stdbool.h>

struct config;
struct json_at;
struct json_t;

enum approval_mode {
    APPROVAL_ON_REQUEST, /* only when a command wants out of its sandbox; the default */
    APPROVAL_UNTRUSTED,  /* always, except for what is known to be harmless */
    APPROVAL_GRANULAR,   /* as on-request, but kinds of questions are switched off */
    APPROVAL_NEVER,      /* what would have to be asked is refused */
};

/* The questions that granular may have; the wire names are in the comments. */
enum approval_question {
    APPROVAL_QUESTION_SANDBOX = 1 << 0,     /* sandbox_approval */
    APPROVAL_QUESTION_RULES = 1 << 1,       /* rules */
    APPROVAL_QUESTION_SKILLS = 1 << 2,      /* skill_approval; off when it is not said */
    APPROVAL_QUESTION_PERMISSIONS = 1 << 3, /* request_permissions; off when it is not said */
    APPROVAL_QUESTION_MCP = 1 << 4,         /* mcp_elicitations */
    APPROVAL_QUESTIONS_ALL = (1 << 5) - 1,
};

struct approval_policy {
    enum approval_mode mode;
    unsigned questions; /* of enum approval_question; only read when granular */
    bool
        yes_means_unsandboxed; /* as in Codex: where the mode lets a command leave its sandbox after a
                                   denial, a yes to its first question covers that, and a second
                                   question offers it; also when only words say what was refused */
};

/* "untrusted", "on-request", "never", "granular" (with every question), and "on-failure", which
 * means on-request. ERR_INVALID lists the words. */
int approval_policy_parse(const char *word, struct approval_policy *ret, struct err *err);
const char *approval_mode_name(enum approval_mode mode);

/* A word as above, {"granular": {SWITCH: true or false, ...}}, where true lets that kind of
 * question be asked, or {"reject": {...}}, where true refuses it. Three switches have to be said.
 * Errors begin with the JSON path. */
int approval_policy_from_json(const struct json_at *at, struct approval_policy *ret,
                              struct err *err);

/* The word, or for granular the object with every switch; a new reference. */
struct json_t *approval_policy_to_json(const struct approval_policy *policy);

/* `approval_policy` of the configuration, where the same forms are TOML; NULL when it says none, or
 * there is none. Owned by the config. */
const struct approval_policy *config_approval_policy(const struct config *config);

/* `yes_means_unsandboxed` of the configuration, for whatever policy counts. `config` may be NULL. */
bool config_yes_means_unsandboxed(const struct config *config);
