/* See listening.h. We live in the host's network, so that our own /proc/net is the host's. Other calls wait while this looks,
 * so that it looks for a moment only: whoever is not found by then is not told of. */
#include "guard/listening.h"

#include "base/proc.h"
#include "guard/guard.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STATE_LISTEN = 0x0a };

/* A table takes 5 ms where the kernel has 262,144 buckets for connections, all of which it walks; each network has two. */
#define LOOK_NS (UINT64_C(100) * 1000 * 1000)

/* Of an address as the kernel writes it, in words of the machine's own order: one that localhost leads to. */
static bool is_localhost(const char *address)
{
    static const char *const all[] = {"00000000", "0100007F", "00000000000000000000000000000000",
                                      "00000000000000000000000001000000"};

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(address, all[i]) == 0)
            return true;
    return false;
}

/* Those that listen come first; of the others there may be many. */
static bool is_listed(const char *table, uint16_t port, uint64_t end_ns)
{
    FILE *file = fopen(table, "re"); /* allow blocking fopen: procfs */
    char line[512], address[33];
    unsigned local, state = STATE_LISTEN;
    bool found = false;

    while (file && !found && state == STATE_LISTEN && now_ns() < end_ns &&
           fgets(line, sizeof line, file))
        found = sscanf(line, " %*u: %32[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x", address, &local,
                       &state) == 3 &&
                local == port && state == STATE_LISTEN && is_localhost(address);
    if (file)
        fclose(file);
    return found;
}

static bool is_listed_of(pid_t pid, uint16_t port, uint64_t end_ns)
{
    char four[64], six[64];

    snprintf(four, sizeof four, "/proc/%d/net/tcp", pid);
    snprintf(six, sizeof six, "/proc/%d/net/tcp6", pid);
    return is_listed(four, port, end_ns) || is_listed(six, port, end_ns);
}

/* Each command has an init of ours, which is in its network. */
static bool is_of_a_command(uint16_t port, uint64_t end_ns)
{
    DIR *processes = opendir("/proc");
    const struct dirent *entry;
    bool found = false;

    while (processes && !found && now_ns() < end_ns && (entry = readdir(processes))) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

        found = pid > 0 && proc_is_named(pid, "cordon-init") && is_listed_of(pid, port, end_ns);
    }
    if (processes)
        closedir(processes);
    return found;
}

enum listening listening_outside(struct command *command, uint16_t port)
{
    const uint64_t end_ns = now_ns() + LOOK_NS;

    for (uint32_t i = 0; i < command->refused_ports_len; i++)
        if (command->refused_ports[i] == port)
            return LISTENING_NOBODY;
    if (command->refused_ports_len == REFUSED_PORTS_MAX)
        return LISTENING_NOBODY;
    command->refused_ports[command->refused_ports_len++] = port;
    if (is_listed("/proc/net/tcp", port, end_ns) || is_listed("/proc/net/tcp6", port, end_ns))
        return LISTENING_HOST;
    return is_of_a_command(port, end_ns) ? LISTENING_COMMAND : LISTENING_NOBODY;
}
