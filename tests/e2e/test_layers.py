"""Change layers on the command line: what a command wrote is listed, shown, taken, dropped and taken back; a person is asked at
the end, or about each change. What a layer holds, and that nothing of it gets out, is tried elsewhere (tests/unit/layer,
tests/escape); here it is what people type and read."""
import os
import re
import socket
import subprocess

import pytest

from harness import CORDON, WAIT, let_age
from person import Person

WRITES = "echo new > new.txt; echo two >> old.txt; rm gone.txt; echo all: > build.mk"


@pytest.fixture
def tree(place):
    (place.ws / "old.txt").write_text("one\n")
    (place.ws / "gone.txt").write_text("gone\n")
    let_age(place.ws)
    return place


def names(place):
    return sorted(os.listdir(place.ws))


def layered(place, script=WRITES, *options, name="agent", code=0):
    ran = place.shell(script, f"--layer={name}", *options)
    assert ran.returncode == code, ran
    return ran


def kinds(place, *words):
    told = place.json("changes", *words, "--json")
    return {os.path.relpath(change["path"], place.ws): change["kind"] for change in told["changes"]}


def layers(place):
    """Those over the workspace: others of the same user may have some in /var/tmp."""
    return [layer for layer in place.json("layers", "--json")["layers"] if layer["roots"] and layer["roots"][0]["path"] == str(place.ws)]


class Terminal(Person):
    """Everything of what is started is at it."""

    def __init__(self, place):
        super().__init__(place)
        self.place = place
        self.resize(40, 100)

    def start(self, *words, **env):
        self.process = self.place.start(*words, preexec_fn=self.take_terminal, stdin=self.side, stdout=self.side,
                                        stderr=self.side, env={"TERM": "xterm", "GIT_PAGER": "cat", **env})
        return self.process

    def answer(self, prompt, text):
        seen = self.until(prompt)
        self.say(text + "\n")
        return seen

    def end(self):
        code = self.process.wait(WAIT)
        while self.is_shown_more(0.05):
            pass
        return code


@pytest.fixture
def terminal(place):
    return Terminal(place)


# --- what is written stays apart


def test_a_layer_from_beginning_to_end(tree):
    ran = layered(tree)
    assert names(tree) == ["gone.txt", "old.txt"] and (tree.ws / "old.txt").read_text() == "one\n"
    assert "layer agent: 2 new, 1 changed, 1 deleted; 1 to look at" in ran.stderr and "cordon accept agent" in ran.stderr
    assert kinds(tree) == kinds(tree, "agent") == {"new.txt": "A", "old.txt": "M", "gone.txt": "D", "build.mk": "A"}

    listed = tree.cordon("changes").stdout
    assert re.search(r"^  new +build.mk +! run later by make$", listed, re.MULTILINE) and "\033" not in listed
    assert tree.cordon("changes", "-0").stdout.split("\0")[:-1] == [
        str(tree.ws / name) for name in ("build.mk", "gone.txt", "new.txt", "old.txt")]
    patch = tree.cordon("diff", "agent").stdout
    assert "# build.mk: run later by make\n" in patch and "\n one\n+two\n" in patch
    for folder in ("objects", "refs"):  # a repository, for whoever looks for one above what git compares
        (tree.tmp / folder).mkdir()
    (tree.tmp / "HEAD").write_text("ref: refs/heads/main\n")
    (tree.tmp / "config").write_text(f"[core]\nbare = true\n[diff]\nexternal = touch {tree.outside}/ran\n")
    assert "old.txt | 1 +" in tree.cordon("diff", "old.txt", "--", "--stat").stdout
    assert "\n+two\n" in tree.cordon("diff", "old.txt", "--", "-p").stdout and os.listdir(tree.outside) == []

    ran = tree.cordon("accept", "--all")
    assert ran.returncode == 3 and "left build.mk" in ran.stderr and "accept" in ran.stderr
    assert names(tree) == ["new.txt", "old.txt"] and (tree.ws / "old.txt").read_text() == "one\ntwo\n"
    assert tree.json("accept", "agent", "build.mk", "--json")["done"] == [str(tree.ws / "build.mk")]
    assert kinds(tree) == {}

    assert tree.cordon("undo", "--dry-run").returncode == 0 and (tree.ws / "build.mk").exists()
    for _ in range(2):
        ran = tree.cordon("undo")
        assert ran.returncode == 0, ran
    assert names(tree) == ["gone.txt", "old.txt"] and (tree.ws / "old.txt").read_text() == "one\n"
    ran = tree.cordon("undo")
    assert ran.returncode == 4 and "nothing was accepted here" in ran.stderr
    assert tree.cordon("undo", "agent").returncode == 4

    assert tree.cordon("drop", "new.txt").returncode == 0
    assert set(kinds(tree)) == {"old.txt", "gone.txt", "build.mk"}
    assert tree.cordon("drop", "--all").returncode == 0 and kinds(tree) == {}
    assert [(body["action"], body["done"], body["left"]) for event, body in tree.records() if event == "layer"] == [
        ("step", 0, 0), ("accept", 3, 1), ("accept", 1, 0), ("undo", 1, 0), ("undo", 3, 0), ("drop", 1, 0), ("drop", 3, 0)]
    assert re.search(r"layer +step 1 of agent: 2 new, 1 changed, 1 deleted, 1 to look at\n", tree.cordon("log").stdout)


GIVES_AWAY = """import os, socket
file = os.open("old.txt", os.O_RDWR | os.O_TRUNC)
os.write(file, b"good")
with socket.socket(socket.AF_UNIX) as peer:
    peer.connect("../outside/socket")
    socket.send_fds(peer, [b"x"], [file, os.open(".", 0)])
"""


def test_what_a_command_gave_away_writes_to_no_real_file(tree):
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tree.outside / "socket"))
        server.listen()
        ran = tree.run("--layer", "--socket", tree.outside / "socket", "--", "python3", "-c", GIVES_AWAY)
        assert ran.returncode == 0, ran
        with server.accept()[0] as peer:
            file, folder = socket.recv_fds(peer, 16, 2)[1]
    assert tree.cordon("accept", "--all").returncode == 0 and (tree.ws / "old.txt").read_text() == "good"
    os.pwrite(file, b"evil", 0)
    os.close(os.open("late", os.O_CREAT | os.O_CLOEXEC, dir_fd=folder))
    os.close(file)
    os.close(folder)
    assert (tree.ws / "old.txt").read_text() == "good" and "late" not in names(tree)


def test_steps_of_a_layer(tree):
    layered(tree, "echo 1 > a; echo 1 > b")
    layered(tree, "cat a; echo 2 > b; exit 3", code=3)
    assert kinds(tree, "--step", "2") == {"b": "M"} and kinds(tree, "agent", "--step", "1") == {"a": "A", "b": "A"}
    told = tree.json("layers", "agent", "--json")
    assert [(step["stepId"], step["exitCode"]) for step in told["steps"]] == [(1, 0), (2, 3)]
    assert "exit status 3" in tree.cordon("layers", "agent").stdout
    ran = tree.cordon("drop", "agent", "--step", "1")
    assert ran.returncode == 4 and "b" in ran.stderr
    assert tree.cordon("drop", "agent", "--step", "2").returncode == 0
    assert tree.cordon("undo", "agent", "--step", "1").returncode == 0 and kinds(tree) == {}


def test_two_layers_over_one_tree(tree):
    ran = layered(tree, f"echo 1 > mine; for words in 'run --undo true' undo changes; do {CORDON} $words; done", name="one", code=125)
    assert ran.stderr.count("this runs in a layer already") == 3, ran
    layered(tree, "test ! -e mine && echo 2 > mine", name="two")
    assert [name for name in tree.cordon("layers", "--names").stdout.split() if name in ("one", "two")] == ["two", "one"]
    listed = layers(tree)
    assert [(layer["name"], layer["state"], layer["steps"], layer["counts"]["added"]) for layer in listed] == [
        ("two", "quiet", 1, 1), ("one", "quiet", 1, 1)]
    assert tree.cordon("accept", "two", "--all").returncode == 0
    ran = tree.cordon("accept", "one", "--all")
    assert ran.returncode == 3 and "left mine" in ran.stderr and "--force" in ran.stderr
    assert (tree.ws / "mine").read_text() == "2\n"
    assert tree.cordon("accept", "one", "mine", "--force").returncode == 0 and (tree.ws / "mine").read_text() == "1\n"
    ran = tree.cordon("undo")  # what was accepted last, though the other one ran last
    assert ran.returncode == 0 and (tree.ws / "mine").read_text() == "2\n", ran
    assert "one" not in tree.cordon("layers", "--prune", "1h").stdout.split() and len(layers(tree)) == 2


def test_a_layer_without_a_name(tree):
    told = tree.json("run", "--json", "--layer", "--", "sh", "-c", "echo x > x")
    changes = told["changes"]
    assert (changes["name"], changes["stepId"], changes["added"], changes["atEnd"], changes["left"]) == (None, 1, 1, "keep", [])
    begun = changes["layerId"][:6]
    assert kinds(tree, begun) == {"x": "A"}
    assert tree.shell("echo y > y", f"--layer={begun}", "-q").stderr == ""
    assert kinds(tree) == {"x": "A", "y": "A"}
    assert tree.cordon("drop", "--all").returncode == 0 and layers(tree) == []
    assert "nothing is changed" in tree.shell("true", "--layer").stderr and layers(tree) == []


@pytest.mark.parametrize("end, wanted, left", [("keep", {"gone.txt", "old.txt"}, 4), ("accept", {"new.txt", "old.txt"}, 1),
                                               ("drop", {"gone.txt", "old.txt"}, None)])
def test_at_the_end(tree, end, wanted, left):
    ran = layered(tree, WRITES + "; exit 7", "--at-end", end, code=7)
    assert set(names(tree)) == wanted
    assert ("left build.mk" in ran.stderr) == (end == "accept")
    if left:
        assert len(kinds(tree)) == left
    else:
        assert layers(tree) == []


# --- what others do meanwhile


def test_an_undo_keeps_what_somebody_wrote(tree):
    ran = tree.shell("echo done > new.txt; echo oops > old.txt", "--undo")
    assert ran.returncode == 0 and "cordon undo" in ran.stderr and (tree.ws / "old.txt").read_text() == "oops\n"
    (tree.ws / "new.txt").write_text("mine\n")
    ran = tree.cordon("undo")
    assert ran.returncode == 3 and "left new.txt" in ran.stderr
    assert (tree.ws / "old.txt").read_text() == "one\n" and (tree.ws / "new.txt").read_text() == "mine\n"


def test_what_changes_outside_meanwhile_stays(tree):
    """And is told, also quietly; the exit status is the command's."""
    process = tree.start("run", "-q", "--undo", "--", "sh", "-c", "echo theirs > old.txt; echo fine > new.txt; echo; cat", text=True)
    process.stdout.readline()
    (tree.ws / "old.txt").write_text("mine\n")
    out, err = process.communicate("", timeout=WAIT)
    assert process.returncode == 0 and "left old.txt" in err and "--force" in err, (out, err)
    assert (tree.ws / "old.txt").read_text() == "mine\n" and (tree.ws / "new.txt").read_text() == "fine\n"
    assert kinds(tree) == {"old.txt": "M"} and "changed outside meanwhile, too" in tree.cordon("changes").stdout


def test_a_repository_is_as_it_is_outside(tree):
    """A commit outside is seen at once, and is not in the layer."""
    def git(*words):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@example.org", *words], cwd=tree.ws, env=tree.env, check=True,
                       capture_output=True)
    git("init")
    layered(tree, "echo x > x; git status --short > /dev/null")
    git("add", "old.txt")
    git("commit", "-m", "theirs")
    ran = layered(tree, "git log --format=%s; ls x")
    assert ran.stdout == "theirs\nx\n"
    assert kinds(tree) == {"x": "A"}
    ran = tree.shell("git commit --allow-empty -m x", "--layer=agent", "--git", "commit")
    assert ran.returncode == 125 and "--layer-git" in ran.stderr


def test_one_process_at_a_time(tree):
    process = tree.start("run", "--layer=agent", "--", "cat", text=True)
    while not layers(tree):
        pass
    ran = tree.cordon("accept", "agent", "--all")
    assert ran.returncode == 4 and "cordon run" in ran.stderr
    process.communicate("", timeout=WAIT)
    assert process.returncode == 0


def test_options_that_do_not_go_together(place):
    for words in (["--undo", "--layer"], ["--at-end", "keep"], ["--layer-direct", "."], ["--layer", "-p", "danger-full-access"],
                  ["--layer=a/b"], ["--undo", "--no-undo"]):
        ran = place.run(*words, "--", "true")
        assert ran.returncode == 125 and ran.stderr.startswith("cordon: "), (words, ran)
    for words in (["accept", "nothing"], ["changes", "no"], ["drop"], ["diff", "/"]):
        assert place.cordon(*words).returncode == 125, words
    assert place.cordon("undo").returncode == 4
    ran = place.cordon("--connect", "ws://127.0.0.1:1", "run", "--layer", "--", "true")
    assert ran.returncode == 125 and "layer/create" in ran.stderr


def test_the_configuration_can_want_it(tree):
    tree.config('[undo]\ndefault = "layer"\n[layers]\nat_end = "drop"\n')
    assert "cordon undo" in tree.shell("echo x > x").stderr and (tree.ws / "x").exists()
    assert tree.cordon("undo").returncode == 0 and not (tree.ws / "x").exists()
    assert tree.shell("echo x > x", "--no-undo").stderr == "" and (tree.ws / "x").exists()
    assert tree.run("-p", "danger-full-access", "--", "true").returncode == 0
    assert "dropped" in layered(tree, "echo y > y").stderr
    tree.config("[undo]\ndefault = 'yes'\n")
    assert tree.shell("true").returncode == 125


@pytest.mark.no_userns
def test_without_namespaces_it_is_refused(place):
    if subprocess.run(["unshare", "-U", "true"], check=False, capture_output=True).returncode == 0 or os.geteuid() == 0:
        return
    ran = place.shell("echo x > x", "--layer")
    assert ran.returncode == 125 and "namespace" in ran.stderr and not (place.ws / "x").exists()
    place.config("[undo]\ndefault = 'layer'\n")
    ran = place.shell("echo x > x")
    assert ran.returncode == 125 and "--no-undo" in ran.stderr


# --- names, folders, colours


def test_odd_names_command_nothing(tree, terminal):
    names_ = ["a\nb", "c\033[31m", "\x9b2J", "-rf", " ", "ü", "agent", "'q'"]
    script = "import os, sys\nfor name in sys.argv[1:]: open('./' + name, 'wb').write(os.fsencode(name))\nopen('large', 'w').truncate(1 << 27)"
    ran = tree.run("--layer=agent", "--", "python3", "-c", script, *names_, "raw\udcff")
    assert ran.returncode == 0, ran
    terminal.start("changes", "agent")
    assert terminal.end() == 0
    assert "<U+000A>b" in terminal.seen and "c<U+001B>[31m" in terminal.seen
    terminal.seen = ""
    terminal.start("diff", "agent")
    assert terminal.end() == 0 and "+c<U+001B>[31m" in terminal.seen
    assert not re.search(r"\033(?!\[[0-9;]*m)|\x9b|c\033\[31m\n", terminal.seen)
    ran = tree.cordon("diff", "large", "--", "-p")
    assert "+(134217728 bytes" in ran.stdout and "too large for git" in ran.stderr, ran
    ran = tree.cordon("accept", "--all")
    assert ran.returncode == 0 and "\033" not in ran.stdout, ran
    assert {os.fsencode(name) for name in os.listdir(tree.ws)} >= {os.fsencode(name) for name in [*names_, "raw\udcff"]}


def test_a_path_is_no_layer(tree):
    layered(tree, "echo 1 > agent; echo 2 > other; rm gone.txt; mkdir gone.txt")
    assert kinds(tree, "./agent") == {"agent": "A"} and len(kinds(tree, "agent")) == 3
    assert tree.cordon("changes", "-0", "gone.txt").stdout == f"{tree.ws}/gone.txt\0"  # D and A: its name is told once
    tree.cordon("drop", "gone.txt")
    assert "no layer is called so" in tree.cordon("changes", "agnet").stderr
    ran = tree.cordon("accept", "agent", "other", "othre")
    assert ran.returncode == 3 and "othre: nothing is changed there" in ran.stderr and kinds(tree) == {"agent": "A"}, ran


def test_folders_are_one_line(tree, terminal):
    (tree.ws / "lib/sub").mkdir(parents=True)
    for number in range(4):
        (tree.ws / f"lib/sub/f{number}").write_text(f"{number}\n" * 40)
    let_age(tree.ws)
    layered(tree, "mv lib library; mkdir d; for i in 1 2 3 4 5 6; do echo $i > d/f$i; done; echo all: > d/Makefile")
    told = [" ".join(line.split()) for line in tree.cordon("changes").stdout.splitlines()]
    assert "new d/ 6 files, 12 bytes" in told and "new d/Makefile ! run later by make" in told
    assert any(line.startswith("moved lib/ -> library/ 4 files") for line in told), told
    assert len(tree.cordon("changes", "--full").stdout.splitlines()) > 12
    terminal.start("accept", "-i")
    for answer in ("y", "n", "y"):  # d, d/Makefile, lib
        terminal.answer(",?]?", answer)
    assert terminal.end() == 0, terminal.seen
    assert kinds(tree) == {"d/Makefile": "A"}
    assert (tree.ws / "library/sub/f3").exists() and not (tree.ws / "lib").exists()


# --- a person


@pytest.mark.parametrize("answer, code, wanted", [("a", 5, {"new.txt", "old.txt"}), ("d", 5, {"gone.txt", "old.txt"}),
                                                  ("k", 5, {"gone.txt", "old.txt"})])
def test_a_person_is_asked_at_the_end(tree, terminal, answer, code, wanted):
    terminal.start("run", "--layer=agent", "--", "sh", "-c", WRITES + "; exit 5")
    seen = terminal.answer("[v]iew?", "what")
    assert "2 new" in seen and "build.mk" in seen and "\033[32m" in seen
    assert "r - review" in terminal.answer("[v]iew?", "l")
    terminal.answer("[v]iew?", answer)
    assert terminal.end() == code and set(names(tree)) == wanted
    assert terminal.is_restored()


def test_a_person_reviews_at_the_end(tree, terminal):
    terminal.start("run", "--layer=agent", "--", "sh", "-c", WRITES)
    terminal.answer("[v]iew?", "r")
    for answer in ("y", "n", "y", "q"):  # build.mk, gone.txt, new.txt, old.txt
        terminal.answer(",?]?", answer)
    assert terminal.end() == 0 and names(tree) == ["build.mk", "gone.txt", "new.txt", "old.txt"]
    assert kinds(tree) == {"gone.txt": "D", "old.txt": "M"}


def test_hunk_by_hunk(tree, terminal):
    """Of the first, which is split, a part; the second is left; the third found by its text."""
    lines = [f"line {number}" for number in range(60)]
    (tree.ws / "text").write_text("\n".join(lines) + "\n")
    let_age(tree.ws)
    layered(tree, "sed -i '3s/.*/three/; 5s/.*/five/; 30s/.*/thirty/; 55s/.*/more/' text; echo x > a")
    terminal.start("accept", "-i")
    assert "(1/2)" in terminal.answer(",?]?", "/")
    terminal.answer("search for:", "thirty")
    seen = terminal.answer(",?]?", "s")
    assert "+three" in seen and "changed" in seen
    assert "+five" in terminal.answer(",?]?", "s")
    assert "+five" not in terminal.answer(",?]?", "y")
    terminal.answer(",?]?", "n")
    terminal.answer(",?]?", "/")
    terminal.answer("search for:", "more")
    assert "+more" in terminal.answer(",?]?", "y")
    assert terminal.end() == 0, terminal.seen
    lines[2], lines[54] = "three", "more"
    assert (tree.ws / "text").read_text() == "\n".join(lines) + "\n"
    assert kinds(tree) == {"text": "M", "a": "A"}
    shown = tree.cordon("diff", "text").stdout
    assert "+five" in shown and "+thirty" in shown and "+three" not in shown


def test_who_is_interrupted_has_accepted_nothing(tree, terminal):
    layered(tree)
    terminal.start("accept", "-i")
    terminal.answer(",?]?", "y")
    terminal.until(",?]?")
    terminal.say("\x03")
    assert terminal.end() == -2 and names(tree) == ["gone.txt", "old.txt"]
    assert tree.cordon("accept", "-i").returncode == 125


def test_what_fills_the_disk_can_be_dropped(tree):
    """The end of the step could not be written down, nor can a journal."""
    script = ('mount -t tmpfs -o size=500k,mode=700 none "$1" && mount -t tmpfs none /var/tmp && export XDG_STATE_HOME="$1" && cd "$2" || exit 99; shift 2; '
              '"$@" run -q --layer=agent -- sh -c "echo new > old.txt; head -c 4M /dev/zero > big; echo > more"; "$@" drop agent --all && "$@" changes agent')
    ran = subprocess.run(["unshare", "-rm", "sh", "-c", script, "sh", tree.outside, tree.ws, CORDON], env=tree.env, capture_output=True, text=True)
    assert "No space left" in ran.stderr and ran.returncode == 0, ran
    assert "dropped big" in ran.stdout and ran.stdout.endswith("nothing\n"), ran
