/* Writing down and removing are one walk, entry by entry in the order of their names: what a later
 * entry says of its links is the same wherever the entries before it were the same. */
#include "tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "op.h"

enum { ENTRIES_MAX = 128, INODES_MAX = 256, PLACE_FD = 4, DEPTH_MAX = 40 };

#define LINK_FOLDER "p" /* the generator does not use this name */
#define MADE_FOLDER "made"

struct walk {
    struct log *log;
    struct {
        dev_t device;
        ino_t inode;
    } seen[INODES_MAX];
    int seen_len;
};

static char type_letter(mode_t mode)
{
    static const char letters[] = "?pc?d?b?-?l?s???";

    return letters[(mode & S_IFMT) >> 12];
}

/* The how-manieth file with several names this is; 0 for one with a single name. */
static int link_group(struct walk *walk, const struct stat *st)
{
    if (S_ISDIR(st->st_mode))
        return 0;
    for (int i = 0; i < walk->seen_len; i++)
        if (walk->seen[i].device == st->st_dev && walk->seen[i].inode == st->st_ino)
            return i + 1;
    if (st->st_nlink < 2 || walk->seen_len == INODES_MAX)
        return 0;
    walk->seen[walk->seen_len].device = st->st_dev;
    walk->seen[walk->seen_len].inode = st->st_ino;
    return ++walk->seen_len;
}

static void add_acl(struct log *log, int fd, const char *name)
{
    unsigned char value[256];
    char path[64];
    ssize_t len;

    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    len = getxattr(path, name, value, sizeof value);
    if (len < 0)
        return;
    log_add(log, " %s=", strrchr(name, '.') + 1);
    for (ssize_t i = 0; i < len; i++)
        log_add(log, "%02x", value[i]);
}

static void add_content(struct log *log, int dir, const char *name, const struct stat *st)
{
    char text[4096];
    struct log content;
    ssize_t len;
    int fd;

    if (!(st->st_mode & S_IRUSR))
        fchmodat(dir, name, (st->st_mode & 0777) | S_IRUSR, 0);
    fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
        log_add(log, " unread:%s", error_name(errno));
        return;
    }
    log_init(&content, "{W}", false);
    while ((len = read(fd, text, sizeof text - 1)) > 0) {
        for (ssize_t i = 0; i < len; i++)
            text[i] = text[i] ? text[i] : '0';
        text[len] = '\0';
        log_add(&content, "%s", text);
    }
    if (st->st_size)
        log_add(log, " content:%08lx", (unsigned long)content.hash & 0xffffffffu);
    close(fd);
}

static void add_entry(struct walk *walk, int dir, const char *name, const char *shown,
                      const struct stat *st)
{
    struct log *log = walk->log;
    int fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    char link[4096];
    ssize_t len;

    log_add(log, "  %s %c%04o", shown, type_letter(st->st_mode), st->st_mode & 07777);
    if (!S_ISDIR(st->st_mode))
        log_add(log, " links %d size %ld", (int)st->st_nlink, (long)st->st_size);
    if (link_group(walk, st))
        log_add(log, " file#%d", link_group(walk, st));
    if (st->st_uid != geteuid())
        log_add(log, " of-another");
    if (st->st_gid != getegid())
        log_add(log, " group-of-another");
    if (S_ISLNK(st->st_mode)) {
        len = readlinkat(dir, name, link, sizeof link - 1);
        link[len < 0 ? 0 : len] = '\0';
        log_add(log, " -> %s", link);
    } else if (fd >= 0) {
        add_acl(log, fd, "system.posix_acl_access");
        add_acl(log, fd, "system.posix_acl_default");
    }
    if (S_ISREG(st->st_mode))
        add_content(log, dir, name, st);
    log_add(log, "\n");
    if (fd >= 0)
        close(fd);
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Names in a folder, sorted; the caller frees them. Takes the descriptor. */
static int names_in(int fd, char *names[ENTRIES_MAX])
{
    DIR *listing = fdopendir(fd);
    int len = 0;

    if (!listing)
        return 0;
    for (struct dirent *entry; len < ENTRIES_MAX && (entry = readdir(listing));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            names[len++] = strdup(entry->d_name);
    closedir(listing);
    qsort(names, (size_t)len, sizeof *names, compare);
    return len;
}

static void walk_folder(struct walk *walk, int dir, const char *path, int depth);

static void walk_entry(struct walk *walk, int dir, const char *name, const char *path, int depth)
{
    bool is_kept = !strcmp(path, "") && !strcmp(name, MADE_FOLDER);
    char shown[1024];
    struct stat st;
    int below;

    snprintf(shown, sizeof shown, "%s%s%s", path, *path ? "/" : "", name);
    if (is_kept || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW))
        return;
    add_entry(walk, dir, name, shown, &st);
    if (S_ISDIR(st.st_mode)) {
        if ((st.st_mode & 0700) != 0700)
            fchmodat(dir, name, 0700, 0);
        below = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (below < 0)
            log_add(walk->log, "  %s closed: %s\n", shown, error_name(errno));
        else if (depth < DEPTH_MAX)
            walk_folder(walk, below, shown, depth + 1);
    }
    if (unlinkat(dir, name, S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0))
        log_add(walk->log, "  %s stays: %s\n", shown, error_name(errno));
}

/* Takes the descriptor. */
static void walk_folder(struct walk *walk, int dir, const char *path, int depth)
{
    char *names[ENTRIES_MAX];
    int list = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int len = list < 0 ? 0 : names_in(list, names);

    for (int i = 0; i < len; i++) {
        walk_entry(walk, dir, names[i], path, depth);
        free(names[i]);
    }
    close(dir);
}

/* Its mode and lists as they were in the beginning; those who made it for us may own it. */
static void restore(int fd, mode_t mode)
{
    char path[64];
    struct stat st;

    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (fstat(fd, &st) || st.st_uid != geteuid())
        return;
    removexattr(path, "system.posix_acl_default");
    if (getxattr(path, "system.posix_acl_access", NULL, 0) >
        0) /* else it costs the set-group-id bit */
        removexattr(path, "system.posix_acl_access");
    if ((st.st_mode & 07777) != mode)
        fchmod(fd, mode);
}

static mode_t place_mode;

bool stage_enter(struct stage *stage, const char *place)
{
    bool is_made = strcmp(place, "root") != 0 && strcmp(place, "deep") != 0;
    size_t len;
    struct stat st;
    int fd;

    len = (size_t)snprintf(stage->base, sizeof stage->base, "%s%s%s", stage->folder,
                           is_made ? "/" MADE_FOLDER "/" : "", is_made ? place : "");
    umask(022);
    fd = open(stage->base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st))
        return false;
    if (fd != PLACE_FD) {
        dup3(fd, PLACE_FD, O_CLOEXEC);
        close(fd);
    }
    place_mode = st.st_mode & 07777;
    stage->is_deep = strcmp(place, "root") != 0 && strcmp(place, "shared") != 0;
    for (int i = 0; i < FOLDERS_DEPTH && stage->is_deep; i++) {
        len += (size_t)snprintf(stage->base + len, sizeof stage->base - len, "/" LINK_FOLDER);
        if (mkdir(stage->base, 0755) && errno != EEXIST)
            return false;
    }
    return chdir(stage->base) == 0;
}

void stage_leave(struct log *log)
{
    struct walk walk = {.log = log};
    char *names[ENTRIES_MAX];
    struct stat st;
    int len, list;

    umask(022);
    fchdir(FOLDER_FD);
    if (!fstat(PLACE_FD, &st))
        log_add(log, "tree %04o\n", st.st_mode & 07777);
    restore(PLACE_FD, place_mode);
    list = openat(PLACE_FD, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    len = list < 0 ? 0 : names_in(list, names);
    for (int i = 0; i < len; i++) {
        /* what was made for us, and belongs to somebody else, stays */
        if (fstatat(PLACE_FD, names[i], &st, AT_SYMLINK_NOFOLLOW) == 0)
            walk_entry(&walk, PLACE_FD, names[i], "", 0);
        free(names[i]);
    }
}
