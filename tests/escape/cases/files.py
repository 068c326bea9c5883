"""Writing where only reading is allowed: the calls that change a file, and other names for it."""

import os
import subprocess

from catalogue import attack

LEASE = """
import fcntl, os, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
print("@start", flush=True)
fcntl.fcntl(fd, int(sys.argv[2]), fcntl.F_WRLCK)
print("@won", flush=True)
"""

ATTRIBUTES = "attributes (mode, owner, times, flags) are no Landlock right"


@attack()
def write(stage):
    file = stage.victim_file()
    stage.attack("write", file)
    return stage.is_changed(file)


@attack()
def write_by_relative_path(stage):
    file = stage.victim_file()
    stage.attack("write", "../outside/victim")
    return stage.is_changed(file)


@attack()
def write_after_chdir(stage):
    file = stage.victim_file()
    stage.attack("chdir-write", "..", "outside/victim")
    return stage.is_changed(file)


@attack()
def write_through_a_mapping(stage):
    file = stage.victim_file()
    stage.attack("map-write", file)
    return stage.is_changed(file)


@attack()
def create(stage):
    stage.attack("create", stage.out / "new")
    return (stage.out / "new").exists()


@attack()
def create_by_tmpfile(stage):
    stage.attack("tmpfile", stage.out, stage.out / "new")
    return (stage.out / "new").exists()


@attack()
def make_a_folder(stage):
    stage.attack("mkdir", stage.out / "new")
    return (stage.out / "new").exists()


@attack()
def make_a_symlink(stage):
    stage.attack("symlink", "/nowhere", stage.out / "new")
    return (stage.out / "new").is_symlink()


@attack()
def rename_outside(stage):
    file = stage.victim_file()
    stage.attack("rename", file, stage.out / "moved")
    return not file.exists()


@attack()
def rename_over_a_file_outside(stage):
    file = stage.victim_file()
    stage.attack("rename", stage.file("ws/mine", "mine\n"), file)
    return stage.is_changed(file)


@attack()
def exchange_with_a_file_outside(stage):
    file = stage.victim_file()
    stage.attack("exchange", stage.file("ws/mine", "mine\n"), file)
    return stage.is_changed(file)


@attack()
def remove(stage):
    file = stage.victim_file()
    stage.attack("unlink", file)
    return not file.exists()


@attack()
def truncate(stage):
    file = stage.victim_file()
    stage.attack("truncate", file)
    return stage.is_changed(file)


@attack(holes=(1,), unheld=ATTRIBUTES)
def change_mode(stage):
    file = stage.victim_file()
    stage.attack("chmod", file, "0777")
    return file.stat().st_mode & 0o777 == 0o777


@attack(unheld=ATTRIBUTES)
def change_owner(stage):
    """An ordinary user may give the file to itself, which still changes its ctime."""
    file = stage.victim_file()
    before = file.stat()
    stage.attack("chown", file, 1 if stage.is_root else os.getuid())
    return file.stat().st_ctime_ns != before.st_ctime_ns


@attack(unheld=ATTRIBUTES)
def change_times(stage):
    file = stage.victim_file()
    stage.attack("utimes", file)
    return file.stat().st_mtime == 1000


@attack(unheld=ATTRIBUTES)
def set_an_attribute(stage):
    file = stage.victim_file()
    stage.attack("setxattr", file)
    return "user.attack" in os.listxattr(file)


@attack(unheld=ATTRIBUTES)
def set_inode_flags(stage):
    """chattr needs a descriptor for reading only."""
    file = stage.victim_file()
    stage.attack("setflags", file)
    return b"d" in subprocess.run(["lsattr", file], capture_output=True, check=True).stdout[:22]


@attack()
def write_through_a_symlink(stage):
    file = stage.victim_file()
    (stage.ws / "link").symlink_to(file)
    stage.attack("write", stage.ws / "link")
    return stage.is_changed(file)


@attack()
def write_through_a_hard_link_made_inside(stage):
    file = stage.victim_file()
    stage.attack("link-write", file, stage.ws / "link")
    return stage.is_changed(file)


@attack()
def win_a_symlink_race(stage):
    """A name that is a folder one moment and a link to the outside the next."""
    (stage.ws / "real").mkdir()
    (stage.ws / "link").symlink_to(stage.out)
    stage.attack("swap-race", stage.ws / "real", stage.ws / "link", stage.out / "victim",
                 timeout=60)
    return (stage.out / "victim").exists()


@attack()
def write_by_proc_self_root(stage):
    file = stage.victim_file()
    stage.attack("write", f"/proc/self/root{file}")
    return stage.is_changed(file)


@attack()
def write_by_proc_1_root(stage):
    """Inside, pid 1 is the launcher; bare, the victim stands for it."""
    file = stage.victim_file()
    stage.attack("write", f"/proc/{1 if stage.inside else stage.victim().pid}/root{file}")
    return stage.is_changed(file)


@attack()
def write_by_a_host_process_root(stage):
    file, victim = stage.victim_file(), stage.victim()
    stage.attack("write", f"/proc/{victim.pid}/root{file}")
    return stage.is_changed(file)


@attack()
def write_by_a_host_process_cwd(stage):
    file, victim = stage.victim_file(), stage.victim()
    stage.attack("write", f"/proc/{victim.pid}/cwd/victim")
    return stage.is_changed(file)


@attack()
def openat2_without_checks(stage):
    file = stage.victim_file()
    stage.attack("openat2", "/", f"../../{file}", 0)
    return stage.is_changed(file)


@attack()
def openat2_in_another_root(stage):
    """RESOLVE_IN_ROOT makes a folder the root of the path, so that the text looks harmless."""
    file = stage.victim_file()
    (stage.base / "link").symlink_to("/outside/victim")
    stage.attack("openat2", stage.base, "/link", 0x10)
    return stage.is_changed(file)


@attack(holes=(7,))
def write_to_a_host_fifo(stage):
    fifo = stage.out / "fifo"
    os.mkfifo(fifo)
    reader = stage.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    stage.attack("write", fifo)
    try:
        return os.read(reader, 64)
    except BlockingIOError:
        return b""


@attack()
def write_next_to_a_root_by_prefix(stage):
    """/x/project may be written, /x/project-two may not."""
    (stage.base / "project").mkdir()
    file = stage.file("project-two/victim")
    stage.attack("write", file, cordon=["--writable", stage.base / "project"])
    return stage.is_changed(file)


@attack()
def write_to_the_callers_folder(stage):
    """-C fixes the root; the folder that Cordon was started in is none then."""
    file = stage.victim_file()
    stage.attack("write", file, cordon=["-C", stage.ws], cwd=stage.out)
    return stage.is_changed(file)


@attack()
def write_to_a_tmpdir_of_the_requests_choice(stage):
    file = stage.victim_file()
    stage.attack("write", file, cordon=["--env", f"TMPDIR={stage.out}"])
    return stage.is_changed(file)


@attack(refusal_holds=True)
def retarget_a_writable_root(stage):
    """A first command leaves a link where the person will name a root for the next."""
    file = stage.victim_file()
    (stage.ws / "build").mkdir()
    stage.shell('rmdir build && ln -s "$1" build', stage.out)
    stage.attack("write", file, cordon=["--writable", stage.ws / "build"])
    return stage.is_changed(file)


@attack(refusal_holds=True, private_tmp=True)
def retarget_the_tmpdir_of_the_next_run(stage):
    """The same with $TMPDIR, which lies in /tmp, where an earlier command could write."""
    file = stage.victim_file()
    os.mkdir("/tmp/mine")
    stage.shell('rmdir /tmp/mine && ln -s "$1" /tmp/mine', stage.out)
    stage.attack("write", file, env={"TMPDIR": "/tmp/mine"})
    return stage.is_changed(file)


@attack(refusal_holds=True, private_tmp=True)
def retarget_the_workspace(stage):
    """And with the folder of -C."""
    file = stage.victim_file()
    os.makedirs("/tmp/project/current")
    stage.shell('cd /tmp/project && rmdir current && ln -s "$1" current', stage.out)
    stage.attack("write", file, cordon=["-C", "/tmp/project/current"])
    return stage.is_changed(file)


@attack()
def write_to_a_readable_path(stage):
    file = stage.victim_file()
    stage.attack("write", file, cordon=["--readable", stage.out])
    return stage.is_changed(file)


@attack()
def write_under_read_only_in_the_workspace(stage):
    file = stage.file("ws/victim")
    stage.attack("write", file, cordon=["--profile", "read-only"])
    return stage.is_changed(file)


@attack()
def write_to_tmp_under_read_only(stage):
    file = stage.file("tmp/victim")
    stage.attack("write", file, cordon=["--profile", "read-only"])
    return stage.is_changed(file)


@attack(users=("root",), needs_host=True)
def overwrite_a_file_of_another_user(stage):
    """Root without capabilities has no way round a file's mode."""
    file = stage.file("ws/others", mode=0o600)
    os.chown(file, 64998, 64998)
    stage.attack("write", file)
    return stage.is_changed(file)


@attack(users=("root",), needs_host=True)
def read_a_file_of_another_user(stage):
    file = stage.file("ws/others", mode=0o600)
    os.chown(file, 64998, 64998)
    return "original" in stage.attack("read", file).won


@attack(users=("root",), needs_host=True)
def give_a_file_away(stage):
    file = stage.file("ws/mine")
    stage.attack("chown", file, 64998)
    return file.stat().st_uid == 64998


@attack()
def hold_up_who_opens_a_file(stage):
    """By a lease, for which it has to be opened for reading."""
    return stage.run("/usr/bin/python3", "-c", LEASE, stage.victim_file(), 1024).out.endswith("@won\n")


@attack()
def hold_up_with_a_high_bit(stage):
    """The kernel looks at the low half of the command alone."""
    script = LEASE.replace("fcntl.fcntl(fd, int(sys.argv[2]), fcntl.F_WRLCK)",
                           "import ctypes; libc = ctypes.CDLL(None)\n"
                           "if libc.syscall(NR, ctypes.c_long(fd), ctypes.c_long(int(sys.argv[2])), "
                           "ctypes.c_long(fcntl.F_WRLCK)): raise OSError")
    script = script.replace("NR", "25 if os.uname().machine == 'aarch64' else 72")
    return stage.run("/usr/bin/python3", "-c", script, stage.victim_file(),
                     1024 + (1 << 32)).out.endswith("@won\n")
