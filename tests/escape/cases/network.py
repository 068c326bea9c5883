"""Reaching the host by the network: its loopback services, its unix sockets, its other families,
and sockets that somebody left open."""

import os
import shutil
import socket
import tempfile

from catalogue import attack


@attack()
def tcp(stage):
    service = stage.service()
    stage.attack("tcp", service.port)
    return service.was_reached()


@attack()
def udp(stage):
    service = stage.service(kind=socket.SOCK_DGRAM)
    stage.attack("udp", service.port)
    return service.was_reached()


@attack()
def tcp_by_ipv6(stage):
    service = stage.service(socket.AF_INET6)
    stage.attack("tcp6", service.port)
    return service.was_reached()


@attack(holes=(17,))
def mptcp(stage):
    service = stage.service()
    stage.attack("mptcp", service.port)
    return service.was_reached()


@attack(holes=(17,))
def tcp_fast_open(stage):
    service = stage.service()
    stage.attack("fastopen", service.port)
    return service.was_reached()


@attack()
def listen_on_a_host_port(stage):
    """A service of the command's on the host's loopback; somebody there comes to it."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = stage.start(stage.tools / "attacks", "listen", port)
    stage.note_until(process, "@listening")
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as peer:
            return peer.recv(64) == b"attack"
    except OSError:
        return False


@attack(users=("root",))
def raw_icmp(stage):
    return stage.attack("raw").won


@attack(users=("root",))
def packet(stage):
    return stage.attack("packet").won


@attack(holes=(9,))
def vsock(stage):
    return stage.attack("vsock").won


@attack()
def netlink_uevent(stage):
    return stage.attack("netlink", 15).won


@attack()
def netlink_audit(stage):
    return stage.attack("netlink", 9).won


@attack()
def netlink_generic(stage):
    return stage.attack("netlink", 16).won


@attack()
def netlink_sock_diag(stage):
    """Whose sockets they are: a command may ask for its own."""
    return stage.attack("diag", stage.service().port).won


@attack()
def netlink_netfilter(stage):
    return stage.attack("netlink", 12).won


@attack(holes=(8,))
def unix_by_path(stage):
    service = stage.unix_service()
    stage.attack("unix", service.path)
    return service.was_reached()


@attack(holes=(8,))
def unix_datagram_by_path(stage):
    service = stage.unix_service(socket.SOCK_DGRAM)
    stage.attack("unix-dgram", service.path)
    return service.was_reached()


@attack(holes=(8,))
def unix_seqpacket_by_path(stage):
    service = stage.unix_service(socket.SOCK_SEQPACKET)
    stage.attack("unix-seqpacket", service.path)
    return service.was_reached()


@attack(holes=(8,))
def unix_by_path_in_a_workspace_below_tmp(stage):
    """Elsewhere those in the workspace are the command's; here others keep theirs, too."""
    folder = tempfile.mkdtemp(dir="/tmp")
    stage.cleanup.callback(shutil.rmtree, folder)
    service = stage.unix_service(path=f"{folder}/service.sock")
    stage.attack("unix", service.path, cwd=folder)
    return service.was_reached()


@attack(holes=(8,))
def unix_by_path_in_tmpdir(stage):
    service = stage.unix_service(path="tmp/service.sock")
    stage.attack("unix", service.path)
    return service.was_reached()


@attack(holes=(8, 14))
def unix_by_a_datagram_pair(stage):
    """socketpair(2) stays open for asyncio; a datagram end of it sends wherever it likes."""
    service = stage.unix_service(socket.SOCK_DGRAM)
    stage.attack("pair-sendto", service.path)
    return service.was_reached()


@attack(holes=(8, 14))
def unix_by_a_connected_datagram_pair(stage):
    service = stage.unix_service(socket.SOCK_DGRAM)
    stage.attack("pair-connect", service.path)
    return service.was_reached()


@attack(holes=(8,))
def unix_by_io_uring(stage):
    service = stage.unix_service()
    stage.attack("ring-unix", service.path)
    return service.was_reached()


@attack(holes=(8,), machine="x86_64")
def unix_by_a_32_bit_call(stage):
    service = stage.unix_service()
    stage.attack("int80-unix", service.path)
    return service.was_reached()


def abstract_service(stage, kind=socket.SOCK_STREAM):
    name = f"escape-{os.getpid()}-{kind}"
    return stage.service(socket.AF_UNIX, kind, f"\0{name}"), f"@{name}"


@attack()
def abstract_socket(stage):
    service, name = abstract_service(stage)
    stage.attack("unix", name)
    return service.was_reached()


@attack()
def abstract_datagram(stage):
    service, name = abstract_service(stage, socket.SOCK_DGRAM)
    stage.attack("unix-dgram", name)
    return service.was_reached()


@attack()
def abstract_by_a_datagram_pair(stage):
    service, name = abstract_service(stage, socket.SOCK_DGRAM)
    stage.attack("pair-sendto", name)
    return service.was_reached()


@attack()
def abstract_socket_with_the_network_enabled(stage):
    """The host's network namespace is shared then; Landlock's scope holds alone."""
    service, name = abstract_service(stage)
    stage.attack("unix", name, cordon=["--network", "enabled"])
    return service.was_reached()


@attack()
def unix_socket_with_the_network_enabled(stage):
    service = stage.unix_service()
    stage.attack("unix", service.path, cordon=["--network", "enabled"])
    return service.was_reached()


@attack()
def unix_datagram_with_the_network_enabled(stage):
    service = stage.unix_service(socket.SOCK_DGRAM)
    stage.attack("unix-dgram", service.path, cordon=["--network", "enabled"])
    return service.was_reached()


@attack()
def inherited_connection(stage):
    ours, theirs = socket.socketpair()
    stage.cleanup.callback(ours.close)
    stage.cleanup.callback(theirs.close)
    ours.setblocking(False)
    stage.attack("fd-send", theirs.fileno(), fds=[theirs.fileno()])
    try:
        return ours.recv(64) == b"attack"
    except BlockingIOError:
        return False


@attack()
def inherited_listener(stage):
    listener = socket.create_server(("127.0.0.1", 0))
    stage.cleanup.callback(listener.close)
    client = socket.create_connection(listener.getsockname(), timeout=5)
    stage.cleanup.callback(client.close)
    stage.attack("fd-accept", listener.fileno(), fds=[listener.fileno()])
    client.setblocking(False)
    try:
        return client.recv(64) == b"attack"
    except BlockingIOError:
        return False


@attack()
def name_service(stage):
    """A look-up is a datagram like any other."""
    service = stage.service(kind=socket.SOCK_DGRAM)
    script = ("import socket, sys\n"
              "print('@start', flush=True)\n"
              "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
              "s.sendto(b'attack', ('127.0.0.1', int(sys.argv[1])))\n")
    stage.run("/usr/bin/python3", "-c", script, service.port)
    return service.was_reached()


@attack()
def curl_the_host(stage):
    service = stage.service()
    script = ("import sys, urllib.request\n"
              "print('@start', flush=True)\n"
              "urllib.request.urlopen('http://127.0.0.1:' + sys.argv[1], timeout=1)\n")
    stage.run("/usr/bin/python3", "-c", script, service.port)
    try:
        service.socket.accept()[0].close()
        return True
    except BlockingIOError:
        return False


