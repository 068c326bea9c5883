"""Servers that forgive: what each of them would take for a request in the bytes of a connection, and whom it would be for.
Attacks on who judges requests live on such differences; every reader here is the way of programs that are in use."""
import re
import select
import socket
import socketserver
import struct
import urllib.parse

STRICT = {
    "ends": rb"\r?\n",
    "line": rb"(\w+) +(\S+) +HTTP/1\.\d",
    "field": rb"([!-9;-~]+):[ \t]*(.*?)[ \t]*",
    "size": lambda text: int(re.fullmatch(rb"([0-9a-fA-F]{1,15})[ \t]*(;.*)?", text, re.DOTALL)[1], 16),
    "length": lambda values: int(re.fullmatch(rb"\d{1,15}", values[0])[0]),
    "is_chunked": lambda values: values[-1:] == [b"chunked"],
    "host": lambda values: values[0],
    "prefers_length": False,
    "skips_feeds": False,  # of a chunk's end
    "unfolds": False,
}


def strtol(text, base):
    """As C has it: blanks, a sign and a prefix before the number, anything behind it; too long wraps."""
    found = re.match(rb"[ \t\v\f\r\n]*([+-]?)(?:0[xX](?=[0-9a-fA-F]))?([0-9a-fA-F]*)" if base == 16 else rb"[ \t\v\f\r\n]*([+-]?)(\d*)", text)
    number = int(found[2] or b"0", base) & (1 << 64) - 1
    return -number if found[1] == b"-" else number


def python_int(text, base):
    """Underscores, too."""
    return int(text.strip().replace(b"_", b""), base)


READERS = {
    "strict": {},
    "C, strtol": {"size": lambda text: strtol(text, 16), "length": lambda values: strtol(values[0], 10)},
    "C, strtol, the last length": {"size": lambda text: strtol(text, 16), "length": lambda values: strtol(values[-1], 10),
                                   "prefers_length": True, "field": rb"([!-9;-~]+)[ \t]*:[ \t]*(.*?)[ \t]*"},
    "Python, int": {"size": lambda text: python_int(text, 16), "length": lambda values: python_int(values[0], 10)},
    "forgets the sum of chunks": {"skips_feeds": True},
    "no coding but chunked": {"is_chunked": lambda values: False, "prefers_length": True, "length": lambda values: 0},
    "chunked anywhere": {"is_chunked": lambda values: any(b"chunked" in value for value in values)},
    "blanks before the colon": {"field": rb"[ \t]*([!-9;-~]+)[ \t]*:[ \t]*(.*?)[ \t]*"},
    "no colon": {"field": rb"([!-9;-~]+)[: \t]+(.*?)[ \t]*"},
    "lines as Python's str": {"ends": rb"\r\n|[\n\r\v\f\x1c\x1d\x1e\x85]|\xc2\x85|\xe2\x80[\xa8\xa9]",
                              "line": rb"(\w+)\s+(\S+)(?:\s+HTTP/1\.\d)?"},
    "a return ends lines": {"ends": rb"\r\n?|\n", "length": lambda values: strtol(values[-1], 10), "prefers_length": True},
    "strings end at NUL": {"ends": rb"\r?\n|\0", "host": lambda values: values[0].split(b"\0")[0]},
    "blanks as isspace": {"line": rb"(?i:(\w+)[\s\x85]+(\S+?)[\s\x85]+HTTP/1\.\d)", "field": rb"(?i:([!-9;-~]+))\s*:\s*(.*?)\s*"},
    "folded lines": {"unfolds": True},
    "the last host": {"host": lambda values: values[-1]},
}


def readings(raw):
    """(who, method, target, host) of every request, by every reader."""
    for who, how in READERS.items():
        how = {**STRICT, **how}
        for found in requests(re.sub(rb"\r?\n[ \t]+", b" ", raw) if how["unfolds"] else raw, how):
            yield (who, *found)


def take_line(raw, at, ends):
    end = re.compile(ends).search(raw, at)
    return (raw[at:end.start()], end.end()) if end else (None, at)


def requests(raw, how):
    at = 0
    while at < len(raw):
        line, at = take_line(raw, at, how["ends"])
        while line == b"" and at < len(raw):
            line, at = take_line(raw, at, how["ends"])
        found = re.fullmatch(how["line"], line or b"", re.DOTALL)
        fields = {}
        while found and line:
            line, at = take_line(raw, at, how["ends"])
            field = re.fullmatch(how["field"], line or b"", re.DOTALL)
            if field:
                fields.setdefault(field[1].lower(), []).append(field[2])
        if not found or line is None:
            return
        hosts = fields.get(b"host")
        yield found[1], found[2], how["host"](hosts) if hosts else None
        try:
            at = behind_body(raw, at, fields, how)
        except (TypeError, ValueError):
            return


def behind_body(raw, at, fields, how):
    lengths, codings = fields.get(b"content-length"), fields.get(b"transfer-encoding", [])
    if lengths and (how["prefers_length"] or not how["is_chunked"](codings)):
        return at + max(0, how["length"](lengths))
    while how["is_chunked"](codings):
        line, at = take_line(raw, at, rb"\r?\n")
        size = how["size"](line)
        at += max(0, size)
        if size <= 0:
            while line:  # trailers
                line, at = take_line(raw, at, how["ends"])
            return at
        line, at = take_line(raw, at, rb"\r?\n") if how["skips_feeds"] else (None, at + 2)
    return at


class OpenProxy(socketserver.BaseRequestHandler):
    """A proxy without rules, of HTTP, CONNECT and SOCKS, that understands whatever can be understood in some way."""

    def handle(self):
        self.buffer = b""
        first = self.request.recv(1, socket.MSG_PEEK)
        if first == b"\5":
            self.socks5()
        elif first == b"\4":
            self.take(2)
            port, address = struct.unpack(">H4s", self.take(6))
            while self.take(1) != b"\0":
                pass
            self.tunnel(socket.inet_ntoa(address), port, b"\0\x5a" + bytes(6))
        else:
            while head := self.head():
                if not self.http(head):
                    break

    def take(self, count):
        while len(self.buffer) < count:
            more = self.request.recv(65536)
            if not more:
                raise ConnectionError
            self.buffer += more
        data, self.buffer = self.buffer[:count], self.buffer[count:]
        return data

    def head(self):
        while not (end := re.search(rb"\r?\n\r?\n", self.buffer)):
            more = self.request.recv(65536)
            if not more:
                return b""
            self.buffer += more
        return self.take(end.end())

    def reach(self, host, port):
        host = urllib.parse.unquote_to_bytes(host).split(b"\0")[0].decode().strip().rstrip(".").strip("[]")
        return socket.create_connection((host, port & 0xffff), 2)

    def tunnel(self, host, port, reply):
        with self.reach(host, port) as server:
            self.request.sendall(reply)
            server.sendall(self.buffer)
            open_ends = {self.request: server, server: self.request}
            while open_ends:
                for end in select.select(list(open_ends), [], [], 5)[0]:
                    data = end.recv(65536)
                    if data:
                        open_ends[end].sendall(data)
                    else:
                        open_ends.pop(end).shutdown(socket.SHUT_WR)

    @staticmethod
    def split(target, port=80):
        """Who it is, of what stands between the slashes."""
        where = target.split(b"\\")[0].rsplit(b"@", 1)[-1]
        found = re.match(rb"(\[[^]]*\]|[^:]*)(?::(\d+))?", where)
        return found[1], int(found[2] or port)

    def http(self, head):
        line = head.split(b"\n")[0].split()
        if line[0] == b"CONNECT":
            self.tunnel(*self.split(b" ".join(line[1:-1])), b"HTTP/1.1 200 yes\r\n\r\n")
            return False
        absolute = re.match(rb"http://([^/]*)(.*)", line[1])
        where = absolute[1] if absolute else re.search(rb"(?i)^host:\s*(\S+)", head, re.MULTILINE)[1]
        with self.reach(*self.split(where)) as server, server.makefile("rb") as reply:
            server.sendall(head.replace(line[1], absolute[2], 1) if absolute else head)
            length = 0
            while (field := reply.readline()).strip():
                self.request.sendall(field)
                if field.lower().startswith(b"content-length:"):
                    length = int(field.split(b":")[1])
            self.request.sendall(field + reply.read(length))
        return True

    def socks5(self):
        self.take(self.take(2)[1])
        self.request.sendall(b"\5\0")
        _, command, _, kind = self.take(4)
        if kind == 3:
            host = self.take(self.take(1)[0])
        else:
            size = 4 if kind == 1 else 16
            host = socket.inet_ntop(socket.AF_INET if size == 4 else socket.AF_INET6, self.take(size)).encode()
        port, = struct.unpack(">H", self.take(2))
        if command == 1:
            self.tunnel(host, port, b"\5\0\0\1" + bytes(6))
        elif command == 3:
            self.associate()
        elif command == 0xf0:  # Tor's RESOLVE
            self.request.sendall(b"\5\0\0\1" + socket.inet_aton(socket.gethostbyname(host.decode())) + bytes(2))

    def associate(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as inner:
            inner.bind(("127.0.0.1", 0))
            address, port = inner.getsockname()
            self.request.sendall(b"\5\0\0\1" + socket.inet_aton(address) + struct.pack(">H", port))
            inner.settimeout(2)
            data = inner.recv(65536)
            inner.sendto(data[10:], (socket.inet_ntoa(data[4:8]), struct.unpack(">H", data[8:10])[0]))
