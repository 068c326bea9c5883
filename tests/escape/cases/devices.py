"""Device nodes: those of the host's /dev, those that lie elsewhere in the tree, new ones, and the
terminals of others."""

import os
import pty
import stat

from catalogue import attack
from stage import Unavailable


READING = "a profile that reads everything reads the nodes of /dev, too; Landlock refuses ioctl(2)"


def disk():
    """Path and number of a block device of the host."""
    for name in ("loop0", "zram0", "vda", "sda", "nvme0n1"):
        try:
            os.close(os.open(f"/dev/{name}", os.O_RDONLY | os.O_NONBLOCK))
        except OSError:
            continue
        number = os.stat(f"/dev/{name}").st_rdev
        return f"/dev/{name}", os.major(number), os.minor(number)
    raise Unavailable("no block device that root may open")


def open_device(stage, path):
    if not os.path.exists(path):
        raise Unavailable(f"{path} is missing")
    return stage.attack("open", path).won


@attack(users=("root",), unheld=READING)
def open_the_disk(stage):
    return open_device(stage, disk()[0])


@attack(users=("root",))
def open_the_kernel_log(stage):
    return open_device(stage, "/dev/kmsg")


@attack(users=("root",), unheld=READING)
def open_loop_control(stage):
    return open_device(stage, "/dev/loop-control")


@attack(users=("root",), unheld=READING)
def open_fuse(stage):
    return open_device(stage, "/dev/fuse")


@attack(users=("root",), unheld=READING)
def open_kvm(stage):
    return open_device(stage, "/dev/kvm")


@attack(users=("root",), unheld=READING)
def open_a_virtual_console(stage):
    return open_device(stage, "/dev/tty1")


@attack(users=("root",), unheld=READING)
def open_userfaultfd(stage):
    return open_device(stage, "/dev/userfaultfd")


@attack(users=("root",))
def make_a_disk_node(stage):
    _, major, minor = disk()
    return stage.attack("mknod", stage.ws / "node", "b", major, minor).won


@attack(users=("root",))
def make_a_kernel_log_node_in_tmp(stage):
    return stage.attack("mknod", stage.tmp / "node", "c", 1, 11).won


@attack(users=("root",))
def make_a_disk_node_in_shared_memory(stage):
    _, major, minor = disk()
    path = f"/dev/shm/escape-{os.getpid()}"
    stage.cleanup.callback(lambda: os.path.lexists(path) and os.unlink(path))
    return stage.attack("mknod", path, "b", major, minor).won


@attack(users=("root",), needs_host=True)
def open_a_disk_node_in_the_tree(stage):
    """A node that somebody made long ago, below the read-only root."""
    os.mknod(stage.out / "node", stat.S_IFBLK | 0o600, os.stat(disk()[0]).st_rdev)
    return stage.attack("open", stage.out / "node").won


@attack(users=("root",), needs_host=True)
def open_a_disk_node_in_the_workspace(stage):
    os.mknod(stage.ws / "node", stat.S_IFBLK | 0o600, os.stat(disk()[0]).st_rdev)
    return stage.attack("open", stage.ws / "node").won


@attack(users=("root",), needs_host=True)
def write_to_a_log_node_in_the_tree(stage):
    os.mknod(stage.out / "node", stat.S_IFCHR | 0o600, os.makedev(1, 11))
    return stage.shell('echo "<7>escape: harmless" > "$1" && echo @won', stage.out / "node").won


@attack()
def write_to_another_terminal(stage):
    """A terminal of the same user's under /dev/pts."""
    master, slave = pty.openpty()
    stage.cleanup.callback(os.close, master)
    stage.cleanup.callback(os.close, slave)
    os.set_blocking(master, False)
    stage.shell('echo attack > "$1"', os.ttyname(slave))
    try:
        return b"attack" in os.read(master, 256)
    except BlockingIOError:
        return False
