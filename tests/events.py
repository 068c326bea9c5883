"""Waiting for what happens, in place of looking for it again and again."""
import contextlib
import ctypes
import os
import select
import signal
import time

libc = ctypes.CDLL(None, use_errno=True)

IN_MODIFY, IN_MOVE, IN_CREATE, IN_DELETE = 0x2, 0xC0, 0x100, 0x200  # linux/inotify.h


@contextlib.contextmanager
def changes(folder):
    """Inside: a descriptor that gets readable when a name in the folder comes, goes or changes."""
    fd = libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        mask = IN_MODIFY | IN_MOVE | IN_CREATE | IN_DELETE
        if fd < 0 or libc.inotify_add_watch(fd, os.fsencode(folder), mask) < 0:
            raise OSError(ctypes.get_errno(), f"watching {folder}")
        yield fd
    finally:
        if fd >= 0:
            os.close(fd)


def wait_in(folder, condition, seconds):
    """Waits until the condition holds, which can only change with what is in the folder."""
    deadline = time.monotonic() + seconds
    with changes(folder) as fd:
        while not condition():
            left = deadline - time.monotonic()
            assert left > 0 and select.select([fd], [], [], left)[0], \
                f"not within {seconds} s; there are {os.listdir(folder)}"
            os.read(fd, 65536)


def wait_for_end(pidfd, seconds):
    """Whether the process has ended in time."""
    return bool(select.select([pidfd], [], [], max(seconds, 0))[0])


@contextlib.contextmanager
def child_ends():
    """Inside: a function that waits for the end of one more child, and tells whether it came within
    so many seconds."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    try:
        yield lambda seconds: signal.sigtimedwait({signal.SIGCHLD}, max(seconds, 0)) is not None
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def wait_until_empty(cgroup, seconds):
    """Until no process is in a cgroup (cgroups(7): a change of cgroup.events is a POLLPRI)."""
    deadline = time.monotonic() + seconds
    with open(cgroup / "cgroup.events", encoding="ascii") as file:
        poll = select.poll()
        poll.register(file, select.POLLPRI)
        while "populated 0" not in file.read():
            left = deadline - time.monotonic()
            assert left > 0, f"{cgroup} does not get empty"
            poll.poll(left * 1000)
            file.seek(0)
