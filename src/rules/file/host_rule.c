/* See host_rule.h. A host is compared as text in one normal form, so that "Example.COM.:443" and
 * "example.com" are one; what could mean several hosts (a wildcard) or more than a host (a URL) is
 * refused, because a rule that silently matches nothing forbids nothing. */
#include "rules/file/host_rule.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/path.h"
#include "base/str.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *word;
    enum rule_protocol protocol;
} protocols[] = {
    {"http", RULE_PROTOCOL_HTTP},
    {"https", RULE_PROTOCOL_HTTPS},
    {"https_connect", RULE_PROTOCOL_HTTPS},
    {"http-connect", RULE_PROTOCOL_HTTPS},
    {"socks5_tcp", RULE_PROTOCOL_SOCKS5_TCP},
    {"socks5_udp", RULE_PROTOCOL_SOCKS5_UDP},
};

enum { PROTOCOLS = sizeof protocols / sizeof *protocols };

bool rule_protocol_parse(const char *word, enum rule_protocol *ret)
{
    for (size_t i = 0; i < PROTOCOLS; i++)
        if (str_eq(protocols[i].word, word)) {
            *ret = protocols[i].protocol;
            return true;
        }
    return false;
}

const char *rule_protocol_name(enum rule_protocol protocol)
{
    size_t i = 0;

    while (protocols[i].protocol != protocol)
        i++;
    return protocols[i].word;
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
