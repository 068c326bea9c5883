/* See rules_disk.h. Reading: the only questions are which files count; what cannot be read is a
 * problem of the rules, like what cannot be parsed, because it may forbid something.
 *
 * Appending to a file that others may be reading, or appending to: one writer at a time holds the
 * lock of a file beside it; the new text is written beside it, too, and renamed over it, so that a
 * reader has the old file or the new one, also after a crash. The whole new text is parsed before
 * it is put in place: a line that would break the file is a failure, and so is a file that is
 * broken already, because nothing in it would count. */
#include "rules/rules_disk.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/lock.h"
#include "base/path.h"
#include "base/str.h"
#include "base/strv.h"
#include "rules/rules.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define SUFFIX ".rules"

int rules_read(const char *path, struct buf *ret, struct err *err)
{
    return fd_read_file(path, RULES_SIZE_MAX, ret, err);
}

static int load(struct rules *rules, const struct rules_origin *origin, struct err *err)
{
    AUTO(buf_done) struct buf text = {0};

    if (rules_read(origin->file, &text, err)) {
        rules_add_problem(rules, origin, err->msg);
        return -1;
    }
    return rules_add_text(rules, origin, text.data ? text.data : "", text.len, err);
}

int rules_load_file(struct rules *rules, const char *path, const char *home, struct err *err)
{
    const struct rules_origin origin = {.layer = RULE_LAYER_OPTION, .file = path, .home = home};

    return load(rules, &origin, err);
}

/* Sorted. A directory that is not there is empty. */
static int list_dir(const char *dir, struct strv *ret, struct err *err)
{
    DIR *stream = opendir(dir);
    const struct dirent *item;

    if (!stream)
        return errno == ENOENT || errno == ENOTDIR ? 0 : err_sys(err, "reading %s", dir);
    for (errno = 0; (item = readdir(stream)); errno = 0) {
        AUTO_FREE char *path = path_join(dir, item->d_name);
        struct stat st;

        /* directories, sockets and the like are no files of rules; a link to nothing is one that
         * is missing */
        if (str_ends(item->d_name, SUFFIX) && (stat(path, &st) || S_ISREG(st.st_mode)))
            strv_push_take(ret, TAKE_PTR(path));
    }
    if (errno) {
        err_sys(err, "reading %s", dir);
        closedir(stream);
        return -1;
    }
    closedir(stream);
    strv_sort(ret);
    return 0;
}

static void visit_dir(const struct rules_visitor *visitor, enum rule_layer layer,
                      const char *parent, const char *home)
{
    AUTO_FREE char *dir = path_join(parent, RULES_DIR);
    struct rules_origin origin = {.layer = layer, .file = dir, .home = home};
    AUTO(strv_done) struct strv paths = {0};
    struct err err;

    if (list_dir(dir, &paths, &err))
        visitor->visit(visitor->data, &origin, &err);
    for (size_t i = 0; i < paths.len; i++) {
        origin.file = paths.items[i];
        visitor->visit(visitor->data, &origin, NULL);
    }
}

void rules_visit(const struct rules_dirs *places, const struct rules_visitor *visitor)
{
    static const char *const names[] = {".codex", ".cordon"};

    if (places->user)
        visit_dir(visitor, RULE_LAYER_USER, places->user, places->home);
    for (size_t i = 0; places->project && i < 2; i++) {
        AUTO_FREE char *dir = path_join(places->project, names[i]);

        visit_dir(visitor, RULE_LAYER_PROJECT, dir, places->home);
    }
    if (places->administrator)
        visit_dir(visitor, RULE_LAYER_ADMINISTRATOR, places->administrator, places->home);
}

static void load_visited(void *data, const struct rules_origin *origin, const struct err *failure)
{
    struct rules *rules = data;
    struct err ignored; /* the rules remember it */

    if (failure)
        rules_add_problem(rules, origin, failure->msg);
    else
        (void)load(rules, origin, &ignored);
}

void rules_load_layers(struct rules *rules, const struct rules_dirs *places)
{
    const struct rules_visitor visitor = {.visit = load_visited, .data = rules};

    rules_visit(places, &visitor);
}

#define WAIT_NS CLOCK_NS_PER_S /* a lock is held for milliseconds */

/* --- lines --- */

static int append_quoted(struct buf *line, const char *text, struct err *err)
{
    AUTO_JSON json_t *json = json_string(text);
    AUTO_FREE char *quoted = json ? json_dumps(json, JSON_ENCODE_ANY) : NULL;

    if (!quoted)
        return err_set(err, ERR_INVALID, "\"%.80s\" is not UTF-8; a rule cannot hold it", text);
    buf_append_str(line, quoted);
    return 0;
}

/* The justification, if there is one, and the bracket. */
static int append_end(struct buf *line, const char *justification, struct err *err)
{
    if (justification) {
        buf_append_str(line, ", justification=");
        if (append_quoted(line, justification, err))
            return -1;
    }
    buf_append_str(line, ")");
    return 0;
}

char *rule_line_for_prefix(char *const *words, enum rule_verdict verdict, const char *justification,
                           struct err *err)
{
    AUTO(buf_done) struct buf line;

    buf_init(&line, SIZE_MAX / 2); /* a word that is left out would make the rule wider */
    buf_append_str(&line, "prefix_rule(pattern=[");
    for (size_t i = 0; words[i]; i++) {
        buf_append_str(&line, i ? ", " : "");
        if (append_quoted(&line, words[i], err))
            return NULL;
    }
    buf_appendf(&line, "], decision=\"%s\"", rule_decision_name(verdict));
    buf_append_str(&line, verdict == RULE_KEEP ? ", sandbox=\"keep\"" : "");
    if (append_end(&line, justification, err))
        return NULL;
    return buf_take(&line);
}

char *rule_line_for_host(const char *host, enum rule_protocol protocol, enum rule_verdict verdict,
                         const char *justification, struct err *err)
{
    AUTO_FREE char *name = host_rule_host(host, err);
    AUTO(buf_done) struct buf line;

    buf_init(&line, SIZE_MAX / 2);
    buf_append_str(&line, "network_rule(host=");
    if (!name || append_quoted(&line, name, err))
        return NULL;
    buf_appendf(&line, ", protocol=\"%s\", decision=\"%s\"", rule_protocol_name(protocol),
                rule_decision_name(verdict));
    if (append_end(&line, justification, err))
        return NULL;
    return buf_take(&line);
}

/* --- files --- */

/* Held while the file is read and replaced; a descriptor. */
static int lock(const char *path, struct err *err)
{
    AUTO_FREE char *name = alloc_strf("%s.lock", path);
    int fd = lock_file_take(name, WAIT_NS);

    if (fd >= 0)
        return fd;
    if (errno == EWOULDBLOCK)
        return err_set(err, ERR_LIMIT, "%s stayed locked by another process", path);
    return err_sys(err, "%s", name);
}

static bool has_line(const struct buf *text, const char *line)
{
    size_t len = strlen(line);

    for (const char *at = text->data; at && *at;) {
        size_t size = strcspn(at, "\n");
        size_t end = size && at[size - 1] == '\r' ? size - 1 : size;

        if (end == len && memcmp(at, line, len) == 0)
            return true;
        at += size + (at[size] == '\n');
    }
    return false;
}

static int check_text(const char *path, const char *home, const struct buf *text, struct err *err)
{
    const struct rules_origin origin = {.layer = RULE_LAYER_OPTION, .file = path, .home = home};
    AUTO(rules_file_done) struct rules_file file = {0};

    return rules_file_parse(&origin, text->data ? text->data : "", text->len, &file, err) ||
                   rules_file_check(&file, err)
               ? -1
               : 0;
}

/* The lock is held: no other process writes there. */
static int append_locked(const char *path, int fd, const char *home, const char *line,
                         enum rules_append *ret, struct err *err)
{
    AUTO(buf_done) struct buf text;

    buf_init(&text, RULES_SIZE_MAX);
    if (buf_read_fd(&text, fd, err) || check_text(path, home, &text, err))
        return -1;
    if (has_line(&text, line)) {
        *ret = RULES_THERE_ALREADY;
        return 0;
    }
    if (text.len && text.data[text.len - 1] != '\n')
        buf_append_str(&text, "\n");
    if (!buf_appendf(&text, "%s\n", line))
        return err_set(err, ERR_LIMIT, "%s is full: at most %d bytes", path, RULES_SIZE_MAX);
    if (check_text(path, home, &text, err))
        return -1;
    if (fd_replace_file(path, &text, 0600, err))
        return -1;
    *ret = RULES_APPENDED;
    return 0;
}

/* The file, which others leave alone until `ret_held` is closed; a descriptor. `ret_real` is what a link
 * leads to, so that it stays one. */
static int open_locked(const char *path, int flags, char **ret_real, int *ret_held, struct err *err)
{
    char *target = realpath(path, NULL);
    AUTO_FREE char *real = target ? target : alloc_str(path);
    AUTO_FREE char *dir = path_parent(real);
    AUTO_CLOSE int held = -1;
    AUTO_CLOSE int fd = -1;
    struct stat st;

    if (flags & O_CREAT && fd_make_dirs(dir, 0755, err))
        return -1;
    held = lock(real, err);
    if (held < 0)
        return -1;
    fd = open(real, O_RDWR | flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0644);
    if (fd < 0 || fstat(fd, &st))
        return err_sys(err, "opening %s", real);
    if (!S_ISREG(st.st_mode))
        return err_set(err, ERR_INVALID, "%s is not a regular file", real);
    *ret_real = TAKE_PTR(real);
    *ret_held = TAKE_FD(held);
    return TAKE_FD(fd);
}

int rules_append(const char *path, const char *home, const char *line, enum rules_append *ret,
                 struct err *err)
{
    AUTO_FREE char *real = NULL;
    AUTO_CLOSE int held = -1;
    AUTO_CLOSE int fd = open_locked(path, O_CREAT, &real, &held, err);

    return fd < 0 ? -1 : append_locked(real, fd, home, line, ret, err);
}

/* The place of the line of this number, from 1; `ret_len` with its line feed. NULL: there is none. */
static const char *find_line(const struct buf *text, unsigned number, size_t *ret_len)
{
    const char *at = text->len ? text->data : "";

    for (; *at; at += *ret_len) {
        *ret_len = strcspn(at, "\n");
        *ret_len += at[*ret_len] == '\n';
        if (--number == 0)
            return at;
    }
    return NULL;
}

/* The `len` bytes are `line` and its end. */
static bool is_line(const char *at, size_t len, const char *line)
{
    size_t size = strlen(line);

    if (len < size || memcmp(at, line, size) != 0)
        return false;
    size += size < len && at[size] == '\r';
    size += size < len && at[size] == '\n';
    return size == len;
}

int rules_append_made(const char *path, const char *home, const char *line, struct err *err)
{
    AUTO_FREE char *dir = path_parent(path);
    enum rules_append appended;

    return fd_make_dirs(dir, 0700, err) || rules_append(path, home, line, &appended, err) ? -1 : 0;
}

int rules_delete(const char *path, const char *home, unsigned number, const char *line,
                 struct err *err)
{
    AUTO_FREE char *real = NULL;
    AUTO_CLOSE int held = -1;
    AUTO_CLOSE int fd = open_locked(path, 0, &real, &held, err);
    AUTO(buf_done) struct buf text = {.max = RULES_SIZE_MAX};
    AUTO(buf_done) struct buf rest = {.max = RULES_SIZE_MAX};
    const char *at;
    size_t len = 0;

    if (fd < 0 || buf_read_fd(&text, fd, err))
        return -1;
    at = find_line(&text, number, &len);
    if (!at || !is_line(at, len, line))
        return err_set(
            err, ERR_INVALID,
            "%s:%u is not the line that \"cordon rules add\" writes (%s); change it there", path,
            number, line);
    buf_append(&rest, text.data, (size_t)(at - text.data));
    buf_append(&rest, at + len, text.len - (size_t)(at - text.data) - len);
    return check_text(path, home, &rest, err) || fd_replace_file(real, &rest, 0600, err) ? -1 : 0;
}
