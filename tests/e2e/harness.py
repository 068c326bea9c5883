"""A place of its own for every end-to-end test, and the one way to call `cordon` in it.

    base/ws        the current folder of every call: the workspace
    base/home      $HOME; in it what commands have as /tmp and /var/tmp
    base/outside   neither
    /tmp/...       $TMPDIR: of this machine, and inside a folder of the same name (`inside_tmp`)

The base is not in /tmp or /var/tmp, where commands have folders of their own (tests/folders.py).
"""
import contextlib
import hashlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

from processes import descendants, name_of, stat_of
from watch import PROTECTED, Watch

TOP = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("CORDON_BUILD", TOP / "build"))
CORDON = BUILD / "src/cli/cordon"
LAUNCHER = BUILD / "src/sandbox/launcher/cordon-linux-sandbox"
# by what root's processes are counted where no cgroup does it
PIDS_OF_ROOT_BY = "pid-namespace" if tuple(map(int, os.uname().release.split("-")[0].split(".")[:2])) >= (6, 14) else "none"
WAIT = 150  # seconds; nothing comes near it, but on a machine with much else to do


def let_age(folder):
    """Until what is there is no conflict to be sure for a step of a layer that begins now: what was changed within 10 ms
    before may have been changed during it. By the clock by which files are stamped and steps begin."""
    while time.clock_gettime(5) - max(path.lstat().st_ctime for path in folder.rglob("*")) < 0.02:  # CLOCK_REALTIME_COARSE
        time.sleep(0.005)


def private_tmp(home, workspace):
    """Where Cordon keeps the temporary folders of a workspace."""
    digest = hashlib.sha256(os.fsencode(workspace)).hexdigest()[:16]
    return pathlib.Path(home, ".cache/cordon/tmp", f"{pathlib.Path(workspace).name}-{digest}")


class Place:
    PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"

    def __init__(self):
        self.cleanup = contextlib.ExitStack()
        self.base = pathlib.Path(tempfile.mkdtemp(prefix="e2e-", dir=os.environ["CORDON_TESTS"]))
        self.cleanup.callback(shutil.rmtree, self.base, ignore_errors=True)
        self.tmp = pathlib.Path(tempfile.mkdtemp(prefix="e2e-", dir="/tmp"))
        self.cleanup.callback(shutil.rmtree, self.tmp, ignore_errors=True)
        self.ws = self.base / "ws"
        self.home, self.outside = self.base / "home", self.base / "outside"
        for folder in (self.ws, self.home, self.outside):
            folder.mkdir()
        self.inside_tmp = private_tmp(self.home, self.ws) / "tmp" / self.tmp.name
        self.env = {"PATH": self.PATH, "LANG": "C",
                    "HOME": str(self.home), "TMPDIR": str(self.tmp)}
        if "CORDON_TEST_STATE" in os.environ:  # scripts/test-layers: where layers are kept
            state = tempfile.mkdtemp(prefix="state-", dir=os.environ["CORDON_TEST_STATE"])
            self.cleanup.callback(shutil.rmtree, state, ignore_errors=True)
            self.env["XDG_STATE_HOME"] = state
        self.watch = None
        self.watched = [self.ws, self.tmp, self.home, self.outside]
        self.appeared = []  # while a command ran inside, or since the last one did

    def make_inside_tmp(self):
        """As Cordon makes it, so that it can be watched, and filled, before a command runs."""
        self.inside_tmp.mkdir(parents=True, exist_ok=True)
        self.inside_tmp.chmod(0o700)
        self.inside_tmp.parent.chmod(0o1777)
        for folder in self.inside_tmp.parents[1:3]:
            folder.chmod(0o700)
        if self.inside_tmp not in self.watched:
            self.watched.append(self.inside_tmp)

    def watch_all(self):
        """Every name that comes to be from now on is seen, were it there for a moment only; as root those
        in /tmp, too."""
        self.watch = Watch()
        self.cleanup.callback(self.watch.close)
        if os.geteuid() == 0:
            self.watched.append(pathlib.Path("/tmp"))

    def watch_begins(self):
        """What has come so far is the test's own."""
        if self.watch:
            for folder in self.watched:
                self.watch.add(folder)
            self.watch.names()

    def watch_ends(self):
        """What has come since."""
        names = self.watch.names() if self.watch else []
        self.appeared += names
        return names

    def of_cordon(self):
        """What has come that no command may make, or that is called after us."""
        self.watch_ends()
        return [path for path in self.appeared if path.parent in self.watched and path not in OF_LAYERS and
                (path.name in PROTECTED or "cordon" in path.name)]

    def config(self, text, name="home/.config/cordon/config.toml"):
        """Writes a config file; by default the one that is found by itself."""
        path = self.base / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def audits(self, words):
        """What commands do is written to the audit log."""
        self.config(f"[audit]\ntrace = {json.dumps(words)}\n")

    def records(self):
        """(event, body) of the audit log."""
        lines = self.cordon("log", "--json").stdout.splitlines()
        return [(record["event"], record["body"]) for record in map(json.loads, lines)]

    def start(self, *words, env=None, cwd=None, program=CORDON, **kwargs):
        """Starts cordon; the test reads and ends it. Whatever is left is killed afterwards."""
        for stream in ("stdin", "stdout", "stderr"):
            kwargs.setdefault(stream, subprocess.PIPE)
        self.watch_begins()
        process = subprocess.Popen([str(program), *map(str, words)], cwd=cwd or self.ws,
                                   env={**self.env, **(env or {})}, **kwargs)
        self.cleanup.callback(self.stop, process)
        return process

    @staticmethod
    def stop(process):
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()

    def cordon(self, *words, text=None, **kwargs):
        """Calls cordon to its end; `.returncode`, `.stdout` and `.stderr` as text."""
        kwargs.setdefault("stdin", subprocess.DEVNULL if text is None else subprocess.PIPE)
        process = self.start(*words, text=True, errors="replace", **kwargs)
        out, err = process.communicate(text, timeout=WAIT)
        if "disabled" in words:  # in no sandbox
            self.watch_begins()
        self.watch_ends()
        return subprocess.CompletedProcess(words, process.returncode, out, err)

    def run(self, *words, **kwargs):
        return self.cordon("run", *words, **kwargs)

    def shell(self, script, *options, **kwargs):
        """`cordon run OPTIONS -- sh -c SCRIPT`."""
        return self.run(*options, "--", "sh", "-c", script, **kwargs)

    def json(self, *words, code=0, **kwargs):
        """Calls cordon, which has to print one JSON value and nothing else on stdout."""
        ran = self.cordon(*words, **kwargs)
        assert ran.returncode == code, ran
        return json.loads(ran.stdout)


def read_until(stream, wanted):
    """Reads from a raw stream until the bytes have come; everything that came."""
    seen = b""
    while wanted not in seen:
        more = os.read(stream.fileno(), 65536)
        assert more, f"the end came before {wanted!r}: {seen!r}"
        seen += more
    return seen


def finish(process, code=None):
    """Waits for a started cordon and returns what was left in its pipes."""
    out, err = process.communicate(timeout=WAIT)
    if code is not None:
        assert process.returncode == code, (process.returncode, out, err)
    return out, err


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def cpu_ticks(pid):
    """What a process has used of the processor, in ticks (SC_CLK_TCK)."""
    return sum(map(int, stat_of(pid)[11:13]))


# Where layers over another file system are, of other tests.
OF_LAYERS = [pathlib.Path(f"{folder}/cordon-{os.getuid()}") for folder in ("/var/tmp", "/dev/shm")]
SIGNALS = {name: getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT")}


def family(pid):
    """{number: name} of all below a process, and itself."""
    return {one: name_of(one) for one in [pid, *descendants(pid)]}
