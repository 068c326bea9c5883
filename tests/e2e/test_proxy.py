"""cordon-proxy by itself: what commands in networks of their own get from it, transparently, explicitly, or not at
all. How a network leads to it is the launcher's matter (test_network.py)."""
import contextlib
import json
import os
import socket
import ssl
import struct
import threading

import pytest

import proxied
from proxied import ASKED, DENIED, DONE, FAILED, WITHDRAWN, World, dns_query, inside, is_reset, read_all, take
from tools import where

SITE, OTHER = "93.184.216.34", "93.184.216.35"
NAMES = {"site.example": [SITE], "other.example": [OTHER], "inner.example": ["10.0.0.5"],
         "mixed.example": [SITE, "127.0.0.1"], "mixed6.example": [SITE, "::1"], "six.example": ["2001:470::1"], "nothing.example": []}


def echo(client):
    while data := client.recv(65536):
        client.sendall(data)


def hello(name):
    """What a client of TLS says first."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with pytest.raises(ssl.SSLWantReadError):
        context.wrap_bio(incoming, outgoing, server_hostname=name).do_handshake()
    return outgoing.read()


def head_of(client):
    data = b""
    while b"\r\n\r\n" not in data:
        block = client.recv(4096)
        if not block:
            break
        data += block
    return data


def web(client):
    """Answers with the head of each request that it got; bodies by their length."""
    while head := head_of(client):
        head, _, rest = head.partition(b"\r\n\r\n")
        length = [int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")]
        while length and len(rest) < length[0]:
            rest += client.recv(65536)
        body = head + b"|" + rest
        client.sendall(b"HTTP/1.1 200 OK\r\nKeep-Alive: max=7\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))


def get(client, text):
    """The whole reply of `web`."""
    client.sendall(text)
    data = head_of(client)
    head, _, rest = data.partition(b"\r\n\r\n")
    length = [int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")]
    while length and len(rest) < length[0]:
        block = client.recv(65536)
        assert block
        rest += block
    return head, rest


@where("ip")
@inside
def test_names():
    world = World(NAMES)
    command = world.command({"domains": {"**.example": "allow", "other.example": "deny"}})
    code, addresses = command.look_up("SITE.example")
    assert code == 0 and len(addresses) == 1 and addresses[0].startswith("198.18.")
    assert command.look_up("site.example", edns=True) == (0, addresses)  # one for the command's life
    assert command.look_up("six.example")[1] not in ([], addresses)
    for kind in (28, 65, 64, 16, 15):
        assert command.look_up("site.example", kind) == (0, [])
    assert command.look_up("nothing.example") == (0, [])
    assert command.look_up("missing.example") == (3, [])
    assert command.look_up("localhost") == (0, ["127.0.0.1"])
    assert command.look_up("localhost", 28) == (0, ["::1"])
    reverse = ".".join(reversed(addresses[0].split("."))) + ".in-addr.arpa"
    assert command.look_up(reverse, 12) == (0, [b"\x04site\x07example\0"])
    assert not command.has_fact()

    asked = len(world.asked)
    for name, reason, rule in (("secret.evil.test", "not_allowed", ""), ("other.example", "denied", "permission profile")):
        assert command.look_up(name) == (3, [])
        fact = command.fact()
        assert (fact.kind, fact.host, fact.port, fact.is_look_up, fact.reason) == (DENIED, name, 0, 1, reason)
        assert fact.rule == rule and fact.local_port
    for odd in ("a b.example", "é.example", "1.2.3.4"):
        assert command.look_up(odd) == (3, [])
        command.fact()
    assert len(world.asked) == asked  # nothing of it went anywhere

    for name in ("inner.example", "mixed.example", "mixed6.example"):  # one address that is not public refuses the name
        assert command.look_up(name) == (3, [])
        assert command.fact().reason == "not_allowed_local"
    assert command.look_up("secret.evil.test") == (3, []) and not command.has_fact()  # told once
    assert command.end() == []


@where("ip")
@inside
def test_dns_by_tcp_and_in_pieces():
    command = World(NAMES).command(["site.example"], port=53)
    client = command.connect("8.8.8.8")
    query = dns_query("site.example")
    message = struct.pack(">H", len(query)) + query
    for byte in message:
        client.sendall(bytes([byte]))
    length = struct.unpack(">H", take(client, 2))[0]
    assert proxied.dns_read(take(client, length))[1][0].startswith("198.18.")
    client.sendall(message * 2)
    take(client, 2 * (length + 2))
    client.sendall(b"\xff\xff" + bytes(9000))
    assert is_reset(client)


@where("ip")
@inside
def test_broken_questions():
    command = World(NAMES).command(["site.example"])
    good = dns_query("site.example")
    for message, code in ((good[:-1], 1), (good + b"x", 1), (good[:4] + b"\0\2" + good[6:], 1),
                          (b"\0\1\x28\0" + good[4:], 4), (good[:-1] + b"\3", 5),
                          (good[:12] + b"\xc0\x0c\0\1\0\1", 1), (b"\0\1\1\0\0\1" + bytes(6) + b"\x3f" + b"a" * 9, 1)):
        assert command.ask(message)[3] & 15 == code
    asker = command.socket(kind=socket.SOCK_DGRAM)
    asker.connect(("127.0.0.1", 53))
    asker.send(b"\0\1\x80")
    asker.send(b"\0\1\x81\x80" + good[4:])  # an answer is not answered
    asker.send(good)
    assert asker.recv(4096)[:2] == good[:2]


@where("ip")
@inside
def test_by_name_and_number():
    world = World(NAMES, addresses=(SITE, OTHER, "10.0.0.5", "2001:470::1"))
    for address in (SITE, "2001:470::1", "10.0.0.5"):
        world.serve(address, 443, echo)
    command = world.command({"domains": {"site.example:443": "allow", "six.example": "allow", "10.0.0.5": "allow"}},
                            flags=2)
    for place in ("site.example", "six.example", "10.0.0.5"):
        client = command.connect(place)
        client.sendall(b"\0hello")
        assert client.recv(99) == b"\0hello"
        if place != "10.0.0.5":
            fact = command.fact()
            assert (fact.kind, fact.host, fact.port, fact.is_look_up) == (DONE, place, 0, 1)
        fact = command.fact()
        assert (fact.kind, fact.host, fact.protocol) == (DONE, place, "https")
        assert fact.local_port == client.getsockname()[1]
        client.shutdown(socket.SHUT_WR)
        assert read_all(client) == b""
    for place, reason in ((SITE, "not_allowed"), ("127.0.0.2", None), ("169.254.169.254", "not_allowed_local"),
                          ("2001:470::1", "not_allowed"), ("::ffff:10.0.0.6", "not_allowed_local"),
                          ("198.19.3.4", "no name has this address")):
        if reason is None:  # there, such an address is the network's own
            command.connect(place)
        else:
            assert command.is_refused(place)
            fact = command.fact()
            assert (fact.kind, fact.reason, fact.port) == (DENIED, reason, 443)
            assert fact.meant == socket.inet_pton(socket.AF_INET6, place if ":" in place else "::ffff:" + place)
    assert not command.has_fact()


@where("ip")
@inside
def test_many_bytes_and_half_ends():
    world, size = World(NAMES), 48 << 20
    block = bytes(range(256)) * 256

    def swallow(client):
        got = read_all(client)
        client.sendall(b"%d %d" % (len(got), got == block * (size // len(block))))

    def pour(client):
        client.recv(1)
        for _ in range(size // len(block)):
            client.sendall(block)

    world.serve(SITE, 443, swallow)
    world.serve(OTHER, 443, pour)
    command = world.command(["site.example", "other.example"])
    client = command.connect("site.example")
    for _ in range(size // len(block)):
        client.sendall(block)
    client.shutdown(socket.SHUT_WR)
    assert read_all(client) == b"%d 1" % size
    client = command.connect("other.example")
    client.sendall(b"\0")
    assert read_all(client) == block * (size // len(block))


@where("ip")
@inside
def test_urgent_bytes():
    world = World(NAMES)
    world.serve(SITE, 443, echo)
    command = world.command(["site.example"])
    client = command.connect("site.example")
    client.sendall(b"\0")
    assert client.recv(9) == b"\0"
    client.send(b"!", socket.MSG_OOB)
    client.sendall(b"after")
    assert take(client, 6) == b"!after"


@where("ip")
@inside
def test_a_reset_is_passed_on():
    world, ended = World(NAMES), threading.Event()

    def server(client):
        client.recv(9)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def waits(client):
        try:
            while client.recv(9):
                client.sendall(b"here")
        except ConnectionResetError:
            ended.set()

    world.serve(SITE, 443, server)
    world.serve(OTHER, 443, waits)
    command = world.command(["site.example", "other.example"])
    client = command.connect("site.example")
    client.sendall(b"\0")
    with pytest.raises(ConnectionResetError):
        client.recv(9)
    client = command.connect("other.example")
    client.sendall(b"\0")
    assert client.recv(9) == b"here"
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()
    assert ended.wait(proxied.WAIT)


@where("ip")
@inside
def test_names_in_tls():
    world = World(NAMES)
    world.serve(SITE, 443, echo)
    command = world.command({"domains": {"site.example": "allow", "other.example": "allow", SITE: "allow",
                                         "bad.example": "deny"}})
    for place, name in (("site.example", "site.example"), ("site.example", None), ("site.example", "other.example"),
                        (SITE, "whoever.example")):
        client, said = command.connect(place), hello(name)
        for part in (said[:1], said[1:40], said[40:]):  # nothing goes on before it is whole
            client.sendall(part)
        assert take(client, len(said)) == said
    assert not command.has_fact()
    for place, name in (("site.example", "evil.example"), (SITE, "bad.example")):
        client = command.connect(place)
        client.sendall(hello(name))
        assert is_reset(client)
        assert command.fact().host == name
    for broken in (b"\x16\x03\x01\x00\x05\x01\0\0\x01\0" + bytes(99), b"\x16\x13" + hello("evil.example")[2:],
                   b"\x16\x03" + bytes(2)):
        client = command.connect("site.example")
        client.sendall(broken)
        with contextlib.suppress(OSError):  # it may be refused already
            client.shutdown(socket.SHUT_WR)
        assert is_reset(client), broken
    assert "TLS" in command.fact().reason


@where("ip")
@inside
def test_who_speaks_first():
    world = World(NAMES)

    def greets(client):
        client.sendall(b"220 welcome\r\n")
        echo(client)

    world.serve(SITE, 25, greets)
    command = world.command(["site.example"], port=25)
    client = command.connect("site.example")
    assert client.recv(99) == b"220 welcome\r\n"
    for text in (b"EHLO", b" there\r\n", hello("mail.example")):  # what would look like the start of a request
        client.sendall(text)
        assert take(client, len(text)) == text


@where("ip")
@inside
def test_hosts_in_http():
    world = World(NAMES)
    world.serve(SITE, 80, web)
    command = world.command(["site.example", "friend.example"], port=80)
    client = command.connect("site.example")
    for request in (b"GET /a HTTP/1.1\r\nHost: site.example\r\n\r\n", b"GET /b HTTP/1.1\r\nhost: SITE.example:80\r\n\r\n",
                    b"POST /c HTTP/1.1\r\nHost: site.example\r\nContent-Length: 5\r\n\r\n12345",
                    b"GET http://site.example/ HTTP/1.1\r\nHost: friend.example\r\n\r\n"):
        head, body = get(client, request)
        assert head.startswith(b"HTTP/1.1 200") and body.replace(b"|", b"\r\n\r\n") == request
    client.sendall(b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n")
    assert is_reset(client)
    assert command.fact().host == "evil.example"

    # as the first request it hears why
    refused = {b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n": b"403",
               b"GET http://evil.example/ HTTP/1.1\r\nHost: site.example\r\n\r\n": b"403",
               b"CONNECT evil.example:443 HTTP/1.1\r\nHost: site.example\r\n\r\n": b"400",
               b"GET / HTTP/1.1\r\nHost: site.example\r\nHost: evil.example\r\n\r\n": b"400",
               b"GET / HTTP/1.1\r\nHost : site.example\r\n\r\n": b"400",
               b"GET / HTTP/1.1\r\nHost: site.example\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n": b"400",
               b"GET / HTTP/1.1\r\nHost: site.example\r\nX: a\r\n folded\r\n\r\n": b"400",
               b"GET / HTTP/1.1\r\n\r\n": b"400", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n": b"400",
               b"GET / HTTP/1.1\r\nHost: site.example\r\nConnection: host\r\n\r\n": b"400",
               b"GET / HTTP/1.1\r\nHost: site.example\r\nConnection: x, content-length\r\nContent-Length: 9\r\n\r\n": b"400",
               b"\r\nGET / HTTP/1.1\r\nHost: site.example\r\n\r\n": b"400",
               b"GET / HTTP/1.1\r\nHost: site.example\r\nX: %s\r\n\r\n" % (b"x" * 9000): b"400"}
    for request, status in refused.items():
        client = command.connect("site.example")
        client.sendall(request)
        answer = read_all(client)
        assert answer.split(b" ")[1:2] == [status], (request, answer)
    for request in (b"\0\1\2", b"hello\r\n"):  # not HTTP at all
        client = command.connect("site.example")
        client.sendall(request)
        assert is_reset(client), request


@where("ip")
@inside
def test_switching_protocols():
    world = World(NAMES)

    def socket_server(client):
        head = head_of(client)
        if b"pgrade" not in head:
            client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno")
            return web(client)
        client.sendall(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\nhi")
        echo(client)

    def refuses(client):
        head_of(client)
        client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno")
        web(client)

    world.serve(SITE, 80, socket_server)
    world.serve(OTHER, 80, refuses)
    world.serve("10.0.0.5", 80, head_of)
    command = world.command(["site.example", "other.example", "10.0.0.5"], port=80)
    upgrade = b"GET / HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n"
    client = command.connect("site.example")
    client.sendall(upgrade % (b"site.example", b"websocket") + b"\x81\x00")
    got = b""
    while not got.endswith(b"hi\x81\x00"):
        got += client.recv(999)
    client = command.connect("10.0.0.5")  # ends without a reply
    client.sendall(upgrade % (b"10.0.0.5", b"websocket") + b"x")
    assert read_all(client) == b""
    with pytest.raises((BrokenPipeError, ConnectionResetError)):
        while True:
            client.sendall(b"x")
    client = command.connect("site.example")  # h2c is left out, so the server does not switch
    assert get(client, upgrade % (b"site.example", b"h2c"))[1] == b"no"
    client = command.connect("other.example")  # what follows a no is HTTP again
    client.sendall(upgrade % (b"other.example", b"websocket") + b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n")
    with pytest.raises(ConnectionResetError):
        assert b"evil" not in read_all(client)
        raise ConnectionResetError
    assert command.fact().host == "evil.example"


@where("ip")
@inside
def test_limited_mode():
    world = World(NAMES)
    world.serve(SITE, 80, web)
    world.serve(SITE, 443, echo)
    policy = {"mode": "limited", "domains": {"site.example": "allow"}}
    command = world.command(policy, port=80)
    assert b"200" in get(command.connect("site.example"), b"HEAD / HTTP/1.1\r\nHost: site.example\r\n\r\n")[0]
    client = command.connect("site.example")
    client.sendall(b"POST / HTTP/1.1\r\nHost: site.example\r\nContent-Length: 1\r\n\r\nx")
    assert b"x-proxy-error: blocked-by-method-policy" in read_all(client)
    assert command.fact().reason == "method_not_allowed"
    client = command.connect("site.example")
    client.sendall(hello("site.example"))
    assert is_reset(client) and command.fact().reason == "mitm_required"
    command = world.command(policy)
    assert command.is_refused("site.example") and command.fact().reason == "mitm_required"


def reply_of(client, request):
    client.sendall(request)
    head, _, body = read_all(client).partition(b"\r\n\r\n")
    return head.decode(), body


@where("ip")
@inside
def test_explicit_http():
    world = World(NAMES)
    world.serve(SITE, 8080, web)
    world.serve(SITE, 443, echo)
    command = world.command({"domains": {"site.example": "allow", "gone.example": "allow", "inner.example": "allow",
                                         "bad.example": "deny"}}, port=3128)
    head, body = reply_of(command.explicit(), b"POST http://site.example:8080/x?y HTTP/1.1\r\nHost: site.example:8080\r\n"
                          b"Proxy-Authorization: Basic secret\r\nConnection: X-Hop\r\nX-Hop: 1\r\nX-End: 2\r\n"
                          b"Content-Length: 3\r\n\r\nabcGET http://evil.example/ HTTP/1.1\r\n\r\n")
    assert head.startswith("HTTP/1.1 200") and "Connection: close" in head and "Keep-Alive" not in head
    got, _, rest = body.partition(b"|")
    assert rest == b"abc" and got.split(b"\r\n") == [b"POST /x?y HTTP/1.1", b"Host: site.example:8080", b"X-End: 2",
                                                    b"Content-Length: 3", b"Connection: close"]
    body = reply_of(command.explicit(), b"GET http://site.example:8080/ HTTP/1.0\r\n\r\n")[1]
    assert body.startswith(b"GET / HTTP/1.0\r\nHost: site.example:8080\r\n")  # or the reply could come in chunks
    client = command.explicit()
    client.sendall(b"CONNECT site.example:443 HTTP/1.1\r\nHost: site.example:443\r\n\r\n")
    assert head_of(client).startswith(b"HTTP/1.1 200")
    said = hello("site.example")
    client.sendall(said)
    assert take(client, len(said)) == said
    client = command.explicit()  # what is tunnelled is looked at, too
    client.sendall(b"CONNECT site.example:443 HTTP/1.1\r\nHost: site.example:443\r\n\r\n" + hello("evil.example"))
    assert head_of(client).startswith(b"HTTP/1.1 200") and is_reset(client)
    assert command.fact().host == "evil.example"
    for target, status, header, reason in (
            ("nobody.example:443", 403, "blocked-by-allowlist", "not_allowed"),
            ("bad.example:443", 403, "blocked-by-denylist", "denied"),
            ("inner.example:443", 403, "blocked-by-allowlist", "not_allowed_local"),
            ("127.0.0.1:22", 403, "blocked-by-allowlist", "not_allowed_local"),
            ("localhost:22", 403, "blocked-by-allowlist", "not_allowed_local"),
            ("[::1]:22", 403, "blocked-by-allowlist", "not_allowed_local")):
        head, body = reply_of(command.explicit(), f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
        answer = json.loads(body)
        assert head.startswith(f"HTTP/1.1 {status} ") and f"x-proxy-error: {header}" in head
        assert (answer["reason"], answer["decision"], answer["protocol"]) == (reason, "deny", "https")
        assert answer["host"] in target and answer["port"] == int(target.split(":")[-1])
        assert command.fact().reason == reason
        if reason == "not_allowed":
            assert "--allow-host nobody.example" in answer["message"]
    for request, status in ((b"CONNECT gone.example:443 HTTP/1.1\r\nHost: x\r\n\r\n", "502"),
                            (b"CONNECT site.example:9 HTTP/1.1\r\nHost: x\r\n\r\n", "502"),
                            (b"GET http://site.example/ HTTP/1.1\r\nHost: other.example\r\n\r\n", "400"),
                            (b"GET / HTTP/1.1\r\nHost: site.example\r\n\r\n", "400"),
                            (b"CONNECT site.example HTTP/1.1\r\nHost: x\r\n\r\n", "400"),
                            (b"CONNECT 0177.0.0.1:22 HTTP/1.1\r\nHost: x\r\n\r\n", "400"),
                            (b"GET http://user@site.example/ HTTP/1.1\r\nHost: site.example\r\n\r\n", "400"),
                            (b"GET https://site.example/ HTTP/1.1\r\nHost: site.example\r\n\r\n", "400"),
                            (b"nonsense\r\n\r\n", "400"), (b"X" * 9000, "400"),
                            (b"\4\1\0\x50\0\0\0\1x\0site.example\0", "400"), (hello("site.example"), "400"),
                            (b"GET http://site.example/ HTTP/1.0\n\n", "400")):
        assert reply_of(command.explicit(), request)[0].split(" ")[1:2] == [status], request


def socks(client, host, port, command=1):
    client.sendall(b"\5\1\0")
    assert client.recv(2) == b"\5\0"
    client.sendall(struct.pack(">BBBBB", 5, command, 0, 3, len(host)) + host + struct.pack(">H", port))
    return take(client, 10)[1]


@where("ip")
@inside
def test_explicit_socks():
    world = World(NAMES)
    world.serve(SITE, 5432, echo)
    command = world.command({"domains": {"site.example": "allow", "gone.example": "allow"}}, port=1080)
    client = command.explicit()
    assert socks(client, b"site.example", 5432) == 0
    client.sendall(b"\0\0\0\x08")
    assert client.recv(99) == b"\0\0\0\x08"
    for host, port, code in ((b"evil.example", 443, 2), (b"127.0.0.1", 22, 2), (b"gone.example", 22, 4),
                             (b"site.example", 9, 5), (b"site.example\0.evil", 22, 1), (b"0x7f.1", 22, 1)):
        assert socks(command.explicit(), host, port) == code, host
    for kind, host, port in ((2, b"site.example", 5432), (3, b"0.0.0.0", 0), (0xf0, b"site.example", 22)):
        assert socks(command.explicit(), host, port, command=kind) == 7
    client = command.explicit()
    client.sendall(b"\5\1\2")
    assert client.recv(2) == b"\5\xff"
    assert [(fact.kind, fact.host, fact.port, fact.protocol) for fact in command.end()] == [
        (DENIED, "evil.example", 443, "socks5_tcp"), (DENIED, "127.0.0.1", 22, "socks5_tcp"),
        (FAILED, "gone.example", 22, "socks5_tcp"), (FAILED, "site.example", 9, "socks5_tcp"),
        (DENIED, "the proxy", 1080, "socks5_tcp"),  # that name is none, ...
        (DENIED, "the proxy", 1080, "socks5_tcp"),  # nor that number
        (DENIED, "site.example", 5432, "socks5_tcp"), (DENIED, "the proxy", 1080, "socks5_udp"),
        (DENIED, "site.example", 22, "socks5_tcp"), (DENIED, "the proxy", 1080, "socks5_tcp")]


@where("ip")
@inside
def test_questions():
    world = World(NAMES)
    world.serve(SITE, 443, echo)
    world.serve(OTHER, 443, echo)
    command = world.command({"asks": True, "domains": {"bad.example": "deny"}}, flags=1)
    code, addresses = command.look_up("site.example")
    assert addresses and world.asked == []  # nothing has left before there is a yes
    clients = [command.connect(addresses[0]) for _ in range(3)]
    question = command.fact()
    assert (question.kind, question.host, question.port, question.protocol) == (ASKED, "site.example", 443, "https")
    clients[0].sendall(hello("site.example"))
    clients[2].close()
    assert not command.has_fact()  # one question for all
    command.answer(question.id, 1)
    assert clients[0].recv(1) == b"\x16"
    clients[1].sendall(b"\0")
    assert clients[1].recv(1) == b"\0"
    again = command.connect(addresses[0])
    again.sendall(b"\0")
    assert again.recv(1) == b"\0"
    assert not command.has_fact()  # it lasts

    client = command.connect("other.example")
    question = command.fact()
    command.answer(question.id, 0)
    assert is_reset(client)
    fact = command.fact()
    assert (fact.kind, fact.reason) == (DENIED, "policy_denied")
    assert command.is_refused("other.example") and not command.has_fact()

    client = command.connect("third.example")
    question = command.fact()
    client.close()
    fact = command.fact()
    assert (fact.kind, fact.id) == (WITHDRAWN, question.id)
    command.answer(question.id, 1)  # too late, and means nothing
    again = command.connect("third.example")
    assert command.fact().kind == ASKED

    client = command.connect("fourth.example")
    client.sendall(hello("fourth.example"))
    question = command.fact()
    client.close()  # though it has said something
    assert command.fact().kind == WITHDRAWN
    client = command.connect("fourth.example")
    client.sendall(b"\0data")
    assert command.fact().kind == ASKED
    client.shutdown(socket.SHUT_WR)  # who says that it has said all still waits
    assert command.look_up("bad.example") == (3, []) and command.fact().reason == "denied"
    assert not command.has_fact()


@where("ip")
@inside
def test_hosts_of_the_host():
    world = World(NAMES, hosts=f"# comment\n{SITE} listed.example  # more\n10.0.0.5\tinner\n", addresses=(SITE, "10.0.0.5"))
    world.serve(SITE, 443, echo)
    command = world.command(["listed.example", "inner"], flags=2)
    for place in ("listed.example", SITE):  # by name, and by the number that a program has read there
        client = command.connect(place)
        client.sendall(b"\0")
        assert client.recv(9) == b"\0"
        assert command.fact().host == "listed.example"
    assert command.look_up("inner") == (3, [])
    assert world.asked == []


@where("ip")
@inside
def test_a_port_of_the_host():
    world = World(NAMES)
    world.serve("127.0.0.1", 5432, echo)
    command = world.command({"host_ports": [5432]}, port=1080)
    client = command.explicit()
    assert socks(client, b"localhost", 5432) == 0
    client.sendall(b"\0")
    assert client.recv(9) == b"\0"
    assert socks(command.explicit(), b"localhost", 5433) == 2


@where("ip")
@inside
def test_its_end():
    world = World(NAMES)
    world.serve(SITE, 443, echo)
    one, two = world.command(["site.example"]), world.command(["site.example"])
    client = two.connect("site.example")
    assert one.end() == []
    with pytest.raises(ConnectionRefusedError):
        one.connect(SITE)
    world.control.close()
    client.sendall(b"\0")
    assert client.recv(9) == b"\0"  # commands that run are served to their end
    assert two.end() == []
    assert os.waitpid(world.proxy, 0)[1] == 0


@where("ip")
@inside
def test_what_it_keeps():
    world = World(NAMES)
    command = world.command(["site.example"])
    command.look_up("site.example")
    status = open(f"/proc/{world.proxy}/status").read()
    assert "NoNewPrivs:\t1" in status
    assert ("Seccomp:\t2" in status) == (b"__asan_init" not in proxied.PROXY.read_bytes())


@where("ip")
@inside
def test_the_proxy_of_the_host():
    heads = []

    def forwards(client):
        """CONNECT is followed by an echo; any other request gets a reply."""
        head = head_of(client)
        heads.append(head)
        if not head.startswith(b"CONNECT"):
            return client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
        if b"refused" in head:
            return client.sendall(b"HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n")
        if b"half" in head:
            client.sendall(b"HTTP/1.1 200 OK\r\nX: y\r\n")
            client.shutdown(socket.SHUT_WR)
            return client.recv(9)
        for byte in b"HTTP/1.1 103 Soon\r\n\r\nHTTP/1.1 200 OK\r\nX: y\r\n\r\nfirst":
            client.sendall(bytes([byte]))
        echo(client)

    world = World({**NAMES, "gate.example": ["10.0.0.5"]},
                  env={"https_proxy": "http://me:p%40ss@gate.example:3128", "HTTP_PROXY": "10.0.0.5:3128",
                       "no_proxy": "other.example, .test"})
    world.serve("10.0.0.5", 3128, forwards)
    world.serve(OTHER, 443, echo)
    names = ["far.example", "refused.example", "half.example", "other.example", "10.0.0.5"]
    command = world.command(names)
    client = command.connect("far.example")  # which nobody here can resolve
    assert "far.example" not in dict(world.asked)
    client.sendall(b"\0!")
    got = b""
    while not got.endswith(b"\0!"):
        got += client.recv(99)
    assert got == b"first\0!"
    assert heads.pop() == (b"CONNECT far.example:443 HTTP/1.1\r\nHost: far.example:443\r\n"
                           b"Proxy-Authorization: Basic bWU6cEBzcw==\r\n\r\n")
    for name in ("refused.example", "half.example"):
        assert command.is_refused(name) and heads.pop()
        assert (command.fact().host, command.has_fact()) == (name, False)
    client = command.connect("other.example")
    client.sendall(b"\0!")
    assert client.recv(9) == b"\0!" and not heads
    assert command.is_refused("evil.example".replace("evil.example", SITE)) and not heads

    command = world.command(names, port=80)
    head, body = get(command.connect("far.example"), b"GET /x HTTP/1.1\r\nHost: far.example\r\nProxy-Authorization: x\r\n\r\n")
    assert body == b"hi" and heads.pop() == b"GET http://far.example/x HTTP/1.1\r\nHost: far.example\r\n\r\n"
    head, body = reply_of(command.explicit(), b"GET http://far.example/?q HTTP/1.1\r\nHost: far.example\r\n\r\n")
    assert body == b"hi" and heads.pop().startswith(b"GET http://far.example/?q HTTP/1.1\r\nHost: far.example\r\n")

    command = world.command({"domains": {"far.example": "allow"}, "allow_upstream_proxy": False})
    assert command.look_up("far.example") == (3, [])


@where("ip")
@inside
def test_what_resolvers_try_is_not_told():
    """"search" in resolv.conf, as in clusters, and as usual."""
    world = World(NAMES, options="search a.cluster.test cluster.test\noptions ndots:5\n")
    command = world.command({"domains": {"site.example": "allow", "db.cluster.test": "allow"}})
    for name in ("site.example.a.cluster.test", "site.example.cluster.test"):
        assert command.look_up(name) == command.look_up(name, 28) == (3, [])
    assert command.look_up("site.example")[1]
    assert not command.has_fact()
    for name in ("evil.test.a.cluster.test", "evil.test.cluster.test", "evil.test"):
        assert command.look_up(name) == (3, [])
    assert command.fact().host == "evil.test" and not command.has_fact()
    for name in ("x.b.cluster.test.a.cluster.test", "x.b.cluster.test.cluster.test", "x.b.cluster.test"):
        assert command.look_up(name) == (3, [])
    assert command.fact().host == "x.b.cluster.test" and not command.has_fact()
    assert command.look_up("single.a.cluster.test") == (3, []) and command.fact().host == "single.a.cluster.test"
    for i in range(17):  # a program that means just those
        assert command.look_up(f"a.b{i}.cluster.test") == (3, [])
    assert [fact.host for fact in command.end()] == [f"a.b{i}.cluster.test" for i in range(17)]

    command = world.command({"asks": True}, flags=1)
    assert command.look_up("evil.test.a.cluster.test") == (3, [])
    assert command.look_up("evil.test")[1]  # that one can be asked about
    assert command.end() == []


@where("ip")
@inside
def test_what_resolvers_try_afterwards_is_not_told():
    command = World(NAMES, options="search corp.test\n").command([])
    for name in ("evil.test", "evil.test.corp.test", "other.corp.test", "other", os.uname().nodename):
        assert command.look_up(name) == command.look_up(name, 28) == (3, [])
    assert [fact.host for fact in command.end()] == ["evil.test", "other.corp.test"]
