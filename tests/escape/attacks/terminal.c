/* Attacks on the terminal of the person who runs the command: type for them, read what they type,
 * take the terminal away. */
#include "attack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>

#ifndef TIOCLINUX
#define TIOCLINUX 0x541C
#endif

/* The terminal as the attack finds it: its controlling one, or the descriptor that is named. */
static int terminal(const char *text)
{
    return strcmp(text, "tty") == 0 ? open("/dev/tty", O_RDWR | O_CLOEXEC) : (int)number(text);
}

/* type TERMINAL HIGH TEXT: TIOCSTI; HIGH goes into the upper half of the request, which the kernel
 * throws away and a careless filter compares. */
static int run_type(int argc, char **argv)
{
    (void)argc;
    int fd = terminal(argv[0]);
    if (fd < 0)
        return lost("open /dev/tty");
    unsigned long request = (unsigned long)number(argv[1]) << 32 | TIOCSTI;
    for (const char *c = argv[2]; *c != '\0'; c++)
        if (syscall(SYS_ioctl, fd, request, c) < 0)
            return lost("TIOCSTI");
    return won("typed");
}

/* console FD: asks a virtual terminal which one is in front; the same call pastes and types. */
static int run_console(int argc, char **argv)
{
    (void)argc;
    char subcode = 12;
    return judge(syscall(SYS_ioctl, number(argv[0]), (unsigned long)TIOCLINUX, &subcode),
                 "TIOCLINUX");
}

static int run_tty_write(int argc, char **argv)
{
    int fd = terminal(argv[0]);
    (void)argc;
    return judge(fd < 0 ? -1 : write(fd, argv[1], strlen(argv[1])), "write to the terminal");
}

static int run_tty_read(int argc, char **argv)
{
    (void)argc;
    return show(terminal(argv[0]), "read from the terminal");
}

/* Takes a terminal away from its session. */
static int run_tty_steal(int argc, char **argv)
{
    (void)argc;
    int fd = (int)number(argv[0]);
    if (getsid(0) != getpid() && setsid() < 0 && fork() != 0)
        _exit(0);
    setsid();
    return judge(ioctl(fd, TIOCSCTTY, 1), "TIOCSCTTY");
}

static int run_tty_mode(int argc, char **argv)
{
    (void)argc;
    int fd = terminal(argv[0]);
    struct termios mode;
    if (fd < 0 || tcgetattr(fd, &mode) < 0)
        return lost("tcgetattr");
    mode.c_lflag &= ~(tcflag_t)ECHO;
    return judge(tcsetattr(fd, TCSANOW, &mode), "tcsetattr");
}

const struct attack terminal_attacks[] = {
    {"type", 3, run_type},
    {"console", 1, run_console},
    {"tty-write", 2, run_tty_write},
    {"tty-read", 1, run_tty_read},
    {"tty-steal", 1, run_tty_steal},
    {"tty-mode", 1, run_tty_mode},
    {NULL, 0, NULL},
};
