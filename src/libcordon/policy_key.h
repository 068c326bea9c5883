/* A policy as text, by which it is found again. */
#pragma once

struct cordon_policy;

/* All that it says; `workspace` in place of its own. Caller frees. */
char *policy_key(const struct cordon_policy *policy, const char *workspace);
