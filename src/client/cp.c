/* `cp`: a file, or a directory with everything in it, to the server (upload.c) or from it
 * (download.c), in blocks, so that neither side ever holds more than one of them. What is written
 * here appears under its name when it is whole; what is written there is written in place, since
 * the protocol has no rename. Of a single file only the contents are copied, as by `cat`.
 *
 * Progress is a line on the terminal that is written over (ECMA-48: CR goes to the beginning of the
 * line, EL, CSI K, erases the rest of it). */
#include "client/cp.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/file_uri.h"
#include "base/path.h"
#include "base/str.h"
#include "client/client.h"
#include "client/remote_file.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- progress --- */

void progress_init(struct progress *progress, int fd)
{
    *progress = (struct progress){.fd = isatty(fd) ? fd : -1,
                                  .next_ns = clock_after(clock_now_ns(), PROGRESS_AFTER_NS)};
}

void progress_text(uint64_t files, uint64_t bytes, char ret[PROGRESS_TEXT_SIZE])
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    const char *plural = files == 1 ? "" : "s";
    double size = (double)bytes / 1024;
    size_t unit = 0;

    while (size >= 1024 && unit + 1 < sizeof units / sizeof *units) {
        size /= 1024;
        unit++;
    }
    if (bytes < 1024)
        snprintf(ret, PROGRESS_TEXT_SIZE, "%" PRIu64 " file%s, %" PRIu64 " B", files, plural,
                 bytes);
    else
        snprintf(ret, PROGRESS_TEXT_SIZE, "%" PRIu64 " file%s, %.1f %s", files, plural, size,
                 units[unit]);
}

/* A terminal that takes nothing is no reason to stop a copy. */
static void put(const struct progress *progress, const char *text)
{
    struct err ignored;

    fd_write_all(progress->fd, text, strlen(text), &ignored);
}

void progress_add(struct progress *progress, unsigned files, size_t bytes)
{
    char text[PROGRESS_TEXT_SIZE];
    char line[PROGRESS_TEXT_SIZE + 8];
    uint64_t now = clock_now_ns();

    progress->files += files;
    progress->bytes += bytes;
    if (progress->fd < 0 || now < progress->next_ns)
        return;
    progress->next_ns = clock_after(now, PROGRESS_EVERY_NS);
    progress->is_shown = true;
    progress_text(progress->files, progress->bytes, text);
    snprintf(line, sizeof line, "\r%s\033[K", text);
    put(progress, line);
}

void progress_clear(struct progress *progress)
{
    if (!progress->is_shown)
        return;
    progress->is_shown = false;
    put(progress, "\r\033[K");
}

/* --- the command --- */

static void cp_done(struct cp *cp)
{
    progress_clear(&cp->progress);
    connection_free(cp->connection);
    free(cp->block);
}

struct remote_file cp_remote(const struct cp *cp, const char *path)
{
    return (struct remote_file){.connection = cp->connection, .path = path, .shown = path};
}

void cp_report(struct cp *cp, const struct err *err)
{
    cp->failed++;
    progress_clear(&cp->progress);
    cp->console->say("%s", err->msg);
}

void cp_level_done(struct cp_level *level)
{
    if (level->stream)
        closedir(level->stream);
    else if (level->dir >= 0)
        close(level->dir);
    json_decref(level->entries);
    free(level->local);
    free(level->remote);
}

void cp_tree_done(struct cp_tree *tree)
{
    while (tree->depth)
        cp_level_done(&tree->levels[--tree->depth]);
}

int cp_tree_walk(struct cp_tree *tree, void (*step)(struct cp_tree *tree), struct err *err)
{
    while (tree->depth && !connection_is_lost(tree->cp->connection))
        step(tree);
    return tree->depth ? err_set(err, ERR_SYSTEM, "the server is gone") : 0;
}

char *cp_own_name(const char *path)
{
    AUTO_FREE char *dir = getcwd(NULL, 0);
    AUTO_FREE char *clean = path_clean(dir ? dir : "/", path);
    bool is_inside =
        str_eq(path, ".") || str_eq(path, "..") || str_ends(path, "/.") || str_ends(path, "/..");

    return alloc_str(is_inside ? "" : path_name(clean));
}

int client_cp(const struct client *client, const char *from, const char *to, int *ret_status,
              struct err *err)
{
    const char *remote_from = remote_path_of(from);
    const char *remote_to = remote_path_of(to);
    struct remote_file file = {.shown = remote_from ? remote_from : remote_to};
    AUTO(cp_done)
    struct cp cp = {.console = client->console, .block = alloc_zero(REMOTE_BLOCK, 1)};
    AUTO_FREE char *uri = NULL;
    AUTO_FREE char *path = NULL;

    progress_init(&cp.progress, STDERR_FILENO);
    if (!remote_from == !remote_to)
        return err_set(err, ERR_INVALID,
                       "one of the two files is to be at the server, written remote:PATH: cp %s "
                       "remote:%s, or cp remote:%s %s",
                       from, to, from, to);
    if (!*file.shown)
        return err_set(err, ERR_INVALID, "\"remote:\" names no file");
    cp.connection = connection_open(&client->server, CONNECTION_ENDS_SESSION, NULL, err);
    if (!cp.connection)
        return -1;
    uri = remote_path_uri(connection_dir(cp.connection), file.shown, err);
    path = uri ? file_uri_parse(uri, err) : NULL;
    if (!path)
        return -1;
    file.connection = cp.connection;
    file.path = path;
    if (remote_to ? upload(&cp, from, &file, err) : download(&cp, &file, to, err))
        return -1;
    progress_clear(&cp.progress);
    if (cp.failed)
        client->console->say("%zu %s not copied", cp.failed,
                             cp.failed == 1 ? "entry is" : "entries are");
    *ret_status = cp.failed ? CLIENT_NO : 0;
    return 0;
}
