/* The rules that people wrote about commands and hosts: `.rules` files in layers, and what they
 * say about one command.
 *
 *     rules_new()
 *     rules_load_layers(), rules_load_file() (rules_disk.h), rules_add_text()     in any order
 *     rules_seal()                                                   now it can be asked
 *     rules_decide(), rules_decide_host()
 *     rules_free()
 *
 * The strictest match wins, whatever layer it stands in; so no layer can loosen another. A file
 * that cannot be read or parsed is a problem, not a failure: commands that no other file decides
 * are then asked about, because that file could have forbidden them.
 * Format and meaning: cordon-rules(1), and Codex's execpolicy, whose files are read as they are. */
#pragma once

#include "base/err.h"
#include "rules/file/rule.h"
#include "rules/file/rules_file.h"

#include <stdbool.h>
#include <stddef.h>

struct rules;
struct shell_command;

enum { RULES_SIZE_MAX = 1 << 20 }; /* bytes of one file */

/* A file that did not become rules. */
struct rules_problem {
    enum rule_layer layer;
    char *file;
    char
        *text; /* "FILE:LINE:COLUMN: what is wrong; what would be right", or why it is unreadable */
};

struct rules *rules_new(void);
void rules_free(struct rules *rules);

/* Takes the rules of one text over. A text that does not parse is remembered as a problem, and of
 * what stands before the error only what asks or forbids counts; `err` says what the problem says.
 */
int rules_add_text(struct rules *rules, const struct rules_origin *origin, const char *text,
                   size_t len, struct err *err);

/* Remembers that `origin->file` could not be read. */
void rules_add_problem(struct rules *rules, const struct rules_origin *origin, const char *text);

/* Orders what was added by its first word; nothing may be added afterwards. */
void rules_seal(struct rules *rules);

/* No rule is about a command, and there is no problem. */
bool rules_is_empty(const struct rules *rules);

/* Borrowed; `*ret_len` may be 0. */
const struct rules_problem *rules_problems(const struct rules *rules, size_t *ret_len);

/* --- one command --- */

struct rule_match {
    const struct prefix_rule *rule; /* of the rules */
    enum prefix_fit fit;
    const char *name; /* the base name in place of the first word, when the rule was found by that;
                         points into the command; else NULL */
    size_t
        at; /* the word of the command that the prefix begins at; not 0: the program may run it */
};

struct rules_decision {
    enum rule_verdict verdict; /* the strictest; RULE_NONE when no rule matches and no file is
                                  broken */
    struct rule_match *items;  /* all that matched */
    size_t len;
    size_t cap;
    const struct rules_problem *problem; /* that made it RULE_PROMPT, as nothing matched; or NULL */
    const struct prefix_rule
        *too_wide; /* that would allow nearly anything without a sandbox, and so
                                           allows nothing: prefix_is_banned(); or NULL */
};

/* The verdict about a command as it stands; rules/shell/command_view.h takes a shell's script apart.
 *
 * Of a program with a path, rules for its base name count, too: those that ask or forbid always;
 * those that allow only when no rule names the path and host_executable lists it, or, when it says
 * nothing about the name, when it lies in a directory of the system. A rule that may match, because
 * the shell has still to expand a word, asks (and never allows). So does one that forbids what stands
 * further on among the words, for a program of which nobody knows whether it runs them.
 *
 * `ret` is overwritten and borrows from `rules` and `command`. */
void rules_decide(const struct rules *rules, const struct shell_command *command,
                  struct rules_decision *ret);
void rules_decision_done(struct rules_decision *decision);

/* A host_executable names this very path. */
bool rules_list_program(const struct rules *rules, const char *path);

/* What a match comes to: the rule's verdict, or RULE_PROMPT for one that only may match. */
enum rule_verdict rule_match_verdict(const struct rule_match *match);

/* The match that the verdict and its reason come from: the longest of the strictest. NULL when
 * nothing matched. */
const struct rule_match *rules_decision_match(const struct rules_decision *decision);

/* --- hosts --- */

/* All that are about one, in no order; borrowed, `*ret_len` may be 0. */
const struct host_rule *rules_hosts(const struct rules *rules, size_t *ret_len);

/* The strictest rule about `host` (as host_rule_host() gives it) and a protocol; NULL without
 * one. */
const struct host_rule *rules_decide_host(const struct rules *rules, const char *host,
                                          enum rule_protocol protocol);
