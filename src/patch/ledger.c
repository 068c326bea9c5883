/* See ledger.h. A lock on an open file goes with the last process that holds it, however that
 * ends; so a ledger that can be locked belongs to no living process. Since one process may open the
 * file just when another removes it, the one that has got the lock checks whether the file still
 * has a name.
 *
 * What a ledger says is not trusted: paths are checked like those of a patch, and steps only ever
 * touch a file and the name of ours beside it. */
#include "patch/ledger.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/lock.h"
#include "base/str.h"
#include "base/strv.h"
#include "base/sys.h"
#include "patch/dir.h"
#include "policy/protect.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/file.h>
#include <unistd.h>

#define LOCK_WAIT_NS (10 * CLOCK_NS_PER_S)

enum { LEDGER_MAX = 128 << 20 }; /* bytes: more than CHANGES_FILES_MAX paths */

static const char ledger_head[] = "cordon-patch 1";

/* --- the file --- */

void ledger_close(struct ledger *ledger)
{
    auto_close(&ledger->fd);
    ledger->fd = -1;
}

/* Waits for the lock, of another patch; a command that keeps it (to read is to be able to lock) does not stop
 * patches for ever. `*ret_is_there`: the file has a name still. */
static int ledger_lock(int fd, bool *ret_is_there, struct err *err)
{
    struct stat st;

    while (sys_fault() || lock_take(fd, LOCK_EX, LOCK_WAIT_NS)) {
        if (errno == EWOULDBLOCK)
            return err_set(err, ERR_LIMIT, LEDGER_NAME " stayed locked by another process");
        if (errno != EINTR)
            return err_sys(err, "locking " LEDGER_NAME);
    }
    if (sys_fault() || fstat(fd, &st))
        return err_sys(err, "looking at " LEDGER_NAME);
    *ret_is_there = st.st_nlink > 0;
    return 0;
}

int ledger_make(const struct patch_dir *root, bool *ret_made, struct ledger *ret, struct err *err)
{
    const int flags = O_RDWR | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    AUTO_CLOSE int fd = sys_fault() ? -1 : openat(root->fd, LEDGER_NAME, flags, 0600);

    if (fd < 0 && errno != EEXIST)
        return err_sys(err, "writing %s/" LEDGER_NAME ", which every patch needs", root->path);
    *ret_made = false;
    if (fd < 0)
        return 0;
    if (ledger_lock(fd, ret_made, err))
        return -1;
    if (*ret_made)
        ret->fd = TAKE_FD(fd);
    return 0;
}

static int check_owner(int fd, struct err *err)
{
    struct stat st;

    if (sys_fault() || fstat(fd, &st))
        return err_sys(err, "looking at " LEDGER_NAME);
    if (S_ISREG(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & 077))
        return 0;
    return err_set(err, ERR_FORBIDDEN,
                   LEDGER_NAME " is not a ledger of yours; remove it if it is not needed");
}

static int ledger_open(const struct patch_dir *root, enum ledger_access access, struct err *err)
{
    const int mode = access == LEDGER_READ ? O_RDONLY : O_RDWR | O_APPEND;
    const int flags = mode | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    int fd = sys_fault() ? -1 : openat(root->fd, LEDGER_NAME, flags);

    if (fd >= 0)
        return fd;
    if (errno == ENOENT)
        return err_set(err, ERR_NOT_FOUND, "there is no ledger");
    return err_sys(err, "reading " LEDGER_NAME ", the ledger of an earlier patch");
}

int ledger_take(const struct patch_dir *root, enum ledger_access access, struct ledger *ret,
                struct steps *ret_steps, struct err *err)
{
    AUTO(buf_done) struct buf text;
    AUTO_CLOSE int fd = ledger_open(root, access, err);
    struct ledger ledger = {.fd = -1};
    bool is_there = false;

    buf_init(&text, LEDGER_MAX);
    if (fd < 0 && err->code != ERR_NOT_FOUND)
        return -1;
    if (fd >= 0 && (check_owner(fd, err) || ledger_lock(fd, &is_there, err)))
        return -1;
    if (is_there) {
        if (buf_read_fd(&text, fd, err))
            return err_wrap(err, LEDGER_NAME);
        if (ledger_parse(text.data, text.len, root->kept, ret_steps, &ledger.state, err))
            return -1;
        ledger.fd = TAKE_FD(fd);
    }
    *ret = ledger;
    return 0;
}

int ledger_remove(const struct patch_dir *root, struct ledger *ledger, struct err *err)
{
    if ((sys_fault() || unlinkat(root->fd, LEDGER_NAME, 0)) && errno != ENOENT)
        return err_sys(err, "removing " LEDGER_NAME);
    ledger_close(ledger);
    return 0;
}

/* --- writing --- */

static bool put(struct buf *text, const char *kind, const char *path)
{
    return buf_append(text, kind, strlen(kind) + 1) &&
           (!path || buf_append(text, path, strlen(path) + 1));
}

static int ledger_append(const struct ledger *ledger, const struct buf *text, bool fits,
                         struct err *err)
{
    if (!fits)
        return err_set(err, ERR_LIMIT, "the paths of the patch are too long to be kept");
    if (fd_write_all(ledger->fd, text->data, text->len, err))
        return err_wrap(err, LEDGER_NAME);
    return 0;
}

int ledger_write_steps(const struct ledger *ledger, const struct steps *steps, struct err *err)
{
    AUTO(buf_done) struct buf text = {.max = LEDGER_MAX / 2};
    bool fits = put(&text, ledger_head, steps->id);

    for (size_t i = 0; i < steps->len; i++) {
        const struct step *step = &steps->items[i];
        const char kind[] = {step->is_dir ? 'F' : (char)step->kind, '\0'};

        fits = fits && put(&text, kind, step->path);
        for (size_t dir = 0; dir < step->dirs.len; dir++)
            fits = fits && put(&text, "d", step->dirs.items[dir]);
        for (size_t file = 0; file < step->files.len; file++)
            fits = fits && put(&text, "f", step->files.items[file]);
    }
    fits = fits && put(&text, "=", NULL);
    return ledger_append(ledger, &text, fits, err);
}

static bool put_stamp(struct buf *text, const struct stamp *stamp, const char *end)
{
    return buf_appendf(text, "%" PRIx64 " %" PRIx64 " %" PRIx64 "%s", stamp->inode, stamp->size,
                       stamp->mtime_ns, end);
}

int ledger_decide(const struct ledger *ledger, const struct steps *steps, struct err *err)
{
    AUTO(buf_done) struct buf text = {.max = LEDGER_MAX / 2};
    bool fits = true;

    for (size_t i = 0; i < steps->len; i++)
        fits = fits && put_stamp(&text, &steps->items[i].before, " ") &&
               put_stamp(&text, &steps->items[i].after, "") && buf_append(&text, "", 1);
    fits = fits && put(&text, "+", NULL);
    return ledger_append(ledger, &text, fits, err);
}

int ledger_withdraw(const struct ledger *ledger, struct err *err)
{
    return fd_write_all(ledger->fd, "-", 2, err);
}

/* --- reading --- */

struct reader {
    const char *next;
    const char *end;
};

/* The next text with its NUL; NULL at the end, and before one that was not written whole. */
static const char *read_text(struct reader *reader)
{
    const char *text = reader->next;
    const char *nul = memchr(text, '\0', (size_t)(reader->end - text));

    if (!nul)
        return NULL;
    reader->next = nul + 1;
    return text;
}

static int fail_parsing(struct err *err)
{
    return err_set(err, ERR_INVALID,
                   LEDGER_NAME " is no ledger of a patch; remove it if it is not needed");
}

/* A command can leave a ledger in its workspace, and the next patch, which may have no sandbox, would do what
 * it says: so what no command may change there is in none. A patch of such a file that was killed midway is
 * to be put right by hand. */
static bool is_guarded(const char *path, char *const *kept)
{
    AUTO(strv_done) struct strv names = {0};

    for (; kept && *kept; kept++)
        if (names_within(path, *kept) || names_within(*kept, path))
            return true;
    protect_all_names(&names); /* where no profile names any */
    strv_push(&names, "HEAD"); /* makes a folder a repository */
    for (size_t len; *path; path += len + (path[len] == '/')) {
        len = strcspn(path, "/");
        for (size_t i = 0; i < names.len; i++)
            if (strlen(names.items[i]) == len && strncasecmp(path, names.items[i], len) == 0)
                return true;
    }
    return false;
}

static bool take_step(struct steps *steps, char kind, const char *path, char *const *kept)
{
    struct step *last = steps->len ? &steps->items[steps->len - 1] : NULL;

    if (!names_are_clean(path) || is_guarded(path, kept))
        return false;
    if (kind == 'd' || kind == 'f') {
        if (!last || !last->is_dir || !names_within(path, last->path) || str_eq(path, last->path))
            return false;
        strv_push(kind == 'd' ? &last->dirs : &last->files, path);
        return true;
    }
    if (!strchr("ARDF", kind))
        return false;
    steps_add(steps, kind == 'F' ? STEP_ADD : (enum step_kind)kind, alloc_str(path))->is_dir =
        kind == 'F';
    return true;
}

/* Up to the "=". `*ret_whole`: it was there. */
static int read_steps(struct reader *reader, char *const *kept, struct steps *steps,
                      bool *ret_whole, struct err *err)
{
    const char *kind;
    const char *path;

    *ret_whole = false;
    while ((kind = read_text(reader))) {
        if (str_eq(kind, "=")) {
            *ret_whole = true;
            return 0;
        }
        if (strlen(kind) != 1)
            return fail_parsing(err);
        path = read_text(reader);
        if (!path)
            return 0;
        if (!take_step(steps, *kind, path, kept))
            return fail_parsing(err);
    }
    return 0;
}

static bool parse_stamps(const char *text, struct step *step)
{
    struct stamp *before = &step->before;
    struct stamp *after = &step->after;
    int end = 0;

    return sscanf(text, "%" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 "%n",
                  &before->inode, &before->size, &before->mtime_ns, &after->inode, &after->size,
                  &after->mtime_ns, &end) == 6 &&
           text[end] == '\0';
}

static int read_decision(struct reader *reader, struct steps *steps, enum ledger_state *ret_state,
                         struct err *err)
{
    const char *text;

    for (size_t i = 0; i < steps->len; i++) {
        text = read_text(reader);
        if (!text)
            return 0;
        if (!parse_stamps(text, &steps->items[i]))
            return fail_parsing(err);
    }
    text = read_text(reader);
    if (!text)
        return 0;
    if (!str_eq(text, "+"))
        return fail_parsing(err);
    *ret_state = LEDGER_DECIDED;
    text = read_text(reader);
    if (text && !str_eq(text, "-"))
        return fail_parsing(err);
    if (text)
        *ret_state = LEDGER_WITHDRAWN;
    return 0;
}

static int parse_into(struct reader *reader, char *const *kept, struct steps *steps,
                      enum ledger_state *ret_state, struct err *err)
{
    const char *head = read_text(reader);
    const char *id = head ? read_text(reader) : NULL;
    bool is_whole;

    if (head ? !str_eq(head, ledger_head)
             : memcmp(reader->next, ledger_head,
                      reader->end - reader->next > (ptrdiff_t)sizeof ledger_head
                          ? sizeof ledger_head
                          : (size_t)(reader->end - reader->next)) != 0)
        return fail_parsing(err);
    if (!id)
        return 0;
    if (strlen(id) != 16 || strspn(id, "0123456789abcdef") != 16)
        return fail_parsing(err);
    memcpy(steps->id, id, sizeof steps->id);
    if (read_steps(reader, kept, steps, &is_whole, err))
        return -1;
    return is_whole ? read_decision(reader, steps, ret_state, err) : 0;
}

int ledger_parse(const char *text, size_t len, char *const *kept, struct steps *ret,
                 enum ledger_state *ret_state, struct err *err)
{
    AUTO(steps_done) struct steps steps = {.items = NULL};
    struct reader reader = {.next = len ? text : "", .end = len ? text + len : ""};
    enum ledger_state state = LEDGER_OPEN;

    if (len && parse_into(&reader, kept, &steps, &state, err))
        return -1;
    *ret = steps;
    *ret_state = state;
    steps = (struct steps){.items = NULL};
    return 0;
}
