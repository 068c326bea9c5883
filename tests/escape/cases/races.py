"""Races with the guard: what a call is about changes while it is judged. Inside, each tries
CORDON_TRIES times (stage.tries); bare, each wins after a few."""

import os
import socket

from catalogue import attack
from stage import WAIT

BARE_TRIES = 200_000  # it stops when it has won


def tries(stage, bare=BARE_TRIES):
    return stage.tries if stage.inside else bare


def race(stage, *words, bare=BARE_TRIES, **kwargs):
    """The attack, which stops itself; the time is for a million tries."""
    return stage.attack(*words, tries(stage, bare), timeout=max(WAIT, stage.tries // 500),
                        **kwargs)


def scene(stage):
    """The folder to which everything harmless goes."""
    (stage.ws / "sub/deep").mkdir(parents=True)
    return stage.ws / "sub/source"


def register(play, name):
    play.__name__ = name.replace("-", "_")
    attack(on_guard=True)(play)


# -- the text of a path, by all who can share memory, for every call that makes a name

EVERY_CALL = ("openat", "openat-exclusive", "mkdirat", "mknodat-file", "mknodat-fifo", "symlinkat",
              "linkat", "linkat-descriptor", "tmpfile", "renameat2", "renameat2-folder",
              "renameat2-noreplace", "bind")
SOME_CALLS = ("openat", "mkdirat", "renameat2-folder")


def text_race(how, call, name="the_name"):
    def play(stage):
        source, texts = scene(stage), [stage.ws / "sub/.git", f"{stage.ws}/.//.git"]
        if name == "the_name":
            texts = [stage.ws / "agit", stage.ws / ".git"]
        race(stage, "race-text", how, call, source, *texts)
        return os.path.lexists(stage.ws / ".git")
    register(play, f"rewrite_{name}_of_{call}_by_a_{how}")


for each in EVERY_CALL:
    text_race("thread", each)
for each in SOME_CALLS:
    text_race("process", each)
    text_race("vfork", each)
    text_race("thread", each, "the_parent")


# -- the directory of the caller

def directory_race(how, call):
    def play(stage):
        source = scene(stage)
        race(stage, "race-dir", how, call, source, stage.ws / "sub", stage.ws, ".codex")
        return os.path.lexists(stage.ws / ".codex")
    register(play, f"change_the_directory_of_{call}_by_{how}")


for each in SOME_CALLS:
    for way in ("cwd", "fd", "proc", "proc-cwd"):
        directory_race(way, each)


# -- names on the way

def swap_race(call):
    def play(stage):
        source = scene(stage)
        (stage.ws / "sub/folder").mkdir()
        (stage.ws / "sub/link").symlink_to(stage.ws)
        race(stage, "race-swap", call, source, stage.ws / "sub/folder", stage.ws / "sub/link",
             ".aws", stage.ws / ".aws")
        return os.path.lexists(stage.ws / ".aws")
    register(play, f"swap_a_link_on_the_way_of_{call}")


def move_race(call):
    def play(stage):
        source = scene(stage)
        (stage.ws / "sub/m/b").mkdir(parents=True)
        race(stage, "race-move", call, source, stage.ws / "sub/m/b", stage.ws / "sub/b",
             "../../.agents", stage.ws / ".agents")
        return os.path.lexists(stage.ws / ".agents")
    register(play, f"move_the_parent_of_{call}")


for each in SOME_CALLS:
    swap_race(each)
    move_race(each)


def denied_race(call):
    """The folder of a denied file that is missing takes turns with another one."""
    def play(stage):
        source = scene(stage)
        (stage.ws / "keep").mkdir()
        (stage.ws / "sub/link").symlink_to(stage.ws / "keep")
        (stage.ws / "sub/folder").mkdir()
        race(stage, "race-swap", call, source, stage.ws / "sub/folder", stage.ws / "sub/link",
             "secret", stage.ws / "keep/secret", cordon=["--deny", stage.ws / "keep/secret"])
        return os.path.lexists(stage.ws / "keep/secret")
    register(play, f"swap_a_link_to_a_denied_name_of_{call}")


for each in SOME_CALLS:
    denied_race(each)


# -- what is renamed or linked

def source_race(call, what):
    def play(stage):
        scene(stage)
        victim = stage.file({"protected": "ws/.codex/config.toml", "outside": "outside/victim",
                             "denied": "ws/denied"}[what])
        race(stage, "race-source", call, stage.ws / "sub/source", victim, stage.ws / "taken",
             cordon=["--deny", victim] if what == "denied" else [])
        taken = stage.ws / "taken"
        return taken.exists() and "original" in taken.read_text()
    register(play, f"take_a_{what}_file_by_{call}")


for each in ("renameat2", "linkat", "linkat-descriptor"):
    for kind in ("protected", "outside", "denied"):
        if (each, kind) != ("linkat-descriptor", "denied"):
            source_race(each, kind)


def source_race_between_roots(call, name):
    """What it would be taken to is another root, which the guard alone can do."""
    def play(stage):
        scene(stage)
        victim = stage.file(f"ws/in/{name}")
        race(stage, "race-source", call, stage.ws / "in/source", victim, stage.ws / "taken",
             cordon=["--writable", stage.ws / "in"])
        taken = stage.ws / "taken"
        return taken.exists() and "original" in taken.read_text()
    register(play, f"take_{name.replace('.', '').replace('/', '_')}_to_another_root_by_{call}")


for each in ("renameat2", "linkat", "linkat-descriptor"):
    for kind in (".git", ".codex/config.toml"):
        source_race_between_roots(each, kind)


@attack(on_guard=True)
def swap_the_folder_of_what_is_taken_to_another_root(stage):
    """Its folder takes turns with a link to a protected one."""
    victim = stage.file("ws/in/.codex/source")
    (stage.ws / "in/folder").mkdir()
    (stage.ws / "in/link").symlink_to(".codex")
    scene(stage)
    race(stage, "race-swap", "renameat2", stage.ws / "sub/source", stage.ws / "in/folder", stage.ws / "in/link",
         "config.toml", stage.ws / "in/.codex/config.toml", cordon=["--writable", stage.ws / "in"])
    return os.listdir(victim.parent) != ["source"]


# -- files that are there

O_WRONLY, O_RDWR, O_CREAT, O_TRUNC = 1, 2, 0o100, 0o1000


def write_race(name, flags, target):
    """The harmless path differs by one byte, so that nobody reads a mixture of both, a third name."""
    def play(stage):
        file = stage.base / target
        if "new" not in name and "new" not in target:
            stage.file(target)
        folder, _, rest = target.partition("/")
        harmless = stage.ws / rest.replace(".", "a", 1)
        if folder != "ws":
            harmless = stage.base / f"{folder[:-1]}_" / rest
            harmless.parent.symlink_to(stage.ws)
        harmless.parent.mkdir(exist_ok=True)
        race(stage, "race-write", flags, harmless, file)
        return file.exists() and "owned" in file.read_text()
    register(play, f"write_{name}")


write_race("outside_by_a_race", O_WRONLY | O_CREAT, "outside/victim")
write_race("outside_by_a_race_that_truncates", O_RDWR | O_CREAT | O_TRUNC, "outside/victim")
write_race("outside_by_a_race_for_what_is_there", O_WRONLY, "outside/victim")
write_race("a_new_file_outside_by_a_race", O_WRONLY | O_CREAT, "outside/new")
write_race("a_protected_file_by_a_race", O_RDWR | O_CREAT, "ws/.codex/config.toml")
write_race("a_new_protected_file_by_a_race", O_RDWR | O_CREAT, "ws/.git")
write_race("below_home_by_a_race", O_RDWR | O_CREAT, "home/new")


@attack(on_guard=True)
def read_a_denied_file_by_a_race(stage):
    file = stage.file("ws/denied", "the-secret\n")
    ran = race(stage, "race-read", stage.ws / "aenied", file, cordon=["--deny", file])
    return "the-secret" in ran.out


@attack(on_guard=True)
def rewrite_the_flags_of_openat2(stage):
    """Its flags are in memory, as no other call's."""
    race(stage, "race-how", stage.ws / ".git")
    return os.path.lexists(stage.ws / ".git")


@attack(on_guard=True)
def rewrite_the_path_of_execve(stage):
    program = stage.file("ws/program", "#!/bin/sh\necho @won the program ran\n", 0o755)
    return race(stage, "race-exec", stage.ws / "missing", program, cordon=["--deny", program]).won


# -- sockets

def socket_race(name, call, kind, own):
    """`own`: what the command may reach; bare and inside it makes that itself."""
    def play(stage):
        service = stage.unix_service(kind, "outside/b.sock")
        mine = own if own.startswith("@") else stage.base / own
        bare = 5000 if kind == socket.SOCK_DGRAM else BARE_TRIES  # who sends does not see it
        race(stage, "race-socket", call, int(kind), mine, service.path, bare=bare)
        return service.was_reached()
    register(play, f"rewrite_an_address_{name}")


socket_race("of_connect", "connect", socket.SOCK_STREAM, "ws/sub.sock")
socket_race("of_a_sequenced_connect", "connect", socket.SOCK_SEQPACKET, "ws/sub.sock")
socket_race("in_tmpdir", "connect", socket.SOCK_STREAM, "tmp/sub.sock")
socket_race("that_is_abstract", "connect", socket.SOCK_STREAM, "@escape-own")
socket_race("of_sendto", "sendto", socket.SOCK_DGRAM, "ws/sub.sock")
socket_race("of_sendmsg", "sendmsg", socket.SOCK_DGRAM, "ws/sub.sock")
socket_race("of_sendmmsg", "sendmmsg", socket.SOCK_DGRAM, "ws/sub.sock")
socket_race("of_an_abstract_datagram", "sendto", socket.SOCK_DGRAM, "@escape-own")


def abstract_race(stage, **kwargs):
    name = f"escape-race-{stage.base.name}"
    service = stage.service(socket.AF_UNIX, socket.SOCK_STREAM, f"\0{name}")
    race(stage, "race-socket", "connect", int(socket.SOCK_STREAM), stage.ws / "own.sock",
         f"@{name}", **kwargs)
    return service.was_reached()


@attack(on_guard=True)
def rewrite_a_path_to_a_host_abstract_address(stage):
    return abstract_race(stage)


@attack(on_guard=True)
def rewrite_a_path_to_a_host_abstract_address_with_the_network_enabled(stage):
    return abstract_race(stage, cordon=["--network", "enabled"])


@attack(on_guard=True)
def swap_a_socket_for_a_link(stage):
    service = stage.unix_service(path="outside/b.sock")
    (stage.ws / "link").symlink_to(service.path)
    race(stage, "race-socket-swap", stage.ws / "own.sock", stage.ws / "link", service.path)
    return service.was_reached()


@attack(on_guard=True)
def make_the_parts_of_a_repository_at_once(stage):
    ran = race(stage, "race-parts", stage.ws, 1000 if stage.inside else 300_000)
    return ran.won
