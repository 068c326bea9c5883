"""The real work of an agent in a layer beside a person's in the same tree: edits, builds, npm ci, git on the one side; edits
by every way in which editors write, new files, commits on the other. Each of both leaves marks, lines that nobody else
writes. At the end each of the person's is in the real tree, and each of the agent's there or in the layer: whatever was
edited by both is a conflict, and stays there. CORDON_LAYER_STEPS steps (scripts/test-layers: 200)."""
import contextlib
import json
import os
import random
import shutil
import subprocess
import tarfile
import threading
import time

import pytest

STEPS = int(os.environ.get("CORDON_LAYER_STEPS", "24"))
FILES = [f"src/part{i}.c" for i in range(8)] + [f"notes/n{i}.txt" for i in range(8)]
GIT = {"GIT_AUTHOR_NAME": "p", "GIT_AUTHOR_EMAIL": "p@example.org", "GIT_COMMITTER_NAME": "p",
       "GIT_COMMITTER_EMAIL": "p@example.org"}


def make_project(place):
    ws = place.ws
    for folder in ("src", "notes", "app", "packages"):
        (ws / folder).mkdir()
    for name in FILES:
        (ws / name).write_text("/* begins */\n")
    (ws / "src/main.c").write_text("int main(void)\n{\n    return 0;\n}\n")
    (ws / "Makefile").write_text("objects = $(patsubst %.c,%.o,$(wildcard src/*.c))\nbuild/program: $(objects)\n"
                                 "\t@mkdir -p build\n\tgcc -o $@ $^\n")
    (ws / ".gitignore").write_text("*.o\nbuild/\nnode_modules/\npackages/\n")
    needs, locked = {}, {"": {"name": "app", "version": "1.0.0"}}
    for i in range(3):
        package = place.outside / "package"
        package.mkdir()
        (package / "package.json").write_text(json.dumps({"name": f"p{i}", "version": "1.0.0"}))
        (package / "index.js").write_text("1\n")
        with tarfile.open(ws / f"packages/p{i}.tgz", "w:gz") as archive:
            archive.add(package, "package")
        shutil.rmtree(package)
        needs[f"p{i}"] = f"file:../packages/p{i}.tgz"
        locked[f"node_modules/p{i}"] = {"version": "1.0.0", "resolved": needs[f"p{i}"]}
    locked[""]["dependencies"] = needs
    (ws / "app/package.json").write_text(json.dumps({"name": "app", "version": "1.0.0", "dependencies": needs}))
    (ws / "app/package-lock.json").write_text(json.dumps(
        {"name": "app", "version": "1.0.0", "lockfileVersion": 3, "requires": True, "packages": locked}))
    for words in (["config", "--global", "user.name", "agent"], ["config", "--global", "user.email", "agent@example.org"],
                  ["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-qm", "begins"]):
        subprocess.run(["git", *words], cwd=ws, env=place.env, check=True)


class Person(threading.Thread):
    """Writes lines of its own, never removes one; is not in the middle of an edit while something is accepted."""

    def __init__(self, place, seed):
        super().__init__()
        self.place, self.random = place, random.Random(seed)
        self.marks = {}  # mark: the file it was written to
        self.editing = threading.Lock()
        self.ends = threading.Event()

    def run(self):
        number = 0
        while not self.ends.wait(self.random.uniform(0.005, 0.12)):
            number += 1
            with self.editing:
                self.edit(f"/* person {number}. */")

    def edit(self, mark):
        way, name = self.random.randrange(10), self.random.choice(FILES)
        path = self.place.ws / name
        if way == 0:
            path = self.place.ws / f"notes/person{len(self.marks)}.txt"
        if way == 1:
            subprocess.run("git add -A; git commit -qm person", shell=True, cwd=self.place.ws, env={**self.place.env, **GIT},
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            return
        if way < 6 and path.exists():  # as most editors
            new = path.with_name(path.name + ".person~")
            new.write_text(path.read_text() + mark + "\n")
            shutil.copymode(path, new)
            os.replace(new, path)
        else:
            with path.open("a") as file:
                file.write(mark + "\n")
        self.marks[mark] = path


class Agent:
    def __init__(self, place, seed):
        self.place, self.random = place, random.Random(seed)
        self.marks, self.commits = [], []

    def script(self, number):
        mark = f"/* agent {number}. */"
        way, name = self.random.randrange(12), self.random.choice(FILES)
        other = self.random.choice(FILES)
        if way < 7:
            self.marks.append(mark)
        if way == 0:
            return f"echo '{mark}' > notes/agent{number}.txt"
        if way == 1:
            return f"mkdir -p new/{number}/deep && echo '{mark}' > new/{number}/deep/file"
        if way == 2:
            return f"sed -i '$a {mark}' {name}"
        if way == 3:
            return f"cp -p {name} {name}.t && echo '{mark}' >> {name}.t && mv {name}.t {name}"
        if way < 7:
            return f"echo '{mark}' >> {name}"
        if way == 7:
            return f"chmod u+x {name}; touch {other}"
        if way == 8:
            return "make -s || make -s"  # a file may be half written by somebody
        if way == 9 and number % 3 == 0:
            return "cd app && npm ci --offline --ignore-scripts --no-audit --no-fund --logs-max=0 --cache /tmp/npm >/dev/null"
        if way == 10:
            return "git status --short >/dev/null; git log --stat >/dev/null; git diff HEAD >/dev/null"
        self.commits.append(f"agent commit {number}")
        return f"git add -A && git commit -q --allow-empty -m 'agent commit {number}'"

    def step(self, number):
        script = self.script(number)
        for _ in range(20):  # the person's git may be at work, whose lock is seen
            ran = self.place.shell(script, "--layer=work", "--layer-git", "--at-end", "keep", "-q")
            if ".lock'" not in ran.stderr and "unable to stat" not in ran.stderr:
                break
        assert ran.returncode == 0, (script, ran)


def all_text(folder):
    text = ""
    for path in folder.rglob("*"):
        with contextlib.suppress(OSError, UnicodeDecodeError):
            if path.is_file() and not path.is_symlink() and ".git" not in path.parts:
                text += path.read_text()
    return text


def accept(place, person, *options):
    """0 or 3: what both have edited stays."""
    with person.editing:
        ran = place.cordon("accept", "work", "--all", "--marked", "--json", *options)
    assert ran.returncode in (0, 3, 4), ran
    result = json.loads(ran.stdout)
    assert {left["reason"] for left in result["left"]} <= {"conflict", "changed"}, result["left"]
    return result


@pytest.mark.timeout(3600)
def test_nothing_is_lost_on_either_side(place):
    seed = int(os.environ.get("CORDON_SEED", random.randrange(1 << 30)))
    print("seed", seed)
    if not shutil.which("npm") or not shutil.which("gcc"):
        pytest.skip("no npm or gcc")
    make_project(place)
    person, agent = Person(place, seed), Agent(place, seed + 1)
    conflicts = 0
    time.sleep(0.05)
    person.start()
    try:
        for number in range(STEPS):
            agent.step(number)
            if number % 12 == 11:
                conflicts += len(accept(place, person)["left"])
    finally:
        person.ends.set()
        person.join()
    accept(place, person)
    real = all_text(place.ws)
    lost = [mark for mark in person.marks if mark not in real]
    assert not lost, (seed, lost, [str(person.marks[mark]) for mark in lost])
    # what is left of the agent's is in the layer
    seen = place.shell("cat notes/* src/* $(find new -type f 2>/dev/null)", "--layer=work", "--layer-git", "--at-end", "keep", "-q").stdout
    lost = [mark for mark in agent.marks if mark not in real and mark not in seen]
    assert not lost, (seed, lost)
    log = subprocess.run(["git", "log", "--all", "--format=%s"], cwd=place.ws, env=place.env, capture_output=True, text=True).stdout
    assert not [commit for commit in agent.commits if commit not in log.splitlines()], seed
    subprocess.run(["git", "fsck", "--strict", "--no-progress"], cwd=place.ws, env=place.env, check=True)
    print(len(person.marks), "edits of the person,", len(agent.marks), "of the agent,", conflicts, "conflicts")
