"""`cordon patch` and `apply_patch`: one patch, all of it or nothing, in the sandbox."""
import ctypes
import fcntl
import json
import os
import select

import pytest

from harness import CORDON, TOP, WAIT, finish

PATCH = """*** Begin Patch
*** Update File: f
@@
 a
-b
+B
*** Add File: new/deep/n
+x
*** Delete File: gone
*** End Patch
"""
SUCCESS = "Success. Updated the following files:\nA new/deep/n\nM f\nD gone\n"
DIFF = """diff --git a/f b/f
--- a/f
+++ b/f
@@ -1,3 +1,3 @@
 a
-b
+B
 c
diff --git a/new/deep/n b/new/deep/n
new file mode 100644
--- /dev/null
+++ b/new/deep/n
@@ -0,0 +1 @@
+x
diff --git a/gone b/gone
deleted file mode 100644
--- a/gone
+++ /dev/null
@@ -1 +0,0 @@
-g
"""
OLD = {"f": "a\nb\nc\n", "gone": "g\n"}
NEW = {"f": "a\nB\nc\n", "new/deep/n": "x\n"}


def fill(folder, files):
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def tree(folder):
    """Every file, hidden ones too."""
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*")
            if path.is_file()}


@pytest.fixture
def ws(place):
    fill(place.ws, OLD)
    return place.ws


@pytest.fixture
def apply_patch(place):
    program = place.base / "apply_patch"
    program.symlink_to(CORDON)
    return program


# --- what it does


def test_a_patch_is_applied(place, ws):
    (ws / "f").chmod(0o750)
    ran = place.cordon("patch", text=PATCH)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, SUCCESS, "")
    assert tree(ws) == NEW
    assert (ws / "f").stat().st_mode & 0o7777 == 0o750


def test_a_patch_comes_from_a_file_too(place, ws):
    (place.ws / "sub").mkdir()
    fill(ws / "sub", {**OLD, "fix.patch": PATCH})
    assert place.cordon("patch", "-C", "sub", "fix.patch").stdout == SUCCESS
    assert tree(ws) == {**OLD, **{f"sub/{name}": text for name, text in NEW.items()},
                        "sub/fix.patch": PATCH}


@pytest.mark.parametrize("option, out", [("--check", "The patch can be applied.\n"),
                                         ("--diff", DIFF)])
def test_asking_changes_nothing(place, ws, option, out):
    ran = place.cordon("patch", option, text=PATCH)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, out, "")
    assert tree(ws) == OLD


def test_git_takes_the_diff(place, ws):
    diff = place.cordon("patch", "--diff", text=PATCH).stdout
    assert place.shell("git apply -", text=diff).returncode == 0
    assert tree(ws) == NEW


@pytest.mark.parametrize("option", ["--check", "--diff", None])
def test_a_patch_that_does_not_fit_changes_nothing(place, ws, option):
    (ws / "gone").unlink()
    ran = place.cordon("patch", *filter(None, [option]), text=PATCH)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr == "cordon: line 9 of the patch: there is no file gone to delete\n"
    assert tree(ws) == {"f": OLD["f"]}


def test_json(place, ws):
    files = [{"path": "f", "change": "update", "lines_added": 1, "lines_removed": 1},
             {"path": "new/deep/n", "change": "add", "lines_added": 1, "lines_removed": 0},
             {"path": "gone", "change": "delete", "lines_added": 0, "lines_removed": 1}]
    answer = {"files": files, "diff": None, "recovered": None, "left_alone": [], "error": None}
    assert place.json("patch", "--json", "--diff", text=PATCH) == {**answer, "applied": False,
                                                                  "diff": DIFF}
    assert place.json("patch", "-j", "--check", text=PATCH) == {**answer, "applied": False}
    assert place.json("patch", "-j", text=PATCH) == {**answer, "applied": True}
    failed = place.json("patch", "-j", text=PATCH, code=1)
    assert failed["applied"] is False and failed["files"] == []
    assert failed["error"]["code"] == "invalid"
    assert failed["error"]["message"].startswith("line 3 of the patch: f: ")


@pytest.mark.parametrize("words, said", [
    (["--check", "--diff"], "--diff: it cannot be used together with --check"),
    (["a", "b"], 'cordon patch takes one file, not "b"'),
    (["--recover", "a"], 'cordon patch takes no file with --recover, not "a"'),
    (["nothing"], "opening nothing: No such file or directory"),
    (["-C", "nowhere"], "--directory nowhere: No such file or directory"),
    (["--dif"], "--diff"),
])
def test_wrong_calls(place, words, said):
    ran = place.cordon("patch", *words, text="")
    assert ran.returncode == 125
    assert said in ran.stderr


# --- the sandbox


def test_protected_names_stay(place, ws):
    (ws / ".git").mkdir()
    bad = PATCH.replace("*** Add File: new/deep/n", "*** Add File: .git/hooks/post-commit")
    ran = place.cordon("patch", text=bad)
    assert ran.returncode == 1
    assert "Read-only file system" in ran.stderr and "--writable" in ran.stderr
    assert tree(ws) == OLD
    assert place.cordon("patch", "--writable", ".git", text=bad).returncode == 1  # hooks stay closed
    assert tree(ws) == OLD
    (ws / ".git/hooks").mkdir()
    assert place.cordon("patch", "--writable", ".git/hooks", text=bad).returncode == 0
    assert (ws / ".git/hooks/post-commit").read_text() == "x\n"


def test_a_profile_that_may_not_write(place, ws):
    ran = place.cordon("patch", "-p", "read-only", text=PATCH)
    assert ran.returncode == 1
    assert f"writing {ws}/.cordon-patch, which every patch needs: Read-only" in ran.stderr
    assert tree(ws) == OLD
    assert place.cordon("patch", "-p", "read-only", "--diff", text=PATCH).stdout == DIFF


def test_a_denied_file_is_not_shown(place, ws):
    ran = place.cordon("patch", "--deny", "f", "--diff", text=PATCH)
    assert ran.returncode == 1
    assert ran.stdout == "" and tree(ws) == OLD


@pytest.mark.parametrize("path", ["../outside/f", "OUTSIDE/f", "link/f", "hard"])
def test_nothing_outside_is_written(place, ws, path):
    fill(place.outside, {"f": OLD["f"]})
    (ws / "link").symlink_to(place.outside)
    (ws / "hard").hardlink_to(place.outside / "f")
    path = path.replace("OUTSIDE", str(place.outside))
    ran = place.cordon("patch", "--sandbox", "disabled", text=f"*** Begin Patch\n"
                       f"*** Update File: {path}\n@@\n-b\n+evil\n*** End Patch\n")
    assert ran.returncode == (0 if path == "hard" else 1)
    assert tree(place.outside) == {"f": OLD["f"]}
    assert (ws / "hard").read_text() == ("a\nevil\nc\n" if path == "hard" else OLD["f"])


# --- killed


def ledger(*steps):
    return "".join(f"{word}\0" for word in ("cordon-patch 1", "0123456789abcdef", *steps)).encode()


def test_what_a_killed_patch_left_is_cleaned_up_first(place, ws):
    """One that was killed while it prepared; tests/unit/patch/test_kill.c has all the others."""
    (ws / ".cordon-patch").touch(0o600)
    (ws / ".cordon-patch").write_bytes(ledger("A", "n", "=") + b"1 2")
    (ws / ".cordon-patch.0123456789abcdef.0").write_text("half")
    ran = place.cordon("patch", "--check", text=PATCH)
    assert ran.returncode == 1 and "cordon patch --recover" in ran.stderr
    ran = place.cordon("patch", text=PATCH)
    assert (ran.returncode, ran.stdout) == (0, SUCCESS)
    assert ran.stderr == "cordon: an earlier patch that was interrupted has been taken back\n"
    assert tree(ws) == NEW


def test_recover(place, ws):
    assert place.cordon("patch", "--recover").stdout == "There is no interrupted patch.\n"
    (ws / ".cordon-patch").touch(0o600)
    (ws / ".cordon-patch").write_bytes(ledger("A", "n", "="))
    assert place.json("patch", "--recover", "--json")["recovered"] == "undone"
    assert tree(ws) == OLD


def test_patches_at_the_same_time_wait_for_each_other(place, ws):
    patches = [f"*** Begin Patch\n*** Add File: n{i}\n+{i}\n*** Update File: f\n@@\n+{i}\n"
               "*** End Patch\n" for i in range(6)]
    processes = [place.start("patch", text=True) for _ in patches]
    for process, patch in zip(processes, patches):
        process.stdin.write(patch)
        process.stdin.close()
        process.stdin = None
    for i, process in enumerate(processes):
        assert finish(process, 0) == (f"Success. Updated the following files:\nA n{i}\nM f\n", "")
    after = tree(ws)
    assert sorted(after.pop("f").split("\n")) == sorted(["", "a", "b", "c", *map(str, range(6))])
    assert after == {"gone": "g\n", **{f"n{i}": f"{i}\n" for i in range(6)}}


class Opened:
    """Says when a file is opened (inotify(7))."""

    def __init__(self, path):
        libc = ctypes.CDLL(None, use_errno=True)
        self.fd = libc.inotify_init1(os.O_CLOEXEC)
        in_open = 0x20
        assert libc.inotify_add_watch(self.fd, bytes(path), in_open) >= 0

    def wait(self):
        assert select.select([self.fd], [], [], WAIT)[0], "nobody opened it"
        os.read(self.fd, 4096)


def test_it_waits_for_another_patch_and_can_be_interrupted(place, ws):
    """The lock of the ledger is held here, so the helper waits; SIGTERM ends that, and what comes
    then is the recovery, which waits as well."""
    path = ws / ".cordon-patch"
    with open(path, "w", opener=lambda name, flags: os.open(name, flags, 0o600)) as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        opened = Opened(path)
        process = place.start("patch", text=True)
        process.stdin.write(PATCH)
        process.stdin.close()
        process.stdin = None
        opened.wait()
        process.terminate()
        opened.wait()
        path.unlink()
    os.close(opened.fd)
    out, err = finish(process, 125)
    assert out == "" and "the patch was interrupted" in err
    assert tree(ws) == OLD


# --- apply_patch


@pytest.mark.parametrize("way", ["argument", "stdin"])
def test_apply_patch(place, ws, apply_patch, way):
    ran = (place.cordon(PATCH, program=apply_patch) if way == "argument" else
           place.cordon(program=apply_patch, text=PATCH))
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, SUCCESS, "")
    assert tree(ws) == NEW


def test_apply_patch_fails_with_one(place, ws, apply_patch):
    ran = place.cordon("hello", program=apply_patch)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert "the first line should be" in ran.stderr
    assert place.cordon("a", "b", program=apply_patch).returncode == 2


def test_apply_patch_in_a_sandbox(place, ws, apply_patch):
    """As scripts of a model call it: in the sandbox that is there."""
    ran = place.shell(f"{apply_patch} && cat f", text=PATCH)
    assert (ran.returncode, ran.stdout) == (0, SUCCESS + NEW["f"])
    bad = PATCH.replace("*** Add File: new/deep/n", "*** Add File: .git/x")
    assert place.shell(str(apply_patch), text=bad).returncode == 1
    assert tree(ws) == NEW


def test_apply_patch_is_not_fooled_by_the_variable(place, ws, apply_patch):
    """Outside of a sandbox it makes one, whatever the environment says."""
    (ws / ".git").mkdir()
    ran = place.cordon("*** Begin Patch\n*** Add File: .git/x\n+x\n*** End Patch\n",
                       program=apply_patch, env={"CORDON_SANDBOX": "linux"})
    assert ran.returncode == 1
    assert not list((ws / ".git").iterdir())


# --- as a command of `cordon run`


HEREDOC = "apply_patch <<'EOF'\n" + PATCH + "EOF\n"


@pytest.mark.parametrize("words", [
    ["apply_patch", PATCH],
    ["applypatch", PATCH],
    ["bash", "-lc", HEREDOC],
    ["sh", "-c", HEREDOC],
], ids=["argv", "old-name", "login-shell", "shell"])
def test_run_applies_a_patch_itself(place, ws, words):
    """There is no such program in the sandbox, and none is needed."""
    ran = place.run("--", *words)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, SUCCESS, "")
    assert tree(ws) == NEW


def test_run_applies_it_in_the_folder_of_its_cd(place, ws):
    (ws / "sub").mkdir()
    ran = place.run("--", "bash", "-lc", "cd sub && apply_patch <<'EOF'\n*** Begin Patch\n"
                                         "*** Add File: x\n+hi\n*** End Patch\nEOF\n")
    assert ran.returncode == 0 and (ws / "sub/x").read_text() == "hi\n"
    ran = place.run("--", "bash", "-lc", HEREDOC.replace("apply", "cd nowhere && apply", 1))
    assert ran.returncode == 125 and f"{ws}/nowhere" in ran.stderr


@pytest.mark.parametrize("script", [
    HEREDOC + "echo more\n",
    "true; " + HEREDOC,
    "cd a b && " + HEREDOC,
])
def test_run_runs_what_does_more_than_that(place, ws, script):
    """As a command, which does not find apply_patch."""
    ran = place.run("--", "bash", "-c", script)
    assert "apply_patch: command not found" in ran.stderr or "too many arguments" in ran.stderr
    assert tree(ws) == OLD


def test_run_refuses_a_patch_without_its_word(place, ws):
    ran = place.run("--", PATCH)
    assert ran.returncode == 125 and "apply_patch" in ran.stderr
    assert tree(ws) == OLD


def test_run_keeps_a_patch_in_the_sandbox(place, ws):
    bad = PATCH.replace("*** Add File: new/deep/n", "*** Add File: .git/x")
    ran = place.run("--", "apply_patch", bad)
    assert ran.returncode == 1 and tree(ws) == OLD
    result = place.json("run", "-j", "--", "apply_patch", PATCH)
    assert result["end"] == "exited" and result["stdout"] == SUCCESS


def test_run_asks_about_a_patch_as_about_a_command(place, ws):
    place.config('prefix_rule(["apply_patch"], decision="forbidden")\n',
                 "home/.config/cordon/rules/a.rules")
    ran = place.run("--", "apply_patch", PATCH)
    assert ran.returncode == 126 and "forbids it" in ran.stderr
    assert tree(ws) == OLD


def test_run_logs_a_patch_as_one(place, ws):
    place.run("--", "apply_patch", PATCH)
    place.run("--", "bash", "-lc", HEREDOC)
    records = [json.loads(line) for line in place.cordon("log", "--json").stdout.splitlines()]
    assert [record["event"] for record in records] == ["patch-begin", "patch-end"] * 2
    assert records[0]["body"] == {"cwd": str(ws), "patch_bytes": len(PATCH)}
    assert [record["body"]["applied"] for record in records[1::2]] == [True, False]


FILTER = """
import ctypes, os, struct, sys
# An allow-all filter, as in a container: prctl(PR_SET_NO_NEW_PRIVS), prctl(PR_SET_SECCOMP, FILTER)
code = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0x7fff0000))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", 1, ctypes.addressof(code)))
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program) == 0
os.execv(sys.argv[1], sys.argv[1:])
"""


def test_apply_patch_is_not_fooled_in_a_container(place, ws, apply_patch):
    """Filtered, and with the variable set, but without a launcher above it."""
    (ws / ".git").mkdir()
    ran = place.cordon("-c", FILTER, apply_patch,
                       "*** Begin Patch\n*** Add File: .git/x\n+x\n*** End Patch\n",
                       program="/usr/bin/python3", env={"CORDON_SANDBOX": "linux"})
    assert ran.returncode == 1, ran
    assert not list((ws / ".git").iterdir())


def test_apply_patch_knows_its_sandbox_without_the_variable(place, ws, apply_patch):
    ran = place.shell(f"env -i {apply_patch} && cat f", text=PATCH)
    assert (ran.returncode, ran.stdout) == (0, SUCCESS + NEW["f"])


def plant(folder, name):
    """A ledger that is decided, and makes `name` with a file in it."""
    planted = folder / ".cordon-patch.0123456789abcdef.0"
    planted.mkdir()
    (planted / "x").write_text("prefix_rule([\"touch\"])\n")
    (folder / ".cordon-patch").touch(0o600)
    (folder / ".cordon-patch").write_bytes(ledger("F", name, "f", f"{name}/x", "=", "0 0 0 0 0 0", "+"))


ADD_OK = "*** Begin Patch\n*** Add File: ok\n+x\n*** End Patch\n"


@pytest.mark.parametrize("name", [".cordon/rules", ".git", "sub/.git", ".Vscode", ".codex/x", "HEAD"])
def test_a_planted_ledger_reaches_no_protected_name(place, ws, name):
    """A command leaves one that is decided; the next patch runs without a sandbox."""
    (ws / "sub").mkdir(exist_ok=True)
    plant(ws, name)
    ran = place.cordon("patch", "--sandbox", "disabled", text=ADD_OK)
    assert ran.returncode and "no ledger of a patch" in ran.stderr
    assert not (ws / name / "x").exists()


@pytest.mark.parametrize("name, options", [("own", ["--protect", "./own"]), ("own/deep", ["--protect", "./own"]),
                                           ("sub", ["--protect", "./sub/own"])])
@pytest.mark.parametrize("face", ["patch", "run"])
def test_nor_a_name_that_the_user_protects(place, ws, name, options, face):
    (ws / "own").mkdir(exist_ok=True)
    plant(ws, name)
    words = ["patch"] if face == "patch" else ["run"]
    command = [] if face == "patch" else ["--", "apply_patch", ADD_OK]
    ran = place.cordon(*words, *options, "--sandbox", "disabled", *command, text=None if command else ADD_OK)
    assert ran.returncode and "no ledger of a patch" in ran.stderr
    assert not (ws / name / "x").exists() and not (ws / "ok").exists()


@pytest.mark.parametrize("name", [".bashrc", ".ssh", ".config/autostart"])
def test_nor_what_a_home_directory_keeps(place, ws, name):
    (place.home / ".config").mkdir(exist_ok=True)
    plant(place.home, name)
    ran = place.cordon("patch", "-C", place.home, "--sandbox", "disabled", text=ADD_OK)
    assert ran.returncode and "no ledger of a patch" in ran.stderr
    assert not (place.home / name / "x").exists()


def test_a_name_commands_no_terminal(place, ws):
    """ESC, CSI (U+009B), and a mark that turns the direction of text (U+202E)."""
    name = "a\033[2Jb\u009b2Jc\u202e"
    ran = place.cordon("patch", text=f"*** Begin Patch\n*** Add File: {name}\n+x\n*** End Patch\n")
    assert ran.stdout.endswith("\nA a<U+001B>[2Jb<U+009B>2Jc<U+202E>\n"), ran
    assert (ws / name).read_text() == "x\n"
    ran = place.cordon("patch", text=f"*** Begin Patch\n*** Delete File: {name}x\n*** End Patch\n")
    assert ran.returncode == 1 and "a<U+001B>[2Jb<U+009B>2Jc<U+202E>x" in ran.stderr


def test_the_cases_of_the_unit_tests_hold_for_the_program(place):
    """A sample of tests/cases/patch, through all of the program."""
    for name in ("add-folders-shared", "ending-crlf", "level-quotes", "move-swap", "several"):
        case = json.loads((TOP / f"tests/cases/patch/{name}.json").read_text())
        folder = place.ws / name
        folder.mkdir()
        for path, text in case["tree"].items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(text.encode())
        ran = place.cordon("patch", text=case["patch"], cwd=folder)
        assert ran.returncode == 0, ran
        assert {str(path.relative_to(folder)): path.read_bytes().decode()
                for path in folder.rglob("*") if path.is_file()} == case["result"]
