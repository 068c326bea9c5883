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

void start_env_own(const struct config *config, struct strv *ret, struct environment_report *report)
{
    struct environment_request request = {
        .base = environ,
        .sandbox = ENVIRONMENT_BARE,
        .network = NETWORK_ENABLED,
    };

    if (config)
        request.policy = config_environment(config);
    environment_build(&request, ret, report);
}

void start_env_for_call(const json_t *policy, const json_t *env, const struct config *config,
                        struct strv *ret)
{
    if (!policy)
        start_env_own(config, ret, NULL);
    start_env_build(policy, env, ret);
}

/* What the original sets: some tools have names of their own. */
static const char *const http_names[] = {"HTTP_PROXY",
                                         "http_proxy",
                                         "HTTPS_PROXY",
                                         "https_proxy",
                                         "WS_PROXY",
                                         "ws_proxy",
                                         "WSS_PROXY",
                                         "wss_proxy",
                                         "YARN_HTTP_PROXY",
                                         "YARN_HTTPS_PROXY",
                                         "npm_config_proxy",
                                         "npm_config_http_proxy",
                                         "npm_config_https_proxy",
                                         "NPM_CONFIG_PROXY",
                                         "NPM_CONFIG_HTTP_PROXY",
                                         "NPM_CONFIG_HTTPS_PROXY",
                                         "BUNDLE_HTTP_PROXY",
                                         "BUNDLE_HTTPS_PROXY",
                                         "PIP_PROXY",
                                         "DOCKER_HTTP_PROXY",
                                         "DOCKER_HTTPS_PROXY",
                                         NULL};
static const char *const generic_names[] = {"ALL_PROXY", "all_proxy", "FTP_PROXY", "ftp_proxy",
                                            NULL};
static const char *const bypass_names[] = {
    "NO_PROXY",        "no_proxy", "npm_config_noproxy", "NPM_CONFIG_NOPROXY", "YARN_NO_PROXY",
    "BUNDLE_NO_PROXY", NULL};
static const char *const on_names[] = {"CODEX_NETWORK_PROXY_ACTIVE", "CORDON_NETWORK_PROXY_ACTIVE",
                                       "NODE_USE_ENV_PROXY", NULL};
static const char *const binding_names[] = {"CODEX_NETWORK_ALLOW_LOCAL_BINDING",
                                            "CORDON_NETWORK_ALLOW_LOCAL_BINDING", NULL};

static void set_all(struct strv *env, const char *const *list, const char *value)
{
    for (; *list; list++)
        start_env_set(env, *list, value);
}

void start_env_add_proxy(bool has_socks, bool allows_local_binding, struct strv *env)
{
    set_all(env, http_names, "http://" PROXY_AT);
    set_all(env, generic_names, has_socks ? "socks5h://" PROXY_AT : "http://" PROXY_AT);
    set_all(env, bypass_names, NO_PROXY_FOR);
    set_all(env, on_names, "1");
    set_all(env, binding_names, allows_local_binding ? "1" : "0");
    start_env_set(env, "ELECTRON_GET_USE_PROXY", "true");
}
