"""What servers of DNS answer, and what cordon-proxy makes of it: they are strangers, too."""
import socket
import struct

from proxied import HASTY, World, inside, take
from test_proxy import echo
from tools import where

SITE, OTHER = "93.184.216.34", "93.184.216.35"


def record(owner, kind, data, ttl=30, class_=1):
    return owner + struct.pack(">HHIH", kind, class_, ttl, len(data)) + data


def answer(question, *records, flags=0x8180, count=None, number=None):
    head = struct.pack(">HHHHH", flags, 1, len(records) if count is None else count, 0, 0)
    return (question[:2] if number is None else number) + head + question[12:] + b"".join(records)


def address(text, kind):
    """A record of it, where it is of that kind."""
    packed = socket.inet_pton(socket.AF_INET6 if ":" in text else socket.AF_INET, text)
    return [record(b"\xc0\x0c", kind, packed)] if len(packed) == (16 if kind == 28 else 4) else []


def name(text):
    return b"".join(bytes([len(label)]) + label.encode() for label in text.split(".")) + b"\0"


def v4(text, **more):
    return lambda question, kind: [answer(question, *address(text, kind), **more)]


HOSTILE = {
    # as servers do, and it works
    "alias.example": (0, lambda q, kind: [answer(q, record(b"\xc0\x0c", 5, name("real.test")),
                                                 *([record(name("real.test"), 1, b"\x5d\xb8\xd8\x22")] if kind == 1 else []))]),
    "ages.example": (0, lambda q, kind: [answer(q, record(b"\xc0\x0c", 1, b"\x5d\xb8\xd8\x22", ttl=0xffffffff))]),
    "many.example": (0, lambda q, kind: [answer(q, *address(SITE, kind) * 80)]),
    "six-alone.example": (0, lambda q, kind: [answer(q, *address("2001:470::1", kind))]),
    # no address
    "circle.example": (0, lambda q, kind: [answer(q, record(b"\xc0\x0c", 5, b"\xc0\x0c"))]),
    "circles.example": (0, lambda q, kind: [answer(q, record(b"\xc0\x0c", 5, name("a.test")), record(name("a.test"), 5, b"\xc0\x0c"))]),
    "nothing.example": (0, lambda q, kind: [answer(q)]),
    "none.example": (3, lambda q, kind: [answer(q, flags=0x8183)]),
    "fails.example": (2, lambda q, kind: [answer(q, flags=0x8182)]),
    "refuses.example": (2, lambda q, kind: [answer(q, flags=0x8185)]),
    # addresses that are nobody's business, in any dress
    "mapped.example": (3, v4("::ffff:10.0.0.5")), "mixed.example": (3, lambda q, kind: [answer(q, *address(SITE, kind), *address("127.0.0.1", kind))]),
    "last.example": (3, lambda q, kind: [answer(q, *address(SITE, kind) * 15, *address("10.0.0.5", kind))]),
    "nat64.example": (3, v4("64:ff9b::a00:5")), "to4.example": (3, v4("2002:a00:5::1")), "any.example": (3, v4("0.0.0.0")),
    "link.example": (3, v4("fe80::1")), "metadata.example": (3, v4("169.254.169.254")), "pool.example": (3, v4("198.18.0.1")),
    # nothing that could be read
    "other-number.example": (2, v4(SITE, number=b"\0\0")), "short.example": (2, lambda q, kind: [answer(q)[:11]]),
    "counts.example": (2, v4(SITE, count=9)), "empty.example": (2, lambda q, kind: [b""]),
    "question.example": (2, v4(SITE, flags=0x0100)),
    "sizes.example": (2, lambda q, kind: [answer(q, record(b"\xc0\x0c", kind, b"\1\2\3"))]),
    "pointer.example": (2, lambda q, kind: [answer(q, record(b"\xff\xff", kind, b"\1\2\3\4"))]),
    "itself.example": (2, lambda q, kind: [answer(q, record(b"\xc0" + bytes([len(q)]), kind, b"\1\2\3\4"))]),
    "another-name.example": (2, lambda q, kind: [q[:2] + b"\x81\x80\0\1\0\1\0\0\0\0" + name("evil.example") + struct.pack(">HH", kind, 1)
                                                 + b"".join(address(SITE, kind))]),
}


@where("ip")
@inside
def test_hostile_answers():
    world = World(addresses=(SITE, "10.0.0.5"), program=HASTY)
    world.answers = {name: say for name, (_, say) in HOSTILE.items()}
    command = world.command(["**.example"])
    for each, (code, _) in HOSTILE.items():
        found = command.look_up(each)
        if each in ("circle.example", "circles.example", "nothing.example"):
            assert found == (0, []), each
        else:
            assert found[0] == code and bool(found[1]) == (code == 0), (each, found)
    assert command.look_up("localhost") == (0, ["127.0.0.1"])


@where("ip")
@inside
def test_an_answer_that_no_datagram_has_room_for():
    """Is asked for by TCP, at the next server if the first one does not do that."""
    world = World(addresses=(SITE, OTHER))
    world.serve(OTHER, 443, echo)
    world.answers["big.example"] = lambda question, kind: [answer(question, flags=0x8380)]
    asked = []

    def by_tcp(client):
        length = struct.unpack(">H", take(client, 2))[0]
        question = take(client, length)
        kind = struct.unpack(">H", question[-4:-2])[0]
        asked.append(kind)
        message = answer(question, record(b"\xc0\x0c", 5, name("x." * 90 + "test")), *address(OTHER, kind) * 40)
        for part in (struct.pack(">H", len(message)) + message[:7], message[7:300], message[300:]):
            client.sendall(part)
        assert client.recv(9) == b""

    command = world.command(["big.example"])
    assert command.look_up("big.example") == (2, [])  # nobody is there
    world.serve("127.0.0.1", 53, by_tcp)
    client = command.connect("big.example")
    client.sendall(b"\0")
    assert client.recv(9) == b"\0" and sorted(asked) == [1, 28]
