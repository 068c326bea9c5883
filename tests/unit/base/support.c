/* See support.h. */
#include "support.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

unsigned support_open_fds(void)
{
    DIR *dir = opendir("/proc/self/fd");
    unsigned count = 0;

    assert_non_null(dir);
    for (const struct dirent *entry; (entry = readdir(dir));)
        count += entry->d_name[0] != '.';
    closedir(dir);
    return count - 1; /* the listing's own */
}

char *support_scratch_new(void)
{
    const char *base = getenv("TMPDIR");
    AUTO_FREE char *real = realpath(base && *base ? base : "/tmp", NULL);
    char *path;

    assert_non_null(real);
    path = path_join(real, "cordon-test-XXXXXX");
    assert_non_null(mkdtemp(path));
    return path;
}

static int support_remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    (void)st;
    (void)kind;
    (void)ftw;
    return remove(path);
}

void support_scratch_remove(char *path)
{
    assert_int_equal(nftw(path, support_remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
    free(path);
}

void support_write(const char *dir, const char *name, const char *text)
{
    AUTO_FREE char *path = path_join(dir, name);
    AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    struct err err;

    assert_true(fd >= 0);
    assert_int_equal(fd_write_all(fd, text, strlen(text), &err), 0);
}

void support_let_age(void)
{
    const uint64_t until = clock_wall_ns() + 11 * CLOCK_NS_PER_MS;

    while (clock_stamp_ns() < until)
        nanosleep(&(struct timespec){.tv_nsec = CLOCK_NS_PER_MS}, NULL);
}
