"""Run in a network that is proxied: so many malformed messages of each kind to the proxy, each a good one with something
wrong. The same seed makes the same ones. What they are answered with is not looked at, beyond that there is an end.

    network_malformed.py COUNT     says "ready" on stdout after a tenth, and after all; goes on for each line of stdin
"""
import random
import select
import socket
import struct
import sys
import urllib.request

PROXY = ("127.0.0.1", 1008)
AT_ONCE = 64
ODD = [b"", b"\0", b"\r", b"\n", b"\r\n", b"\r\n\r\n", b" ", b"\t", b":", b"/", b"@", b"%00", b"\xff", b"\xc0\x0c", b"0x", b"-1", b"0",
       b"99999999999999999999", b"A" * 300, b"." * 70, b"a." * 40, b"Host: evil.test\r\n", b"Transfer-Encoding: chunked\r\n",
       b"Content-Length: 5\r\n", b"[::1]", b"HTTP/1.1", b"HTTP/9.9", b"\x16\3\1", b"\5\1\0"]


def question(name, kind=1, flags=0x100, counts=(1, 0, 0, 0), more=b""):
    labels = b"".join(bytes([len(label)]) + label for label in name.split(b".") if label)
    return struct.pack(">HHHHHH", 7, flags, *counts) + labels + struct.pack(">BHH", 0, kind, 1) + more


def hello(name):
    def part(size, data):
        return len(data).to_bytes(size, "big") + data

    names = struct.pack(">H", 0) + part(2, part(2, b"\0" + part(2, name)))
    body = b"\3\3" + b"r" * 32 + part(1, b"s" * 8) + part(2, b"\x13\1\xc0\x2f") + part(1, b"\0") + part(2, names + b"\0\x0b\0\2\1\0")
    return b"\x16\3\1" + part(2, b"\1" + part(3, body))


HTTP = [b"GET http://good.test/x HTTP/1.1\r\nHost: good.test\r\nConnection: close\r\n\r\n",
        b"CONNECT good.test:443 HTTP/1.1\r\nHost: good.test:443\r\n\r\n", b"GET http://evil.test/ HTTP/1.0\r\n\r\n",
        b"POST http://evil.test/x HTTP/1.1\r\nHost: evil.test\r\nContent-Length: 3\r\n\r\nabc",
        b"POST http://evil.test/x HTTP/1.1\r\nHost: evil.test\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"]
SOCKS = [b"\5\1\0" + b"\5\1\0\3\x09evil.test\0\x50", b"\5\2\0\2" + b"\5\1\0\1\x0b\0\0\2\0\x50", b"\5\1\0" + b"\5\3\0\4" + b"\0" * 18,
         b"\4\1\0\x50\x0b\0\0\2x\0", b"\5\1\2" + b"\1\1x\1y"]
TLS = [hello(b"good.test"), hello(b"evil.test"), b"GET / HTTP/1.1\r\nHost: good.test\r\n\r\n"]
DNS = [question(b"evil.test"), question(b"good.test"), question(b"a.b.c.d.e.f.g.evil.test", 28), question(b"2.0.18.198.in-addr.arpa", 12),
       question(b"evil.test", more=b"\0" + struct.pack(">HHIH", 41, 1232, 0, 12) + b"\0\x08\0\x08\0\1\x20\0\x0b\0\0\2", counts=(1, 0, 0, 1)),
       question(b"evil.test")[:12] + b"\xc0\x0c\0\1\0\1", question(b"evil.test", flags=0x8180, counts=(1, 1, 0, 0)),
       question(b".".join([b"a" * 63] * 5)), question(b".".join([b"a"] * 4096))[:9000]]


def broken(rng, good):
    data = bytearray(rng.choice(good))
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(data) + 1)
        way = rng.randrange(5)
        if way == 0 and data:
            data[at % len(data)] = rng.choice((0, 0xff, 0xc0, 0x3f, rng.randrange(256)))
        elif way == 1:
            data[at:at] = rng.choice(ODD)
        elif way == 2:
            del data[at:at + rng.randint(1, 9)]
        elif way == 3:
            del data[at:]
        else:
            data[at:at] = data[:rng.randrange(len(data) + 1)]
    return bytes(data[:60000])


def streams(address, messages):
    """Each in a connection of its own, so many at a time; until the other side has ended it."""
    open_ones, poll, messages = {}, select.poll(), iter(messages)
    left = True
    while left or open_ones:
        while left and len(open_ones) < AT_ONCE:
            data = next(messages, None)
            left = data is not None
            if left:
                sock = socket.socket()
                try:
                    sock.connect(address)
                    sock.sendall(data)
                    sock.shutdown(socket.SHUT_WR)
                    open_ones[sock.fileno()] = sock
                    poll.register(sock, select.POLLIN)
                except OSError:  # refused at once
                    sock.close()
        ready = poll.poll(20000) if open_ones else []
        assert ready or not open_ones, f"{len(open_ones)} connections to {address} have no end"
        for fd, _ in ready:
            try:
                more = open_ones[fd].recv(65536)
            except OSError:
                more = b""
            if not more:
                poll.unregister(fd)
                open_ones.pop(fd).close()


def datagrams(messages):
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.connect(("127.0.0.1", 53))
    sock.setblocking(False)
    for number, data in enumerate(messages):
        sock.send(data[:4000])
        while number % 32 == 31 and select.select([sock], [], [], 0.002)[0]:
            sock.recv(4096)


def together(messages, size):
    """DNS by TCP: many in one connection, so that one that is no message takes others with it."""
    messages = [struct.pack(">H", len(data)) + data for data in messages]
    return [b"".join(messages[at:at + size]) for at in range(0, len(messages), size)]


def play(rng, count, good):
    make = lambda kinds: (broken(rng, kinds) for _ in range(count))  # noqa: E731
    datagrams(make(DNS))
    streams(("8.8.8.8", 53), together(make(DNS), 20))
    streams(PROXY, make(HTTP))
    streams(PROXY, make(SOCKS))
    streams((good, 443), make(TLS))


def main():
    count, rng = int(sys.argv[1]), random.Random(13)
    good = socket.gethostbyname("good.test")
    for part in (count // 10, count):
        play(rng, part, good)
        print("ready", urllib.request.urlopen("http://good.test/still").status, flush=True)
        sys.stdin.readline()


main()
