/* See toml_depth.h.
 *
 * The text is read as far as it takes to know what is inside of a string or a comment, and counted
 * outside of them. That is exact for every text that is valid TOML, up to the place where it stops
 * being valid; and there the parser stops as well. */
#include "policy/config/toml_depth.h"

#include "policy/config/toml.h"

struct scan {
    const char *at;
    const char *end;
    unsigned line;
    unsigned depth; /* open brackets */
    unsigned parts; /* of the key that is being read */
};

static bool is_triple(const struct scan *scan, char quote)
{
    return scan->end - scan->at >= 3 && scan->at[0] == quote && scan->at[1] == quote &&
           scan->at[2] == quote;
}

/* Reads one piece of a string: one character, an escape, or the closing quotes. True at the end. */
static bool skip_piece(struct scan *scan, char quote, bool is_long)
{
    if (is_long && is_triple(scan, quote)) {
        scan->at += 3;
        /* up to two more may belong to the text before */
        while (scan->at < scan->end && *scan->at == quote)
            scan->at++;
        return true;
    }
    if (*scan->at == '\\' && quote == '"' && scan->end - scan->at > 1)
        scan->at++;
    else if (*scan->at == quote && !is_long)
        return scan->at++, true;
    if (*scan->at == '\n') {
        if (!is_long)
            return true; /* not valid: the parser stops here */
        scan->line++;
    }
    scan->at++;
    return false;
}

static void skip_string(struct scan *scan)
{
    char quote = *scan->at;
    bool is_long = is_triple(scan, quote);

    scan->at += is_long ? 3 : 1;
    while (scan->at < scan->end)
        if (skip_piece(scan, quote, is_long))
            return;
}

static void skip_comment(struct scan *scan)
{
    while (scan->at < scan->end && *scan->at != '\n')
        scan->at++;
}

/* A dot outside of strings separates the parts of a key, or stands in a number, where it does no
 * harm. Everything else that is counted ends a key. */
static void count(struct scan *scan, char c)
{
    switch (c) {
    case '.':
        scan->parts++;
        return;
    case '[':
    case '{':
        scan->depth++;
        break;
    case ']':
    case '}':
        scan->depth -= scan->depth > 0;
        break;
    case '\n':
        scan->line++;
        break;
    case '=':
    case ',':
        break;
    default:
        return;
    }
    scan->parts = 0;
}

int toml_check_depth(const char *text, size_t len, struct err *err)
{
    struct scan scan = {.at = text, .end = text + len, .line = 1};

    while (scan.at < scan.end) {
        if (*scan.at == '"' || *scan.at == '\'')
            skip_string(&scan);
        else if (*scan.at == '#')
            skip_comment(&scan);
        else
            count(&scan, *scan.at++);
        if (scan.depth > TOML_DEPTH_MAX)
            return err_set(err, ERR_INVALID, "%u: nested deeper than %d levels", scan.line,
                           TOML_DEPTH_MAX);
        if (scan.parts >= TOML_KEY_PARTS_MAX)
            return err_set(err, ERR_INVALID, "%u: a key of more than %d parts", scan.line,
                           TOML_KEY_PARTS_MAX);
    }
    return 0;
}
