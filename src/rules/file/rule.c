/* See rule.h. Words of a command are compared as they are: no globs, no case, no look at the disk. A
 * word that a shell may still expand fits nothing for sure, and could fit anything.
 *
 * A host is compared as text in one normal form, so that "Example.COM.:443" and "example.com" are
 * one; what could mean several hosts (a wildcard) or more than a host (a URL) is refused, because a
 * rule that silently matches nothing forbids nothing. */
#include "rules/file/rule.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/path.h"
#include "base/str.h"
#include "rules/shell/shell_words.h"

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* --- commands --- */

void prefix_rule_done(struct prefix_rule *rule)
{
    for (size_t i = 0; i < rule->len; i++)
        strv_done(&rule->words[i]);
    free(rule->words);
    free(rule->justification);
    *rule = (struct prefix_rule){.len = 0};
}

enum prefix_fit prefix_rule_fit(const struct prefix_rule *rule, const char *first,
                                const struct shell_command *command)
{
    size_t known = rule->len < command->exact ? rule->len : command->exact;

    if (!strv_has(&rule->words[0], first))
        return PREFIX_OTHER;
    for (size_t i = 1; i < known; i++)
        if (!strv_has(&rule->words[i], command->words.items[i]))
            return PREFIX_OTHER;
    if (known == rule->len)
        return PREFIX_FITS;
    return command->exact < command->words.len ? PREFIX_MAYBE : PREFIX_OTHER;
}

/* Quoted, when it would not be one word otherwise. */
static void word_print(const char *word, struct buf *ret)
{
    bool is_plain = *word && !strpbrk(word, " \t\n|\"'\\[]");

    buf_append_str(ret, is_plain ? "" : "\"");
    buf_append_str(ret, word);
    buf_append_str(ret, is_plain ? "" : "\"");
}

char *prefix_rule_text(const struct prefix_rule *rule)
{
    struct buf text;

    buf_init(&text, SIZE_MAX / 2);
    for (size_t i = 0; i < rule->len; i++)
        for (size_t j = 0; j < rule->words[i].len; j++) {
            buf_append_str(&text, j ? "|" : i ? " " : "");
            word_print(rule->words[i].items[j], &text);
        }
    return buf_take(&text);
}

const char *rule_decision_name(enum rule_verdict verdict)
{
    static const char *const names[] = {[RULE_NONE] = "none",
                                        [RULE_BYPASS] = "allow",
                                        [RULE_KEEP] = "allow",
                                        [RULE_PROMPT] = "prompt",
                                        [RULE_FORBIDDEN] = "forbidden"};

    return names[verdict];
}

const char *rule_sandbox_name(enum rule_verdict verdict)
{
    return verdict == RULE_BYPASS ? "bypass" : verdict == RULE_KEEP ? "keep" : NULL;
}

const char *rule_layer_name(enum rule_layer layer)
{
    static const char *const names[] = {[RULE_LAYER_USER] = "user",
                                        [RULE_LAYER_PROJECT] = "project",
                                        [RULE_LAYER_ADMINISTRATOR] = "administrator",
                                        [RULE_LAYER_OPTION] = "option"};

    return names[layer];
}

/* --- hosts and programs --- */

const struct rule_word rule_protocols[] = {
    {"http", RULE_PROTOCOL_HTTP},
    {"https", RULE_PROTOCOL_HTTPS},
    {"https_connect", RULE_PROTOCOL_HTTPS},
    {"http-connect", RULE_PROTOCOL_HTTPS},
    {"socks5_tcp", RULE_PROTOCOL_SOCKS5_TCP},
    {"socks5_udp", RULE_PROTOCOL_SOCKS5_UDP},
    {NULL, 0},
};

bool rule_protocol_parse(const char *word, enum rule_protocol *ret)
{
    for (const struct rule_word *known = rule_protocols; known->text; known++)
        if (str_eq(known->text, word)) {
            *ret = (enum rule_protocol)known->value;
            return true;
        }
    return false;
}

const char *rule_protocol_name(enum rule_protocol protocol)
{
    const struct rule_word *known = rule_protocols;

    while (known->value != (int)protocol)
        known++;
    return known->text;
}

void host_rule_done(struct host_rule *rule)
{
    free(rule->host);
    free(rule->justification);
    *rule = (struct host_rule){.host = NULL};
}

/* Cuts ":PORT" off the end. False when what follows the colon is no port. */
static bool cut_port(char *colon)
{
    size_t digits = strspn(colon + 1, "0123456789");
    long port = digits <= 5 ? strtol(colon + 1, NULL, 10) : 0;

    if (colon[1 + digits] || port < 1 || port > 65535)
        return false;
    *colon = '\0';
    return true;
}

/* "[::1]:443" becomes "::1", "name:80" becomes "name", "::1" stays. */
static bool cut_brackets_and_port(char *host)
{
    char *colon = strchr(host, ':');
    char *close = strchr(host, ']');

    if (*host == '[') {
        if (!close || (close[1] && (close[1] != ':' || !cut_port(close + 1))))
            return false;
        *close = '\0';
        memmove(host, host + 1, strlen(host));
        return true;
    }
    if (close || strchr(host, '['))
        return false;
    return !colon || strchr(colon + 1, ':') || cut_port(colon);
}

char *host_rule_host(const char *text, struct err *err)
{
    size_t blanks = strspn(text, " \t\r\n");
    size_t len = strlen(text + blanks);
    AUTO_FREE char *host = NULL;

    while (len && strchr(" \t\r\n", text[blanks + len - 1]))
        len--;
    host = alloc_strn(text + blanks, len);
    if (strpbrk(host, "/?#@")) {
        err_set(err, ERR_INVALID, "\"%.80s\" is more than a host; write only its name", text);
        return NULL;
    }
    if (strchr(host, '*')) {
        err_set(err, ERR_INVALID, "\"%.80s\" has a wildcard; write one rule for each host", text);
        return NULL;
    }
    if (strpbrk(host, " \t\r\n") || !cut_brackets_and_port(host)) {
        err_set(err, ERR_INVALID, "\"%.80s\" is no host; write a name or an address", text);
        return NULL;
    }
    len = strlen(host);
    while (len && host[len - 1] == '.')
        host[--len] = '\0';
    if (!len) {
        err_set(err, ERR_INVALID, "\"%.80s\" names no host", text);
        return NULL;
    }
    for (char *c = host; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    return TAKE_PTR(host);
}

void host_program_done(struct host_program *program)
{
    free(program->name);
    strv_done(&program->paths);
    *program = (struct host_program){.name = NULL};
}

enum host_program_match host_program_find(const struct host_program *programs, size_t len,
                                          const char *path)
{
    const char *name = path_name(path);
    enum host_program_match match = HOST_PROGRAM_UNKNOWN;

    for (size_t i = 0; i < len; i++)
        if (str_eq(programs[i].name, name)) {
            if (!strv_has(&programs[i].paths, path))
                return HOST_PROGRAM_OTHER;
            match = HOST_PROGRAM_LISTED;
        }
    return match;
}
