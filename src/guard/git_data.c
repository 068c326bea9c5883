/* See git_data.h.
 *
 * A configuration is compared by its lines. Those that are data (a plain key and a plain value, without
 * quotes, escapes and comments, of the few sections that are known), comments and headers are left out;
 * what remains, each line with the header that it stands under, has to be the same. So nothing has to be
 * understood of what may not change, and what is not understood may not.
 *
 * An index is read as git reads it, and what git would read in another way is none: git believes the length that
 * an entry says, and on many processors what an extension says about where the entries are. A path that leads
 * out of the work tree, or into a .git, is none either: git looks at that when a file is added, but not when the next
 * `git checkout .` writes what the index names.
 *
 * What it does not do: verify the checksum of an index, which git may do. */
#include "guard/git_data.h"

#include "base/git_index.h"

#include <ctype.h>
#include <limits.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

/* --- HEAD --- */

bool git_head_is_whole(const char *text, size_t len)
{
    static const char start[] = "ref: refs/";

    if (!len || text[len - 1] != '\n')
        return false;
    len--;
    if (len > sizeof start - 1 && len < 250 && memcmp(text, start, sizeof start - 1) == 0) {
        for (size_t i = sizeof start - 1; i < len; i++)
            if (!isgraph((unsigned char)text[i]) && !((unsigned char)text[i] & 0x80))
                return false;
        return true;
    }
    for (size_t i = 0; i < len; i++)
        if (!isxdigit((unsigned char)text[i]))
            return false;
    return len == 40 || len == 64;
}

/* --- configuration --- */

struct text {
    const char *at;
    size_t len;
};

struct reader {
    struct text rest;
    struct text section; /* the header that lines stand under, without blanks around it */
    bool is_known;       /* it is of the usual form */
    bool goes_on;        /* the line before did not end */
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static struct text trimmed(struct text text)
{
    while (text.len && is_blank(*text.at))
        text.at++, text.len--;
    while (text.len && is_blank(text.at[text.len - 1]))
        text.len--;
    return text;
}

static bool is_same(struct text a, struct text b)
{
    return a.len == b.len && memcmp(a.at, b.at, a.len) == 0;
}

static bool is_word(struct text text, const char *word)
{
    return text.len == strlen(word) && strncasecmp(text.at, word, text.len) == 0;
}

static bool is_key_char(char c)
{
    return isalnum((unsigned char)c) || c == '-';
}

/* [name] or [name "sub"], in which nothing is escaped. */
static bool read_header(struct text line, struct text *ret_name, struct text *ret_sub)
{
    size_t at = 1;

    *ret_sub = (struct text){0};
    if (line.len < 3 || line.at[0] != '[' || line.at[line.len - 1] != ']')
        return false;
    while (is_key_char(line.at[at]))
        at++;
    *ret_name = (struct text){line.at + 1, at - 1};
    if (at == 1 || at == line.len - 1)
        return at > 1;
    if (line.len < at + 4 || line.at[at] != ' ' || line.at[at + 1] != '"' ||
        line.at[line.len - 2] != '"')
        return false;
    *ret_sub = (struct text){line.at + at + 2, line.len - at - 4};
    return !memchr(ret_sub->at, '"', ret_sub->len) && !memchr(ret_sub->at, '\\', ret_sub->len);
}

/* KEY = VALUE, and nothing that means more. */
static bool read_key(struct text line, struct text *ret_key, struct text *ret_value)
{
    size_t at = 0;

    while (at < line.len && is_key_char(line.at[at]))
        at++;
    *ret_key = (struct text){line.at, at};
    while (at < line.len && is_blank(line.at[at]))
        at++;
    if (!ret_key->len || !isalpha((unsigned char)*line.at) || at == line.len || line.at[at] != '=')
        return false;
    *ret_value = trimmed((struct text){line.at + at + 1, line.len - at - 1});
    for (size_t i = 0; i < ret_value->len; i++)
        if (strchr("\"\\#;", ret_value->at[i]) || iscntrl((unsigned char)ret_value->at[i]))
            return false;
    return ret_value->len > 0;
}

static bool next_kept(struct reader *reader, struct text remotes, struct text *ret);

/* The remote had an address before. */
static bool has_remote(struct text config, struct text remote)
{
    struct reader reader = {.rest = config, .is_known = true};
    struct text line, name, sub, key, value;

    while (next_kept(&reader, (struct text){0}, &line))
        if (read_header(reader.section, &name, &sub) && is_word(name, "remote") &&
            is_same(sub, remote) && read_key(trimmed(line), &key, &value) && is_word(key, "url"))
            return true;
    return false;
}

static bool is_switch(struct text value)
{
    return is_word(value, "true") || is_word(value, "false");
}

/* `remotes`: the configuration that says which there are. */
static bool is_data(struct text section, struct text line, struct text remotes)
{
    static const char *const switches[] = {"filemode", "logallrefupdates", "ignorecase", "symlinks",
                                           "precomposeunicode"};
    struct text name, sub, key, value;

    if (!read_header(section, &name, &sub) || !read_key(line, &key, &value))
        return false;
    if (is_word(name, "core") && !sub.len) {
        for (size_t i = 0; i < sizeof switches / sizeof *switches; i++)
            if (is_word(key, switches[i]))
                return is_switch(value);
        return is_word(key, "bare") ? is_word(value, "false")
                                    : is_word(key, "repositoryformatversion") &&
                                          (is_word(value, "0") || is_word(value, "1"));
    }
    if (is_word(name, "user") && !sub.len)
        return is_word(key, "name") || is_word(key, "email");
    if (!is_word(name, "branch") || !sub.len)
        return false;
    if (is_word(key, "merge"))
        return value.len > 5 && memcmp(value.at, "refs/", 5) == 0;
    return is_word(key, "rebase")
               ? is_switch(value)
               : is_word(key, "remote") && (is_word(value, ".") || has_remote(remotes, value));
}

/* The next line that is no data; false at the end. */
static bool next_kept(struct reader *reader, struct text remotes, struct text *ret)
{
    struct text name, sub;

    while (reader->rest.len) {
        const char *end = memchr(reader->rest.at, '\n', reader->rest.len);
        const size_t len = end ? (size_t)(end - reader->rest.at) : reader->rest.len;
        const struct text whole = {reader->rest.at, len};
        const struct text line = trimmed(whole);
        const bool went_on = reader->goes_on;

        reader->rest.at += len + (end != NULL);
        reader->rest.len -= len + (end != NULL);
        *ret = whole;
        if (!went_on && (!line.len || *line.at == '#' || *line.at == ';')) {
            continue;
        } else if (!went_on && *line.at == '[') {
            reader->section = line;
            reader->is_known = read_header(line, &name, &sub);
            if (reader->is_known)
                continue;
        } else if (!went_on && reader->is_known && is_data(reader->section, line, remotes)) {
            continue;
        }
        reader->goes_on = line.len && line.at[line.len - 1] == '\\';
        reader->is_known &= !went_on; /* it may have been a header all the same */
        return true;
    }
    return false;
}

bool git_config_is_same(const char *old, size_t old_len, const char *new, size_t new_len)
{
    const struct text remotes = {old, old_len};
    struct reader before = {.rest = remotes, .is_known = true};
    struct reader after = {.rest = {new, new_len}, .is_known = true};
    struct text a, b;

    if (memchr(old, '\0', old_len) || memchr(new, '\0', new_len))
        return false;
    for (;;) {
        const bool has_a = next_kept(&before, remotes, &a);
        const bool has_b = next_kept(&after, remotes, &b);

        if (!has_a || !has_b)
            return has_a == has_b;
        if (!is_same(a, b) || !is_same(before.section, after.section))
            return false;
    }
}

static bool has_word(struct text line, const char *word)
{
    const size_t len = strlen(word);

    for (size_t at = 0; at + len <= line.len; at++)
        if (strncasecmp(line.at + at, word, len) == 0)
            return true;
    return false;
}

size_t git_config_hash_bytes(const char *config, size_t len)
{
    struct reader reader = {.rest = {config, len}, .is_known = true};
    struct text line, name, sub, key, value;
    size_t bytes = GIT_HASH_BYTES;

    while (next_kept(&reader, (struct text){0}, &line)) {
        if (!has_word(line, "objectformat"))
            continue;
        if (!read_header(reader.section, &name, &sub) || !read_key(trimmed(line), &key, &value))
            return 0;
        if (is_word(name, "extensions") && is_word(key, "objectformat"))
            bytes = is_word(value, "sha256") ? GIT_HASH_BYTES_SHA256 : GIT_HASH_BYTES;
    }
    return bytes;
}

/* --- index --- */

/* `name`, of `len` bytes, is .git however it is spelled: also where that would be NTFS, or where case is folded by
 * Unicode's rules, which leave characters out (all of them are beyond ASCII). */
static bool is_dot_git(const char *name, size_t len)
{
    char plain[PATH_MAX];
    size_t end = 0, at;

    for (size_t i = 0; i < len; i++)
        if (!(name[i] & 0x80))
            plain[end++] = name[i];
    at = end >= 4 && strncasecmp(plain, ".git", 4) == 0    ? 4
         : end >= 5 && strncasecmp(plain, "git~1", 5) == 0 ? 5
                                                           : 0;
    if (!at)
        return false;
    while (at < end && (plain[at] == ' ' || plain[at] == '.'))
        at++;
    return at == end || plain[at] == ':' || plain[at] == '\\';
}

/* Below the work tree, and in no git directory. */
static bool is_path_safe(const char *path)
{
    for (const char *at = path;; at++) {
        const size_t len = strcspn(at, "/");

        if (!len || (len == 1 && *at == '.') || (len == 2 && at[0] == '.' && at[1] == '.') ||
            is_dot_git(at, len))
            return false;
        at += len;
        if (!*at)
            return true;
    }
}

/* Who is asked about submodules. */
struct links {
    bool (*take)(void *data, const char *path);
    void *data;
};

/* What is no file, symlink or submodule has another meaning to git: a whole directory that is not checked out. */
static bool is_entry_safe(void *data, const char *path, uint32_t mode)
{
    const struct links *links = data;
    const uint32_t type = mode & GIT_MODE_TYPE;

    if (!is_path_safe(path))
        return false;
    return type == GIT_MODE_GITLINK ? links->take(links->data, path)
                                    : type == GIT_MODE_FILE || type == GIT_MODE_SYMLINK;
}

/* None by which entries are elsewhere. */
static bool is_extension_safe(void *data, const char name[static 4], const unsigned char *bytes,
                              size_t size)
{
    return memcmp(name, "link", 4) != 0 && memcmp(name, "sdir", 4) != 0 &&
           memcmp(name, "IEOT", 4) != 0;
}

bool git_index_each_link(const void *bytes, size_t len, size_t hash,
                         bool (*take)(void *data, const char *path), void *data)
{
    struct links links = {.take = take, .data = data};

    return git_index_read(bytes, len, hash,
                          &(struct git_index_visitor){.entry = is_entry_safe,
                                                      .extension = is_extension_safe,
                                                      .data = &links});
}
