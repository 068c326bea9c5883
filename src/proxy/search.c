/* See search.h. A name below one of the domains is a guess when what stands in front of that domain has a dot (a single label is
 * meant with the domain) and so few of them that a resolver tries the domains first: "options ndots:5", as clusters
 * have it. After it comes the name by itself, which shows what was meant; if it does not come, the guess was none. */
#include "proxy/search.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/str.h"

#include <stdlib.h>
#include <string.h>

enum { RESOLV_CONF_MAX = 1 << 20, DOTS_USUAL = 1, DOTS_MAX = 15 };

static void read_domains(struct search *ret, const char *at, const char *end)
{
    struct net_host host;
    struct err ignored;

    ret->len = 0; /* the last line counts */
    while (at < end && ret->len < SEARCH_DOMAINS_MAX) {
        size_t len;

        at += strspn(at, " \t");
        len = strcspn(at, " \t\r\n");
        if (!len)
            break;
        if (net_host_parse(at, len, &host, &ignored) == 0 && host.kind == NET_HOST_IS_NAME)
            memcpy(ret->domains[ret->len++], host.text, sizeof host.text);
        at += len;
    }
}

static void read_options(struct search *ret, const char *at, const char *end)
{
    const char *option = memmem(at, (size_t)(end - at), "ndots:", 6);
    unsigned long dots = option ? strtoul(option + 6, NULL, 10) : ret->dots;

    ret->dots = dots < DOTS_MAX ? (unsigned)dots : DOTS_MAX;
}

void search_read(struct search *ret, const char *resolv_conf)
{
    AUTO(buf_done) struct buf text = {0};
    struct err ignored;
    const char *line;

    *ret = (struct search){.dots = DOTS_USUAL};
    if (fd_read_file(resolv_conf, RESOLV_CONF_MAX, &text, &ignored) || !text.len)
        return;
    for (line = text.data; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        const char *end = line + strcspn(line, "\n");

        if (str_starts(line, "search ") || str_starts(line, "search\t") ||
            str_starts(line, "domain ") || str_starts(line, "domain\t"))
            read_domains(ret, line + 7, end);
        else if (str_starts(line, "options"))
            read_options(ret, line, end);
    }
}

size_t search_prefix_len(const struct search *search, const char *name)
{
    size_t len = strlen(name), shortest = 0;

    for (size_t i = 0; i < search->len; i++) {
        size_t domain = strlen(search->domains[i]);

        if (len > domain + 1 && name[len - domain - 1] == '.' &&
            str_ends(name, search->domains[i]) && (!shortest || len - domain - 1 < shortest))
            shortest = len - domain - 1;
    }
    return shortest;
}

bool search_leads_to(const struct search *search, const char *name, const char *target)
{
    size_t len = strlen(name);

    if (strncmp(target, name, len) != 0 || target[len] != '.')
        return false;
    for (size_t i = 0; i < search->len; i++)
        if (str_eq(target + len + 1, search->domains[i]))
            return true;
    return false;
}

static void forget(struct search_guesses *guesses, size_t index)
{
    free(guesses->list[index].name);
    memmove(&guesses->list[index], &guesses->list[index + 1],
            (--guesses->count - index) * sizeof guesses->list[0]);
}

bool search_is_guess(const struct search *search, struct search_guesses *guesses, const char *name,
                     uint16_t asked_by)
{
    size_t len = search_prefix_len(search, name);
    unsigned dots = 0;

    for (size_t i = 0; i < len; i++)
        dots += name[i] == '.';
    if (!dots || dots >= search->dots)
        return false;
    for (size_t i = 0; i < guesses->count; i++)
        if (str_eq(guesses->list[i].name, name))
            return true;
    guesses->list[guesses->count].name = alloc_str(name);
    guesses->list[guesses->count].len = len;
    guesses->list[guesses->count++].asked_by = asked_by;
    return true;
}

bool search_is_meant(struct search_guesses *guesses, const char *name)
{
    size_t len = strlen(name);
    bool is_meant = false;

    for (size_t i = guesses->count; i-- > 0;) {
        if (guesses->list[i].len != len || memcmp(guesses->list[i].name, name, len) != 0)
            continue;
        forget(guesses, i);
        is_meant = true;
    }
    return is_meant;
}

char *search_take(struct search_guesses *guesses, uint16_t *ret_asked_by)
{
    char *name;

    if (!guesses->count)
        return NULL;
    name = guesses->list[0].name;
    *ret_asked_by = guesses->list[0].asked_by;
    guesses->list[0].name = NULL;
    forget(guesses, 0);
    return name;
}
