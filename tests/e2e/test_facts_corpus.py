"""What is said to have been denied, against what was: a corpus of commands that fail.

Half of them the sandbox refuses something (tests/cases/facts/refused.toml), however their programs
speak of it; half fail for reasons of their own (own.toml), whatever they say. What is said has to be
exactly right in all of them, and who follows the remedies has to get there. The head of refused.toml
tells what a case is made of."""
import contextlib
import fnmatch
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import threading
import tomllib
import warnings

import pytest

from harness import TOP, WAIT

CASES = TOP / "tests/cases/facts"
ROUNDS = 4  # of remedies: what is allowed lets a program get to what is refused next
ME = "root" if os.getuid() == 0 else "user"
REFUSALS = {"EROFS", "EACCES", "EPERM", "EXDEV", "ENETUNREACH", "ECONNREFUSED", "EHOSTUNREACH"}
GIT = {"GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.org", "GIT_CONFIG_NOSYSTEM": "1",
       "GIT_COMMITTER_NAME": "C", "GIT_COMMITTER_EMAIL": "c@example.org", "GIT_TERMINAL_PROMPT": "0"}


def cases(name):
    """The cases that this machine has the programs for; of the others a warning is left."""
    table = tomllib.loads((CASES / name).read_text(encoding="utf-8"))
    absent = sorted({program for case in table.values() for program in case.get("needs", [])
                     if shutil.which(program) is None})
    if absent:
        warnings.warn(f"{name}: no cases with {', '.join(absent)}, which this machine lacks")
    return [pytest.param({"name": title, **case}, id=title) for title, case in table.items()
            if not set(case.get("needs", [])) & set(absent) and case.get("user", ME) == ME]


REFUSED, OWN = cases("refused.toml"), cases("own.toml")


def host_address():
    """Of this machine, not that of its localhost; None where it has none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
        try:
            end.connect(("192.0.2.1", 9))  # nothing is sent (RFC 5737: nobody's address)
            return end.getsockname()[0]
        except OSError:
            return None


class Server:
    """Answers at an address and at a Unix socket of the host, and knows who has reached it."""

    KNOCK = b"knock"

    def __init__(self, path):
        self.address = host_address()
        self.guests = 0
        self.ends = [socket.create_server((self.address or "127.0.0.1", 0)),
                     socket.socket(socket.AF_UNIX)]
        self.port = self.ends[0].getsockname()[1]
        self.ends[1].bind(str(path))
        self.ends[1].listen()
        self.threads = [threading.Thread(target=self.serve, args=(end,)) for end in self.ends]
        for thread in self.threads:
            thread.start()

    def serve(self, end):
        while True:
            try:
                peer = end.accept()[0]
            except OSError:
                return
            with peer, contextlib.suppress(OSError):
                peer.settimeout(WAIT)
                if peer.recv(65536) != self.KNOCK:
                    self.guests += 1
                    peer.sendall(b"HTTP/1.0 404 Not Found\r\nContent-Length: 2\r\n\r\n{}")

    def was_reached(self):
        """Who came before us has been served when we are."""
        for end in self.ends:
            with socket.socket(end.family) as knock:
                knock.connect(end.getsockname())
                knock.sendall(self.KNOCK)
                knock.recv(1)
        return self.guests > 0

    def close(self):
        for end in self.ends:
            end.shutdown(socket.SHUT_RDWR)
            end.close()
        for thread in self.threads:
            thread.join()


class Stage:
    """One case on its stage, which is laid anew for every run: what a run does is not there in the next."""

    def __init__(self, place, case):
        self.place, self.case = place, case
        self.server = None
        self.lay()

    def lay(self):
        place = self.place
        for folder in (place.ws, place.tmp, place.home, place.outside):
            subprocess.run(["chmod", "-R", "u+rwX", folder], check=True)
            shutil.rmtree(folder)
            folder.mkdir()
        for folder in (place.ws, place.outside):
            (folder / "tree").mkdir()
            for name in ("note", "old", "tree/a", "tree/b"):
                (folder / name).write_text("a\n")
        if self.server:
            self.server.close()
        self.server = Server(place.outside / "socket")
        self.env = {**place.env, **GIT, "WS": str(place.ws), "OUTSIDE": str(place.outside),
                    "HOST": self.server.address or "192.0.2.1", "PORT": str(self.server.port),
                    "SOCKET": str(place.outside / "socket")}
        for name, value in self.case.get("env", {}).items():
            self.env[name] = re.sub(r"\$(\w+)", lambda found: self.env[found[1]], value)
        if "setup" in self.case:
            ran = self.bare(self.case["setup"])
            assert ran.returncode == 0, ran

    def bare(self, line):
        return subprocess.run(["sh", "-c", line], cwd=self.place.ws, env=self.env, timeout=WAIT,
                              stdin=subprocess.DEVNULL, capture_output=True, check=False)

    def inside(self, *options, line=None):
        """The result of the command in its sandbox."""
        words = ["sh", "-c", line or self.case["run"]]
        ran = self.place.run("--json", *options, "--", *words, env=self.env)
        return json.loads(ran.stdout)

    def follow(self, given, options):
        """The result with the options that remedies named; what only a person can make or do was made or done."""
        self.lay()
        if ("by", "hand") in given:
            subprocess.run(["sh", "-c", self.case["by_hand"]], cwd=self.place.ws, env=self.env, check=True)
        for name in (path for flag, path in given if flag == "--writable"):
            if "then" in self.case and not os.path.exists(name):
                subprocess.run(["git", "init", "-q", os.path.dirname(name)] if name.endswith("/.git")
                               else [self.case.get("made", "mkdir"), name], check=True, env=self.env)
        # what lies in a folder that is opened as well needs no word of its own, unless it is a name that is
        # protected there
        folders = [path for flag, path in given if flag == "--writable"]
        words = [word for flag, path in given for word in (flag, path) if flag != "by" and (
                     "then" in self.case or "/.git/" in path or not any(path.startswith(f"{folder}/") for folder in folders))]
        return self.inside(*options, *words, line=self.case.get("then"))

    def is_proved(self):
        proof = self.case.get("proof", "true")
        if proof == "reached":
            return self.server.was_reached()
        return self.bare(proof).returncode == 0

    def shorten(self, text):
        """As the cases have it: paths from the base of the stage on."""
        return text.replace(f"{os.path.realpath(self.place.base)}/", "")

    def describe(self, denial):
        """A denial as the cases have them."""
        if denial["host"]:
            is_ours = (denial["host"], denial.get("port")) == (self.env["HOST"], self.server.port)
            whom = "HOST" if is_ours else denial["host"]
        else:
            whom = self.shorten(denial["path"] or "")
            if whom == "outside/socket" and denial["operation"] == "connect":
                whom = "SOCKET"
        operation = "create" if denial["creates"] and denial["operation"] == "write" else denial["operation"]
        return f"{operation} {whom}"


@pytest.fixture
def stage(place, request):
    stage = Stage(place, request.param)
    yield stage
    stage.server.close()


def facts(result):
    assert all(denial["evidence"] == "fact" for denial in result["denials"]), result["denials"]
    return result["denials"]


def matches(fact, stage, pattern):
    operation, _, path = pattern.partition(" ")
    if fnmatch.fnmatchcase(stage.describe(fact), f"{operation} {path}"):
        return True
    # a renaming has two names; either is a right answer for both
    other = fact.get("path2")
    return bool(other) and fnmatch.fnmatchcase(stage.shorten(other), path)


def check_facts(stage, result):
    """Every fact is one that the case has, and each of those has been told."""
    case, told = stage.case, facts(result)
    wanted = [line for line in case["denied"] if not line.startswith("?")]
    welcome = [line.removeprefix("? ") for line in case["denied"]]
    said = [f"{stage.describe(fact)} by {fact['program']}" for fact in told]
    assert told, "nothing was said"
    for fact, line in zip(told, said):
        assert any(matches(fact, stage, one) for one in welcome), (line, said)
        assert any(fnmatch.fnmatchcase(fact["program"], name) for name in case["by"]), line
        assert fact["source"] == "sandbox" and fact["decided_by"] and fact["remedy"], fact
        assert fact["errno"] in REFUSALS, fact
    for line in wanted:
        assert any(matches(fact, stage, line) for fact in told), (line, said)


OPTION = re.compile(r"--(writable|readable|socket|network|with|git) ((?:[^\s,.;]|[.,;](?=\S))+)")


def remedies(result):
    """The options that the remedies name first, in their order."""
    found = []
    for denial in result["denials"]:
        option = OPTION.search(denial["remedy"])
        assert option or "yourself, outside of the sandbox" in denial["remedy"], denial["remedy"]
        words = (f"--{option[1]}", option[2]) if option else ("by", "hand")
        if words not in found:
            found.append(words)
    return found


def is_well(stage, result):
    wanted = stage.case.get("exit", 0)
    return result["exit_code"] == wanted and (stage.is_proved() or not stage.server.address)


@pytest.mark.parametrize("stage", REFUSED, indirect=True)
def test_refused(stage):
    case = stage.case
    options = case.get("options", [])
    bare = stage.bare(case["run"])
    assert bare.returncode == case.get("exit", 0), bare
    assert stage.is_proved() or not stage.server.address, "works nowhere"

    stage.lay()
    result = stage.inside(*options)
    check_facts(stage, result)
    assert not is_well(stage, result) or case.get("proof") == "true", "was not refused after all"

    given = remedies(result)
    assert {" ".join((name, stage.shorten(value))) for name, value in given} <= set(case["remedy"])
    for _ in range(ROUNDS):
        result = stage.follow(given, options)
        more = [pair for pair in remedies(result) if pair not in given]
        if not more:
            break
        given += more
    assert is_well(stage, result), (given, result["stderr"], result["denials"])
    left = result["denials"]  # what no option allows is refused again, of which the command went on
    assert ("by", "hand") in given or not left, (given, left)
    assert not [denial for denial in left if OPTION.search(denial["remedy"])], (given, left)


@pytest.mark.parametrize("stage", OWN, indirect=True)
def test_own_reasons(stage):
    case = stage.case
    if case.get("same", True):
        bare = stage.bare(case["run"])
        code = 128 - bare.returncode if bare.returncode < 0 else bare.returncode
        assert code == case["exit"] if "exit" in case else code != 0, bare
        stage.lay()
    else:
        code = None
    result = stage.inside(*case.get("options", []))
    assert code in (None, result["shell_exit_code"]), (code, result["stderr"])
    assert result["shell_exit_code"] != 0
    assert [denial for denial in result["denials"]
            if denial["evidence"] == "fact" or not case.get("guess")] == []


def test_the_corpus_is_large_enough():
    assert len(REFUSED) >= 75 and len(OWN) >= 75
