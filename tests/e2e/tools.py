"""What the tests with real tools share."""
import fnmatch
import hashlib
import os
import pwd
import re
import shutil
import stat
import subprocess
import tempfile
import time
import warnings
from pathlib import Path

import pytest

from harness import BUILD, CORDON, LAUNCHER, WAIT, Place

PYTHON = "/usr/bin/python3"

# Commits by these have the same names on both sides.
GIT_WHO = {f"GIT_{who}_{what}": text for who in ("AUTHOR", "COMMITTER") for what, text in
           (("NAME", who[0]), ("EMAIL", f"{who[0].lower()}@example.org"), ("DATE", "2001-02-03T04:05:06Z"))}
GIT_WHO |= {"GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0"}

# ~/.gitconfig where both sides have to do the same: nothing in the background, or by the number of processors.
GIT_SETTINGS = """
[protocol "file"]
    allow = always
[init]
    defaultBranch = main
[pack]
    threads = 1
[gc]
    auto = 0
[advice]
    detachedHead = false
"""


def need(*programs):
    """Skips the test where the machine lacks a program."""
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed (scripts/deps test)")


def has_account():
    try:
        return bool(pwd.getpwuid(os.getuid()))
    except KeyError:
        return False


def where(*programs, wants_account=False):
    """A test of programs that nobody is asked to install, and that may want to know who their user is:
    elsewhere it is left out, with a warning."""
    absent = [program for program in programs if shutil.which(program, path=Place.PATH) is None]
    if wants_account and not has_account():
        absent.append("account")

    def decide(test):
        if absent:
            warnings.warn(f"{test.__name__} is left out: no {', '.join(absent)}")
        return None if absent else test

    return decide


def passes(ran):
    """The standard output of a command that has to succeed."""
    assert ran.returncode == 0, (ran.returncode, ran.stdout, ran.stderr)
    return ran.stdout


# settings, audit log, temporary folders
OURS = [f"home/{name}" for cordon in (".config", ".cache") for name in (cordon, f"{cordon}/cordon", f"{cordon}/cordon/*")]


class Sides:
    """A script outside of any sandbox and inside, each in the same folders as they were before.

    `loose` are (expression, replacement) for what differs from one run to the next in the output;
    `unlike` are shell patterns of files whose content does, `untold` of those that need not be there.
    `become` are words before both commands, which make them another user's."""

    def __init__(self, place, loose=(), unlike=(), untold=(), env=None, become=(), cordon=CORDON):
        self.place, self.loose, self.unlike, self.untold = place, loose, unlike, [*OURS, *untold]
        self.env = {**place.env, "WS": str(place.ws), **(env or {})}
        self.folders = (place.ws, place.tmp, place.home)
        self.become, self.cordon = [*become], cordon
        self.seconds = [0.0, 0.0]  # outside, inside: the shortest of what was tried last

    def tell(self, text):
        for expression, replacement in self.loose:
            text = re.sub(expression, replacement, text)
        return text

    def content(self, path, name):
        status = path.lstat()
        if stat.S_ISLNK(status.st_mode):
            return os.readlink(path)
        if not stat.S_ISREG(status.st_mode) or any(fnmatch.fnmatch(name, one) for one in self.unlike):
            return None
        return hashlib.sha256(path.read_bytes()).hexdigest(), status.st_nlink

    def name(self, path):
        """Of what lies in one of the folders, the same inside and outside."""
        if path.is_relative_to(self.place.inside_tmp):
            return f"tmp/{path.relative_to(self.place.inside_tmp)}"
        if path.is_relative_to(self.place.tmp):
            return f"tmp/{path.relative_to(self.place.tmp)}"
        return str(path.relative_to(self.place.base))

    def tree(self, tmp):
        """{name: (mode, content)} of everything in the folders."""
        found = {}
        for folder in (tmp if folder == self.place.tmp else folder for folder in self.folders):
            for path in folder.rglob("*"):
                name = self.name(path)
                if not any(fnmatch.fnmatch(name, one) for one in self.untold):
                    found[name] = oct(path.lstat().st_mode), self.content(path, name)
        return found

    def bare(self, script):
        return subprocess.run([*self.become, "bash", "-c", script], cwd=self.place.ws, env=self.env, timeout=WAIT,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              errors="replace", check=False)

    def inside(self, script, *options):
        words = [*self.become, self.cordon, "run", *options, "--", "bash", "-c", script]
        return self.place.cordon(*words[1:], program=words[0], env=self.env)

    def is_strange(self, path, like):
        """In the workspace or $TMPDIR itself, and called like nothing that is made there outside. (What has a
        name at random is a word again.)"""
        words = {re.sub(r"\w+", "x", other.name) for other in like}
        at_the_top = path.parent in (self.place.ws, self.place.tmp, self.place.inside_tmp)
        name = self.name(path) if at_the_top else ""
        return (name and re.sub(r"\w+", "x", path.name) not in words
                and not any(fnmatch.fnmatch(name, one) for one in self.untold))

    def both(self, script, *options, rounds=1):
        """[(exit status, output, errors, tree)] and [names that came] of outside, inside, outside, ..., each in
        the folders as they are now."""
        for file in self.place.home.glob(".config/cordon/audit.*"):
            file.unlink()  # nobody may read the lock
        self.place.make_inside_tmp()
        kept = Path(tempfile.mkdtemp(dir=self.place.base))
        for folder in self.folders:
            shutil.copytree(folder, kept / folder.name, symlinks=True)
        seen, came, took = [], [], ([], [])
        for turn in range(2 * rounds):
            for folder in self.folders:
                shutil.rmtree(folder)
                shutil.copytree(kept / folder.name, folder, symlinks=True)
                owner = self.place.base.stat()
                for path in (folder, *folder.rglob("*")):
                    os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)
            self.place.watch_begins()
            before, start = len(self.place.appeared), time.monotonic()
            ran = self.inside(script, *options) if turn % 2 else self.bare(script)
            took[turn % 2].append(time.monotonic() - start)
            self.place.watch_ends()
            came.append(self.place.appeared[before:])
            seen.append((ran.returncode, self.tell(ran.stdout), self.tell(ran.stderr),
                         self.tree(self.place.inside_tmp if turn % 2 else self.place.tmp)))
        shutil.rmtree(kept)
        self.seconds = [min(side) for side in took]
        return seen, came

    def is_alike(self, script, *options, code=0, rounds=1):
        """The same exit status, output and files; returns the output."""
        seen, came = self.both(script, *options, rounds=rounds)
        bare, inside = seen[:2]
        assert bare[0] == code, bare[:3]
        for inside in seen[1::2]:
            assert inside[:3] == bare[:3], ("inside", inside[:3], "outside", bare[:3])
            differ = {name: (bare[3].get(name), inside[3].get(name))
                      for name in bare[3].keys() | inside[3].keys()
                      if bare[3].get(name) != inside[3].get(name)}
            assert not differ, differ
        assert not [path for path in came[1] if self.is_strange(path, came[0])], came
        self.place.appeared = came[1]
        return inside[1]

    def is_refused(self, script, *options, code=0, inside=1, says):
        """It works outside, ends otherwise inside, and says it in these words."""
        (bare, other), _ = self.both(script, *options)
        assert bare[0] == code, bare[:3]
        assert other[0] == inside and re.search(says, other[1] + other[2]), (says, other[:3], bare[:3])


NOBODY = "65534"


def give_to_nobody(place):
    """Makes the place that of an ordinary user with an account; returns a Cordon that the user can run."""
    for program in (CORDON, LAUNCHER, *BUILD.glob("src/guard/cordon-guard")):
        shutil.copy(program, place.base)
    os.chown(place.tmp, int(NOBODY), int(NOBODY))
    for folder, _, files in os.walk(place.base):
        for name in (folder, *(os.path.join(folder, one) for one in files)):
            os.chown(name, int(NOBODY), int(NOBODY))
    return place.base / CORDON.name
