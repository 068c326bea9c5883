/* What the rules decide about one command line or host, and where that is written: for people to
 * look at, not for running anything (that is approval/requirement.h). The JSON has the shape of
 * Codex's `execpolicy check` and more keys.
 *
 * Of a shell's script every plain command is judged by itself; of what cannot be read, and of what
 * runs inside of other commands, only rules that ask or forbid count. Pure. */
#pragma once

#include "rules/rules.h"
#include "rules/shell/command_view.h"

struct json_t;

/* The decision about one command of the view. */
struct rules_checked {
    const struct shell_command *command;
    bool is_inside;
    struct rules_decision decision;
};

/* Zeroed is valid. */
struct rules_check {
    const struct rules *rules; /* sealed; borrowed */
    struct command_view view;
    struct rules_checked *items;
    size_t len;
    size_t cap;
    enum rule_verdict strictest;
    bool has_undecided; /* no rule matches one of them */
};

/* `words` is NULL-terminated, at least one; borrowed like the rules until rules_check_done(). */
void rules_check_make(const struct rules *rules, char *const *words, struct rules_check *ret);
void rules_check_done(struct rules_check *check);

/* About all of it: RULE_NONE when no rule decides. */
enum rule_verdict rules_check_verdict(const struct rules_check *check);

/* {"matchedRules", "decision", "sandbox", "commands", "opaque", "problems"}; new reference. */
struct json_t *rules_check_to_json(const struct rules_check *check);

/* The same for a host; `rule` (rules_decide_host()) may be NULL. */
struct json_t *rules_check_host_to_json(const struct rules *rules, const struct host_rule *rule);
