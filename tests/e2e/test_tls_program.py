"""cordon-tls by itself: what the proxy has done by it, with Python's own TLS at the other ends."""
import array
import fcntl
import os
import socket
import ssl
import struct
import subprocess
import threading

import pytest

from harness import BUILD

MAGIC = 0x534c5443
SERVE, DIAL = 0, 1


class Program:
    def __init__(self, roots=None):
        """`roots`: a file of what it trusts, which it gets as its host passes it."""
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        read, write = os.pipe()
        trusted = os.memfd_create("roots")
        os.write(trusted, roots.read_bytes() if roots else b"\n")
        fds = [fcntl.fcntl(fd, fcntl.F_DUPFD, 10) for fd in (theirs, write, trusted)]
        self.process = subprocess.Popen(
            ["bash", "-c", f"exec {BUILD}/src/tls/cordon-tls 3<&{fds[0]} 4>&{fds[1]} 5<&{fds[2]} "
                           f"{fds[0]}<&- {fds[1]}>&- {fds[2]}<&-"],
            pass_fds=fds, stdin=subprocess.DEVNULL, env={**os.environ, "SSL_CERT_FILE": "/proc/self/fd/5"})
        for fd in fds:
            os.close(fd)
        theirs.close()
        os.close(write)
        os.close(trusted)
        with open(read, "rb") as pipe:
            self.pem = pipe.read().decode()
        self.orders = 0

    def order(self, kind, name, encrypted):
        """Gives the plain end; answer() has to be asked for."""
        plain, theirs = socket.socketpair()
        self.orders += 1
        packet = struct.pack("=IIQI256sI", MAGIC, 1, self.orders, kind, name.encode(), 0)
        packet = packet.ljust(280, b"\0")
        fds = array.array("i", [encrypted.fileno(), theirs.fileno()])
        self.control.sendmsg([packet], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
        encrypted.close()
        theirs.close()
        plain.settimeout(20)
        return plain

    def answer(self):
        self.control.settimeout(20)
        magic, connected, number, why = struct.unpack("=IIQ256s", self.control.recv(1024))
        assert magic == MAGIC
        return number, bool(connected), why.rstrip(b"\0").decode()

    def end(self):
        self.control.close()
        assert self.process.wait(20) == 0


@pytest.fixture
def program():
    started = Program()
    yield started
    started.end()


def client(program, name="example.test", protocols=("h2", "http/1.1"), trusted=True):
    """A client of TLS that runs in a thread of its own, and the end where the program answers it."""
    ours, theirs = socket.socketpair()
    ours.settimeout(20)
    context = ssl.create_default_context()
    context.set_alpn_protocols(list(protocols))
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    if trusted:
        context.load_verify_locations(cadata=program.pem)
    result = {}

    def talk():
        try:
            with context.wrap_socket(ours, server_hostname=name) as wrapped:
                result["protocol"] = wrapped.selected_alpn_protocol()
                wrapped.sendall(b"ping" * 10000)
                result["got"] = wrapped.recv(100)
                wrapped.unwrap()
        except (ssl.SSLError, OSError) as error:
            result["error"] = error

    thread = threading.Thread(target=talk)
    thread.start()
    return thread, result, theirs


def read_exactly(end, count):
    got = b""
    while len(got) < count:
        got += end.recv(65536) or pytest.fail("ended early")
    return got


@pytest.mark.parametrize("name", ["example.test", "192.0.2.7", "2001:db8::1"])
def test_ends_the_tls_of_a_client(program, name):
    thread, result, theirs = client(program, name)
    plain = program.order(SERVE, name, theirs)
    assert program.answer() == (1, True, "")
    assert read_exactly(plain, 40000) == b"ping" * 10000
    plain.sendall(b"pong")
    plain.shutdown(socket.SHUT_WR)
    thread.join(20)
    assert result == {"protocol": "http/1.1", "got": b"pong"}
    assert plain.recv(1) == b""  # the goodbye of the client


def test_a_client_that_does_not_trust_it(program):
    thread, result, theirs = client(program, trusted=False)
    plain = program.order(SERVE, "example.test", theirs)
    number, connected, why = program.answer()
    thread.join(20)
    assert (number, connected) == (1, False) and "unknown ca" in why, why
    assert plain.recv(1) == b""


def test_a_client_that_wants_http2_alone_is_told_so(program):
    thread, result, theirs = client(program, protocols=["h2"])
    program.order(SERVE, "example.test", theirs)
    number, connected, why = program.answer()
    assert not connected and "HTTP/1.1 that is spoken" in why
    thread.join(20)
    assert "NO_APPLICATION_PROTOCOL" in str(result["error"]).upper().replace(" ", "_")


def test_answers_that_nobody_reads_hold_nothing_up(program):
    """The proxy may wait for room for an order while the answers to hundreds wait for it."""
    program.control.settimeout(20)
    for _ in range(700):
        ours, theirs = socket.socketpair()
        ours.sendall(b"no TLS")
        ours.close()
        program.order(SERVE, "example.test", theirs).close()
    assert [program.answer()[:2] for _ in range(700)] == [(number, False) for number in range(1, 701)]


def test_it_keeps_few_calls(program):
    """Once it tells its certificate it may still be on its way there; with the first answer it is not."""
    program.order(SERVE, "example.test", socket.socketpair()[0])
    program.answer()
    with open(f"/proc/{program.process.pid}/status", encoding="ascii") as status:
        assert ("\nSeccomp:\t2\n" in status.read()) == (b"__asan_init" not in (BUILD / "src/tls/cordon-tls").read_bytes())


def test_what_is_no_tls(program):
    ours, theirs = socket.socketpair()
    ours.sendall(b"GET / HTTP/1.1\r\n\r\n")
    program.order(SERVE, "example.test", theirs)
    assert not program.answer()[1]


def certify(folder, name):
    """A certificate authority and a server's certificate by it, in files."""
    run = lambda *argv: subprocess.run(["openssl", *argv], check=True, capture_output=True,  # noqa: E731
                                       cwd=folder)
    run("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj",
        "/CN=test", "-keyout", "ca.key", "-out", "ca.pem", "-days", "2")
    run("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=x",
        "-keyout", "key.pem", "-out", "request.pem")
    (folder / "names").write_text(f"subjectAltName=DNS:{name}\n")
    run("x509", "-req", "-in", "request.pem", "-CA", "ca.pem", "-CAkey", "ca.key", "-days", "2",
        "-CAcreateserial", "-extfile", "names", "-out", "cert.pem")


def serve(folder):
    """A server of TLS for one connection, which answers what it gets; and its other end."""
    ours, theirs = socket.socketpair()
    ours.settimeout(20)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    result = {}

    def talk():
        try:
            with context.wrap_socket(ours, server_side=True) as wrapped:
                result["got"] = wrapped.recv(100)
                wrapped.sendall(b"x" * 100000)
                wrapped.unwrap()
        except (ssl.SSLError, OSError) as error:
            result["error"] = error

    thread = threading.Thread(target=talk)
    thread.start()
    return thread, result, theirs


def test_dials_a_server_that_is_who_it_should_be(tmp_path):
    certify(tmp_path, "example.test")
    program = Program(tmp_path / "ca.pem")
    thread, result, theirs = serve(tmp_path)
    plain = program.order(DIAL, "example.test", theirs)
    assert program.answer() == (1, True, "")
    plain.sendall(b"hello")
    assert read_exactly(plain, 100000) == b"x" * 100000
    assert plain.recv(1) == b""
    plain.close()
    thread.join(20)
    assert result == {"got": b"hello"}
    program.end()


@pytest.mark.parametrize("name,trusted,why", [("other.test", True, "hostname mismatch"),
                                              ("192.0.2.1", True, "IP address mismatch"),
                                              ("example.test", False, "unable to get local issuer")])
def test_a_server_that_is_not(tmp_path, name, trusted, why):
    certify(tmp_path, "example.test")
    program = Program(tmp_path / "ca.pem" if trusted else None)
    thread, _, theirs = serve(tmp_path)
    program.order(DIAL, name, theirs)
    number, connected, said = program.answer()
    thread.join(20)
    assert (number, connected) == (1, False)
    assert said.startswith("the server's certificate is not trusted: ") and why in said, said
    program.end()


def test_orders_that_are_none_change_nothing(program):
    program.control.send(b"x")
    program.control.send(b"x" * 280)
    ours, theirs = socket.socketpair()
    fds = array.array("i", [theirs.fileno()])
    program.control.sendmsg([b"\0" * 280], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
    theirs.close()
    assert ours.recv(1) == b""
    thread, result, theirs = client(program)
    plain = program.order(SERVE, "example.test", theirs)
    assert program.answer()[1]
    plain.close()  # with the client still there
    thread.join(20)
    assert "error" in result or result["got"] == b""
