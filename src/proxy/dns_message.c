/* See dns_message.h.
 *
 *     head, 12 bytes: id, flags, counts of questions, answers, authorities, additional records
 *     question: labels (length, bytes) up to an empty one, type, class
 *     additional: EDNS's OPT, whose class and TTL have meanings of their own; others are stepped over
 *
 * What is not such a message is answered as the standards want it, or not at all, so that a loop between
 * two that answer errors cannot be. Names are compared as text by all others here, so one that has a dot or
 * anything else odd within a label never becomes text: it is marked, and nobody has it. A question has no compression
 * (nothing comes before it that it could point to), which is how nothing here can go round in circles. */
#include "proxy/dns_message.h"

#include <stdlib.h>
#include <string.h>

enum {
    HEAD = 12,
    LABEL_MAX = 63,
    WIRE_NAME_MAX = 255,
    FIXED = 10, /* type, class, TTL and length of a record */
    CLASS_IN = 1,
    EDNS_PAYLOAD = 1232, /* what fits everywhere without fragments: the flag day of 2020 */
    COMPRESSED = 0xc0,
    FLAG_ANSWER = 0x8000,
    FLAG_RECURSION_WANTED = 0x0100,
    FLAG_RECURSION_AVAILABLE = 0x0080,
};

struct span {
    const unsigned char *data;
    size_t len;
    size_t at;
};

static bool take16(struct span *span, unsigned *ret)
{
    if (span->len - span->at < 2)
        return false;
    *ret = (unsigned)span->data[span->at] << 8 | span->data[span->at + 1];
    span->at += 2;
    return true;
}

static bool is_plain(unsigned char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= '0' && byte <= '9') || byte == '-' || byte == '_';
}

static char lower(unsigned char byte)
{
    return (char)(byte >= 'A' && byte <= 'Z' ? byte - 'A' + 'a' : byte);
}

/* The labels of the question as text. */
static bool take_name(struct span *span, struct dns_query *ret)
{
    size_t start = span->at, text = 0;

    while (span->at < span->len) {
        unsigned len = span->data[span->at++];

        if (!len) {
            ret->name[text] = '\0';
            return true;
        }
        if (len > LABEL_MAX || span->len - span->at < len ||
            span->at + len + 1 - start > WIRE_NAME_MAX)
            return false;
        if (text)
            ret->name[text++] = '.';
        for (unsigned i = 0; i < len; i++) {
            unsigned char byte = span->data[span->at + i];

            ret->is_odd |= !is_plain(byte);
            ret->name[text++] = is_plain(byte) ? lower(byte) : '?';
        }
        span->at += len;
    }
    return false;
}

/* Steps over the name of a record, which may point back. */
static bool skip_name(struct span *span)
{
    while (span->at < span->len) {
        unsigned len = span->data[span->at++];

        if (!len)
            return true;
        if ((len & COMPRESSED) == COMPRESSED) {
            span->at++;
            return span->at <= span->len;
        }
        if (len > LABEL_MAX || span->len - span->at < len)
            return false;
        span->at += len;
    }
    return false;
}

/* The additional records, of which only OPT matters. */
static enum dns_code take_additional(struct span *span, unsigned count, struct dns_query *ret)
{
    unsigned type, class, extended, flags, len;

    for (; count; count--) {
        if (!skip_name(span) || !take16(span, &type) || !take16(span, &class) ||
            !take16(span, &extended) || !take16(span, &flags) || !take16(span, &len) ||
            span->len - span->at < len)
            return DNS_FORMERR;
        span->at += len;
        if (type != DNS_OPT)
            continue;
        if (ret->has_edns) /* RFC 6891, 6.1.1: at most one */
            return DNS_FORMERR;
        ret->has_edns = true;
        if ((extended & 0xff) != 0) /* its version */
            return DNS_BADVERS;
    }
    return span->at == span->len ? DNS_NOERROR : DNS_FORMERR;
}

static enum dns_code take_body(struct span *span, const unsigned counts[4], struct dns_query *ret)
{
    unsigned type, class;

    if (counts[0] != 1 || counts[1] || counts[2] || !take_name(span, ret) || !take16(span, &type) ||
        !take16(span, &class))
        return DNS_FORMERR;
    ret->type = (uint16_t)type;
    ret->raw_len = span->at - HEAD;
    memcpy(ret->raw, span->data + HEAD, ret->raw_len);
    if (class != CLASS_IN || type == DNS_AXFR || type == DNS_IXFR)
        return DNS_REFUSED;
    return take_additional(span, counts[3], ret);
}

enum dns_verdict dns_query_parse(const void *data, size_t len, struct dns_query *ret,
                                 enum dns_code *ret_code)
{
    struct span span = {.data = data, .len = len};
    unsigned id, flags, counts[4];

    memset(ret, 0, sizeof *ret);
    *ret_code = DNS_NOERROR;
    if (len < HEAD || !take16(&span, &id) || !take16(&span, &flags) || flags & FLAG_ANSWER)
        return DNS_SILENT;
    for (size_t i = 0; i < 4; i++)
        take16(&span, &counts[i]);
    ret->id = (uint16_t)id;
    ret->wants_recursion = flags & FLAG_RECURSION_WANTED;
    if (flags >> 11 & 0xf) /* anything but a question: updates, notifications */
        *ret_code = DNS_NOTIMP;
    else
        *ret_code = len > DNS_QUERY_MAX ? DNS_FORMERR : take_body(&span, counts, ret);
    return *ret_code == DNS_NOERROR ? DNS_ANSWERABLE : DNS_UNREADABLE;
}

/* --- answers --- */

struct writer {
    unsigned char *data;
    size_t len;
};

static void put8(struct writer *to, unsigned value)
{
    to->data[to->len++] = (unsigned char)value;
}

static void put16(struct writer *to, unsigned value)
{
    put8(to, value >> 8);
    put8(to, value & 0xff);
}

static void put(struct writer *to, const void *data, size_t len)
{
    memcpy(to->data + to->len, data, len);
    to->len += len;
}

/* `name` is one that was parsed, so it fits. */
static void put_name(struct writer *to, const char *name)
{
    while (*name) {
        size_t len = strcspn(name, ".");

        put8(to, (unsigned)len);
        put(to, name, len);
        name += len + (name[len] == '.');
    }
    put8(to, 0);
}

static void put_record(struct writer *to, const struct dns_record *record)
{
    size_t length_at, start;

    put16(to, COMPRESSED << 8 | HEAD); /* the name of the question */
    put16(to, record->type);
    put16(to, CLASS_IN);
    put16(to, 0);
    put16(to, DNS_TTL);
    length_at = to->len;
    put16(to, 0);
    start = to->len;
    if (record->type == DNS_PTR)
        put_name(to, record->name);
    else
        put(to, record->bytes, record->type == DNS_A ? 4 : 16);
    to->data[length_at] = (unsigned char)((to->len - start) >> 8);
    to->data[length_at + 1] = (unsigned char)(to->len - start);
}

size_t dns_answer_format(const struct dns_query *query, enum dns_code code,
                         const struct dns_record *record, unsigned char ret[DNS_ANSWER_MAX])
{
    struct writer to = {.data = ret};

    put16(&to, query->id);
    put16(&to, FLAG_ANSWER | FLAG_RECURSION_AVAILABLE |
                   (query->wants_recursion ? FLAG_RECURSION_WANTED : 0u) | (code & 0xfu));
    put16(&to, query->raw_len != 0);
    put16(&to, record != NULL);
    put16(&to, 0);
    put16(&to, query->has_edns);
    put(&to, query->raw, query->raw_len);
    if (record)
        put_record(&to, record);
    if (query->has_edns) {
        put8(&to, 0); /* the root */
        put16(&to, DNS_OPT);
        put16(&to, EDNS_PAYLOAD);
        put8(&to, code >> 4); /* the upper half of the code; version 0 and no flags follow */
        put8(&to, 0);
        put16(&to, 0);
        put16(&to, 0);
    }
    return to.len;
}

bool dns_reverse_parse(const char *name, unsigned char ret_address[4])
{
    for (int i = 3; i >= 0; i--) {
        char *end;
        unsigned long number;

        if (*name < '0' || *name > '9' || (name[0] == '0' && name[1] != '.'))
            return false;
        number = strtoul(name, &end, 10);
        if (number > 255 || *end != '.')
            return false;
        ret_address[i] = (unsigned char)number;
        name = end + 1;
    }
    return strcmp(name, "in-addr.arpa") == 0;
}
