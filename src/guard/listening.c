/* See listening.h. We live in the host's network, so that our own /proc/net is the host's. */
#include "guard/listening.h"

#include "guard/guard.h"

#include <stdio.h>
#include <string.h>

enum { STATE_LISTEN = 0x0a };

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

static bool is_listed(const char *table, uint16_t port)
{
    FILE *file = fopen(table, "re"); /* allow blocking fopen: procfs */
    char line[512], address[33];
    unsigned local, state;
    bool found = false;

    while (file && !found && fgets(line, sizeof line, file))
        found = sscanf(line, " %*u: %32[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x", address, &local,
                       &state) == 3 &&
                local == port && state == STATE_LISTEN && is_localhost(address);
    if (file)
        fclose(file);
    return found;
}

bool listening_outside(struct command *command, uint16_t port)
{
    for (uint32_t i = 0; i < command->refused_ports_len; i++)
        if (command->refused_ports[i] == port)
            return false;
    if (command->refused_ports_len == REFUSED_PORTS_MAX)
        return false;
    command->refused_ports[command->refused_ports_len++] = port;
    return is_listed("/proc/net/tcp", port) || is_listed("/proc/net/tcp6", port);
}
