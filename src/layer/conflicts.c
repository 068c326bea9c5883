/* See conflicts.h. What conflict.c asks for beside the two sides of a change: when its first step began, and the folders on
 * the way to it. Paths come sorted, so that of those just the way to the last one is kept, and each is looked at once.
 *
 * A copy of which the real one is missing was either removed by somebody else, or is no copy of it: a file that
 * a command has moved keeps the attribute by which overlayfs knows its origin. The real folder tells: when
 * nothing was done in it since the step began, nobody removed anything from it. */
#include "layer/conflicts.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "layer/conflict.h"
#include "layer/known.h"
#include "layer/walk.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

/* A folder on the way, or a name that is none really. */
struct folder {
    size_t len; /* of its path; 0: the root */
    bool is_there;
    int64_t moved_ns; /* conflict_folder(), of it and of those above */
    int64_t
        edited_ns; /* when somebody else did something in it, or in the nearest above that is there */
};

struct marking {
    const struct layer *layer;
    struct known *known;
    size_t root;
    int fd;     /* of the real root */
    char *path; /* of the last folder */
    struct folder *folders;
    size_t len, cap;
};

static void marking_done(struct marking *marking)
{
    auto_close(&marking->fd);
    known_free(marking->known);
    free(marking->path);
    free(marking->folders);
}

/* Looks at the folder that is the first `len` bytes of the path, and adds it to those on the way. */
static void add_folder(struct marking *marking, size_t len)
{
    const struct folder *above = marking->len ? &marking->folders[marking->len - 1] : NULL;
    struct folder folder = {.len = len, .is_there = !above || above->is_there};
    AUTO_FREE char *path = alloc_strn(marking->path, len);
    AUTO_CLOSE int fd = folder.is_there ? walk_open(marking->fd, path, O_PATH | O_DIRECTORY) : -1;
    struct stat st;

    if (above) {
        folder.moved_ns = above->moved_ns;
        folder.edited_ns = above->edited_ns;
    }
    folder.is_there = fd >= 0 && fstat(fd, &st) == 0;
    if (folder.is_there) {
        const struct change_stamp *known = known_find(marking->known, marking->root, path);
        int64_t moved_ns;
        struct change_stamp stamp;

        change_stamp_of(&st, &stamp);
        moved_ns = conflict_folder(&stamp, change_ns_of(&st.st_mtim), known);
        if (moved_ns > folder.moved_ns)
            folder.moved_ns = moved_ns;
        folder.edited_ns = known && known->ino == stamp.ino && known->dev == stamp.dev &&
                                   known->ctime_ns == stamp.ctime_ns
                               ? 0
                               : stamp.ctime_ns;
    }
    marking->folders =
        alloc_grow(marking->folders, marking->len, &marking->cap, sizeof *marking->folders);
    marking->folders[marking->len++] = folder;
}

/* The folder that `path` lies in. */
static const struct folder *folder_of(struct marking *marking, const char *path)
{
    const char *slash = strrchr(path, '/');
    size_t len = slash ? (size_t)(slash - path) : 0, same = 0, at;

    while (marking->path && same < len && marking->path[same] == path[same])
        same++;
    /* what is no more on the way: all that ends behind what is the same, or in the middle of a name */
    while (marking->len > 1) {
        at = marking->folders[marking->len - 1].len;
        if (at <= same && (at == len || path[at] == '/'))
            break;
        marking->len--;
    }
    free(marking->path);
    marking->path = alloc_strn(path, len);
    if (!marking->len)
        add_folder(marking, 0);
    while ((at = marking->folders[marking->len - 1].len) < len) {
        at += at ? 1 : 0;
        add_folder(marking, at + strcspn(marking->path + at, "/"));
    }
    return &marking->folders[marking->len - 1];
}

static int64_t base_of(const struct layer *layer, int step)
{
    size_t len;
    const struct layer_step *steps = layer_steps(layer, &len);

    for (size_t i = 0; i < len; i++)
        if (steps[i].number == step)
            return change_ns_of(&steps[i].begun);
    return 0; /* then everything is newer */
}

static int begin_root(struct marking *marking, size_t root, struct err *err)
{
    auto_close(&marking->fd);
    marking->fd = layer_open_root(marking->layer, root, err);
    marking->root = root;
    marking->len = 0;
    return marking->fd < 0 ? -1 : 0;
}

static void mark(struct marking *marking, struct change *change)
{
    const struct folder *folder = folder_of(marking, change->path);
    int64_t base_ns = base_of(marking->layer, change->first_step);
    const struct conflict_look look = {
        .base_ns = base_ns,
        .moved_ns = folder->moved_ns,
        .layer = &change->layer,
        .real = &change->real,
        .known = known_find(marking->known, marking->root, change->path),
        .is_copy = change->is_copy && conflict_is_since(folder->edited_ns, base_ns),
    };

    if (conflict_of(&look) != CONFLICT_NONE)
        change->marks |= MARK_CONFLICT;
}

int conflicts_mark(const struct layer *layer, struct changes *changes, struct err *err)
{
    AUTO(marking_done)
    struct marking marking = {.layer = layer, .known = known_load(layer), .fd = -1};

    for (size_t i = 0; i < changes->len; i++) {
        struct change *change = &changes->items[i];

        if ((marking.fd < 0 || marking.root != change->root) &&
            begin_root(&marking, change->root, err))
            return -1;
        mark(&marking, change);
    }
    return 0;
}
