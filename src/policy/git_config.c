/* See git_config.h. The grammar of git-config(1): sections in brackets, with a subsection in quotes or
 * behind a dot; keys; values with quotes, escapes, comments and continued lines. A subsection never
 * matters here, since any of them may come to be used.
 *
 * What it does not do: evaluate conditions of includeIf (each of them may come true), or tell what
 * is wrong with a file. What is no line of the grammar is skipped. */
#include "policy/git_config.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/str.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { VALUE_MAX = 1 << 16 };

static const struct {
    const char *section;
    const char *key; /* NULL: every one */
    enum git_config_kind kind;
} keys[] = {
    {"include", "path", GIT_CONFIG_INCLUDE},
    {"includeif", "path", GIT_CONFIG_INCLUDE},
    {"core", "worktree", GIT_CONFIG_WORKTREE},
    {"core", "hookspath", GIT_CONFIG_HOOKS},
    {"core", "attributesfile", GIT_CONFIG_PATH},
    {"init", "templatedir", GIT_CONFIG_PATH},
    {"core", "fsmonitor", GIT_CONFIG_COMMAND},
    {"core", "sshcommand", GIT_CONFIG_COMMAND},
    {"core", "editor", GIT_CONFIG_COMMAND},
    {"core", "pager", GIT_CONFIG_COMMAND},
    {"core", "askpass", GIT_CONFIG_COMMAND},
    {"core", "gitproxy", GIT_CONFIG_COMMAND},
    {"core", "alternaterefscommand", GIT_CONFIG_COMMAND},
    {"sequence", "editor", GIT_CONFIG_COMMAND},
    {"credential", "helper", GIT_CONFIG_COMMAND},
    {"gpg", "program", GIT_CONFIG_COMMAND},
    {"gpg", "defaultkeycommand", GIT_CONFIG_COMMAND},
    {"gc", "recentobjectshook", GIT_CONFIG_COMMAND},
    {"tar", "command", GIT_CONFIG_COMMAND},
    {"submodule", "update", GIT_CONFIG_COMMAND},
    {"hook", "command", GIT_CONFIG_COMMAND},
    {"imap", "tunnel", GIT_CONFIG_COMMAND},
    {"sendemail", "sendmailcmd", GIT_CONFIG_COMMAND},
    {"sendemail", "smtpserver", GIT_CONFIG_COMMAND},
    {"sendemail", "tocmd", GIT_CONFIG_COMMAND},
    {"sendemail", "cccmd", GIT_CONFIG_COMMAND},
    {"sendemail", "headercmd", GIT_CONFIG_COMMAND},
    {"guitool", "cmd", GIT_CONFIG_COMMAND},
    {"man", "cmd", GIT_CONFIG_COMMAND},
    {"man", "path", GIT_CONFIG_COMMAND},
    {"lfs", "path", GIT_CONFIG_COMMAND},
    {"diff", "external", GIT_CONFIG_COMMAND},
    {"diff", "command", GIT_CONFIG_COMMAND},
    {"diff", "textconv", GIT_CONFIG_COMMAND},
    {"merge", "driver", GIT_CONFIG_COMMAND},
    {"filter", "clean", GIT_CONFIG_COMMAND},
    {"filter", "smudge", GIT_CONFIG_COMMAND},
    {"filter", "process", GIT_CONFIG_COMMAND},
    {"interactive", "difffilter", GIT_CONFIG_COMMAND},
    {"trailer", "command", GIT_CONFIG_COMMAND},
    {"trailer", "cmd", GIT_CONFIG_COMMAND},
    {"difftool", "cmd", GIT_CONFIG_COMMAND},
    {"difftool", "path", GIT_CONFIG_COMMAND},
    {"mergetool", "cmd", GIT_CONFIG_COMMAND},
    {"mergetool", "path", GIT_CONFIG_COMMAND},
    {"browser", "cmd", GIT_CONFIG_COMMAND},
    {"browser", "path", GIT_CONFIG_COMMAND},
    {"remote", "uploadpack", GIT_CONFIG_COMMAND},
    {"remote", "receivepack", GIT_CONFIG_COMMAND},
    {"uploadpack", "packobjectshook", GIT_CONFIG_COMMAND},
    {"alias", NULL, GIT_CONFIG_COMMAND},
    {"pager", NULL, GIT_CONFIG_COMMAND},
};

void git_config_begin(struct git_config_reader *reader, const char *text, size_t len)
{
    *reader = (struct git_config_reader){.at = text, .end = text + len};
    if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        reader->at += 3;
}

void git_config_done(struct git_config_reader *reader)
{
    free(reader->section);
    free(reader->value);
    reader->section = reader->value = NULL;
}

static int next_char(struct git_config_reader *reader)
{
    return reader->at < reader->end ? (unsigned char)*reader->at++ : '\n';
}

static void skip_line(struct git_config_reader *reader)
{
    while (reader->at < reader->end && next_char(reader) != '\n')
        continue;
}

/* Behind the bracket. What follows the header may be a key on the same line. */
static void read_section(struct git_config_reader *reader)
{
    AUTO(buf_done) struct buf name = {.max = VALUE_MAX};
    bool is_quoted = false, is_sub = false;
    int c;

    while ((c = next_char(reader)) != '\n' && (is_quoted || c != ']')) {
        if (c == '\\' && is_quoted)
            c = next_char(reader);
        else if (c == '"')
            is_quoted = !is_quoted;
        is_sub |= c == '.' || c == '"' || isspace(c);
        if (!is_sub)
            buf_appendf(&name, "%c", tolower(c));
    }
    free(reader->section);
    reader->section = alloc_str(name.len ? name.data : "");
}

static void append_escaped(struct buf *value, int c)
{
    buf_appendf(value, "%c", c == 'n' ? '\n' : c == 't' ? '\t' : c == 'b' ? '\b' : c);
}

/* Behind the equals sign. */
static char *read_value(struct git_config_reader *reader)
{
    AUTO(buf_done) struct buf value = {.max = VALUE_MAX};
    bool is_quoted = false;
    size_t kept = 0; /* without blanks at the end */
    int c;

    while ((c = next_char(reader)) != '\n' || (is_quoted && reader->at < reader->end)) {
        if (c == '\r' && (reader->at == reader->end || *reader->at == '\n'))
            continue;
        if (!is_quoted && (c == '#' || c == ';')) {
            skip_line(reader);
            break;
        }
        if (c == '"') {
            is_quoted = !is_quoted;
            kept = value.len;
            continue;
        }
        if (c == '\\') {
            c = next_char(reader);
            if (c == '\r' && reader->at < reader->end && *reader->at == '\n')
                c = next_char(reader);
            if (c != '\n') /* else it goes on in the next line */
                append_escaped(&value, c);
            kept = value.len;
            continue;
        }
        if (isspace(c) && !is_quoted && !value.len)
            continue;
        buf_appendf(&value, "%c", c);
        if (is_quoted || !isspace(c))
            kept = value.len;
    }
    return alloc_strn(value.len ? value.data : "", kept);
}

static enum git_config_kind kind_of(const char *section, const char *key)
{
    for (size_t i = 0; section && i < sizeof keys / sizeof *keys; i++)
        if (str_eq(keys[i].section, section) && (!keys[i].key || str_eq(keys[i].key, key)))
            return keys[i].kind;
    return GIT_CONFIG_NOTHING;
}

/* `c` is its first letter. A key without a value is true, and names nothing. */
static enum git_config_kind read_key(struct git_config_reader *reader, int c)
{
    AUTO(buf_done) struct buf key = {.max = VALUE_MAX};

    while (isalnum(c) || c == '-' || c == '.') {
        buf_appendf(&key, "%c", tolower(c));
        c = next_char(reader);
    }
    while (c == ' ' || c == '\t' || c == '\r')
        c = next_char(reader);
    free(reader->value);
    reader->value = NULL;
    if (c != '=' || !key.len) {
        if (c != '\n')
            skip_line(reader);
        return GIT_CONFIG_NOTHING;
    }
    reader->value = read_value(reader);
    return kind_of(reader->section, key.data);
}

/* Words of git's own, but for those that begin with an exclamation mark. */
static bool is_of_git(const struct git_config_reader *reader)
{
    return (str_eq(reader->section, "alias") || str_eq(reader->section, "submodule")) &&
           *reader->value != '!';
}

enum git_config_kind git_config_next(struct git_config_reader *reader)
{
    while (reader->at < reader->end) {
        int c = next_char(reader);
        enum git_config_kind kind;

        if (isspace(c))
            continue;
        if (c == '#' || c == ';') {
            skip_line(reader);
            continue;
        }
        if (c == '[') {
            read_section(reader);
            continue;
        }
        kind = read_key(reader, c);
        if (kind != GIT_CONFIG_NOTHING && reader->value && *reader->value && !is_of_git(reader))
            return kind;
    }
    return GIT_CONFIG_NOTHING;
}
