"""The stage on which one attack plays: folders, files, victims and services that belong to this
attack alone, and the one way to run a command - bare or inside Cordon.

    base/ws        the workspace, current folder of every command; writable inside
    base/tmp       $TMPDIR; writable inside
    base/outside   what the attacks are after; not writable inside
    base/home      $HOME; not writable inside

Whether an attack succeeded is judged from here, outside, by its effect wherever it has one.
"""

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from events import wait_for_end
from watch import PROTECTED, Watch

BUILD = Path(os.environ.get("CORDON_BUILD", Path(__file__).parents[2] / "build"))
CORDON = BUILD / "src/cli/cordon"
LAUNCHER = BUILD / "src/sandbox/launcher/cordon-linux-sandbox"
GUARD = BUILD / "src/guard/cordon-guard"
WAIT = 20  # seconds for anything that must happen
IN_LAYER = os.environ.get("CORDON_IN_LAYER") == "1"  # every command that can be runs in a change layer
TRIES = int(os.environ.get("CORDON_TRIES", "400"))  # of each race; a million takes half an hour


TEMPORARY = re.compile(r"(Cu|t)\w{6}|d+")  # what ln -f and git init make first; a very long name

# Words of the attacks: whatever else comes to be, no command has asked for.
WORDS = set(re.findall(r"[\w.-]*\w", "".join(
    path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("*/*.[cp]*"))))
WORDS |= {"description"}  # git init


def is_attacks(path, top):
    """Whether a command may have made this: never a protected name directly in a folder that it may
    write to."""
    if path.name in PROTECTED:
        return path.parent not in top
    stem = path.name.removesuffix(".lock").rstrip("0123456789")
    return path.name in WORDS or stem in WORDS or not stem or TEMPORARY.fullmatch(path.name)


def is_hidden(path):
    """Kept by Cordon where no command sees it, also when that lies in what it may write."""
    return ".cache/cordon/tmp/" in str(path)


# What is said of a layer when its command has ended.
LAYERS_OWN = re.compile(r"^cordon: (nothing is changed|accepted \d+ changes?).*\n", re.M)


def in_layer(flags):
    """What makes a command of these flags write to a layer, of which all is taken when it has ended: so whatever it
    achieves is there as without, and what it plants the next one finds."""
    has_none = {"disabled", "landlock", "off", "danger-full-access", "read-only", "--layer"} & set(flags)
    if has_none:
        return []
    return ["--layer", "--layer-git", "--at-end", "accept"] if "commit" in flags else ["--undo"]


class Unavailable(Exception):
    """This host lacks what the attack needs; the text says what."""


@dataclass
class Ran:
    """How one command ended."""

    code: int
    out: str
    err: str
    failure: int = 125  # exit status that means that the sandbox did not start the command

    def __str__(self):
        return f"exit status {self.code}\n  out: {self.out[:600]!r}\n  err: {self.err[:600]!r}"

    @property
    def started(self):
        return "@start" in self.out

    @property
    def won(self):
        """What the attack says it achieved; empty when it says that it failed."""
        return "\n".join(line for line in self.out.splitlines() if line.startswith("@won"))

    @property
    def refused(self):
        return self.code == self.failure and not self.started


class Victim:
    """A process of the same user outside the sandbox."""

    def __init__(self, stage, secret):
        self.secret = secret
        self.process = subprocess.Popen([stage.tools / "attacks", "victim", secret],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        cwd=stage.out, env=stage.env)
        stage.cleanup.callback(self.process.kill)
        self.pid = self.process.pid
        self.process.stdout.readline()
        self.address = self.process.stdout.readline().split()[1]

    def lines(self):
        """What it said since the last time. A signal sent before is always seen by now: its
        handler runs before the read returns that our byte ends."""
        if self.process.poll() is not None:
            return ["@dead"]
        self.process.stdin.write("?")
        self.process.stdin.flush()
        said = []
        while not said or not said[-1].startswith("@still"):
            said.append(self.process.stdout.readline().strip())
            if said[-1] == "":
                return said
        return said

    def was_hit(self):
        return "@hit" in self.lines()

    def is_changed(self):
        return self.lines()[-1] != f"@still {self.secret}"


class Service:
    """A socket on the host that knows whether the attack's word reached it."""

    def __init__(self, stage, family=socket.AF_INET, kind=socket.SOCK_STREAM, address=None,
                 protocol=0):
        self.socket = socket.socket(family, kind, protocol)
        stage.cleanup.callback(self.socket.close)
        loopback = "::1" if family == socket.AF_INET6 else "127.0.0.1"
        self.socket.bind(address or (loopback, 0))
        self.is_stream = kind != socket.SOCK_DGRAM
        if self.is_stream:
            self.socket.listen(4)
        self.socket.setblocking(False)
        self.port = None if family == socket.AF_UNIX else self.socket.getsockname()[1]

    def was_reached(self):
        try:
            if not self.is_stream:
                return self.socket.recv(64) == b"attack"
            peer = self.socket.accept()[0]
        except BlockingIOError:
            return False
        with peer:
            peer.settimeout(WAIT)
            return peer.recv(64) == b"attack"


def ignore_gone(_function, _path, info):
    """For rmtree(): what just ends may take its own files away at the same time."""
    if not isinstance(info[1], FileNotFoundError):
        raise info[1]


class Stage:
    def __init__(self, identity, inside, tools, flags=()):
        self.identity = identity
        self.inside = inside  # False: the attack runs bare
        self.tools = Path(tools)
        self.flags = list(flags)  # for every `cordon run`
        self.tries = TRIES
        self.in_layer = IN_LAYER
        self.commits = False  # git writes in repositories, also by way of Cordon
        self.helper = False  # inside by the launcher's own flags in place of `cordon run`
        self.cleanup = contextlib.ExitStack()
        self.runs = []
        self.base = Path(tempfile.mkdtemp(prefix="escape-", dir=os.environ["CORDON_TESTS"]))
        self.cleanup.callback(self.remove_base)
        self.ws, self.out = self.base / "ws", self.base / "outside"
        self.tmp, self.home = self.base / "tmp", self.base / "home"
        self.watch = None  # while commands run inside
        self.watched = [self.ws, self.tmp, self.out]
        self.started = []
        self.appeared = []  # what came to be there that no command has made
        for folder in (self.ws, self.out, self.tmp, self.home):
            folder.mkdir()
        self.env = {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "LANG": "C",
                    "HOME": str(self.home), "TMPDIR": str(self.tmp),
                    "CORDON_LINUX_SANDBOX_EXE": str(LAUNCHER)}

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.cleanup.close()

    def remove_base(self):
        kept = self.home / ".local/state/cordon"
        if kept.is_dir():  # may hold paths that are too long to be said
            subprocess.run(["chmod", "-R", "u+rwx", kept], check=False, stderr=subprocess.DEVNULL)
            subprocess.run(["rm", "-rf", kept], check=False)
        for folder, names, _ in os.walk(self.base):
            for name in names:  # overlayfs leaves one that may not even be listed
                path = Path(folder, name)
                if not path.is_symlink() and os.stat(path).st_uid == os.geteuid():
                    path.chmod(0o700)
        shutil.rmtree(self.base, onerror=ignore_gone)

    @property
    def is_root(self):
        return self.identity.startswith("root")

    # -- things to attack

    def file(self, name, text="original\n", mode=0o644):
        """A file below the base; its folders are made."""
        path = self.base / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(mode)
        return path

    def victim_file(self):
        return self.file("outside/victim")

    def victim(self, secret="victim-secret"):
        return Victim(self, secret)

    def service(self, *args, **kwargs):
        return Service(self, *args, **kwargs)

    def unix_service(self, kind=socket.SOCK_STREAM, path="outside/service.sock"):
        path = self.base / path
        service = self.service(socket.AF_UNIX, kind, str(path))
        service.path = path
        return service

    def open(self, path, flags=os.O_RDONLY):
        """A descriptor of the caller's; it may be handed to a command."""
        fd = os.open(path, flags)
        self.cleanup.callback(os.close, fd)
        return fd

    def git(self, *words, cwd=None, **kwargs):
        """The host's git, as the person uses it after the command."""
        env = dict(self.env, GIT_CONFIG_NOSYSTEM="1", GIT_AUTHOR_NAME="a", GIT_AUTHOR_EMAIL="a@b",
                   GIT_COMMITTER_NAME="a", GIT_COMMITTER_EMAIL="a@b")
        return subprocess.run(["git", *words], cwd=cwd or self.ws, env=env, text=True,
                              capture_output=True, check=False, timeout=WAIT, **kwargs)

    # -- running

    def command(self, argv, cordon=(), bare=()):
        argv = [str(word) for word in argv]
        if not self.inside:
            return [str(word) for word in bare] + argv
        if self.helper:
            return self.helper_command(argv, cordon)
        layer = in_layer([*self.flags, *cordon]) if self.in_layer else []
        flags = [str(flag) for flag in [*layer, *self.flags, *cordon]]
        return [str(CORDON), "run", *flags, "--", *argv]

    def helper_command(self, argv, cordon):
        """The same profile by the flags of Codex's helper, which knows no others."""
        assert not cordon, "the helper has no such flags"
        special = {"root": "read", "project_roots": "write", "slash_tmp": "write",
                   "tmpdir": "write"}
        entries = [{"path": {"type": "special", "value": {"kind": kind}}, "access": access}
                   for kind, access in special.items()]
        profile = {"type": "managed", "network": "restricted",
                   "file_system": {"type": "restricted", "entries": entries}}
        return [str(LAUNCHER), "--sandbox-policy-cwd", str(self.ws), "--command-cwd", str(self.ws),
                "--permission-profile", json.dumps(profile), "--", *argv]

    def start(self, *argv, cordon=(), bare=(), env=None, fds=(), cwd=None, **kwargs):
        """Starts a command; the caller reads its pipes and ends it."""
        self.watch_all()
        kwargs.setdefault("stdin", subprocess.DEVNULL)
        kwargs.setdefault("stdout", subprocess.PIPE)
        kwargs.setdefault("stderr", subprocess.PIPE)
        process = subprocess.Popen(self.command(argv, cordon, bare), cwd=cwd or self.ws, text=True,
                                   env={**self.env, **(env or {})}, pass_fds=fds, errors="replace",
                                   **kwargs)
        self.cleanup.callback(self.stop, process)
        self.started.append(process)
        return process

    def watch_all(self):
        """Nothing of Cordon's may be in a workspace or a temporary folder, at no moment. (Unless its
        own folder is put there.)"""
        if not self.inside or {self.env["HOME"], self.env.get("CORDON_HOME")} != \
                {str(self.home), None}:
            return
        if self.watch is None:
            self.watch = Watch()
            self.cleanup.callback(self.watch.close)
        for folder in self.watched:
            self.watch.add(folder)
        if any(process.poll() is None for process in self.started):
            self.look()
        else:
            self.watch.names()  # the scene

    def look(self):
        """After a command: what it and Cordon have made."""
        if self.watch is not None:
            self.appeared += [path for path in self.watch.names()
                              if not is_attacks(path, self.watched) and not is_hidden(path)
                              and not (self.commits and ".git" in path.parts)
                              and not (self.in_layer and (path.name.startswith(".cordon-layer-")
                                                          or "/.local/state/cordon" in str(path)))]

    def stop(self, process):
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()

    def run(self, *argv, timeout=WAIT, **kwargs):
        """Runs a command to its end. One that hangs is an attack that did not work - and is killed;
        `code` is None then."""
        process = self.start(*argv, **kwargs)
        return self.finish(process, timeout=timeout)

    def finish(self, process, text=None, timeout=WAIT):
        try:
            out, err = process.communicate(text, timeout=timeout)
            code = process.returncode
        except subprocess.TimeoutExpired:
            process.kill()
            code = None
            try:
                out, err = process.communicate(timeout=1)
            except subprocess.TimeoutExpired as late:  # somebody else holds the pipe
                out, err = late.output, late.stderr
                out = out.decode(errors="replace") if isinstance(out, bytes) else out
                err = err.decode(errors="replace") if isinstance(err, bytes) else err
        return self.note_run(code, out or "", err or "")

    def note_run(self, code, out, err):
        """For a case that reads the streams itself: what came."""
        self.look()
        if self.in_layer:
            err = LAYERS_OWN.sub("", err)
        self.runs.append(Ran(code, out, err, 1 if self.helper else 125))
        return self.runs[-1]

    def note_until(self, process, word):
        """Reads until the word comes (or the end), for an attack that is then to go on."""
        out = ""
        while word not in out and (line := process.stdout.readline()):
            out += line
        err = "" if word in out else process.stderr.read()
        self.note_run(None if word in out else process.wait(WAIT), out, err)

    def attack(self, *words, **kwargs):
        return self.run(self.tools / "attacks", *words, **kwargs)

    def shell(self, script, *words, **kwargs):
        """A shell script as the attack; its first line counts as the start."""
        return self.run("/bin/sh", "-c", f"echo '@start shell'; {script}", "sh", *words, **kwargs)

    def tool(self, *words):
        """The output of the attack program run outside, as a help for the harness."""
        return subprocess.run([self.tools / "attacks", *map(str, words)], text=True, check=True,
                              capture_output=True, timeout=WAIT).stdout

    def tool_process(self, *words, **kwargs):
        """The same, left running."""
        process = subprocess.Popen([self.tools / "attacks", *map(str, words)], text=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, **kwargs)
        self.cleanup.callback(self.stop, process)
        process.stdout.readline()
        return process

    # -- judging

    @staticmethod
    def is_changed(path, text="original\n"):
        """Whether a file is no longer what file() made."""
        try:
            return Path(path).read_text(encoding="utf-8", errors="replace") != text
        except OSError:
            return True

    @staticmethod
    def processes(mark):
        """Living processes that carry the mark in their arguments."""
        found = []
        for entry in os.listdir("/proc"):
            if not entry.isdigit() or int(entry) == os.getpid():
                continue
            try:
                command = Path(f"/proc/{entry}/cmdline").read_bytes()
                state = Path(f"/proc/{entry}/stat").read_text("utf-8", "replace")
            except OSError:
                continue
            words = command.split(b"\0")
            if mark.encode() in words and b"run" not in words:
                if state.rpartition(")")[2].split()[0] not in "ZX":
                    found.append(int(entry))
        return found

    def outlives(self, mark, end):
        """Runs `end()` and tells whether a process with the mark is still alive after it. They and
        all between them and us are watched by pidfds: without a pid namespace the launcher ends
        when it has killed one generation after the other."""
        marked = self.remains(mark)
        assert marked, f"no process with {mark}"
        watched = {}
        for pid in {pid for first in marked for pid in self.line_of(first)}:
            with contextlib.suppress(ProcessLookupError):
                watched[pid] = os.pidfd_open(pid)
        end()
        deadline = time.monotonic() + (WAIT / 2 if self.inside else 0.2)
        alive = []
        for pid, pidfd in watched.items():
            with open(pidfd, "rb", buffering=0) as file:
                if not wait_for_end(file, deadline - time.monotonic()) and pid in marked:
                    alive.append(pid)
        return alive or self.remains(mark)

    @staticmethod
    def line_of(pid):
        """A descendant of ours and all above it up to us."""
        line = []
        while pid not in (0, 1, os.getpid()):
            line.append(pid)
            try:
                stat = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
            except OSError:
                break
            pid = int(stat.rpartition(")")[2].split()[1])
        return line

    def remains(self, mark):
        """Living processes with the mark; looks again and again, because one that forks and ends
        all the time is easily missed by a listing."""
        for _ in range(20):
            found = self.processes(mark)
            if found:
                return found
        return []

    @staticmethod
    def send(pid, number=signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
