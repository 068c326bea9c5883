/* change_diff(): the two sides of a change as git would write their difference, so that people read what they know, and
 * `git apply` takes it.
 *
 * Names are quoted as git does it, with everything that is not plain ASCII as octal numbers: whatever a command named its
 * file, it cannot write to the terminal by that. A file that became a link is a removed and a new one,
 * since git has no word for it. Of directories nothing is said, nor of what git would not note; but of a change of
 * permissions alone always.
 *
 * Both sides are read into memory, up to DIFF_MAX. What is larger, or has a NUL in its first 8 kB, is binary: sizes and
 * digests, up to DIGEST_MAX. */
#include "layer/diff.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/fd.h"
#include "base/sha256.h"
#include "base/str.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    BINARY_HEAD = 8 * 1024,
    BLOCK = 64 * 1024,
    DIGEST_MAX = 1 << 30,
};

/* One side of a change. */
struct side {
    mode_t mode; /* 0: there is none */
    uint64_t size;
    struct buf text; /* of a file that is no binary, and of a link */
    bool is_binary;
    char sha256[65];
};

static void side_done(struct side *side)
{
    buf_done(&side->text);
}

/* --- reading --- */

static int digest(int fd, const struct buf *head, struct side *side, struct err *err)
{
    AUTO_FREE char *block = alloc_zero(1, BLOCK);
    uint8_t sum[SHA256_SIZE];
    struct sha256 sha;
    ssize_t len;

    sha256_start(&sha);
    sha256_add(&sha, head->data, head->len);
    while ((len = fd_read_block(fd, block, BLOCK)) > 0)
        sha256_add(&sha, block, (size_t)len);
    if (len < 0)
        return err_sys(err, "reading");
    sha256_finish(&sha, sum);
    for (size_t i = 0; i < SHA256_SIZE; i++)
        snprintf(side->sha256 + 2 * i, 3, "%02x", sum[i]);
    return 0;
}

static int read_file(int fd, struct side *side, struct err *err)
{
    char *data = buf_extend(&side->text, DIFF_MAX + 1);
    ssize_t len = fd_read_block(fd, data, DIFF_MAX + 1);

    if (len < 0)
        return err_sys(err, "reading");
    side->text.len = (size_t)len;
    side->is_binary =
        len > DIFF_MAX || memchr(data, 0, len < BINARY_HEAD ? (size_t)len : BINARY_HEAD);
    if (side->size <= DIGEST_MAX && digest(fd, &side->text, side, err))
        return -1;
    if (side->is_binary)
        buf_clear(&side->text);
    return 0;
}

static int read_link(int fd, struct side *side, struct err *err)
{
    char *data = buf_extend(&side->text, PATH_MAX);
    ssize_t len = readlinkat(fd, "", data, PATH_MAX);

    if (len < 0)
        return err_sys(err, "reading a link");
    side->size = side->text.len = (size_t)len;
    return 0;
}

static int side_read(const struct layer *layer, const struct change *change, enum change_side which,
                     struct side *side, struct err *err)
{
    AUTO_CLOSE int fd = -1;
    struct stat st;

    *side = (struct side){
        .mode = which == CHANGE_REAL ? change->real.mode : change->layer.mode,
    };
    buf_init(&side->text, DIFF_MAX + 1);
    if (!side->mode)
        return 0;
    fd = change_open(layer, change, which, err);
    if (fd < 0)
        return -1;
    if (fstat(fd, &st))
        return err_sys(err, "looking at it");
    side->mode = st.st_mode;
    if (S_ISLNK(st.st_mode))
        return read_link(fd, side, err);
    side->is_binary = true;
    side->size = (uint64_t)st.st_size;
    return S_ISREG(st.st_mode) ? read_file(fd, side, err) : 0;
}

/* --- names --- */

/* As git quotes it, with `prefix` in front ("a/"). */
static void add_name(struct buf *buf, const char *prefix, const char *path)
{
    static const char special[] = "\a\b\t\n\v\f\r\"\\", letters[] = "abtnvfr\"\\";
    AUTO_FREE char *name = alloc_strf("%s%s", prefix, path);
    bool is_quoted = false;

    for (const char *at = name; *at; at++)
        is_quoted = is_quoted || !isprint((unsigned char)*at) || *at == '"' || *at == '\\';
    if (!is_quoted) {
        buf_append_str(buf, name);
        return;
    }
    buf_append_str(buf, "\"");
    for (const char *at = name; *at; at++) {
        const char *found = strchr(special, *at);

        if (found)
            buf_appendf(buf, "\\%c", letters[found - special]);
        else if (!isprint((unsigned char)*at))
            buf_appendf(buf, "\\%03o", (unsigned char)*at);
        else
            buf_append(buf, at, 1);
    }
    buf_append_str(buf, "\"");
}

static void add_name_line(struct buf *buf, const char *key, const char *prefix, const char *path)
{
    size_t len;

    buf_append_str(buf, key);
    len = buf->len;
    add_name(buf, prefix, path);
    /* else patch(1) takes what is behind the blank for a time */
    if (*prefix && buf->data[len] != '"' && strchr(path, ' '))
        buf_append_str(buf, "\t");
    buf_append_str(buf, "\n");
}

/* --- writing --- */

/* What git notes of a mode. */
static mode_t git_mode(mode_t mode)
{
    if (S_ISLNK(mode))
        return S_IFLNK;
    return S_IFREG | (mode & 0100 ? 0755 : 0644);
}

static void add_modes(struct buf *buf, const struct side *old, const struct side *now)
{
    mode_t before = git_mode(old->mode), after = git_mode(now->mode);

    if (before == after && !S_ISLNK(now->mode)) {
        before = old->mode & ~(mode_t)S_IFMT;
        after = now->mode & ~(mode_t)S_IFMT;
        if (before == after)
            return;
        before |= S_IFREG;
        after |= S_IFREG;
    }
    if (before != after)
        buf_appendf(buf, "old mode %06o\nnew mode %06o\n", before, after);
}

/* Of a hundred, how much of the two texts is alike. */
static unsigned similarity(const struct side *old, const struct side *now,
                           const struct hunks *hunks)
{
    size_t larger = old->text.len > now->text.len ? old->text.len : now->text.len, same = 0;
    const char *at = old->text.data, *end = at + old->text.len;
    size_t line = 0;

    if (old->is_binary) /* then they are equal */
        return 100;
    for (size_t i = 0; i <= hunks->len && at < end; i++) {
        size_t stop = i < hunks->len ? hunks->items[i].old_at : SIZE_MAX;
        size_t go_on = i < hunks->len ? stop + hunks->items[i].old_len : SIZE_MAX;

        for (; line < go_on && at < end; line++) {
            const char *newline = memchr(at, '\n', (size_t)(end - at));
            size_t len = newline ? (size_t)(newline - at) + 1 : (size_t)(end - at);

            same += line < stop ? len : 0;
            at += len;
        }
    }
    return larger ? (unsigned)(same * 100 / larger) : 100;
}

static void add_header(struct buf *buf, const char *from, const char *path, const struct side *old,
                       const struct side *now)
{
    buf_append_str(buf, "diff --git ");
    add_name(buf, "a/", from);
    buf_append_str(buf, " ");
    add_name(buf, "b/", path);
    buf_append_str(buf, "\n");
    if (!old->mode)
        buf_appendf(buf, "new file mode %06o\n", git_mode(now->mode));
    else if (!now->mode)
        buf_appendf(buf, "deleted file mode %06o\n", git_mode(old->mode));
    else
        add_modes(buf, old, now);
}

/* One difference of git's: the sides are of one type, or one is none. */
static void add_diff(struct buf *buf, const struct change *change, const struct side *old,
                     const struct side *now, size_t context)
{
    const char *from = change->from ? change->from : change->path;
    AUTO(hunks_done) struct hunks hunks = {0};

    if (!old->is_binary && !now->is_binary)
        diff_lines(old->text.data, old->text.len, now->text.data, now->text.len, &hunks);
    else if (!*old->sha256 || !str_eq(old->sha256, now->sha256))
        return; /* a header alone would say something else */
    add_header(buf, from, change->path, old, now);
    if (change->from) {
        buf_appendf(buf, "similarity index %u%%\n", similarity(old, now, &hunks));
        add_name_line(buf, "rename from ", "", change->from);
        add_name_line(buf, "rename to ", "", change->path);
    }
    if (!hunks.len)
        return;
    add_name_line(buf, "--- ", old->mode ? "a/" : "", old->mode ? from : "/dev/null");
    add_name_line(buf, "+++ ", now->mode ? "b/" : "", now->mode ? change->path : "/dev/null");
    diff_unified(old->text.data, old->text.len, now->text.data, now->text.len, &hunks, context,
                 buf);
}

/* At the end of a line. */
static void cut(struct buf *text, size_t max_bytes, bool *ret_truncated)
{
    *ret_truncated = max_bytes && text->len > max_bytes;
    if (!*ret_truncated)
        return;
    text->len = max_bytes;
    while (text->len && text->data[text->len - 1] != '\n')
        text->len--;
    text->data[text->len] = '\0';
}

int change_diff(const struct layer *layer, const struct change *change, size_t context,
                size_t max_bytes, struct change_diff *ret, struct err *err)
{
    AUTO(side_done) struct side old = {0};
    AUTO(side_done) struct side now = {0};
    const struct side none = {0};
    bool is_one;

    if (side_read(layer, change, CHANGE_REAL, &old, err) ||
        side_read(layer, change, CHANGE_LAYER, &now, err))
        return err_wrap(err, "%s", change->path);
    is_one = !old.mode || !now.mode || (old.mode & S_IFMT) == (now.mode & S_IFMT);
    *ret = (struct change_diff){
        .is_binary = old.is_binary || now.is_binary, .old_size = old.size, .new_size = now.size};
    memcpy(ret->old_sha256, old.sha256, sizeof ret->old_sha256);
    memcpy(ret->new_sha256, now.sha256, sizeof ret->new_sha256);
    buf_init(&ret->unified, SIZE_MAX / 2);
    buf_append_str(&ret->unified, "");
    if (is_one) {
        add_diff(&ret->unified, change, &old, &now, context);
    } else if (!ret->is_binary) {
        add_diff(&ret->unified, change, &old, &none, context);
        add_diff(&ret->unified, change, &none, &now, context);
    }
    cut(&ret->unified, max_bytes, &ret->is_truncated);
    return 0;
}

void change_diff_done(struct change_diff *diff)
{
    buf_done(&diff->unified);
}
