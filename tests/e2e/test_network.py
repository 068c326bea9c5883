"""A network that is proxied, from the command to the server: programs that know of no proxy reach by name what they
may, and nothing else. What cordon-proxy does by itself is in test_proxy.py; the internet is the one of proxied.py."""
import json
import os
import select
import shutil
import signal

from proxied import World, inside
from tools import PYTHON

SITE, OTHER = "93.184.216.34", "93.184.216.35"
NAMES = {"site.example": [SITE], "other.example": [OTHER]}

URLLIB = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1]).read().decode())"
ASYNCIO = """if True:
    import asyncio, sys, urllib.parse
    async def main():
        host = urllib.parse.urlsplit(sys.argv[1]).hostname
        reader, writer = await asyncio.open_connection(host, 80)
        writer.write(f"GET / HTTP/1.1\\r\\nHost: {host}\\r\\nConnection: close\\r\\n\\r\\n".encode())
        print((await reader.read()).decode())
    asyncio.run(main())"""
FETCH = "fetch(process.argv[1]).then(r => r.text()).then(console.log).catch(e => { console.error(e); process.exit(1) })"
HTTP = """require("http").get(process.argv[1], r => r.pipe(process.stdout)).on("error", () => process.exit(1))"""
PERL = """use IO::Socket::INET; my ($h) = $ARGV[0] =~ m{//([^/]+)/};
    my $s = IO::Socket::INET->new(PeerAddr => $h, PeerPort => 80) or die;
    print $s "GET / HTTP/1.0\\r\\nHost: $h\\r\\n\\r\\n"; print <$s>; die unless $s->connected;"""
CLIENTS = [("curl", ["-sS"]), ("wget", ["-qO-", "--tries=1"]), ("python3", ["-c", URLLIB]), ("python3", ["-c", ASYNCIO]),
           ("node", ["-e", FETCH]), ("node", ["-e", HTTP]), ("perl", ["-e", PERL])]


def with_internet(test):
    """In namespaces of its own, with the internet there."""
    run = inside(lambda place: test(place, Internet()))

    def in_place(place):
        run(place)

    in_place.__name__, in_place.__doc__ = test.__name__, test.__doc__
    return in_place


class Internet(World):
    """That of World, with a server on port 80 that tells who it is. cordon starts its own proxy."""
    start = staticmethod(lambda control, env, program: None)

    def __init__(self):
        super().__init__(NAMES)
        for address in (SITE, OTHER):
            self.serve(address, 80, lambda client, address=address: self.greet(client, address))

    @staticmethod
    def greet(client, address):
        client.recv(65536)
        client.sendall(b"HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\nthis is %s" % (8 + len(address), address.encode()))


def run(place, *words, hosts=("site.example",), code=0):
    options = [option for host in hosts for option in ("--allow-host", host)]
    return place.json("run", "--json", *options, "--", *words, code=code)


def path_of(program):
    """PYTHON is one that commands see."""
    return PYTHON if program == "python3" else shutil.which(program)


@with_internet
def test_programs_reach_what_they_may_by_name(place, world):
    for program, words in CLIENTS:
        if not path_of(program):
            continue
        result = run(place, path_of(program), *words, "http://site.example/")
        assert f"this is {SITE}" in result["stdout"], (program, result["stderr"])
        assert result["denials"] == [], program
    assert {name for name, _ in world.asked} == {"site.example"}


@with_internet
def test_and_nothing_else(place, world):
    """The look-up of another name is not even made, and the program is named."""
    for program, words in CLIENTS:
        if not path_of(program):
            continue
        ran = place.run("--json", "--allow-host", "site.example", "--", path_of(program), *words, "http://other.example/")
        result = json.loads(ran.stdout)
        assert result["exit_code"], program
        denied = [(denial["operation"], denial["host"]) for denial in result["denials"]]
        assert ("connect", "other.example") in denied, (program, result["denials"])
    assert world.asked == []


BARE = """if True:
    import socket, sys
    site, other = sys.argv[1:]
    def tell(what, connect):
        try:
            print(what, connect() or "nothing")
        except OSError as error:
            print(what, "no")
    def get(client):
        client.sendall(b"GET / HTTP/1.0\\r\\n\\r\\n")
        return client.recv(1000)[-13:].decode()
    def plain(address):
        return get(socket.create_connection((address, 80), 20))
    def fast(address):
        client = socket.socket()
        client.sendto(b"GET / HTTP/1.0\\r\\n\\r\\n", socket.MSG_FASTOPEN, (address, 80))
        return client.recv(1000)[-13:].decode()
    def multipath(address):
        client = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
        client.connect((address, 80))
        return get(client)
    def datagram(address):
        client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        client.connect((address, 443))
    def unconnected(address):
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", (address, 444))
    for kind in plain, fast, multipath, datagram, unconnected:
        for address in site, other:
            tell(kind.__name__, lambda: kind(address))
    tell("metadata", lambda: plain("169.254.169.254"))
    tell("raw", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1))
    tell("netfilter", lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12))
    tell("squat", lambda: socket.create_server(("127.0.0.1", 1008)))
    own = socket.create_server(("127.0.0.1", 0))
    tell("own", lambda: socket.create_connection(own.getsockname()) and "server")"""


@with_internet
def test_by_number_it_is_the_same(place, world):
    """However a connection is made: a number is allowed as such, or not at all."""
    result = run(place, PYTHON, "-c", BARE, SITE, OTHER, hosts=[SITE])
    lines = result["stdout"].splitlines()
    assert lines == [line for kind in ("plain", "fast", "multipath") for line in (f"{kind} {SITE}", f"{kind} no")] + [
        "datagram no", "datagram no", "unconnected no", "unconnected no", "metadata no", "raw no", "netfilter no", "squat no", "own server"], result
    told = {(denial["host"], denial["port"]) for denial in result["denials"]}
    assert told == {(OTHER, 80), (SITE, 443), (OTHER, 443), (SITE, 444), (OTHER, 444), ("169.254.169.254", 80)}, result["denials"]


@with_internet
def test_a_server_that_is_not_there(place, world):
    """The program hears a reset, since its connection was taken in the server's place; Cordon says what it was."""
    words = ["--allow-host", "site.example", "--", PYTHON, "-c", "import socket; socket.create_connection(('site.example', 9)).recv(1)"]
    result = place.json("run", "--json", *words, code=1)
    denial, = result["denials"]
    assert (denial["host"], denial["port"], denial["source"], denial["reason"]) == (
        "site.example", 9, "host", "the server refuses the connection")
    assert "connecting to site.example port 9 failed: the server refuses the connection\n" in place.run(*words).stderr


NAMES_IN_USE = """if True:
    import socket
    for name in "site.example", "secret.site.example", "secret.site.example", "other.example":
        try:
            with socket.create_connection((name, 80)) as client:  # until the server has it
                client.sendall(b"GET / HTTP/1.0\\r\\nHost: %s\\r\\n\\r\\n" % name.encode())
                client.recv(1)
        except OSError:
            pass"""


@with_internet
def test_the_audit_has_each_name_that_went_out(place, world):
    """Also those below an allowed wildcard that nobody has: what somebody tells a server of names so."""
    config = place.home / ".config/cordon/config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text('audit.trace = ["network"]\n')
    assert place.run("--allow-host", "**.site.example", "--", PYTHON, "-c", NAMES_IN_USE).returncode == 0
    records = [json.loads(line) for line in place.cordon("log", "--json").stdout.splitlines()]
    found = [(record["event"], record["body"].get("host"), record["body"].get("port"), record["body"].get("reason")) for record in records]
    program = os.path.basename(PYTHON)[:15]
    assert found[1:-2] == [("connect", "site.example", None, None), ("connect", "site.example", 80, None),
                           ("connect", "secret.site.example", None, None), ("denied", "other.example", None, "not_allowed")]
    assert {record["body"]["program"] for record in records[1:-2]} == {program}
    assert "other.example ENOENT of python3, by no rule allows it: not_allowed\n" in place.cordon("log").stdout.replace(program, "python3")


@with_internet
def test_the_program_is_named(place, world):
    script = "'$1' -c 'import socket; socket.gethostbyname(\"other.example\")' || :".replace("'$1'", '"$1"')
    denials = run(place, "sh", "-c", script, "sh", PYTHON)["denials"]
    assert [(denial["host"], denial["program"]) for denial in denials] == [("other.example", os.path.basename(PYTHON)[:15])]


def is_gone(pidfd):
    return bool(select.select([pidfd], [], [], 60)[0])


def proxies():
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/cmdline", "rb") as words:
                if words.read().startswith(b"cordon-proxy\0") and os.stat(f"/proc/{name}/ns/user").st_ino == os.stat("/proc/self/ns/user").st_ino:
                    found.append(int(name))
        except OSError:
            continue
    return found


WAITS = ("import socket\nclient = socket.create_connection(('site.example', 80))\nprint('there', flush=True)\n"
         "print('end', client.recv(1), flush=True)")


@with_internet
def test_a_killed_cordon_leaves_no_proxy(place, world):
    process = place.start("run", "--allow-host", "site.example", "--", PYTHON, "-c", WAITS)
    assert process.stdout.readline().strip() == b"there"
    watched = [os.pidfd_open(pid) for pid in proxies()]
    assert len(watched) == 1
    process.send_signal(signal.SIGKILL)
    assert is_gone(watched[0])
    place.stop(process)


@with_internet
def test_with_a_killed_proxy_nothing_leaves(place, world):
    script = WAITS.replace("print('end', client.recv(1), flush=True)", """
try:
    client.recv(1)
except OSError:
    pass
try:
    socket.create_connection(('93.184.216.34', 80)).recv(1)
except OSError as error:
    print(error.errno)""")
    process = place.start("run", "--allow-host", "site.example", "--allow-host", SITE, "--", PYTHON, "-c", script)
    assert process.stdout.readline().strip() == b"there"
    for pid in proxies():
        os.kill(pid, signal.SIGKILL)
    assert process.stdout.readline().strip() in (b"111", b"104")  # refused, or reset when the listener goes
    assert process.wait() == 0
    place.stop(process)
    assert run(place, "true")["exit_code"] == 0


@with_internet
def test_a_short_name_is_the_hosts(place, world):
    """What the search list makes of it is connected to; the program says what it was told."""
    (world.folder / "resolv.conf").write_text("nameserver 127.0.0.1\nsearch example\n")
    get = URLLIB.replace("sys.argv[1]", "urllib.request.Request(sys.argv[1], headers={'Host': sys.argv[2]})")
    for said, code in (("site", 0), ("other", 1), ("sit", 1), ("site.example", 0), ("example", 1)):
        run(place, PYTHON, "-c", get, "http://site/", said, code=code)
    result = place.json("run", "--json", "--allow-host", "site.example", "--deny-host", "site", "--", PYTHON, "-c", URLLIB, "http://site/",
                        code=1)
    assert [denial["host"] for denial in result["denials"]] == ["site"]
    assert {name for name, _ in world.asked} == {"site.example"}


@with_internet
def test_without_a_way_to_the_resolver_it_is_said_at_once(place, world):
    (world.folder / "resolv.conf").write_text("nameserver 203.0.113.1\n")  # the limit is ten seconds
    get = "import socket, time; began = time.monotonic()\ntry: socket.gethostbyname('site.example')\nexcept OSError: print(time.monotonic() - began)"
    assert float(run(place, PYTHON, "-c", get)["stdout"]) < 5
