/* What would become of one command, before it is run: what the rules say about it, what it is known
 * for, who would be asked, and where it would run. */
#pragma once

#include "approval/requirement.h"
#include "rules/rules_check.h"
#include "workspace/finder.h"

struct buf;
struct json_t;
struct settings;

/* Zeroed is valid. */
struct explained_command {
    const struct settings *settings; /* borrowed; as is argv */
    char *const *argv;               /* NULL: none was asked about */
    struct rules *rules;
    struct rules_check check;
    enum command_danger danger;
    bool is_safe; /* known only to read and print */
    bool is_patch;
    struct host_finder finder;
    struct requirement requirement;
};

/* Reads the rules from the disk. */
void explained_command_init(struct explained_command *ret, const struct settings *settings,
                            char *const *argv);
void explained_command_done(struct explained_command *command);

void explained_command_print(const struct explained_command *command, struct buf *text);

/* {"argv", "patch", "rules": as rules/rules_check.h, "class": "dangerous" | "known-safe" |
 * "neither", "danger": null or "forced-rm" or "nested-too-deep", "approval": {"policy": null or as
 * policy/config/approval.h, "from"}, "requirement": {"outcome": "skip" | "ask" | "forbid", "cause",
 * "reason", "place": "sandbox" | "none"}, "bypass": null or what it means, "broken": null or what
 * that means}; a new reference.
 */
struct json_t *explained_command_to_json(const struct explained_command *command);
