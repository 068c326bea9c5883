"""A small internet, and commands in it, for cordon-proxy alone: no sandbox, no launcher.

    @inside                  the test runs in a user, mount and network namespace of its own, as root there
    world = World()          the internet: addresses, resolv.conf, hosts, a DNS server, cordon-proxy
    world.serve(...)         a server in it
    command = world.command(policy, port=443)      a network in which every address is local, with listeners
    command.connect(...)     as a program in it does it

A redirect (nft) is what the launcher makes; here the listener listens at the very port, which is the same to the proxy."""

import array
import contextlib
import ctypes
import functools
import json
import os
import pathlib
import pickle
import select
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import traceback

from harness import BUILD

PROXY = BUILD / "src/proxy/cordon-proxy"
HASTY = BUILD / "src/proxy/cordon-proxy-hasty"  # waits a fiftieth as long; a connection says nothing for half a second
MAGIC = 0x59585043
NEWNS, NEWUSER, NEWNET = 0x20000, 0x10000000, 0x40000000
MS_BIND, MS_REC, MS_PRIVATE = 4096, 16384, 1 << 18
SILENCE = object()
WAIT = 60  # seconds: nothing comes near it
DENIED, ASKED, WITHDRAWN, DONE, MORE, FAILED = range(1, 7)
PROTOCOLS = ["http", "https", "socks5_tcp", "socks5_udp"]

libc = ctypes.CDLL(None, use_errno=True)


def check(rc):
    if rc:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def inside(test):
    """A process of its own for each test, since namespaces are entered for good."""

    @functools.wraps(test)
    def run(*args, **kwargs):
        read, write = os.pipe()
        child = os.fork()
        if not child:
            trouble = None
            try:
                uid, gid = os.getuid(), os.getgid()
                check(libc.unshare(NEWUSER | NEWNS | NEWNET))
                for name, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
                    pathlib.Path("/proc/self", name).write_text(text)
                test(*args, **kwargs)
            except BaseException:
                trouble = traceback.format_exc()
            os.write(write, pickle.dumps(trouble)[:65536])
            os._exit(0)
        os.close(write)
        with open(read, "rb") as answer:
            text = answer.read()
        os.waitpid(child, 0)
        trouble = pickle.loads(text) if text else "the test's process died"
        assert trouble is None, trouble

    del run.__wrapped__  # pytest would look through it, which is right, but for fixtures of none
    return run


def ip(*lines):
    subprocess.run(["ip", "-batch", "-"], input="\n".join(lines), text=True, check=True)


class Fact:
    def __init__(self, packet):
        form = "=IIQQIHHII16s256s256s256s"
        assert len(packet) == struct.calcsize(form), len(packet)
        (self.kind, self.count, self.id, self.time_ns, protocol, self.port, self.local_port, self.is_look_up,
         _, self.meant, host, reason, rule) = struct.unpack(form, packet)
        self.protocol = PROTOCOLS[protocol]
        self.host, self.reason, self.rule = (text.split(b"\0")[0].decode() for text in (host, reason, rule))

    def __repr__(self):
        return f"{self.kind} {self.host}:{self.port} {self.protocol} {self.reason!r} by {self.rule!r} #{self.id}"


def dns_query(name, kind=1, number=1, edns=False):
    labels = b"".join(bytes([len(label)]) + label.encode("latin-1") for label in name.split(".") if label)
    return (struct.pack(">HHHHHH", number, 0x100, 1, 0, 0, edns) + labels + struct.pack(">BHH", 0, kind, 1)
            + (b"\0\0\x29\x04\xd0\0\0\0\0\0\0" if edns else b""))


def dns_read(message):
    """(code, addresses)"""
    number, flags, questions, answers, _, _ = struct.unpack(">HHHHHH", message[:12])
    at = 12
    while message[at]:
        at += message[at] + 1
    at += 5
    found = []
    for _ in range(answers):
        kind, _, _, length = struct.unpack(">HHIH", message[at + 2:at + 12])
        data = message[at + 12:at + 12 + length]
        found.append(socket.inet_ntop(socket.AF_INET if kind == 1 else socket.AF_INET6, data)
                     if kind in (1, 28) else data)
        at += 12 + length
    return flags & 15, found


class World:
    """`names`: name -> addresses, or a function that gives them; SILENCE: no answer. What is not among them does not
    exist; what was asked is in `asked`. `answers`: name -> function of question and type that gives whole messages."""

    def __init__(self, names=None, addresses=("93.184.216.34", "93.184.216.35", "10.0.0.5"), hosts="", env=None, options="", program=PROXY):
        self.names, self.asked, self.answers = names or {}, [], {}
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="world-", dir=os.environ["CORDON_TESTS"]))
        check(libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None))
        for name, text in (("resolv.conf", f"nameserver 127.0.0.1\noptions timeout:1 attempts:1\n{options}"), ("hosts", hosts)):
            (self.folder / name).write_text(text)
            target = os.path.realpath(f"/etc/{name}").encode()
            check(libc.mount(bytes(self.folder / name), target, None, MS_BIND, None))
        # they are here, and are not this machine's own: what it sends there comes from another one
        ip("link set lo up", "addr add 12.0.0.1/32 dev lo", "addr add 2a01::1/128 dev lo nodad",
           *(f"route add local {address} dev lo src {'2a01::1' if ':' in address else '12.0.0.1'}"
             for address in addresses))
        self.own_net = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        self.resolver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.resolver.bind(("127.0.0.1", 53))
        threading.Thread(target=self.resolve, daemon=True).start()
        self.control, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.proxy = self.start(other, env or {}, program)
        other.close()

    @staticmethod
    def start(control, env, program):
        child = os.fork()
        if not child:
            null = os.open("/dev/null", os.O_RDWR)
            os.dup2(null, 0)
            os.dup2(null, 1)
            os.dup2(control.fileno(), 3)
            os.set_inheritable(3, True)
            os.execve(program, [program], {**env, **{k: v for k, v in os.environ.items() if "SAN_OPTIONS" in k}})
        return child

    def resolve(self):
        while True:
            query, asker = self.resolver.recvfrom(4096)
            labels, at = [], 12
            while query[at]:
                labels.append(query[at + 1:at + 1 + query[at]].decode().lower())
                at += query[at] + 1
            name, kind = ".".join(labels), struct.unpack(">H", query[at + 1:at + 3])[0]
            self.asked.append((name, kind))
            if name in self.answers:
                for message in self.answers[name](query[:at + 5], kind):
                    self.resolver.sendto(message, asker)
                continue
            addresses = self.names.get(name)
            if callable(addresses):
                addresses = addresses()
            if addresses is SILENCE:
                continue
            found = [] if addresses is None else [a for a in addresses if (":" in a) == (kind == 28)]
            records = b"".join(
                b"\xc0\x0c" + struct.pack(">HHIH", kind, 1, 30, 16 if kind == 28 else 4)
                + socket.inet_pton(socket.AF_INET6 if kind == 28 else socket.AF_INET, a) for a in found)
            head = query[:2] + struct.pack(">HHHHH", 0x8180 | (3 if addresses is None else 0), 1, len(found), 0, 0)
            self.resolver.sendto(head + query[12:at + 5] + records, asker)

    def serve(self, address, port, handle):
        """Each connection is handled by a thread of its own."""
        server = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if ":" in address:
            server.setsockopt(socket.IPPROTO_IPV6, 78, 1)  # IPV6_FREEBIND: not its own
        server.bind((address, port))
        server.listen(128)

        def accept():
            while True:
                client, _ = server.accept()
                client.settimeout(WAIT)
                threading.Thread(target=self.handle, args=(handle, client), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        return server

    @staticmethod
    def handle(handle, client):
        with client, contextlib.suppress(OSError):
            handle(client)

    def command(self, policy, port=443, flags=0):
        return Command(self, policy, port, flags)

    @contextlib.contextmanager
    def stopped(self):
        """What a client does meanwhile the proxy finds at once, however late this test gets its turns."""
        os.kill(self.proxy, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self.proxy, signal.SIGCONT)


class Command:
    def __init__(self, world, policy, port, flags):
        self.world, self.port = world, port
        if isinstance(policy, list):
            policy = {"domains": {pattern: "allow" for pattern in policy}}
        self.channel, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.channel.settimeout(WAIT)
        memory = os.memfd_create("policy")
        os.write(memory, json.dumps(policy).encode())
        self.send_to(world.control, struct.pack("=III", MAGIC, 1, flags), [other.fileno(), memory])
        os.close(memory)
        other.close()
        check(libc.unshare(NEWNET))
        self.net = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        ip("link set lo up", "route add local default dev lo", "route add local ::/0 dev lo")
        tcp = socket.socket(socket.AF_INET6)
        tcp.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        tcp.bind(("::", port))
        tcp.listen(4096)
        dns = [socket.socket(family, socket.SOCK_DGRAM) for family in (socket.AF_INET, socket.AF_INET6)]
        dns[0].bind(("127.0.0.1", 53))
        dns[1].bind(("::1", 53))
        self.send_to(other=None, socket_=self.channel, data=struct.pack("=IIQII", MAGIC, 0, 0, 0, 0),
                     fds=[s.fileno() for s in (tcp, *dns)])
        for s in (tcp, *dns):
            s.close()
        check(libc.setns(world.own_net, NEWNET))

    @staticmethod
    def send_to(socket_, data, fds, other=None):
        socket_.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))])

    @contextlib.contextmanager
    def network(self):
        check(libc.setns(self.net, NEWNET))
        try:
            yield
        finally:
            check(libc.setns(self.world.own_net, NEWNET))

    def socket(self, family=socket.AF_INET, kind=socket.SOCK_STREAM):
        with self.network():
            made = socket.socket(family, kind)
        made.settimeout(WAIT)
        return made

    def look_up(self, name, kind=1, edns=False):
        """(code, addresses)"""
        return dns_read(self.ask(dns_query(name, kind, edns=edns)))

    def ask(self, message):
        asker = self.socket(kind=socket.SOCK_DGRAM)
        asker.connect(("127.0.0.1", 53))
        asker.send(message)
        return asker.recv(4096)

    def connect(self, where, port=None):
        """To a name or an address."""
        if not where.replace(".", "").isdigit() and ":" not in where:
            code, addresses = self.look_up(where)
            if code or not addresses:
                raise socket.gaierror(code, where)
            where = addresses[0]
        client = self.socket(socket.AF_INET6 if ":" in where else socket.AF_INET)
        client.connect((where, port or self.port))
        return client

    def is_refused(self, where):
        """By a reset, which may come as early as from connect(2)."""
        try:
            return is_reset(self.connect(where))
        except ConnectionResetError:
            return True

    def explicit(self):
        return self.connect("127.0.0.1")

    def fact(self):
        return Fact(self.channel.recv(4096))

    def has_fact(self):
        return bool(select.select([self.channel], [], [], 0)[0])

    def answer(self, number, is_yes):
        self.channel.send(struct.pack("=IIQII", MAGIC, 1, number, is_yes, 0))

    def end(self):
        """The facts that are left."""
        self.channel.shutdown(socket.SHUT_WR)
        facts = []
        while packet := self.channel.recv(4096):
            facts.append(Fact(packet))
        return facts


def read_all(client):
    data = bytearray()
    while block := client.recv(1 << 20):
        data += block
    return bytes(data)


def take(client, count):
    """So many bytes, or what there is before the end. (MSG_WAITALL does not wait where there is a time limit.)"""
    data = b""
    while len(data) < count and (block := client.recv(count - len(data))):
        data += block
    return data


def is_reset(client):
    try:
        return read_all(client) == b""
    except ConnectionResetError:
        return True
