/* The JSON of network_hook.h. */
#include "policy/network_hook.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/json.h"
#include "base/str.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

static int read_text(const struct json_at *object, const char *key, bool is_needed, char **ret,
                     struct err *err)
{
    struct json_at at = json_at_field(object, key);
    const char *text = NULL;

    if (!is_needed && !json_at_is_given(&at))
        return 0;
    if (json_at_string(&at, &text, err))
        return -1;
    if (!*text)
        return json_at_fail(&at, err, "should not be empty");
    *ret = alloc_str(text);
    return 0;
}

static int read_list(const struct json_at *object, const char *key, struct strv *ret,
                     struct err *err)
{
    struct json_at at = json_at_field(object, key);

    if (json_at_strings(object, key, ret, err))
        return -1;
    return ret->len ? 0 : json_at_fail(&at, err, "should have at least one item");
}

static int read_host(const struct json_at *at, char **ret, struct err *err)
{
    struct net_host host;
    const char *text;
    struct err why;

    if (json_at_string(at, &text, err))
        return -1;
    if (net_host_parse(text, strlen(text), &host, &why))
        return json_at_fail(at, err, "%s", why.msg);
    *ret = alloc_str(host.text);
    return 0;
}

/* By which a server finds the end of a request, and what it is for. */
static bool is_of_connection(const char *name)
{
    static const char *const names[] = {"Host",       "Content-Length", "Transfer-Encoding",
                                        "Connection", "Upgrade",        "Trailer",
                                        "TE",         "Expect"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcasecmp(name, names[i]) == 0)
            return true;
    return false;
}

static int read_names(const struct json_at *object, const char *key, struct strv *ret,
                      struct err *err)
{
    struct json_at at = json_at_field(object, key);

    if (json_at_strings(object, key, ret, err))
        return -1;
    for (size_t i = 0; i < ret->len; i++)
        if (!http_is_token(ret->items[i]) || is_of_connection(ret->items[i]))
            return json_at_fail(&at, err, "\"%s\" is no name of a header that can be taken out",
                                ret->items[i]);
    return 0;
}

static int read_field_rules(const struct json_at *object, const char *key,
                            struct network_field_rule **ret, size_t *ret_len, struct err *err)
{
    struct json_at at = json_at_field(object, key);
    const char *name;
    json_t *value;

    if (!json_at_is_given(&at))
        return 0;
    if (json_at_object(&at, err))
        return -1;
    *ret = alloc_zero(json_object_size(at.value) + 1, sizeof **ret);
    json_object_foreach((json_t *)(uintptr_t)at.value, name, value)
    {
        struct network_field_rule *rule = &(*ret)[(*ret_len)++];

        rule->name = alloc_str(name);
        if (read_list(&at, name, &rule->patterns, err))
            return -1;
    }
    return 0;
}

static int read_injection(const struct json_at *at, struct network_injection *ret, struct err *err)
{
    static const char *const keys[] = {
        "name", "prefix", "secret_env_var", "secret_file", "secret", "stand_in", NULL};

    if (json_at_object(at, err) || json_at_check_keys(at, keys, NULL, err) ||
        read_text(at, "name", true, &ret->name, err) ||
        read_text(at, "prefix", false, &ret->prefix, err) ||
        read_text(at, "secret_env_var", false, &ret->secret_env_var, err) ||
        read_text(at, "secret_file", false, &ret->secret_file, err) ||
        read_text(at, "secret", false, &ret->secret, err) ||
        read_text(at, "stand_in", false, &ret->stand_in, err))
        return -1;
    if (!http_is_token(ret->name) || is_of_connection(ret->name))
        return json_at_fail(at, err, "\"%s\" is no name of a header that can be put in", ret->name);
    if (!ret->secret_env_var == !ret->secret_file)
        return json_at_fail(at, err, "has one of secret_env_var and secret_file");
    if (ret->secret_file && *ret->secret_file != '/')
        return json_at_fail(at, err, "secret_file should be an absolute path");
    if ((ret->prefix && !network_secret_is_valid(ret->prefix)) ||
        (ret->secret && !network_secret_is_valid(ret->secret)))
        return json_at_fail(at, err, "has characters that cannot stand in a header");
    return 0;
}

static int read_injections(const struct json_at *object, struct network_hook *ret, struct err *err)
{
    struct json_at at = json_at_field(object, "inject_request_headers");
    size_t len = 0;

    if (json_at_list(&at, &len, err))
        return -1;
    ret->inject = alloc_zero(len + 1, sizeof *ret->inject);
    for (size_t i = 0; i < len; i++) {
        struct json_at item = json_at_item(&at, i);

        ret->inject_len = i + 1;
        if (read_injection(&item, &ret->inject[i], err))
            return -1;
    }
    return 0;
}

static int read_hook(const struct json_at *at, struct network_hook *ret, struct err *err)
{
    static const char *const keys[] = {"host",
                                       "methods",
                                       "path_prefixes",
                                       "query",
                                       "headers",
                                       "strip_request_headers",
                                       "inject_request_headers",
                                       "origin",
                                       NULL};
    struct json_at host = json_at_field(at, "host");

    if (json_at_object(at, err) || json_at_check_keys(at, keys, NULL, err) ||
        read_host(&host, &ret->host, err) || read_list(at, "methods", &ret->methods, err) ||
        read_list(at, "path_prefixes", &ret->paths, err) ||
        read_field_rules(at, "query", &ret->query, &ret->query_len, err) ||
        read_field_rules(at, "headers", &ret->headers, &ret->headers_len, err) ||
        read_names(at, "strip_request_headers", &ret->strip, err) ||
        read_injections(at, ret, err) || read_text(at, "origin", false, &ret->origin, err))
        return -1;
    for (size_t i = 0; i < ret->methods.len; i++)
        for (char *c = ret->methods.items[i]; *c; c++)
            *c = (char)toupper((unsigned char)*c);
    return 0;
}

static int read_credential(const struct json_at *at, struct network_credential *ret,
                           struct err *err)
{
    static const char *const keys[] = {"name", "hosts", "stand_in", "secret", NULL};
    struct json_at hosts = json_at_field(at, "hosts");
    size_t len;

    if (json_at_object(at, err) || json_at_check_keys(at, keys, NULL, err) ||
        read_text(at, "name", true, &ret->name, err) ||
        read_text(at, "stand_in", false, &ret->stand_in, err) ||
        read_text(at, "secret", false, &ret->secret, err) || json_at_array(&hosts, &len, err))
        return -1;
    if (!len)
        return json_at_fail(&hosts, err, "should have at least one item");
    for (size_t i = 0; i < len; i++) {
        struct json_at item = json_at_item(&hosts, i);
        char *host = NULL;

        if (read_host(&item, &host, err))
            return -1;
        strv_push_take(&ret->hosts, host);
    }
    return !ret->secret || network_secret_is_valid(ret->secret)
               ? 0
               : json_at_fail(at, err, "has characters that cannot stand in a header");
}

/* The length of a list that may be missing. */
static int read_count(const struct json_at *at, size_t *ret, struct err *err)
{
    if (json_at_list(at, ret, err))
        return -1;
    return *ret <= NETWORK_HOOKS_MAX
               ? 0
               : json_at_fail(at, err, "has more than %d items", NETWORK_HOOKS_MAX);
}

int network_hooks_from_json(const struct json_at *at, struct network_hooks *ret, struct err *err)
{
    static const char *const keys[] = {"hooks", "credentials", NULL};
    AUTO(network_hooks_done) struct network_hooks hooks = {0};
    struct json_at hook_list = json_at_field(at, "hooks");
    struct json_at credential_list = json_at_field(at, "credentials");
    size_t hooks_len, credentials_len;

    *ret = hooks;
    if (!json_at_is_given(at))
        return 0;
    if (json_at_object(at, err) || json_at_check_keys(at, keys, NULL, err) ||
        read_count(&hook_list, &hooks_len, err) ||
        read_count(&credential_list, &credentials_len, err))
        return -1;
    hooks.hooks = alloc_zero(hooks_len + 1, sizeof *hooks.hooks);
    hooks.credentials = alloc_zero(credentials_len + 1, sizeof *hooks.credentials);
    while (hooks.hooks_len < hooks_len) {
        struct json_at item = json_at_item(&hook_list, hooks.hooks_len);

        if (read_hook(&item, &hooks.hooks[hooks.hooks_len++], err))
            return -1;
    }
    while (hooks.credentials_len < credentials_len) {
        struct json_at item = json_at_item(&credential_list, hooks.credentials_len);

        if (read_credential(&item, &hooks.credentials[hooks.credentials_len++], err))
            return -1;
    }
    *ret = hooks;
    hooks = (struct network_hooks){0};
    return 0;
}

static json_t *field_rules_to_json(const struct network_field_rule *rules, size_t len)
{
    json_t *json = json_object();

    for (size_t i = 0; i < len; i++)
        json_object_set_new(json, rules[i].name, json_lossy_list(strv_view(&rules[i].patterns)));
    return json;
}

static json_t *hook_to_json(const struct network_hook *hook, bool has_secrets)
{
    json_t *inject = json_array();

    for (size_t i = 0; i < hook->inject_len; i++) {
        const struct network_injection *injection = &hook->inject[i];

        json_array_append_new(inject, json_pack("{s:s, s:s*, s:s*, s:s*, s:s*, s:s*}", "name",
                                                injection->name, "prefix", injection->prefix,
                                                "secret_env_var", injection->secret_env_var,
                                                "secret_file", injection->secret_file, "secret",
                                                has_secrets ? injection->secret : NULL, "stand_in",
                                                has_secrets ? injection->stand_in : NULL));
    }
    return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:s*}", "host", hook->host, "methods",
                     json_lossy_list(strv_view(&hook->methods)), "path_prefixes",
                     json_lossy_list(strv_view(&hook->paths)), "query",
                     field_rules_to_json(hook->query, hook->query_len), "headers",
                     field_rules_to_json(hook->headers, hook->headers_len), "strip_request_headers",
                     json_lossy_list(strv_view(&hook->strip)), "inject_request_headers", inject,
                     "origin", hook->origin);
}

static json_t *to_json(const struct network_hooks *hooks, bool has_secrets)
{
    json_t *list = json_array(), *credentials = json_array();

    for (size_t i = 0; i < hooks->hooks_len; i++)
        json_array_append_new(list, hook_to_json(&hooks->hooks[i], has_secrets));
    for (size_t i = 0; i < hooks->credentials_len; i++) {
        const struct network_credential *credential = &hooks->credentials[i];

        json_array_append_new(credentials,
                              json_pack("{s:s, s:o, s:s*, s:s*}", "name", credential->name, "hosts",
                                        json_lossy_list(strv_view(&credential->hosts)), "stand_in",
                                        has_secrets ? credential->stand_in : NULL, "secret",
                                        has_secrets ? credential->secret : NULL));
    }
    return json_pack("{s:o, s:o}", "hooks", list, "credentials", credentials);
}

json_t *network_hooks_to_json(const struct network_hooks *hooks)
{
    return to_json(hooks, true);
}

json_t *network_hooks_describe(const struct network_hooks *hooks)
{
    return to_json(hooks, false);
}
