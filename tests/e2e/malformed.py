"""Ten thousand malformed inputs against any server of the protocol: JSON, base64, URIs, frames and
HTTP heads, each a good one with something wrong. The same seed makes the same inputs.

    assault = Assault(url, requests, probe)
    assault.run(10000)

`requests` are good messages (dicts) to be broken; methods stay as they are, but everything else
may become anything, so they have to be harmless with any params: no fs/remove. `probe(client)` is
called on a connection of its own all along and fails when the server does not work as it should.
What an input is answered with is not looked at, beyond that the server goes on: it may answer,
refuse or close, but it has to do it at once, and only to the connection that it came from.
"""
import base64
import contextlib
import copy
import json
import random
import socket

import ws_client
from ws_client import BINARY, CLOSE, CONTINUATION, PING, PONG, TEXT, Client, Closed, dial, frame

BATCH = 50

ODD_VALUES = [
    None, True, False, 0, -1, 1, 1 << 31, 1 << 53, (1 << 63) - 1, -(1 << 63), 0.5, -1e308, "", " ",
    "\0", "a\0b", "ä€😀", "\ud800", "\udfff\ud800", "x" * 5000, "../" * 50, "%s%n%x", [], {}, [[]],
    [None], {"": None}, ["a"] * 500, {str(i): i for i in range(200)},
]

BAD_BASE64 = [
    "=", "==", "====", "a", "aa", "aaa", "aaaaa", "aa=a", "a===", "=aaa", "aaaa=", "aaaa====",
    "aaaa\n", " aaaa", "aaaa ", "aa-_", "aaa!", "aa\0=", "ab==", "YWJj\r\nYWJj", "äaaa",
    "a" * 4097, base64.b64encode(b"x" * 100).decode()[:-1],
    base64.b64encode(b"x" * 100).decode()[:-2] + "=",
]

BAD_URIS = [
    "", "/", "/tmp", "tmp", "file:", "file:/", "file:tmp", "file://", "file://host/x", "file:///%",
    "file:///%0", "file:///%zz", "file:///%00", "file:///a%00b", "file:///?q", "file:///a#f",
    "file:///..", "file:///../../..", "file:///%2e%2e/%2e%2e", "file:///C:/x", "file://localhost",
    "file://localhost/%", "file://localhost:80/", "file://user@localhost/", "FILE:///tmp",
    "http://127.0.0.1/", "file:///%ff%fe", "file:///" + "a/" * 3000, "file:///" + "x" * 300,
    "file:///\n", "file:///tmp\0", "file://\ud800/", "file:///proc/self/mem", "data:,x",
]

PIECES = [b"", b"\0", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\"", b"\\", b"\\u", b"\\ud800", b"{", b"}",
          b"[", b"]", b",", b":", b"null", b"1e999", b"-", b"0x10", b"NaN", b"99999999999999999999",
          b"\xef\xbb\xbf", b"//", b"\n", b"\r\n", b" "]


class Assault:
    def __init__(self, url, requests, probe, seed=1, token=None):
        self.url, self.requests, self.probe, self.token = url, requests, probe, token
        self.random = random.Random(seed)
        self.client = None
        self.counts = {"answered": 0, "closed": 0}

    def connect(self):
        return Client.connect(self.url, token=self.token)

    def run(self, count=10000):
        """Makes so many inputs; returns how they went."""
        kinds = [(self.bad_json, 30), (self.bad_tree, 25), (self.bad_base64, 12),
                 (self.bad_uri, 13)]
        with self.connect() as bystander:
            self.probe(bystander)
            done = 0
            while done < count:
                share = min(BATCH, count - done)
                if self.random.random() < 0.2:
                    self.send_raw([self.random.choice([self.bad_frames, self.bad_head])()
                                   for _ in range(share)])
                else:
                    makers = self.random.choices(*zip(*kinds), k=share)
                    self.send_messages([make() for make in makers])
                self.probe(bystander)
                done += share
        if self.client:
            self.client.close()
        return self.counts

    # --- sending ---

    def send_messages(self, texts):
        """On one connection, until the server closes it; then on the next."""
        while texts:
            if self.client is None:
                self.client = self.connect()
            try:
                self.send_batch(texts)
                self.counts["answered"] += len(texts)
                return
            except (Closed, OSError):
                # Where it was closed is not known; one of these was at it, so go on behind it.
                self.counts["closed"] += 1
                self.client.sock.close()
                self.client = None
                texts = texts[1:] if len(texts) == 1 else texts[len(texts) // 2:]

    def send_batch(self, texts):
        client = self.client
        for text in texts:
            if client.lines:
                text = text.replace(b"\n", b" ")
                client.send_bytes(text + b"\n")
            else:
                client.send_bytes(frame(text, self.random.choice([TEXT, BINARY])))
        client.send({"id": "the end", "method": "no/such/method"})
        while b'"the end"' not in (text := client.read_text()):
            if not text.startswith(b"{"):  # a first line that looks like HTTP is answered like it
                raise Closed

    def send_raw(self, inputs):
        """A connection each, all at once, for whom one look at who connects is enough; the server has to be done
        with each when we say no more."""
        with contextlib.ExitStack() as stack:
            socks = [stack.enter_context(dial(self.url)) for _ in inputs]
            for sock, data in zip(socks, inputs):
                try:
                    sock.sendall(data)
                    sock.shutdown(socket.SHUT_WR)
                except OSError:
                    pass
            for sock in socks:
                ws_client.read_all(sock)
                self.counts["closed"] += 1

    # --- making ---

    def good(self):
        return copy.deepcopy(self.random.choice(self.requests))

    def bad_bytes(self, data):
        """Some bytes taken out, put in, changed, repeated, or cut off."""
        for _ in range(self.random.choice([1, 1, 1, 2, 3, 10])):
            at = self.random.randrange(len(data) + 1)
            end = min(len(data), at + self.random.choice([0, 1, 1, 2, 5, 30]))
            how = self.random.randrange(5)
            if how == 0:
                data = data[:at] + data[end:]
            elif how == 1:
                data = data[:at] + self.random.choice(PIECES) + data[at:]
            elif how == 2:
                data = data[:at] + self.random.randbytes(end - at) + data[end:]
            elif how == 3:
                data = data[:end] + data[at:end] * self.random.choice([1, 2, 50]) + data[end:]
            else:
                data = data[:at]
        return data

    def bad_json(self):
        if self.random.random() < 0.02:
            depth = self.random.choice([100, 127, 128, 129, 5000, 100000])
            return b'{"id":1,"method":"m","params":' + b"[" * depth + b"]" * depth + b"}"
        return self.bad_bytes(json.dumps(self.good()).encode())

    def places(self, value):
        """(container, key) of everything below params."""
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in list(items):
            yield value, key
            if isinstance(item, (dict, list)):
                yield from self.places(item)

    def with_odd(self, values, where=lambda item: True):
        message = self.good()
        message.setdefault("params", {})
        places = [(c, k) for c, k in self.places(message["params"]) if where(c[k])]
        if not places:
            places = [(message, "params")]
        container, key = self.random.choice(places)
        container[key] = self.random.choice(values)
        return json.dumps(message).encode()

    def bad_tree(self):
        if self.random.random() < 0.2:
            message = self.good()
            message[self.random.choice(["id", "params", "trace", "error", "x"])] = \
                self.random.choice(ODD_VALUES)
            return json.dumps(message).encode()
        return self.with_odd(ODD_VALUES)

    def bad_base64(self):
        return self.with_odd(BAD_BASE64, lambda item: isinstance(item, str))

    def bad_uri(self):
        return self.with_odd(BAD_URIS, lambda item: isinstance(item, str)
                             and item.startswith("file:"))

    def bad_frames(self):
        rand = self.random
        data = b""
        for _ in range(rand.choice([1, 1, 2, 5])):
            text = json.dumps(self.good()).encode()
            data += frame(text[:rand.choice([0, 3, 125, 126, 10000])],
                          rand.choice([TEXT, BINARY, CONTINUATION, CLOSE, PING, PONG, 3, 11]),
                          fin=rand.random() < 0.8, masked=rand.random() < 0.9,
                          rsv=rand.choice([0, 0, 0, 0, 1, 4, 7]),
                          length=rand.choice([None, None, None, 0, 125, 126, 1 << 16, 1 << 24,
                                              (1 << 24) + 1, 1 << 40, (1 << 64) - 1]))
        if rand.random() < 0.3:
            data = self.bad_bytes(data)
        return self.good_head() + data

    def good_head(self):
        fields = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        return ws_client.upgrade_head(fields=fields)

    def bad_head(self):
        rand = self.random
        how = rand.randrange(4)
        if how == 0:
            return rand.randbytes(rand.choice([1, 10, 1000, 20000]))
        if how == 1:
            return self.bad_bytes(f"GET {rand.choice(['/readyz', '/metrics', '/'])} HTTP/1.1\r\n"
                                  "Host: localhost\r\n\r\n".encode())
        if how == 2:
            return self.good_head().replace(b"\r\n", rand.choice([b"\n", b"\r", b"\r\n ", b"\r\n\r\n"]),
                                            rand.choice([1, 2, -1]))
        return self.bad_bytes(self.good_head())
