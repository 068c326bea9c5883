"""New namespaces, which give every capability over something, and joining those of others."""

import os
from pathlib import Path

from catalogue import attack
from events import wait_until_empty
from stage import WAIT

NEWTIME, NEWNS, NEWCGROUP, NEWUTS = 0x80, 0x20000, 0x02000000, 0x04000000
NEWIPC, NEWUSER, NEWPID, NEWNET = 0x08000000, 0x10000000, 0x20000000, 0x40000000


@attack()
def unshare_user(stage):
    return stage.attack("unshare", NEWUSER).won


@attack(users=("root",))
def unshare_mounts(stage):
    return stage.attack("unshare", NEWNS).won


@attack(users=("root",))
def unshare_network(stage):
    return stage.attack("unshare", NEWNET).won


@attack(users=("root",))
def unshare_processes(stage):
    return stage.attack("unshare", NEWPID).won


@attack(users=("root",))
def unshare_cgroups(stage):
    return stage.attack("unshare", NEWCGROUP).won


@attack(users=("root",))
def unshare_time(stage):
    """A clock of one's own: it is a namespace flag, too, but not among clone(2)'s."""
    return stage.attack("unshare", NEWTIME).won


@attack()
def unshare_everything_at_once(stage):
    flags = NEWUSER | NEWNS | NEWCGROUP | NEWUTS | NEWIPC | NEWPID | NEWNET
    return stage.attack("unshare", flags).won


@attack()
def clone_user(stage):
    return stage.attack("clone", NEWUSER).won


@attack()
def clone3_user(stage):
    """The flags lie behind a pointer, where no filter sees them."""
    return stage.attack("clone3", NEWUSER).won


def into_a_cgroup(stage, **kwargs):
    folder = Path("/sys/fs/cgroup/unified")
    group = (folder if folder.is_dir() else folder.parent) / f"escape-{os.getpid()}"
    group.mkdir()
    stage.cleanup.callback(group.rmdir)
    won = stage.attack("clone3-cgroup", group, **kwargs).won
    wait_until_empty(group, WAIT)
    return won


@attack(users=("root",), needs_host=True)
def clone3_into_a_cgroup(stage):
    return into_a_cgroup(stage)


@attack(users=("root",), needs_host=True)
def clone3_into_a_cgroup_with_nested_namespaces(stage):
    """Away from the limits; a read-only mount is no hindrance."""
    config = stage.file("home/nested.toml", "[permissions.n]\nextends = \":workspace\"\nallow_nested_namespaces = true\n")
    return into_a_cgroup(stage, cordon=["--config", config, "--profile", "n"])


@attack()
def nested_namespace_with_mounts(stage):
    """Root of a namespace of its own binds what it likes and writes there."""
    file = stage.victim_file()
    (stage.ws / "copy").mkdir()
    stage.attack("nested", stage.out, stage.ws / "copy", "victim")
    return stage.is_changed(file)


@attack(users=("root",))
def join_the_mounts_of_a_host_process(stage):
    return stage.attack("setns", stage.victim().pid, "mnt").won


@attack(users=("root",))
def join_the_network_of_a_host_process(stage):
    return stage.attack("setns", stage.victim().pid, "net").won


@attack(users=("root",))
def join_the_namespace_of_init(stage):
    return stage.attack("setns", 1 if stage.inside else stage.victim().pid, "ipc").won


@attack(users=("root",))
def join_by_an_inherited_descriptor(stage):
    fd = stage.open("/proc/self/ns/mnt")
    return stage.attack("fd-setns", fd, fds=[fd]).won


@attack(holes=(10,), needs_host=True)
def run_inside_another_pid_namespace(stage):
    """firejail takes any pid namespace for a sandbox that is there already, and runs bare."""
    file = stage.victim_file()
    inner = stage.command([stage.tools / "attacks", "write", file])
    stage.inside, was_inside = False, stage.inside
    ran = stage.run("unshare", "-rpf", "--mount-proc", *inner)
    stage.inside = was_inside
    return stage.is_changed(file) or (was_inside and not ran.started and not ran.refused)
