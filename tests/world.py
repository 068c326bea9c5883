"""A network that looks like the internet to Cordon, in namespaces of its own: addresses that are public, a DNS server
that knows what it is told, servers behind the names; and a list of all that has come to them.

    with World(place) as world:
        world.names["good.test"] = ["11.0.0.1"]
        world.cordon("run", "--allow-host", "good.test", "--", "curl", "http://good.test/")
        world.arrived()      [{"server": "http", "host": "good.test", ...}]

Run as a program it is what lives inside. An ordinary user stays one: only the program that makes the network has
capabilities over it.
"""
import contextlib
import http.server
import io
import json
import mimetypes
import os
import pathlib
import re
import select
import socket
import socketserver
import ssl
import struct
import subprocess
import sys
import threading

from forgiving import OpenProxy, readings

ADDRESSES = ["11.0.0.1", "11.0.0.2", "11.0.0.3", "2a00::1", "2a00::2"]
PRIVATE = ["10.0.0.1", "169.254.169.254", "192.168.1.1"]
OWN = ["12.0.0.1", "2a01::1"]  # the host has these itself; the others are here, and are not its own
NAMES = {"good.test": ["11.0.0.1"], "evil.test": ["11.0.0.2"], "six.test": ["2a00::1"],
         "both.test": ["2a00::1", "11.0.0.1"], "sub.good.test": ["11.0.0.1"],
         "inside.test": ["10.0.0.1"], "mixed.test": ["11.0.0.1", "10.0.0.1"],
         "metadata.test": ["169.254.169.254"], "dead.test": ["11.0.0.9"],
         "own.test": ["12.0.0.1"], "own-six.test": ["2a01::1"]}


class World:
    """What a test has in its hands. `is_open`: with a proxy without rules where Cordon's is inside, a resolver beside it, and
    servers at the addresses that Cordon's names have inside."""

    def __init__(self, place, through=(), is_open=False):
        """`through`: a program that runs others as on a lesser host, with its arguments."""
        self.place, self.through = place, [str(word) for word in through]
        self.is_open = is_open
        self.base = place.base / "world"
        self.base.mkdir()
        self.names = dict(NAMES)
        self.ca = self.base / "ca.pem"

    def __enter__(self):
        certify(self.base, self.names)
        self.tell_names()
        kind = ["--net", "--mount"] if os.geteuid() == 0 else [
            "--user", "--map-current-user", "--keep-caps", "--net", "--mount"]
        self.process = subprocess.Popen(
            ["unshare", *kind, sys.executable, "-B", __file__, str(self.base), *["open"] * self.is_open],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.place.cleanup.callback(self.end)
        assert self.process.stdout.readline() == b"ready\n"
        return self

    def __exit__(self, *_):
        self.end()

    def end(self):
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        self.process.wait(30)
        self.process.stdout.close()

    def tell_names(self):
        """Has to be called after a change of `names`."""
        path = self.base / "names.json"
        path.with_suffix(".new").write_text(json.dumps(self.names))
        path.with_suffix(".new").rename(path)

    def enter(self):
        """The command that runs another one in there."""
        kind = ["--net", "--mount"]
        if os.geteuid() != 0:
            kind += ["--user", "--preserve-credentials"]
        return ["nsenter", "-t", str(self.process.pid), *kind, f"--wd={self.place.ws}", "--", *self.through]

    def start(self, *words, **kwargs):
        from harness import CORDON
        enter = self.enter()
        return self.place.start(*enter[1:], CORDON, *words, program=enter[0], **kwargs)

    def cordon(self, *words, **kwargs):
        from harness import CORDON
        enter = self.enter()
        return self.place.cordon(*enter[1:], CORDON, *words, program=enter[0], **kwargs)

    def run(self, *words, **kwargs):
        return self.cordon("run", *words, **kwargs)

    def json(self, *words, code=0, **kwargs):
        ran = self.cordon(*words, **kwargs)
        assert ran.returncode == code, ran
        return json.loads(ran.stdout)

    def arrived(self, server=None):
        """What has come to the servers, in its order; of one of them."""
        try:
            lines = (self.base / "arrived").read_text().splitlines()
        except FileNotFoundError:
            return []
        return [event for event in map(json.loads, lines) if server in (None, event["server"])]


def certify(folder, names):
    """A certificate authority, and a certificate by it for all names."""
    def openssl(*argv):
        subprocess.run(["openssl", *argv], check=True, capture_output=True, cwd=folder)

    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    openssl("req", "-x509", *key, "-subj", "/CN=test", "-keyout", "ca.key", "-out", "ca.pem", "-days", "2")
    openssl("req", *key, "-subj", "/CN=x", "-keyout", "key.pem", "-out", "request.pem")
    known = [f"DNS:{name}" for name in names] + [f"IP:{address}" for address in ADDRESSES + OWN]
    (folder / "names").write_text("subjectAltName=" + ",".join(known) + "\n")
    openssl("x509", "-req", "-in", "request.pem", "-CA", "ca.pem", "-CAkey", "ca.key", "-days", "2",
            "-CAcreateserial", "-extfile", "names", "-out", "cert.pem")


# --- what lives inside

base = None
writing = threading.Lock()


def note(server, **what):
    with writing, open(base / "arrived", "a", encoding="utf-8") as file:
        file.write(json.dumps({"server": server, **what}) + "\n")


def note_tokens(server, data, **what):
    """What looks like the mark of an attack, in bytes that are not read otherwise."""
    for found in re.findall(rb"token-[a-z0-9-]+", data):
        note(server, found=found.decode(), **what)


class Heard(io.RawIOBase):
    """What is read, kept."""

    def __init__(self, inner):
        self.inner, self.bytes = inner, bytearray()

    def readable(self):
        return True

    def readinto(self, into):
        count = self.inner.readinto(into)
        self.bytes += into[:count or 0]
        return count

    def close(self):
        self.inner.close()
        super().close()


class Web(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def setup(self):
        super().setup()
        self.heard = Heard(self.rfile.detach())
        self.rfile = io.BufferedReader(self.heard)

    def finish(self):
        """What other servers would have read, of requests with the mark of an attack for another host."""
        with contextlib.suppress(OSError):  # what was left unread is heard, too
            self.connection.settimeout(0.05)
            while b"token-" in self.heard.bytes and self.rfile.read(65536):
                pass
        for who, _, target, host in readings(bytes(self.heard.bytes)) if b"token-" in self.heard.bytes else ():
            if host not in (None, b"good.test"):
                note_tokens("reading", target, by=who, host=host.decode(errors="replace"))
        super().finish()

    def chunks(self):
        body = b""
        is_chunked = self.headers.get("Transfer-Encoding") == "chunked" and "Content-Length" not in self.headers
        while is_chunked and (size := int(self.rfile.readline(), 16)):
            body += self.rfile.read(size)
            self.rfile.readline()
        return body

    def answer(self):
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length) if length else self.chunks()
        sni = getattr(self.connection, "sni", None)
        event = {"address": self.connection.getsockname()[0], "port": self.connection.getsockname()[1],
                 "host": self.headers.get("Host"), "method": self.command, "path": self.path,
                 "headers": dict(self.headers), "body": body.decode(errors="replace"), "sni": sni}
        note("https" if sni is not None else "http", **event)
        size = int(self.path.rsplit("=", 1)[1]) if self.path.startswith("/bytes=") else None
        text, head = b"x" * size if size is not None else json.dumps(event).encode(), []
        if self.path.startswith("/npm/"):
            text = self.of_package()
        elif self.path.startswith("/git/"):
            head, text = self.by_git(body)
        elif self.path.startswith("/files/"):
            name = self.path.lstrip("/") + ("index.html" if self.path.endswith("/") else "")
            head, text = [("Content-Type", mimetypes.guess_type(name)[0] or "application/octet-stream")], (base / name).read_bytes()
        self.send_response(200)
        for key, value in head:
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text)

    def parse_request(self):
        """HTTP/2 without asking: what it wants is looked for by its marks alone."""
        if self.raw_requestline.startswith(b"PRI "):
            note_tokens("http2", self.rfile.read1(65536))
            self.close_connection = True
            return False
        return super().parse_request()

    def of_package(self):
        """A registry of packages that knows one."""
        url = f"{'http' if not hasattr(self.connection, 'sni') else 'https'}://{self.headers.get('Host')}/npm/thing.tgz"
        version = {"name": "thing", "version": "1.2.3", "dist": {"tarball": url}}
        known = {"name": "thing", "dist-tags": {"latest": "1.2.3"}, "versions": {"1.2.3": version}}
        return (base / "npm/thing.tgz").read_bytes() if self.path.endswith(".tgz") else json.dumps(known).encode()

    def by_git(self, body):
        """A CGI, as git-http-backend(1) has it."""
        path, _, query = self.path.partition("?")
        backend = os.path.join(subprocess.run(["git", "--exec-path"], check=True, capture_output=True, text=True).stdout.strip(),
                               "git-http-backend")
        env = {**os.environ, "GIT_PROJECT_ROOT": str(base), "GIT_HTTP_EXPORT_ALL": "1", "PATH_INFO": path, "QUERY_STRING": query,
               "REQUEST_METHOD": self.command, "CONTENT_TYPE": self.headers.get("Content-Type", ""),
               "CONTENT_LENGTH": str(len(body)), "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
               "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
               # root made it, and looks at it as root
               "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"}
        ran = subprocess.run([backend], input=body, env=env, capture_output=True, check=True)
        head, _, text = ran.stdout.partition(b"\r\n\r\n")
        return [line.split(": ", 1) for line in head.decode().split("\r\n")], text

    do_GET = do_POST = do_PUT = do_HEAD = do_OPTIONS = do_DELETE = answer

    def log_message(self, *_):
        pass


class Server(socketserver.ThreadingTCPServer):
    address_family = socket.AF_INET6
    allow_reuse_address = daemon_threads = True
    request_queue_size = 1024

    def handle_error(self, *_):  # who hangs up is expected here
        pass


class Echo(socketserver.BaseRequestHandler):
    banner = b""

    def handle(self):
        where = {"port": self.server.server_address[1], "address": self.request.getsockname()[0]}
        note("echo", **where)
        self.request.sendall(self.banner)
        while data := self.request.recv(65536):
            note("echo", **where, data=data[:100].decode(errors="replace"))
            self.request.sendall(data)
        self.request.shutdown(socket.SHUT_WR)


class Banner(Echo):
    banner = b"SSH-2.0-test\r\n"


class Secure(Server):
    def __init__(self, *args):
        super().__init__(*args)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(base / "cert.pem", base / "key.pem")
        self.context.set_alpn_protocols(["http/1.1"])
        self.context.sni_callback = lambda wrapped, name, _: setattr(wrapped, "sni", name or "")

    def get_request(self):
        connection, address = super().get_request()
        note("tls", port=self.server_address[1])
        wrapped = self.context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
        wrapped.sni = ""
        return wrapped, address

    def finish_request(self, request, client_address):
        hello = socket.socket(fileno=os.dup(request.fileno()))
        note_tokens("hello", hello.recv(65536, socket.MSG_PEEK))
        hello.close()
        request.do_handshake()
        super().finish_request(request, client_address)


def dns_answer(query, over):
    """A reply to one question; names.json says what there is."""
    labels, at = [], 12
    while query[at]:
        labels.append(query[at + 1:at + 1 + query[at]].decode(errors="replace"))
        at += 1 + query[at]
    kind = struct.unpack(">H", query[at + 1:at + 3])[0]
    question = query[12:at + 5]
    name = ".".join(labels).lower()
    note("dns", name=name, type=kind, over=over)
    known = json.loads((base / "names.json").read_text()).get(name)
    records = []
    for address in known or []:
        is_six = ":" in address
        if kind == (28 if is_six else 1):
            packed = socket.inet_pton(socket.AF_INET6 if is_six else socket.AF_INET, address)
            records.append(b"\xc0\x0c" + struct.pack(">HHIH", kind, 1, 60, len(packed)) + packed)
    head = query[:2] + struct.pack(">HHHHH", 0x8180 | (0 if known is not None else 3), 1, len(records), 0, 0)
    return head + question + b"".join(records)


class DnsUdp(socketserver.BaseRequestHandler):
    def handle(self):
        data, sock = self.request
        sock.sendto(dns_answer(data, "udp"), self.client_address)


class DnsTcp(socketserver.StreamRequestHandler):
    def handle(self):
        while head := self.rfile.read(2):
            answer = dns_answer(self.rfile.read(struct.unpack(">H", head)[0]), "tcp")
            self.wfile.write(struct.pack(">H", len(answer)) + answer)


class UdpEcho(socketserver.BaseRequestHandler):
    def handle(self):
        data, sock = self.request
        note("udp", data=data.decode(errors="replace"))
        sock.sendto(data, self.client_address)


class Unix(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True


class UnixNote(socketserver.BaseRequestHandler):
    def handle(self):
        note_tokens("unix", self.request.recv(4096), name=repr(self.server.server_address))


class UdpServer(socketserver.ThreadingUDPServer):
    address_family = socket.AF_INET6
    daemon_threads = True


def main():
    global base
    base = pathlib.Path(sys.argv[1])
    ip = lambda *words: subprocess.run(["ip", *words], check=True)  # noqa: E731
    ip("link", "set", "lo", "up")
    for address in OWN:
        ip("address", "add", address + ("/128" if ":" in address else "/32"), "dev", "lo", *(["nodad"] if ":" in address else []))
    for address in ADDRESSES + PRIVATE:
        ip("-6" if ":" in address else "-4", "route", "add", "local", address, "dev", "lo", "src", OWN[":" in address])
    for name, text in (("resolv.conf", "nameserver 127.0.0.1\n"), ("hosts", "127.0.0.1 localhost\n::1 localhost\n11.0.0.3 hosts.test\n")):
        (base / name).write_text(text)
        subprocess.run(["mount", "--bind", base / name, os.path.realpath(f"/etc/{name}")], check=True)
    tcp = [(80, Web, Server), (8080, Web, Server), (7, Echo, Server), (22, Banner, Server),
           (5432, Echo, Server), (443, Web, Secure), (8443, Web, Secure), (53, DnsTcp, Server)]
    if sys.argv[2:]:
        ip("route", "add", "local", "198.18.0.0/15", "dev", "lo")
        ip("address", "add", "fe80::1/128", "dev", "lo", "nodad")
        tcp += [(1008, OpenProxy, Server), (1009, DnsTcp, Server)]
    servers = [kind(("::", port), handler) for port, handler, kind in tcp]
    servers += [UdpServer(("::", port), handler) for port, handler in ((53, DnsUdp), (7, UdpEcho), (443, UdpEcho))]
    servers += [UdpServer(("::", 1009), DnsUdp)] * len(sys.argv[2:])
    servers += [Unix(name, UnixNote) for name in ("\0world", str(base / "sock"))]
    for server in servers:
        threading.Thread(target=server.serve_forever, args=(5,), daemon=True).start()
    print("ready", flush=True)
    select.select([sys.stdin], [], [])  # until the test has gone


if __name__ == "__main__":
    main()
