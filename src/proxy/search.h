/* The names that a resolver tries by itself: with "search corp.example" in resolv.conf, www.example.org is perhaps also asked
 * for as www.example.org.corp.example, before or after. Nobody meant those, so nobody is told, or asked, about them. */
#pragma once

#include "policy/host.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SEARCH_DOMAINS_MAX = 6 /* MAXDNSRCH of resolv.h */, SEARCH_GUESSES_MAX = 16 };

/* Of resolv.conf. */
struct search {
    char domains[SEARCH_DOMAINS_MAX][NET_HOST_SIZE];
    size_t len;
    unsigned dots; /* names with fewer are tried with the domains first */
};

void search_read(struct search *ret, const char *resolv_conf);

/* Of what stands in front of the longest of the domains that the name is below; 0: it is below none. */
size_t search_prefix_len(const struct search *search, const char *name);

/* Who means `target` may say `name`, and leave the rest to the resolver: what a program calls a host by, it also says in
 * Host and to TLS. */
bool search_leads_to(const struct search *search, const char *name, const char *target);

/* What a command's resolvers have tried lately, and was not told. */
struct search_guesses {
    struct {
        char *name;        /* as it was tried */
        size_t len;        /* of what was meant, its beginning */
        uint16_t asked_by; /* port */
    } list[SEARCH_GUESSES_MAX];
    size_t count;
};

/* Whether `name`, which may not be reached, was just tried: then it is kept, for it may have been meant after all. There has to be
 * room (search_take()). */
bool search_is_guess(const struct search *search, struct search_guesses *guesses, const char *name,
                     uint16_t asked_by);

/* `name` is asked for: what was tried for its sake is forgotten, and it was meant. */
bool search_is_meant(struct search_guesses *guesses, const char *name);

/* Takes one that nobody came back to; NULL: there is none. The caller frees it. */
char *search_take(struct search_guesses *guesses, uint16_t *ret_asked_by);
