/* See program.h. The kernel looks again when the call goes on: what is found here is what is told and
 * judged, not what holds. */
#include "guard/program.h"

#include "base/auto.h"
#include "guard/argv.h"
#include "guard/facts.h"
#include "guard/place.h"
#include "guard/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The text of the path, behind that of the directory that it is relative to. */
static bool whole_text(const struct request *request, const char *text, char ret[PATH_MAX])
{
    const int dir = request_dir(request, request->call->dir);
    char link[64];
    ssize_t len;

    if (text[0] == '/')
        return snprintf(ret, PATH_MAX, "%s", text) < PATH_MAX;
    if (dir == AT_FDCWD)
        snprintf(link, sizeof link, "/proc/%d/cwd", (int)request->thread);
    else
        snprintf(link, sizeof link, "/proc/%d/fd/%d", (int)request->thread, dir);
    len = readlink(link, ret, PATH_MAX - 1);
    if (len <= 0)
        return false;
    ret[len] = '\0';
    if (!*text)
        return true;
    while (text[0] == '.' && text[1] == '/')
        text += 1 + strspn(text + 1, "/");
    return snprintf(ret + len, PATH_MAX - (size_t)len, "%s%s", len > 1 ? "/" : "", text) <
           PATH_MAX - len;
}

bool program_is_executable(int dir, const char *name)
{
    struct stat st;

    return fstatat(dir, name, &st, 0) == 0 && S_ISREG(st.st_mode) &&
           faccessat(dir, name, X_OK, AT_EACCESS) == 0;
}

/* By /proc/THREAD/NAME, which is what the caller has open. */
static bool find_open(const struct request *request, const char *name, char ret[PATH_MAX])
{
    char link[64];
    ssize_t len;

    snprintf(link, sizeof link, "/proc/%d/%s", (int)request->thread, name);
    len = readlink(link, ret, PATH_MAX - 1);
    ret[len > 0 ? len : 0] = '\0';
    return len > 0 && program_is_executable(AT_FDCWD, link);
}

/* Follows links at the end. What leads into /proc in a way that we cannot follow is taken for a
 * program: its name is the link's, or the text. */
static bool find_file(const struct request *request, unsigned flags, const char *text,
                      char ret[PATH_MAX])
{
    AUTO(place_done) struct place place = {.dir = -1, .lock = -1};
    bool is_magic = map_is_within(ret, "/proc") || map_is_within(ret, "/dev");
    struct stat st;

    if (strcmp(ret, "/proc/self/exe") == 0 || strcmp(ret, "/proc/thread-self/exe") == 0)
        return find_open(request, "exe", ret);
    if (!place_find(request, request_dir(request, request->call->dir), text, &place))
        return is_magic || errno == ELOOP;
    for (int i = 0; i < LINKS_MAX; i++) {
        place_path(&place, ret);
        if (fstatat(place.dir, place.name, &st, AT_SYMLINK_NOFOLLOW))
            return false;
        if (!S_ISLNK(st.st_mode))
            return program_is_executable(place.dir, place.name);
        if (flags & AT_SYMLINK_NOFOLLOW)
            return false;
        if (!place_follow(request, &place))
            return errno != ENOENT && errno != ENOTDIR;
    }
    return false;
}

bool program_find(const struct request *request, char ret[PATH_MAX])
{
    const struct call *call = request->call;
    const unsigned flags = call->flags < 0 ? 0 : (unsigned)request_argument(request, call->flags);
    place_text text;
    char name[32];

    ret[0] = '\0';
    if (remote_text(request->thread, request_argument(request, call->path), text, sizeof text) < 0)
        return false;
    if (!*text) {
        snprintf(name, sizeof name, "fd/%d", request_dir(request, call->dir));
        return (flags & AT_EMPTY_PATH) && call->dir >= 0 && find_open(request, name, ret);
    }
    return whole_text(request, text, ret) && find_file(request, flags, text, ret);
}

static bool read_page(void *data, uint64_t address, char ret[ARGV_PAGE])
{
    const pid_t *thread = data;

    return remote_bytes(*thread, address, ret, ARGV_PAGE) == 0;
}

size_t program_describe(const struct request *request, pid_t process, struct guard_fact *packet)
{
    const int argv_at = request->call->path + 1;
    pid_t thread = request->thread;
    const struct memory memory = {.read = read_page, .data = &thread};
    size_t len = strlen(packet->strings) + 1;
    char link[64];
    ssize_t cwd;
    struct argv argv;

    snprintf(link, sizeof link, "/proc/%d/cwd", (int)thread);
    cwd = readlink(link, packet->strings + len, PATH_MAX - 1);
    len += cwd > 0 ? (size_t)cwd : 0;
    packet->strings[len++] = '\0';
    argv = argv_read(&memory, request->notif->data.args[argv_at], packet->strings + len,
                     GUARD_ARGV_MAX);
    packet->operation = GUARD_OP_EXECUTE;
    packet->entry = map_find(&request->command->map, packet->strings);
    packet->call = (uint32_t)request->call->nr;
    packet->pid = process;
    packet->argc = argv.count;
    packet->flags = argv.is_truncated ? GUARD_FLAG_TRUNCATED : 0;
    facts_name(packet);
    return packet_len(len + argv.len);
}
