"""What goes through the proxy is what the program sent, when it sent it, whatever it is: all in one command."""
import json
import sys

from world import World

PROGRAM = r"""
import hashlib, json, os, socket, threading
done = {}

def connect(port, name="good.test"):
    sock = socket.create_connection((name, port), 20)
    return sock

def read(sock, count):
    data = b""
    while len(data) < count:
        more = sock.recv(65536)
        assert more, data
        data += more
    return data

# a word, and nothing more before the answer; a beginning of a line that could become a request
for word in (b"e", b"hello", b"GET", b"AMQP\0\0\x09\1", b"\x3a\0\0\0", b"\x16", b"{\"a\":1}", b"PING\r\n"):
    with connect(7) as sock:
        if word == b"\x16":  # TLS has begun, so it goes on
            sock.sendall(word); sock.settimeout(0.2)
            try: done["tls"] = sock.recv(1).decode()
            except TimeoutError: done["tls"] = "held"
            continue
        sock.sendall(word)
        assert read(sock, len(word)) == word, word
        sock.sendall(b" again")
        assert read(sock, 6) == b" again", word

# the server speaks first
with connect(22) as sock:
    done["banner"] = read(sock, 14).decode()
    sock.sendall(b"GET / HTTP/1.1\r\n")
    assert read(sock, 16)

# both ways at once, much, and an end on one side
blob = os.urandom(5_000_000)
with connect(7) as sock:
    writer = threading.Thread(target=lambda: (sock.sendall(blob), sock.shutdown(socket.SHUT_WR)))
    writer.start()
    got = b"".join(iter(lambda: sock.recv(65536), b""))
    writer.join()
    done["same"] = hashlib.sha256(got).digest() == hashlib.sha256(blob).digest()
print(json.dumps(done))
"""


def test_streams(place):
    with World(place) as world:
        ran = world.run("--allow-host", "good.test", "--", sys.executable, "-c", PROGRAM)
        assert ran.returncode == 0, ran
        assert json.loads(ran.stdout) == {"tls": "held", "banner": "SSH-2.0-test\r\n", "same": True}
        assert "refused" not in ran.stderr
