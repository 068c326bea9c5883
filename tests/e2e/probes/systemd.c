/* systemd BUS [MEMORY PIDS]: a double of systemd's manager on the D-Bus at the address BUS, as far as Cordon
 * asks it. It makes a scope by a directory in each of the cgroup v1 directories MEMORY and PIDS, and
 * moves the processes into them; without these it says that it has made one; with AROUND=NAME, too, and makes one of this
 * name, with 1 GiB and 400 processes, before it is asked. Removes them when their processes
 * have ended, at its own end, which is that of its stdin. Prints what it is asked for, a line each. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>
#include <time.h>
#include <unistd.h>

static const char *bases[2]; /* of memory, of pids */
static char made[16][256];
static int made_len;

static void write_file(const char *dir, const char *file, unsigned long long value)
{
    char path[512];
    FILE *to;

    snprintf(path, sizeof path, "%s/%s", dir, file);
    to = fopen(path, "w");
    if (!to || fprintf(to, "%llu", value) < 0 || fclose(to))
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
}

static void make(const char *unit, const uint32_t *pids, size_t pids_len, uint64_t memory,
                 uint64_t tasks)
{
    for (int i = 0; i < 2 && bases[i] && made_len < 16; i++) {
        char *dir = made[made_len++];

        snprintf(dir, sizeof made[0], "%s/%s", bases[i], unit);
        if (mkdir(dir, 0755))
            perror(dir);
        if (i == 0 && memory)
            write_file(dir, "memory.limit_in_bytes", memory);
        if (i == 1 && tasks)
            write_file(dir, "pids.max", tasks);
        for (size_t k = 0; k < pids_len; k++)
            write_file(dir, "cgroup.procs", pids[k]);
    }
}

static int on_start(sd_bus_message *call, void *data, sd_bus_error *error)
{
    const char *unit, *mode, *name;
    const uint32_t *pids = NULL;
    size_t size = 0;
    uint64_t memory = 0, tasks = 0, swap = 1;
    int delegate = 0;

    (void)data;
    if (sd_bus_message_read(call, "ss", &unit, &mode) < 0 ||
        sd_bus_message_enter_container(call, 'a', "(sv)") < 0)
        return -EINVAL;
    while (sd_bus_message_enter_container(call, 'r', "sv") > 0) {
        sd_bus_message_read(call, "s", &name);
        if (strcmp(name, "PIDs") == 0) {
            sd_bus_message_enter_container(call, 'v', "au");
            sd_bus_message_read_array(call, 'u', (const void **)&pids, &size);
            sd_bus_message_exit_container(call);
        } else if (strcmp(name, "MemoryMax") == 0) {
            sd_bus_message_read(call, "v", "t", &memory);
        } else if (strcmp(name, "MemorySwapMax") == 0) {
            sd_bus_message_read(call, "v", "t", &swap);
        } else if (strcmp(name, "TasksMax") == 0) {
            sd_bus_message_read(call, "v", "t", &tasks);
        } else if (strcmp(name, "Delegate") == 0) {
            sd_bus_message_read(call, "v", "b", &delegate);
        } else {
            sd_bus_message_skip(call, "v");
        }
        sd_bus_message_exit_container(call);
    }
    printf("%s %s memory=%llu swap=%llu tasks=%llu pids=%zu delegate=%d\n", unit, mode,
           (unsigned long long)memory, (unsigned long long)swap, (unsigned long long)tasks,
           size / 4, delegate);
    fflush(stdout);
    if (getenv("REFUSES"))
        return sd_bus_error_set(error, "org.freedesktop.systemd1.No", "the double refuses");
    if (!getenv("AROUND"))
        make(unit, pids, size / 4, memory, tasks);
    if (sd_bus_reply_method_return(call, "o", "/org/freedesktop/systemd1/job/7") < 0)
        return -EIO;
    return sd_bus_emit_signal(sd_bus_message_get_bus(call), "/org/freedesktop/systemd1",
                              "org.freedesktop.systemd1.Manager", "JobRemoved", "uoss", 7,
                              "/org/freedesktop/systemd1/job/7", unit,
                              getenv("FAILS") ? "failed" : "done");
}

static int on_subscribe(sd_bus_message *call, void *data, sd_bus_error *error)
{
    (void)data, (void)error;
    return sd_bus_reply_method_return(call, NULL);
}

static const sd_bus_vtable table[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_METHOD("Subscribe", "", "", on_subscribe, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("StartTransientUnit", "ssa(sv)a(sa(sv))", "o", on_start,
                  SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_SIGNAL("JobRemoved", "uoss", 0),
    SD_BUS_VTABLE_END,
};

static int on_input(sd_event_source *source, int fd, uint32_t ready, void *data)
{
    (void)fd, (void)ready, (void)data;
    return sd_event_exit(sd_event_source_get_event(source), 0);
}

/* A process has ended for those who wait for it a moment before its cgroup counts it no more; of
 * that v1 tells nobody. */
static int remove_scope(const char *path)
{
    const struct timespec moment = {.tv_nsec = 1000000};

    for (int i = 0; i < 5000 && rmdir(path); i++) {
        if (errno != EBUSY)
            return -1;
        nanosleep(&moment, NULL);
    }
    return access(path, F_OK) == 0 ? -1 : 0;
}

int main(int argc, char **argv)
{
    sd_event *event;
    sd_bus *bus;
    int failed = 0;

    if (argc == 4) {
        bases[0] = argv[2];
        bases[1] = argv[3];
    }
    if (sd_event_default(&event) < 0 || sd_bus_new(&bus) < 0 ||
        sd_bus_set_address(bus, argv[1]) < 0 || sd_bus_set_bus_client(bus, 1) < 0 ||
        sd_bus_start(bus) < 0 ||
        sd_bus_add_object_vtable(bus, NULL, "/org/freedesktop/systemd1",
                                 "org.freedesktop.systemd1.Manager", table, NULL) < 0 ||
        sd_bus_request_name(bus, "org.freedesktop.systemd1", 0) < 0 ||
        sd_bus_attach_event(bus, event, 0) < 0 ||
        sd_event_add_io(event, NULL, 0, 1, on_input, NULL) < 0)
        return 1;
    if (getenv("AROUND"))
        make(getenv("AROUND"), NULL, 0, 1 << 30, 400);
    puts("ready");
    fflush(stdout);
    sd_event_loop(event);
    for (int i = 0; i < made_len; i++)
        failed |= remove_scope(made[i]);
    return failed ? 3 : 0; /* something has stayed in a scope */
}
