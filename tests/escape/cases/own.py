"""Cordon's own files: what rules the next run must not be written by this one."""

import json
import os
import shutil
import subprocess
from pathlib import Path

from catalogue import attack
from stage import BUILD, CORDON, GUARD, LAUNCHER, WAIT

DANGER = 'sandbox_mode = \\"danger-full-access\\"'


def next_run_writes_outside(stage):
    """Whether a later plain run is no longer held."""
    file = stage.victim_file()
    if stage.inside:
        stage.attack("write", file)
    elif not (stage.ws / ".config/cordon/config.toml").exists():
        return False
    else:
        stage.attack("write", file)
    return stage.is_changed(file)


@attack()
def configure_the_next_run(stage):
    """The workspace is the home folder: the configuration lies inside."""
    stage.env["HOME"] = str(stage.ws)
    stage.file("ws/.config/cordon/config.toml", "# mine\n")
    stage.shell(f'echo "{DANGER}" > .config/cordon/config.toml')
    return next_run_writes_outside(stage)


@attack()
def make_the_missing_configuration(stage):
    stage.env["HOME"] = str(stage.ws)
    stage.shell(f'mkdir -p .config/cordon && echo "{DANGER}" > .config/cordon/config.toml')
    return next_run_writes_outside(stage)


@attack()
def make_the_missing_configuration_in_cordon_home(stage):
    """$CORDON_HOME below the workspace under an innocent name."""
    stage.env["CORDON_HOME"] = str(stage.ws / "settings")
    stage.shell(f'mkdir -p settings && echo "{DANGER}" > settings/config.toml')
    if stage.inside:
        return next_run_writes_outside(stage)
    return (stage.ws / "settings/config.toml").exists()


@attack()
def move_the_configuration_by_its_parent(stage):
    stage.env["HOME"] = str(stage.ws)
    stage.file("ws/.config/cordon/config.toml", "# mine\n")
    stage.shell(f'mv .config old; mkdir -p .config/cordon;'
                f'echo "{DANGER}" > .config/cordon/config.toml')
    return next_run_writes_outside(stage)


@attack()
def replace_the_launcher(stage):
    """A build of Cordon lies in the workspace, as it does for us who build it."""
    marker = stage.out / "ran-outside"
    fake = f"#!/bin/sh\ntouch {marker}\n"
    stage.file("ws/fake", fake, 0o755)
    launcher = stage.file("ws/build/cordon-linux-sandbox", "", 0o755)
    cordon = stage.file("ws/build/cordon", "", 0o755)
    if CORDON.exists():
        shutil.copy(LAUNCHER, launcher)
        shutil.copy(CORDON, cordon)
    stage.env["CORDON_LINUX_SANDBOX_EXE"] = str(launcher)
    stage.shell("cp -f fake build/cordon-linux-sandbox; mv -f fake build/cordon-linux-sandbox")
    if stage.inside:
        stage.shell("true")
        return marker.exists()
    return launcher.read_text(errors="replace") == fake


@attack()
def replace_the_launcher_behind_a_link(stage):
    """The person names it by a path outside that leads into the workspace."""
    marker = stage.out / "ran-outside"
    fake = f"#!/bin/sh\ntouch {marker}\n"
    stage.file("ws/fake", fake, 0o755)
    launcher = stage.file("ws/build/cordon-linux-sandbox", "", 0o755)
    if LAUNCHER.exists():
        shutil.copy(LAUNCHER, launcher)
    (stage.out / "link").symlink_to(stage.ws / "build")
    stage.env["CORDON_LINUX_SANDBOX_EXE"] = str(stage.out / "link/cordon-linux-sandbox")
    stage.shell("cp -f fake build/cordon-linux-sandbox; mv -f fake build/cordon-linux-sandbox")
    if stage.inside:
        stage.shell("true")
        return marker.exists()
    return launcher.read_text(errors="replace") == fake


@attack()
def replace_the_guard(stage):
    """The same with the program that answers for the sandbox, and runs outside of it."""
    marker = stage.out / "ran-outside"
    fake = f"#!/bin/sh\ntouch {marker}\n"
    stage.file("ws/fake", fake, 0o755)
    guard = stage.file("ws/build/cordon-guard", "", 0o755)
    launcher = stage.file("ws/build/cordon-linux-sandbox", "", 0o755)
    if LAUNCHER.exists():
        shutil.copy(LAUNCHER, launcher)
        shutil.copy(GUARD, guard)
    stage.env["CORDON_LINUX_SANDBOX_EXE"] = str(launcher)
    stage.shell("cp -f fake build/cordon-guard; mv -f fake build/cordon-guard")
    if stage.inside:
        stage.shell("mkdir x")
        return marker.exists()
    return guard.read_text(errors="replace") == fake


@attack()
def make_the_missing_configuration_behind_a_link(stage):
    """$CORDON_HOME by a path outside that leads into the workspace."""
    (stage.ws / "settings").mkdir()
    (stage.out / "link").symlink_to(stage.ws / "settings")
    stage.env["CORDON_HOME"] = str(stage.out / "link")
    stage.shell(f'echo "{DANGER}" > settings/config.toml')
    if stage.inside:
        return next_run_writes_outside(stage)
    return (stage.ws / "settings/config.toml").exists()


@attack()
def write_rules_and_presets_behind_links(stage):
    """The workspace is where people keep their settings: links lead to a folder that is missing, and to one in which there
    is a link to a file."""
    settings = stage.out / "settings"
    preset = stage.file("ws/mine.toml")
    (stage.ws / "presets").mkdir()
    (stage.ws / "presets/mine.toml").symlink_to(preset)
    settings.mkdir()
    for name in ("rules", "presets"):
        (settings / name).symlink_to(stage.ws / name)
    stage.env["CORDON_HOME"] = str(settings)
    stage.shell("mkdir rules; echo 'write = [\"~/x\"]' >>mine.toml; touch presets/new.toml; ln -sf /etc/passwd presets/mine.toml;"
                "mv presets moved")
    return [path for path in (stage.ws / "rules", stage.ws / "moved", stage.ws / "presets/new.toml") if path.exists()] or \
        stage.is_changed(preset) or not (stage.ws / "presets/mine.toml").samefile(preset)


@attack(silent=True, private_tmp=True)
def mislead_the_clean_up(stage):
    """What Cordon removes after a run is named by its registry: no file of ours may be added to it,
    whatever the command writes to the folders it may write to. An empty file outside, and one in
    the workspace, must both live."""
    keep = [stage.file("outside/empty", ""), stage.file("ws/empty", "")]
    (stage.out / "folder").mkdir()
    if not stage.inside:
        stage.shell('rm "$1/empty"', stage.out)
        return not keep[0].exists()
    stage.shell('find / -xdev -name "*cordon*" -writable -not -path "/proc/*" 2>/dev/null |'
                ' while read -r found; do [ -d "$found" ] && echo "$1/empty" > "$found/1"; done;'
                ' true', stage.out)
    stage.run("/bin/true")
    return not all(os.path.exists(path) for path in [*keep, stage.out / "folder"])


@attack(holes=(3,), users=("user",), refusal_holds=True)
def plant_a_link_where_its_state_is_made(stage):
    """The workspace is the home folder; a link there must not lead Cordon to make folders
    elsewhere. Bare, mkdir stands for it."""
    stage.env["HOME"] = str(stage.ws)
    stage.shell('ln -s "$1" .local; ln -s "$1" .config; ln -s "$1" .cache', stage.out)
    if stage.inside:
        stage.shell("true")
    else:
        stage.shell("mkdir -p .local/state/cordon")
    return sorted(path.name for path in stage.out.iterdir())


@attack(holes=(15,), private_tmp=True)
def take_the_names_of_its_temporary_files(stage):
    """What Cordon itself makes in a shared folder under a name that can be known beforehand may be
    there already, left by another run or put there by another user. Bare, a shell's noclobber
    stands for a program with such a name."""
    folders = ["/tmp", stage.tmp]
    script = 'ls -A "$@"; echo @start'
    if not stage.inside:
        return stage.shell("set -C; : > /tmp/name-$$; : > /tmp/name-$$").code
    ran = stage.run("/bin/sh", "-c", script, "sh", *folders)
    shown = subprocess.run([CORDON, "explain", *stage.flags, "--json"], cwd=stage.ws, check=True,
                           env={**os.environ, "HOME": str(stage.home)},
                           stdout=subprocess.PIPE).stdout
    protected = {Path(entry["path"]).name for entry in json.loads(shown)["entries"]
                 if entry["protected"]}
    names = {name for name in ran.out.split() if "/" not in name} - protected - {"@start"}
    names |= {path.name for folder in folders for path in Path(folder).iterdir()}
    for name in names - {part for path in (BUILD, __file__) for part in Path(path).resolve().parts}:
        for path in (Path(folder) / name for folder in folders):
            if path.is_dir():
                shutil.rmtree(path)
            path.write_text("stale")
    return stage.run("/bin/sh", "-c", script, "sh", *folders).code != 0


@attack(private_tmp=True)
def find_writable_files_of_cordon(stage):
    """Nothing that Cordon keeps for itself may be written inside: not its registry, not its locks,
    not what stands in for missing names."""
    folders = ["/tmp", stage.tmp, "/dev/shm", "/run", stage.home] if stage.inside else [stage.tmp]
    script = ('for d in "$@"; do '
              'find "$d" -xdev -iname "*cordon*" -not -name "cordon-escape-*"; done 2>/dev/null |'
              ' while read -r found; do if [ -d "$found" ]; then mkdir "$found/probe"; '
              'else : >> "$found"; fi 2>/dev/null && echo "@won $found"; done; true')
    if not stage.inside:
        stage.file("tmp/cordon-registry/lock")
    return stage.shell(script, *folders).won


# Locks what it can open below the folder given, by each kind of lock there is, again at each line of
# its input, and keeps that until its input ends.
KEEP_LOCKS = """
import fcntl, os, struct, sys
print("@start", flush=True)
OFD_SETLK = 37
kept = []
def lock(path, flags):
    fd = os.open(path, flags)
    kept.append(fd)  # closing one would drop the POSIX locks of the others
    kind = fcntl.F_RDLCK if flags == os.O_RDONLY else fcntl.F_WRLCK
    whole = struct.pack("hhqqi", kind, os.SEEK_SET, 0, 0, 0)
    for take in (lambda: fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB),
                 lambda: fcntl.fcntl(fd, fcntl.F_SETLK, whole),
                 lambda: fcntl.fcntl(fd, OFD_SETLK, whole)):
        try:
            take()
        except OSError:
            continue
while True:
    for folder, _, names in os.walk(sys.argv[1]):
        for name in (".", *names):
            for flags in (os.O_WRONLY, os.O_RDONLY):
                try:
                    lock(os.path.join(folder, name), flags)
                except OSError:
                    continue
    print("@locked", flush=True)
    if not sys.stdin.readline():
        break
"""


def next_cordon(stage, *words):
    """Another one, of the person; what it says, or None when it hangs."""
    try:
        return subprocess.run([CORDON, *words], env=stage.env, cwd=stage.out, text=True, check=True,
                              capture_output=True, timeout=WAIT / 2).stderr
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError):
        return None


def lock_all(stage, folder):
    """A command that locks what it can below the folder, and the folder; has done so."""
    process = stage.start("/usr/bin/python3", "-c", KEEP_LOCKS, folder, stdin=subprocess.PIPE)
    stage.note_until(process, "@locked")
    return process


def keep_locked(stage, *words):
    """Whether another Cordon is kept from its work by a command that locks what it can."""
    next_cordon(stage, "run", *stage.flags, "--", "/bin/true")
    next_cordon(stage, "rules", "add", "--", "first")
    next_cordon(stage, "log")
    process = lock_all(stage, stage.home / ".config/cordon")
    if stage.inside:  # bare, where one attempt is enough, each waits for seconds
        next_cordon(stage, "log")  # may leave files that were not there before
        process.stdin.write("again\n")
        process.stdin.flush()
        stage.note_until(process, "@locked")
        next_cordon(stage, "run", *stage.flags, "--", "/bin/true")
    said = next_cordon(stage, *words)
    process.stdin.close()
    process.wait(WAIT)
    return said is None or "not in the audit log" in said or "locked" in said


@attack()
def keep_what_others_do_out_of_the_log(stage):
    return keep_locked(stage, "run", *stage.flags, "--", "/bin/true")


@attack()
def keep_rules_from_being_added(stage):
    return keep_locked(stage, "rules", "add", "--", "second")


@attack()
def keep_the_log_from_being_moved_and_shown(stage):
    return keep_locked(stage, "log")


@attack()
def keep_a_server_from_starting(stage):
    """Servers that start at the same moment wait for each other by a lock on the socket's folder. Bare, it is
    the name that is taken."""
    path = stage.file("outside/run/none").parent / "sock"
    process = lock_all(stage, path.parent)
    if not stage.inside:
        stage.shell('ln -s /nowhere "$1"', path)
    server = subprocess.Popen([CORDON, "serve", "--listen", f"unix:{path}"], env=stage.env, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    line = next((line for line in server.stdout if line.startswith("unix:")), "")
    server.kill()
    server.communicate()
    process.stdin.close()
    process.wait(WAIT)
    return not line
