/* What the files of requirement.h share. Internal to them. */
#pragma once

#include "approval/requirement.h"
#include "rules/rules.h"
#include "rules/shell/command_class.h"

#include <stdbool.h>

/* A judgement about one command, or the strictest about several so far. */
struct judgement {
    enum requirement_outcome outcome;
    enum requirement_cause cause;
    enum command_danger danger;          /* BY_DANGER: which */
    const struct prefix_rule *rule;      /* BY_RULE */
    const struct rules_problem *problem; /* BY_PROBLEM */
};

/* What all commands of a view come to. */
struct judgements {
    struct judgement strictest;
    struct judgement held; /* the strictest of rules that forbid, for certain or when the shell has
                              expanded a word, and of broken files; outcome SKIP: none */
    bool has_rule;         /* that matches any of them */
    unsigned questions;    /* of enum approval_question: what would have to be asked */
    bool is_bypass;        /* every command is allowed by a rule, without a sandbox */
    bool is_planted;       /* but one of the programs may be another one by now */
    const struct shell_command *undecided; /* the first that no rule decides, of those with the
                                              outcome of the strictest; NULL: none */
};

void judgements_make(const struct requirement_request *request, const struct command_view *view,
                     struct judgements *ret);

/* The call wants more than its profile, and nobody has granted it yet. */
bool request_wants_out(const struct requirement_request *request);

/* Sets `reason`, for a requirement that is whole otherwise. */
void requirement_explain(const struct requirement_request *request,
                         const struct judgement *judgement, struct requirement *ret);

/* Sets `proposal`: see struct requirement. */
void requirement_propose(const struct requirement_request *request, const struct command_view *view,
                         const struct judgements *judgements, struct requirement *ret);
