"""A person who is asked: at a terminal, which is the controlling one of what is started there."""
import codecs
import fcntl
import os
import pty
import select
import struct
import termios

from harness import WAIT


class Person:
    """stdio of what is started may be anything all the same."""

    def __init__(self, place):
        self.main, self.side = pty.openpty()
        self.resize(1000, 4000)  # nothing is cut
        place.cleanup.callback(self.leave)
        place.cleanup.callback(os.close, self.side)
        self.before = termios.tcgetattr(self.side)
        self.seen = ""
        self.decoder = codecs.getincrementaldecoder("utf-8")()

    def take_terminal(self):
        """For preexec_fn."""
        os.setsid()
        os.close(os.open(os.ttyname(self.side), os.O_RDWR))  # of a session leader without one: becomes it

    def resize(self, lines, columns):
        fcntl.ioctl(self.side, termios.TIOCSWINSZ, struct.pack("4H", lines, columns, 0, 0))

    def until(self, text):
        """Reads until the text has come; everything since the last call."""
        while text not in self.seen:
            assert self.is_shown_more(WAIT), f"nothing comes any more: {self.seen!r}"
        head, _, self.seen = self.seen.partition(text)
        return head + text

    def is_shown_more(self, wait=0):
        """Whether anything came, which is kept."""
        ready, _, _ = select.select([self.main], [], [], wait)
        if ready:
            self.seen = (self.seen + self.decoder.decode(os.read(self.main, 65536))).replace("\r\n", "\n")
        return bool(ready)

    def say(self, text):
        os.write(self.main, text.encode())

    def is_restored(self):
        return termios.tcgetattr(self.side) == self.before

    def leave(self):
        """The terminal is closed, once."""
        if self.main is not None:
            os.close(self.main)
        self.main = None
