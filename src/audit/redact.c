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
                                        "passphrase", "authorization", "cookie", "credential",
                                        "bearer",     "authtoken"};
    static const char *const ends[] = {"pass", "sig", "signature"};

    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        for (size_t at = 0; at + strlen(marks[i]) <= len; at++)
            if (strncasecmp(name + at, marks[i], strlen(marks[i])) == 0)
                return true;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (len >= strlen(ends[i]) &&
            strncasecmp(name + len - strlen(ends[i]), ends[i], strlen(ends[i])) == 0)
            return true;
    return false;
}

/* --- options that only their program knows --- */

struct word {
    const char *at;
    size_t len;
};

/* By the manuals of these programs. What may be attached to its option has no space before it. */
static const struct program_option {
    const char *program, *command, *option; /* command: a word that has to be there; NULL */
    bool may_be_attached;
} program_options[] = {
    {"curl", NULL, "-u", true},
    {"curl", NULL, "--user", false},
    {"curl", NULL, "-U", true},
    {"curl", NULL, "--proxy-user", false},
    {"curl", NULL, "-b", true},
    {"docker", "login", "-p", false},
    {"podman", "login", "-p", false},
    {"mariadb", NULL, "-p", true},
    {"mysql", NULL, "-p", true},
    {"mysqladmin", NULL, "-p", true},
    {"mysqldump", NULL, "-p", true},
    {"sshpass", NULL, "-p", true},
    {"zip", NULL, "-P", true},
    {"unzip", NULL, "-P", true},
    {"7z", NULL, "-p", true},
    {"openssl", NULL, "-k", false},
    {"openssl", NULL, "-pass", false},
    {"openssl", NULL, "-passin", false},
    {"openssl", NULL, "-passout", false},
    {"redis-cli", NULL, "-a", false},
    {"ldapsearch", NULL, "-w", true},
    {"kubectl", NULL, "--from-literal", false},
};

static bool is_word(const struct word *word, const char *text)
{
    return word->len == strlen(text) && memcmp(word->at, text, word->len) == 0;
}

/* Also by its path. */
static bool has_word(const struct word *words, size_t len, const char *text)
{
    for (size_t i = 0; i < len; i++) {
        const char *slash = memrchr(words[i].at, '/', words[i].len);
        const char *at = slash ? slash + 1 : words[i].at;
        const struct word name = {at, (size_t)(words[i].at + words[i].len - at)};

        if (is_word(&name, text))
            return true;
    }
    return false;
}

/* Almost never, and then nothing has to be looked at word by word. */
static bool may_have_option(const char *text)
{
    bool found = strstr(text, ":_");

    for (size_t i = 0; !found && i < sizeof program_options / sizeof *program_options; i++)
        found = strstr(text, program_options[i].program);
    return found;
}

enum { NO_SECRET = -1 };

/* Where in the last one of the words of a command a secret begins, as far as its program's options say. */
static int secret_of_option(const struct word *words, size_t len)
{
    const struct word *last = &words[len - 1];

    for (size_t i = 0; i < sizeof program_options / sizeof *program_options; i++) {
        const struct program_option *known = &program_options[i];
        const size_t option_len = strlen(known->option);

        if (!has_word(words, len - 1, known->program) ||
            (known->command && !has_word(words, len - 1, known->command)))
            continue;
        /* mysql takes its password attached alone, and asks when nothing is */
        if (is_word(&words[len - 2], known->option) && last->at[0] != '-' &&
            !(known->option[1] == 'p' && str_starts(known->program, "m")))
            return 0;
        if (known->may_be_attached && last->len > option_len &&
            memcmp(last->at, known->option, option_len) == 0)
            return (int)option_len;
        if (last->len > option_len + 1 && last->at[option_len] == '=' &&
            memcmp(last->at, known->option, option_len) == 0)
            return (int)option_len + 1;
    }
    /* npm config set //registry/:_authToken VALUE */
    if (len > 1 && memmem(words[len - 2].at, words[len - 2].len, ":_", 2) &&
        !memchr(words[len - 2].at, '=', words[len - 2].len) &&
        is_secret_name(words[len - 2].at, words[len - 2].len))
        return 0;
    return NO_SECRET;
}

/* --- recognisers: the length of the secret at `at`, 0 when there is none --- */

struct cursor {
    const char *text; /* begins here */
    const char *at;
    char *const *env;
    bool has_program; /* some text that program_value() knows is in it */
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

/* Behind an option of a program that is named before it in the same command of a script. */
static size_t program_value(const struct cursor *cursor)
{
    enum { WORDS_BACK = 24 };
    const char *first = back_from(cursor->text, cursor->at);
    const char *start = cursor->at;
    struct word words[WORDS_BACK + 1];
    size_t len = 0;
    size_t offset;

    if (!cursor->has_program)
        return 0;
    /* It begins here, or an option does that something is attached to. */
    for (offset = 0; start > first && !strchr(" \t\n\"'", start[-1]) && offset < 20; offset++)
        start--;
    if (start > first && !strchr(" \t\n\"'", start[-1]))
        return 0;
    words[WORDS_BACK] = (struct word){start, strcspn(start, " \t\n\"';|&")};
    for (const char *end = start; end > first && len < WORDS_BACK;) {
        const char *at;

        while (end > first && strchr(" \t\"'", end[-1]))
            end--;
        for (at = end; at > first && !strchr(" \t\n\"';|&(`", at[-1]); at--)
            ;
        if (at == end)
            break;
        len++;
        words[WORDS_BACK - len] = (struct word){at, (size_t)(end - at)};
        end = at;
    }
    if (!len || words[WORDS_BACK].len == 0 ||
        secret_of_option(words + WORDS_BACK - len, len + 1) != (int)offset)
        return 0;
    if (offset == 0 && start > first && strchr("\"'", start[-1]))
        return strcspn(cursor->at, "\"'");
    return words[WORDS_BACK].len - offset;
}

/* A key in PEM (RFC 7468), with its first and last line. */
static size_t pem_key(const struct cursor *cursor)
{
    static const char first[] = "-----BEGIN ", last[] = "-----END ";
    const char *end;

    if (!str_starts(cursor->at, first) ||
        !memmem(cursor->at, strcspn(cursor->at + sizeof first - 1, "-") + sizeof first - 1,
                "PRIVATE KEY", 11))
        return 0;
    end = strstr(cursor->at, last);
    if (!end)
        return strlen(cursor->at);
    end += sizeof last - 1;
    end += strcspn(end, "-");
    return (size_t)(end + strspn(end, "-") - cursor->at);
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
    static const char *const marks[] = {"ghp_",  "gho_",  "ghs_", "github_pat_", "glpat-", "sk-",
                                        "xoxb-", "xoxp-", "AKIA", "ASIA",        "AIza",   "eyJ",
                                        "npm_",  "pypi-", "hf_",  "SG."};
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
        env_value, named_value, option_value, program_value, url_password, service_key, pem_key};
    AUTO(buf_done) struct buf out = {0};
    struct cursor cursor = {
        .text = text, .at = text, .env = env, .has_program = may_have_option(text)};

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

/* The word `words[at]` of a command. */
static char *redact_word(char *const *words, size_t at, bool is_value, char *const *env)
{
    enum { WORDS_BACK = 24 };
    const size_t first = at > WORDS_BACK ? at - WORDS_BACK : 0;
    struct word before[WORDS_BACK + 1];
    int secret = NO_SECRET;

    for (size_t i = first; i <= at; i++)
        before[i - first] = (struct word){words[i], strlen(words[i])};
    if (is_value && *words[at] != '-')
        secret = 0;
    else if (at > first)
        secret = secret_of_option(before, at - first + 1);
    return secret == NO_SECRET ? audit_redact(words[at], env)
                               : alloc_strf("%.*s" AUDIT_REDACTED, secret, words[at]);
}

json_t *audit_redact_words(char *const *words, char *const *env)
{
    json_t *json = json_array();
    size_t bytes = 0;
    size_t left = 0;
    bool is_value = false;

    for (size_t i = 0; words && words[i]; i++) {
        AUTO_FREE char *text = NULL;

        if ((bytes += strlen(words[i])) > WORDS_BYTES_MAX) {
            left++;
            continue;
        }
        text = redact_word(words, i, is_value, env);
        json_array_append_new(json, json_lossy(text));
        is_value = str_starts(words[i], "--") && !strchr(words[i], '=') &&
                   is_secret_name(words[i], strlen(words[i]));
    }
    if (left) {
        AUTO_FREE char *text = alloc_strf("[%zu more words]", left);

        json_array_append_new(json, json_string(text));
    }
    return json;
}
