/* After a kill: whether commands of a layer still live.
 *
 * The lock ends with its holder, and the commands end with it, too, but a moment later: their inits have to see that it is
 * gone, and a process may hang in the kernel. Until then they write, and nothing may be mounted over, or taken from,
 * what they write to. The mounts have the layer's id as their source, so mountinfo of every process that is in them shows
 * it; of each command the init is one, which lives as long as any process of the command. */
#include "layer/inside.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/str.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WAIT_NS (3 * CLOCK_NS_PER_S)

enum { MOUNTS_MAX = 4 << 20 };

static bool has_mount(int proc, const char *pid, const char *name)
{
    AUTO_FREE char *path = alloc_strf("%s/mountinfo", pid);
    AUTO(buf_done) struct buf text;
    /* allow blocking open: procfs */
    AUTO_CLOSE int fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
    struct err ignored;

    buf_init(&text, MOUNTS_MAX);
    if (fd < 0 || buf_read_fd(&text, fd, &ignored) || !text.len)
        return false; /* another user's, or it has ended */
    return memmem(text.data, text.len, name, strlen(name));
}

struct search {
    const char *name;
    int proc;
    pid_t pid; /* found */
};

static int look(void *data, const char *name)
{
    struct search *search = data;
    long pid = strtol(name, NULL, 10);

    if (pid <= 0 || pid == getpid() || name[strspn(name, "0123456789")] ||
        !has_mount(search->proc, name, search->name))
        return 0;
    search->pid = (pid_t)pid;
    return 1;
}

/* A process that has it mounted; 0: none. */
static pid_t find_process(const char *name)
{
    AUTO_CLOSE int proc =
        open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* allow blocking open: procfs */
    struct search search = {.name = name, .proc = proc};
    struct err ignored;

    if (proc >= 0)
        store_list(proc, ".", look, &search, &ignored);
    return search.pid;
}

static void wait_for(pid_t pid, uint64_t deadline_ns)
{
    AUTO_CLOSE int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    struct pollfd watched = {.fd = pidfd, .events = POLLIN};
    uint64_t now = clock_now_ns();

    if (pidfd >= 0 && now < deadline_ns)
        poll(&watched, 1, (int)((deadline_ns - now) / CLOCK_NS_PER_MS) + 1);
}

int orphan_wait(const struct layer *layer, struct err *err)
{
    const struct step_record *last =
        layer->records_len ? &layer->records[layer->records_len - 1] : NULL;
    AUTO_FREE char *name = alloc_strf(LAYER_MOUNT_NAME "%s", layer->record.id);
    uint64_t deadline = clock_after(clock_now_ns(), WAIT_NS);
    pid_t pid;

    if (!last || last->step.ended.tv_sec || !str_eq(last->boot, store_boot()))
        return 0;
    while ((pid = find_process(name))) {
        if (clock_now_ns() >= deadline)
            return err_set(
                err, ERR_BUSY,
                "layer %s: process %d of an earlier command still lives in it; end that first",
                layer_name(layer), (int)pid);
        wait_for(pid, deadline);
    }
    return 0;
}
