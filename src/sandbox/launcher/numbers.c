/* By the settings in /proc/sys/kernel, which belong to the namespace of who writes them. See numbers.h. */
#include "sandbox/launcher/numbers.h"

#include "base/auto.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/random.h>
#include <unistd.h>

/* Of the kernel's RESERVED_PIDS: below it none is given out a second time. */
enum { NUMBERS_RESERVED = 300 };

static bool numbers_write(const char *setting, uint64_t value)
{
    AUTO_CLOSE int fd = open(setting, O_WRONLY | O_CLOEXEC);
    char text[24];
    int len = snprintf(text, sizeof text, "%llu", (unsigned long long)value);

    return fd >= 0 && write(fd, text, (size_t)len) == len;
}

bool numbers_begin(unsigned first, unsigned range)
{
    uint16_t chance;

    if (getrandom(&chance, sizeof chance, GRND_NONBLOCK) != (ssize_t)sizeof chance)
        chance = 0;
    return numbers_write("/proc/sys/kernel/ns_last_pid", first - 1 + chance % range);
}

int numbers_limit(uint64_t processes, struct err *err)
{
    const uint64_t numbers = processes - 1;

    if (getpid() != 1 || processes < 2)
        return err_set(err, ERR_INVALID, "no pid namespace to be limited, or to nothing");
    if (!numbers_write("/proc/sys/kernel/pid_max", NUMBERS_RESERVED + numbers) ||
        !numbers_begin(NUMBERS_RESERVED, numbers < UINT16_MAX ? (unsigned)numbers : UINT16_MAX))
        return err_sys(err, "limiting the numbers of processes");
    return 0;
}
