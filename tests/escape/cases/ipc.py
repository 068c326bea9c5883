"""What processes share beside files: System V and POSIX objects, keyrings, signals, and the calls
that change another process without touching it."""

import ctypes
import os
import signal
import subprocess

from catalogue import attack
from identity import libc

IPC_PRIVATE, IPC_RMID = 0, 0
SYS = {"x86_64": {"add_key": 248, "keyctl": 250}, "aarch64": {"add_key": 217, "keyctl": 219}}
KEYCTL_JOIN, KEYCTL_UNLINK, SESSION, USER = 1, 9, -3, -4
NO_IPC_NAMESPACE = "System V and POSIX queues need the ipc namespace"
NO_SCOPE = "no Landlock scope covers it"


def syscall(name, *args):
    return libc.syscall(SYS[os.uname().machine][name], *args)


@attack(holes=(13,), unheld=NO_IPC_NAMESPACE)
def shared_memory(stage):
    segment = libc.shmget(IPC_PRIVATE, 4096, 0o600)
    stage.cleanup.callback(libc.shmctl, segment, IPC_RMID, None)
    libc.shmat.restype = ctypes.c_void_p
    place = libc.shmat(segment, None, 0)
    stage.attack("shm", segment)
    return ctypes.string_at(place, 1) == b"!"


@attack(holes=(13,), unheld=NO_IPC_NAMESPACE)
def semaphore(stage):
    semaphores = libc.semget(IPC_PRIVATE, 1, 0o600)
    stage.cleanup.callback(libc.semctl, semaphores, 0, IPC_RMID)
    stage.attack("sem", semaphores)
    return libc.semctl(semaphores, 0, 12) == 1  # GETVAL


@attack(holes=(13,), unheld=NO_IPC_NAMESPACE)
def message_queue(stage):
    queue = libc.msgget(IPC_PRIVATE, 0o600)
    stage.cleanup.callback(libc.msgctl, queue, IPC_RMID, None)
    stage.attack("msg", queue)
    text = ctypes.create_string_buffer(64)
    return libc.msgrcv(queue, text, 32, 0, 0o4000) >= 0  # IPC_NOWAIT


@attack(holes=(13,), unheld=NO_IPC_NAMESPACE)
def posix_queue(stage):
    librt = ctypes.CDLL("librt.so.1", use_errno=True)
    name = f"/escape-{os.getpid()}".encode()
    queue = librt.mq_open(name, os.O_RDWR | os.O_CREAT | os.O_NONBLOCK, 0o600, None)
    stage.cleanup.callback(librt.mq_unlink, name)
    stage.attack("mq", name.decode())
    text = ctypes.create_string_buffer(8192)
    return librt.mq_receive(queue, text, 8192, None) == 6


@attack()
def posix_shared_memory(stage):
    path = f"/dev/shm/escape-{os.getpid()}"
    with open(path, "w", encoding="ascii") as file:
        file.write("original\n")
    stage.cleanup.callback(os.unlink, path)
    stage.attack("write", path)
    return stage.is_changed(path)


def own_key(stage, ring):
    """A key in this process's own session keyring, or in the user's."""
    syscall("keyctl", KEYCTL_JOIN, None)
    name = f"escape-{os.getpid()}"
    key = syscall("add_key", b"user", name.encode(), b"key-secret", 10, ring)
    assert key > 0
    stage.cleanup.callback(syscall, "keyctl", KEYCTL_UNLINK, key, ring)
    return name


@attack(holes=(13,))
def session_keyring(stage):
    return "key-secret" in stage.attack("key-read", SESSION, own_key(stage, SESSION)).out


@attack(holes=(13,))
def user_keyring(stage):
    return "key-secret" in stage.attack("key-read", USER, own_key(stage, USER)).out


@attack(holes=(13,))
def plant_a_key(stage):
    own_key(stage, SESSION)
    return stage.attack("key-add", SESSION, "planted").won


@attack(holes=(13,))
def request_a_key(stage):
    return stage.attack("key-request", own_key(stage, SESSION)).won


@attack()
def signal_by_pid(stage):
    victim = stage.victim()
    stage.attack("kill", victim.pid)
    return victim.was_hit()


@attack()
def signal_by_thread(stage):
    victim = stage.victim()
    stage.attack("tgkill", victim.pid)
    return victim.was_hit()


@attack()
def signal_with_a_value(stage):
    victim = stage.victim()
    stage.attack("sigqueue", victim.pid)
    return victim.was_hit()


@attack()
def signal_the_process_group(stage):
    """The caller's group, with whatever else is in it."""
    victim = stage.victim()
    stage.attack("kill-group")
    return victim.was_hit()


@attack()
def signal_by_an_inherited_pidfd(stage):
    victim = stage.victim()
    pidfd = os.pidfd_open(victim.pid)
    stage.cleanup.callback(os.close, pidfd)
    stage.attack("pidfd-signal", pidfd, fds=[pidfd])
    return victim.was_hit()


@attack()
def signal_by_the_owner_of_a_descriptor(stage):
    victim = stage.victim()
    stage.attack("owner-signal", victim.pid)
    return victim.was_hit()


@attack()
def signal_the_init(stage):
    """Inside, pid 1 is the launcher, which must go on; bare it stands for any process of ours."""
    victim = stage.victim()
    ran = stage.shell('kill -STOP "$1"; kill -KILL "$1"; echo @survived',
                      1 if stage.inside else victim.pid)
    if stage.inside:
        return "@survived" not in ran.out
    return victim.process.wait(10) == -signal.SIGKILL


@attack()
def change_the_limits_of_a_process(stage):
    """A limit on CPU time that is used up kills like a signal, without being one."""
    victim = stage.victim()
    stage.attack("prlimit", victim.pid)
    with open(f"/proc/{victim.pid}/limits", encoding="ascii") as limits:
        return [line for line in limits if line.startswith("Max open files") and " 77 " in line]


@attack(unheld=NO_SCOPE)
def change_the_priority_of_a_process(stage):
    victim = stage.victim()
    stage.attack("priority", victim.pid)
    return os.getpriority(os.PRIO_PROCESS, victim.pid) == 19


@attack(unheld=NO_SCOPE)
def change_the_processors_of_a_process(stage):
    victim = stage.victim()
    stage.attack("affinity", victim.pid)
    return os.sched_getaffinity(victim.pid) == {0}


@attack(unheld=NO_SCOPE)
def change_the_scheduling_of_a_process(stage):
    victim = stage.victim()
    stage.attack("scheduler", victim.pid)
    return os.sched_getscheduler(victim.pid) == os.SCHED_IDLE


@attack()
def remove_host_objects_by_ipcrm(stage):
    """The tools see the same namespace as the calls."""
    segment = libc.shmget(IPC_PRIVATE, 4096, 0o600)
    stage.cleanup.callback(libc.shmctl, segment, IPC_RMID, None)
    stage.shell('ipcrm -m "$1"', segment)
    return subprocess.run(["ipcs", "-m", "-i", str(segment)], capture_output=True, text=True,
                          check=False).stdout.count("shmid=") == 0
