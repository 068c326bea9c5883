"""Who plays an attack: the harness forks, the child becomes that identity, plays, and sends back
what it found. Five identities:

    root                      as the harness was started (only when that was root)
    user                      an account-less uid without groups or capabilities
    root-no-user-namespace    root with all capabilities where no user namespace may be made
    root-no-namespaces        root, and
    user-no-namespaces        user, where no user namespace may be made and no capability is left:
                              what a locked-down container offers

Every process that an attack leaves behind becomes a child of the forked child (subreaper), which
kills and reaps them all before it ends: no attack outlives its test, and nothing that the harness
did not start is ever signalled.
"""

import contextlib
import ctypes
import os
import pickle
import select
import signal
import sys
import time
import traceback
from pathlib import Path

import events

USER = 64999
TIMEOUT = 120 + int(os.environ.get("CORDON_TRIES", "0")) // 500

CLONE_NEWNS, CLONE_NEWUSER = 0x20000, 0x10000000
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 0x40000
PR_SET_DUMPABLE, PR_CAPBSET_DROP, PR_SET_CHILD_SUBREAPER, PR_CAP_AMBIENT = 4, 24, 36, 47
PR_CAP_AMBIENT_CLEAR_ALL = 4
SYS_CAPSET = {"x86_64": 126, "aarch64": 91}[os.uname().machine]

libc = ctypes.CDLL(None, use_errno=True)


class Failed(Exception):
    """The child ended without a result; the text is its traceback."""


def here():
    """The identities that this harness can take."""
    names = ["root", "root-no-user-namespace", "root-no-namespaces"] if os.geteuid() == 0 else []
    return names + ["user", "user-no-namespaces"]


def has_namespaces(name):
    return not name.endswith("no-namespaces")


def is_whole(name):
    """Nothing is forbidden to it but what every user of its kind is forbidden."""
    return "-" not in name


def is_root(name):
    return name.startswith("root")


def check(result, what):
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def own_user_namespace():
    uid, gid = os.getuid(), os.getgid()
    check(libc.unshare(CLONE_NEWUSER), "unshare")
    for name, text in (("setgroups", "deny"), ("gid_map", f"{gid} {gid} 1"),
                       ("uid_map", f"{uid} {uid} 1")):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(text)


def own_tmp():
    """A /tmp of its own, so that what is planted there harms nobody else's run."""
    if os.geteuid() != 0:
        own_user_namespace()
    check(libc.unshare(CLONE_NEWNS), "unshare")
    check(libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None), "private mounts")
    build = os.environ.get("CORDON_BUILD", "")
    kept = os.open(build, os.O_PATH) if build.startswith("/tmp/") else None
    check(libc.mount(b"tmpfs", b"/tmp", b"tmpfs", 0, b"mode=1777"), "mounting /tmp")
    if kept is not None:
        os.makedirs(build)
        source = f"/proc/self/fd/{kept}".encode()
        check(libc.mount(source, build.encode(), None, MS_BIND, None), "keeping the build")
        os.close(kept)


def forbid_user_namespaces():
    own_user_namespace()
    with open("/proc/sys/user/max_user_namespaces", "w", encoding="ascii") as file:
        file.write("0")


def drop_capabilities():
    capability = 0
    while libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0:
        capability += 1
    libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    check(libc.syscall(SYS_CAPSET, header, (ctypes.c_uint32 * 6)()), "capset")


def become(name, private_tmp):
    check(libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "subreaper")
    if private_tmp:
        own_tmp()
    if not is_root(name) and os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(USER, USER, USER)
        os.setresuid(USER, USER, USER)
        check(libc.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0), "dumpable")
    if not is_whole(name):
        forbid_user_namespaces()
    if not has_namespaces(name):
        drop_capabilities()


def own_children():
    """Processes whose parent is this one; while some come and go, not all of them."""
    return [int(pid) for thread in os.listdir("/proc/self/task")
            for pid in Path(f"/proc/self/task/{thread}/children").read_bytes().split()]


def bury():
    """Kills and reaps every descendant; grandchildren come to us when their parents die."""
    deadline = time.monotonic() + 20
    with events.child_ends() as wait:
        while True:
            for pid in own_children():
                with contextlib.suppress(OSError):
                    group = os.getpgid(pid)  # whole groups: a process that keeps forking is not met
                    if group != os.getpgrp():
                        os.killpg(group, signal.SIGKILL)
                    os.kill(pid, signal.SIGKILL)
            if not reap() or not wait(deadline - time.monotonic()):
                return


def reap():
    """Takes what has ended; whether any child is left."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def child_main(name, private_tmp, function, pipe):
    """Never returns: no child may go on as the harness."""
    try:
        data = pickle.dumps(child_result(name, private_tmp, function))
        bury()
        with os.fdopen(pipe, "wb") as file:
            file.write(data)
    finally:
        os._exit(0)


def child_result(name, private_tmp, function):
    os.setsid()
    for number in (signal.SIGUSR1, signal.SIGHUP):  # attacks on the process group reach us, too;
        signal.signal(number, lambda *_: None)  # a handler, because what we start inherits SIG_IGN
    try:
        become(name, private_tmp)
        return True, function()
    except BaseException:  # whatever it is, the parent shows it
        return False, traceback.format_exc()


def play(name, function, private_tmp=False, timeout=TIMEOUT):
    """What `function()` returns when it runs as that identity in a process of its own; `timeout`
    in seconds."""
    check(libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "subreaper")  # if the child dies early
    reading, writing = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        child_main(name, private_tmp, function, writing)
    os.close(writing)
    data = b""
    with os.fdopen(reading, "rb", buffering=0) as pipe:
        while select.select([pipe], [], [], timeout)[0]:
            block = pipe.read(65536)
            if not block:
                break
            data += block
        else:
            os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    bury()
    if not data:
        raise Failed(f"no result within {timeout} s, or the playing process died")
    worked, value = pickle.loads(data)
    if not worked:
        raise Failed(value)
    return value
