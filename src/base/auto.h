/* Cleanup attributes: one owner per resource, released on every way out of a scope.
 *
 *     AUTO_FREE char *text = NULL;                 freed when the scope ends
 *     AUTO_CLOSE int fd = -1;                      closed when the scope ends
 *     AUTO(buf_done) struct buf buf = {0};         `buf_done(&buf)` when the scope ends
 *     *ret = TAKE_PTR(text);                       hands ownership on; the scope frees nothing
 */
#pragma once

#include <stdlib.h>
#include <unistd.h>

static inline void auto_free(void *slot)
{
    free(*(void **)slot);
}

static inline void auto_close(const int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

#define AUTO(done) __attribute__((cleanup(done)))
#define AUTO_FREE AUTO(auto_free)
#define AUTO_CLOSE AUTO(auto_close)

#define TAKE_PTR(pointer)                                                                          \
    ({                                                                                             \
        __typeof__(pointer) take_ = (pointer);                                                     \
        (pointer) = NULL;                                                                          \
        take_;                                                                                     \
    })

#define TAKE_FD(fd)                                                                                \
    ({                                                                                             \
        int take_ = (fd);                                                                          \
        (fd) = -1;                                                                                 \
        take_;                                                                                     \
    })
