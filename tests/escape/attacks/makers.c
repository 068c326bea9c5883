/* The calls that make a name: see names.h. */
#include "attack.h"
#include "names.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

/* A descriptor that came closes again: only the name counts. */
static long closed(long fd)
{
    if (fd >= 0)
        close((int)fd);
    return fd;
}

static long make_openat(int dir, const char *path, const char *source)
{
    (void)source;
    return closed(syscall(SYS_openat, dir, path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
}

static long make_openat_exclusive(int dir, const char *path, const char *source)
{
    (void)source;
    return closed(syscall(SYS_openat, dir, path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0644));
}

static long make_openat_reading(int dir, const char *path, const char *source)
{
    (void)source;
    return closed(syscall(SYS_openat, dir, path, O_CREAT | O_RDONLY | O_NOFOLLOW, 0600));
}

static long make_openat_truncating(int dir, const char *path, const char *source)
{
    (void)source;
    return closed(syscall(SYS_openat, dir, path, O_CREAT | O_TRUNC | O_APPEND | O_RDWR, 0644));
}

static long make_openat2(int dir, const char *path, const char *source)
{
    (void)source;
    struct {
        uint64_t flags, mode, resolve;
    } how = {.flags = O_CREAT | O_WRONLY | O_CLOEXEC, .mode = 0644};
    return closed(syscall(437, dir, path, &how, sizeof how));
}

static long make_mkdirat(int dir, const char *path, const char *source)
{
    (void)source;
    return syscall(SYS_mkdirat, dir, path, 0755);
}

static long make_mknodat_file(int dir, const char *path, const char *source)
{
    (void)source;
    return syscall(SYS_mknodat, dir, path, S_IFREG | 0644, 0);
}

static long make_mknodat_fifo(int dir, const char *path, const char *source)
{
    (void)source;
    return syscall(SYS_mknodat, dir, path, S_IFIFO | 0644, 0);
}

static long make_mknodat_socket(int dir, const char *path, const char *source)
{
    (void)source;
    return syscall(SYS_mknodat, dir, path, S_IFSOCK | 0644, 0);
}

static long make_symlinkat(int dir, const char *path, const char *source)
{
    (void)source;
    return syscall(SYS_symlinkat, "sub/file", dir, path);
}

static long make_linkat(int dir, const char *path, const char *source)
{
    return syscall(SYS_linkat, AT_FDCWD, source, dir, path, 0);
}

/* Of a file by the name that /proc has for a descriptor. */
static long link_descriptor(int fd, int dir, const char *path)
{
    char self[64];
    snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    long result = syscall(SYS_linkat, AT_FDCWD, self, dir, path, AT_SYMLINK_FOLLOW);
    closed(fd);
    return result;
}

static long make_linkat_descriptor(int dir, const char *path, const char *source)
{
    return link_descriptor(open(source, O_RDONLY | O_CLOEXEC), dir, path);
}

static long make_linkat_empty(int dir, const char *path, const char *source)
{
    int fd = open(source, O_RDONLY | O_CLOEXEC);
    long result = syscall(SYS_linkat, fd, "", dir, path, AT_EMPTY_PATH);
    closed(fd);
    return result;
}

/* The folder of the source is one that is written to. */
static int unnamed_file(const char *source)
{
    char folder[4096];
    snprintf(folder, sizeof folder, "%s", source);
    *strrchr(folder, '/') = '\0';
    return open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0644);
}

static long make_tmpfile(int dir, const char *path, const char *source)
{
    return link_descriptor(unnamed_file(source), dir, path);
}

static long make_tmpfile_empty(int dir, const char *path, const char *source)
{
    int fd = unnamed_file(source);
    long result = syscall(SYS_linkat, fd, "", dir, path, AT_EMPTY_PATH);
    closed(fd);
    return result;
}

static long make_renameat2(int dir, const char *path, const char *source)
{
    return syscall(SYS_renameat2, AT_FDCWD, source, dir, path, 0);
}

static long make_renameat2_noreplace(int dir, const char *path, const char *source)
{
    return syscall(SYS_renameat2, AT_FDCWD, source, dir, path, RENAME_NOREPLACE);
}

static long make_renameat2_whiteout(int dir, const char *path, const char *source)
{
    return syscall(SYS_renameat2, AT_FDCWD, source, dir, path, RENAME_WHITEOUT);
}

static long make_bind(int dir, const char *path, const char *source)
{
    (void)dir;
    (void)source;
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof at.sun_path)
        return -1;
    strcpy(at.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    long result = bind(fd, (struct sockaddr *)&at, sizeof at);
    closed(fd);
    return result;
}

static long make_bind_datagram(int dir, const char *path, const char *source)
{
    (void)dir;
    (void)source;
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int pair[2] = {-1, -1};
    if (strlen(path) >= sizeof at.sun_path)
        return -1;
    strcpy(at.sun_path, path);
    /* of its own where that is allowed, else an end of a pair */
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 && socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) == 0)
        fd = pair[0];
    long result = bind(fd, (struct sockaddr *)&at, sizeof at);
    closed(fd);
    closed(pair[1]);
    return result;
}

#ifdef SYS_open /* what newer architectures lack */
static long make_open(int dir, const char *path, const char *source)
{
    (void)dir;
    (void)source;
    return closed(syscall(SYS_open, path, O_CREAT | O_WRONLY, 0644));
}

static long make_creat(int dir, const char *path, const char *source)
{
    (void)dir;
    (void)source;
    return closed(syscall(SYS_creat, path, 0644));
}

static long make_mkdir(int dir, const char *path, const char *source)
{
    (void)dir;
    (void)source;
    return syscall(SYS_mkdir, path, 0755);
}

static long make_mknod(int dir, const char *path, const char *source)
{
    (void)dir;
    (void)source;
    return syscall(SYS_mknod, path, S_IFREG | 0644, 0);
}

static long make_symlink(int dir, const char *path, const char *source)
{
    (void)dir;
    (void)source;
    return syscall(SYS_symlink, "sub/file", path);
}

static long make_link(int dir, const char *path, const char *source)
{
    (void)dir;
    return syscall(SYS_link, source, path);
}

static long make_rename(int dir, const char *path, const char *source)
{
    (void)dir;
    return syscall(SYS_rename, source, path);
}

static long make_renameat(int dir, const char *path, const char *source)
{
    return syscall(SYS_renameat, AT_FDCWD, source, dir, path);
}
#endif

#ifdef __x86_64__
/* The 32-bit calls take 32-bit addresses. */
static long int80(long nr, const char *path, long mode)
{
    static char *low;
    long result;
    if (low == NULL)
        low =
            (char *)syscall(SYS_mmap, NULL, 8192, 3, 0x62 /* private, anonymous, 32-bit */, -1, 0);
    snprintf(low, 8192, "%s", path);
    __asm__ volatile("int $0x80"
                     : "=a"(result)
                     : "a"(nr), "b"(low), "c"(mode)
                     : "memory", "r8", "r9", "r10", "r11");
    return result;
}

static long make_int80_mkdir(int dir, const char *path, const char *source)
{
    (void)dir;
    (void)source;
    return int80(39, path, 0755);
}

static long make_int80_creat(int dir, const char *path, const char *source)
{
    (void)dir;
    (void)source;
    return closed(int80(8, path, 0644));
}
#endif

const struct maker makers[] = {
    {"openat", SOURCE_NONE, 1, 1, 0, make_openat},
    {"openat-exclusive", SOURCE_NONE, 1, 0, 0, make_openat_exclusive},
    {"openat-reading", SOURCE_NONE, 1, 0, 0, make_openat_reading},
    {"openat-truncating", SOURCE_NONE, 1, 1, 0, make_openat_truncating},
    {"openat2", SOURCE_NONE, 1, 1, 0, make_openat2},
    {"mkdirat", SOURCE_NONE, 1, 0, 1, make_mkdirat},
    {"mknodat-file", SOURCE_NONE, 1, 0, 0, make_mknodat_file},
    {"mknodat-fifo", SOURCE_NONE, 1, 0, 0, make_mknodat_fifo},
    {"mknodat-socket", SOURCE_NONE, 1, 0, 0, make_mknodat_socket},
    {"symlinkat", SOURCE_NONE, 1, 0, 0, make_symlinkat},
    {"linkat", SOURCE_FILE, 1, 0, 0, make_linkat},
    {"linkat-descriptor", SOURCE_FILE, 1, 0, 0, make_linkat_descriptor},
    {"linkat-empty", SOURCE_FILE, 1, 0, 0, make_linkat_empty},
    {"tmpfile", SOURCE_FILE, 1, 0, 0, make_tmpfile},
    {"tmpfile-empty", SOURCE_FILE, 1, 0, 0, make_tmpfile_empty},
    {"renameat2", SOURCE_FILE, 1, 0, 0, make_renameat2},
    {"renameat2-folder", SOURCE_FOLDER, 1, 0, 1, make_renameat2},
    {"renameat2-noreplace", SOURCE_FOLDER, 1, 0, 1, make_renameat2_noreplace},
    {"renameat2-whiteout", SOURCE_FILE, 1, 0, 0, make_renameat2_whiteout},
    {"bind", SOURCE_NONE, 0, 0, 0, make_bind},
    {"bind-datagram", SOURCE_NONE, 0, 0, 0, make_bind_datagram},
#ifdef SYS_open
    {"open", SOURCE_NONE, 0, 1, 0, make_open},
    {"creat", SOURCE_NONE, 0, 1, 0, make_creat},
    {"mkdir", SOURCE_NONE, 0, 0, 1, make_mkdir},
    {"mknod", SOURCE_NONE, 0, 0, 0, make_mknod},
    {"symlink", SOURCE_NONE, 0, 0, 0, make_symlink},
    {"link", SOURCE_FILE, 0, 0, 0, make_link},
    {"rename", SOURCE_FILE, 0, 0, 0, make_rename},
    {"rename-folder", SOURCE_FOLDER, 0, 0, 1, make_rename},
    {"renameat", SOURCE_FILE, 1, 0, 0, make_renameat},
#endif
#ifdef __x86_64__
    {"int80-mkdir", SOURCE_NONE, 0, 0, 1, make_int80_mkdir},
    {"int80-creat", SOURCE_NONE, 0, 1, 0, make_int80_creat},
#endif
    {NULL, SOURCE_NONE, 0, 0, 0, NULL},
};

const struct maker *maker_find(const char *name)
{
    const struct maker *maker = makers;
    while (maker->name != NULL && strcmp(maker->name, name) != 0)
        maker++;
    if (maker->name == NULL) {
        fprintf(stderr, "attacks: no such call: %s\n", name);
        exit(2);
    }
    return maker;
}

void maker_prepare(const struct maker *maker, const char *source)
{
    struct stat st;
    if (maker->source == SOURCE_NONE || lstat(source, &st) == 0)
        return;
    if (maker->source == SOURCE_FOLDER)
        mkdir(source, 0755);
    else
        closed(open(source, O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
}

void remove_name(const char *path)
{
    if (unlink(path) < 0)
        rmdir(path);
}
