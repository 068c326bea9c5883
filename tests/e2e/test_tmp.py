"""Private temporary folders: whose they are, what is kept, what is seen, where they are not to be had."""
import os
import shutil
import socket
import time

import pytest

from harness import BUILD, CORDON, LAUNCHER, private_tmp
from tools import passes

DAY = 24 * 3600


def host_file(place, name="file", text="of the host\n"):
    """In a folder of the host's /tmp that is not $TMPDIR."""
    file = place.tmp / "of-the-host" / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    return file


def folder_of(place, *options):
    return place.json("explain", "--json", *options)["tmp"]["path"]


def test_kept_for_the_next_command(place):
    """Of whatever profile, with whatever else open; and where explain says."""
    passes(place.shell("echo one >/tmp/one; echo two >/var/tmp/two"))
    options = ("--profile", "read-only", "--readable", place.outside)
    assert passes(place.shell("cat /tmp/one /var/tmp/two; echo three >/tmp/three", *options)) == "one\ntwo\n"
    folder = private_tmp(place.home, place.ws)
    assert folder_of(place) == str(folder)
    assert f"private: {folder}" in place.cordon("explain").stdout
    assert [(folder / name).read_text() for name in ("tmp/one", "var-tmp/two", "tmp/three")] == ["one\n", "two\n", "three\n"]
    assert [oct(path.stat().st_mode & 0o7777) for path in (folder.parent, folder, folder / "tmp")] == \
        ["0o700", "0o700", "0o1777"]


def test_of_no_other_workspace(place):
    (place.ws / "sub").mkdir()
    passes(place.shell("echo one >/tmp/one"))
    for other in (place.ws / "sub", place.outside):
        assert "one" not in passes(place.shell("ls -A /tmp /var/tmp", "-C", other, env={"TMPDIR": ""})).split()
    link = place.base / "link"
    link.symlink_to(place.ws)
    assert passes(place.shell("cat /tmp/one", "-C", link)) == "one\n"


def test_read_only_profile_has_what_programs_want(place):
    out = passes(place.run("--profile", "read-only", "--", "bash", "-c",
                           'cat <<<here; python3 -c "import tempfile as t; print(len(t.TemporaryFile().read()))"; sort <(echo sorted)'))
    assert out == "here\n0\nsorted\n"


@pytest.mark.parametrize("tmpdir,inside", [(None, ""), ("", ""), ("/tmp/a/b", "/tmp/a/b"), ("/var/tmp/c", "/var/tmp/c"),
                                           ("{base}/outside", "/tmp"), ("{base}/ws", "{base}/ws"), ("/nowhere", "/tmp")])
def test_tmpdir_agrees(place, tmpdir, inside):
    env = {"TMPDIR": (tmpdir or "").format(base=place.base)}
    if tmpdir is None:
        del place.env["TMPDIR"]
        env = {}
    out = passes(place.shell('echo "$TMPDIR"; touch "${TMPDIR:-/tmp}/made"', env=env))
    assert out == inside.format(base=place.base) + "\n"


def test_tmpdir_that_is_set_on_purpose_stays(place):
    assert passes(place.shell('echo "$TMPDIR"', "--env", f"TMPDIR={place.outside}")) == f"{place.outside}\n"


def test_what_the_host_has_is_seen_when_it_is_named(place):
    file = host_file(place)
    other = host_file(place, "other")
    out = place.shell(f"cat {file}; ls {file.parent}", "--readable", file)
    assert out.stdout == "of the host\nfile\n"
    assert place.shell(f"echo in >{file}", "--readable", file).returncode != 0
    passes(place.shell(f"echo in >{file.parent}/new; cat {other}", "--writable", file.parent))
    assert (file.parent / "new").read_text() == "in\n"
    assert passes(place.shell(f"cat {file}", "--tmp", "host")) == "of the host\n"
    assert passes(place.shell(f"cat {file}", "--readable", "/tmp")) == "of the host\n"
    place.config('[permissions.dev]\nextends = ":workspace"\n[permissions.dev.filesystem]\n":slash_tmp" = "write"\n')
    assert passes(place.shell(f"echo here >/var/tmp/here; cat {file}", "--profile", "dev")) == "of the host\n"
    assert not os.path.exists("/var/tmp/here")
    place.config('[permissions.dev]\nextends = ":workspace"\ntmp = "host"\n')
    assert passes(place.shell(f"cat {file}; touch $TMPDIR/here", "--profile", "dev")) == "of the host\n"
    assert (place.tmp / "here").exists()


def test_a_workspace_below_tmp(place):
    """As it is outside, by its own path and by a link; only to be read in a profile that says so."""
    workspace = place.tmp / "deep/ws"
    workspace.mkdir(parents=True)
    (place.tmp / "link").symlink_to(workspace)
    passes(place.shell(f"echo in >new; cat {place.tmp}/link/new; ! mkdir .git; ! mv {place.tmp}/deep {place.tmp}/x",
                       "-C", place.tmp / "link"))
    assert (workspace / "new").read_text() == "in\n"
    ran = place.shell("cat new; echo >more", "--profile", "read-only", cwd=workspace)
    assert ran.stdout == "in\n" and ran.returncode and not (workspace / "more").exists()


def test_a_cordon_that_lies_in_tmp(place):
    """It executes itself in the sandbox."""
    program = place.tmp / "cordon"
    shutil.copy(CORDON, program)
    ran = place.cordon("patch", program=program, env={"CORDON_LINUX_SANDBOX_EXE": str(LAUNCHER)},
                       text="*** Begin Patch\n*** Add File: f\n+x\n*** End Patch\n")
    assert ran.returncode == 0 and (place.ws / "f").read_text() == "x\n", ran


def test_a_socket_of_the_host(place):
    path = place.tmp / "socket"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        connect = f"import socket; socket.socket(socket.AF_UNIX).connect('{path}'); print('yes')"
        assert place.run("--", "python3", "-c", connect).stdout == ""
        assert passes(place.run("--socket", path, "--", "python3", "-c", connect)) == "yes\n"


def test_where_nothing_can_be_kept(place):
    """No home, one of somebody else's, links and files in the way: in memory, and explain says why."""
    for spoil, why in (({"HOME": "/nonexistent"}, "nonexistent"), ({"XDG_CACHE_HOME": "/dev/null"}, "/dev/null")):
        assert passes(place.shell("ls -A /tmp; echo x >/tmp/x; cat /tmp/x", env={"TMPDIR": "", **spoil})) == "x\n"
        tmp = place.json("explain", "--json", env=spoil)["tmp"]
        assert tmp["whose"] == "private" and tmp["path"] is None and why in tmp["why"], tmp
    for name in (".cache/cordon/tmp", ".cache/cordon"):
        link = place.home / name
        link.parent.mkdir(parents=True, exist_ok=True)
        if link.is_dir():
            link.rename(place.base / "away")
        link.symlink_to(place.outside)
        assert passes(place.shell("ls -A /tmp; echo x >/tmp/x", env={"TMPDIR": ""})) == ""
        assert os.listdir(place.outside) == []
        link.unlink()


def test_a_link_by_which_the_cache_is_found(place):
    real = place.outside / "cache"
    real.mkdir()
    (place.home / ".cache").symlink_to(real)
    passes(place.shell("echo one >/tmp/one"))
    assert list(real.glob("cordon/tmp/*/tmp/one"))
    ran = place.run("--writable", place.home, "--", "true")
    assert ran.returncode == 125 and "symlink" in ran.stderr


def test_a_file_of_the_host_that_was_meant(place):
    """One line says which, and what shows it: and helps."""
    file = host_file(place, "script.sh", "echo ran\n")
    for words in (["sh", file], ["bash", "-c", f"set -e; sh '{file}'; true"], [file]):
        notes = [line for line in place.run("--", *words).stderr.splitlines() if str(file) in line and "--readable" in line]
        assert len(notes) == 1 and f"--readable {file}" in notes[0] and "--tmp host" in notes[0], notes
    assert passes(place.run("--readable", file, "--", "sh", file)) == "ran\n"
    ran = place.shell(f"echo {file}; cat {place.tmp}/of-nobody; false")
    assert "of-nobody" not in "".join(line for line in ran.stderr.splitlines() if line.startswith("cordon"))


def age(path, days):
    os.utime(path, (time.time() - days * DAY,) * 2, follow_symlinks=False)


def test_emptied_by_age(place):
    """By change, reading and renaming: so only what the test can make old is, the time of the clock's own is now."""
    passes(place.shell("mkdir -p /tmp/d; echo >/tmp/d/old; ln -s $PWD /tmp/link"))
    folder = private_tmp(place.home, place.ws)
    age(folder.parent / "emptied", 2)
    (place.ws / "kept").write_text("x")
    passes(place.run("--", "true"))
    assert (folder / "tmp/d/old").exists()  # its ctime is of today
    assert time.time() - (folder.parent / "emptied").stat().st_mtime < DAY


def test_what_is_empty_goes(place):
    """And not while a command runs there. (Programs of Cordon's that lie in /tmp are shown there, in folders.)"""
    has_programs = BUILD.is_relative_to("/tmp") or BUILD.is_relative_to("/var/tmp")
    other = place.outside
    held = place.start("run", "-C", other, "--", "sh", "-c", "echo ready; read x", stdin=-1)
    assert held.stdout.readline() == b"ready\n"
    for left in (place.ws, other):
        passes(place.shell("true", "-C", left, env={"TMPDIR": ""}))
    age(private_tmp(place.home, place.ws).parent / "emptied", 2)
    passes(place.run("--", "true", env={"TMPDIR": ""}))
    assert private_tmp(place.home, place.ws).exists() == has_programs
    assert private_tmp(place.home, other).exists()
    held.communicate(b"\n")
