"""What was refused is told by the guard, and not by what a command says of it: of many commands that
the sandbox refuses something, in every disguise, and of as many that fail for reasons of their own."""
import json
import os
import re
import shutil
import signal
import subprocess

import pytest
from harness import CORDON, LAUNCHER, finish, read_until
from processes import children, name_of
from served import Server, exec_result, exec_run, uri, workspace_write
from tools import need

# OUT is a directory that may not be written, with the files `file` and `other` and the directory `dir`;
# each command is refused the operation on the path.
REFUSED = {
    "create": ("touch OUT/new", "write", "OUT/new"),
    "touch": ("touch OUT/file", "write", "OUT/file"),
    "mkdir": ("mkdir OUT/new", "write", "OUT/new"),
    "mkdir-deep": ("mkdir -p OUT/dir/a/b", "write", "OUT/dir/a"),
    "redirect": ("echo x >OUT/new", "write", "OUT/new"),
    "append": ("echo x >>OUT/file", "write", "OUT/file"),
    "tee": ("echo x | tee OUT/file", "write", "OUT/file"),
    "cp": ("cp /etc/passwd OUT/new", "write", "OUT/new"),
    "mv-into": ("echo x >x; mv x OUT/new", "write", "OUT/new"),
    "mv-out": ("mv OUT/file .", "write", "OUT/file"),
    "rm": ("rm -f OUT/file", "write", "OUT/file"),
    "rmdir": ("rmdir OUT/dir", "write", "OUT/dir"),
    "symlink": ("ln -s x OUT/new", "write", "OUT/new"),
    "link": ("ln OUT/file OUT/new", "write", "OUT/new"),
    "chmod": ("chmod 600 OUT/file", "write", "OUT/file"),
    "times": ("touch -d yesterday OUT/file", "write", "OUT/file"),
    "truncate": ("truncate -s 0 OUT/file", "write", "OUT/file"),
    "fifo": ("mkfifo OUT/new", "write", "OUT/new"),
    "dd": ("dd if=/dev/zero of=OUT/file count=1 conv=notrunc status=none", "write", "OUT/file"),
    "relative": ("cd OUT/dir && touch ../new", "write", "OUT/new"),
    "link-followed": ("ln -s OUT/file l; echo x >l", "write", "OUT/file"),
    "link-of-a-folder": ("ln -sf OUT l; echo x >l/new", "write", "OUT/new"),
}

DISGUISES = {
    "plain": "{}",
    "hidden": "({}) >/dev/null 2>&1; exit 3",
    "ends-well": "({}) 2>/dev/null || true",
    "german": "({}) 2>&1 | sed 's/: [A-Z].*/: Keine Berechtigung/'; exit 1",
    "echoed": "({}) 2>/dev/null; echo \"touch: cannot touch '/etc/x': Permission denied\" >&2; exit 1",
}

# Of their own accord: nothing was refused.
FAILING = {
    "false": "false",
    "exit": "exit 7",
    "chroot": "chroot / true",
    "missing": "cat missing",
    "missing-below": "touch no/such/dir",
    "exists": "mkdir d && mkdir d",
    "not-empty": "mkdir d && touch d/x && rmdir d",
    "no-match": "grep x /etc/hostname-that-is-missing",
    "is-directory": "echo x >/usr",
    "missing-outside": "rm OUT/missing",
    "exists-outside": "mkdir OUT/dir",
    "no-program": "there-is-no-such-program",
    "no-tool": "./nothing",
    "killed": "kill -TERM $$",
    "syntax": "sh -c 'if'",
    "probe": "test -e OUT/missing",
    "refused-loopback": "exec 3<>/dev/tcp/127.0.0.1/9",
}

LIES = {
    "silent": "({}) 2>/dev/null || exit 1",
    "denied": "({}) 2>/dev/null; echo 'Permission denied' >&2; exit 1",
    "read-only": "({}) 2>/dev/null; echo \"touch: cannot touch 'OUT/x': Read-only file system\" >&2; exit 1",
    "resolve": "({}) 2>/dev/null; echo 'curl: (6) Could not resolve host: example.com' >&2; exit 6",
    "german": "({}) 2>/dev/null; echo 'Das Dateisystem ist nur lesbar' >&2; exit 1",
}


@pytest.fixture
def out(place):
    for name in ("file", "other"):
        (place.outside / name).write_text("text\n")
    (place.outside / "dir").mkdir()
    return place.outside


def ran(place, script, *options, code=None):
    called = place.run("--json", *options, "--", "bash", "-c", script)
    result = json.loads(called.stdout)
    assert code is None or called.returncode == code, result
    return result


@pytest.mark.parametrize("disguise", DISGUISES)
@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_is_a_fact_in_every_disguise(place, out, name, disguise):
    script, operation, path = (text.replace("OUT", str(out)) for text in REFUSED[name])
    result = ran(place, DISGUISES[disguise].format(script))
    denials = result["denials"]
    assert denials, result
    for denial in denials:
        assert (denial["operation"], denial["evidence"], denial["source"]) == (operation, "fact", "sandbox")
        assert path in (denial["path"], denial["path2"]), denial
        errors = ("EROFS", "EACCES", "EXDEV") if denial["call"].startswith("rename") else ("EROFS", "EACCES")
        assert denial["errno"] in errors and denial["program"] and denial["call"] and denial["pid"] > 0
    ended_well = result["exit_code"] == 0
    assert result["end"] == ("exited" if ended_well else "denied")


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("name", FAILING)
def test_a_failure_of_its_own_is_no_denial(place, out, name, lie):
    script = LIES[lie].format(FAILING[name]).replace("OUT", str(out))
    result = ran(place, script)
    assert result["denials"] == [], result
    assert result["end"] in ("exited", "signaled") and result["exit_code"] != 0


@pytest.mark.parametrize("name", [name for name in REFUSED if name not in ("mv-out", "rm", "rmdir")])
def test_the_remedy_helps_when_it_is_followed(place, out, name):
    script = REFUSED[name][0].replace("OUT", str(out))
    options = []
    for _ in range(3):
        result = ran(place, script, *options)
        if not result["denials"]:
            break
        for denial in result["denials"]:
            options += ["--writable", re.search(r"--writable (\S+)\.", denial["remedy"]).group(1)]
    assert result["denials"] == [] and result["exit_code"] == 0, (options, result)


@pytest.mark.parametrize("name", ["mv-out", "rm", "rmdir"])
def test_the_remedy_of_a_name_that_goes_is_its_directory(place, out, name):
    script = REFUSED[name][0].replace("OUT", str(out))
    denial = ran(place, script)["denials"][0]
    assert f"--writable {out}." in denial["remedy"]
    assert ran(place, script, "--writable", out, code=0)["denials"] == []


def test_a_program_that_swallows_the_error(place, out):
    code = f"try:\n  open('{out}/new', 'w')\nexcept OSError:\n  pass\n"
    called = place.run("--json", "--", "python3", "-c", code)
    result = json.loads(called.stdout)
    assert called.returncode == 0 and result["end"] == "exited"
    (denial,) = result["denials"]
    assert denial["path"] == f"{out}/new" and denial["creates"] and denial["program"].startswith("python3")
    assert denial["call"] == "openat" and denial["errno"] == "EROFS"


def test_a_command_that_ended_well_is_not_spoken_of(place, out):
    called = place.shell(f"mkdir {out}/new 2>/dev/null || true")
    assert called.returncode == 0 and called.stderr == ""
    called = place.shell(f"mkdir {out}/new 2>/dev/null")
    assert called.returncode == 1
    assert f"refused: creating {out}/new (built-in workspace-write)" in called.stderr
    assert "a guess" not in called.stderr


def test_a_protected_name_and_what_is_in_it(place):
    (place.ws / ".git").mkdir()
    (place.ws / ".git/config").write_text("[core]\n")
    (denial,) = ran(place, "touch .git/index.lock", code=1)["denials"]
    assert denial["path"] == f"{place.ws}/.git/index.lock"
    assert denial["decided_by"] == "protected name .git" and "--git commit," in denial["remedy"]
    (denial,) = ran(place, "touch .git/config.worktree", code=1)["denials"]
    assert f"--writable {place.ws}/.git." in denial["remedy"]
    (denial,) = ran(place, "mkdir .codex", code=1)["denials"]
    assert denial["path"] == f"{place.ws}/.codex" and denial["decided_by"] == "protected name .codex"
    assert denial["errno"] == "EACCES" and denial["creates"]
    assert "outside of the sandbox" in denial["remedy"]
    (place.ws / ".codex").mkdir()
    assert ran(place, "touch .codex/x", "--writable", ".codex", code=0)["denials"] == []


def test_what_belongs_to_cordon_is_not_proposed(place):
    folder = place.home / ".config/cordon"
    place.config("", "home/.config/cordon/config.toml")
    (denial,) = ran(place, f"echo x > {folder}/rules.new")["denials"]
    assert "--writable" not in denial["remedy"]
    assert f"{folder} belongs to Cordon" in denial["remedy"]


def test_git_commit_in_a_protected_repository(place):
    need("git")
    setup = "git init -q . && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m a"
    assert place.run("--sandbox", "disabled", "--", "sh", "-c", setup).returncode == 0
    script = "git -c user.name=a -c user.email=a@b commit -q --allow-empty -m b"
    result = ran(place, script)
    assert result["end"] == "denied"
    assert all(d["path"].startswith(f"{place.ws}/.git/") and d["program"] == "git" for d in result["denials"])
    assert ran(place, script, "--writable", ".git", code=0)["denials"] == []


def test_a_protected_name_stays_where_it_is(place):
    (place.ws / ".git").mkdir()
    (denial,) = ran(place, "mv .git x 2>/dev/null", code=1)["denials"]
    assert (denial["path"], denial["decided_by"]) == (f"{place.ws}/.git", "protected name .git")
    assert (place.ws / ".git").is_dir() and not (place.ws / "x").exists()


def test_a_file_that_may_not_be_replaced(place):
    (place.ws / "fixed").write_text("text\n")
    script = "echo x >new; python3 -c 'import os; os.replace(\"new\", \"fixed\")' 2>/dev/null"
    (denial,) = ran(place, script, "--readable", "fixed", code=1)["denials"]
    assert denial["path"] == f"{place.ws}/fixed" and "--readable fixed" in denial["decided_by"]


def test_a_directory_that_would_become_a_repository(place):
    result = ran(place, "mkdir objects refs && echo 'ref: refs/heads/main' >HEAD", code=1)
    (denial,) = result["denials"]
    assert denial["path"] == f"{place.ws}/HEAD" and "git init" in denial["remedy"]


def test_what_is_denied_altogether_is_read_from_the_words(place):
    secret = place.ws / "secret"
    secret.mkdir()
    (secret / "key").write_text("key\n")
    result = ran(place, "cat secret/key", "--deny", "secret", code=1)
    (denial,) = result["denials"]
    assert (denial["operation"], denial["evidence"], denial["path"]) == ("read", "heuristic", f"{secret}/key")
    assert ran(place, "cat secret/key || true", "--deny", "secret", code=0)["denials"] == []


@pytest.mark.parametrize("script", ["test -w OUT/file", "[ -w OUT ] || exit 3", "test -w OUT; false"])
def test_who_only_asks_was_not_stopped(place, out, script):
    result = ran(place, script.replace("OUT", str(out)))
    assert result["end"] == "exited" and all(d["aside"] for d in result["denials"])
    result = ran(place, f"test -w {out} || {{ echo '{out} is not writable' >&2; exit 1; }}", code=1)
    assert result["end"] == "denied" and not result["denials"][0]["aside"]


def test_who_asks_first_and_is_refused_then_was_stopped(place, out):
    (denial,) = ran(place, f"test -w {out}/file; rm -f {out}/file 2>/dev/null", code=1)["denials"]
    assert denial["call"].startswith("unlink") and not denial["aside"] and denial["count"] == 2


def test_git_looks_at_its_index_in_passing(place):
    need("git")
    setup = "git init -q . && echo a >f && git add f && git -c user.name=a -c user.email=a@b commit -q -m a"
    assert place.run("--sandbox", "disabled", "--", "sh", "-c", setup).returncode == 0
    result = ran(place, "touch -d tomorrow f; git status --short; git diff --quiet HEAD~1 2>/dev/null; false", code=1)
    assert result["end"] == "exited" and all(d["aside"] for d in result["denials"])


def test_many_refusals_are_counted(place, out):
    script = f"for i in $(seq 300); do : 2>/dev/null >{out}/$i; done; for i in $(seq 100); do : >{out}/dir/$i; done"
    result = ran(place, f"({script}) 2>/dev/null; exit 1")
    one_by_one = [d for d in result["denials"] if not d["below"]]
    counted = [d for d in result["denials"] if d["below"]]
    assert len(one_by_one) == 16
    assert {d["path"] for d in counted} == {str(out), f"{out}/dir"}
    assert sum(d["count"] for d in result["denials"]) == 400


def test_off_leaves_it_to_the_words(place, out):
    assert ran(place, f"mkdir {out}/new 2>/dev/null", "--watch", "off", code=1)["denials"] == []
    (denial,) = ran(place, f"mkdir {out}/new", "--watch", "off", code=1)["denials"]
    assert denial["evidence"] == "heuristic" and denial["program"] is None
    place.config('default_permissions = "quiet"\n[permissions.quiet]\nwatch = "off"\n'
                 '[permissions.quiet.filesystem]\n":root" = "read"\n')
    assert ran(place, f"mkdir {out}/new 2>/dev/null", code=1)["denials"] == []
    assert len(ran(place, f"mkdir {out}/new 2>/dev/null", "--watch", "facts", code=1)["denials"]) == 1


def test_the_audit_log_has_the_facts(place, out):
    place.shell(f"mkdir {out}/new 2>/dev/null || true")
    called = place.cordon("log", "--json")
    bodies = [json.loads(line) for line in called.stdout.splitlines()]
    (denied,) = [record["body"] for record in bodies if record["event"] == "denied"]
    assert (denied["path"], denied["program"], denied["call"]) == (f"{out}/new", "mkdir", "mkdir")
    assert denied["creates"] and denied["count"] == 1
    assert f"creating {out}/new" not in called.stderr
    assert f"write {out}/new EROFS of mkdir, by built-in" in place.cordon("log", "--denied").stdout


@pytest.mark.parametrize("target", ["198.51.100.7", "2001:db8::7"])
def test_a_connection_to_an_address(place, target):
    family = "AF_INET6" if ":" in target else "AF_INET"
    code = (f"import socket; s = socket.socket(socket.{family})\n"
            f"try: s.connect(({target!r}, 443))\nexcept OSError: raise SystemExit(4)")
    result = json.loads(place.run("--json", "--", "python3", "-c", code).stdout)
    assert result["exit_code"] == 4 and result["end"] == "denied"
    (denial,) = result["denials"]
    assert (denial["operation"], denial["host"], denial["port"]) == ("connect", target, 443)
    assert denial["evidence"] == "fact" and "--network enabled" in denial["remedy"]


def test_a_socket_of_the_host(place, out):
    code = (f"import socket; s = socket.socket(socket.AF_UNIX)\n"
            f"try: s.connect({str(out / 'socket')!r})\nexcept OSError: raise SystemExit(4)")
    listen = (f"import socket; s = socket.socket(socket.AF_UNIX); s.bind({str(out / 'socket')!r})\n"
              "s.listen(); print('up', flush=True); input()")
    server = place.start("-c", listen, program="/usr/bin/python3")
    read_until(server.stdout, b"up")
    result = json.loads(place.run("--json", "--", "python3", "-c", code).stdout)
    (denial,) = result["denials"]
    assert (denial["operation"], denial["path"], denial["host"]) == ("connect", f"{out}/socket", None)
    assert f"--socket {out}/socket" in denial["remedy"]
    helped = place.run("--json", "--socket", out / "socket", "--", "python3", "-c", code)
    assert helped.returncode == 0 and json.loads(helped.stdout)["denials"] == []


@pytest.mark.parametrize("server", ["198.51.100.1", "127.0.0.53"])
def test_the_words_name_the_host_that_was_not_resolved(place, server):
    """A name server that a command cannot reach is a fact, also one on an address of the host itself;
    which name was looked for only the command knows."""
    script = ("python3 -c \"import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); "
              f"s.connect(('{server}', 53))\" 2>/dev/null; "
              "echo 'curl: (6) Could not resolve host: example.com' >&2; exit 6")
    (denial,) = ran(place, script, code=6)["denials"]
    assert (denial["operation"], denial["evidence"], denial["host"]) == ("connect", "fact", "example.com")


# --- asked about, on the wire, and without the guard


def asked(place, script):
    """Runs it with a hook that says yes to everything, and tells what it was asked."""
    log = place.base / "asked"
    hook = place.base / "hook"
    hook.write_text(f"#!/bin/sh\ncat >>{log}; echo >>{log}\necho '{{\"decision\": \"approved\"}}'\n")
    hook.chmod(0o755)
    called = place.shell(script, "--approval-hook", hook, "-a", "on-request", start_new_session=True)
    questions = [json.loads(line) for line in log.read_text().splitlines() if line] if log.exists() else []
    return called, questions


def test_a_hidden_refusal_is_asked_about(place, out):
    called, (question,) = asked(place, f"mkdir {out}/new 2>/dev/null")
    assert called.returncode == 0 and (out / "new").is_dir()
    assert question["kind"] == "retry" and f"writing {out}" in question["covers"]
    assert question["reason"] == f"the sandbox refused creating {out}/new"


@pytest.mark.parametrize("script", [
    "mkdir OUT/new 2>/dev/null || true",
    "echo \"touch: cannot touch 'OUT/x': Read-only file system\" >&2; false",
    "echo 'Permission denied' >&2; exit 126",
])
def test_what_was_not_refused_or_ended_well_is_not_asked_about(place, out, script):
    called, questions = asked(place, script.replace("OUT", str(out)))
    assert questions == [] and not (out / "new").exists()
    assert "refused" not in called.stderr


def test_the_wire_has_the_facts(place, out):
    with Server(place) as server, server.client() as client:
        sandbox = workspace_write(place.ws)
        ended = client.run("p", f"mkdir {out}/new 2>/dev/null || true", sandbox=sandbox)
        assert ended.code == 0 and ended.exited["sandboxDenied"] is False
        (denial,) = ended.exited["denials"]
        assert (denial["path"], denial["program"], denial["evidence"]) == (f"{out}/new", "mkdir", "fact")
        ended = client.run("q", f"mkdir {out}/new 2>/dev/null", sandbox=sandbox)
        assert ended.code == 1 and ended.exited["sandboxDenied"] is True
        got = exec_result(client, exec_run(client, "r", f"mkdir {out}/new 2>/dev/null || true", sandbox=sandbox))
        assert got["questions"] == [] and len(got["attempts"]) == 1
        assert got["attempts"][0]["result"]["denials"][0]["path"] == f"{out}/new"
        answer = client.call("session/exec", {"cmd": f"mkdir {out}/new 2>/dev/null", "cwd": uri(client.cwd),
                                              "shell": "/bin/sh", "login": False, "sandbox": sandbox})
        assert answer["exitCode"] == 1 and answer["denials"][0]["path"] == f"{out}/new"
        sandbox["permissions"]["watch"] = "off"
        assert "denials" not in client.run("s", f"mkdir {out}/new 2>/dev/null || true", sandbox=sandbox).exited


def test_a_command_ends_with_its_guard(place):
    other = place.start("run", "--", "sh", "-c", "echo up; exec sleep 1000")
    read_until(other.stdout, b"up")
    with_guard = place.start("run", "--", "sh", "-c", "echo up; read x; echo more >file", stdin=subprocess.PIPE)
    read_until(with_guard.stdout, b"up")
    (guard,) = [child for child in children(with_guard.pid) if name_of(child) == "cordon-guard"]
    os.kill(guard, signal.SIGKILL)
    _, err = finish(with_guard, 125)
    assert b"the guard of the sandbox died" in err and not (place.ws / "file").exists()
    assert other.poll() is None


LETS_GO = """#!/usr/bin/python3 -I
import os, socket
control = socket.socket(fileno=3)
channel = socket.socket(fileno=socket.recv_fds(control, 4096, 8)[1][0])
_, (listener,), _, _ = socket.recv_fds(channel, 4096, 8)
if MODE == "lets go":
    channel.close()
    os.close(listener)
    control.recv(1)
"""


@pytest.mark.parametrize("mode", ["lets go", "dies"])
def test_a_guard_that_is_gone_before_the_command_begins_is_told(place, mode):
    programs = place.base / "programs"
    programs.mkdir()
    for program in (CORDON, LAUNCHER):
        shutil.copy(program, programs)
    guard = programs / "cordon-guard"
    guard.write_text(LETS_GO.replace("MODE", repr(mode)))
    guard.chmod(0o755)
    ran = place.run("--", "/bin/true", program=programs / CORDON.name)
    assert ran.returncode == 126 and "the guard of the sandbox was gone before the command began" in ran.stderr, ran


# --- one denial is one line: what, why, the one thing to type ---

ROWS = {  # of /work/shared/reviews/newcomer.md: the command, what is said of it ("": nothing)
    "D1 chroot": ("chroot / true", ""),
    "D1 words": ("echo \"touch: cannot touch '/': Read-only file system\" >&2; exit 1", ""),
    "D2 permission": ("python3 -c 'open(\"/proc/1/mem\")'", ""),
    # mount(8) would make /run/mount first, where that is missing
    "D3 mount": ("python3 -c 'import ctypes as c; exit(-c.CDLL(None).mount(b\"x\", b\"/mnt\", b\"tmpfs\", 0, None))'", ""),
    "D3 device": ("exec 3<>/dev/fuse", ""),
    "D4 hidden": ("touch OUT/new 2>/dev/null; exit 1",
                  "creating OUT/new (built-in workspace-write). Allow it with --writable OUT."),
    "D5 often": ("rm -rf .git; rm -rf .git; mv .git x; exit 1",
                 "writing WS/.git (protected name .git). If the command may change it: --writable WS/.git."),
    "D5 group": ("touch OUT/new OUT/newer OUT/newest",
                 "creating OUT/new, and 2 more (built-in workspace-write). Allow it with --writable OUT."),
}
if os.getuid() == 0:  # whom nobody but the sandbox refuses these
    ROWS |= {
        "D1 root": ("touch /new", "creating /new (built-in workspace-write). Let the command work somewhere else; or do "
                                  "this yourself, outside of the sandbox."),
        "E13 apt": ("mkdir /var/lib/dpkg/new /var/lib/apt/new /var/cache/apt/new",
                    "creating /var/lib/dpkg/new, and 2 more (built-in workspace-write). Packages of the system are for you "
                    "to change, outside of the sandbox."),
    }


@pytest.mark.parametrize("row", ROWS)
def test_a_denial_is_one_line(place, out, row):
    command, line = (text.replace("OUT", str(out)).replace("WS", str(place.ws)) for text in ROWS[row])
    (place.ws / ".git").mkdir()
    called = place.shell(command)
    assert called.returncode != 0
    told = [said for said in called.stderr.splitlines() if said.startswith("cordon: ")]
    assert told == ([f"cordon: refused: {line}"] if line else []), called.stderr


def test_a_full_stop_is_not_read_as_a_folder(place):
    assert "Take back what denies it (--deny .)." in place.run("--deny", ".", "--", "ls").stderr
