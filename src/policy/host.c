/* See host.h.
 *
 * The one idea: whoever judges a host and whoever connects to it have to read the same from its text. Programs
 * read numbers in many ways (inet_aton() takes octal, hexadecimal, and one to four parts), so a host whose last
 * label is a number is an address, and then it is four plain decimal numbers or nothing. All else that
 * inet_aton() or a resolver could take for an address ends in such a label, and is refused here.
 *
 * Addresses are kept as IPv6, an IPv4 one as ::ffff:a.b.c.d: there is one of each, whatever its writing was.
 * Which are public is a list of what is not for IPv4 (the IANA registry of special addresses), and for IPv6 what
 * is: 2000::/3 is all that was ever given out, less what the registry takes out of it. */
#include "policy/host.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/str.h"

#include <arpa/inet.h>
#include <string.h>

enum { LABEL_MAX = 63, SHOWN_MAX = 60, PORT_DIGITS_MAX = 5 };

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_hex(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f');
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* --- addresses --- */

static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

struct net_address net_address_v4(const uint8_t bytes[4])
{
    struct net_address address;

    memcpy(address.bytes, mapped, sizeof mapped);
    memcpy(address.bytes + sizeof mapped, bytes, 4);
    return address;
}

bool net_address_is_v4(const struct net_address *address)
{
    return memcmp(address->bytes, mapped, sizeof mapped) == 0;
}

bool net_address_equal(const struct net_address *a, const struct net_address *b)
{
    return memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

struct range {
    uint8_t bytes[16];
    unsigned bits;
    const char *word;
};

static bool is_in(const uint8_t *bytes, const struct range *range)
{
    unsigned whole = range->bits / 8;
    unsigned rest = range->bits % 8;
    unsigned mask = 0xff00u >> rest & 0xffu;

    return memcmp(bytes, range->bytes, whole) == 0 &&
           (!rest || (bytes[whole] & mask) == range->bytes[whole]);
}

static const struct range *find_range(const uint8_t *bytes, const struct range *ranges, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (is_in(bytes, &ranges[i]))
            return &ranges[i];
    return NULL;
}

/* IANA IPv4 Special-Purpose Address Registry, and multicast */
static const struct range special_v4[] = {
    {{0}, 8, "unspecified"},
    {{10}, 8, "private"},
    {{100, 64}, 10, "shared by a provider"},
    {{127}, 8, "loopback"},
    {{169, 254}, 16, "link-local"},
    {{172, 16}, 12, "private"},
    {{192, 0, 0}, 24, "reserved"},
    {{192, 0, 2}, 24, "for documentation"},
    {{192, 88, 99}, 24, "reserved"}, /* relays of 6to4 */
    {{192, 168}, 16, "private"},
    {{198, 18}, 15, "for benchmarks"}, /* and where Cordon's names have their addresses */
    {{198, 51, 100}, 24, "for documentation"},
    {{203, 0, 113}, 24, "for documentation"},
    {{224}, 4, "multicast"},
    {{255, 255, 255, 255}, 32, "broadcast"},
    {{240}, 4, "reserved"},
};

/* Of what is outside of 2000::/3, for the word alone; and what is not public in it. */
static const struct range special_v6[] = {
    {{[15] = 0}, 128, "unspecified"},
    {{[15] = 1}, 128, "loopback"},
    {{0xfc}, 7, "private"},
    {{0xfe, 0x80}, 10, "link-local"},
    {{0xfe, 0xc0}, 10, "private"}, /* site-local */
    {{0xff}, 8, "multicast"},
    {{0x20, 0x01, 0x0d, 0xb8}, 32, "for documentation"},
    {{0x3f, 0xff}, 20, "for documentation"},
    {{0x20, 0x01}, 23, "reserved"}, /* Teredo, benchmarks, ORCHID */
};

static const struct range global_v6 = {{0x20}, 3, NULL};

/* Those that lead to an IPv4 address, and where in them it stands. */
static const struct embedded {
    struct range range;
    unsigned at;
} embedded[] = {
    {{{[10] = 0xff, [11] = 0xff}, 96, NULL}, 12}, /* v4-mapped */
    {{{0}, 96, NULL}, 12},                        /* v4-compatible */
    {{{[8] = 0xff, [9] = 0xff}, 96, NULL}, 12},   /* SIIT, RFC 2765 */
    {{{0x00, 0x64, 0xff, 0x9b}, 96, NULL}, 12},   /* NAT64, RFC 6052 */
    {{{0x20, 0x02}, 16, NULL}, 2},                /* 6to4, RFC 3056 */
};

/* ISATAP, RFC 5214: an interface of any network. */
static bool is_isatap(const uint8_t *bytes)
{
    return (bytes[8] & 0xfd) == 0 && bytes[9] == 0 && bytes[10] == 0x5e && bytes[11] == 0xfe;
}

static const char *v4_special(const uint8_t *bytes)
{
    const struct range *range =
        find_range(bytes, special_v4, sizeof special_v4 / sizeof *special_v4);

    return range ? range->word : NULL;
}

/* The four bytes in there; NULL: there are none. */
static const uint8_t *find_v4(const uint8_t *bytes)
{
    for (size_t i = 0; i < sizeof embedded / sizeof *embedded; i++)
        if (is_in(bytes, &embedded[i].range))
            return bytes + embedded[i].at;
    return is_isatap(bytes) ? bytes + 12 : NULL;
}

const char *net_address_special(const struct net_address *address)
{
    const uint8_t *bytes = address->bytes;
    const uint8_t *v4 = find_v4(bytes);
    const struct range *range =
        find_range(bytes, special_v6, sizeof special_v6 / sizeof *special_v6);

    if (range)
        return range->word;
    if (v4 && (is_in(bytes, &global_v6) || !is_isatap(bytes)))
        return v4_special(v4);
    return is_in(bytes, &global_v6) ? NULL : "reserved";
}

bool net_address_leads_to_v4(const struct net_address *address, struct net_address *ret)
{
    const uint8_t *v4 = net_address_is_v4(address) ? NULL : find_v4(address->bytes);

    if (v4)
        *ret = net_address_v4(v4);
    return v4;
}

void net_host_from_address(const struct net_address *address, struct net_host *ret)
{
    *ret = (struct net_host){.kind = NET_HOST_IS_ADDRESS, .address = *address};
    if (net_address_is_v4(address))
        inet_ntop(AF_INET, address->bytes + sizeof mapped, ret->text, sizeof ret->text);
    else
        inet_ntop(AF_INET6, address->bytes, ret->text, sizeof ret->text);
}

/* --- a host --- */

/* What a single byte says about the whole. */
static int check_bytes(const char *text, size_t len, struct err *err)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];

        if (c >= 0x80)
            return err_set(err, ERR_INVALID,
                           "a host is ASCII: write a name of other letters as programs send it, "
                           "with \"xn--\"");
        if (c <= ' ' || c == 0x7f)
            return err_set(err, ERR_INVALID, "a host has no blanks or control characters");
        if (c == '%')
            return err_set(err, ERR_INVALID,
                           "a host has no \"%%\": neither zones nor escapes have one meaning");
        if (c == '/' || c == '@')
            return err_set(err, ERR_INVALID,
                           "should be a host alone, without scheme, user or path");
    }
    return 0;
}

static int parse_v6(const char *text, struct net_host *ret, struct err *err)
{
    struct net_address address;

    if (inet_pton(AF_INET6, text, address.bytes) != 1)
        return err_set(err, ERR_INVALID, "\"%.*s\" is no IPv6 address", SHOWN_MAX, text);
    net_host_from_address(&address, ret);
    return 0;
}

/* Whether a reader of addresses would take the label for a number: "12", "012", "0x", "0x1f". */
static bool label_is_number(const char *label)
{
    bool is_sixteen = label[0] == '0' && label[1] == 'x';

    for (const char *c = label + (is_sixteen ? 2 : 0); *c; c++)
        if (is_sixteen ? !is_hex(*c) : !is_digit(*c))
            return false;
    return true;
}

static int parse_v4(const char *text, bool ends_in_dot, struct net_host *ret, struct err *err)
{
    uint8_t bytes[4];
    struct net_address address;

    /* takes four decimal numbers without leading zeros alone (POSIX; so do glibc and musl) */
    if (ends_in_dot || inet_pton(AF_INET, text, bytes) != 1)
        return err_set(err, ERR_INVALID,
                       "\"%.*s%s\" is no name, as its end is a number, and no address: that is "
                       "four decimal numbers without leading zeros",
                       SHOWN_MAX, text, ends_in_dot ? "." : "");
    address = net_address_v4(bytes);
    net_host_from_address(&address, ret);
    return 0;
}

/* Letters are lower case already. */
static int check_label(const char *label, size_t len, struct err *err)
{
    if (!len)
        return err_set(err, ERR_INVALID, "a name has something between its dots");
    if (len > LABEL_MAX)
        return err_set(err, ERR_INVALID, "a label of a name has at most %d bytes", LABEL_MAX);
    if (label[0] == '-' || label[len - 1] == '-')
        return err_set(err, ERR_INVALID, "a label of a name does not begin or end with \"-\"");
    for (size_t i = 0; i < len; i++)
        if (!is_digit(label[i]) && (label[i] < 'a' || label[i] > 'z') && label[i] != '-' &&
            label[i] != '_')
            return err_set(err, ERR_INVALID, "a name has no \"%c\"", label[i]);
    return 0;
}

static int check_name(const char *text, struct err *err)
{
    for (const char *label = text;; label++) {
        size_t len = strcspn(label, ".");

        if (check_label(label, len, err))
            return -1;
        label += len;
        if (!*label)
            return 0;
    }
}

int net_host_parse(const char *text, size_t len, struct net_host *ret, struct err *err)
{
    struct net_host host = {.kind = NET_HOST_IS_NAME};
    bool has_brackets = len >= 2 && text[0] == '[' && text[len - 1] == ']';
    bool ends_in_dot = len && text[len - 1] == '.';
    const char *last;

    if (!len)
        return err_set(err, ERR_INVALID, "a host is not empty");
    if (check_bytes(text, len, err))
        return -1;
    if (has_brackets) {
        text++;
        len -= 2;
    }
    len -= ends_in_dot;
    if (len > NET_HOST_NAME_MAX)
        return err_set(err, ERR_INVALID, "a host has at most %d bytes", NET_HOST_NAME_MAX);
    for (size_t i = 0; i < len; i++)
        host.text[i] = lower(text[i]);
    if (strchr(host.text, ':') && !ends_in_dot)
        return parse_v6(host.text, ret, err);
    if (has_brackets)
        return err_set(err, ERR_INVALID, "brackets are for IPv6 addresses");
    last = strrchr(host.text, '.');
    if (label_is_number(last ? last + 1 : host.text) && host.text[0] && (!last || last[1]))
        return parse_v4(host.text, ends_in_dot, ret, err);
    if (check_name(host.text, err))
        return -1;
    *ret = host;
    return 0;
}

int net_port_parse(const char *text, uint16_t *ret, struct err *err)
{
    size_t len = strspn(text, "0123456789");
    unsigned long port = 0;

    for (size_t i = 0; i < len && i < PORT_DIGITS_MAX; i++)
        port = port * 10 + (unsigned long)(text[i] - '0');
    if (!len || len > PORT_DIGITS_MAX || text[len] || text[0] == '0' || port > UINT16_MAX)
        return err_set(err, ERR_INVALID, "\"%.*s\" is no port: 1 to 65535", SHOWN_MAX, text);
    *ret = (uint16_t)port;
    return 0;
}

/* Where the host ends and ":PORT" may begin: an IPv6 address without brackets has none. */
static size_t host_len(const char *text)
{
    const char *colon = strchr(text, ':');

    if (text[0] == '[')
        return strcspn(text, "]") + (strchr(text, ']') ? 1 : 0);
    return colon && !strchr(colon + 1, ':') ? (size_t)(colon - text) : strlen(text);
}

/* What is behind the host. */
static int parse_rest(const char *rest, uint16_t *ret_port, struct err *err)
{
    *ret_port = 0;
    if (!*rest)
        return 0;
    if (*rest != ':')
        return err_set(err, ERR_INVALID, "behind the brackets comes \":PORT\", or nothing");
    return net_port_parse(rest + 1, ret_port, err);
}

int net_host_parse_port(const char *text, struct net_host *ret, uint16_t *ret_port, struct err *err)
{
    size_t len = host_len(text);
    struct net_host host;
    uint16_t port;

    if (check_bytes(text, strlen(text), err) || net_host_parse(text, len, &host, err) ||
        parse_rest(text + len, &port, err))
        return -1;
    *ret = host;
    *ret_port = port;
    return 0;
}

char *net_host_format(const char *host, uint16_t port)
{
    if (!port)
        return alloc_str(host);
    return strchr(host, ':') ? alloc_strf("[%s]:%u", host, port) : alloc_strf("%s:%u", host, port);
}

bool net_host_name_is_local(const char *name)
{
    /* of the /etc/hosts of Debian, Fedora and Alpine; RFC 6761 for what lies below */
    static const char *const names[] = {"localhost",     "localhost.localdomain",
                                        "localhost4",    "localhost4.localdomain4",
                                        "localhost6",    "localhost6.localdomain6",
                                        "ip6-localhost", "ip6-loopback",
                                        "loopback",      NULL};

    for (size_t i = 0; names[i]; i++)
        if (str_eq(name, names[i]))
            return true;
    return str_ends(name, ".localhost");
}

bool net_host_is_loopback(const struct net_host *host)
{
    const char *special;

    if (host->kind == NET_HOST_IS_NAME)
        return net_host_name_is_local(host->text);
    special = net_address_special(&host->address);
    return special && str_eq(special, "loopback");
}

/* --- patterns --- */

static const char *const prefixes[] = {
    [HOST_PATTERN_EXACT] = "",
    [HOST_PATTERN_BELOW] = "*.",
    [HOST_PATTERN_WITH_BELOW] = "**.",
    [HOST_PATTERN_ANY] = "*",
};

int host_pattern_parse(const char *text, struct host_pattern *ret, uint16_t *ret_port,
                       struct err *err)
{
    struct host_pattern pattern = {.kind = HOST_PATTERN_EXACT};
    size_t len = host_len(text);
    uint16_t port;

    if (check_bytes(text, strlen(text), err) || parse_rest(text + len, &port, err))
        return -1;
    if (len == 1 && text[0] == '*')
        pattern.kind = HOST_PATTERN_ANY;
    else if (str_starts(text, "**."))
        pattern.kind = HOST_PATTERN_WITH_BELOW;
    else if (str_starts(text, "*."))
        pattern.kind = HOST_PATTERN_BELOW;
    if (pattern.kind != HOST_PATTERN_ANY) {
        size_t skipped = strlen(prefixes[pattern.kind]);

        if (memchr(text + skipped, '*', len - skipped) || memchr(text, '?', len))
            return err_set(err, ERR_INVALID,
                           "wildcards are \"*.NAME\" (what lies below it), \"**.NAME\" (itself, "
                           "too), and \"*\" alone");
        if (net_host_parse(text + skipped, len - skipped, &pattern.host, err))
            return -1;
        if (skipped && pattern.host.kind != NET_HOST_IS_NAME)
            return err_set(err, ERR_INVALID, "there are no wildcards of addresses");
    }
    *ret = pattern;
    *ret_port = port;
    return 0;
}

char *host_pattern_format(const struct host_pattern *pattern, uint16_t port)
{
    AUTO_FREE char *text = alloc_strf("%s%s", prefixes[pattern->kind], pattern->host.text);

    return net_host_format(text, port);
}

bool host_pattern_matches(const struct host_pattern *pattern, const struct net_host *host)
{
    const struct net_host *of = &pattern->host;
    size_t len = strlen(host->text);
    size_t of_len = strlen(of->text);

    if (pattern->kind == HOST_PATTERN_ANY)
        return true;
    if (host->kind != of->kind)
        return false;
    if (str_eq(host->text, of->text))
        return pattern->kind != HOST_PATTERN_BELOW;
    return pattern->kind != HOST_PATTERN_EXACT && len > of_len + 1 &&
           host->text[len - of_len - 1] == '.' && str_ends(host->text, of->text);
}
