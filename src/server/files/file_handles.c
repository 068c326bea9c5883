/* See file_handles.h. At most 128 of them, so a list is searched as fast as anything. */
#include "server/files/file_handles.h"

#include "base/alloc.h"
#include "base/str.h"

#include <stdlib.h>
#include <unistd.h>

struct handle {
    char *id;
    int fd;
};

struct file_handles {
    struct handle items[FILE_HANDLES_MAX];
    size_t len;
};

struct file_handles *file_handles_new(void)
{
    return alloc_zero(1, sizeof(struct file_handles));
}

static void handle_done(struct handle *handle)
{
    close(handle->fd);
    free(handle->id);
}

void file_handles_free(struct file_handles *handles)
{
    if (!handles)
        return;
    while (handles->len)
        handle_done(&handles->items[--handles->len]);
    free(handles);
}

size_t file_handles_count(const struct file_handles *handles)
{
    return handles->len;
}

static size_t handles_index(const struct file_handles *handles, const char *id)
{
    size_t i = 0;

    while (i < handles->len && !str_eq(handles->items[i].id, id))
        i++;
    return i;
}

int file_handles_find(const struct file_handles *handles, const char *id)
{
    size_t i = handles_index(handles, id);

    return i < handles->len ? handles->items[i].fd : -1;
}

void file_handles_add(struct file_handles *handles, const char *id, int fd)
{
    handles->items[handles->len++] = (struct handle){.id = alloc_str(id), .fd = fd};
}

void file_handles_close(struct file_handles *handles, const char *id)
{
    size_t i = handles_index(handles, id);

    if (i == handles->len)
        return;
    handle_done(&handles->items[i]);
    handles->items[i] = handles->items[--handles->len];
}
