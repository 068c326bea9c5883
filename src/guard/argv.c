/* See argv.h. It is read page by page: the strings of an exec mostly lie side by side, so that some
 * reads are enough for many of them. Any address may be wrong, and the memory may change under us: what
 * was read once is what counts. Pure but for the reading. */
#include "guard/argv.h"

#include <string.h>

/* The page that was read last; those of the array and of the strings take turns. */
struct window {
    const struct memory *memory;
    uint64_t start;
    bool is_read;
    char bytes[ARGV_PAGE];
};

/* What lies at `address`, up to the end of its page (`ret_left` bytes); NULL. */
static const char *look(struct window *window, uint64_t address, size_t *ret_left)
{
    uint64_t start = address - address % ARGV_PAGE;

    if (!window->is_read || window->start != start) {
        window->is_read = window->memory->read(window->memory->data, start, window->bytes);
        window->start = start;
    }
    *ret_left = ARGV_PAGE - (size_t)(address - start);
    return window->is_read ? window->bytes + (address - start) : NULL;
}

/* A pointer may lie across two pages. */
static bool read_pointer(struct window *window, uint64_t address, uint64_t *ret)
{
    char bytes[sizeof *ret];

    for (size_t len = 0; len < sizeof bytes;) {
        size_t left;
        const char *found = look(window, address + len, &left);

        if (!found)
            return false;
        if (left > sizeof bytes - len)
            left = sizeof bytes - len;
        memcpy(bytes + len, found, left);
        len += left;
    }
    memcpy(ret, bytes, sizeof bytes);
    return true;
}

/* How many bytes of the string fit, with its NUL; `ret_is_whole`: all of them. */
static size_t read_string(struct window *window, uint64_t address, char *ret, size_t size,
                          bool *ret_is_whole)
{
    size_t len = 0;

    *ret_is_whole = false;
    while (len < size) {
        size_t left;
        const char *found = look(window, address + len, &left);
        const char *end;

        if (!found)
            break;
        if (left > size - len)
            left = size - len;
        end = memchr(found, '\0', left);
        if (end)
            left = (size_t)(end - found) + 1;
        memcpy(ret + len, found, left);
        len += left;
        if (end) {
            *ret_is_whole = true;
            return len;
        }
    }
    if (len == size && len)
        len--;
    if (len)
        ret[len++] = '\0';
    return len;
}

struct argv argv_read(const struct memory *memory, uint64_t address, char *ret, size_t size)
{
    struct window pointers = {.memory = memory};
    struct window strings = {.memory = memory};
    struct argv argv = {0};

    for (; address; address += sizeof(uint64_t)) {
        uint64_t string;
        bool is_whole;
        size_t len;

        argv.is_truncated = true;
        if (!read_pointer(&pointers, address, &string))
            return argv;
        if (!string)
            break;
        len = read_string(&strings, string, ret + argv.len, size - argv.len, &is_whole);
        argv.len += len;
        argv.count += len > 0;
        if (!is_whole)
            return argv;
    }
    argv.is_truncated = false;
    return argv;
}
