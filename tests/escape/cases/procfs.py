"""/proc and /sys: settings of the host, and windows into its processes."""

import os
from pathlib import Path

from catalogue import attack
from events import wait_until_empty
from stage import WAIT, Unavailable


HOSTS_PROC = "the host's /proc stays readable"


def write_back(stage, path):
    """Writes what is there: harmless, and proof enough."""
    if not os.path.exists(path):
        raise Unavailable(f"{path} is missing")
    ran = stage.shell('value=$(cat "$1") && printf "%s" "$value" > "$1" && echo @won', path)
    return ran.won


@attack(users=("root",), holes=(2,))
def set_core_pattern(stage):
    return write_back(stage, "/proc/sys/kernel/core_pattern")


@attack(users=("root",), holes=(2,))
def set_a_memory_setting(stage):
    return write_back(stage, "/proc/sys/vm/swappiness")


@attack(users=("root",), holes=(2,))
def set_a_file_system_setting(stage):
    return write_back(stage, "/proc/sys/fs/protected_symlinks")


@attack(users=("root",))
def set_interrupt_affinity(stage):
    return write_back(stage, "/proc/irq/default_smp_affinity")


@attack(users=("root",))
def set_a_kernel_feature_by_sysfs(stage):
    return write_back(stage, "/sys/kernel/mm/transparent_hugepage/khugepaged/scan_sleep_millisecs")


@attack(users=("root",), needs_host=True)
def move_to_another_cgroup(stage):
    folder = Path("/sys/fs/cgroup/unified")
    folder = folder if folder.is_dir() else Path("/sys/fs/cgroup")
    group = folder / f"escape-{os.getpid()}"
    group.mkdir()
    stage.cleanup.callback(group.rmdir)
    ran = stage.shell('sh -c "echo 0 > $1/cgroup.procs && echo @won"', group)
    wait_until_empty(group, WAIT)
    return ran.won


@attack(users=("root",))
def make_a_cgroup(stage):
    folder = Path("/sys/fs/cgroup/unified")
    group = (folder if folder.is_dir() else folder.parent) / f"escape-{os.getpid()}"
    stage.attack("mkdir", group)
    made = group.is_dir()
    if made:
        group.rmdir()
    return made


@attack(holes=(16,))
def read_the_environment_of_the_server(stage):
    """/proc/PPID/environ of whoever starts commands for others."""
    env = {"SERVER_SECRET": "the-servers-own"}
    if stage.inside:
        return stage.attack("search", "environ", "the-servers-own", "all", env=env).won
    return stage.shell('env -u SERVER_SECRET "$1" search environ the-servers-own $$; true',
                       stage.tools / "attacks", env=env).won


@attack(holes=(12,))
def read_the_environment_of_pid_1(stage):
    """bubblewrap's own init keeps what --clearenv takes from the command. Bare, the shell that
    starts the attack stands for it."""
    env = {"MY_API_TOKEN": "kept-by-init"}
    if stage.inside:
        return stage.attack("search", "environ", "kept-by-init", 1, env=env).won
    return stage.shell('env -i "$1" search environ kept-by-init $$; true',
                       stage.tools / "attacks", env=env).won


@attack(unheld=HOSTS_PROC)
def see_a_host_process(stage):
    victim = stage.victim("no-secret")
    return stage.attack("search", "cmdline", "victim", victim.pid).won


@attack()
def open_a_descriptor_of_a_host_process(stage):
    return stage.attack("fd-steal", stage.victim().pid).won


@attack()
def open_a_descriptor_of_init(stage):
    """Inside, pid 1 is the launcher: its status socket and plan are the way to lie to Cordon."""
    return stage.attack("fd-steal", 1 if stage.inside else stage.victim().pid).won


@attack()
def read_the_memory_of_a_host_process(stage):
    victim = stage.victim()
    return victim.secret in stage.attack("mem", victim.pid, victim.address).out


@attack()
def read_the_map_of_init(stage):
    return stage.attack("maps", 1 if stage.inside else stage.victim().pid).won


@attack(unheld=HOSTS_PROC)
def read_the_sockets_of_the_host(stage):
    service = stage.service()
    return f":{service.port:04X}" in stage.shell("cat /proc/net/tcp").out


@attack(users=("root",))
def read_the_kernel_log_by_proc(stage):
    return stage.attack("open", "/proc/kmsg").won


@attack(users=("root",), unheld=HOSTS_PROC)
def read_what_only_root_may_of_the_kernel(stage):
    """Where memory lies, who waits for which timer: closed to users, and so to a command."""
    names = ("kpagecount", "kpageflags", "vmallocinfo", "slabinfo", "timer_list")
    return [name for name in names if stage.attack("read", f"/proc/{name}").won]


@attack(unheld=HOSTS_PROC)
def list_the_mounts_of_a_host_process(stage):
    return stage.attack("search", "mountinfo", "/", stage.victim().pid).won
