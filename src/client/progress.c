/* See progress.h. ECMA-48: CR goes to the beginning of the line, EL (CSI K) erases the rest of it.
 */
#include "client/progress.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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

static void show(struct progress *progress)
{
    char text[PROGRESS_TEXT_SIZE];
    char line[PROGRESS_TEXT_SIZE + 8];
    uint64_t now = clock_now_ns();

    if (progress->fd < 0 || now < progress->next_ns)
        return;
    progress->next_ns = clock_after(now, PROGRESS_EVERY_NS);
    progress->is_shown = true;
    progress_text(progress->files, progress->bytes, text);
    snprintf(line, sizeof line, "\r%s\033[K", text);
    put(progress, line);
}

void progress_add_bytes(struct progress *progress, size_t bytes)
{
    progress->bytes += bytes;
    show(progress);
}

void progress_add_file(struct progress *progress)
{
    progress->files++;
    show(progress);
}

void progress_clear(struct progress *progress)
{
    if (!progress->is_shown)
        return;
    progress->is_shown = false;
    put(progress, "\r\033[K");
}
