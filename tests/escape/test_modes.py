"""What Cordon says and does where layers are missing: never less than asked for without a word."""

import json

import pytest

import identity
from stage import CORDON, Stage

NO_NAMESPACES = [name for name in identity.here() if not identity.has_namespaces(name)]
WEAKER = [name for name in identity.here() if not identity.is_whole(name)]
WHOLE = [name for name in identity.here() if identity.is_whole(name)]


@pytest.fixture(autouse=True)
def need_cordon(lack):
    if not CORDON.exists():
        lack(f"{CORDON} is not built")


def run(name, tools, *flags):
    """How `echo ran` ends in the sandbox."""
    def scene():
        with Stage(name, True, tools) as stage:
            return stage.run("/bin/sh", "-c", "echo ran", cordon=flags)
    return identity.play(name, scene)


@pytest.mark.parametrize("name", WEAKER)
@pytest.mark.parametrize("profile", ["read-only", "workspace-write"])
def test_require_refuses(name, profile, tools):
    ran = run(name, tools, "--sandbox", "require", "--profile", profile)
    assert ran.refused and "ran" not in ran.out
    assert "--sandbox require" in ran.err and "cordon doctor" in ran.err


@pytest.mark.parametrize("name", WHOLE)
def test_require_runs_where_all_is_there(name, tools):
    ran = run(name, tools, "--sandbox", "require")
    assert (ran.code, ran.out, ran.err) == (0, "ran\n", "")


@pytest.mark.parametrize("name", NO_NAMESPACES)
@pytest.mark.parametrize("flags", [
    [], ["--deny", "/etc/hostname", "--profile", "read-only"], ["--writable", "."],
])
def test_what_cannot_be_expressed_is_refused(name, flags, tools):
    """Protected names below a writable root, a denied path below a readable one."""
    ran = run(name, tools, *flags)
    assert ran.refused and "ran" not in ran.out
    assert "without namespaces" in ran.err and "--profile read-only" in ran.err


@pytest.mark.parametrize("name", WEAKER)
def test_a_weaker_sandbox_says_so(name, tools):
    ran = run(name, tools, "--profile", "read-only")
    assert ran.out == "ran\n"
    assert ran.err.count("\n") == 1 and "weaker" in ran.err and "cordon doctor" in ran.err
    report = json.loads(run(name, tools, "--profile", "read-only", "--json").out)["sandbox"]
    assert report["degraded"] is True
    assert report["layers"]["user-namespace"]["state"] == "absent"
    assert report["layers"]["user-namespace"]["why"]


@pytest.mark.parametrize("name", WHOLE)
def test_disabled_says_so(name, tools):
    ran = run(name, tools, "--sandbox", "disabled")
    assert ran.out == "ran\n" and "no sandbox" in ran.err
