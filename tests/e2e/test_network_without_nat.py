"""A network that is proxied where the kernel cannot redirect connections: the guard leads them to the proxy, and the resolver
is at every address. What programs do with it is in test_network_programs.py, attacks in tests/escape."""
import json
import socket
import sys

from harness import CORDON, TOP
from world import World

WITHOUT_NAT = TOP / "scripts/without-nat"
WAIT = 30

CLIENT = r'''
import errno, json, select, socket, struct, sys
told = {}
GET = b"GET /it HTTP/1.0\r\nHost: good.test\r\n\r\n"

def answer(s, request=GET):
    s.sendall(request)
    text = b""
    while part := s.recv(65536):
        text += part
    return "200" if b"200 OK" in text[:20] else text[:40].decode("latin1")

def attempt(name, call):
    try:
        told[name] = call()
    except OSError as error:
        told[name] = errno.errorcode.get(error.errno, str(error))

def connected(address, family=socket.AF_INET):
    s = socket.socket(family)
    s.settimeout(20)
    s.connect(address)
    return s

def impatient():
    s = socket.socket()
    s.setblocking(False)
    errors = [s.connect_ex((good, 80))]
    select.select([], [s], [], 20)
    errors += [s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR), s.connect_ex((good, 80)), s.connect_ex((good, 80))]
    s.setblocking(True)
    return [errno.errorcode.get(error, error) for error in errors] + [answer(s)]

def explicit():
    s = connected(("127.0.0.1", 1008))
    s.sendall(b"CONNECT good.test:80 HTTP/1.1\r\nHost: good.test:80\r\n\r\n")
    return s.recv(1000)[9:12].decode() + " " + answer(s)

def socks():
    s = connected(("127.0.0.1", 1008))
    s.sendall(b"\5\1\0")
    assert s.recv(2) == b"\5\0"
    s.sendall(b"\5\1\0\3\x09good.test" + struct.pack(">H", 80))
    assert s.recv(100)[1] == 0
    return answer(s)

QUERY = b"\1\2\1\0\0\1\0\0\0\0\0\0\4good\4test\0\0\1\0\1"

def look_up(address, family):
    s = socket.socket(family, socket.SOCK_DGRAM)
    s.settimeout(20)
    s.sendto(QUERY, (address, 53))
    reply, source = s.recvfrom(512)
    return [source[0], source[1], socket.inet_ntoa(reply[-4:]).startswith("198.18.")]

def look_up_by_tcp(address):
    s = connected((address, 53))
    s.sendall(struct.pack(">H", len(QUERY)) + QUERY)
    return socket.inet_ntoa(s.recv(512)[-4:]).startswith("198.18.")

def forged():
    s = connected(("127.0.0.1", 1008))
    s.sendall(b"\0" + struct.pack(">H", 22))
    return s.recv(1).decode()

def own():
    server = socket.create_server(("127.0.0.1", 3000))
    client = connected(("127.0.0.1", 3000))
    server.accept()[0].sendall(b"own")
    return client.recv(3).decode()

def fast():
    s = socket.socket()
    return s.sendto(GET, 0x20000000, (good, 80))

good = socket.gethostbyname("good.test")
attempt("plain", lambda: answer(connected((good, 80))))
attempt("mapped", lambda: answer(connected(("::ffff:" + good, 80), socket.AF_INET6)))
attempt("six", lambda: answer(connected(("2a00::1", 80), socket.AF_INET6)))
attempt("impatient", impatient)
attempt("explicit", explicit)
attempt("socks", socks)
attempt("dns4", lambda: look_up("9.9.9.9", socket.AF_INET))
attempt("dns6", lambda: look_up("2a00::53", socket.AF_INET6))
attempt("dns-local", lambda: look_up("127.0.0.53", socket.AF_INET))
attempt("dns-tcp", lambda: look_up_by_tcp("9.9.9.9"))
attempt("dns-tcp-local", lambda: look_up_by_tcp("127.0.0.53"))
attempt("own", own)
attempt("fast", fast)
attempt("peer", lambda: connected((good, 80)).getpeername()[1])
attempt("no", lambda: connected(("11.0.0.2", 81)).recv(1).decode())
attempt("forged", forged)
print(json.dumps(told), file=open("told", "w"))
'''


def test_every_way_to_connect(place):
    (place.ws / "client.py").write_text(CLIENT)
    with World(place, [WITHOUT_NAT]) as world:
        ran = world.run("--json", "--allow-host", "good.test", "--allow-host", "[2a00::1]:80", "--", sys.executable, "client.py")
    result = json.loads(ran.stdout)
    told = json.loads((place.ws / "told").read_text())
    assert told == {
        "plain": "200", "mapped": "200", "six": "200", "explicit": "200 200", "socks": "200", "own": "own",
        "impatient": ["EINPROGRESS", 0, 0, "EISCONN", "200"], "dns4": ["9.9.9.9", 53, True], "dns6": ["2a00::53", 53, True],
        "dns-local": ["127.0.0.53", 53, True], "dns-tcp": True, "dns-tcp-local": True, "fast": "ENOTSUP", "peer": 1008,
        "no": "ECONNRESET", "forged": "ECONNRESET"}
    assert [(denial["host"], denial["port"]) for denial in result["denials"]] == [("11.0.0.2", 81), ("127.0.0.1", 22)]
    assert "python" in json.dumps(result["denials"])


HOST_PORT = """
import socket, sys
for host in ("127.0.0.1", "::1"):
    with socket.create_connection((host, int(sys.argv[1]))) as s:
        s.sendall(b"hello")
        print(s.recv(4).decode(), flush=True)
"""


def test_a_port_of_the_host(place):
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(WAIT)
        port = server.getsockname()[1]
        process = place.start(CORDON, "run", "--host-port", str(port), "--", sys.executable, "-c", HOST_PORT, str(port),
                              program=WITHOUT_NAT)
        for _ in range(2):
            client, _ = server.accept()
            with client:
                assert client.recv(5) == b"hello"
                client.sendall(b"host")
        out, _ = process.communicate(timeout=WAIT)
        assert out.split() == [b"host", b"host"]


def test_doctor_and_explain_say_so(place):
    def cordon(*words):
        return place.cordon(CORDON, *words, program=WITHOUT_NAT).stdout

    assert "led to it by the guard" in cordon("doctor")
    explained = json.loads(cordon("explain", "--json", "--allow-host", "good.test"))
    assert "led to it by the guard" in json.dumps(explained["layers"])
    assert "redirect" not in [step["op"] for step in explained["plan"]]
