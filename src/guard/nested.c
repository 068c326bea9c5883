/* See nested.h. Nothing that is said here widens anything: it only adds a map that has to agree, for the processes below a
 * launcher. That these are a sandbox's nobody can take off: they have more filters than the command (Seccomp_filters
 * of /proc/PID/status), which their children inherit. Where the launcher has died, or was never heard of, nothing at
 * all is done for them. */
#include "guard/nested.h"

#include "base/auto.h"
#include "guard/folder.h"
#include "guard/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define NESTED_UNKNOWN (UINT32_C(1) << NESTED_MAX)

enum {
    NESTED_MAX = 31, /* at a time, in one command */
    MAP_MAX = 1 << 20,
    LEVELS_MAX = 1024, /* of processes */
};

struct nested {
    pid_t init; /* of the sandbox: all below it is in it */
    int end;    /* readable when it has ended */
    size_t size;
    struct map map; /* size 0: nothing may be written */
};

static long filters_of(pid_t thread)
{
    return remote_status(thread, "\nSeccomp_filters:\t", 10);
}

/* Of a command: those around us, and its own. */
static long filters_of_commands(void)
{
    return filters_of(getpid()) + 1;
}

static void drop(struct nested *nested)
{
    if (nested->size)
        munmap((void *)nested->map.header, nested->size);
    auto_close(&nested->end);
}

/* Of launchers that have ended. What they may have left behind is known by its filters. */
static void purge(struct command *command)
{
    uint32_t len = 0;

    for (uint32_t i = 0; i < command->nested_len; i++) {
        struct pollfd end = {.fd = command->nested[i].end, .events = POLLIN};

        if (poll(&end, 1, 0) > 0)
            drop(&command->nested[i]);
        else
            command->nested[len++] = command->nested[i];
    }
    command->nested_len = len;
}

/* 0 or an errno. A map that can change is none. */
static int read_map(const struct request *request, int number, struct nested *ret)
{
    const int seals = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW;
    AUTO_CLOSE int fd = number < 0 ? -1 : remote_fd(request->thread, number);
    struct stat st;
    void *bytes;

    if (number < 0)
        return 0;
    if (fd < 0 || (fcntl(fd, F_GET_SEALS) & seals) != seals || fstat(fd, &st) || st.st_size <= 0 ||
        st.st_size > MAP_MAX)
        return EPERM;
    bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (bytes == MAP_FAILED)
        return EPERM;
    if (!map_init(&ret->map, bytes, (size_t)st.st_size)) {
        munmap(bytes, (size_t)st.st_size);
        return EPERM;
    }
    ret->size = (size_t)st.st_size;
    return 0;
}

static int add(const struct request *request)
{
    struct command *command = request->command;
    struct nested nested = {.end = -1};
    pid_t process;
    int error;

    if ((int)request->notif->data.args[0] == AT_FDCWD ||
        filters_of(request->thread) <= filters_of_commands() ||
        !remote_process(request->thread, &process, &nested.init) || nested.init <= 0)
        return EPERM;
    if (!command->nested)
        command->nested = calloc(NESTED_MAX, sizeof *command->nested);
    purge(command);
    if (!command->nested || command->nested_len == NESTED_MAX)
        return EPERM;
    nested.end = remote_pidfd(nested.init);
    error = nested.end < 0 ? EPERM : read_map(request, (int)request->notif->data.args[0], &nested);
    if (error || !request_is_valid(request)) {
        drop(&nested);
        return EPERM;
    }
    command->nested[command->nested_len++] = nested;
    return 0;
}

bool nested_register(const struct request *request, struct answer *ret_answer)
{
    int error;

    if (request->call->kind != CALL_MKDIR ||
        request_argument(request, request->call->mode) != GUARD_NESTED_MODE)
        return false;
    error = add(request);
    *ret_answer = error ? answer_error(error) : answer_value(0);
    return true;
}

uint32_t nested_find(const struct command *command, pid_t thread)
{
    uint32_t found = 0;
    pid_t process, parent;
    long filters;

    if (!command->nested)
        return 0;
    filters = filters_of(thread);
    if (filters >= 0 && filters <= filters_of_commands()) /* -1: nobody knows */
        return 0;
    for (int i = 0; i < LEVELS_MAX && remote_process(thread, &process, &parent) && parent > 1;
         i++) {
        for (uint32_t k = 0; k < command->nested_len; k++)
            if (command->nested[k].init == parent)
                found |= UINT32_C(1) << k;
        thread = parent;
    }
    return found ? found : NESTED_UNKNOWN;
}

/* The name at the end of `path` is `held` in the directory of the entry `entry`. Where case is folded (`dir`) it is so in
 * each, since the path of that may be spelled in another way, too. */
static bool is_spelled(const char *path, int dir, const char *entry, size_t entry_len,
                       const char *held)
{
    const char *name = strrchr(path, '/') + 1;

    if (!folder_may_be(name, held))
        return false;
    return ((size_t)(name - path) - 1 == entry_len && memcmp(entry, path, entry_len) == 0 &&
            strcasecmp(name, held) == 0) ||
           folder_folds_case(dir);
}

/* A name that is held, however it is spelled; or one that could make a root a repository (guard/folder.c looks closer). */
static bool is_held(const struct map *map, const char *path, int dir)
{
    for (uint32_t i = 0; i < map->header->entries; i++) {
        const unsigned flags = map->entries[i].flags;
        const char *entry = map_path(map, (int)i);
        const char *last = strrchr(entry, '/') + 1;

        if ((flags & GUARD_ENTRY_HELD_NAME) &&
            is_spelled(path, dir, entry, (size_t)(last - entry) - 1, last))
            return true;
        if ((flags & GUARD_ENTRY_ROOT) &&
            (is_spelled(path, dir, entry, strlen(entry), "HEAD") ||
             is_spelled(path, dir, entry, strlen(entry), "commondir")))
            return true;
    }
    return false;
}

bool nested_refuses_path(const struct request *request, const char *path, int dir, bool moves)
{
    const struct command *command = request->command;

    if (request->nested & NESTED_UNKNOWN)
        return true;
    for (uint32_t i = 0; i < NESTED_MAX; i++) {
        const struct map *map;

        if (!(request->nested >> i & 1))
            continue;
        map = &command->nested[i].map;
        if (!command->nested[i].size || *path != '/' ||
            map_access(map, map_find(map, path)) != GUARD_WRITE || is_held(map, path, dir) ||
            (moves && map_has_below(map, path)))
            return true;
    }
    return false;
}

bool nested_refuses(const struct request *request, const struct place *place, bool moves)
{
    char path[PATH_MAX];

    if (!request->nested)
        return false;
    place_path(place, path);
    return nested_refuses_path(request, path, place->dir, moves);
}

void nested_end(struct command *command)
{
    for (uint32_t i = 0; i < command->nested_len; i++)
        drop(&command->nested[i]);
    free(command->nested);
}
