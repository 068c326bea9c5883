/* What decides here is what the server will read: so a path is decoded once, and refused when a server that decodes
 * twice, or folds dots and slashes, would read another one. */
#include "policy/network_hook.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/base64.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/str.h"
#include "base/utf8.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

enum { HEADER_MAX = 8192, RANDOM_BYTES = 64 };

/* --- memory --- */

static void field_rules_done(struct network_field_rule *rules, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        free(rules[i].name);
        strv_done(&rules[i].patterns);
    }
    free(rules);
}

static void hook_done(struct network_hook *hook)
{
    free(hook->host);
    strv_done(&hook->methods);
    strv_done(&hook->paths);
    field_rules_done(hook->query, hook->query_len);
    field_rules_done(hook->headers, hook->headers_len);
    strv_done(&hook->strip);
    for (size_t i = 0; i < hook->inject_len; i++) {
        struct network_injection *injection = &hook->inject[i];

        free(injection->name);
        free(injection->prefix);
        free(injection->secret_env_var);
        free(injection->secret_file);
        free(injection->secret);
        free(injection->stand_in);
    }
    free(hook->inject);
    free(hook->origin);
}

static void credential_done(struct network_credential *credential)
{
    free(credential->name);
    strv_done(&credential->hosts);
    free(credential->stand_in);
    free(credential->secret);
}

void network_hooks_done(struct network_hooks *hooks)
{
    for (size_t i = 0; i < hooks->hooks_len; i++)
        hook_done(&hooks->hooks[i]);
    free(hooks->hooks);
    for (size_t i = 0; i < hooks->credentials_len; i++)
        credential_done(&hooks->credentials[i]);
    free(hooks->credentials);
    *hooks = (struct network_hooks){0};
}

/* By way of JSON, which has all of it. */
void network_hooks_copy(const struct network_hooks *hooks, struct network_hooks *ret)
{
    AUTO_JSON json_t *json = network_hooks_to_json(hooks);
    struct json_at at = json_at_root(json);
    struct err err;

    *ret = (struct network_hooks){0};
    network_hooks_from_json(&at, ret, &err);
}

/* --- more of them --- */

static void *grown(void *old, size_t len, size_t more, size_t size)
{
    void *items = alloc_zero(len + more + 1, size);

    if (len)
        memcpy(items, old, len * size);
    free(old);
    return items;
}

static void take_credential(struct network_hooks *hooks, struct network_credential *credential)
{
    for (size_t i = 0; i < hooks->credentials_len; i++) {
        struct network_credential *there = &hooks->credentials[i];

        if (!str_eq(there->name, credential->name))
            continue;
        for (size_t j = 0; j < credential->hosts.len; j++)
            if (!strv_has(&there->hosts, credential->hosts.items[j]))
                strv_push(&there->hosts, credential->hosts.items[j]);
        credential_done(credential);
        return;
    }
    hooks->credentials = grown(hooks->credentials, hooks->credentials_len, 1, sizeof *credential);
    hooks->credentials[hooks->credentials_len++] = *credential;
}

void network_hooks_add(struct network_hooks *hooks, const struct network_hooks *from)
{
    struct network_hooks more;

    network_hooks_copy(from, &more);
    hooks->hooks = grown(hooks->hooks, hooks->hooks_len, more.hooks_len, sizeof *hooks->hooks);
    for (size_t i = 0; i < more.hooks_len; i++)
        hooks->hooks[hooks->hooks_len++] = more.hooks[i];
    for (size_t i = 0; i < more.credentials_len; i++)
        take_credential(hooks, &more.credentials[i]);
    free(more.hooks);
    free(more.credentials);
}

static bool is_variable(const char *name)
{
    size_t len = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789");

    return len && !name[len] && !isdigit((unsigned char)*name);
}

int network_hooks_add_credential(struct network_hooks *hooks, const char *name, char *const *hosts,
                                 struct err *err)
{
    AUTO(credential_done) struct network_credential credential = {0};
    struct err why;

    if (!is_variable(name))
        return err_set(err, ERR_INVALID, "\"%s\" is no name of a variable", name);
    if (!*hosts)
        return err_set(err, ERR_INVALID, "%s is a credential for no host: say for which", name);
    for (; *hosts; hosts++) {
        struct net_host host;

        if (net_host_parse(*hosts, strlen(*hosts), &host, &why))
            return err_set(err, ERR_INVALID, "\"%s\" is no host of a credential: %s", *hosts,
                           why.msg);
        strv_push(&credential.hosts, host.text);
    }
    if (hooks->credentials_len == NETWORK_HOOKS_MAX)
        return err_set(err, ERR_LIMIT, "more than %d credentials", NETWORK_HOOKS_MAX);
    credential.name = alloc_str(name);
    take_credential(hooks, &credential);
    credential = (struct network_credential){0};
    return 0;
}

/* --- secrets --- */

bool network_secret_is_valid(const char *secret)
{
    for (const char *c = secret; *c; c++)
        if (*c < ' ' || *c > '~')
            return false;
    return *secret && strlen(secret) <= NETWORK_SECRET_MAX;
}

/* Words of letters near its beginning, each with a separator: what says whose the secret is, and of what kind
 * ("github_pat_"). One with a digit in it could be part of what is secret, as in a UUID. */
static size_t public_prefix(const char *secret)
{
    enum { NEAR = 12 };
    size_t len = strlen(secret), prefix = 0;

    for (size_t i = 0; i < NEAR && i < len / 2; i++) {
        if (secret[i] == '_' || secret[i] == '-')
            prefix = i + 1;
        else if (!isalpha((unsigned char)secret[i]))
            break;
    }
    return prefix;
}

char *network_stand_in(const char *secret, const uint8_t random[64])
{
    static const char lower[] = "abcdefghijklmnopqrstuvwxyz",
                      upper[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    enum { SHORTEST = 16 }; /* below that another secret could be the same by chance */
    size_t len = strlen(secret), prefix = public_prefix(secret), changing = 0;
    char *text;

    for (size_t i = prefix; i < len; i++)
        changing += isalnum((unsigned char)secret[i]) != 0;
    if (changing < SHORTEST) {
        text = alloc_str("cordon-stand-in-0123456789abcdef");
        for (size_t i = 0; i < SHORTEST; i++)
            text[16 + i] = lower[random[i] % 16];
        return text;
    }
    text = alloc_str(secret);
    for (size_t i = prefix; i < len; i++) {
        /* more than 64 go on with what was, differently added */
        unsigned byte = (random[i % RANDOM_BYTES] + i / RANDOM_BYTES * 7u) % 256u;

        if (isdigit((unsigned char)text[i]))
            text[i] = (char)('0' + byte % 10);
        else if (islower((unsigned char)text[i]))
            text[i] = lower[byte % 26];
        else if (isupper((unsigned char)text[i]))
            text[i] = upper[byte % 26];
    }
    return text;
}

/* What is encoded, caller frees; NULL: nothing, or no text. */
static char *base64_text(const char *encoded, size_t len)
{
    const size_t size = base64_decoded_len(encoded, len);
    AUTO_FREE char *text = alloc_zero(size + 1, 1);
    struct err ignored;

    return base64_decode(encoded, len, text, &ignored) || strlen(text) != size ? NULL
                                                                               : TAKE_PTR(text);
}

static char *text_base64(const char *text)
{
    char *encoded = alloc_zero(base64_encoded_len(strlen(text)) + 1, 1);

    base64_encode(text, strlen(text), encoded);
    return encoded;
}

/* The longest secret counts, since a shorter one may be its beginning. */
struct secret_found {
    size_t len;
    const char *stand_in;
};

static void look_for(const char *secret, const char *stand_in, const char *at, bool is_begin,
                     struct secret_found *ret)
{
    enum { SHORT = 8 };
    const size_t len = secret && stand_in ? strlen(secret) : 0;

    if (len > ret->len && (len < SHORT ? is_begin && str_eq(at, secret) : str_starts(at, secret)))
        *ret = (struct secret_found){len, stand_in};
}

static struct secret_found find_secret(const struct network_hooks *hooks, const char *at,
                                       bool is_begin)
{
    struct secret_found found = {0};

    for (size_t i = 0; i < hooks->credentials_len; i++)
        look_for(hooks->credentials[i].secret, hooks->credentials[i].stand_in, at, is_begin,
                 &found);
    for (size_t i = 0; i < hooks->hooks_len; i++)
        for (size_t j = 0; j < hooks->hooks[i].inject_len; j++)
            look_for(hooks->hooks[i].inject[j].secret, hooks->hooks[i].inject[j].stand_in, at,
                     is_begin, &found);
    return found;
}

/* `value` with the stand-ins in place of the secrets; NULL: it has none. Caller frees. */
static char *without_secrets(const struct network_hooks *hooks, const char *value)
{
    AUTO(buf_done) struct buf text = {.max = SIZE_MAX / 2};
    bool has_any = false;

    for (const char *at = value; *at;) {
        const struct secret_found found = find_secret(hooks, at, at == value);

        if (found.len)
            buf_append_str(&text, found.stand_in);
        else
            buf_append(&text, at, 1);
        at += found.len ? found.len : 1;
        has_any |= found.len > 0;
    }
    return has_any ? buf_take(&text) : NULL;
}

/* The same of what is in base64, as Basic authorization is, and what configurations have of it. */
static char *without_encoded(const struct network_hooks *hooks, const char *value)
{
    static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                                   "+/";
    AUTO(buf_done) struct buf text = {.max = SIZE_MAX / 2};
    bool has_any = false;

    for (const char *at = value; *at;) {
        const size_t bare = strspn(at, alphabet), len = bare + strspn(at + bare, "=");
        AUTO_FREE char *inside = bare ? base64_text(at, len) : NULL;
        AUTO_FREE char *now = inside ? without_secrets(hooks, inside) : NULL;
        AUTO_FREE char *encoded = now ? text_base64(now) : NULL;

        buf_append(&text, encoded ? encoded : at, encoded ? strlen(encoded) : len ? len : 1);
        at += len ? len : 1;
        has_any |= encoded != NULL;
    }
    return has_any ? buf_take(&text) : NULL;
}

void network_hooks_withhold(const struct network_hooks *hooks, struct strv *env)
{
    char *(*const ways[])(const struct network_hooks *, const char *) = {without_secrets,
                                                                         without_encoded};

    for (size_t i = 0; hooks && i < env->len * 2; i++) {
        char **pair = &env->items[i / 2];
        const char *value = strchr(*pair, '=');
        AUTO_FREE char *now = value ? ways[i % 2](hooks, value + 1) : NULL;
        char *whole = now ? alloc_strf("%.*s=%s", (int)(value - *pair), *pair, now) : NULL;

        if (!whole)
            continue;
        free(*pair);
        *pair = whole;
    }
}

/* --- decision --- */

bool network_hooks_has_hooks(const struct network_hooks *hooks, const char *host)
{
    for (size_t i = 0; i < hooks->hooks_len; i++)
        if (str_eq(hooks->hooks[i].host, host))
            return true;
    return false;
}

bool network_hooks_end_tls(const struct network_hooks *hooks, const char *host)
{
    if (network_hooks_has_hooks(hooks, host))
        return true;
    for (size_t i = 0; i < hooks->credentials_len; i++)
        if (strv_has(&hooks->credentials[i].hosts, host))
            return true;
    return false;
}

static bool matches(const char *pattern, const char *text)
{
    if (str_starts(pattern, "pattern:"))
        return str_match(pattern + strlen("pattern:"), text);
    return str_eq(pattern + (str_starts(pattern, "literal:") ? strlen("literal:") : 0), text);
}

static bool begins(const char *pattern, const char *text)
{
    AUTO_FREE char *open = NULL;

    if (!str_starts(pattern, "pattern:"))
        return str_starts(text,
                          pattern + (str_starts(pattern, "literal:") ? strlen("literal:") : 0));
    open = alloc_strf("%s*", pattern + strlen("pattern:"));
    return str_match(open, text);
}

static int hex(char c)
{
    return isdigit((unsigned char)c)    ? c - '0'
           : isxdigit((unsigned char)c) ? tolower((unsigned char)c) - 'a' + 10
                                        : -1;
}

/* In place: "%41" becomes "A". False for a broken escape, or one of a character that would change the meaning of what is
 * around it. */
static bool decode(char *text, const char *forbidden)
{
    char *to = text;

    for (const char *from = text; *from; from++) {
        int high = 0, low = 0;

        if (*from != '%') {
            *to++ = *from;
            continue;
        }
        high = hex(from[1]);
        low = high < 0 ? -1 : hex(from[2]);
        if (low < 0)
            return false;
        *to = (char)(high * 16 + low);
        if ((unsigned char)*to < ' ' || *to == 0x7f || strchr(forbidden, *to))
            return false;
        to++;
        from += 2;
    }
    *to = '\0';
    return true;
}

/* "." and "..", also in front of parameters (";"), and of spaces, which some take away. */
static bool has_dots(const char *path)
{
    for (const char *at = strchr(path, '/'); at; at = strchr(at + 1, '/')) {
        size_t len = strcspn(at + 1, "/;"), dots = strspn(at + 1, ".");

        if ((dots == 1 || dots == 2) && dots + strspn(at + 1 + dots, " ") == len)
            return true;
    }
    return false;
}

/* The decoded path of a target, caller frees; NULL when it could be read in two ways. */
static char *plain_path(const char *target)
{
    AUTO_FREE char *path = alloc_strn(target, strcspn(target, "?"));
    char *whole;

    if (*path != '/' || strpbrk(path, "\\#") || !decode(path, "/\\%") ||
        !utf8_is_valid(path, strlen(path)) || has_dots(path)) /* of UTF-8: dots in more bytes */
        return NULL;
    whole = path;
    path = NULL;
    return whole;
}

static bool matches_any(const struct strv *patterns, const char *text)
{
    for (size_t i = 0; i < patterns->len; i++)
        if (matches(patterns->items[i], text))
            return true;
    return false;
}

static bool headers_match(const struct network_hook *hook, const struct http_head *head)
{
    for (size_t i = 0; i < hook->headers_len; i++) {
        const struct network_field_rule *rule = &hook->headers[i];
        bool is_there = false;

        for (size_t j = 0; j < head->field_count; j++) {
            if (!http_is_same_field(head->fields[j].name, rule->name))
                continue;
            is_there = true;
            if (!matches_any(&rule->patterns, head->fields[j].value))
                return false;
        }
        if (!is_there)
            return false;
    }
    return true;
}

/* One "name=value" of a query against a rule: does it speak of it, and well? */
static bool query_part_matches(const struct network_field_rule *rule, const char *part, size_t len,
                               bool *ret_is_there)
{
    AUTO_FREE char *name = alloc_strn(part, strcspn(part, "=") < len ? strcspn(part, "=") : len);
    AUTO_FREE char *value = alloc_strn(part + strlen(name), len - strlen(name));
    char *text = value + (*value == '=');

    for (char *c = value; *c; c++)
        *c = *c == '+' ? ' ' : *c;
    for (char *c = name; *c; c++)
        *c = *c == '+' ? ' ' : *c;
    if (!decode(name, "") || !decode(text, ""))
        return false;
    if (!str_eq(name, rule->name))
        return true;
    *ret_is_there = true;
    return matches_any(&rule->patterns, text);
}

/* What some servers take for a separator, too, has no place in a query that is judged. */
static bool query_matches(const struct network_hook *hook, const char *target)
{
    const char *query = strchr(target, '?');

    if (hook->query_len && query && strpbrk(query, ";#"))
        return false;
    for (size_t i = 0; i < hook->query_len; i++) {
        bool is_there = false;

        /* each stands behind the "?" or an "&" */
        for (const char *part = query; part; part = strchr(part + 1, '&'))
            if (!query_part_matches(&hook->query[i], part + 1, strcspn(part + 1, "&"), &is_there))
                return false;
        if (!is_there)
            return false;
    }
    return true;
}

static bool is_about(const struct network_hook *hook, const struct network_hook_request *request,
                     const char *path)
{
    if (!str_eq(hook->host, request->host) || !strv_has(&hook->methods, request->head->method) ||
        !headers_match(hook, request->head) || !query_matches(hook, request->head->target))
        return false;
    for (size_t i = 0; i < hook->paths.len; i++)
        if (begins(hook->paths.items[i], path))
            return true;
    return false;
}

enum network_reason network_hooks_decide(const struct network_hooks *hooks,
                                         const struct network_hook_request *request,
                                         const struct network_hook **ret)
{
    AUTO_FREE char *path = plain_path(request->head->target);
    bool has_hooks = false;

    *ret = NULL;
    for (size_t i = 0; i < hooks->hooks_len && !*ret; i++) {
        has_hooks |= str_eq(hooks->hooks[i].host, request->host);
        if (path && is_about(&hooks->hooks[i], request, path))
            *ret = &hooks->hooks[i];
    }
    return has_hooks && !*ret ? NETWORK_MITM_HOOK_DENIED : NETWORK_REASON_NONE;
}

/* --- what a head becomes --- */

static void remove_field(struct http_head *head, const char *name)
{
    size_t kept = 0;

    for (size_t i = 0; i < head->field_count; i++)
        if (!http_is_same_field(head->fields[i].name, name))
            head->fields[kept++] = head->fields[i];
    head->field_count = kept;
}

static int inject(const struct network_injection *injection, struct http_head *head,
                  struct strv *storage, struct err *err)
{
    remove_field(head, injection->name);
    if (!injection->secret)
        return err_set(err, ERR_NOT_FOUND, "the secret for %s is not there", injection->name);
    if (head->field_count == HTTP_FIELDS_MAX)
        return err_set(err, ERR_LIMIT, "more than %d fields", HTTP_FIELDS_MAX);
    strv_pushf(storage, "%s%s", injection->prefix ? injection->prefix : "", injection->secret);
    head->fields[head->field_count++] =
        (struct http_field){injection->name, storage->items[storage->len - 1]};
    return 0;
}

/* `value` with the secret wherever the stand-in is; NULL when it is nowhere. Caller frees. */
static char *with_secret(const struct network_credential *credential, const char *value)
{
    AUTO(buf_done) struct buf text = {.max = HEADER_MAX + (size_t)NETWORK_SECRET_MAX * 4};
    const char *at = value, *next;
    size_t len = strlen(credential->stand_in);

    if (!strstr(value, credential->stand_in))
        return NULL;
    for (; (next = strstr(at, credential->stand_in)); at = next + len)
        if (!buf_append(&text, at, (size_t)(next - at)) ||
            !buf_append_str(&text, credential->secret))
            return NULL;
    return buf_append_str(&text, at) ? buf_take(&text) : NULL;
}

/* The same within "Basic ", which is in base64. */
static char *with_secret_in_basic(const struct network_credential *credential, const char *value)
{
    static const size_t scheme = sizeof "Basic " - 1;
    AUTO_FREE char *inside = NULL;
    AUTO_FREE char *outside = NULL;
    AUTO_FREE char *encoded = NULL;

    if (strncasecmp(value, "Basic ", scheme) != 0)
        return NULL;
    value += scheme + strspn(value + scheme, " ");
    inside = base64_text(value, strlen(value));
    outside = inside ? with_secret(credential, inside) : NULL;
    encoded = outside ? text_base64(outside) : NULL;
    return encoded ? alloc_strf("Basic %s", encoded) : NULL;
}

static void swap(const struct network_credential *credential, struct http_head *head,
                 struct strv *storage)
{
    for (size_t i = 0; i < head->field_count; i++) {
        struct http_field *field = &head->fields[i];
        char *value = with_secret(credential, field->value);

        if (!value && strcasecmp(field->name, "Authorization") == 0)
            value = with_secret_in_basic(credential, field->value);
        if (!value)
            continue;
        strv_push_take(storage, value);
        field->value = value;
    }
}

int network_hooks_apply(const struct network_hooks *hooks, const struct network_hook *hook,
                        const char *host, struct http_head *head, struct strv *storage,
                        struct err *err)
{
    for (size_t i = 0; i < hooks->credentials_len; i++) {
        const struct network_credential *credential = &hooks->credentials[i];

        if (credential->stand_in && credential->secret && strv_has(&credential->hosts, host))
            swap(credential, head, storage);
    }
    for (size_t i = 0; hook && i < hook->strip.len; i++)
        remove_field(head, hook->strip.items[i]);
    for (size_t i = 0; hook && i < hook->inject_len; i++)
        if (inject(&hook->inject[i], head, storage, err))
            return -1;
    return 0;
}
