/* One prefix rule as a value: which commands it is about, what it says, and where it stands. */
#pragma once

#include "base/strv.h"

#include <stddef.h>

struct shell_command;

/* In order of precedence, which only host_executable knows: for verdicts the strictest counts. */
enum rule_layer {
    RULE_LAYER_USER,
    RULE_LAYER_PROJECT,
    RULE_LAYER_ADMINISTRATOR,
    RULE_LAYER_OPTION, /* named by whoever called: --rules */
};

/* Mildest first, so that the strictest of several is the largest. */
enum rule_verdict {
    RULE_NONE,      /* nothing is said */
    RULE_BYPASS,    /* allow, and without a sandbox: decision "allow" as Codex means it */
    RULE_KEEP,      /* allow, in the sandbox: decision "allow" with sandbox = "keep" */
    RULE_PROMPT,    /* ask first */
    RULE_FORBIDDEN, /* never */
};

/* Who is to be asked; source: spec/exec-core.md 7.2. */
enum rule_reviewer { RULE_REVIEWER_USER, RULE_REVIEWER_AUTOMATIC };

struct rule_place {
    unsigned line;   /* from 1 */
    unsigned column; /* in characters, from 1 */
};

struct prefix_rule {
    struct strv *words; /* per position of the pattern, the words that fit */
    size_t len;         /* at least 1 */
    enum rule_verdict verdict;
    enum rule_reviewer reviewer;
    char *justification; /* NULL: none */
    enum rule_layer layer;
    const char *file; /* lives as long as the rules do */
    struct rule_place place;
};

void prefix_rule_done(struct prefix_rule *rule);

enum prefix_fit {
    PREFIX_OTHER,
    PREFIX_MAYBE, /* the pattern reaches into words that are not known (shell_command.exact) */
    PREFIX_FITS,
};

/* The command is at least as long as the pattern and fits word by word, exactly. `first` stands in
 * for its first word. */
enum prefix_fit prefix_rule_fit(const struct prefix_rule *rule, const char *first,
                                const struct shell_command *command);

/* The pattern for people: "git push|pull". Caller frees. */
char *prefix_rule_text(const struct prefix_rule *rule);

const char *rule_decision_name(enum rule_verdict verdict); /* "allow", "prompt", "forbidden" */
const char *rule_sandbox_name(enum rule_verdict verdict);  /* "bypass", "keep"; else NULL */
const char *rule_layer_name(enum rule_layer layer);        /* "user", "project", ... */
