"""What a command in a change layer does to the real files before anybody accepts: nothing, in a workspace that it may write to,
and to which it has the real files' own folder below. And what it forges for whoever accepts: nothing either."""

import os
import stat

from catalogue import attack

LAYER = ["--layer", "--at-end", "keep"]
BARE = ["unshare", "-rm", "--propagation", "private"]
PYTHON = "import ctypes, mmap, os, sys; print('@start', flush=True); "


def looks(folder):
    """All that there is to see of what is really there."""
    found = {}
    for place, dirs, files in os.walk(folder):
        for name in [".", *dirs, *files]:
            path = os.path.join(place, name)
            st = os.lstat(path)
            text = b""
            if stat.S_ISREG(st.st_mode):
                with open(path, "rb") as file:
                    text = file.read()
            found[path] = (st.st_mode, st.st_uid, st.st_ino, st.st_mtime_ns, st.st_ctime_ns, st.st_nlink,
                           tuple(os.listxattr(path, follow_symlinks=False)), text)
    return found


def scene(stage):
    stage.file("ws/victim")
    stage.file("ws/folder/inner")
    os.link(stage.file("outside/linked"), stage.ws / "linked")


def changing(name, run):
    """`run` changes the workspace, and with it the real files where there is no layer."""
    def play(stage):
        scene(stage)
        before = [looks(stage.ws), looks(stage.out)]
        run(stage)
        return [looks(stage.ws), looks(stage.out)] != before
    play.__name__ = name
    attack(on_guard=True)(play)


CALLS = {
    "write": ["victim"], "truncate": ["victim"], "unlink": ["victim"], "utimes": ["victim"], "setxattr": ["victim"], "map_write": ["victim"], "create": ["new"],
    "tmpfile": [".", "new"], "mkdir": ["new"], "symlink": ["victim", "new"], "rename": ["victim", "moved"],
    "exchange": ["victim", "folder/inner"], "link_write": ["victim", "other"],
}
for call, words in CALLS.items():
    changing(f"{call}_in_the_workspace",
             lambda stage, call=call, words=words: stage.attack(call.replace("_", "-"), *words, cordon=LAYER))

SCRIPTS = {
    "change_a_mode": "chmod 600 victim",
    "write_what_is_linked_outside": "echo new > linked",
    "write_by_the_root_of_proc": 'echo new > "/proc/self/root/$PWD/victim"',
    "write_by_the_root_of_the_init": 'echo new > "/proc/1/root/$PWD/victim" || echo new > victim',
    "write_by_the_folder_of_proc": "echo new > /proc/self/cwd/victim",
    "reopen_what_was_open_before_it_was_copied": "exec 3< victim; echo new >> victim; echo more > /proc/self/fd/3; "
                                                 "chmod 600 /proc/self/fd/3",
    "write_by_a_link_to_what_was_open_before": "exec 3< victim; echo a > victim; ln -L /proc/self/fd/3 other; echo b > other",
    "remove_a_folder": "rm -r folder",
    "remove_and_make_again": "rm -r folder; mkdir folder; echo new > folder/inner",
    "move_over_it_from_tmp": 'echo new > "$TMPDIR/new"; mv "$TMPDIR/new" victim',
    "change_the_mode_of_the_root_itself": "chmod 700 .",
}
for title, script in SCRIPTS.items():
    changing(title, lambda stage, script=script: stage.shell(script, cordon=LAYER))

PROGRAMS = {
    "write_by_a_mapping_from_before": "f = os.open('victim', os.O_RDWR); m = mmap.mmap(f, 4); os.rename('victim', 'moved'); m[:4] = b'evil'",
    "write_by_a_folder_that_was_open_before": "d = os.open('folder', 0); os.rename('folder/inner', 'x'); os.close(os.open('inner', 65, "
                                              "dir_fd=d)); os.mkdir('y', dir_fd=d)",
    "write_by_a_socket_that_carries_it": "import array, socket; a, b = socket.socketpair(); f = os.open('victim', os.O_RDWR); "
                                         "a.sendmsg([b'x'], [(1, 1, array.array('i', [f]))]); "
                                         "g = array.array('i', b.recvmsg(1, 64)[1][0][2])[0]; os.unlink('victim'); os.write(g, b'evil')",
}
for title, program in PROGRAMS.items():
    changing(title, lambda stage, program=program: stage.run("python3", "-c", PYTHON + program, cordon=LAYER))


# -- what would mean something to whoever reads the layer

def uppers(stage):
    """Where what was written lies: the layers' own folders, or the workspace itself."""
    if not stage.inside:
        return [stage.ws]
    return list((stage.home / ".local/state/cordon/layers").glob("*/roots/*/*/up"))


def each(stage):
    for top in uppers(stage):
        for place, dirs, files in os.walk(top):
            for name in [*dirs, *files]:
                yield os.path.join(place, name)


def forging(name, program, is_forged, users=("root", "user")):
    def play(stage):
        scene(stage)
        stage.run("python3", "-c", PYTHON + program, cordon=LAYER)
        return [path for path in each(stage) if is_forged(path)]
    play.__name__ = name
    attack(on_guard=True, users=users)(play)


def is_whiteout(path):
    st = os.lstat(path)
    return stat.S_ISCHR(st.st_mode) and st.st_rdev == 0


def has(*names):
    return lambda path: set(names) & set(os.listxattr(path, follow_symlinks=False))


forging("make_a_whiteout", "os.mknod('gone', 0o20000, 0)", is_whiteout)
forging("leave_a_whiteout_by_renaming", "open('mine', 'w'); ctypes.CDLL(None).renameat2(-100, b'mine', -100, b'moved', 4)",
        is_whiteout)
for key in ("opaque", "redirect", "metacopy", "upper", "impure"):
    forging(f"say_{key}_of_a_folder",
            f"os.mkdir('mine'); os.setxattr('mine', 'user.overlay.{key}', b'y')",
            lambda path, key=key: path.endswith("/mine") and has(f"user.overlay.{key}")(path))
forging("say_opaque_as_root", "os.mkdir('mine'); os.setxattr('mine', 'trusted.overlay.opaque', b'y')",
        has("trusted.overlay.opaque"), users=("root",))


# -- the mounts

MOUNTED = [*BARE, "sh", "-c", 'mkdir ../up ../wk && mount -t overlay -o userxattr,lowerdir="$PWD",upperdir=../up,workdir=../wk none '
           '"$PWD" && cd "$PWD" && exec "$@"', "sh"]
UNMOUNTING = {
    "unmount_it": 'umount -l "$1"; echo new > "$1/victim"',
    "unmount_all_of_it": 'umount -lR "$1"; echo new > "$1/victim"',
    "move_it_away": 'mkdir "$TMPDIR/away"; mount --move "$1" "$TMPDIR/away"; echo new > "$1/victim"',
    "look_below_its_folder": 'mkdir "$TMPDIR/all"; mount --bind "${1%/*}" "$TMPDIR/all"; echo new > "$TMPDIR/all/ws/victim"',
    "look_below_it_in_a_namespace_of_its_own": "mkdir all; unshare -rm sh -c 'mount --bind \"${1%/*}\" all; echo new > all/ws/victim' "
                                               'sh "$1"; umount -l "$1"; echo new > "$1/victim"',
}
for title, script in UNMOUNTING.items():
    def unmount(stage, script=script):
        scene(stage)
        stage.shell(script, stage.ws, cordon=[*LAYER, "--tmp", "host"], bare=MOUNTED)
        return stage.is_changed(stage.ws / "victim")
    unmount.__name__ = title
    attack(on_guard=True)(unmount)


# -- where layers are kept

def kept(stage):
    file = stage.file("home/.local/state/cordon/layers/0123456789abcdef/roots/0/0001/up/key", "the secret\n")
    for folder in list(file.parents)[:6]:
        folder.chmod(0o700)
    return file


@attack(on_guard=True)
def read_what_a_layer_holds(stage):
    return "the secret" in stage.shell('cat "$1"', kept(stage)).out


@attack(on_guard=True)
def read_what_another_layer_holds(stage):
    return "the secret" in stage.shell('cat "$1"', kept(stage), cordon=LAYER).out


@attack(on_guard=True)
def list_the_layers(stage):
    folder = kept(stage).parents[5]
    return "0123456789abcdef" in stage.shell('ls "$1"', folder, cordon=LAYER).out


@attack(on_guard=True)
def write_into_a_layer(stage):
    """Also where the home folder may be written."""
    file = kept(stage)
    stage.shell('echo new > "$1"', file, cordon=["--writable", stage.home])
    return stage.is_changed(file, "the secret\n")


@attack(on_guard=True)
def make_a_layer_where_there_was_none(stage):
    """It would say what is gone on with after a kill, and where."""
    folder = stage.home / ".local/state/cordon/layers"
    stage.shell('mkdir -p "$1/0123456789abcdef"', folder, cordon=["--writable", stage.home])
    return (folder / "0123456789abcdef" if stage.in_layer else folder).exists()


@attack(on_guard=True)
def write_into_another_layer(stage):
    file = kept(stage)
    stage.shell('echo new > "$1"', file, cordon=[*LAYER, "--writable", stage.home])
    return stage.is_changed(file, "the secret\n")


@attack(on_guard=True)
def write_into_its_own_upper(stage):
    """Where the mounts say it is."""
    scene(stage)
    stage.shell('up=$(sed -n "s/.*upperdir=\\([^,]*\\).*/\\1/p" /proc/self/mountinfo | head -n 1); echo a > made; '
                'echo new > "$up/planted"', cordon=LAYER, bare=MOUNTED)
    tops = [stage.base / "up"] if not stage.inside else uppers(stage)
    return any((top / "planted").exists() for top in tops)


# -- root, whose layer maps every user

def of_another(name, script):
    def play(stage):
        scene(stage)
        secret = stage.file("ws/secret", "the secret\n", 0o600)
        os.chown(secret, 1500, 1500)
        return "@won" in stage.shell(script, cordon=LAYER).out
    play.__name__ = name
    attack(on_guard=True, users=("root",), needs_host=True)(play)


of_another("read_a_file_of_another_user", "grep -q secret secret && echo @won")
of_another("write_a_file_of_another_user", "echo new > secret && echo @won")
of_another("change_the_mode_of_another_users_file", "chmod 666 secret && echo @won")
of_another("give_a_file_to_another_user", "chown 1501 victim && echo @won")
of_another("become_another_user", "setpriv --reuid 1500 --clear-groups true && echo @won")
of_another("make_a_device", "mknod disk b 8 0 && echo @won")
