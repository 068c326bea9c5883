/* Lines stay where they were read to; what was handed out is dropped when there is no further one,
 * once for all lines of a read. Memory goes back when nothing is left, because most connections are
 * idle and most that are not have had their longest line. */
#include "rpc/transport/lines.h"

#include <stdint.h>
#include <string.h>

enum { KEPT_BYTES = 4096 };

void rpc_lines_init(struct rpc_lines *lines, size_t max)
{
    *lines = (struct rpc_lines){.max = max};
    buf_init(&lines->buf, SIZE_MAX / 2);
}

void rpc_lines_done(struct rpc_lines *lines)
{
    buf_done(&lines->buf);
}

static void lines_drop_used(struct rpc_lines *lines)
{
    buf_consume(&lines->buf, lines->at);
    lines->scanned -= lines->at;
    lines->at = 0;
    if (!lines->buf.len && lines->buf.cap > KEPT_BYTES)
        buf_done(&lines->buf);
}

bool rpc_lines_append(struct rpc_lines *lines, const char *data, size_t len)
{
    if (lines->scanned - lines->at > lines->max)
        return false;
    return buf_append(&lines->buf, data, len);
}

static bool is_blank(const char *line, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (!strchr(" \t\r", line[i]) || !line[i])
            return false;
    return true;
}

/* Up to and without the next line feed. */
static bool lines_cut(struct rpc_lines *lines, const char **ret_line, size_t *ret_len)
{
    const char *end = NULL;

    if (lines->buf.len > lines->scanned)
        end = memchr(lines->buf.data + lines->scanned, '\n', lines->buf.len - lines->scanned);
    if (!end) {
        lines->scanned = lines->buf.len;
        lines_drop_used(lines);
        return false;
    }
    *ret_line = lines->buf.data + lines->at;
    *ret_len = (size_t)(end - *ret_line);
    lines->at += *ret_len + 1;
    lines->scanned = lines->at;
    return true;
}

bool rpc_lines_next(struct rpc_lines *lines, const char **ret_line, size_t *ret_len)
{
    const char *line;
    size_t len;

    do {
        if (!lines_cut(lines, &line, &len))
            return false;
    } while (is_blank(line, len));
    *ret_line = line;
    *ret_len = len;
    return true;
}
