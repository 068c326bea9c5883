"""Attacks on the guard itself: calls given up, doubled and interrupted, filters, tracers and roots of
the command's own, and what it does with rights that the command has not."""

import os
import stat
import subprocess

from catalogue import attack
from cases.races import register, scene, tries


def is_there(stage, name=".git"):
    return os.path.lexists(stage.ws / name)


def simple(name, *words, folder=".git", **options):
    """An attack whose last word is the name that must not come to be."""
    def play(stage):
        scene(stage)
        stage.attack(*(str(word).format(ws=stage.ws, tries=tries(stage)) for word in words))
        return is_there(stage, folder)
    play.__name__ = name
    attack(on_guard=True, **options)(play)


# -- many, and none that waits for its answer

simple("storm_of_threads", "storm", 200, 5, "{ws}/.git")
simple("end_while_asked", "storm-exit", 60, "{ws}/.git")
simple("exec_while_asked", "storm-exec", 40, "{ws}/.git")
simple("share_all_but_the_name", "twins", 3, "{ws}/.git")
simple("outlive_the_leading_thread", "zombie", "{ws}/.git")

# -- signals

for flags, kind in (("0", "that_interrupt"), ("0x10000000", "that_restart"),
                    ("0x40000000", "that_nest")):
    for call in ("mkdirat", "openat", "renameat2"):
        simple(f"signals_{kind}_{call}", "signals", flags, call, "{ws}/sub/source", "{ws}/agit",
               "{ws}/.git", 400)

# -- filters and tracers

simple("filter_that_allows", "own-allow", "{ws}/.git")
simple("filter_that_logs", "own-log", "{ws}/.git")
simple("filter_that_traps", "own-trap", "{ws}/.git")
simple("listener_of_its_own", "own-listener", "{ws}/.git")
for how in ("entry", "seccomp", "path"):
    simple(f"tracer_at_the_{how}", "traced", how, "{ws}/.git", machine="x86_64")


@attack(on_guard=True)
def steal_the_listener(stage):
    return stage.attack("steal-listener", *([] if stage.inside else ["own"])).won


# -- memory

for kind in ("plain", "comes-and-goes", "write-only", "execute-only"):
    simple(f"path_in_memory_{kind}".replace("-", "_"), "bad-memory", kind, "{ws}/.git", 300)
for call in ("mkdirat", "openat", "renameat2", "linkat", "bind"):
    simple(f"hide_the_memory_of_{call}", "undumpable", call, "{ws}/sub/source", "{ws}/.git")

# -- roots and namespaces

simple("call_from_a_user_namespace", "own-namespace", "{ws}/.git")


@attack(on_guard=True)
def call_from_a_root_of_its_own(stage):
    stage.attack("own-root", stage.ws, ".git")
    return is_there(stage)


@attack(on_guard=True)
def call_from_a_root_below(stage):
    """`/` is the folder, `/../.git` the same."""
    stage.attack("own-root", stage.ws, "../../.git")
    return is_there(stage)


# -- folders that a name is missing in

def deny_missing(stage, script, path="keep/secret", target=None):
    (stage.ws / "keep/deep").mkdir(parents=True)
    (stage.ws / "sub").mkdir()
    denied = stage.ws / path
    stage.shell(script, stage.ws, cordon=["--deny", denied])
    return os.path.lexists(target or denied)


def denied(name, script, path="keep/secret"):
    def play(stage):
        return deny_missing(stage, script, path)
    register(play, name)


denied("make_a_denied_file", "echo x > keep/secret")
denied("make_a_denied_folder", "mkdir -p keep/secret/below")
denied("make_a_denied_link", "ln -s /nowhere keep/secret")
denied("make_a_denied_file_by_a_link", "ln -s keep/secret link; echo x > link")
denied("move_to_a_denied_name", "echo x > sub/x; mv sub/x keep/secret")
denied("hard_link_to_a_denied_name", "echo x > sub/x; ln sub/x keep/secret")
denied("exchange_the_folder_of_a_denied_name", "mkdir other; echo x > other/secret; "
       "python3 -c 'import ctypes; ctypes.CDLL(None).renameat2(-100, b\"other\", -100, b\"keep\", 2)'")
denied("replace_the_folder_of_a_denied_name", "mv keep old; mkdir keep; echo x > keep/secret")
denied("move_a_prepared_folder_of_a_denied_name", "mv keep old; mkdir new; echo x > new/secret;"
       "mv new keep")
denied("link_the_folder_of_a_denied_name", "mv keep old; mkdir new; echo x > new/secret;"
       "ln -s new keep")
denied("remove_the_folder_of_a_denied_name", "rm -r keep; mkdir keep; echo x > keep/secret")
denied("make_a_denied_name_below_missing_folders", "mkdir -p a/b; echo x > a/b/secret",
       "a/b/secret")
denied("move_a_folder_over_missing_folders", "mkdir -p sub/b; echo x > sub/b/secret; mv sub a",
       "a/b/secret")
denied("link_missing_folders", "mkdir -p sub/b; echo x > sub/b/secret; ln -s sub a", "a/b/secret")
denied("make_a_deep_denied_name", "mv keep/deep x; mkdir -p keep/deep; echo x > keep/deep/secret",
       "keep/deep/secret")
denied("move_a_parent_of_a_denied_name", "mv keep x; mkdir -p keep/deep; "
       "echo x > keep/deep/secret", "keep/deep/secret")


@attack(on_guard=True)
def move_a_name_in_from_another_root(stage):
    stage.file("tmp/other/config", "x\n")
    stage.shell('mv "$TMPDIR/other" .git || cp -r "$TMPDIR/other" .git')
    return is_there(stage)


@attack(on_guard=True)
def move_a_root_into_another(stage):
    """A nested repository may be made; moved, it would be the root's own."""
    stage.shell("mkdir -p sub && git init -q sub && mv sub/.git .git")
    return is_there(stage)


@attack(on_guard=True)
def exchange_a_nested_repository(stage):
    stage.shell("git init -q sub; mkdir x; python3 -c 'import ctypes; "
                'ctypes.CDLL(None).renameat2(-100, b"sub/.git", -100, b"x", 2)\'; mv x .git')
    return is_there(stage)


@attack(on_guard=True)
def name_it_with_a_slash_and_a_dot(stage):
    scene(stage)
    stage.attack("place", stage.ws / ".git", f"{stage.ws}/.git/.", f"{stage.ws}/.git/",
                 f"{stage.ws}/sub/../.git", f"{stage.ws}/.git//", f"{stage.ws}/sub/./../.git")
    return is_there(stage)


@attack(on_guard=True)
def name_a_deep_path(stage):
    """Longer than any path that can be said at once."""
    stage.attack("deep", ".git")
    subprocess.run(["rm", "-rf", *stage.ws.glob("d*")], check=True)  # too deep for most
    return is_there(stage)


# -- rights: the guard has some that the command has not

def foreign(stage, mode=0o755):
    """A folder of somebody else's in the workspace."""
    folder = stage.ws / "foreign"
    folder.mkdir()
    os.chown(folder, 64998, 64998)
    folder.chmod(mode)
    return folder


def rights(name, script, mode=0o755, found="foreign/new"):
    """For root without capabilities the mode of a folder counts."""
    def play(stage):
        folder = foreign(stage, mode)
        for mine in ("mine", "foreign/theirs"):
            stage.file(f"ws/{mine}")
        os.chown(folder / "theirs", 64998, 64998)
        stage.shell(script)
        return os.path.lexists(stage.ws / found)
    play.__name__ = name
    attack(on_guard=True, users=("root",), needs_host=True)(play)


rights("create_in_a_foreign_folder", "echo x > foreign/new")
rights("make_a_folder_in_a_foreign_folder", "mkdir foreign/new")
rights("link_in_a_foreign_folder", "ln mine foreign/new")
rights("make_a_symlink_in_a_foreign_folder", "ln -s x foreign/new")
rights("make_a_fifo_in_a_foreign_folder", "mkfifo foreign/new")
rights("move_into_a_foreign_folder", "mv -n mine foreign/new")
rights("move_out_of_a_foreign_folder", "mv -n foreign/theirs taken", found="taken")
rights("move_in_a_sticky_folder", "mv -n foreign/theirs foreign/new", mode=0o1777)
rights("bind_in_a_foreign_folder", "python3 -c 'import socket; "
       "socket.socket(socket.AF_UNIX).bind(\"foreign/new\")'")


@attack(on_guard=True, users=("root",), needs_host=True)
def make_a_device(stage):
    stage.shell("mknod null c 1 3")
    return is_there(stage, "null")


@attack(on_guard=True, users=("root",), needs_host=True)
def make_a_block_device(stage):
    stage.shell("mknod null b 7 0")
    return is_there(stage, "null")


@attack(on_guard=True, users=("root",), needs_host=True)
def truncate_a_foreign_file_by_making_it(stage):
    foreign(stage, 0o777)
    file = stage.file("ws/foreign/theirs")
    os.chown(file, 64998, 64998)
    stage.shell(": > foreign/theirs")
    return stage.is_changed(file)


@attack(on_guard=True)
def create_in_a_folder_that_may_not_be_written(stage):
    """Its mode says so to the guard as well."""
    outside = stage.out / "new"
    (stage.ws / "link").symlink_to(stage.out)
    stage.shell("echo x > link/new; mkdir link/new; ln -s x link/new; mkfifo link/new")
    return os.path.lexists(outside)


@attack(on_guard=True)
def rename_to_the_outside(stage):
    stage.file("ws/mine")
    (stage.ws / "link").symlink_to(stage.out)
    stage.attack("move", stage.ws / "mine", stage.ws / "link/new")
    return os.path.lexists(stage.out / "new")


@attack(on_guard=True)
def rename_from_the_outside(stage):
    file = stage.victim_file()
    (stage.ws / "link").symlink_to(stage.out)
    stage.attack("move", stage.ws / "link/victim", stage.ws / "mine")
    return not file.exists()


@attack(on_guard=True)
def create_on_what_is_read_only(stage):
    """A protected folder that is there has a mount of its own, which the guard passes, too."""
    stage.file("ws/.codex/config.toml")
    stage.shell("echo x > .codex/new; mkdir .codex/new; ln .codex/config.toml .codex/new; "
                "mv .codex/config.toml .codex/new; ln -s x .codex/new; mkfifo .codex/new")
    return os.path.lexists(stage.ws / ".codex/new")


@attack(on_guard=True)
def exchange_with_what_is_read_only(stage):
    file = stage.file("ws/.codex/config.toml")
    stage.file("ws/mine", "planted\n")
    stage.attack("exchange", stage.ws / "mine", file)
    return stage.is_changed(file)


@attack(on_guard=True)
def set_user_id_on_a_file_outside(stage):
    """The bits of a mode reach only what the command makes itself."""
    file = stage.victim_file()
    stage.shell('chmod 4755 "$1"; install -m 4755 /bin/true "$2"/new', file, stage.out)
    return file.stat().st_mode & stat.S_ISUID or (stage.out / "new").exists()


@attack(on_guard=True)
def see_the_guard(stage):
    """Its process is none that the command sees. Bare, any process of the host is seen."""
    stage.victim()
    said = stage.shell("cat /proc/[0-9]*/comm").out.splitlines()
    return ("cordon-guard" if stage.inside else "attacks") in said


# -- set-group-id: on directories, which the guard changes, but on no file of root's

FLIP = """
import ctypes, mmap, os, stat, sys
libc = ctypes.CDLL(None)
memory = mmap.mmap(-1, 4096)
text = ctypes.c_char.from_buffer(memory)
paths = [b"folder\\0", b"file\\0\\0\\0"]
memory[:7] = paths[0]
os.symlink("folder", "a"); os.symlink("file", "b")
parent = os.getpid()
if (child := os.fork()) == 0:
    while os.getppid() == parent:
        for path in paths:
            memory[:7] = path
            libc.renameat2(-100, b"a", -100, b"b", 2)
print("@start", flush=True)
for turn in range(int(sys.argv[1])):
    libc.chmod(ctypes.byref(text), 0o2755)
    libc.chmod(b"a", 0o2755)
    if os.stat("file").st_mode & stat.S_ISGID:
        break
os.kill(child, 9)
"""


def set_group_id(name, script):
    def play(stage):
        file = stage.file("ws/file")
        (stage.ws / "folder").mkdir()
        stage.shell(script)
        return file.stat().st_mode & stat.S_ISGID
    play.__name__ = f"set_group_id_{name}"
    attack(on_guard=True, users=("root",))(play)


set_group_id("on_a_file", "chmod 2755 file; chmod g+s file; chmod 02755 ./folder/../file")
set_group_id("on_a_file_by_a_link", "ln -s file link; chmod 2755 link")
set_group_id("on_a_file_by_a_descriptor", "/usr/bin/python3 -c 'import os; os.chmod(os.open(\"file\", 2), 0o2755)'")
set_group_id("on_a_file_by_proc", "/usr/bin/python3 -c 'import os; f = os.open(\"file\", os.O_PATH); "
             "os.chmod(f\"/proc/self/fd/{f}\", 0o2755)'")
set_group_id("on_an_empty_path", "/usr/bin/python3 -c 'import ctypes, os; ctypes.CDLL(None).syscall(452, "
             "os.open(\"file\", os.O_PATH), b\"\", 0o2755, 0x1000)'")
set_group_id("with_the_upper_half", "/usr/bin/python3 -c 'import ctypes, os; ctypes.CDLL(None).syscall("
             "ctypes.c_long(268 if os.uname().machine == \"x86_64\" else 53), ctypes.c_long(-100), "
             "b\"file\", ctypes.c_long(1 << 40 | 0o2755))'")


@attack(on_guard=True, users=("root",))
def set_group_id_while_the_path_changes(stage):
    """Folder and file take turns, in memory and under one name."""
    file = stage.file("ws/file")
    (stage.ws / "folder").mkdir()
    stage.run("/usr/bin/python3", "-c", FLIP, tries(stage), timeout=max(20, tries(stage) // 500))
    return file.stat().st_mode & stat.S_ISGID


# -- from one root to another, which is done on the host's own mount

def between_roots(name, script, victim, *options):
    def play(stage):
        (stage.ws / "in").mkdir()
        file = stage.file(victim)
        flags = ["--writable", stage.ws / "in", *(str(word).format(ws=stage.ws) for word in options)]
        stage.shell(f'cd "$1"; {script}; echo owned >> taken', stage.ws, cordon=flags)
        return stage.is_changed(file)
    play.__name__ = f"between_roots_{name}"
    attack(on_guard=True)(play)


EXCHANGE = 'python3 -c "import ctypes; ctypes.CDLL(None).renameat2(-100, b\\"{}\\", -100, b\\"{}\\", 2)"'

for how, what in (("link", "ln {} taken"), ("move", "mv {} taken"), ("move_from_python", 'python3 -c "import os; os.rename(\\"{}\\", \\"{}\\")"'),
                  ("exchange", "echo x > taken; " + EXCHANGE)):
    between_roots(f"{how}_a_protected_file", what.format("in/.git", "taken"), "ws/in/.git")
    between_roots(f"{how}_below_a_protected_folder", what.format("in/.codex/file", "taken"), "ws/in/.codex/file")
    between_roots(f"{how}_a_read_only_file", what.format("in/kept", "taken"), "ws/in/kept", "--readable", "{ws}/in/kept")
    between_roots(f"{how}_of_a_read_only_folder", what.format("in/kept/file", "taken"), "ws/in/kept/file",
                  "--readable", "{ws}/in/kept")
    between_roots(f"{how}_a_file_outside", what.format("../outside/victim", "taken"), "outside/victim")
between_roots("link_to_a_protected_file", "mkdir d; ln -s ../in/.git d/l; ln -L d/l taken", "ws/in/.git")
between_roots("move_a_root_with_what_it_protects", "mv in other; ln -s other/.git taken", "ws/in/.git")
between_roots("move_over_a_protected_file", "echo owned > new; mv -f new in/.git", "ws/in/.git")
between_roots("link_into_a_protected_folder", "echo owned > new; ln -f new in/.codex/file", "ws/in/.codex/file")


def makes_between_roots(name, script):
    def play(stage):
        (stage.ws / "in").mkdir()
        stage.shell(f'cd "$1"; mkdir dir in/dir; echo x > file; echo x > in/file; {script}', stage.ws,
                    cordon=["--writable", stage.ws / "in"])
        return is_there(stage) or is_there(stage, "in/.git")
    play.__name__ = f"between_roots_{name}"
    attack(on_guard=True)(play)


makes_between_roots("move_to_a_protected_name", "mv in/file .git")
makes_between_roots("move_to_a_protected_name_of_the_inner_root", "mv dir in/.git")
makes_between_roots("link_to_a_protected_name", "ln file in/.git")
makes_between_roots("move_as_part_of_a_folder", "mkdir -p up/in/.git; rmdir in/dir; rm in/file; rmdir in; mv up/in .")
