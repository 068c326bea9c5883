"""Attacks where each exec is judged: what is forbidden or was never judged does not run outside of the sandbox,
whatever is done to the arguments, the stub, its descriptors or the directory meanwhile. Inside, a verdict is
advice (docs/threat-model.md), and the first test shows that, too.

`stat` is forbidden, `cat` and `readlink` run outside, all else goes on inside."""

import os
import re
import shutil
import struct
import warnings

import pytest

import identity
from asking import ASKER, Asking
from stage import CORDON, TRIES, WAIT, Stage

EXECS = min(TRIES, 1000)  # of each race: they take milliseconds, not microseconds
NAMES = [name for name in identity.here() if identity.has_namespaces(name)]
PYTHON = "/usr/bin/python3"
PATH = "/usr/bin:/bin"
STAT, READLINK, REALPATH, CAT = (shutil.which(word, path=PATH) for word in
                                 ("stat", "readlink", "realpath", "cat"))
RULES = """
prefix_rule(pattern=["stat"], decision="forbidden", justification="that is what this is about")
prefix_rule(pattern=["readlink"], decision="allow")
prefix_rule(pattern=["cat"], decision="allow")
"""

each = pytest.mark.parametrize("name", NAMES)
# Hundreds of programs one after the other, which are judged alike with and without user namespaces.
whole = pytest.mark.parametrize("name", [name for name in NAMES if identity.is_whole(name)])


@pytest.fixture(autouse=True)
def need_cordon(lack):
    for program in (CORDON, ASKER):
        if not program.exists():
            lack(f"{program} is not built")


def play(name, tools, script, *words, inside=True):
    """What python with this script writes, as it ends well; and the mount namespace outside."""
    def scene():
        with Stage(name, inside, tools) as stage:
            stage.file("home/.config/cordon/rules/default.rules", RULES)
            path = stage.file("outside/script.py", script)
            ran = stage.run(PYTHON, path, *(str(word).format(out=stage.out) for word in words), timeout=200,
                            cordon=["--judge", "every-exec", "-a", "on-request"])
            assert ran.code == 0, ran
            assert stage.appeared == []
            return ran.out, os.readlink("/proc/self/ns/mnt")
    return identity.play(name, scene, timeout=230)


# --- what is judged changes

FLIP = """
import ctypes, mmap, os, sys
texts = [text.encode().ljust(64, b"\\0") for text in sys.argv[1:3]]
memory = mmap.mmap(-1, 4096)
memory[:64] = texts[0]
path = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(memory)))
argv = (ctypes.c_char_p * 3)(os.path.basename(sys.argv[1]).encode(), b"/proc/self/ns/mnt", None)
libc = ctypes.CDLL(None)
flipper = os.fork()
while flipper == 0:
    memory[:64] = texts[1]
    memory[64] = (memory[64] + 1) % 256
    memory[:64] = texts[0]
turn = memory[64]
for _ in range(int(sys.argv[3])):
    while "turns" in sys.argv and memory[64] == turn:
        os.sched_yield()
    turn = memory[64]
    child = os.fork()
    if child == 0:
        libc.execve(path, argv, (ctypes.c_char_p * 1)(None))
        os._exit(126)
    os.waitpid(child, 0)
os.kill(flipper, 9)
"""


@whole
@pytest.mark.parametrize("shown", [REALPATH, READLINK])
def test_the_path_flips(name, tools, shown):
    """Between a program that may run, inside or outside, and the one that is forbidden. That one may run,
    inside; never outside. Bare a try counts after a turn: on a busy machine all may fit between two of them."""
    said, host = play(name, tools, FLIP, shown, STAT, 40, "turns", inside=False)
    assert f"File: /proc/self/ns/mnt -> {host}" in said
    said, host = play(name, tools, FLIP, shown, STAT, EXECS)
    where = re.findall(r"File: /proc/self/ns/mnt -> (\S+)", said)
    assert host not in where
    if shown == REALPATH and not where:
        warnings.warn(f"{name}: the forbidden program never ran inside, in {EXECS} tries")
    assert len(re.findall(r"^(/proc/\d+/ns/)?mnt:", said, re.M)) > EXECS / 50  # and the other one did


RENAMED = """
import os, sys
out, tries, trusts = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "trusts"
os.mkdir("d")
name = os.path.realpath("d")
real = os.open(name, os.O_RDONLY)
flipper = os.fork()
while flipper == 0:
    os.rename("d", "dd")
    os.symlink(out, "d")
    os.unlink("d")
    os.rename("dd", "d")
for _ in range(tries):
    child = os.fork()
    if child == 0:
        os.fchdir(real)
        try:
            if trusts:
                while not os.path.islink(name):  # as long as somebody judges it
                    pass
                os.chdir(name)
            os.execv("READLINK", ["readlink", "-f", "."])
        except OSError:
            os._exit(126)
    os.waitpid(child, 0)
os.kill(flipper, 9)
print("OUT", out)
""".replace("READLINK", str(READLINK))


@whole
def test_the_folder_is_renamed(name, tools):
    """What runs outside is in the folder that its caller was in, not in what took its name. Bare, who trusts
    the name is led away."""
    def lines(said):
        out = re.search("OUT (.*)", said).group(1)
        found = said.splitlines()[:-1]
        return found.count(out), len(found)
    assert lines(play(name, tools, RENAMED, "{out}", 100, "trusts", inside=False)[0])[0]
    led_away, ran = lines(play(name, tools, RENAMED, "{out}", EXECS, "judged")[0])
    assert led_away == 0 and ran


# --- the stub

STUB = """
import ctypes, os, resource, signal, socket
libc = ctypes.CDLL(None, use_errno=True)
def begin(limit=None):  # a stub, and the ends of what runs outside
    into, out = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        libc.prctl(0x59616d61, ctypes.c_ulong(-1), 0, 0, 0)  # anybody may trace it
        try:
            os.dup2(into[0], 0)
            os.dup2(out[1], 1)
            os.closerange(3, 64)
            if limit:
                resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
            os.execv("CAT", ["cat"])
        except OSError:
            os._exit(126)
    os.close(into[0])
    os.close(out[1])
    return child, into[1], out[0]
def echoes(stub, text):
    os.write(stub[1], text)
    return os.read(stub[2], 64) == text
def running():
    stub = begin()
    assert echoes(stub, b"first") and "cordon-outside" in os.readlink(f"/proc/{stub[0]}/exe")
    return stub
def is_over(stub):  # what runs outside has let go of its output
    return os.read(stub[2], 64) == b""
def end(stub):
    status = os.waitstatus_to_exitcode(os.waitpid(stub[0], 0)[1])
    os.close(stub[1])
    os.close(stub[2])
    return status
def works():  # the guard goes on
    stub = running()
    os.close(stub[1])
    assert is_over(stub) and os.waitpid(stub[0], 0)[1] == 0
""".replace("CAT", str(CAT))

STUBS = {
    "killed": """
stub = running()
os.kill(stub[0], signal.SIGKILL)
assert is_over(stub) and end(stub) == -9
""",
    "stopped": """
stub = running()
os.kill(stub[0], signal.SIGSTOP)
assert os.WIFSTOPPED(os.waitpid(stub[0], os.WUNTRACED)[1])
assert echoes(stub, b"goes on")
os.kill(stub[0], signal.SIGKILL)
assert is_over(stub) and end(stub) == -9
""",
    "traced by a sibling": """
stub = running()
tracer = os.fork()
if tracer == 0:
    assert libc.ptrace(0x4206, stub[0], 0, 0) == 0 and libc.ptrace(0x4207, stub[0], 0, 0) == 0
    os.waitpid(stub[0], 0x40000000)
    with open(f"/proc/{stub[0]}/maps") as maps, open(f"/proc/{stub[0]}/mem", "wb", buffering=0) as memory:
        for line in maps:
            words = line.split()
            if "x" in words[1] and "cordon-outside" in line:
                first, last = (int(word, 16) for word in words[0].split("-"))
                memory.seek(first)
                memory.write(bytes(last - first))
    os._exit(0)
assert os.waitpid(tracer, 0)[1] == 0
assert end((stub[0], os.dup(stub[1]), os.dup(stub[2]))) < 0
assert is_over(stub)
""",
    "its socket taken": """
stub = running()
pidfd = os.pidfd_open(stub[0])
taken = []
while not taken:  # it comes at about the time at which the program outside begins
    for fd in range(64):
        copy = libc.syscall(438, pidfd, fd, 0)  # pidfd_getfd
        if copy >= 0 and os.readlink(f"/proc/self/fd/{copy}").startswith("socket:"):
            taken.append(socket.socket(fileno=copy))
        elif copy >= 0:
            os.close(copy)
for end_of in taken:
    end_of.setblocking(False)
    for word in (b"", b"x", b"x" * 4096, *(number.to_bytes(4, "little", signed=True) for number in
                                           (0, -1, 9, 19, 64, 65, 1000, 2 ** 31 - 1, -2 ** 31))):
        try:
            end_of.send(word)
        except OSError:
            break
    try:
        socket.send_fds(end_of, [b"1234"], [0, 1, 2])
    except OSError:
        pass
    end_of.close()
os.kill(stub[0], signal.SIGKILL)
assert is_over(stub) and end(stub) in (-9, 137)  # an empty packet was the end of it
""",
    "its descriptors opened": """
stub = running()
for fd in os.listdir(f"/proc/{stub[0]}/fd"):
    try:
        what = os.readlink(f"/proc/{stub[0]}/fd/{fd}")
        os.close(os.open(f"/proc/{stub[0]}/fd/{fd}", os.O_RDWR))
    except OSError:  # or it has closed that itself
        continue
    assert "socket" not in what and "cordon" not in what, what
assert echoes(stub, b"still there")
os.kill(stub[0], signal.SIGKILL)
assert is_over(stub) and end(stub) == -9
""",
    "no descriptor left": """
for limit in (3, 4, 5):
    stub = begin(limit)
    os.close(stub[1])
    assert is_over(stub)
    status = os.waitstatus_to_exitcode(os.waitpid(stub[0], 0)[1])
    assert status in (0, 126, 137), status
    os.close(stub[2])
""",
    "its limit taken away": """
for number in range(40):
    stub = begin()
    for _ in range(number * 20):
        pass
    while number % 2 and "cordon-outside" not in os.readlink(f"/proc/{stub[0]}/exe"):
        pass  # it asks for its socket now
    try:
        resource.prlimit(stub[0], resource.RLIMIT_NOFILE, (0, 0))
    except OSError:
        pass
    os.close(stub[1])
    assert is_over(stub)
    status = os.waitstatus_to_exitcode(os.waitpid(stub[0], 0)[1])
    assert status in (0, 126, 137), status
    os.close(stub[2])
""",
}


@each
@pytest.mark.parametrize("what", STUBS)
def test_a_stub(name, tools, what):
    """Whatever befalls it, what ran outside for it ends, and the next one works."""
    said, _ = play(name, tools, STUB + STUBS[what] + "works()\nprint('over')\n")
    assert said == "over\n"


# --- other ways to execute

def elf_32(path, argument):
    """A 32-bit program that executes another one by the table of its own; else exits with 42."""
    base, start = 0x08048000, 0x54
    first, second = path.encode() + b"\0", argument.encode() + b"\0"
    data = base + start + 36
    words = data + len(first) + len(second)
    code = (b"\xb8" + struct.pack("<I", 11) + b"\xbb" + struct.pack("<I", data) +
            b"\xb9" + struct.pack("<I", words) + b"\x31\xd2\xcd\x80" +
            b"\xb8\x01\x00\x00\x00\xbb\x2a\x00\x00\x00\xcd\x80").ljust(36, b"\x90")
    body = code + first + second + struct.pack("<III", data, data + len(first), 0)
    size = start + len(body)
    return (b"\x7fELF\1\1\1".ljust(16, b"\0") +
            struct.pack("<HHIIIIIHHHHHH", 2, 3, 1, base + start, 0x34, 0, 0, 0x34, 0x20, 1, 0, 0, 0) +
            struct.pack("<IIIIIIII", 1, 0, base, base, size, size, 5, 0x1000) + body)


@each
def test_a_32_bit_program(name, tools, lack):
    """Its calls have other numbers, which nobody judges: it is killed."""
    if os.uname().machine != "x86_64":
        lack("there are no 32-bit programs here")

    def scene(inside):
        with Stage(name, inside, tools) as stage:
            stage.file("home/.config/cordon/rules/default.rules", RULES)
            path = stage.base / "ws/program"
            path.write_bytes(elf_32(STAT, "/proc/self/ns/mnt"))
            path.chmod(0o755)
            ran = stage.run("/bin/sh", "-c", "echo @start; ./program; echo $?",
                            cordon=["--judge", "every-exec", "-a", "on-request"])
            assert ran.started, ran
            return "File:" in ran.out, ran.out.split()[-1]
    assert identity.play(name, lambda: scene(False)) == (True, "0")
    assert identity.play(name, lambda: scene(True)) == (False, str(128 + 31))


HELD = """
import os, sys
children = []
for number in range(1000):
    child = os.fork()
    if child == 0:
        try:
            os.execv("STAT", ["stat", "/proc/self/ns/mnt"])
        except OSError as error:
            os._exit(error.errno)
    children.append(child)
print(sum(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 13 for child in children))
""".replace("STAT", str(STAT))


@whole
def test_a_thousand_held_at_once(name, tools):
    """All of them wait, and none has run when all are refused."""
    def scene():
        with Stage(name, True, tools) as stage:
            asking = Asking(stage, PYTHON, "-c", HELD, words=["judge"])
            asked = []
            while len(asked) < 1000:
                asked.append(asking.until("asked"))
            assert {question.path for question in asked} == {os.path.realpath(STAT)}
            assert not asking.all("exited")
            for question in asked:
                asking.answer("no", question.id)
            return asking.serve(lambda question: "no")
    assert identity.play(name, scene, timeout=WAIT * 4) == "1000\n"
