/* What would become of one command, before it is run: what the rules say about it, what it is known
 * for, who would be asked, and where it would run. */
#pragma once

#include "approval/requirement.h"
#include "rules/rules_check.h"
#include "workspace/finder.h"

struct explained;
struct json_t;

/* Zeroed is valid. */
struct explained_command {
    const struct explained *about; /* borrowed; as is argv */
    char *const *argv;             /* NULL: none was asked about */
    struct rules *rules;
    struct rules_check check;
    enum command_danger danger;
    bool is_safe; /* known only to read and print */
    bool is_patch;
    struct host_finder finder;
    struct requirement requirement;
};

/* The command of about->execution. Reads the rules from the disk. */
void explained_command_init(struct explained_command *ret, const struct explained *about);
void explained_command_done(struct explained_command *command);

/* What it is known for; what the allow rules, and rules that cannot be read, come to (NULL: nothing); and where it
 * runs. In words; static. */
const char *explained_command_class(const struct explained_command *command);
const char *explained_command_bypass(const struct explained_command *command);
const char *explained_command_broken(const struct explained_command *command);
const char *explained_command_place(const struct explained_command *command);

/* {"argv", "patch", "rules": as rules/rules_check.h, "class": "dangerous" | "known-safe" |
 * "neither", "danger": null or "forced-rm" or "nested-too-deep", "approval": {"policy": null or as
 * policy/config/approval.h, "from"}, "requirement": {"outcome": "skip" | "ask" | "forbid", "cause",
 * "reason", "place": "sandbox" | "none"}, "bypass": null or what it means, "broken": null or what
 * that means}; a new reference.
 */
struct json_t *explained_command_to_json(const struct explained_command *command);
