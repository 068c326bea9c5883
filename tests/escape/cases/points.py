"""Reading what a profile asks about, where nobody says yes: as root by a watchpoint (FUSE), as an
ordinary user, who may have no /dev/fuse, by a mask. Around it, below it, by its descriptor."""

import os

from cases.races import tries
from catalogue import attack

SECRET = "the-secret\n"


def vault(stage, name="outside/vault", text=SECRET, mode=0o644):
    """A folder with a secret in it."""
    stage.file(f"{name}/secret", text, mode)
    return stage.base / name


def asks(stage, *paths, more=""):
    entries = "".join(f'"{path}" = "ask"\n' for path in paths)
    config = stage.file("home/ask.toml", "[permissions.asks]\nextends = \":workspace\"\n"
                        f"{more}[permissions.asks.filesystem]\n{entries}")
    return ["--config", config, "--profile", "asks"]


def nested(stage, *paths):
    return asks(stage, *paths, more="allow_nested_namespaces = true\n")


def has_secret(ran):
    return SECRET.strip() in ran.out


def shell(stage, script, *words, asked=None, bare=(), **kwargs):
    asked = asked or [stage.out / "vault"]
    return has_secret(stage.shell(script, *words, cordon=asks(stage, *asked), bare=bare, **kwargs))


def python(stage, script, *words, asked=None):
    asked = asked or [stage.out / "vault"]
    return has_secret(stage.run("/usr/bin/python3", "-c", f"print('@start', flush=True)\n{script}",
                                *words, cordon=asks(stage, *asked)))


@attack(on_guard=True)
def read_below(stage):
    return shell(stage, 'cat "$1/secret"', vault(stage))


@attack(on_guard=True)
def read_a_single_file(stage):
    file = stage.file("outside/key", SECRET)
    return shell(stage, 'cat "$1"', file, asked=[file])


@attack(on_guard=True)
def list_it(stage):
    stage.file("outside/vault/the-secret")
    return shell(stage, 'ls -aR "$1"; find "$1"; echo "$1"/*', stage.out / "vault")


@attack(on_guard=True)
def read_by_dot_dot(stage):
    vault(stage)
    return shell(stage, 'cat ../outside/./vault/../vault/secret')


@attack(on_guard=True)
def read_from_below(stage):
    (vault(stage) / "deep").mkdir()
    return shell(stage, 'cd "$1/deep" && cat ../secret', stage.out / "vault")


@attack(on_guard=True)
def read_through_a_symlink(stage):
    return shell(stage, 'ln -s "$1" link; cat link/secret; cat "$(readlink -f link/secret)"',
                 vault(stage))


@attack(on_guard=True)
def read_by_proc_self_root(stage):
    return shell(stage, 'cat "/proc/self/root$1/secret" "/proc/self/cwd/../outside/vault/secret"',
                 vault(stage))


@attack(on_guard=True)
def read_by_a_path_descriptor(stage):
    """One of the folder, from before any question, and one of the folder above."""
    return python(stage, """
import os, sys
for place, name in ((sys.argv[1], 'secret'), (os.path.dirname(sys.argv[1]), 'vault/secret')):
    at = os.open(place, os.O_PATH)
    for how in (lambda: os.open(name, os.O_RDONLY, dir_fd=at),
                lambda: os.open(f'/proc/self/fd/{at}/{name}', os.O_RDONLY),
                lambda: (os.fchdir(at), os.open(name, os.O_RDONLY))[1]):
        try:
            print(os.read(how(), 99).decode())
        except OSError as error:
            print(error)
""", vault(stage))


@attack(on_guard=True)
def read_by_an_inherited_folder(stage):
    vault(stage)
    folder = stage.open(stage.out, os.O_RDONLY | os.O_DIRECTORY)
    return shell(stage, f'cat /proc/self/fd/{folder}/vault/secret', fds=[folder])


@attack(on_guard=True)
def read_by_a_hard_link(stage):
    vault(stage, "ws/vault")
    return shell(stage, 'ln vault/secret other; cat other; ln -L vault/secret third; cat third',
                 asked=[stage.ws / "vault"])


@attack(on_guard=True)
def read_after_moving_it(stage):
    vault(stage, "ws/vault")
    return shell(stage, 'mv vault other; cat other/secret', asked=[stage.ws / "vault"])


@attack(on_guard=True)
def read_after_moving_what_is_above(stage):
    vault(stage, "ws/a/b/vault")
    return shell(stage, 'mv a c; cat c/b/vault/secret; mv a/b c; cat c/vault/secret',
                 asked=[stage.ws / "a/b/vault"])


@attack(on_guard=True)
def read_after_exchanging_it(stage):
    vault(stage, "ws/vault")
    return python(stage, """
import ctypes, os
os.mkdir('open')
ctypes.CDLL(None).renameat2(-100, b'vault', -100, b'open', 2)
print(open('open/secret').read())
""", asked=[stage.ws / "vault"])


@attack(on_guard=True)
def read_while_links_are_swapped(stage):
    """A link between an open folder and the watched one, swapped all the time. Only a try with a swap
    since the last one counts: on a loaded machine all tries may fit between two swaps."""
    vault(stage)
    return python(stage, """
import os, sys, threading
os.mkdir('open'); open('open/secret', 'w').write('nothing')
os.symlink('open', 'a'); os.symlink(sys.argv[1], 'b')
swaps, ends = 0, []
def swap():
    global swaps
    while not ends:
        os.rename('a', 'c'); os.rename('b', 'a'); os.rename('c', 'b')
        swaps += 1
thread = threading.Thread(target=swap); thread.start()
tries = seen = 0
while tries < int(sys.argv[2]):
    tries += swaps != seen
    seen = swaps
    try:
        text = open('a/secret').read()
    except OSError:
        continue
    if 'the-secret' in text:
        print(text)
        break
ends.append(1); thread.join()
""", stage.out / "vault", tries(stage))


@attack(on_guard=True)
def execute_below(stage):
    file = stage.file("outside/vault/tool", f"#!/bin/sh\necho {SECRET}", 0o755)
    return shell(stage, '"$1"; sh "$1"; . "$1"', file)


@attack(on_guard=True)
def execute_a_single_file(stage):
    file = stage.file("outside/tool", f"#!/bin/sh\necho {SECRET}", 0o755)
    return shell(stage, '"$1"; sh "$1"', file, asked=[file])


@attack(on_guard=True)
def map_it(stage):
    return python(stage, """
import mmap, sys
with open(sys.argv[1] + '/secret', 'rb') as file:
    print(mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)[:].decode())
""", vault(stage))


@attack(on_guard=True)
def copy_all_around_it(stage):
    vault(stage)
    return shell(stage, 'cp -a "$1" copy; cat copy/vault/secret; tar -c "$1" | tar -x -O',
                 stage.out)


@attack(on_guard=True)
def write_into_it(stage):
    file = vault(stage) / "secret"
    stage.shell('echo planted > "$1"; echo planted >> "$1"; : > "$1"; rm "$1"; chmod 0 "$1"', file,
                cordon=asks(stage, stage.out / "vault"))
    return stage.is_changed(file, SECRET)


@attack(on_guard=True)
def make_names_in_it(stage):
    place = vault(stage, "ws/vault")
    stage.shell('mkdir vault/d; echo x > vault/f; ln -s x vault/l; mkfifo vault/p; touch vault/t',
                cordon=asks(stage, place))
    return sorted(path.name for path in place.iterdir()) != ["secret"]


@attack(on_guard=True)
def connect_to_a_socket_in_it(stage):
    (stage.out / "vault").mkdir()
    service = stage.unix_service(path="outside/vault/service.sock")
    stage.run("/usr/bin/python3", "-c", """
import socket, sys
print('@start', flush=True)
with socket.socket(socket.AF_UNIX) as peer:
    peer.connect(sys.argv[1])
    peer.send(b'attack')
""", service.path, cordon=asks(stage, stage.out / "vault"))
    return service.was_reached()


@attack(on_guard=True)
def read_by_thousands(stage):
    """More than wait at once, and all the time."""
    return python(stage, """
import sys, threading
def read():
    for _ in range(50):
        try:
            print(open(sys.argv[1] + '/secret').read())
        except OSError:
            pass
threads = [threading.Thread(target=read) for _ in range(100)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
""", vault(stage))


@attack(users=("root",), on_guard=True)
def open_the_device(stage):
    """To answer for oneself, or to mount."""
    vault(stage)
    return stage.shell('exec 3<>/dev/fuse && echo "@won"', cordon=asks(stage, stage.out / "vault")
                       ).won


@attack(users=("root",), on_guard=True)
def make_the_device(stage):
    vault(stage)
    return stage.shell('mknod fuse c 10 229 && exec 3<>fuse && echo "@won"',
                       cordon=asks(stage, stage.out / "vault")).won


@attack(users=("root",), on_guard=True)
def take_the_descriptor(stage):
    """Of whoever answers: seen in /proc, it could be opened, or taken."""
    vault(stage)
    held = stage.open("/dev/fuse", os.O_RDWR)
    return stage.run("/usr/bin/python3", "-c", """
import ctypes, glob, os
print('@start', flush=True)
libc = ctypes.CDLL(None)
for path in glob.glob('/proc/[0-9]*/fd/*'):
    try:
        if os.readlink(path) == '/dev/fuse':
            print('@won', path)
    except OSError:
        pass
for pid in range(1, 60):
    fd = libc.syscall(434, pid, 0)
    for number in range(60 if fd >= 0 else 0):
        copy = libc.syscall(438, fd, number, 0)
        if copy >= 0 and os.readlink(f'/proc/self/fd/{copy}') == '/dev/fuse':
            print('@won', pid, number)
""", fds=[held] if not stage.inside else [], cordon=asks(stage, stage.out / "vault")).won


@attack(on_guard=True)
def take_it_away_in_a_nested_namespace(stage):
    """What was inherited by a namespace of less privilege cannot be taken away one by one."""
    place = vault(stage)
    return has_secret(stage.shell(
        'unshare -rm sh -c \'[ -z "$2" ] || mount -t tmpfs none "$1"; umount "$1"; umount -l "$1"; '
        'cat "$1/secret"\' sh "$1" "$2"', place, "" if stage.inside else "bare",
        cordon=nested(stage, place)))


@attack(on_guard=True)
def look_beside_it_in_a_nested_namespace(stage):
    """A copy of the mounts above it, without those that lie on them; an overlay over them; other
    propagation."""
    place = vault(stage)
    return has_secret(stage.shell(
        'mkdir copy; unshare -rm sh -c \'mount --bind "$1" copy && cat copy/vault/secret; '
        'umount copy; mount -t overlay -o lowerdir="$1":/usr none copy && cat copy/vault/secret; '
        'mount --make-rshared /; mount --make-rslave /; cat "$1/vault/secret"\' sh "$1"',
        place.parent, cordon=nested(stage, place)))


@attack(on_guard=True)
def look_by_a_root_of_ones_own(stage):
    place = vault(stage)
    return has_secret(stage.shell(
        'mkdir root; unshare -rm sh -c \'mount --rbind / root && cd root && pivot_root . . && '
        'umount -l .; cat "$1/secret"; chroot . cat "$1/secret"\' sh "$1"', place,
        cordon=nested(stage, place)))


@attack(users=("root",), on_guard=True)
def open_by_handle(stage):
    file = vault(stage) / "secret"
    handle = stage.tool("handle", file).split("@handle ")[1].strip()
    return has_secret(stage.attack("open-handle", stage.ws, handle,
                                   cordon=asks(stage, stage.out / "vault")))


@attack(on_guard=True)
def read_what_stays_denied_in_it(stage):
    """An entry in an asking one is covered below it, too."""
    vault(stage, "outside/vault/inner")
    config = asks(stage, stage.out / "vault")
    with open(config[1], "a", encoding="utf-8") as file:
        file.write(f'"{stage.out}/vault/inner" = "deny"\n')
    return has_secret(stage.shell('cat "$1/vault/inner/secret"', stage.out, cordon=config))
