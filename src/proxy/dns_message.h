/* A question of a resolver, as a message of RFC 1035 with EDNS (RFC 6891), and its answer. Pure. Only what the DNS
 * server of a command needs: one question, and at most one record in the answer. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    DNS_NAME_MAX = 256,     /* a name as text, with its NUL */
    DNS_QUESTION_MAX = 260, /* as it was asked: 255 bytes of name, type, class, rounded */
    DNS_QUERY_MAX = 4096,   /* bytes of a message that is looked at */
    DNS_ANSWER_MAX = 640,   /* what dns_answer_format() writes at most */
    DNS_TTL = 30,           /* seconds */
};

/* enum of RFC 1035 3.2.2 and its followers; others are numbers, too */
enum dns_type {
    DNS_A = 1,
    DNS_PTR = 12,
    DNS_AAAA = 28,
    DNS_OPT = 41,
    DNS_IXFR = 251,
    DNS_AXFR = 252,
    DNS_ANY = 255,
};

enum dns_code {
    DNS_NOERROR = 0,
    DNS_FORMERR = 1,
    DNS_SERVFAIL = 2,
    DNS_NXDOMAIN = 3,
    DNS_NOTIMP = 4,
    DNS_REFUSED = 5,
    DNS_BADVERS = 16,
};

/* Everything that the answer repeats; a value, so that it can wait for the answer. */
struct dns_query {
    uint16_t id;
    uint16_t type; /* enum dns_type, or another number */
    bool wants_recursion;
    bool has_edns;
    bool is_odd;             /* the name has other characters than letters, digits, - and _ */
    char name[DNS_NAME_MAX]; /* lower case, no dot at the end; "" is the root */
    unsigned char raw[DNS_QUESTION_MAX]; /* the question as it was asked */
    size_t raw_len;
};

enum dns_verdict {
    DNS_ANSWERABLE, /* `ret` is whole */
    DNS_UNREADABLE, /* to be answered with `ret_code`; `ret` has what could be read */
    DNS_SILENT,     /* no answer: not even a head, or an answer itself */
};

enum dns_verdict dns_query_parse(const void *data, size_t len, struct dns_query *ret,
                                 enum dns_code *ret_code);

/* The one record of an answer. */
struct dns_record {
    enum dns_type type;      /* DNS_A, DNS_AAAA, DNS_PTR */
    unsigned char bytes[16]; /* of an address, in network order */
    const char *name;        /* of DNS_PTR; borrowed */
};

/* Writes the answer: `record` may be NULL (none). Its length. */
size_t dns_answer_format(const struct dns_query *query, enum dns_code code,
                         const struct dns_record *record, unsigned char ret[DNS_ANSWER_MAX]);

/* The address whose name is asked for by `name`, such as "1.0.18.198.in-addr.arpa"; of IPv4 alone. */
bool dns_reverse_parse(const char *name, unsigned char ret_address[4]);
