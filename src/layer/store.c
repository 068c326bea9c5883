/* The disk below layers: folders of ours, files that are replaced whole, and trees that go.
 *
 * A folder of layers is opened component by component, is the user's own, and nobody else may enter it: what lies
 * in it can be trusted as far as the user's own files can. In /var/tmp and /dev/shm somebody else may have made
 * our name first; then the folder is refused, and never used.
 *
 * What goes is first moved to the layer's trash by one rename, so that it is there whole or gone. The trash is emptied
 * without recursion: a command can nest folders as deep as it likes. Folders in folders are moved up to the
 * trash itself, where they wait for their turn. Nothing else touches the trash, so names may be used there.
 *
 * Files are written without fsync(2): a layer is mounted volatile, its contents are as lost as they after a power
 * failure, and a layer of another boot is suspect for that reason. */
#include "layer/inside.h"
#include "layer/overlaid.h"

#include "base/account.h"
#include "base/alloc.h"
#include "base/auto.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "base/sys.h"
#include "policy/host_view.h"
#include "sandbox/linux/mounts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TRASH "trash"
#define WORKED ".worked" /* the boot, and a line for each root */

enum { WORKED_MAX = 8192 };

static int open_dir(int dir, const char *name)
{
    return sys_fault() ? -1 : openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* --- folders of ours --- */

static int check_own(int fd, mode_t closed, const char *path, struct err *err)
{
    struct stat st;

    if (sys_fault() || fstat(fd, &st))
        return err_sys(err, "%s", path);
    if (st.st_uid != geteuid())
        return err_set(err, ERR_FORBIDDEN,
                       "%s belongs to the user with id %u, so no layers are kept there", path,
                       (unsigned)st.st_uid);
    if (st.st_mode & closed)
        return err_set(
            err, ERR_FORBIDDEN,
            "%s is open to others (mode %04o), so no layers are kept there: chmod 700 %s", path,
            (unsigned)(st.st_mode & 07777), path);
    return 0;
}

static int open_own(int dir, const char *name, mode_t closed, const char *path, struct err *err)
{
    AUTO_CLOSE int fd = open_dir(dir, name);

    if (fd < 0 && errno == ENOENT)
        return err_set(err, ERR_NOT_FOUND, "there is no %s", path);
    if (fd < 0)
        return err_sys(err, "%s", path);
    return check_own(fd, closed, path, err) ? -1 : TAKE_FD(fd);
}

static int make_own(int dir, const char *name, bool makes, mode_t closed, const char *path,
                    struct err *err) /* style: six, since two are about messages */
{
    if (makes && (sys_fault() || mkdirat(dir, name, 0700)) && errno != EEXIST)
        return err_sys(err, "making %s", path);
    return open_own(dir, name, closed, path, err);
}

/* Where the user's programs keep what they remember. NULL: not known. */
static char *state_path(void)
{
    const char *state = getenv("XDG_STATE_HOME");
    const char *home = getenv("HOME");
    AUTO(account_done) struct account account = {0};

    if (state && state[0] == '/')
        return path_clean("/", state);
    if (!home || home[0] != '/' || !home[1]) {
        account_find(&account);
        home = account.home;
    }
    return home && home[0] == '/' && home[1] ? path_clean(home, ".local/state") : NULL;
}

/* What the folder lies in: there for every user, or the user's own. */
static char *outer_path(enum store_base base)
{
    switch (base) {
    case STORE_STATE:
        return state_path();
    case STORE_VAR_TMP:
        return alloc_str("/var/tmp");
    case STORE_MEMORY:
        return alloc_str("/dev/shm");
    case STORE_BASES:
        break;
    }
    return NULL;
}

/* Of ours, in that. */
static char *own_name(enum store_base base)
{
    return base == STORE_STATE ? alloc_str("cordon") : alloc_strf("cordon-%u", (unsigned)geteuid());
}

static int open_outer(enum store_base base, bool makes, char **ret_path, struct err *err)
{
    AUTO_FREE char *path = outer_path(base);
    AUTO(path_walk_done) struct path_walk walk = {0};
    AUTO_CLOSE int fd = -1;

    if (!path)
        return err_set(err, ERR_NOT_FOUND, "no home directory is known to keep layers in");
    if (path_walk(&host_view_real, path, &walk, err))
        return -1;
    if (walk.end != PATH_FOUND && (!makes || base != STORE_STATE))
        return err_set(err, ERR_NOT_FOUND, "there is no %s", path);
    if (walk.end != PATH_FOUND && fd_make_dirs(walk.path, 0700, err))
        return -1;
    fd = fd_open_path_strict(walk.path, err);
    if (fd < 0 || (base == STORE_STATE && check_own(fd, 022, walk.path, err)))
        return -1;
    *ret_path = alloc_str(walk.path);
    return TAKE_FD(fd);
}

/* --- inside of a sandbox --- */

static bool look_for_layer(void *data, const struct mount_seen *mount)
{
    bool *is_found = data;

    *is_found = str_starts(mount->source, LAYER_MOUNT_NAME);
    return !*is_found;
}

int store_explain(struct err *err)
{
    const char *sandbox = getenv("CORDON_SANDBOX");
    bool is_in_layer = false;

    mounts_each(look_for_layer, &is_in_layer);
    if (is_in_layer)
        return err_set(
            err, ERR_UNSUPPORTED,
            "this runs in a layer already, and in one there can be no other, nor be looked at: "
            "what is written here is in that layer. Do without --layer and --undo here; outside, "
            "\"cordon changes\" shows all of it");
    if (sandbox && str_eq(sandbox, "linux"))
        return err_set(
            err, ERR_UNSUPPORTED,
            "this runs in a sandbox of Cordon's, from which no layer can be had or looked at: do "
            "it outside of it");
    return -1;
}

static int open_base(enum store_base base, bool makes, char **ret_path, struct err *err)
{
    AUTO_FREE char *outer_name = NULL;
    AUTO_CLOSE int outer = open_outer(base, makes, &outer_name, err);
    AUTO_FREE char *name = own_name(base);
    AUTO_FREE char *own_path = outer < 0 ? NULL : path_join(outer_name, name);
    AUTO_FREE char *path = outer < 0 ? NULL : path_join(own_path, "layers");
    AUTO_CLOSE int own = -1;
    AUTO_CLOSE int fd = -1;

    if (outer < 0)
        return -1;
    own = make_own(outer, name, makes, base == STORE_STATE ? 022 : 077, own_path, err);
    if (own < 0)
        return -1;
    fd = make_own(own, "layers", makes, 077, path, err);
    if (fd < 0)
        return -1;
    *ret_path = TAKE_PTR(path);
    return TAKE_FD(fd);
}

int store_open_base(enum store_base base, bool makes, char **ret_path, struct err *err)
{
    int fd = open_base(base, makes, ret_path, err);

    return fd < 0 && err->code != ERR_NOT_FOUND ? store_explain(err) : fd;
}

int store_open_layer(int base, const char *id, struct err *err)
{
    return open_own(base, id, 077, id, err);
}

int store_make(int dir, const char *name, struct err *err)
{
    return (sys_fault() || mkdirat(dir, name, 0700)) && errno != EEXIST
               ? err_sys(err, "making %s in a layer", name)
               : 0;
}

int store_make_dir(int dir, const char *name, mode_t mode, struct err *err)
{
    AUTO_CLOSE int fd = -1;

    if (store_make(dir, name, err))
        return -1;
    fd = open_dir(dir, name);
    if (fd < 0)
        return err_sys(err, "%s in a layer", name);
    if (mode != 0700 && (sys_fault() || fchmod(fd, mode)))
        return err_sys(err, "%s in a layer", name);
    return TAKE_FD(fd);
}

/* Also those that are missing: whoever could make one could make layers in it. */
void layers_folders(struct strv *ret)
{
    for (int base = 0; base < STORE_BASES; base++) {
        AUTO_FREE char *outer = outer_path((enum store_base)base);
        AUTO_FREE char *own = own_name((enum store_base)base);

        if (outer)
            strv_pushf(ret, "%s/%s/layers", str_eq(outer, "/") ? "" : outer, own);
    }
}

/* --- names --- */

void store_step_dir(size_t root, int step, const char *part, char ret[STORE_NAME_MAX])
{
    char name[STEP_NAME_MAX] = "next";

    if (step != STEP_NEXT)
        snprintf(name, sizeof name, "%04d", step);
    snprintf(ret, STORE_NAME_MAX, "roots/%zu/%s%s%s", root, name, part ? "/" : "",
             part ? part : "");
}

void store_step_file(int step, char ret[STORE_NAME_MAX])
{
    snprintf(ret, STORE_NAME_MAX, "steps/%04d.json", step);
}

int store_step_number(const char *text, const char *suffix)
{
    size_t digits = strspn(text, "0123456789");
    char again[STEP_NAME_MAX];
    long number = strtol(text, NULL, 10);

    if (digits < 4 || digits > 9 || !str_eq(text + digits, suffix))
        return 0;
    snprintf(again, sizeof again, "%04ld", number);
    return strlen(again) == digits ? (int)number : 0;
}

const char *store_boot(void)
{
    static char boot[RECORD_BOOT_MAX + 1];
    AUTO(buf_done) struct buf text;
    struct err ignored;

    buf_init(&text, RECORD_BOOT_MAX);
    if (!boot[0] &&
        fd_read_file("/proc/sys/kernel/random/boot_id", RECORD_BOOT_MAX, &text, &ignored) == 0)
        snprintf(boot, sizeof boot, "%.*s", (int)strcspn(text.data, "\n"), text.data);
    return boot;
}

/* --- files --- */

bool store_is_full(const struct err *err)
{
    return err->code == ERR_SYSTEM && (err->sys == ENOSPC || err->sys == EDQUOT);
}

int store_read(int dir, const char *name, struct buf *ret, struct err *err)
{
    AUTO_CLOSE int fd = fd_open_file(dir, name, O_NOFOLLOW, err);

    if (fd < 0) {
        if (err->sys == ENOENT)
            err->code = ERR_NOT_FOUND;
        return -1;
    }
    buf_init(ret, RECORD_MAX);
    if (buf_read_fd(ret, fd, err) == 0)
        return 0;
    buf_done(ret);
    return err_wrap(err, "%s", name);
}

int store_write(int dir, const char *name, const struct buf *text, struct err *err)
{
    AUTO_FREE char *fresh = alloc_strf("%s.new", name);
    AUTO_CLOSE int fd = -1;

    unlinkat(dir, fresh, 0); /* a writer was killed */
    fd = sys_fault()
             ? -1
             : openat(dir, fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_sys(err, "making %s", fresh);
    if (fd_write_all(fd, text->data, text->len, err) == 0) {
        if (!sys_fault() && renameat(dir, fresh, dir, name) == 0)
            return 0;
        err_sys(err, "replacing %s", name);
    }
    unlinkat(dir, fresh, 0);
    return -1;
}

int store_list(int dir, const char *name, int (*each)(void *data, const char *name), void *data,
               struct err *err)
{
    AUTO_CLOSE int fd = open_dir(dir, name);
    DIR *stream;
    struct dirent *entry;
    int result = 0;

    if (fd < 0)
        return errno == ENOENT ? 0 : err_sys(err, "%s in a layer", name);
    stream = sys_fault() ? NULL : fdopendir(fd);
    if (!stream)
        return err_sys(err, "%s in a layer", name);
    fd = -1;
    while ((void)(errno = 0), (entry = sys_fault() ? NULL : readdir(stream))) {
        if (str_eq(entry->d_name, ".") || str_eq(entry->d_name, ".."))
            continue;
        result = each(data, entry->d_name);
        if (result)
            break;
    }
    if (!entry && errno)
        result = err_sys(err, "reading %s in a layer", name);
    closedir(stream);
    return result;
}

/* --- what is known --- */

static void format_worked(const struct stat *root, char ret[STORE_NAME_MAX])
{
    snprintf(ret, STORE_NAME_MAX, "\n%llu:%llu\n", (unsigned long long)root->st_dev,
             (unsigned long long)root->st_ino);
}

/* Of this boot; what is of another is not there. */
static bool read_worked(int base, struct buf *ret)
{
    struct err ignored;

    return store_read(base, WORKED, ret, &ignored) == 0 && ret->len < WORKED_MAX &&
           ret->len > strlen(store_boot()) && str_starts(ret->data, store_boot()) &&
           ret->data[ret->len - 1] == '\n';
}

bool store_has_worked(int base, const struct stat *root)
{
    AUTO(buf_done) struct buf text = {0};
    char line[STORE_NAME_MAX];

    format_worked(root, line);
    return read_worked(base, &text) && strstr(text.data, line);
}

void store_note_worked(int base, const struct stat *root)
{
    AUTO(buf_done) struct buf text = {0};
    char line[STORE_NAME_MAX];
    struct err ignored; /* then it is tried again */

    if (!read_worked(base, &text)) {
        buf_done(&text);
        buf_init(&text, RECORD_MAX);
        buf_appendf(&text, "%s\n", store_boot());
    }
    format_worked(root, line);
    buf_append_str(&text, line + 1);
    (void)store_write(base, WORKED, &text, &ignored);
}

/* --- what goes --- */

/* Under a name of its own. -1 with errno. */
static int move_to_trash(int dir, const char *name, int trash)
{
    static unsigned count;
    char to[STORE_NAME_MAX];

    for (int i = 0; i < 1000; i++) { /* names of a process that was killed, and had our number */
        snprintf(to, sizeof to, "%d-%u", (int)getpid(), count++);
        if (!sys_fault() && renameat2(dir, name, trash, to, RENAME_NOREPLACE) == 0)
            return 0;
        if (errno != EEXIST)
            break;
    }
    return -1;
}

int store_discard(const struct layer *layer, int dir, const char *name, struct err *err)
{
    AUTO_CLOSE int trash = store_make_dir(layer->fd, TRASH, 0700, err);

    if (trash < 0)
        return -1;
    if (move_to_trash(dir, name, trash) == 0)
        return 0;
    return errno == ENOENT ? 0 : err_sys(err, "moving %s of a layer away", name);
}

struct drain {
    int trash;
    int dir; /* the folder that is being emptied */
    bool has_more;
    struct err *err;
};

static bool is_dir_at(int dir, const char *name)
{
    struct stat st;

    return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

/* A folder that is not empty goes up, so that its contents can go without that anybody descends. The kernel leaves one of
 * mode 0 where it had a mount. */
static int lift(struct drain *drain, const char *name)
{
    drain->has_more = true;
    if (fchmodat(drain->dir, name, 0700, 0))
        return err_sys(drain->err, "removing %s of a layer", name);
    return move_to_trash(drain->dir, name, drain->trash)
               ? err_sys(drain->err, "removing %s of a layer", name)
               : 0;
}

static int drain_inner(void *data, const char *name)
{
    struct drain *drain = data;

    if (!sys_fault() && unlinkat(drain->dir, name, 0) == 0)
        return 0;
    if (!is_dir_at(drain->dir, name))
        return errno == ENOENT ? 0 : err_sys(drain->err, "removing %s of a layer", name);
    return unlinkat(drain->dir, name, AT_REMOVEDIR) == 0 ? 0 : lift(drain, name);
}

static int drain_top(void *data, const char *name)
{
    struct drain *drain = data;

    if (unlinkat(drain->trash, name, 0) == 0 || unlinkat(drain->trash, name, AT_REMOVEDIR) == 0 ||
        errno == ENOENT)
        return 0;
    if (fchmodat(drain->trash, name, 0700, 0))
        return err_sys(drain->err, "removing %s of a layer", name);
    drain->dir = open_dir(drain->trash, name);
    if (drain->dir < 0)
        return err_sys(drain->err, "removing %s of a layer", name);
    if (store_list(drain->dir, ".", drain_inner, drain, drain->err)) {
        close(drain->dir);
        return -1;
    }
    close(drain->dir);
    drain->has_more = true;
    return 0;
}

int store_drain(int trash, struct err *err)
{
    struct drain drain = {.trash = trash, .has_more = true, .err = err};

    while (drain.has_more) {
        drain.has_more = false;
        if (store_list(trash, ".", drain_top, &drain, err))
            return -1;
    }
    return 0;
}

int store_empty_trash(const struct layer *layer, struct err *err)
{
    AUTO_CLOSE int trash = open_dir(layer->fd, TRASH);

    if (trash < 0)
        return errno == ENOENT ? 0 : err_sys(err, "the trash of a layer");
    if (store_drain(trash, err))
        return -1;
    if (sys_fault() || unlinkat(layer->fd, TRASH, AT_REMOVEDIR))
        return err_sys(err, "the trash of a layer");
    return 0;
}

/* --- what it has --- */

/* One walk over a tree, with one descriptor: names of folders that are still to be walked are kept by level, and going
 * up is "..", since nobody else moves what lies here. */
struct walk {
    int dir;
    uint64_t bytes;
    bool seeks; /* ends at the first thing that a command wrote */
    bool has_found;
    struct strv *levels;
    size_t len, cap;
};

/* A directory that came from below, with something in it, is none. */
static bool is_written(const struct walk *walk, const char *name, const struct stat *st)
{
    return !S_ISDIR(st->st_mode) || overlaid_is_opaque(walk->dir, name) ||
           !overlaid_is_copy(walk->dir, name);
}

static int walk_name(void *data, const char *name)
{
    struct walk *walk = data;
    struct stat st;

    if (fstatat(walk->dir, name, &st, AT_SYMLINK_NOFOLLOW))
        return 0;
    if (walk->seeks && is_written(walk, name, &st)) {
        walk->has_found = true;
        return 1;
    }
    walk->bytes += (uint64_t)st.st_blocks * 512;
    if (S_ISDIR(st.st_mode))
        strv_push(&walk->levels[walk->len - 1], name);
    return 0;
}

static void walk_folder(struct walk *walk)
{
    struct err ignored; /* of a mode that keeps us out */

    walk->levels = alloc_grow(walk->levels, walk->len, &walk->cap, sizeof *walk->levels);
    walk->levels[walk->len++] = (struct strv){0};
    store_list(walk->dir, ".", walk_name, walk, &ignored);
}

static int walk_to(struct walk *walk, const char *name)
{
    int fd = open_dir(walk->dir, name);

    if (fd < 0)
        return -1;
    close(walk->dir);
    walk->dir = fd;
    return 0;
}

static int walk_levels(struct walk *walk, struct err *err)
{
    walk_folder(walk);
    while (walk->len && !walk->has_found) {
        struct strv *names = &walk->levels[walk->len - 1];

        if (names->len) {
            AUTO_FREE char *name = names->items[--names->len];

            names->items[names->len] = NULL;
            if (walk_to(walk, name) == 0)
                walk_folder(walk);
            continue;
        }
        strv_done(names);
        if (--walk->len && walk_to(walk, ".."))
            return err_sys(err, "looking at what a layer has");
    }
    return 0;
}

/* Takes the descriptor over. */
static int walk_tree(struct walk *walk, struct err *err)
{
    int result = walk_levels(walk, err);

    for (size_t i = 0; i < walk->len; i++)
        strv_done(&walk->levels[i]);
    free(walk->levels);
    close(walk->dir);
    return result;
}

static int count_step(const struct layer *layer, size_t root, int step, uint64_t *bytes,
                      struct err *err)
{
    struct walk walk = {0};
    char name[STORE_NAME_MAX];

    store_step_dir(root, step, "up", name);
    walk.dir = open_dir(layer->fd, name);
    if (walk.dir < 0)
        return errno == ENOENT ? 0 : err_sys(err, "looking at what a layer has");
    if (walk_tree(&walk, err))
        return -1;
    *bytes += walk.bytes;
    return 0;
}

int store_count_bytes(const struct layer *layer, uint64_t *ret, struct err *err)
{
    uint64_t bytes = 0;

    for (size_t root = 0; root < layer->record.roots_len; root++)
        for (size_t i = 0; i < layer->records_len; i++)
            if (count_step(layer, root, layer->records[i].step.number, &bytes, err))
                return -1;
    *ret = bytes;
    return 0;
}

int store_has_written(const struct layer *layer, size_t root, int step, struct err *err)
{
    struct walk walk = {.seeks = true};
    char name[STORE_NAME_MAX];

    store_step_dir(root, step, "up", name);
    walk.dir = open_dir(layer->fd, name);
    if (walk.dir < 0)
        return errno == ENOENT ? 0 : err_sys(err, "looking at what a layer has");
    return walk_tree(&walk, err) ? -1 : walk.has_found;
}
