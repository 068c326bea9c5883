/* Sets of bytes: bracket expressions (POSIX.1-2017 XBD 9.3.5, in the POSIX locale) and the letters
 * that abbreviate some of them. See ere_program.h. */
#include "exec/ere_program.h"

#include <ctype.h>
#include <string.h>

/* XBD 7.3.1. Only ASCII is asked, where these do not depend on the locale. */
static const struct named_class {
    const char *name;
    int (*has)(int byte);
} classes[] = {
    {"alpha", isalpha}, {"digit", isdigit}, {"alnum", isalnum}, {"upper", isupper},
    {"lower", islower}, {"space", isspace}, {"blank", isblank}, {"punct", ispunct},
    {"print", isprint}, {"graph", isgraph}, {"cntrl", iscntrl}, {"xdigit", isxdigit},
};

static bool set_add_class(struct ere_set *set, const char *name, size_t len)
{
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
        if (strlen(classes[i].name) != len || memcmp(classes[i].name, name, len) != 0)
            continue;
        for (int byte = 0; byte < 0x80; byte++)
            if (classes[i].has(byte))
                ere_set_add(set, (uint8_t)byte);
        return true;
    }
    return false;
}

static void set_invert(struct ere_set *set)
{
    for (size_t i = 0; i < sizeof set->bits; i++)
        set->bits[i] = (uint8_t)~set->bits[i];
}

bool ere_set_of_letter(char letter, struct ere_set *ret)
{
    struct ere_set set = {0};

    switch (letter | 0x20) {
    case 'd':
        set_add_class(&set, "digit", 5);
        break;
    case 's':
        set_add_class(&set, "space", 5);
        break;
    case 'w':
        set_add_class(&set, "alnum", 5);
        ere_set_add(&set, '_');
        break;
    default:
        return false;
    }
    if (isupper((unsigned char)letter))
        set_invert(&set);
    *ret = set;
    return true;
}

/* "[:name:]", `*at` pointing to the name. */
static const char *set_parse_class(const char **at, struct ere_set *set)
{
    const char *end = strstr(*at, ":]");

    if (!end || !set_add_class(set, *at, (size_t)(end - *at)))
        return "no such class; known are [:alpha:], [:digit:], [:alnum:], [:upper:], [:lower:], "
               "[:space:], [:blank:], [:punct:], [:print:], [:graph:], [:cntrl:], [:xdigit:]";
    *at = end + 2;
    return NULL;
}

/* One byte, or a range. */
static const char *set_parse_range(const char **at, struct ere_set *set)
{
    uint8_t first = (uint8_t) * (*at)++;
    uint8_t last = first;

    if ((*at)[0] == '-' && (*at)[1] && (*at)[1] != ']') {
        last = (uint8_t)(*at)[1];
        *at += 2;
    }
    if (last < first)
        return "a range goes backwards";
    for (unsigned byte = first; byte <= last; byte++)
        ere_set_add(set, (uint8_t)byte);
    return NULL;
}

const char *ere_set_parse(const char **at, struct ere_set *ret)
{
    struct ere_set set = {0};
    const char *p = *at;
    bool is_inverted = *p == '^';
    const char *wrong = NULL;
    const char *first;

    p += is_inverted;
    for (first = p; !wrong && (p == first || *p != ']');) {
        if (!*p)
            return "\"[\" has no \"]\"";
        if (p[0] == '[' && (p[1] == '.' || p[1] == '='))
            return "collating symbols are not supported";
        if (p[0] == '[' && p[1] == ':') {
            p += 2;
            wrong = set_parse_class(&p, &set);
        } else {
            wrong = set_parse_range(&p, &set);
        }
    }
    if (wrong)
        return wrong;
    if (is_inverted)
        set_invert(&set);
    *at = p + 1;
    *ret = set;
    return NULL;
}
