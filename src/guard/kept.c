/* See kept.h. Where a path leads is asked anew for each call; what is spared is to open it. A directory
 * that is open keeps its number, and its mount, from being another's, on file systems that number their
 * directories by themselves; on others (FUSE) two may have the same number, so nothing is kept there. */
#include "guard/kept.h"

#include "guard/folder.h"

#include <unistd.h>

struct kept_dir *kept_find(struct command *command, const struct identity *identity)
{
    for (struct kept_dir *dir = command->kept; dir < command->kept + KEPT_MAX; dir++)
        if (dir->is_open && is_same_file(&dir->identity, identity) &&
            dir->identity.mount == identity->mount) {
            dir->users++;
            return dir;
        }
    return NULL;
}

/* One after the other, but for those that are in use. */
static struct kept_dir *find_slot(struct command *command)
{
    for (int i = 0; i < KEPT_MAX; i++) {
        struct kept_dir *dir = &command->kept[command->next_kept++ % KEPT_MAX];

        if (!dir->users)
            return dir;
    }
    return NULL;
}

struct kept_dir *kept_add(struct command *command, int fd, const struct identity *identity)
{
    struct kept_dir *dir = folder_has_own_numbers(fd) ? find_slot(command) : NULL;

    if (!dir)
        return NULL;
    if (dir->is_open)
        close(dir->fd);
    *dir = (struct kept_dir){.fd = fd, .is_open = true, .users = 1, .identity = *identity};
    return dir;
}

void kept_release(struct kept_dir *dir)
{
    dir->users--;
}

void kept_close_all(struct command *command)
{
    for (int i = 0; i < KEPT_MAX; i++)
        if (command->kept[i].is_open)
            close(command->kept[i].fd);
}
