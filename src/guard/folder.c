/* See folder.h. A directory is known by device and inode, never by its path, so that it does not
 * matter how a path to it is spelled, and what is moved meanwhile.
 *
 * Where file names fold case, a name may be spelled in ways that only the file system knows: by
 * Unicode's rules, which also leave characters out. There each character beyond ASCII stands for
 * anything. */
#include "guard/folder.h"

#include "base/auto.h"
#include "base/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/* linux/magic.h and the file systems' own headers: those of Linux's own whose names are bytes,
 * unless a directory says that it folds case. */
static const uint32_t bytewise[] = {
    0xef53,     /* ext2, 3, 4 */
    0x58465342, /* xfs */
    0x9123683e, /* btrfs */
    0x01021994, /* tmpfs */
    0x794c7630, /* overlayfs */
    0xf2f52010, /* f2fs */
    0x2fc12fc1, /* zfs */
    0x6969,     /* nfs */
    0x858458f6, /* ramfs */
    0x52654973, /* reiserfs */
    0x3153464a, /* jfs */
    0xca451a4e, /* bcachefs */
};

bool folder_has_own_numbers(int fd)
{
    struct statfs fs;

    if (fstatfs(fd, &fs))
        return false;
    for (size_t i = 0; i < sizeof bytewise / sizeof *bytewise; i++)
        if (bytewise[i] == (uint32_t)fs.f_type)
            return true;
    return false;
}

bool folder_folds_case(int path_fd)
{
    AUTO_CLOSE int fd = openat(path_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    unsigned long flags = 0;

    if (fd < 0)
        return true;
    if (ioctl(fd, (int)K_FS_IOC_GETFLAGS, &flags) == 0 && (flags & K_FS_CASEFOLD_FL))
        return true;
    return !folder_has_own_numbers(fd);
}

/* Opens the directory `path` of the command, none of whose components may be a symlink. Returns its
 * index, that of one that is known already, or -1. */
static int folder_add(struct command *command, const char *path, int entry)
{
    const struct sys_open_how how = {
        .flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
        .resolve = SYS_RESOLVE_IN_ROOT | SYS_RESOLVE_NO_SYMLINKS,
    };
    AUTO_CLOSE int fd = sys_openat2(command->root, path, &how);
    struct identity identity;
    struct folder *folder;

    if (fd < 0 || !identify(fd, &identity))
        return -1;
    for (uint32_t i = 0; i < command->folders_len; i++) {
        folder = &command->folders[i];
        if (!is_same_file(&folder->identity, &identity))
            continue;
        if (entry != GUARD_NO_ENTRY)
            folder->entry = entry;
        return (int)i;
    }
    folder = &command->folders[command->folders_len];
    *folder =
        (struct folder){.identity = identity, .entry = entry, .folds_case = folder_folds_case(fd)};
    folder->fd = TAKE_FD(fd);
    return (int)command->folders_len++;
}

/* Where each of them is a mount, or lies on the mount of one, that mount says enough about a place. */
static bool root_add(struct command *command, int entry)
{
    const uint32_t flags = command->map.header->flags & (GUARD_MAP_OWN_MOUNTS | GUARD_MAP_NESTED);
    int folder = folder_add(command, map_path(&command->map, entry), entry);
    const bool is_asked = command->map.entries[entry].flags & GUARD_ENTRY_ASKED;

    if (folder >= 0 && !is_asked && flags == GUARD_MAP_OWN_MOUNTS &&
        command->mounts_len < MOUNTS_MAX)
        command->mounts[command->mounts_len++] = command->folders[folder].identity.mount;
    return folder >= 0;
}

/* The map is ordered, so most names lie in the directory of the one before: `last` is the entry of
 * that, or -1. */
static bool held_name_add(struct command *command, int entry, int last)
{
    char parent[PATH_MAX];
    const char *path = map_path(&command->map, entry);
    const char *before = last < 0 ? "" : map_path(&command->map, last);
    size_t len = (size_t)(strrchr(path, '/') - path);
    int folder;

    if (len >= sizeof parent)
        return false;
    snprintf(parent, sizeof parent, "%.*s", (int)(len ? len : 1), path);
    if (strncmp(before, path, len + 1) == 0 && !strchr(before + len + 1, '/'))
        folder = (int)command->held_names[command->held_names_len - 1].folder;
    else
        folder = folder_add(command, parent, GUARD_NO_ENTRY);
    if (folder < 0)
        return false;
    command->held_names[command->held_names_len++] =
        (struct held_name){.folder = (uint32_t)folder, .entry = entry};
    return true;
}

void folders_open(struct command *command)
{
    const struct guard_map *header = command->map.header;
    size_t roots = 0, names = 0;
    int last = -1;

    for (uint32_t i = 0; i < header->entries; i++) {
        roots += (command->map.entries[i].flags & GUARD_ENTRY_ROOT) != 0;
        names += (command->map.entries[i].flags & GUARD_ENTRY_HELD_NAME) != 0;
    }
    if (!roots && !names)
        return;
    command->folders = calloc(roots + names, sizeof *command->folders);
    command->held_names = calloc(names + 1, sizeof *command->held_names);
    command->is_broken = !command->folders || !command->held_names;
    for (uint32_t i = 0; !command->is_broken && i < header->entries; i++) {
        unsigned flags = command->map.entries[i].flags;

        if (flags & GUARD_ENTRY_ROOT)
            command->is_broken |= !root_add(command, (int)i);
        if (flags & GUARD_ENTRY_HELD_NAME) {
            command->is_broken |= !held_name_add(command, (int)i, last);
            last = (int)i;
        }
    }
}

void folders_close(struct command *command)
{
    for (uint32_t i = 0; i < command->folders_len; i++)
        close(command->folders[i].fd);
    free(command->folders);
    free(command->held_names);
}

bool folder_is_mount_of_root(const struct command *command, uint64_t mount)
{
    for (uint32_t i = 0; i < command->mounts_len; i++)
        if (command->mounts[i] == mount)
            return true;
    return false;
}

bool folder_is_root(const struct command *command, const struct identity *identity)
{
    for (uint32_t i = 0; i < command->folders_len; i++)
        if (command->folders[i].entry != GUARD_NO_ENTRY &&
            is_same_file(&command->folders[i].identity, identity))
            return true;
    return false;
}

/* `spelled` may be the name `held` to a file system that folds case; `held` is ASCII. */
static bool is_folded(const char *spelled, const char *held)
{
    if ((signed char)*spelled < 0) {
        do
            spelled++;
        while (((unsigned char)*spelled & 0xc0) == 0x80);
        for (;; held++) {
            if (is_folded(spelled, held))
                return true;
            if (!*held)
                return false;
        }
    }
    if (!*spelled || !*held)
        return *spelled == *held;
    return strncasecmp(spelled, held, 1) == 0 && is_folded(spelled + 1, held + 1);
}

enum { FOLDED_MAX = 8 }; /* characters beyond ASCII in a name that could still be another's */

bool folder_may_be(const char *spelled, const char *held)
{
    size_t beyond = 0;
    size_t length;

    /* FAT and its kin drop what a name ends with */
    for (length = strlen(spelled); length && strchr(". ", spelled[length - 1]); length--)
        continue;
    if (strcasecmp(spelled, held) == 0 ||
        (strlen(held) == length && strncasecmp(spelled, held, length) == 0))
        return true;
    for (const char *at = spelled; *at; at++)
        beyond += ((unsigned char)*at & 0xc0) == 0xc0;
    return beyond && (beyond > FOLDED_MAX || is_folded(spelled, held));
}

/* Names of ASCII letters differ by case alone nowhere where it matters, so case never counts. */
static bool is_name(const struct folder *folder, const char *spelled, const char *held)
{
    return folder->folds_case ? folder_may_be(spelled, held) : strcasecmp(spelled, held) == 0;
}

/* A name that is held is on the way, however it is spelled. */
static bool leads_through_held(const struct command *command, const char *path)
{
    for (uint32_t i = 0; i < command->held_names_len; i++) {
        const char *held = map_path(&command->map, command->held_names[i].entry);
        const char *last = strrchr(held, '/') + 1;
        const size_t dir = (size_t)(last - held) - 1;
        char name[NAME_MAX + 2];

        if (strncasecmp(path, held, dir) != 0 || path[dir] != '/')
            continue;
        snprintf(name, sizeof name, "%.*s", (int)strcspn(path + dir + 1, "/"), path + dir + 1);
        if (is_name(&command->folders[command->held_names[i].folder], name, last))
            return true;
    }
    return false;
}

bool folder_is_guarded(const struct command *command, const char *path)
{
    const uint32_t flags = command->map.header->flags;

    if (flags & GUARD_MAP_ALONE) /* nothing is mounted that would be narrower for us */
        return !map_is_ours(path) && !leads_through_held(command, path) &&
               map_access(&command->map, map_find(&command->map, path)) == GUARD_WRITE;
    if (flags & GUARD_MAP_NO_LANDLOCK)
        return true;
    for (uint32_t i = 0; i < command->folders_len; i++) {
        int entry = command->folders[i].entry;

        if (entry != GUARD_NO_ENTRY && map_is_within(path, map_path(&command->map, entry)))
            return true;
    }
    return false;
}

static bool exists(int dir, const char *name)
{
    struct stat st;

    return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT;
}

enum { HEAD, OBJECTS, REFS, COMMONDIR, PARTS };

static const char *const parts[PARTS] = {"HEAD", "objects", "refs", "commondir"};

static bool is_repository(const bool has[PARTS])
{
    return has[HEAD] && ((has[OBJECTS] && has[REFS]) || has[COMMONDIR]);
}

/* Begins as git wants it: with what it refers to, or a commit. */
static bool is_head(int fd)
{
    char text[5] = "";

    return fd >= 0 && read(fd, text, 4) == 4 &&
           (strcmp(text, "ref:") == 0 || strspn(text, "0123456789abcdef") == 4);
}

/* git uses the .git that is there, or dies; the directory around it is none of its business. A .git
 * that is no repository is passed over. (The command cannot change it.) */
static bool has_git(const struct folder *folder)
{
    AUTO_CLOSE int git = openat(folder->fd, ".git", O_PATH | O_NOFOLLOW | O_CLOEXEC);
    AUTO_CLOSE int head = -1;
    bool has[PARTS];
    struct stat st;

    if (git < 0 || fstat(git, &st))
        return false;
    if (!S_ISDIR(st.st_mode))
        return S_ISREG(st.st_mode);
    for (size_t i = 0; i < PARTS; i++)
        has[i] = faccessat(git, parts[i], F_OK, AT_SYMLINK_NOFOLLOW) == 0;
    if (is_repository(has))
        head = openat(git, parts[HEAD], O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    return is_head(head);
}

/* What git takes for a repository, a directory or a link to one (setup.c, is_git_directory): HEAD, and
 * objects and refs, which may also be elsewhere, where `commondir` says. It looks at .git first. One
 * that is a repository already does not become one.
 *
 * Who may commit can change what is in .git, and so the look at it says nothing.
 *
 * The guard of another command might make the other half at the same time. So each locks the
 * directory; who finds it locked does not wait, because a command can lock it, too. */
static bool makes_repository(const struct command *command, const struct folder *folder,
                             const char *name, int *ret_lock)
{
    bool has[PARTS], will_have[PARTS];
    bool is_part = false;

    for (size_t i = 0; i < PARTS; i++) {
        will_have[i] = is_name(folder, name, parts[i]);
        is_part |= will_have[i];
    }
    if (!is_part || (!command->has_git && has_git(folder)))
        return false;
    *ret_lock = openat(folder->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*ret_lock < 0 || flock(*ret_lock, LOCK_EX | LOCK_NB))
        return true;
    for (size_t i = 0; i < PARTS; i++) {
        has[i] = exists(folder->fd, parts[i]);
        will_have[i] |= has[i];
    }
    return is_repository(will_have) && !is_repository(has);
}

bool folder_refuses(const struct command *command, struct place *place, int *ret_entry)
{
    char name[NAME_MAX + 2];
    size_t len = strlen(place->name);

    len -= len && place->name[len - 1] == '/';
    memcpy(name, place->name, len);
    name[len] = '\0';
    *ret_entry = GUARD_NO_ENTRY;
    for (uint32_t i = 0; i < command->folders_len; i++) {
        const struct folder *folder = &command->folders[i];

        if (!is_same_file(&folder->identity, &place->identity))
            continue;
        for (uint32_t k = 0; k < command->held_names_len; k++) {
            *ret_entry = command->held_names[k].entry;
            if (command->held_names[k].folder == i &&
                is_name(folder, name, strrchr(map_path(&command->map, *ret_entry), '/') + 1))
                return true;
        }
        *ret_entry = folder->entry;
        return folder->entry != GUARD_NO_ENTRY &&
               makes_repository(command, folder, name, &place->lock);
    }
    return false;
}

bool folder_refuses_name(const struct command *command, const char *name)
{
    for (uint32_t i = 0; i < command->held_names_len; i++) {
        const struct held_name *held = &command->held_names[i];
        const char *path = map_path(&command->map, held->entry);

        if (is_name(&command->folders[held->folder], name, strrchr(path, '/') + 1))
            return true;
    }
    for (uint32_t i = 0; i < command->folders_len; i++)
        for (size_t k = 0; k < PARTS; k++)
            if (command->folders[i].entry != GUARD_NO_ENTRY &&
                is_name(&command->folders[i], name, parts[k]))
                return true;
    return false;
}
