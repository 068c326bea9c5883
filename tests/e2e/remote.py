"""What tests of `cordon --connect` need: a person at a terminal, and exec servers that are none of
Cordon's, or none at all."""
import contextlib
import fcntl
import json
import os
import pty
import select
import socket
import struct
import termios
import threading

from harness import WAIT

EXTENSIONS = {"process/list", "process/attach", "process/detach", "process/closeStdin",
              "process/resize", "process/wait"}


class Terminal:
    """A terminal with a person in front of it: `cordon WORDS` has it as 0, 1 and 2."""

    def __init__(self, place, *words, size=(33, 111)):
        self.master, self.slave = pty.openpty()
        place.cleanup.callback(os.close, self.master)
        place.cleanup.callback(os.close, self.slave)
        self.resize(*size)
        self.before = termios.tcgetattr(self.slave)
        self.seen = b""
        self.process = place.start(*words, stdin=self.slave, stdout=self.slave, stderr=self.slave,
                                   start_new_session=True, preexec_fn=self.take,
                                   env={"TERM": "vt100"})

    @staticmethod
    def take():
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    def resize(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self):
        ready, _, _ = select.select([self.master], [], [], WAIT)
        assert ready, f"nothing comes any more: {self.seen!r}"
        self.seen += os.read(self.master, 65536)

    def until(self, text):
        """Everything that came until the text was there; that is forgotten."""
        while text not in self.seen:
            self.read()
        before, _, self.seen = self.seen.partition(text)
        return before

    def type(self, data):
        os.write(self.master, data)

    def end(self):
        """Waits for cordon; its status. `seen` is what was still shown."""
        code = self.process.wait(timeout=WAIT)
        while select.select([self.master], [], [], 0)[0]:
            self.seen += os.read(self.master, 65536)
        return code

    def is_raw(self):
        return not termios.tcgetattr(self.slave)[3] & (termios.ICANON | termios.ECHO)

    def is_restored(self):
        return termios.tcgetattr(self.slave) == self.before


def refusal(message):
    """What a plain Codex server answers to what it does not know; None: it knows it."""
    if message.get("method") not in EXTENSIONS:
        return None
    return {"error": {"code": -32601, "message": f"unknown method {message['method']}"},
            "id": message["id"]}


class PlainServer:
    """A Cordon server behind a relay that takes away what a plain Codex server does not have.
    `asked`: the calls; `refuse` gives an answer instead of the server's, or None. With `swaps`,
    each output of a process comes behind the event that follows it."""

    def __init__(self, place, server, refuse=refusal, swaps=False):
        self.path, self.server, self.asked = place.base / "plain.sock", server, []
        self.refuse, self.swaps = refuse, swaps
        self.url = f"unix:{self.path}"
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(self.path))
        self.listener.listen()
        place.cleanup.callback(self.listener.close)
        place.cleanup.callback(self.listener.shutdown, socket.SHUT_RDWR)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                inner = socket.socket(socket.AF_UNIX)
                inner.connect(self.server.url.removeprefix("unix:"))
                for relay in (self.relay_in, self.relay_out):
                    threading.Thread(target=relay, args=(client, inner), daemon=True).start()

    def relay_in(self, client, inner):
        with contextlib.suppress(OSError):
            for line in client.makefile("rb"):
                message = json.loads(line)
                self.asked.append(message)
                message.get("params", {}).pop("detachedLifetimeMs", None)
                reply = self.refuse(message)
                if reply:
                    client.sendall(json.dumps(reply).encode() + b"\n")
                else:
                    inner.sendall(json.dumps(message).encode() + b"\n")
        with contextlib.suppress(OSError):  # also when the client left without reading all
            inner.shutdown(socket.SHUT_RDWR)

    def relay_out(self, client, inner):
        held = None
        with contextlib.suppress(OSError):
            for line in inner.makefile("rb"):
                method = json.loads(line).get("method")
                if self.swaps and method == "process/output" and held is None:
                    held = line
                    continue
                client.sendall(line + (held or b""))
                held = None
        with contextlib.suppress(OSError):
            client.shutdown(socket.SHUT_RDWR)


class FakeServer:
    """Listens on TCP and answers whoever connects with these bytes, then closes. With `keep`, it
    waits until the client closes first. `heads`: what the clients sent first."""

    def __init__(self, place, reply):
        self.reply, self.heads = reply, []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"ws://127.0.0.1:{self.listener.getsockname()[1]}"
        place.cleanup.callback(self.listener.close)
        place.cleanup.callback(self.listener.shutdown, socket.SHUT_RDWR)
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                with client:
                    self.heads.append(client.recv(65536))
                    reply = self.reply(self.heads[-1]) if callable(self.reply) else self.reply
                    client.sendall(reply)
