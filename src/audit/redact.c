/* See redact.h. One pass from left to right over the text: at each place a few small recognisers
 * are asked in turn how long a secret is that begins here, and what is one is replaced. The
 * recognisers see the whole text, so that they may look back at the name that stands before a
 * value. */
#include "audit/redact.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/str.h"

#include <ctype.h>
#include <string.h>

enum { WORDS_BYTES_MAX = 8 * 1024, ENV_VALUE_MIN = 6, SERVICE_KEY_MIN = 16 };

bool audit_is_secret_name(const char *name, unsigned long len)
{
    static const char *const marks[] = {"key",        "secret",        "token",  "passw",
                                        "passphrase", "authorization", "cookie", "credential"};

    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        for (size_t at = 0; at + strlen(marks[i]) <= len; at++)
            if (strncasecmp(name + at, marks[i], strlen(marks[i])) == 0)
                return true;
    return false;
}

/* --- recognisers: the length of the secret at `at`, 0 when there is none --- */

struct place {
    const char *text; /* begins here */
    const char *at;
    char *const *env;
};

static bool is_name_byte(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '-';
}

/* Asked at every byte of the text, so the cheapest question comes first. */
static size_t env_value(const struct place *place)
{
    for (size_t i = 0; place->env && place->env[i]; i++) {
        const char *value = strchr(place->env[i], '=');
        size_t len;

        if (!value || value[1] != *place->at)
            continue;
        len = strlen(value + 1);
        if (len >= ENV_VALUE_MIN && strncmp(place->at, value + 1, len) == 0 &&
            audit_is_secret_name(place->env[i], (size_t)(value - place->env[i])))
            return len;
    }
    return 0;
}

/* The name that ends right before `end`. */
static const char *name_before(const char *text, const char *end)
{
    while (end > text && is_name_byte(end[-1]))
        end--;
    return end;
}

/* A header's value goes on to the end of its line or quote; any other is one word. */
static size_t value_len(const char *value, bool is_header)
{
    return strcspn(value, is_header ? "\"'\n" : " \t\n\"'&;,|<>");
}

/* Behind "NAME=", "NAME:", "NAME: ", and the quotes in '"NAME": "'. */
static size_t named_value(const struct place *place)
{
    const char *end = place->at;
    const char *name;
    bool is_colon;

    while (end > place->text && strchr(" \"'", end[-1]))
        end--;
    if (end == place->text || !strchr("=:", end[-1]) ||
        (end[-1] == '=' && strchr(" ", place->at[-1])))
        return 0;
    is_colon = *--end == ':';
    while (end > place->text && strchr("\"'", end[-1]))
        end--;
    name = name_before(place->text, end);
    if (!audit_is_secret_name(name, (size_t)(end - name)) || strchr(" \"'", *place->at))
        return 0;
    return value_len(place->at, is_colon);
}

/* Behind "--password " in a script. */
static size_t option_value(const struct place *place)
{
    const char *end = place->at;
    const char *name;

    while (end > place->text && end[-1] == ' ')
        end--;
    name = name_before(place->text, end);
    if (end == place->at || *place->at == '-' || *place->at == ' ' || !str_starts(name, "--") ||
        !audit_is_secret_name(name, (size_t)(end - name)))
        return 0;
    if (strchr("\"'", *place->at))
        return 1 + strcspn(place->at + 1, "\"'");
    return value_len(place->at, false);
}

/* The password in "scheme://user:password@host" (RFC 3986, 3.2.1). */
static size_t url_password(const struct place *place)
{
    size_t len = strcspn(place->at, "@/ \t\n\"'");
    const char *start = place->at;

    if (!len || place->at[len] != '@' || start == place->text || start[-1] != ':')
        return 0;
    for (start--; start > place->text && !strchr("/ \"'", start[-1]); start--)
        ;
    return start - place->text >= 3 && strncmp(start - 3, "://", 3) == 0 ? len : 0;
}

/* Beginnings that services document for their keys, so that scanners can find them. */
static size_t service_key(const struct place *place)
{
    static const char *const marks[] = {"ghp_", "gho_",  "ghs_",  "github_pat_", "glpat-",
                                        "sk-",  "xoxb-", "xoxp-", "AKIA",        "ASIA",
                                        "AIza", "eyJ",   "npm_",  "pypi-",       "hf_"};
    size_t len = 0;

    if (place->at > place->text && is_name_byte(place->at[-1]))
        return 0;
    while (is_name_byte(place->at[len]) || place->at[len] == '.')
        len++;
    for (size_t i = 0; len >= SERVICE_KEY_MIN && i < sizeof marks / sizeof *marks; i++)
        if (str_starts(place->at, marks[i]))
            return len;
    return 0;
}

static size_t secret_at(const struct place *place)
{
    static size_t (*const recognisers[])(const struct place *) = {
        env_value, named_value, option_value, url_password, service_key};
    size_t len = 0;

    for (size_t i = 0; i < sizeof recognisers / sizeof *recognisers && !len; i++)
        len = recognisers[i](place);
    return len;
}

/* --- texts --- */

char *audit_redact(const char *text, char *const *env)
{
    AUTO(buf_done) struct buf out = {0};
    struct place place = {.text = text, .at = text, .env = env};

    buf_init(&out, SIZE_MAX / 2);
    while (*place.at) {
        size_t len = secret_at(&place);

        if (len)
            buf_append_str(&out, AUDIT_REDACTED);
        else
            buf_append(&out, place.at, 1);
        place.at += len ? len : 1;
    }
    return buf_take(&out);
}

static bool is_secret_option(const char *word)
{
    return str_starts(word, "--") && !strchr(word, '=') && audit_is_secret_name(word, strlen(word));
}

json_t *audit_redact_words(char *const *words, char *const *env)
{
    json_t *json = json_array();
    size_t bytes = 0;
    bool hides_next = false;

    for (size_t i = 0; words[i] && (bytes += strlen(words[i])) <= WORDS_BYTES_MAX; i++) {
        AUTO_FREE char *text = hides_next && *words[i] != '-' ? alloc_str(AUDIT_REDACTED)
                                                              : audit_redact(words[i], env);

        json_array_append_new(json, json_lossy(text));
        hides_next = is_secret_option(words[i]);
    }
    return json;
}
