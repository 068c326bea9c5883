"""--sandbox landlock: what can be done without any namespace, what is held then, and what is said of it. On the bare host,
and (`scripts/in-container`) under the filter and capabilities that container engines give by default."""
import ctypes
import json
import os
import subprocess

import pytest

from harness import CORDON, TOP, private_tmp
from served import Server
from tools import passes

CONTAINER = TOP / "scripts/in-container"
WHERE = pytest.mark.parametrize("where", [[], [CONTAINER]], ids=["host", "container"])

WORK = """
set -e
echo one > new; echo two >> old; cat new old
mkdir -p deep/er; mv new deep/er/moved; ln deep/er/moved hard; ln -s moved deep/er/soft
echo three >> deep/er/soft; cat hard
chmod 751 hard; touch -d 2001-02-03 hard; stat -c '%a %y %h' hard
cp -a deep copy; rm -r deep; ls -R copy; cat copy/er/soft
tar cf t.tar copy; mkdir out; tar xf t.tar -C out; stat -c '%a %Y' out/copy/er/moved
printf x | dd of=hard conv=notrunc status=none; truncate -s 1 hard; cat hard; echo
mv -T out copy2; rmdir empty; mkfifo pipe; test -p pipe; rm pipe hard
printf '#!/bin/sh\\necho ran' > program; chmod +x program; ./program
git init -q sub; cd sub; git add -A; git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x; git log --oneline | wc -l
python3 -c 'import os, sqlite3, tempfile
with tempfile.TemporaryFile() as file: file.write(b"x")
sqlite3.connect("db").executescript("create table t(a); insert into t values (1)")
with open("mode", "w") as file: os.fchmod(file.fileno(), 0o640); os.utime(file.fileno(), (1, 2))
print(oct(os.stat("mode").st_mode), os.stat("mode").st_mtime)'
"""

HARM = """
echo x > .git/config; echo x >> .git/hooks/new; rm -rf .git; mv .git git; mkdir .codex; ln .git/config link; chmod 777 .git
mv inner other; mkdir inner/.git; ln -s x .mcp.json; cp old .MCP.json; echo x > .vscode; rm -r inner
touch ../outside/new; echo x > ../outside/file; chmod 777 ../outside/file; touch ../outside/file; ln ../outside/file here
mv ../outside/file here; rm ../outside/file; truncate -s 0 ../outside/file; setfattr -n user.a -v b ../outside/file
mv old ../outside/; ln old ../outside/old; chmod u+s old; chgrp 0 ../outside; exec 3< ../outside/file; chmod 777 /proc/self/fd/3
python3 -c 'import os
for call in (lambda fd: os.fchmod(fd, 0o777), lambda fd: os.utime(fd, (1, 2)), lambda fd: os.chown(fd, os.getuid(), os.getgid()),
             lambda fd: os.setxattr(fd, "user.a", b"b"), lambda fd: os.open(f"/proc/self/fd/{fd}", os.O_WRONLY)):
    for path in ("../outside/file", ".git/config"):
        fd = os.open(path, os.O_RDONLY)
        try: call(fd)
        except OSError: continue
        print("won", path)'
cat /proc/1/environ /proc/$PPID/environ /proc/$PPID/mem; kill -0 1; kill -0 $PPID; cat /dev/vda /dev/sda /dev/mem
unshare -r true; unshare -m true; chroot / true; setsid true
"""


def start(place, where, *words):
    ran = subprocess.run([*where, CORDON, *words], capture_output=True, text=True, errors="replace", cwd=place.ws,
                         env=place.env, check=False)
    return ran.returncode, ran.stdout, ran.stderr


def shell(place, where, script, *options):
    return start(place, where, "run", "--sandbox", "landlock", *options, "--", "sh", "-c", script)


def set_up(place):
    subprocess.run(["git", "init", "-q", place.ws], check=True, env=place.env)
    subprocess.run(["git", "init", "-q", place.ws / "plain/inner"], check=True, env=place.env)
    (place.ws / "old").write_text("old\n")
    (place.ws / "empty").mkdir()
    (place.outside / "file").write_text("original\n")


def tree(folder):
    return {str(path.relative_to(folder)): (path.lstat().st_mode, path.lstat().st_mtime,
                                            path.is_file() and path.read_bytes())
            for path in sorted([folder, *folder.rglob("*")])}


@pytest.mark.no_userns
@WHERE
def test_work_is_done_as_outside(place, where):
    set_up(place)
    code, inside, err = shell(place, where, WORK)
    assert code == 0, inside + err
    for name in ("old", "copy", "copy2", "t.tar", "program", "sub"):
        subprocess.run(["rm", "-rf", place.ws / name], check=True)
    set_up(place)
    outside = subprocess.run(["sh", "-c", WORK], capture_output=True, text=True, cwd=place.ws, env=place.env, check=True)
    assert inside == outside.stdout


def test_nothing_of_others_temporary_folders(place):
    """What commands with namespaces have there: in a workspace, and where the home directory is one."""
    passes(place.shell("echo one >/tmp/one"))
    file = private_tmp(place.home, place.ws) / "tmp/one"
    for folder in (place.outside, place.home):
        ran = place.shell(f"cat {file}; echo two >{file}; rm -r {file.parent}; mv {file.parents[2]} moved; echo ran",
                          "--sandbox", "landlock", "-C", folder)
        assert ran.stdout == "ran\n" and file.read_text() == "one\n", ran


@pytest.mark.no_userns
@WHERE
def test_what_is_narrower_stays_as_it_is(place, where):
    set_up(place)
    before = tree(place.ws / ".git"), tree(place.outside)
    code, out, err = shell(place, where, "echo begun;" + HARM, "--readable", "plain/inner/.git")
    assert (tree(place.ws / ".git"), tree(place.outside)) == before, err
    assert out == "begun\n" and code == 0
    left = {path.name for path in place.ws.iterdir()}
    assert not left & {"git", ".codex", "link", "here", ".mcp.json", ".MCP.json", ".vscode"}, err
    assert (place.ws / "old").stat().st_mode & 0o7777 == 0o644


@pytest.mark.no_userns
@WHERE
def test_what_is_between_stays_where_it_is(place, where):
    """A folder that has something read-only below it neither moves nor goes."""
    set_up(place)
    before = tree(place.ws / "plain/inner/.git")
    shell(place, where, "mv plain other; mv plain/inner x; mv -T --exchange plain empty; mv -T empty plain/inner; "
          "rm -rf plain; echo x > plain/inner/.git/config; touch plain/inner/fine", "--readable", "plain/inner/.git")
    assert tree(place.ws / "plain/inner/.git") == before
    assert (place.ws / "plain/inner/fine").exists()


@pytest.mark.no_userns
@WHERE
def test_what_is_denied_is_not_read(place, where):
    set_up(place)
    (place.ws / ".env").write_text("the-secret\n")
    (place.ws / "vault").mkdir()
    (place.ws / "vault/key").write_text("the-secret\n")
    (place.outside / "key").write_text("the-secret\n")
    code, out, err = shell(
        place, where, "cat .env vault/key ../outside/key; cp .env copy; ln .env link; mv vault v; ln vault/key link; tar c .; "
        "grep -r secret . ../outside; (. ./.env); echo more > beside; cat beside old; cat < beside",
        "--deny", ".env", "--deny", "vault", "--deny", place.outside / "key")
    assert "secret" not in out + err and code == 0
    assert out.endswith("more\nold\nmore\n")
    assert (place.ws / "vault/key").read_text() == (place.ws / ".env").read_text() == "the-secret\n"


@pytest.mark.no_userns
@WHERE
def test_every_report_says_that_it_is_weaker(place, where):
    code, out, err = start(place, where, "run", "--sandbox", "landlock", "--json", "--", "true")
    found = json.loads(out)["sandbox"]
    assert code == 0 and found["degraded"] is True
    assert found["layers"]["mount-namespace"]["state"] == "absent"
    assert found["layers"]["landlock"]["state"] == "partial" and "listed" in found["layers"]["landlock"]["why"]
    assert err.count("\n") == 1 and "weaker" in err and "--sandbox landlock" in err
    _, out, _ = start(place, where, "explain", "--sandbox", "landlock", "--json")
    assert json.loads(out)["layers"]["mount-namespace"]["state"] == "absent"
    _, out, _ = start(place, where, "log", "--json")
    assert "landlock" in [json.loads(line)["body"].get("sandbox") for line in out.splitlines()]


@pytest.mark.no_userns
def test_the_config_can_say_it(place):
    place.config('sandbox = "landlock"\n')
    assert "--sandbox landlock" in place.shell("echo > new").stderr and (place.ws / "new").exists()
    place.config('sandbox = "landlok"\n')
    ran = place.shell("true")
    assert ran.returncode == 125 and "did you mean \"landlock\"" in ran.stderr


def test_a_server_does_the_same(place):
    """Beside commands in namespaces, in one process."""
    set_up(place)
    with Server(place, listen=f"unix:{place.base}/serve.sock") as server:
        for options in (["--sandbox", "landlock"], [], ["--sandbox", "landlock"]):
            ran = place.cordon("--connect", server.url, "run", "--json", *options, "--", "sh", "-c",
                               "echo x > new && chmod 600 new && rm new; echo x > .git/config; readlink /proc/self/ns/mnt")
            found = json.loads(ran.stdout)
            own = os.readlink("/proc/self/ns/mnt") in found["stdout"]
            state = found["sandbox"]["layers"]["mount-namespace"]["state"]
            assert found["exit_code"] == 0 and (own, state) == ((True, "absent") if options else (False, "enforced")), found
            assert "x" not in (place.ws / ".git/config").read_text().split()


def test_a_profile_with_nested_namespaces_is_refused(place):
    place.config('default_permissions = "n"\n[permissions.n]\nextends = ":workspace"\nallow_nested_namespaces = true\n')
    ran = place.shell("true", "--sandbox", "landlock")
    assert ran.returncode == 125 and "exclude each other" in ran.stderr


def test_doctor_in_a_container(place):
    code, out, _ = start(place, [CONTAINER], "doctor", "--json")
    found = json.loads(out)
    assert code == 1 and found["verdict"] == "degraded"
    assert found["profiles"] == {"read-only": True, "workspace-write": False, "by-landlock": True}
    assert any("--sandbox landlock" in remedy["how"] for remedy in found["remedies"])
    code, _, err = start(place, [CONTAINER], "run", "--", "true")
    assert code == 125 and "--sandbox landlock" in err


def enter_chroot(folder):
    """Into a folder that is no mount point, with the host's top folders mounted in it."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(0x20000) or libc.mount(b"none", b"/", None, 0x44000, None):
        raise OSError(ctypes.get_errno(), "no mount namespace")
    for path in os.scandir("/"):
        if path.is_symlink():
            os.symlink(os.readlink(path.path), folder / path.name)
        elif path.is_dir():
            (folder / path.name).mkdir()
            if libc.mount(path.path.encode(), str(folder / path.name).encode(), None, 0x5000, None):
                raise OSError(ctypes.get_errno(), path.path)
    os.chroot(folder)


def test_in_a_chroot_root_hears_the_true_reason(place):
    if os.geteuid() != 0:
        return  # only root can be in one that it has made
    root = place.base / "root"
    root.mkdir()

    def cordon(*words):
        return subprocess.run([CORDON, *words], capture_output=True, text=True, check=False, env=place.env,
                              preexec_fn=lambda: (enter_chroot(root), os.chdir(place.ws)))

    doctor = json.loads(cordon("doctor", "--json").stdout)
    assert any("chroot" in remedy["cause"] for remedy in doctor["remedies"])
    assert doctor["profiles"]["by-landlock"]
    subprocess.run(["rm", "-rf", root], check=True)
    root.mkdir()
    ran = cordon("run", "--", "true")
    assert ran.returncode == 125 and "a chroot" in ran.stderr
    subprocess.run(["rm", "-rf", root], check=True)
    root.mkdir()
    assert cordon("run", "--sandbox", "landlock", "--", "touch", "new").returncode == 0
    assert (place.ws / "new").exists()
