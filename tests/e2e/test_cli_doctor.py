"""`cordon doctor` and `cordon version`. Causes and remedies that this machine does not have are
tested where they are decided: tests/unit/cli/test_remedies.c."""
import json
import os
import shutil

import pytest

from harness import BUILD, CORDON, LAUNCHER

VERDICTS = {0: "enforced", 1: "degraded", 2: "none"}


def doctor(place, **kwargs):
    ran = place.cordon("doctor", "--json", **kwargs)
    return ran.returncode, json.loads(ran.stdout)


@pytest.mark.no_userns
def test_status_and_verdict_agree_with_the_layers(place):
    code, found = doctor(place)
    assert found["verdict"] == VERDICTS[code]
    states = {layer["state"] for layer in found["layers"].values()}
    assert states <= {"enforced", "partial", "absent", "not-needed"}
    assert (code == 0) == (states <= {"enforced", "not-needed"})
    assert found["failure"] is None and found["profiles"]["read-only"] is True
    assert found["credentials"]["available"] == (found["layers"]["proxy"]["state"] == "enforced")


@pytest.mark.no_userns
def test_what_is_said_to_work_works(place):
    _, found = doctor(place)
    can_write = found["profiles"]["workspace-write"]
    assert (place.shell("true").returncode == 0) == can_write
    assert place.shell("true", "-p", "read-only", "-q").returncode == 0


def test_change_layers_are_tried(place):
    found = doctor(place)[1]["change_layers"]
    assert found["available"] and found["why"] is None
    assert found["folder"] == str(place.home / ".local/state/cordon/layers") and not found["in_memory"]
    assert not any((place.home / ".local/state/cordon/layers").glob("[!.]*"))  # it was made, and is gone
    _, found = doctor(place, cwd="/proc/sys")
    assert not found["change_layers"]["available"] and found["change_layers"]["why"]
    assert [remedy["finding"] for remedy in found["remedies"] if remedy["about"] == "change layers"] == ["no-layer-here"]


def test_without_its_program_there_are_no_credentials(place):
    """Told apart from the proxy, which is there."""
    folder = place.base / "programs"
    folder.mkdir()
    for program in (CORDON, LAUNCHER, *(BUILD / path for path in ("src/guard/cordon-guard", "src/proxy/cordon-proxy"))):
        shutil.copy(program, folder)
    _, found = doctor(place, program=folder / "cordon")
    assert found["layers"]["proxy"]["state"] == "enforced"
    assert found["credentials"]["available"] is False and "cordon-tls" in found["credentials"]["why"]


@pytest.mark.no_userns
def test_every_lack_has_a_remedy(place):
    code, found = doctor(place)
    about = {remedy["about"] for remedy in found["remedies"]}
    if code == 1:
        assert about - {"limits"}
        for remedy in found["remedies"]:
            assert remedy["cause"].endswith((".", "):", "processes it", ":", "together."))
    assert ("limits" in about) == (found["cgroup"] is None)


@pytest.mark.no_userns
def test_forbidden_user_namespaces_are_found(place):
    code, found = doctor(place)
    if found["host"]["max_user_namespaces"] != 0 or os.getuid() == 0:
        return
    assert code == 1
    assert found["layers"]["user-namespace"]["state"] == "absent"
    assert found["profiles"]["workspace-write"] is False
    remedy = found["remedies"][0]
    assert remedy["about"] == "user-namespace"
    assert "sysctl -w user.max_user_namespaces=15000" in remedy["how"]
    text = place.cordon("doctor").stdout
    assert "workspace-write    refused: without namespaces" in text
    assert "    sudo sysctl -w user.max_user_namespaces=15000\n" in text


@pytest.mark.no_userns
def test_text(place):
    code, _ = doctor(place)
    ran = place.cordon("doctor")
    assert ran.returncode == code
    first = {0: "Every layer of the sandbox is enforced.",
             1: "Commands are sandboxed, but not by every layer."}[code]
    assert ran.stdout.startswith(first + "\n\nLayers:\n  user-namespace     ")
    assert "\nLimits:\n  memory             by " in ran.stdout
    limits = json.loads(place.cordon("doctor", "--json").stdout)["limits"]
    row = {"none": "not kept"}.get(limits["pids"]["by"], "by " + limits["pids"]["by"])
    assert "\n  pids               " + row in ran.stdout


@pytest.mark.no_userns
def test_a_missing_launcher(place):
    """A copy of `cordon` alone is its own launcher; one that is pointed elsewhere has none."""
    code, found = doctor(place, env={"CORDON_LINUX_SANDBOX_EXE": "/nowhere/launcher"})
    assert code == 2 and found["verdict"] == "none"
    assert "CORDON_LINUX_SANDBOX_EXE names /nowhere/launcher" in found["failure"]
    ran = place.cordon("doctor", env={"CORDON_LINUX_SANDBOX_EXE": "/nowhere/launcher"})
    assert ran.returncode == 2 and ran.stdout.startswith("No sandbox can be made here: ")
    ran = place.run("true", env={"CORDON_LINUX_SANDBOX_EXE": "/nowhere/launcher"})
    assert ran.returncode == 125 and "/nowhere/launcher" in ran.stderr


def test_cordon_alone_is_its_own_launcher(place):
    lone = place.home / "cordon"
    shutil.copy(BUILD / "src/cli/cordon", lone)
    ran = place.cordon("version", "--json", program=lone)
    launcher = json.loads(ran.stdout)["launcher"]
    if launcher["path"] == str(lone):
        assert launcher["matches"] is True
        ran = place.cordon("run", "--", "sh", "-c", "echo out; ! touch /etc/x", program=lone)
        assert ran.stdout == "out\n" and ran.returncode == 0


@pytest.mark.no_userns
def test_wrong_calls(place):
    for words in (["doctor", "--jsn"], ["doctor", "now"], ["version", "2"]):
        ran = place.cordon(*words)
        assert ran.returncode == 125 and ran.stderr.startswith("cordon: ")


@pytest.mark.no_userns
def test_version(place):
    found = place.json("version", "--json")
    assert found.keys() == {"version", "launcher", "landlock", "kernel", "machine", "build"}
    assert found["launcher"] == {"path": str(LAUNCHER), "matches": True, "problem": None}
    assert found["kernel"]["release"] == os.uname().release
    assert found["machine"] == os.uname().machine
    text = place.cordon("version").stdout
    assert text.startswith(f"cordon {found['version']}\nlauncher  {LAUNCHER}\n")
    assert place.cordon("--version").stdout == text


@pytest.mark.no_userns
def test_version_sees_a_launcher_of_another_build(place):
    other = place.base / "launcher"
    other.write_text("#!/bin/sh\nexit 0\n")
    other.chmod(0o755)
    found = place.json("version", "--json", env={"CORDON_LINUX_SANDBOX_EXE": str(other)})
    assert found["launcher"]["path"] == str(other)
    assert found["launcher"]["matches"] is False and found["launcher"]["problem"]
