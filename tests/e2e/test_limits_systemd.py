"""Limits where no folder for cgroups can be written to, and systemd is asked: by a double of it on a bus of
our own (probes/systemd.c). The bus is the user's, and root's the system's."""
import json
import os
import pwd
import select
import signal
import subprocess
from pathlib import Path

import pytest

from harness import CORDON, PIDS_OF_ROOT_BY, WAIT
from served import READ_ONLY as READ_ONLY_SANDBOX
from tools import where

PROBE = Path(__file__).parent / "probes/systemd.c"
IS_ROOT = os.getuid() == 0
BASES = [Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup/pids")]  # v1, as in probes/systemd.c
HAS_ACCOUNT = any(entry.pw_uid == os.getuid() for entry in pwd.getpwall())  # dbus-daemon lets nobody else in
HAS_V1 = all((base / "cgroup.procs").exists() for base in BASES)
BUS = """<busconfig><type>session</type><listen>unix:path={path}</listen><auth>EXTERNAL</auth>
<policy context="default"><allow send_destination="*"/><allow receive_sender="*"/><allow own="*"/></policy></busconfig>
"""
READ_ONLY = """mount --make-rprivate /
grep -E ' cgroup2? ' /proc/mounts | while read -r _ at _; do mount -o remount,bind,ro "$at"; done
exec "$@"
"""


class Systemd:
    """The bus, the double on it, and Cordon where it finds no folder."""

    def __init__(self, place):
        self.place = place
        self.variable = f"DBUS_{'SYSTEM' if IS_ROOT else 'SESSION'}_BUS_ADDRESS"
        self.address = f"unix:path={place.base}/bus"
        self.prefix = ["unshare", "-m", "sh", "-c", READ_ONLY, "sh"] if IS_ROOT else []
        self.double = place.base / "systemd"
        flags = subprocess.run(["pkg-config", "--cflags", "--libs", "libsystemd"], check=True,
                               capture_output=True, text=True).stdout.split()
        subprocess.run(["gcc", "-o", self.double, PROBE, *flags], check=True)
        (place.base / "bus.conf").write_text(BUS.format(path=place.base / "bus"))

    def start(self, *bases, **env):
        bus = self.place.start(f"--config-file={self.place.base}/bus.conf", "--nofork", "--print-address",
                               program="dbus-daemon")
        assert bus.stdout.readline()
        self.process = self.place.start(self.address, *bases, program=self.double, env=env)
        assert self.process.stdout.readline() == b"ready\n"

    def scopes(self):
        """What was asked of it, once it has ended; nothing is left in them then."""
        out, err = self.process.communicate(timeout=WAIT)
        assert (self.process.returncode, err) == (0, b"")
        return out.decode().splitlines()

    def call(self, *words):
        """(words before cordon, its environment)"""
        return [*self.prefix, str(CORDON), *map(str, words)], {self.variable: self.address}

    def cordon(self, *words):
        argv, env = self.call(*words)
        return self.place.cordon(*argv[1:], program=argv[0], env=env)

    def limited(self, *options, script="true"):
        """(limits, warnings) of a run."""
        ran = json.loads(self.cordon("run", "--json", *options, "--", "sh", "-c", script).stdout)
        return ran["limits"], ran["warnings"]


@pytest.fixture
def systemd(place):
    return Systemd(place)


EAT = "exec /usr/bin/python3 -c 'b\"x\" * (256 << 20)'"

if IS_ROOT and HAS_V1:  # where a double can make what systemd makes

    @where("dbus-daemon", "unshare")
    def test_a_scope_keeps_limits(systemd):
        """Wish 16: memory and processes without a delegated cgroup."""
        systemd.start(*BASES)
        limits, warnings = systemd.limited("--max-memory", "64M", "--max-pids", "50", script=EAT)
        assert (limits["memory"]["by"], limits["memory"]["hit"]) == ("cgroup", True)
        assert (limits["pids"]["by"], limits["pids"]["hit"]) == ("cgroup", False)
        assert warnings == []
        limits, _ = systemd.limited("--max-memory", "1G", "--max-pids", "20", script="for i in $(seq 30); do sleep 9 & done")
        assert (limits["pids"]["by"], limits["pids"]["hit"]) == ("cgroup", True)
        doctor = json.loads(systemd.cordon("doctor", "--json").stdout)
        assert doctor["limits"] == {name: {"by": "cgroup", "command": True} for name in ("memory", "pids")}
        assert "limits" not in {remedy["about"] for remedy in doctor["remedies"]}
        assert [line.split(" ", 1)[1] for line in systemd.scopes()] == [
            "fail memory=67108864 swap=0 tasks=51 pids=2 delegate=1",
            "fail memory=1073741824 swap=0 tasks=21 pids=2 delegate=1",
            "fail memory=1073741824 swap=0 tasks=101 pids=1 delegate=1"]

    @where("dbus-daemon", "unshare")
    def test_a_killed_cordon_leaves_nobody_in_its_scope(systemd):
        systemd.start(*BASES)
        argv, env = systemd.call("run", "--max-memory", "64M", "--", "sh", "-c", "echo on; sleep 99")
        cordon = systemd.place.start(*argv[1:], program=argv[0], env=env)
        assert cordon.stdout.readline() == b"on\n"
        scope = BASES[0] / systemd.process.stdout.readline().decode().split()[0]
        inside = [os.pidfd_open(int(pid)) for pid in (scope / "cgroup.procs").read_text().split()]
        cordon.send_signal(signal.SIGKILL)
        for pidfd in inside:
            assert select.select([pidfd], [], [], WAIT)[0]
            os.close(pidfd)
        assert len(inside) >= 3  # the helper, the launcher, the command
        assert systemd.scopes() == []

    def test_what_nobody_asked_for_asks_nobody(systemd):
        limits, warnings = systemd.limited()
        assert {limit["by"] for limit in limits.values()} == {"rlimit", PIDS_OF_ROOT_BY}
        assert warnings == []


    @where("dbus-daemon", "unshare")
    def test_what_is_around_is_no_scope(systemd):
        """A systemd that says it has moved us, and has not: a limit that we have anyway is no scope's, and nobody in
        our own cgroup is killed for it."""
        around = f"test-around-{os.getpid()}"
        systemd.start(*BASES, AROUND=around)
        into = 'for folder in "$1" "$2"; do echo $$ >"$folder/cgroup.procs"; done; shift 2; exec "$@"'
        systemd.prefix = ["sh", "-c", into, "sh", *(str(base / around) for base in BASES), *systemd.prefix]
        limits, warnings = systemd.limited("--max-memory", "2G", "--max-pids", "500")
        assert (limits["memory"]["by"], limits["pids"]["by"]) == ("rlimit", PIDS_OF_ROOT_BY)
        assert len(warnings) == (2 if PIDS_OF_ROOT_BY == "none" else 1)
        assert len(systemd.scopes()) == 1


if HAS_ACCOUNT:

    @where("dbus-daemon", "unshare")
    def test_what_keeps_no_limit_is_not_believed(systemd):
        """A manager without the controllers takes limits, too."""
        systemd.start()
        limits, warnings = systemd.limited("--max-memory", "64M", script=EAT)
        assert (limits["memory"]["by"], limits["memory"]["hit"]) == ("rlimit", None)
        assert ["--max-memory holds for each process by itself" in line and
                "it has no limits here" in line for line in warnings] == [True]

    @where("dbus-daemon", "unshare")
    @pytest.mark.parametrize("env, reason", [({"REFUSES": "1"}, "the double refuses"), ({"FAILS": "1"}, "failed")],
                             ids=["refuses", "fails"])
    def test_why_systemd_gives_none_is_said(systemd, env, reason):
        systemd.start(**env)
        ran = systemd.cordon("run", "--max-memory", "64M", "--", "true")
        assert ran.returncode == 0
        assert f"systemd gives no scope: {reason}" in ran.stderr


if IS_ROOT:

    @where("setarch", "unshare")
    def test_where_numbers_cannot_be_limited_it_is_said(place):
        """Before Linux 6.14 the setting is the host's, and never touched; elsewhere it may be read-only."""
        host = Path("/proc/sys/kernel/pid_max").read_text()
        read_only = "mount --bind /proc/sys /proc/sys; mount -o remount,bind,ro /proc/sys; exec \"$@\""
        for around in (["setarch", os.uname().machine, "--uname-2.6"], ["unshare", "-m", "sh", "-ec", read_only, "sh"]):
            ran = place.cordon(*around[1:], CORDON, "run", "--json", "--", "cat", "/proc/sys/kernel/pid_max",
                               program=around[0])
            result = json.loads(ran.stdout)
            assert (result["limits"]["pids"]["by"], result["exit_code"]) == ("none", 0)
            assert result["stdout"] != "4395\n"
        assert Path("/proc/sys/kernel/pid_max").read_text() == host


@where("unshare")
def test_clients_are_told_as_well(systemd):
    """Whoever asks for a limit on the wire learns that it does not hold as it is meant."""
    argv, env = systemd.call("serve", "--listen", "stdio")
    server = systemd.place.start(*argv[1:], program=argv[0], env=env)
    base = {"cwd": f"file://{systemd.place.ws}", "env": {}, "sandbox": READ_ONLY_SANDBOX}
    told = []
    for number, (method, params) in enumerate((
            ("initialize", {"clientName": "test"}), ("initialized", {}),
            ("process/start", {"processId": "p", "argv": ["/bin/true"], "tty": False, "maxMemoryBytes": 1 << 30, **base}),
            ("process/start", {"processId": "q", "argv": ["/bin/true"], "tty": False, **base}),
            ("session/exec", {"cmd": "true", "shell": "/bin/sh", "maxMemoryBytes": 1 << 30, **base}),
            ("session/exec", {"cmd": "true", "shell": "/bin/sh", **base}))):
        request = {"method": method, "params": params, **({} if method == "initialized" else {"id": number})}
        server.stdin.write(json.dumps(request).encode() + b"\n")
        server.stdin.flush()
        while "id" in request:
            answer = json.loads(server.stdout.readline())
            if answer.get("id") == number:
                told.append(answer["result"].get("warnings"))
                break
    assert told[0] is told[2] is told[4] is None
    for warnings in (told[1], told[3]):
        assert len(warnings) == 1 and "--max-memory holds for each process by itself" in warnings[0]


@where("unshare")
def test_without_anybody_to_ask(systemd):
    """E9: what is not kept is said, on stderr and in JSON alike; the command runs."""
    limits, warnings = systemd.limited("--max-memory", "1G", "--max-pids", "100")
    ran = systemd.cordon("run", "--max-memory", "1G", "--max-pids", "100", "--", "true")
    assert ran.returncode == 0
    assert limits["memory"]["by"] == "rlimit"
    assert limits["pids"]["by"] == (PIDS_OF_ROOT_BY if IS_ROOT else "rlimit")
    assert len(warnings) == (2 if limits["pids"]["by"] == "none" else 1)
    for line in warnings:
        assert f"cordon: {line}\n" in ran.stderr
        assert line.endswith(("cordon run", "(cordon doctor tells what to do)"))
