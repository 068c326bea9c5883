"""What commands of other workspaces, and the host, have in /tmp and /var/tmp."""

import os
import shutil
import tempfile
from pathlib import Path

from catalogue import attack

SECRET = "the-secret"


def left_by_another(stage, place="/tmp"):
    """A file that a command of another workspace left there; its name."""
    other = stage.base / "other"
    other.mkdir()
    name = f"left-{stage.base.name}"
    stage.cleanup.callback(Path(place, name).unlink, missing_ok=True)
    stage.shell(f'echo {SECRET} >"$1"', f"{place}/{name}", cwd=other)
    return name


def of_the_host(stage, name="file"):
    """A folder in the host's /tmp, with a file; the file."""
    folder = Path(tempfile.mkdtemp(prefix="of-the-host-", dir="/tmp"))
    stage.cleanup.callback(shutil.rmtree, folder)
    (folder / name).write_text(SECRET)
    return folder / name


def has_secret(ran):
    return SECRET in ran.out


@attack()
def read_what_another_workspace_left(stage):
    return has_secret(stage.shell('cat "$1"', f"/tmp/{left_by_another(stage)}"))


@attack()
def read_what_another_workspace_left_in_var_tmp(stage):
    return has_secret(stage.shell('cat "$1"', f"/var/tmp/{left_by_another(stage, '/var/tmp')}"))


@attack()
def find_what_another_workspace_left(stage):
    """Where it is kept is no secret."""
    name = left_by_another(stage)
    return has_secret(stage.shell('cat ~/.cache/cordon/tmp/*/tmp/"$1" /tmp/"$1"; '
                                  'cat $(find ~ /tmp -name "$1")', name))


@attack()
def find_what_another_workspace_left_from_home(stage):
    """The home directory is the workspace: everything there may be written, and renamed."""
    stage.home = stage.ws
    stage.env["HOME"] = str(stage.ws)
    name = left_by_another(stage)
    return has_secret(stage.shell('cd; mv .cache/cordon/tmp/* . ; mv .cache/cordon/tmp moved; mv .cache/cordon x; '
                                  'mv .cache y; cat $(find . /tmp -name "$1")', name))


@attack()
def find_it_with_an_open_cache(stage):
    name = left_by_another(stage)
    cache = stage.home / ".cache"
    cache.mkdir(exist_ok=True)
    return has_secret(stage.shell('cat $(find "$2" /tmp -name "$1")', name, cache,
                                  cordon=["--writable", cache, "--readable", cache / "cordon"]))


@attack()
def change_what_another_workspace_left(stage):
    name = left_by_another(stage)
    stage.shell('echo changed >"$1"', f"/tmp/{name}")
    return "changed" in stage.shell('cat "$1"', f"/tmp/{name}", cwd=stage.base / "other").out


@attack(unheld="without mounts the host's /tmp is there, to be read")
def read_what_the_host_has(stage):
    return has_secret(stage.shell('cat "$1"', of_the_host(stage)))


@attack()
def write_where_the_host_reads(stage):
    file = of_the_host(stage)
    stage.shell('echo changed >"$1"; cd /tmp; for f in */file; do echo changed >"$f"; done', file)
    return stage.is_changed(file, SECRET)


@attack(silent=True, refusal_holds=True)
def plant_a_link_for_the_next_mount(stage):
    """What is shown at /tmp/NAME/open would be looked for through a link that an earlier command made."""
    file = of_the_host(stage)
    victim = stage.file("outside/open/victim")
    (file.parent / "open").mkdir()
    stage.shell('cd /tmp; test -e "$1" && mv "$1" away; ln -s "$2" "$1"', file.parent, stage.out)
    stage.shell('echo changed >"$1/open/victim"', file.parent,
                cordon=["--writable", file.parent / "open"] if file.parent.is_dir() else [])
    if file.parent.is_symlink():  # bare
        file.parent.unlink()
        os.rename("/tmp/away", file.parent)
    return stage.is_changed(victim)


@attack()
def move_the_workspace_away_under_its_guards(stage):
    """A workspace below /tmp: the folders on the way to it are the command's own."""
    folder = of_the_host(stage).parent
    workspace = folder / "deep/ws"
    workspace.mkdir(parents=True)
    stage.shell('cd /tmp; mv "$1" moved; mv "$1/deep" "$1/x"; for at in moved/deep "$1/x" "$1/deep"; do '
                'mkdir -p "$at/ws/.git/hooks" && echo x >"$at/ws/.git/hooks/post-commit"; done',
                folder, cwd=workspace)
    moved = Path("/tmp/moved")
    found = bool(list(folder.rglob("post-commit")) or list(moved.rglob("post-commit")))
    if moved.exists():
        shutil.rmtree(moved)
    return found
