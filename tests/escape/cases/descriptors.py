"""Descriptors that the caller left open, and the three that every command gets."""

import os
import socket

from catalogue import attack


@attack(holes=(6,))
def reopen_stdin_for_writing(stage):
    """`cordon run -- CMD < file`: the descriptor's mount is the host's."""
    file = stage.victim_file()
    stage.attack("fd-reopen", 0, stdin=stage.open(file))
    return stage.is_changed(file)


@attack(holes=(6,))
def truncate_stdin(stage):
    """truncate(2) by the name that /proc has for it."""
    file = stage.victim_file()
    stage.attack("fd-truncate", 0, stdin=stage.open(file))
    return stage.is_changed(file)


@attack(holes=(6,))
def change_the_mode_of_stdin(stage):
    file = stage.victim_file()
    stage.attack("fd-chmod", 0, stdin=stage.open(file))
    return file.stat().st_mode & 0o777 == 0o777


@attack(holes=(6,))
def change_the_times_of_stdin(stage):
    file = stage.victim_file()
    stage.attack("fd-utimes", 0, stdin=stage.open(file))
    return file.stat().st_mtime == 1000


@attack(holes=(6,))
def set_an_attribute_of_stdin(stage):
    file = stage.victim_file()
    stage.attack("fd-setxattr", 0, stdin=stage.open(file))
    return "user.attack" in os.listxattr(file)


@attack(holes=(6,))
def reopen_an_inherited_file_for_writing(stage):
    file = stage.victim_file()
    fd = stage.open(file)
    stage.attack("fd-reopen", fd, fds=[fd])
    return stage.is_changed(file)


@attack(holes=(6,))
def write_to_an_inherited_file(stage):
    file = stage.victim_file()
    fd = stage.open(file, os.O_WRONLY)
    stage.attack("fd-write", fd, fds=[fd])
    return stage.is_changed(file)


@attack(holes=(6,))
def create_below_an_inherited_folder(stage):
    """CVE-2024-21626: a folder of the host's, by number."""
    fd = stage.open(stage.out, os.O_RDONLY | os.O_DIRECTORY)
    stage.attack("fd-create", fd, "made", fds=[fd])
    return (stage.out / "made").exists()


@attack(holes=(6,))
def climb_from_an_inherited_folder(stage):
    """A folder of the workspace, opened outside, whose `..` is the host's."""
    fd = stage.open(stage.ws, os.O_RDONLY | os.O_DIRECTORY)
    stage.attack("fd-chdir", fd, "../outside/made", fds=[fd])
    return (stage.out / "made").exists()


@attack(holes=(6,))
def create_below_an_inherited_path_descriptor(stage):
    fd = stage.open(stage.out, os.O_PATH | os.O_DIRECTORY)
    stage.attack("fd-create", fd, "made", fds=[fd])
    return (stage.out / "made").exists()


@attack(holes=(6,))
def truncate_the_log_on_stdout(stage):
    """`cordon run -- CMD >> log`: appended to, never rewritten."""
    log = stage.file("outside/log")
    with open(log, "a", encoding="utf-8") as out:
        stage.run(stage.tools / "attacks", "fd-reopen", 1, stdout=out)
    stage.note_run(0, log.read_text(), "")
    text = log.read_text()
    return not text.startswith("original\n")


@attack(silent=True)  # where stdout is a pipe, dd may get to read what was said
def read_the_file_on_stdout(stage):
    """A file that is given for writing only is not there to be read. Without waiting: a pipe to which
    one may write oneself has no end."""
    log = stage.file("outside/log", "the-secret\n")
    with open(log, "a", encoding="utf-8") as out:
        stage.run("/bin/sh", "-c", "echo @start; exec 4>&1; dd if=/proc/self/fd/4 of=copy iflag=nonblock",
                  stdout=out)
    stage.note_run(0, log.read_text(), "")
    copy = stage.ws / "copy"
    return copy.exists() and "the-secret" in copy.read_text()


@attack()
def use_any_descriptor_above_two(stage):
    """Nothing but 0, 1 and 2 arrives, whatever the caller or Cordon had open."""
    fd = stage.open(stage.victim_file())
    script = "import os; print('@start', os.listdir('/proc/self/fd'))"
    ran = stage.run("/usr/bin/python3", "-c", script, fds=[fd])
    return len(ran.out.split(",")) > 4  # 0, 1, 2 and the listing itself


@attack()
def take_a_descriptor_of_a_host_process(stage):
    return stage.attack("pidfd-getfd", stage.victim().pid, 0).won


@attack()
def take_a_descriptor_of_init(stage):
    return stage.attack("pidfd-getfd", 1 if stage.inside else stage.victim().pid, 1).won


@attack(holes=(6,))
def folder_received_by_stdin(stage):
    """The caller's stdin is a socket, and somebody at its other end sends a folder."""
    ours, theirs = socket.socketpair()
    stage.cleanup.callback(ours.close)
    stage.cleanup.callback(theirs.close)
    folder = stage.open(stage.out, os.O_RDONLY | os.O_DIRECTORY)
    socket.send_fds(ours, [b"x"], [folder])
    ours.shutdown(socket.SHUT_WR)
    stage.attack("fd-receive", 0, "made", stdin=theirs)
    return (stage.out / "made").exists()


@attack()
def reply_to_stdin(stage):
    """A socket given for reading is as good for writing."""
    ours, theirs = socket.socketpair()
    stage.cleanup.callback(ours.close)
    stage.cleanup.callback(theirs.close)
    ours.shutdown(socket.SHUT_WR)
    ours.setblocking(False)
    stage.attack("fd-send", 0, stdin=theirs)
    try:
        return ours.recv(64) == b"attack"
    except BlockingIOError:
        return False
