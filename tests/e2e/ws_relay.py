"""Stands between a WebSocket client and a server, passes every byte on and writes down what was
said, in the form of the recordings in tests/cases/wire.

    with Relay("ws://127.0.0.1:4711") as relay:
        ... a client uses relay.url ...
    relay.lines          {"t": seconds, "conn": 1, "dir": "c2s" or "s2c", "msg" or "http": ...}
"""
import json
import socket
import struct
import threading
import time

from ws_client import CONTINUATION, TEXT, dial, mask_bytes


class Relay:
    """With `cut_at`, the name of a method, the connection on which a client first calls it is cut
    before the call has come through."""

    def __init__(self, target, cut_at=None):
        self.target, self.lines, self.count = target, [], 0
        self.cut_at = cut_at
        self.began = time.monotonic()
        self.lock = threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"ws://127.0.0.1:{self.listener.getsockname()[1]}"

    def __enter__(self):
        threading.Thread(target=self.accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.listener.close()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            try:
                server = dial(self.target, None)
            except OSError:  # it has gone
                client.close()
                continue
            self.count += 1
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for side, source, sink in (("c2s", client, server), ("s2c", server, client)):
                threading.Thread(target=self.pass_on, args=(self.count, side, source, sink),
                                 daemon=True).start()

    def pass_on(self, number, side, source, sink):
        stream = Stream(lambda **what: self.write(number, side, what))
        try:
            while data := source.recv(1 << 20):
                stream.feed(data)
                if self.is_cut(number):
                    source.shutdown(socket.SHUT_RDWR)
                    break
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            sink.close()

    def is_cut(self, number):
        with self.lock:
            last = self.lines[-1] if self.lines else {}
            if self.cut_at and last.get("msg", {}).get("method") == self.cut_at:
                self.cut_at = None
                return last["conn"] == number
            return False

    def write(self, number, side, what):
        with self.lock:
            self.lines.append({"t": round(time.monotonic() - self.began, 3), "conn": number,
                               "dir": side, **what})


class Stream:
    """One direction of a connection: an HTTP head, then frames."""

    def __init__(self, write):
        self.write, self.data, self.has_head, self.message = write, b"", False, b""

    def feed(self, data):
        self.data += data
        if not self.has_head and b"\r\n\r\n" in self.data:
            head, _, self.data = self.data.partition(b"\r\n\r\n")
            self.write(http=head.decode().split("\r\n"))
            self.has_head = True
        while self.has_head and self.take():
            pass

    def take(self):
        """One frame, when it is whole."""
        if len(self.data) < 2:
            return False
        first, second = self.data[:2]
        size, at = second & 127, 2
        if size > 125:
            form, length = (">H", 2) if size == 126 else (">Q", 8)
            if len(self.data) < 2 + length:
                return False
            size, at = struct.unpack_from(form, self.data, 2)[0], 2 + length
        end = at + size + (4 if second & 128 else 0)
        if len(self.data) < end:
            return False
        payload = self.data[end - size:end]
        if second & 128:
            payload = mask_bytes(payload, self.data[at:at + 4])
        self.data = self.data[end:]
        if first & 15 in (TEXT, CONTINUATION):
            self.message += payload
            if first & 128:
                self.write(msg=json.loads(self.message))
                self.message = b""
        return True
