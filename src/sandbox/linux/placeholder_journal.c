/* A journal is a file in the registry folder that its process keeps locked, a run of NUL-terminated
 * paths. One that nobody locks belongs to a dead process, however that ended.
 *
 * The file "0" stays, empty, for the next process: to make and remove one costs more than all that
 * is done with it. Who finds "0" taken makes one of its own.
 */
#include "sandbox/linux/placeholder_journal.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "sandbox/linux/placeholder.h"
#include "sandbox/linux/placeholder_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { JOURNAL_MAX = 16 << 20 };

static const char lasting[] = "0";

static struct {
    char registry[PATH_MAX];
    char path[PATH_MAX];
    int fd;
    bool is_lasting;
} journal = {.fd = -1};

/* false when something of it has to stay for now. */
static bool recover_path(const char *path)
{
    struct err ignored;
    const char *name;
    AUTO_CLOSE int parent = standin_file_open_parent(path, &name, &ignored);
    AUTO_CLOSE int fd = parent < 0 ? -1 : standin_file_open(parent, name);

    return fd < 0 || standin_file_remove(parent, name, fd);
}

/* A journal is a run of NUL-terminated paths; a last one without its end was never acted on. */
static void recover_journal(int registry, const char *name)
{
    AUTO(buf_done) struct buf text = {.max = JOURNAL_MAX};
    AUTO_CLOSE int fd = openat(registry, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct err ignored;
    bool is_done = true;
    size_t at = 0;

    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) || buf_read_fd(&text, fd, &ignored))
        return;
    while (at < text.len && memchr(text.data + at, '\0', text.len - at)) {
        if (path_is_clean(text.data + at))
            is_done &= recover_path(text.data + at);
        at += strlen(text.data + at) + 1;
    }
    if (!is_done || (text.len == 0 && str_eq(name, lasting)))
        return;
    if (!str_eq(name, lasting) || ftruncate(fd, 0))
        unlinkat(registry, name, 0);
}

void journal_recover(void)
{
    struct err ignored;
    const char *registry = standins_registry(&ignored);
    DIR *dir = registry ? opendir(registry) : NULL;
    const struct dirent *entry;

    if (!dir)
        return;
    while ((entry = readdir(dir)))
        if (entry->d_name[0] != '.')
            recover_journal(dirfd(dir), entry->d_name);
    closedir(dir);
}

/* Ours, and nobody else's to write to. */
static bool is_own_folder(const char *path)
{
    struct stat st;

    if (lstat(path, &st) && (errno != ENOENT || mkdir(path, 0700) || lstat(path, &st)))
        return false;
    return S_ISDIR(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & 022);
}

/* Makes the folder `name` below `base`, which has to be absolute, and everything on the way; keeps
 * it as the registry when it is ours alone. */
static bool registry_use(const char *base, const char *name)
{
    char *slash;

    if (!base || !path_is_clean(base))
        return false;
    if (snprintf(journal.registry, sizeof journal.registry, "%s/%s", base, name) >=
        (int)sizeof journal.registry) {
        journal.registry[0] = '\0';
        return false;
    }
    slash = journal.registry + strlen(base) + 1;
    while ((slash = strchr(slash, '/'))) {
        *slash = '\0';
        mkdir(journal.registry, 0700);
        *slash++ = '/';
    }
    if (is_own_folder(journal.registry))
        return true;
    journal.registry[0] = '\0';
    return false;
}

const char *standins_registry(struct err *err)
{
    char name[32];

    snprintf(name, sizeof name, "cordon-%u", (unsigned)geteuid());
    if (journal.registry[0] || registry_use(getenv("XDG_RUNTIME_DIR"), "cordon") ||
        (geteuid() == 0 && registry_use("/run", "cordon")) ||
        registry_use(getenv("HOME"), ".local/state/cordon") || registry_use("/tmp", name))
        return journal.registry;
    err_set(err, ERR_FORBIDDEN,
            "no folder for the registry of stand-ins: set XDG_RUNTIME_DIR or HOME to a folder of "
            "this user (/tmp/%s is somebody else's)",
            name);
    return NULL;
}

/* true when the journal is locked and still has its name: a recovery between the making and the
 * locking takes it for a dead one's. */
static bool journal_lock(int mode)
{
    struct stat st;

    return flock(journal.fd, LOCK_EX | mode) == 0 && fstat(journal.fd, &st) == 0 &&
           st.st_nlink == 1 && st.st_size == 0;
}

/* The lasting one, unless somebody has it or has to recover from it first. */
static bool journal_open_lasting(const char *registry)
{
    snprintf(journal.path, sizeof journal.path, "%.*s/%s", PATH_MAX - 8, registry, lasting);
    journal.fd = open(journal.path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    journal.is_lasting = journal.fd >= 0 && journal_lock(LOCK_NB);
    if (journal.fd >= 0 && !journal.is_lasting) {
        close(journal.fd);
        journal.fd = -1;
    }
    return journal.is_lasting;
}

static int journal_open(struct err *err)
{
    const char *registry = standins_registry(err);

    if (registry && access(registry, W_OK)) {
        journal.registry[0] = '\0'; /* somebody cleaned up: make it again */
        registry = standins_registry(err);
    }
    if (!registry)
        return -1;
    while (!journal_open_lasting(registry)) {
        snprintf(journal.path, sizeof journal.path, "%.*s/XXXXXX", PATH_MAX - 8, registry);
        journal.fd = mkostemp(journal.path, O_CLOEXEC);
        if (journal.fd < 0)
            return err_sys(err, "making a journal in %s", registry);
        if (journal_lock(0))
            break;
        close(journal.fd);
        journal.fd = -1;
    }
    return 0;
}

void journal_close(bool has_leftover)
{
    if (journal.fd < 0)
        return;
    if (!has_leftover && (!journal.is_lasting || ftruncate(journal.fd, 0)))
        unlink(journal.path);
    close(journal.fd);
    journal.fd = -1;
}

int journal_add(const char *path, struct err *err)
{
    if (journal.fd < 0 && journal_open(err))
        return -1;
    if (fd_write_all(journal.fd, path, strlen(path) + 1, err))
        return err_wrap(err, "the journal of stand-ins");
    return 0;
}
