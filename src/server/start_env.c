/* See start_env.h. The rules are those of the original, which differ from `cordon run` in two
 * points: the default patterns are KEY, SECRET and TOKEN only, and `include_only` also drops what
 * `set` gave. So the policy is made of the general one (policy/environment.h) with its defaults off
 * and these three patterns in front of the client's. */
#include "server/start_env.h"

#include "base/alloc.h"
#include "policy/config/config.h"
#include "policy/environment.h"
#include "server/call.h"

#include <stdbool.h>
#include <string.h>
#include <unistd.h>

/* Of the original's server, which its children never get. */
static const char *const reserved[] = {"CODEX_EXEC_SERVER_EXIT_ON_STDIN_CLOSE",
                                       "CODEX_EXEC_SERVER_NOISE_AUTH_TOKEN"};

static bool is_reserved(const char *name)
{
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
        if (strcmp(name, reserved[i]) == 0)
            return true;
    return environment_is_reserved(name);
}

static bool names(const char *entry, const char *name)
{
    size_t len = strlen(name);

    return strncmp(entry, name, len) == 0 && entry[len] == '=';
}

/* In place of the one that is there. */
static void start_env_set(struct strv *env, const char *name, const char *value)
{
    for (size_t i = 0; i < env->len; i++) {
        if (!names(env->items[i], name))
            continue;
        free(env->items[i]);
        env->items[i] = alloc_strf("%s=%s", name, value);
        return;
    }
    strv_pushf(env, "%s=%s", name, value);
}

static enum environment_inherit inherit_of(const char *word)
{
    if (strcmp(word, "core") == 0)
        return ENVIRONMENT_CORE;
    return strcmp(word, "none") == 0 ? ENVIRONMENT_NONE : ENVIRONMENT_ALL;
}

static void policy_read(const json_t *object, struct environment_policy *ret)
{
    const char *name;
    json_t *value;

    *ret = (struct environment_policy){.defaults = ENVIRONMENT_DEFAULTS_OFF};
    ret->inherit = inherit_of(json_string_value(json_object_get(object, "inherit")));
    if (!json_is_true(json_object_get(object, "ignoreDefaultExcludes"))) {
        strv_push(&ret->exclude, "*KEY*");
        strv_push(&ret->exclude, "*SECRET*");
        strv_push(&ret->exclude, "*TOKEN*");
    }
    call_words(json_object_get(object, "exclude"), &ret->exclude);
    call_words(json_object_get(object, "includeOnly"), &ret->include_only);
    json_object_foreach(json_object_get(object, "set"), name, value)
        strv_pushf(&ret->set, "%s=%s", name, json_string_value(value));
}

void start_env_build(const json_t *policy, const json_t *env, struct strv *ret)
{
    const char *name;
    json_t *value;

    if (policy) {
        struct environment_policy general;
        struct environment_request request = {
            .policy = &general,
            .base = environ,
            .sandbox = ENVIRONMENT_BARE,
            .network = NETWORK_ENABLED,
        };

        policy_read(policy, &general);
        environment_build(&request, ret, NULL);
        environment_policy_done(&general);
    }
    json_object_foreach((json_t *)env, name, value)
    {
        if (!is_reserved(name) && !strchr(name, '=') && *name)
            start_env_set(ret, name, json_string_value(value));
    }
}

void start_env_for_call(const json_t *policy, const json_t *env, const struct config *config,
                        struct strv *ret)
{
    struct environment_request request = {
        .base = environ,
        .sandbox = ENVIRONMENT_BARE,
        .network = NETWORK_ENABLED,
    };

    if (config)
        request.policy = config_environment(config);
    if (!policy)
        environment_build(&request, ret, NULL);
    start_env_build(policy, env, ret);
}
