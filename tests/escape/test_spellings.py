"""Every call that makes a name with every spelling of a path to it (attacks/names.c): a table of some
1,200 pairs. Each must work bare, and be refused inside: for the protected names that a root lacks, in
each kind of root, and for a denied file that does not exist yet.

One run of the attack program plays the whole table, a row in each of its processes."""

import os
import subprocess

import pytest

import identity
from stage import CORDON, Stage

NAMES = (".git", ".agents", ".codex", ".aws", ".cordon")
WHOLE = [name for name in identity.here() if identity.is_whole(name)]
PLACES = {"workspace": ("ws", NAMES), "tmpdir": ("tmp", NAMES), "extra": ("extra", NAMES),
          "denied": ("ws/keep", ("secret",))}
ROWS = 400 if os.uname().machine != "x86_64" else 1000  # old calls are x86's alone
TIME = 120  # seconds for a whole table, of which it needs one


def table(name, place, inside, tools):
    """{"call/spelling": "won" or "lost"}, and what is in the folder afterwards."""
    folder, names = PLACES[place]

    def scene():
        with Stage(name, inside, tools) as stage:
            root = stage.base / folder
            (root / "sub/deep").mkdir(parents=True)
            for link, target in (("up", ".."), ("absolute", root), ("cwd", "/proc/self/cwd")):
                (root / "sub" / link).symlink_to(target)
            flags = {"extra": ["--writable", root], "tmpdir": ["--tmp", "host"], "denied": ["--deny", root / "secret"]}
            ran = stage.attack("names", root, *names, cordon=flags.get(place, []), timeout=TIME)
            subprocess.run(["chmod", "-R", "u+rwx", stage.base], check=True)
            return ran.out, str(ran), sorted(os.listdir(root))
    out, ran, left = identity.play(name, scene, timeout=TIME)
    rows = [line.split() for line in out.splitlines() if line.startswith("@row ")]
    assert rows, ran
    return {words[1]: words[2] for words in rows}, left


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("place", PLACES)
def test_no_spelling_makes_the_name(name, place, tools, lack):
    if not CORDON.exists():
        lack(f"{CORDON} is not built")
    bare, _ = table(name, place, False, tools)
    inside, left = table(name, place, True, tools)
    assert len(bare) >= ROWS and {row for row in bare if bare[row] != "won"} == set(), "not real"
    assert {row for row in inside if inside[row] == "won"} == set(), "ESCAPE"
    assert {row for row in bare if inside.get(row) != "lost"} == set(), "never ran"
    assert left == ["sub"]
