"""Every ceiling of src/proxy/limits.h acts, and says its name. Heads of HTTP are in test_proxy.py, how many names there may
be in tests/unit/proxy/test_names.c."""
import pathlib
import select
import socket
import threading

import proxied
from proxied import DENIED, FAILED, HASTY, MORE, SILENCE, World, dns_query, inside, is_reset, read_all, take
from test_proxy import echo, head_of, hello
from tools import where

SITE, OTHER, FULL = "93.184.216.34", "93.184.216.35", "93.184.216.36"
NAMES = {"site.example": [SITE], "full.example": [FULL], "many.example": [f"93.184.217.{i}" for i in range(8)],
         "second.example": [FULL, OTHER], "silent.example": SILENCE}


def hasty_world():
    world = World(NAMES, addresses=(SITE, OTHER, FULL, *NAMES["many.example"]), program=HASTY)
    for address in (SITE, OTHER):
        world.serve(address, 443, echo)
    world.full = [fill(address) for address in (FULL, *NAMES["many.example"])]
    return world


def fill(address):
    """A server that takes no more connections: packets of new ones are not answered."""
    server = socket.socket()
    server.bind((address, 443))
    server.listen(0)
    client = socket.create_connection((address, 443))
    return server, client


@where("ip")
@inside
def test_waits_for_names():
    world = hasty_world()
    command = world.command(["silent.example"], port=1080)
    assert command.look_up("silent.example") == (2, [])
    assert not command.has_fact()
    client = command.explicit()
    client.sendall(b"CONNECT silent.example:443 HTTP/1.1\r\nHost: silent.example:443\r\n\r\n")
    assert b"502" in head_of(client)
    fact = command.fact()
    assert (fact.kind, fact.host, fact.port, fact.reason) == (FAILED, "silent.example", 443, "the host's resolver gives no answer")


@where("ip")
@inside
def test_waits_to_connect():
    command = hasty_world().command(["*"])
    client = command.connect("second.example")  # the next address after a while
    client.sendall(b"\0")
    assert client.recv(9) == b"\0"
    clients = [command.connect(name) for name in ("many.example", "full.example")]
    for client, name in zip(clients, ("many.example", "full.example")):  # all addresses together have no more time than one
        fact = command.fact()
        assert (fact.kind, fact.host) == (FAILED, name) and "10 s, which is the limit" in fact.reason
        assert is_reset(client)


@where("ip")
@inside
def test_waits_for_the_host_s_own_proxy():
    """Also where the address that took the connection is not the last one."""
    world = World({"gate.example": [SITE, OTHER]}, env={"https_proxy": "http://gate.example:3128"}, program=HASTY)
    command = world.command(["far.example"])
    assert command.is_refused("far.example")
    assert command.fact().reason == "the host's own proxy cannot be reached"
    world.serve(SITE, 3128, echo)
    assert command.is_refused("far.example")  # the echo of CONNECT is no reply
    assert command.fact().reason == "the host's own proxy refuses it"
    world.serve(OTHER, 3128, read_all)
    world.names["gate.example"] = [OTHER, SITE]
    assert command.is_refused("far.example")
    assert "10 s, which is the limit" in command.fact().reason


@where("ip")
@inside
def test_waits_for_first_bytes():
    world = hasty_world()
    command = world.command(["site.example"])
    address = command.look_up("site.example")[1][0]
    with world.stopped():
        clients = [command.connect(address) for _ in range(3)]
        for client, part in zip(clients, (b"\x16\3\1", hello("site.example")[:40], b"GET / HTTP/1.1\r\nHost: si")):
            client.sendall(part)
    assert all(is_reset(client) for client in clients)
    assert "30 s, which is the limit" in command.fact().reason and not command.has_fact()


@where("ip")
@inside
def test_waits_of_clients_that_know_of_it():
    world = hasty_world()
    command = world.command(["site.example"], port=1080)

    def says(*parts):
        with world.stopped():
            client = command.explicit()
            for part in parts:
                client.sendall(part)
        return client

    assert is_reset(says()) and not command.has_fact()
    client = says(b"CONNECT site.example:443 HT")
    head, _, body = read_all(client).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 408 ") and b"10 s, which is the limit" in body
    fact = command.fact()
    assert (fact.host, fact.port) == ("the proxy", 1080) and "10 s" in fact.reason
    client = says(b"\5\1\0\5\1\0\3")
    assert take(client, 12)[:4] == b"\5\0\5\1"

    client = says(b"CONNECT other.example:443 HTTP/1.1\r\nHost: other.example:443\r\n\r\n")  # it has its refusal, and stays
    assert b"403" in read_all(client)
    poll = select.poll()
    poll.register(client, 0)
    assert poll.poll(60000)  # a reset


@where("ip")
@inside
def test_waits_for_anything():
    world = hasty_world()
    command = world.command(["site.example"])
    address = command.look_up("site.example")[1][0]
    with world.stopped():
        client = command.connect(address)
        client.sendall(b"\0")
    assert client.recv(9) == b"\0"
    assert is_reset(client)
    assert "nothing was said on it for an hour, which is the limit" in command.fact().reason
    command = world.command([], port=53)
    with world.stopped():
        stream = command.connect("8.8.8.8")
        stream.sendall(b"\0")
    assert is_reset(stream)


@where("ip")
@inside
def test_names_and_look_ups():
    world = World({**{f"n{i}.example": [SITE] for i in range(3000)}, "silent.example": SILENCE}, options="options timeout:10\n")
    command = world.command(["**.example"])
    answered = 0
    while command.look_up(f"n{answered}.example")[0] == 0:
        answered += 1
    assert answered >= 512
    assert "32 different names a second" in command.fact().reason

    command = world.command(["silent.example"], port=53)
    asker = command.connect("8.8.8.8")
    for number in range(257):
        query = dns_query("silent.example", number=number)
        asker.sendall(len(query).to_bytes(2, "big") + query)
    assert take(asker, 6)[2:] == b"\1\0\x81\x82"  # the last one, and at once
    fact = command.fact()
    assert fact.host == "silent.example" and "256 look-ups" in fact.reason


@where("ip")
@inside
def test_facts():
    command = World(NAMES).command([])
    for i in range(100):
        assert command.look_up(f"secret{i}.test") == (3, [])
    facts = command.end()
    assert len([fact for fact in facts if fact.kind == DENIED]) == 64
    assert sum(fact.count for fact in facts if fact.kind == MORE) == 36


@where("ip")
@inside
def test_failures_leave_room_for_refusals():
    command = World(NAMES).command(["site.example"], port=1080)
    for port in range(1, 41):
        client = command.explicit()
        client.sendall(b"CONNECT site.example:%d HTTP/1.1\r\nHost: site.example:%d\r\n\r\n" % (port, port))
        assert b"502" in head_of(client)
    for i in range(32):
        assert command.look_up(f"secret{i}.test") == (3, [])
    facts = command.end()
    assert [fact.kind for fact in facts] == [FAILED] * 32 + [DENIED] * 32
    assert {fact.reason for fact in facts[:32]} == {"the server refuses the connection"}


@where("ip")
@inside
def test_connections():
    world = World(NAMES)
    world.serve(SITE, 443, echo)
    command = world.command(["site.example"])
    address = command.look_up("site.example")[1][0]
    clients = [command.connect(address) for _ in range(1024)]
    clients[-1].sendall(b"\0")
    assert clients[-1].recv(9) == b"\0"
    assert command.is_refused(address)
    assert "1024 connections" in command.fact().reason
    assert command.end() == []
    assert is_reset(clients[0])

    command = world.command([], port=53)
    streams = [command.connect("8.8.8.8") for _ in range(32)]
    query = dns_query("localhost")
    streams[-1].sendall(len(query).to_bytes(2, "big") + query)
    assert take(streams[-1], 3)
    assert command.is_refused("8.8.8.8")
    assert "32 connections of the command to the resolver" in command.fact().reason


@where("ip")
@inside
def test_what_nobody_reads_is_not_taken():
    world, sent, full = World(NAMES), [], threading.Event()

    def pours(client):
        assert client.recv(9)
        client.setblocking(False)
        while select.select([], [client], [], 0.3)[1]:  # who waits so long waits for the reader
            sent.append(client.send(bytes(1 << 20)))
        full.set()

    world.serve(SITE, 443, pours)
    command = world.command(["site.example"])
    client = command.connect("site.example")
    client.sendall(b"\0")
    assert full.wait(proxied.WAIT)
    kernel = sum(int(pathlib.Path(f"/proc/sys/net/ipv4/tcp_{which}").read_text().split()[2]) for which in ("rmem", "wmem"))
    assert sum(sent) < 2 * kernel + (1 << 20)  # of the two connections, and ours
    assert len(read_all(client)) == sum(sent)


@where("ip")
@inside
def test_questions():
    command = World(NAMES).command({"asks": True}, flags=1)
    address = command.look_up("site.example")[1][0]
    held = [command.connect(command.look_up(f"n{i}.example")[1][0]) for i in range(32)]
    for _ in held:
        question = command.fact()
    assert command.is_refused(address)
    assert "32 questions" in command.fact().reason
    command.answer(question.id, 0)
    assert is_reset(held[-1])
    assert command.fact().reason == "policy_denied"
    held.append(command.connect(address))
    assert command.fact().host == "site.example"


@where("ip")
@inside
def test_a_long_hello():
    world = World(NAMES)
    world.serve(SITE, 443, echo)
    command = world.command(["site.example"])
    body = b"\1" + (17000).to_bytes(3, "big") + bytes(17000)
    client = command.connect("site.example")
    client.sendall(b"".join(b"\x16\3\1\x10\0" + body[at:at + 4096] for at in range(0, 16384, 4096)))
    assert is_reset(client) and "16 KiB" in command.fact().reason
