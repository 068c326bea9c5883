"""What comes to be in folders while a command runs, by inotify: every name, were it there for a
moment only. Not what comes in folders that are younger than the watch."""

import ctypes
import os
import struct
from pathlib import Path

from events import libc

PROTECTED = (".git", ".agents", ".codex", ".aws", ".cordon")

IN_CREATE, IN_MOVED_TO, IN_ONLYDIR = 0x100, 0x80, 0x01000000  # linux/inotify.h
IN_Q_OVERFLOW = 0x4000
EVENT = struct.Struct("iIII")  # struct inotify_event


class Watch:
    def __init__(self):
        self.fd = libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
        if self.fd < 0:
            raise OSError(ctypes.get_errno(), "inotify_init1")
        self.folders = {}

    def close(self):
        os.close(self.fd)

    def add(self, top):
        """The folder and all below it, as far as we may look."""
        for folder, _, _ in os.walk(top):
            mask = IN_CREATE | IN_MOVED_TO | IN_ONLYDIR
            watch = libc.inotify_add_watch(self.fd, os.fsencode(folder), mask)
            if watch >= 0:
                self.folders[watch] = Path(folder)

    def names(self):
        """Paths that came to be since the last time. Of an attack that makes more of them than inotify
        keeps (a race that swaps links for seconds) those that it kept."""
        found = []
        while True:
            try:
                block = os.read(self.fd, 1 << 16)
            except BlockingIOError:
                return found
            at = 0
            while at < len(block):
                watch, mask, _, length = EVENT.unpack_from(block, at)
                name = block[at + EVENT.size:at + EVENT.size + length].rstrip(b"\0")
                at += EVENT.size + length
                if not mask & IN_Q_OVERFLOW and watch in self.folders:
                    found.append(self.folders[watch] / os.fsdecode(name))
