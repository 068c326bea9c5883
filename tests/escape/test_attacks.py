"""Every attack of the catalogue: bare it must succeed, inside it must fail - and must have run."""

import functools
import inspect
import os
import re
from pathlib import Path
from typing import NamedTuple

import pytest

import identity
from catalogue import ATTACKS
from stage import CORDON, Stage, Unavailable

HOLES = range(1, 18)  # docs/peer-holes.md


class Outcome(NamedTuple):
    evidence: object  # what the attack achieved; false when nothing
    started: bool
    refused: bool
    missing: str  # why the host cannot show this attack
    runs: str
    appeared: list  # what Cordon left in a folder of the command's, were it for a moment


def play(case, name, inside, tools, flags=(), **more):
    """Plays one case as one identity."""
    flags = [*flags, *tmp_flags(case)]

    def scene():
        with Stage(name, inside, tools, flags) as stage:
            for attribute, value in more.items():
                setattr(stage, attribute, value)
            if has_own_tmp(case):
                stage.watched.append(Path("/tmp"))
            evidence, missing = None, ""
            try:
                evidence = case.play(stage)
            except Unavailable as lack:
                missing = str(lack)
            return Outcome(evidence, any(run.started for run in stage.runs),
                           any(run.refused for run in stage.runs), missing,
                           "\n".join(str(run) for run in stage.runs),
                           [str(path) for path in stage.appeared])
    return identity.play(name, scene, private_tmp=has_own_tmp(case))


@functools.cache
def tmp_flags(case):
    """What is tried in $TMPDIR or /tmp is tried where these can be written, and are the host's."""
    is_in_tmp = re.search(r"stage\.tmp|TMPDIR|/tmp|\"tmp/", inspect.getsource(case.play))
    return ["--tmp", "host"] if is_in_tmp and not case.name.startswith("tmp/") else []


def has_own_tmp(case):
    """All that can be: only there nobody else's names come to be."""
    return case.private_tmp or os.geteuid() == 0


def pairs(wanted):
    """(identity, case) for every identity that the harness can take and `wanted` accepts."""
    return [pytest.param(name, case, id=f"{name}-{case.name}") for case in ATTACKS.values()
            for name in identity.here() if wanted(name, case)]


def applies(name, case):
    return name.split("-")[0] in case.users


def whole(name, case):
    return applies(name, case) and identity.is_whole(name)


# Held by mounts and the guard, which are the same without a user namespace.
OF_NAMES = {"adversary_git", "adversary_looks", "beliefs", "commits", "denied", "environment", "files", "guard", "looks",
            "names", "own", "races", "repository", "terminal", "tmp", "token"}


def with_namespaces(name, case):
    return applies(name, case) and identity.has_namespaces(name) and \
        (identity.is_whole(name) or
         not (case.needs_host or case.on_guard or case.name.split("/")[0] in OF_NAMES))


def held_without_namespaces(name, case):
    """As root, where both can be played; the user has more to do by Landlock alone, below."""
    is_chosen = identity.is_root(name) or "root" not in case.users or os.geteuid() != 0
    return is_chosen and applies(name, case) and not identity.has_namespaces(name) and \
        not case.unheld and not case.needs_host and not case.on_guard


# What --sandbox landlock does not hold (docs/threat-model.md), or has no such thing as.
NOT_BY_LANDLOCK = {
    "denied/list-a-folder", "points/list-it",  # rights add up from the root down
    "guard/see-the-guard", "procfs/see-a-host-process", "procfs/read-the-sockets-of-the-host",
    "procfs/list-the-mounts-of-a-host-process", "procfs/read-what-only-root-may-of-the-kernel",  # the host's /proc
    "processes/outlive-with-a-stopped-init",  # no pid namespace
    "points/take-it-away-in-a-nested-namespace", "points/look-beside-it-in-a-nested-namespace",
    "points/look-by-a-root-of-ones-own",  # no nested namespaces either
    "tmp/read-what-the-host-has", "tmp/find-what-another-workspace-left-from-home",  # no private folders
}


def held_by_landlock(name, case):
    """As the user, or as root what only root can."""
    is_chosen = not identity.is_root(name) or "user" not in case.users
    return is_chosen and applies(name, case) and not identity.has_namespaces(name) and \
        not case.needs_host and case.name not in NOT_BY_LANDLOCK and \
        not case.name.startswith(("tmp/", "layers/"))  # no private temporary folders, and no layers, without mounts


def held_by_the_helper(name, case):
    """What its profile decides, and a layer of each kind: the rest is the same sandbox. Whose it is makes no
    difference to its flags."""
    area = case.name.split("/")[0]
    is_chosen = name == "user" or "user" not in case.users
    return is_chosen and whole(name, case) and not case.on_guard and \
        area in ("files", "network", "repository", "mounts", "privileges") and \
        "cordon=" not in inspect.getsource(case.play)


def chosen_for_a_layer(name, case):
    """One in thirty-six of what plays in one; as the user, or as root what only root can."""
    is_chosen = not identity.is_root(name) or "user" not in case.users
    return is_chosen and whole(name, case) and list(ATTACKS).index(case.name) % 36 == 5


def check_held(case, name, tools, lack, flags=(), may_refuse=False, **more):
    """The attack has been tried, and did not succeed: or Cordon did not start it, where that is an answer."""
    if not CORDON.exists():
        lack(f"{CORDON} is not built")
    outcome = play(case, name, True, tools, flags, **more)
    if outcome.missing:
        lack(outcome.missing)
    assert not outcome.evidence, f"ESCAPE: {str(outcome.evidence)[:300]}\n{outcome.runs}"
    assert outcome.appeared == []
    if outcome.refused:
        assert case.refusal_holds or may_refuse, f"Cordon refused to run the attack:\n{outcome.runs}"
    else:
        assert outcome.started or case.silent, f"the attack never ran:\n{outcome.runs}"


@pytest.mark.parametrize("name,case", pairs(whole))
def test_succeeds_bare(name, case, tools, lack):
    outcome = play(case, name, False, tools)
    if outcome.missing:
        lack(outcome.missing)
    assert outcome.evidence, f"the attack is not real here:\n{outcome.runs}"


@pytest.mark.parametrize("name,case", pairs(with_namespaces))
def test_fails_inside(name, case, tools, lack):
    check_held(case, name, tools, lack)


@pytest.mark.parametrize("name,case", pairs(held_without_namespaces))
def test_fails_without_namespaces(name, case, tools, lack):
    """What is left (Landlock, seccomp) holds what it claims; what it cannot express is refused."""
    check_held(case, name, tools, lack, flags=["--profile", "read-only"], may_refuse=True)


@pytest.mark.parametrize("name,case", pairs(held_by_landlock))
def test_fails_by_landlock_alone(name, case, tools, lack):
    """A workspace that can be written to, by Landlock and the guard (--sandbox landlock)."""
    check_held(case, name, tools, lack, flags=["--sandbox", "landlock"])  # a layer is mounts


@pytest.mark.parametrize("name,case", pairs(held_by_the_helper))
def test_fails_by_the_helper(name, case, tools, lack):
    """The flags of Codex's helper lead to the same sandbox."""
    check_held(case, name, tools, lack, helper=True)


@pytest.mark.parametrize("name,case", pairs(chosen_for_a_layer))
def test_fails_in_a_layer(name, case, tools, lack):
    """All of them: CORDON_IN_LAYER=1, by scripts/test-layers."""
    check_held(case, name, tools, lack, in_layer=True)


def test_enough_attacks():
    assert len(ATTACKS) >= 640


def test_every_hole_has_an_attack():
    covered = {hole for case in ATTACKS.values() for hole in case.holes}
    assert covered == set(HOLES), f"without an attack: {sorted(set(HOLES) - covered)}"


def test_every_promise_is_attacked():
    """The table in docs/threat-model.md names what is there, and all areas of the catalogue."""
    top = Path(__file__).parents[2]
    table = (top / "docs/threat-model.md").read_text(encoding="utf-8").partition("## What attacks each promise")[2]
    rows = [row.split("|")[1:3] for row in table.splitlines() if row.startswith("| ")][2:]
    areas = {name.split("/")[0] for name in ATTACKS}
    named = [name for _, tests in rows for name in tests.split("`")[1::2]]
    assert rows and all("`" in tests for _, tests in rows)
    assert [name for name in named if "/" in name and not (top / name).is_file()] == []
    assert {name for name in named if "/" not in name} == areas


def test_every_attack_has_a_user():
    assert all(case.users for case in ATTACKS.values())
