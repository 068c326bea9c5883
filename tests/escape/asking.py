"""A command inside whose questions the test answers: cordon-asker (asker.c) in place of `cordon run`.

The folders are a stage's: ws is writable, out is not, out/secret is denied, out/own belongs to Cordon, and
.git is kept out of ws."""

import os
import signal
import socket
import subprocess
from dataclasses import dataclass

import pytest

import identity
from processes import children, name_of
from stage import BUILD, IN_LAYER, TRIES, WAIT, Stage

ASKER = BUILD / "tests/escape/cordon-asker"
NAMES = [name for name in identity.here() if identity.has_namespaces(name)]  # who can play
FILES = ("f", "g", "open/f", "secret/f", "own/f", "sub/f")


@pytest.fixture(autouse=True)
def need_asker(lack):
    """Of the files that import it."""
    if not ASKER.exists():
        lack(f"{ASKER} is not built")


def play(name, tools, scene, inside=True):
    """Plays it on a stage whose outside has FILES."""
    def whole():
        with Stage(name, inside, tools) as stage:
            (stage.out / "open").mkdir()
            for file in FILES:
                stage.file(f"outside/{file}")
            return scene(stage)
    return identity.play(name, whole, timeout=identity.TIMEOUT + 60)


@dataclass(frozen=True)
class Said:
    """One line: asked, withdrawn, done, denied, exited or unguarded."""

    kind: str
    numbers: tuple
    texts: tuple

    @property
    def id(self):
        return self.numbers[0]

    @property
    def path(self):
        return self.texts[0]

    @property
    def covers(self):
        """What a yes opens, of both paths."""
        return self.texts[2] or self.path, self.texts[3]


class Asking:
    def __init__(self, stage, *argv, words=(), **kwargs):
        self.stage = stage
        self.said = []
        self.talk, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.talk.settimeout(WAIT + TRIES // 500)
        stage.cleanup.callback(self.talk.close)
        if words is None:  # read-only
            words = []
        else:
            words = [f"write={stage.ws}", f"held={stage.ws}/.git", f"deny={stage.out}/secret",
                     f"own={stage.out}/own", *(["layer"] if IN_LAYER else []), *words]
        kwargs.setdefault("stdin", subprocess.DEVNULL)
        self.process = subprocess.Popen(
            [ASKER, str(theirs.fileno()), *map(str, words), "--", *map(str, argv)],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=stage.ws,
            env=stage.env, pass_fds=[theirs.fileno()], **kwargs)
        theirs.close()
        stage.cleanup.callback(stage.stop, self.process)

    def next(self):
        """The next line; None at the end."""
        try:
            line = self.talk.recv(1 << 16)
        except ConnectionResetError:  # it ended with an answer of ours unread; what it said comes behind that
            line = self.talk.recv(1 << 16)
        line = line.decode("utf-8", "replace")
        if not line:
            return None
        head, *texts = line.rstrip("\n").split("\t")
        kind, *numbers = head.split()
        self.said.append(Said(kind, tuple(map(int, numbers)), tuple(texts)))
        return self.said[-1]

    def until(self, *kinds):
        """The next of these kinds."""
        while (said := self.next()) is not None:
            if said.kind in kinds:
                return said
        raise AssertionError(f"no {kinds}: {self.said}, {self.process.communicate()[0]}")

    def answer(self, word, number):
        self.talk.send(f"{word} {number}".encode())

    def serve(self, judge):
        """Answers by judge(question) ("yes", "no", None: not at all) to the end; what was written."""
        while (said := self.next()) is not None and said.kind not in ("exited", "unguarded"):
            if said.kind == "asked" and (word := judge(said)):
                self.answer(word, said.id)
        return self.finish()

    def finish(self):
        self.stage.look()
        return self.process.communicate(timeout=WAIT)[0]

    def all(self, kind):
        return [said for said in self.said if said.kind == kind]

    def guard(self):
        """The pid of the guard."""
        for pid in children(self.process.pid):
            if name_of(pid) == "cordon-guard":
                return pid
        raise AssertionError(f"no guard below {self.process.pid}")

    def kill(self, number=signal.SIGKILL):
        os.kill(self.process.pid, number)


def below(*folders):
    """Yes to what lies in one of these, no to all else."""
    def judge(question):
        return "yes" if any(question.path.startswith(f"{folder}/") or question.path == str(folder)
                            for folder in folders) else "no"
    return judge
