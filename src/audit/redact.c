/* One pass from left to right over the text: at each place a few small recognisers
 * are asked in turn how long a secret is that begins here, and what is one is replaced. The
 * recognisers see the whole text, so that they may look back at the name that stands before a
 * value. */
#include "audit/redact.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/str.h"
#include "base/strv.h"

#include <ctype.h>
#include <string.h>

enum {
    WORDS_BYTES_MAX = 8 * 1024,
    ENV_VALUE_MIN = 6,
    SERVICE_KEY_MIN = 16,
    BACK_MAX =
        256, /* bytes: further no recogniser looks back, so that no text takes quadratic time */
};

/* Whether a name says that its value is a secret: in any case of letters. */
static bool is_secret_name(const char *name, unsigned long len)
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

struct cursor {
    const char *text; /* begins here */
    const char *at;
    char *const *env;
};

/* What may be looked back at from there. */
static const char *back_from(const char *text, const char *end)
{
    return end - text > BACK_MAX ? end - BACK_MAX : text;
}

static bool is_name_byte(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '-';
}

/* Asked at every byte of the text, so the cheapest question comes first. */
static size_t env_value(const struct cursor *cursor)
{
    for (size_t i = 0; cursor->env && cursor->env[i]; i++) {
        const char *value = strchr(cursor->env[i], '=');
        size_t len;

        if (!value || value[1] != *cursor->at)
            continue;
        len = strlen(value + 1);
        if (len >= ENV_VALUE_MIN && strncmp(cursor->at, value + 1, len) == 0 &&
            is_secret_name(cursor->env[i], (size_t)(value - cursor->env[i])))
            return len;
    }
    return 0;
}

/* The name that ends right before `end`. */
static const char *name_before(const char *text, const char *end)
{
    const char *first = back_from(text, end);

    while (end > first && is_name_byte(end[-1]))
        end--;
    return end;
}

/* A header's value goes on to the end of its line or quote; any other is one word. */
static size_t value_len(const char *value, bool is_header)
{
    return strcspn(value, is_header ? "\"'\n" : " \t\n\"'&;,|<>");
}

/* Behind "NAME=", "NAME:", "NAME: ", and the quotes in '"NAME": "'. */
static size_t named_value(const struct cursor *cursor)
{
    const char *first = back_from(cursor->text, cursor->at);
    const char *end = cursor->at;
    const char *name;
    bool is_colon;

    if (strchr(" \"'", *cursor->at))
        return 0;
    while (end > first && strchr(" \"'", end[-1]))
        end--;
    if (end == first || !strchr("=:", end[-1]) || (end[-1] == '=' && strchr(" ", cursor->at[-1])))
        return 0;
    is_colon = *--end == ':';
    while (end > first && strchr("\"'", end[-1]))
        end--;
    name = name_before(cursor->text, end);
    if (!is_secret_name(name, (size_t)(end - name)))
        return 0;
    return value_len(cursor->at, is_colon);
}

/* Behind "--password " in a script. */
static size_t option_value(const struct cursor *cursor)
{
    const char *first = back_from(cursor->text, cursor->at);
    const char *end = cursor->at;
    const char *name;

    if (*cursor->at == '-' || *cursor->at == ' ')
        return 0;
    while (end > first && end[-1] == ' ')
        end--;
    if (end == cursor->at)
        return 0;
    name = name_before(cursor->text, end);
    if (!str_starts(name, "--") || !is_secret_name(name, (size_t)(end - name)))
        return 0;
    if (strchr("\"'", *cursor->at))
        return 1 + strcspn(cursor->at + 1, "\"'");
    return value_len(cursor->at, false);
}

/* The password in "scheme://user:password@host" (RFC 3986, 3.2.1); an @ in it should be encoded, but
 * programs take the last one for the end. */
static size_t url_password(const struct cursor *cursor)
{
    const char *first = back_from(cursor->text, cursor->at);
    size_t back = (size_t)(cursor->at - first);
    const char *start;
    const char *end;

    if (!back || cursor->at[-1] != ':' || !(start = memrchr(first, '/', back)))
        return 0;
    start++;
    if (start - cursor->text < 3 || strncmp(start - 3, "://", 3) != 0 ||
        strcspn(start, " \"'") < (size_t)(cursor->at - start))
        return 0;
    end = memrchr(cursor->at, '@', strcspn(cursor->at, "/ \t\n\"'"));
    return end ? (size_t)(end - cursor->at) : 0;
}

/* Beginnings that services document for their keys, so that scanners can find them. */
static size_t service_key(const struct cursor *cursor)
{
    static const char *const marks[] = {"ghp_", "gho_",  "ghs_",  "github_pat_", "glpat-",
                                        "sk-",  "xoxb-", "xoxp-", "AKIA",        "ASIA",
                                        "AIza", "eyJ",   "npm_",  "pypi-",       "hf_"};
    size_t len = 0;
    size_t i = 0;

    if (cursor->at > cursor->text && is_name_byte(cursor->at[-1]))
        return 0;
    while (i < sizeof marks / sizeof *marks && !str_starts(cursor->at, marks[i]))
        i++;
    if (i == sizeof marks / sizeof *marks)
        return 0;
    while (is_name_byte(cursor->at[len]) || cursor->at[len] == '.')
        len++;
    return len >= SERVICE_KEY_MIN ? len : 0;
}

/* --- texts --- */

void audit_secrets(char *const *env, struct strv *ret)
{
    for (; env && *env; env++)
        if (is_secret_name(*env, strcspn(*env, "=")))
            strv_push(ret, *env);
}

char *audit_redact(const char *text, char *const *env)
{
    static size_t (*const recognisers[])(const struct cursor *) = {
        env_value, named_value, option_value, url_password, service_key};
    AUTO(buf_done) struct buf out = {0};
    struct cursor cursor = {.text = text, .at = text, .env = env};

    buf_init(&out, SIZE_MAX / 2);
    while (*cursor.at) {
        size_t len = 0;

        for (size_t i = 0; i < sizeof recognisers / sizeof *recognisers && !len; i++)
            len = recognisers[i](&cursor);
        if (len)
            buf_append_str(&out, AUDIT_REDACTED);
        else
            buf_append(&out, cursor.at, 1);
        cursor.at += len ? len : 1;
    }
    return buf_take(&out);
}

json_t *audit_redact_words(char *const *words, char *const *env)
{
    json_t *json = json_array();
    size_t bytes = 0;
    bool hides_next = false;

    for (size_t i = 0; words && words[i] && (bytes += strlen(words[i])) <= WORDS_BYTES_MAX; i++) {
        AUTO_FREE char *text = hides_next && *words[i] != '-' ? alloc_str(AUDIT_REDACTED)
                                                              : audit_redact(words[i], env);

        json_array_append_new(json, json_lossy(text));
        hides_next = str_starts(words[i], "--") && !strchr(words[i], '=') &&
                     is_secret_name(words[i], strlen(words[i]));
    }
    return json;
}
