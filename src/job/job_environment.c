/* See job_environment.h. */
#include "job/job_environment.h"

#include "base/str.h"
#include "base/strv.h"

#include <stdbool.h>
#include <string.h>

/* The values are those of Codex, which models are trained with. */
static const struct fixed_variable {
    const char *name;
    const char *value;
} fixed_variables[] = {
    {"NO_COLOR", "1"},     {"TERM", "dumb"},  {"LANG", "C.UTF-8"}, {"LC_CTYPE", "C.UTF-8"},
    {"LC_ALL", "C.UTF-8"}, {"COLORTERM", ""}, {"PAGER", "cat"},    {"GIT_PAGER", "cat"},
    {"GH_PAGER", "cat"},   {"CODEX_CI", "1"},
};

static const char *const thread_variables[] = {"CODEX_THREAD_ID", "CORDON_THREAD_ID"};

enum {
    FIXED = sizeof fixed_variables / sizeof *fixed_variables,
    THREADS = sizeof thread_variables / sizeof *thread_variables,
};

static bool is_chosen(const struct job_env_request *request, const char *name)
{
    for (const char *const *chosen = request->chosen; chosen && *chosen; chosen++)
        if (str_eq(*chosen, name))
            return true;
    return false;
}

static bool names(const char *entry, const char *name)
{
    size_t len = strlen(name);

    return strncmp(entry, name, len) == 0 && entry[len] == '=';
}

/* Whether an entry of the base makes room for one of ours. */
static bool is_replaced(const struct job_env_request *request, const char *entry)
{
    for (size_t i = 0; i < FIXED; i++)
        if (names(entry, fixed_variables[i].name))
            return !is_chosen(request, fixed_variables[i].name);
    for (size_t i = 0; i < THREADS; i++)
        if (names(entry, thread_variables[i]))
            return request->thread_id != NULL;
    return false;
}

void job_env_build(const struct job_env_request *request, struct strv *ret)
{
    for (char *const *entry = request->base; entry && *entry; entry++)
        if (!is_replaced(request, *entry))
            strv_push(ret, *entry);
    for (size_t i = 0; i < FIXED; i++)
        if (!is_chosen(request, fixed_variables[i].name))
            strv_pushf(ret, "%s=%s", fixed_variables[i].name, fixed_variables[i].value);
    for (size_t i = 0; request->thread_id && i < THREADS; i++)
        strv_pushf(ret, "%s=%s", thread_variables[i], request->thread_id);
}
