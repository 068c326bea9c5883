/* A screen: the first two bytes are its size, the rest is what a program writes. A byte 0xff, which
 * is never part of UTF-8, resizes to the two bytes behind it. The same bytes one by one have to
 * show the same. */
#include "fuzz.h"

#include "base/buf.h"
#include "base/utf8.h"
#include "screen/screen.h"

#include <stdlib.h>
#include <string.h>

static void check(bool holds)
{
    if (!holds)
        abort();
}

static struct pty_size size_of(const uint8_t *data)
{
    return (struct pty_size){.rows = data[0] % 40, .columns = data[1]};
}

static void feed(struct screen *screen, const char *bytes, size_t len, size_t step)
{
    while (len) {
        size_t taken = screen_feed(screen, bytes, len < step ? len : step);

        check(taken > 0 && taken <= len);
        bytes += taken;
        len -= taken;
    }
}

static struct screen *play(const uint8_t *data, size_t size, size_t step)
{
    const uint8_t *end = data + size;
    struct screen *screen = screen_new(&(struct screen_options){
        .size = size_of(data), .limits = {.lines_max = 20, .bytes_max = 1000}});

    data += 2;
    while (data < end) {
        const uint8_t *resize = memchr(data, 0xff, (size_t)(end - data));
        const uint8_t *stop = resize ? resize : end;

        feed(screen, (const char *)data, (size_t)(stop - data), step);
        if (resize && end - resize >= 3)
            screen_resize(screen, size_of(resize + 1));
        data = resize && end - resize >= 3 ? resize + 3 : end;
    }
    return screen;
}

static void draw(const struct screen *screen, struct buf *ret)
{
    struct screen_info info;

    screen_info(screen, &info);
    check(info.cursor_row < info.rows && info.cursor_column < info.columns);
    check(info.lines <= 20 && info.lines <= info.lines_total);
    buf_appendf(ret, "%u,%u %d%d %s\n", info.cursor_row, info.cursor_column, info.is_cursor_visible,
                info.is_alternate, info.title);
    for (size_t i = 0; i < info.lines; i++)
        buf_appendf(ret, "%s\n", screen_line(screen, i));
    for (unsigned row = 0; row < info.rows; row++) {
        check(screen_row(screen, row, ret));
        buf_append_str(ret, "\n");
    }
    check(utf8_is_valid(ret->data, ret->len));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct screen *whole;
    struct screen *by_byte;
    struct buf drawn;
    struct buf drawn_by_byte;

    if (size < 2)
        return 0;
    if (size > 2000)
        size = 2000;
    buf_init(&drawn, 1 << 24);
    buf_init(&drawn_by_byte, 1 << 24);
    whole = play(data, size, SIZE_MAX);
    by_byte = play(data, size, 1);
    draw(whole, &drawn);
    draw(by_byte, &drawn_by_byte);
    check(drawn.len == drawn_by_byte.len && memcmp(drawn.data, drawn_by_byte.data, drawn.len) == 0);
    buf_done(&drawn);
    buf_done(&drawn_by_byte);
    screen_free(whole);
    screen_free(by_byte);
    return 0;
}
