/* The guard's reader of arguments: whatever lies in the caller's memory, what comes of it are strings
 * within the room that there is. The input is memory from FIRST_PAGE on; the first eight bytes are the
 * address. */
#include "fuzz.h"

#include "guard/argv.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_PAGE = 0x10000, ROOM = 3000 };

struct image {
    const uint8_t *data;
    size_t size;
};

static bool read_page(void *data, uint64_t address, char ret[ARGV_PAGE])
{
    const struct image *image = data;
    size_t at = (size_t)(address - FIRST_PAGE);
    size_t len;

    if (address < FIRST_PAGE || at >= image->size)
        return false;
    len = image->size - at < ARGV_PAGE ? image->size - at : ARGV_PAGE;
    memset(ret, 0, ARGV_PAGE);
    memcpy(ret, image->data + at, len);
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct image image = {.data = data, .size = size};
    const struct memory memory = {.read = read_page, .data = &image};
    uint64_t address = 0;
    char *text = malloc(ROOM);
    struct argv argv;
    size_t strings = 0;

    if (text && size >= sizeof address) {
        memcpy(&address, data, sizeof address);
        argv = argv_read(&memory, address, text, ROOM);
        if (argv.len > ROOM)
            abort();
        for (size_t i = 0; i < argv.len; i++)
            strings += !text[i];
        if (strings != argv.count || (argv.len && text[argv.len - 1]))
            abort();
    }
    free(text);
    return 0;
}
