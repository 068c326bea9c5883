/* See json_edit.h. A text is read three times over, none of which has to be clever:
 *
 *     plain    the text, with FILL in the place of every byte of a comment. It is as long as the text, so places in
 *              it are places in the text, and what lies between two tokens is white space, FILL and commas.
 *     clean    the same, with blanks for FILL and for commas that nothing follows: strict JSON, which jansson reads.
 *              It judges the text; the scanner below only ever sees texts that passed.
 *     scanner  finds where members and items begin and end, in `plain`.
 *
 * What comes out is parsed again and compared with the change made to the value: a text that would say anything
 * else is an error, whatever the scanner did. */
#include "setup/json_edit.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/json.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { FILL = 1, NOWHERE = -1 };

struct doc {
    const char *text;
    char *plain;
    ssize_t len;
    const char *newline;
    char *unit; /* one step of indentation */
};

static void doc_done(struct doc *doc)
{
    free(doc->plain);
    free(doc->unit);
}

/* --- the three readings --- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == FILL;
}

static ssize_t skip_blank(const char *plain, ssize_t len, ssize_t at)
{
    while (at < len && is_blank(plain[at]))
        at++;
    return at;
}

/* Behind the string that begins at `at`; `len` when it does not end. */
static ssize_t skip_string(const char *plain, ssize_t len, ssize_t at)
{
    for (at++; at < len && plain[at] != '"'; at++)
        at += plain[at] == '\\';
    return at < len ? at + 1 : len;
}

static int fill_comments(char *plain, ssize_t len, struct err *err)
{
    for (ssize_t at = 0; at < len;) {
        ssize_t end = at + 1;

        if (plain[at] == FILL)
            return err_set(err, ERR_INVALID, "there is a control character");
        if (plain[at] == '"') {
            end = skip_string(plain, len, at);
        } else if (plain[at] == '/' && at + 1 < len && plain[at + 1] == '/') {
            while (end < len && plain[end] != '\n')
                end++;
            end -= plain[end - 1] == '\r' && end < len;
            memset(plain + at, FILL, (size_t)(end - at));
        } else if (plain[at] == '/' && at + 1 < len && plain[at + 1] == '*') {
            const char *close = memmem(plain + at + 2, (size_t)(len - at - 2), "*/", 2);

            if (!close)
                return err_set(err, ERR_INVALID, "a comment does not end");
            end = close + 2 - plain;
            memset(plain + at, FILL, (size_t)(end - at));
        }
        at = end;
    }
    return 0;
}

/* Strict JSON out of `plain`, with the line feeds of the text, so that lines are counted right. */
static char *make_clean(const struct doc *doc)
{
    char *clean = alloc_strn(doc->plain, (size_t)doc->len);
    char before = '['; /* the last byte that says something */

    for (ssize_t at = 0; at < doc->len; at++) {
        char c = doc->plain[at];

        if (c == FILL)
            clean[at] = doc->text[at] == '\n' ? '\n' : ' ';
        if (is_blank(c))
            continue;
        if (c == ',' && before != ',' && before != '[' && before != '{') {
            ssize_t next = skip_blank(doc->plain, doc->len, at + 1);

            if (next < doc->len && strchr("]}", doc->plain[next]))
                clean[at] = ' ';
        }
        if (c == '"')
            at = skip_string(doc->plain, doc->len, at) - 1;
        before = c;
    }
    return clean;
}

/* NULL on failure. */
static json_t *read_doc(const char *text, size_t len, struct doc *ret, struct err *err)
{
    static const char mark[] = "\xef\xbb\xbf"; /* of the byte order */
    struct doc doc = {.text = text, .plain = NULL, .len = (ssize_t)len};
    AUTO_FREE char *clean = NULL;
    json_t *root = NULL;
    const char *line = memchr(text, '\n', len);

    if (memchr(text, '\0', len)) {
        err_set(err, ERR_INVALID, "there is a NUL character");
        return NULL;
    }
    doc.plain = alloc_strn(text, len);
    if (len >= 3 && !memcmp(text, mark, 3))
        memset(doc.plain, ' ', 3);
    if (fill_comments(doc.plain, doc.len, err) == 0) {
        clean = make_clean(&doc);
        root = skip_blank(doc.plain, doc.len, 0) == doc.len ? json_object()
                                                            : json_parse(clean, len, err);
    }
    if (root && !json_is_object(root)) {
        err_set(err, ERR_INVALID, "it has to be an object");
        json_decref(root);
        root = NULL;
    }
    doc.newline = line && line > text && line[-1] == '\r' ? "\r\n" : "\n";
    if (root)
        *ret = doc;
    else
        doc_done(&doc);
    return root;
}

/* --- the scanner --- */

/* Behind the value that begins at `at`. */
static ssize_t skip_value(const struct doc *doc, ssize_t at)
{
    ssize_t depth = 0;

    do {
        char c = doc->plain[at];

        if (c == '"') {
            at = skip_string(doc->plain, doc->len, at);
        } else if (strchr("{[", c)) {
            depth++;
            at++;
        } else if (strchr("}]", c)) {
            depth--;
            at++;
        } else if (depth) {
            at++;
        } else {
            while (at < doc->len && !is_blank(doc->plain[at]) && !strchr(",]}", doc->plain[at]))
                at++;
        }
    } while (depth && at < doc->len);
    return at;
}

/* A member of an object or an item of an array. */
struct child {
    ssize_t start; /* of the key, or of the value in an array */
    ssize_t value;
    ssize_t end;
    ssize_t comma; /* the one behind it; NOWHERE: none */
};

/* The next one behind `*at`; false at the end, and then `*at` is the closing bracket. */
static bool next_child(const struct doc *doc, bool is_object, ssize_t *at, struct child *ret)
{
    ssize_t next = skip_blank(doc->plain, doc->len, *at);

    if (next >= doc->len || strchr("}]", doc->plain[next])) {
        *at = next;
        return false;
    }
    ret->start = ret->value = next;
    if (is_object) {
        next = skip_blank(doc->plain, doc->len, skip_string(doc->plain, doc->len, next));
        ret->value = skip_blank(doc->plain, doc->len, next + 1); /* behind the colon */
    }
    ret->end = skip_value(doc, ret->value);
    next = skip_blank(doc->plain, doc->len, ret->end);
    ret->comma = next < doc->len && doc->plain[next] == ',' ? next : NOWHERE;
    *at = ret->comma == NOWHERE ? next : next + 1;
    return true;
}

/* An object or array, and one of what is in it. */
struct spot {
    ssize_t open; /* its bracket */
    ssize_t close;
    struct child last;   /* start NOWHERE: it is empty */
    struct child before; /* of `child`: start NOWHERE: none */
    struct child child;  /* start NOWHERE: there is none of that name or number */
    size_t len;
};

static bool is_key(const struct doc *doc, const struct child *child, const char *key)
{
    ssize_t end = skip_string(doc->plain, doc->len, child->start);
    AUTO_JSON json_t *name =
        json_loadb(doc->text + child->start, (size_t)(end - child->start), JSON_DECODE_ANY, NULL);

    return json_is_string(name) && !strcmp(json_string_value(name), key);
}

/* Looks into what begins at `open` for the member `key`, or, with NULL, the item `index`. */
static void look(const struct doc *doc, ssize_t open, const char *key, size_t index,
                 struct spot *ret)
{
    const struct child none = {NOWHERE, NOWHERE, NOWHERE, NOWHERE};
    struct child child, before = none;
    ssize_t at = open + 1;

    *ret = (struct spot){.open = open, .last = none, .before = none, .child = none};
    while (next_child(doc, doc->plain[open] == '{', &at, &child)) {
        if (key ? is_key(doc, &child, key) : ret->len == index) {
            ret->child = child;
            ret->before = before;
        }
        ret->last = before = child;
        ret->len++;
    }
    ret->close = at;
}

/* --- where lines begin and end --- */

static ssize_t line_start(const struct doc *doc, ssize_t at)
{
    while (at > 0 && doc->text[at - 1] != '\n')
        at--;
    return at;
}

/* The white space that the line begins with; caller frees. */
static char *indent_of(const struct doc *doc, ssize_t at)
{
    ssize_t start = line_start(doc, at), end = start;

    while (end < at && (doc->text[end] == ' ' || doc->text[end] == '\t'))
        end++;
    return alloc_strn(doc->text + start, (size_t)(end - start));
}

static bool begins_line(const struct doc *doc, ssize_t at)
{
    ssize_t start = line_start(doc, at);

    return start && start + (ssize_t)strspn(doc->text + start, " \t") >= at;
}

/* The line feed (with its carriage return) that ends the line, if only white space and comments come before
 * it; NOWHERE otherwise. */
static ssize_t line_end(const struct doc *doc, ssize_t at, bool takes_comments)
{
    while (at < doc->len && doc->plain[at] != '\n' && doc->plain[at] != '\r' &&
           is_blank(doc->plain[at]) && (takes_comments || doc->plain[at] != FILL))
        at++;
    if (at + 1 < doc->len && doc->plain[at] == '\r' && doc->plain[at + 1] == '\n')
        return at;
    return at < doc->len && doc->plain[at] == '\n' ? at : NOWHERE;
}

/* --- writing --- */

static void copy(const struct doc *doc, ssize_t from, ssize_t to, struct buf *ret)
{
    if (to > from)
        buf_append(ret, doc->text + from, (size_t)(to - from));
}

/* The value as text: in one line when `indent` is NULL, else with lines that are indented by that. */
static void write_value(const struct doc *doc, const json_t *value, const char *indent,
                        struct buf *ret)
{
    AUTO_FREE char *text = json_dumps(value, JSON_ENCODE_ANY | (indent ? JSON_INDENT(1) : 0));

    /* jansson indents by one blank for each level, and has no line feeds in strings */
    for (const char *at = text; at && *at;) {
        size_t len = strcspn(at, "\n");

        buf_append(ret, at, len);
        at += len;
        if (!*at)
            break;
        buf_appendf(ret, "%s%s", doc->newline, indent ? indent : "");
        for (at++; *at == ' '; at++)
            buf_append_str(ret, doc->unit);
    }
}

static void write_child(const struct doc *doc, const char *key, const json_t *value,
                        const char *indent, struct buf *ret)
{
    if (key) {
        AUTO_JSON json_t *name = json_string(key);

        write_value(doc, name, NULL, ret);
        buf_append_str(ret, ": ");
    }
    write_value(doc, value, indent, ret);
}

/* Into an object or array that has nothing yet, but perhaps comments. */
static void insert_first(const struct doc *doc, const struct spot *spot, const char *key,
                         const json_t *value, struct buf *ret)
{
    AUTO_FREE char *outer = indent_of(doc, spot->open);
    AUTO_FREE char *indent = alloc_strf("%s%s", outer, doc->unit);
    ssize_t at = line_end(doc, spot->open + 1, true);
    bool has_line = at != NOWHERE && at < spot->close;

    at = has_line ? at : spot->close;
    copy(doc, 0, at, ret);
    buf_appendf(ret, "%s%s", doc->newline, indent);
    write_child(doc, key, value, indent, ret);
    if (!has_line)
        buf_appendf(ret, "%s%s", doc->newline, outer);
    copy(doc, at, doc->len, ret);
}

/* Behind the last of an object or array. */
static void insert_last(const struct doc *doc, const struct spot *spot, const char *key,
                        const json_t *value, struct buf *ret)
{
    const struct child *last = &spot->last;
    bool has_lines = begins_line(doc, last->start);
    bool has_comma = last->comma != NOWHERE;
    AUTO_FREE char *indent = has_lines ? indent_of(doc, last->start) : NULL;
    ssize_t behind = has_comma ? last->comma + 1 : last->end;
    ssize_t at = has_lines ? line_end(doc, behind, true) : NOWHERE;

    at = at == NOWHERE || at > spot->close ? behind : at;
    copy(doc, 0, last->end, ret);
    if (!has_comma)
        buf_append_str(ret, ",");
    copy(doc, last->end, at, ret);
    buf_appendf(ret, "%s%s", has_lines ? doc->newline : " ", has_lines ? indent : "");
    write_child(doc, key, value, indent, ret);
    if (has_comma)
        buf_append_str(ret, ",");
    copy(doc, at, doc->len, ret);
}

static void replace_value(const struct doc *doc, const struct child *child, const json_t *value,
                          struct buf *ret)
{
    AUTO_FREE char *indent = begins_line(doc, child->start) ? indent_of(doc, child->start) : NULL;

    copy(doc, 0, child->value, ret);
    write_value(doc, value, indent, ret);
    copy(doc, child->end, doc->len, ret);
}

/* Without the child, with the one comma that is too many then, and without the line if nothing else is on it. */
static void remove_child(const struct doc *doc, const struct spot *spot, struct buf *ret)
{
    const struct child *child = &spot->child;
    bool has_comma = child->comma != NOWHERE;
    ssize_t from = child->start, to = has_comma ? child->comma + 1 : child->end;
    ssize_t comma = has_comma || spot->before.start == NOWHERE ? NOWHERE : spot->before.comma;
    ssize_t end = line_end(doc, to, false);

    if (spot->len == 1 && !memchr(doc->plain + spot->open, FILL, (size_t)(from - spot->open)) &&
        !memchr(doc->plain + to, FILL, (size_t)(spot->close - to))) {
        from = spot->open + 1;
        to = spot->close;
    } else if (begins_line(doc, from) && end != NOWHERE) {
        from = line_start(doc, from) - 1;
        from -= from > 0 && doc->text[from - 1] == '\r';
        to = end;
    } else if (has_comma && child->start != spot->last.start) {
        while (to < doc->len && (doc->text[to] == ' ' || doc->text[to] == '\t'))
            to++;
    } else {
        while (from > 0 && doc->plain[from - 1] != FILL && is_blank(doc->plain[from - 1]))
            from--;
        if (from > 0 && doc->plain[from - 1] == FILL)
            from = child->start; /* what ends a comment may be needed */
    }
    if (comma != NOWHERE) {
        copy(doc, 0, comma, ret);
        copy(doc, comma + 1, from, ret);
    } else {
        copy(doc, 0, from, ret);
    }
    copy(doc, to, doc->len, ret);
}

/* --- the value --- */

json_t *json_edit_parse(const char *text, size_t len, struct err *err)
{
    struct doc doc;
    json_t *root = read_doc(text, len, &doc, err);

    if (root)
        doc_done(&doc);
    return root;
}

/* SIZE_MAX: none. */
static size_t item_index(const json_t *list, const struct json_place *place)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (place->is_item(json_array_get(list, i)))
            return i;
    return SIZE_MAX;
}

json_t *json_edit_find(const json_t *root, const struct json_place *place)
{
    json_t *value = (json_t *)root;

    for (const char *const *key = place->keys; value && *key; key++)
        value = json_object_get(value, *key);
    return value && place->is_item ? json_array_get(value, item_index(value, place)) : value;
}

/* All of the way that is there has to be objects, and its end, if items are meant, an array. */
static int check_way(const json_t *root, const struct json_place *place, struct err *err)
{
    const json_t *value = root;

    for (const char *const *key = place->keys; *key; key++) {
        bool is_list = !key[1] && place->is_item;

        value = json_object_get(value, *key);
        if (!value)
            break;
        if (is_list ? !json_is_array(value) : key[1] && !json_is_object(value))
            return err_set(err, ERR_INVALID, "\"%s\" has to be an %s", *key,
                           is_list ? "array" : "object");
    }
    return 0;
}

/* What has to come out: a copy with the value set, or removed (NULL). New reference. */
static json_t *expected(const json_t *root, const struct json_place *place, const json_t *value)
{
    json_t *ret = json_deep_copy(root);
    json_t *at = ret;
    const char *const *key = place->keys;

    for (; *key && (key[1] || place->is_item); key++) {
        json_t *next = json_object_get(at, *key);

        if (!next)
            json_object_set_new(at, *key, next = key[1] ? json_object() : json_array());
        at = next;
    }
    if (!place->is_item && value)
        json_object_set(at, *key, (json_t *)value);
    else if (!place->is_item)
        json_object_del(at, *key);
    else if (!value)
        json_array_remove(at, item_index(at, place));
    else if (item_index(at, place) == SIZE_MAX)
        json_array_append(at, (json_t *)value);
    else
        json_array_set(at, item_index(at, place), (json_t *)value);
    return ret;
}

/* --- the two changes --- */

static void set_unit(struct doc *doc, ssize_t open)
{
    struct child first;
    ssize_t at = open + 1;

    doc->unit = NULL;
    if (next_child(doc, true, &at, &first) && begins_line(doc, first.start))
        doc->unit = indent_of(doc, first.start);
    if (!doc->unit || !*doc->unit) {
        free(doc->unit);
        doc->unit = alloc_str("  ");
    }
}

/* With what of the way is missing around it; new reference. */
static json_t *wrap(const char *const *missing, const struct json_place *place, const json_t *value)
{
    size_t len = 0;
    json_t *ret = place->is_item ? json_pack("[O]", value) : json_incref((json_t *)value);

    while (missing[len])
        len++;
    while (len--)
        ret = json_pack("{s:o}", missing[len], ret);
    return ret;
}

static void put(const struct doc *doc, ssize_t open, const json_t *root,
                const struct json_place *place, const json_t *value, struct buf *ret)
{
    const char *const *key = place->keys;
    const json_t *list = root;
    struct spot spot;

    look(doc, open, *key, 0, &spot);
    for (; key[1] && spot.child.start != NOWHERE; key++) {
        list = json_object_get(list, *key);
        look(doc, spot.child.value, key[1], 0, &spot);
    }
    if (spot.child.start == NOWHERE) {
        AUTO_JSON json_t *whole = wrap(key + 1, place, value);

        (spot.len ? insert_last : insert_first)(doc, &spot, *key, whole, ret);
        return;
    }
    if (place->is_item) {
        list = json_object_get(list, *key);
        look(doc, spot.child.value, NULL, item_index(list, place), &spot);
        if (spot.child.start == NOWHERE) {
            (spot.len ? insert_last : insert_first)(doc, &spot, NULL, value, ret);
            return;
        }
    }
    replace_value(doc, &spot.child, value, ret);
}

/* A text without anything in it: the comments stay. */
static void put_whole(struct doc *doc, const struct json_place *place, const json_t *value,
                      struct buf *ret)
{
    AUTO_JSON json_t *whole = wrap(place->keys, place, value);
    bool has_end = doc->len && doc->text[doc->len - 1] == '\n';

    doc->unit = alloc_str("  ");
    copy(doc, 0, doc->len, ret);
    if (doc->len && !has_end && memchr(doc->plain, FILL, (size_t)doc->len))
        buf_append_str(ret, doc->newline);
    write_value(doc, whole, "", ret);
    buf_append_str(ret, doc->newline);
}

/* The text that came out says what it should, and nothing else. */
static int verify(const struct buf *text, size_t from, const json_t *wanted, struct err *err)
{
    AUTO_JSON json_t *got = json_edit_parse(text->data + from, text->len - from, err);

    if (!got)
        return err_wrap(err, "after the change");
    return json_equal(got, wanted)
               ? 0
               : err_set(err, ERR_BUG, "the change would have changed something else, too");
}

int json_edit_put(const char *text, size_t len, const struct json_place *place, const json_t *value,
                  struct buf *ret, struct err *err)
{
    AUTO(doc_done) struct doc doc = {0};
    AUTO_JSON json_t *root = read_doc(text, len, &doc, err);
    AUTO_JSON json_t *wanted = NULL;
    size_t from = ret->len;
    ssize_t open;

    if (!root || check_way(root, place, err))
        return -1;
    if (json_equal(json_edit_find(root, place), value)) {
        copy(&doc, 0, doc.len, ret);
        return 0;
    }
    wanted = expected(root, place, value);
    open = skip_blank(doc.plain, doc.len, 0);
    if (open == doc.len) {
        put_whole(&doc, place, value, ret);
    } else {
        set_unit(&doc, open);
        put(&doc, open, root, place, value, ret);
    }
    return verify(ret, from, wanted, err);
}

/* How many keys of the way lead to what is to be removed: all, or as far as to the first of those below which nothing
 * else is. */
static size_t keys_to_prune(const json_t *root, const struct json_place *place)
{
    size_t len = 0, ret;
    const json_t *at = root;

    for (ret = 1; place->keys[len]; len++) {
        const json_t *next = json_object_get(at, place->keys[len]);
        size_t size = json_is_array(next) ? json_array_size(next) : json_object_size(next);

        if (json_object_size(at) > 1)
            ret = len + 1;
        if (!place->keys[len + 1] && place->is_item && size > 1)
            ret = len + 2; /* an item among others */
        at = next;
    }
    return ret;
}

int json_edit_remove(const char *text, size_t len, const struct json_place *place, bool prunes,
                     struct buf *ret, struct err *err)
{
    AUTO(doc_done) struct doc doc = {0};
    AUTO_JSON json_t *root = read_doc(text, len, &doc, err);
    AUTO_JSON json_t *wanted = NULL;
    const char *shorter[16] = {NULL};
    struct json_place pruned = {.keys = shorter};
    size_t from = ret->len, depth = 0;
    const json_t *list;
    struct spot spot;

    if (!root || check_way(root, place, err))
        return -1;
    if (!json_edit_find(root, place)) {
        copy(&doc, 0, doc.len, ret);
        return 0;
    }
    while (place->keys[depth])
        depth++;
    if (prunes && keys_to_prune(root, place) <= depth && depth < 16) {
        depth = keys_to_prune(root, place);
        memcpy(shorter, place->keys, depth * sizeof *shorter);
        if (place->keys[depth] || place->is_item)
            place = &pruned;
    }
    wanted = expected(root, place, NULL);
    look(&doc, skip_blank(doc.plain, doc.len, 0), place->keys[0], 0, &spot);
    list = json_object_get(root, place->keys[0]);
    for (size_t i = 1; place->keys[i]; i++) {
        look(&doc, spot.child.value, place->keys[i], 0, &spot);
        list = json_object_get(list, place->keys[i]);
    }
    if (place->is_item)
        look(&doc, spot.child.value, NULL, item_index(list, place), &spot);
    remove_child(&doc, &spot, ret);
    return verify(ret, from, wanted, err);
}
