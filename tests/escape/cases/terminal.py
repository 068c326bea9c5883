"""The terminal of the person who runs the command. Every attack plays on a terminal that the
harness made; "typed" means that it is in the terminal's input afterwards, where the person's shell
reads it."""

import fcntl
import os
import pty
import select
import struct
import termios
import tty

from catalogue import attack
from stage import WAIT, Unavailable

MARK = "attack-was-here"


class Terminal:
    """A terminal with a foreground session of its own: the command's caller."""

    def __init__(self, stage):
        self.master, self.slave = pty.openpty()
        stage.cleanup.callback(os.close, self.master)
        stage.cleanup.callback(os.close, self.slave)
        tty.setraw(self.slave)
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))

    def take(self):
        """For the child before exec: this terminal becomes the controlling one."""
        os.setsid()
        fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0)

    def shown(self):
        """What was written to the terminal."""
        return self.pending(self.master)

    def typed(self):
        """What waits in its input."""
        return self.pending(self.slave)

    @staticmethod
    def pending(fd):
        data = b""
        while select.select([fd], [], [], 0)[0]:
            block = os.read(fd, 4096)
            if not block:
                break
            data += block
        return data.decode(errors="replace")


def on_terminal(stage, *words, stdio=False, flags=()):
    """Runs an attack below a terminal; with `stdio`, that is also its stdin, stdout and stderr."""
    terminal = Terminal(stage)
    streams = dict(stdin=terminal.slave, stdout=terminal.slave, stderr=terminal.slave) if stdio \
        else {}
    process = stage.start(stage.tools / "attacks", *words, preexec_fn=terminal.take,
                          cordon=flags, **streams)
    if not stdio:
        stage.finish(process)
        return terminal, ""
    shown, pidfd = "", os.pidfd_open(process.pid)
    stage.cleanup.callback(os.close, pidfd)
    while True:
        ready = select.select([terminal.master, pidfd], [], [], WAIT)[0]
        shown += terminal.shown()
        if pidfd in ready or not ready:
            break
    shown += terminal.shown()
    process.kill()
    stage.note_run(process.wait(), shown, "")
    return terminal, shown


def legacy_typing():
    try:
        with open("/proc/sys/dev/tty/legacy_tiocsti", encoding="ascii") as file:
            return file.read().strip() == "1"
    except OSError:
        return True


def need_typing():
    if not legacy_typing():
        raise Unavailable("dev.tty.legacy_tiocsti is 0: the kernel refuses TIOCSTI to everybody")


@attack()
def type_on_stdin(stage):
    """CVE-2017-5226."""
    need_typing()
    terminal, _ = on_terminal(stage, "type", 0, 0, MARK, stdio=True)
    return MARK in terminal.typed()


@attack()
def type_with_a_high_bit(stage):
    """CVE-2019-7303, CVE-2019-10063: the kernel looks at the low half of the number only."""
    need_typing()
    terminal, _ = on_terminal(stage, "type", 0, 1, MARK, stdio=True)
    return MARK in terminal.typed()


@attack()
def type_on_the_controlling_terminal(stage):
    """Streams are pipes; the terminal is still /dev/tty."""
    need_typing()
    terminal, _ = on_terminal(stage, "type", "tty", 0, MARK)
    return MARK in terminal.typed()


@attack()
def type_into_its_own_terminal(stage):
    """Even on the terminal that Cordon gives to the command, typing is refused: somebody may
    attach to it."""
    need_typing()
    _, shown = on_terminal(stage, "type", 0, 0, MARK, stdio=True, flags=["--tty"])
    return "@won" in shown


@attack()
def write_to_the_controlling_terminal(stage):
    terminal, _ = on_terminal(stage, "tty-write", "tty", MARK)
    return MARK in terminal.shown()


@attack()
def read_from_the_controlling_terminal(stage):
    terminal = Terminal(stage)
    os.write(terminal.master, b"typed-password")
    process = stage.start(stage.tools / "attacks", "tty-read", "tty", preexec_fn=terminal.take)
    return "typed-password" in stage.finish(process).out


@attack()
def change_the_mode_of_the_controlling_terminal(stage):
    terminal = Terminal(stage)
    mode = termios.tcgetattr(terminal.slave)
    mode[3] |= termios.ECHO
    termios.tcsetattr(terminal.slave, termios.TCSANOW, mode)
    stage.finish(stage.start(stage.tools / "attacks", "tty-mode", "tty",
                             preexec_fn=terminal.take))
    return not termios.tcgetattr(terminal.slave)[3] & termios.ECHO


@attack()
def use_an_inherited_terminal(stage):
    terminal = Terminal(stage)
    stage.attack("tty-write", terminal.slave, MARK, fds=[terminal.slave])
    return MARK in terminal.shown()


@attack(users=("root",))
def steal_the_terminal(stage):
    """CAP_SYS_ADMIN takes a terminal from the session that has it."""
    terminal = Terminal(stage)
    keeper = stage.tool_process("linger", "keeper", preexec_fn=terminal.take)
    stage.attack("tty-steal", 0, stdin=terminal.slave)
    with open(f"/proc/{keeper.pid}/stat", encoding="ascii") as file:
        return file.read().rpartition(")")[2].split()[4] == "0"  # tty_nr


@attack(users=("root",))
def paste_on_the_console(stage):
    """TIOCLINUX on a virtual terminal that is the caller's stdin."""
    if not os.path.exists("/dev/tty1"):
        raise Unavailable("no virtual terminals")
    console = stage.open("/dev/tty1", os.O_RDWR | os.O_NOCTTY)
    return stage.attack("console", 0, stdin=console).won


@attack(users=("root",))
def paste_on_an_inherited_console(stage):
    if not os.path.exists("/dev/tty1"):
        raise Unavailable("no virtual terminals")
    console = stage.open("/dev/tty1", os.O_RDWR | os.O_NOCTTY)
    return stage.attack("console", console, fds=[console]).won
