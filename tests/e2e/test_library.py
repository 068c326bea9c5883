"""libcordon: the two examples, built against the installed header and run."""
import os
import re
import subprocess

import pytest

from harness import BUILD, TOP, cpu_ticks, finish, read_until
from host import ENV, sanitizers

ONESHOT = BUILD / "examples/example_oneshot"
POLL_HOST = BUILD / "examples/example_poll_host"


def test_only_what_is_declared_is_shown():
    symbols = subprocess.run(["nm", "-g", "--defined-only", BUILD / "src/engine/libcordon.a"],
                             capture_output=True, text=True, check=True).stdout
    shown = {line.split()[2] for line in symbols.splitlines() if len(line.split()) == 3}
    header = (TOP / "include/cordon.h").read_text()
    declared = set(re.findall(r"\b(cordon_\w+)\(", header)) - {"cordon_answer_fn"}
    assert shown == declared


def test_installed_it_is_found_by_pkg_config(place):
    """An example is built against what `meson install` gives, by nothing but pkg-config."""
    root = place.base / "root"
    subprocess.run(["meson", "install", "-C", BUILD, "--no-rebuild", "--destdir", root],
                   check=True, capture_output=True)
    pc = next(root.rglob("cordon.pc"))
    env = {**os.environ, "PKG_CONFIG_PATH": str(pc.parent), "PKG_CONFIG_SYSROOT_DIR": str(root)}
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "cordon"], env=env, text=True,
                           capture_output=True, check=True).stdout.split()
    subprocess.run(["cc", TOP / "examples/oneshot.c", *flags, *sanitizers(),
                    "-o", place.base / "built"],
                   check=True)
    ran = place.cordon("echo", "hi", program=place.base / "built", env=ENV)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "hi\n", "")


def oneshot(place, *words, **kwargs):
    return place.cordon(*words, program=ONESHOT, env=ENV, **kwargs)


def test_one_command(place):
    ran = oneshot(place, "sh", "-c", "echo out; echo err >&2; exit 3")
    assert (ran.returncode, ran.stdout, ran.stderr) == (3, "out\n", "err\n")


def test_what_was_refused_is_said(place):
    ran = oneshot(place, "touch", place.outside / "x")
    assert ran.returncode == 1 and not (place.outside / "x").exists()
    assert f"{place.outside}/x was refused" in ran.stderr


def test_a_program_that_is_not_there(place):
    ran = oneshot(place, "no-such-program")
    assert ran.returncode == 127 and "no-such-program" in ran.stderr


def test_its_own_configuration_is_guarded(place):
    config = place.config("x = 1\n")
    ran = oneshot(place, "sh", "-c", f"cd {place.home}; echo > {config}")
    assert ran.returncode != 0 and config.read_text() == "x = 1\n"


def test_a_host_with_a_poll_loop(place):
    host = place.start(program=POLL_HOST, env=ENV)
    first = read_until(host.stdout, b"ready\n").decode()
    assert "Process running with session ID" in first
    host.stdin.write(b"X=6\n")
    host.stdin.flush()
    read_until(host.stdout, b"Output:\n")
    host.stdin.write(b"echo $((X * 7))\n")
    host.stdin.flush()
    read_until(host.stdout, b"Output:\n42\n")
    out, err = finish(host, 0)
    assert b"Process exited with code 0" in out and err == b""


def test_an_idle_host_sleeps(place):
    """With a session that does nothing, the host's own poll() is all that happens."""
    host = place.start(program=POLL_HOST, env=ENV)
    read_until(host.stdout, b"ready\n")
    before = cpu_ticks(host.pid)
    with pytest.raises(subprocess.TimeoutExpired):
        host.wait(timeout=1)
    assert cpu_ticks(host.pid) - before <= os.sysconf("SC_CLK_TCK") // 20
    finish(host, 0)
