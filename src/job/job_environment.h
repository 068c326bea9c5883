/* The environment of a job: what the policy gave, and ten variables that keep pagers, colours
 * and locales out of the way, unless the user set them on purpose. */
#pragma once

#include <stddef.h>

struct strv;

struct job_env_request {
    char *const *base;         /* from environment_build(); NULL-terminated; NULL is empty */
    const char *const *chosen; /* names that the user set on purpose: they stay as they are in
                                  `base`; NULL-terminated; NULL: empty */
    const char *thread_id;     /* becomes CODEX_THREAD_ID and CORDON_THREAD_ID; NULL: none */
};

/* Appends the complete environment to `ret`: first what stays of `base`, in its order. */
void job_env_build(const struct job_env_request *request, struct strv *ret);
