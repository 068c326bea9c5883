"""The escape suite: attacks on the sandbox, each shown to succeed bare and to fail inside.

    CORDON_BUILD=build /usr/bin/python3 -m pytest tests/escape        as root or as anybody

identity.py says who plays, stage.py where, catalogue.py what a case is; the cases are in cases/,
one file per area, and the programs that they run in attacks/. As root, every case plays as root
and as an ordinary user; and for both once more where no user namespace is to be had.

    CORDON_TRIES=1000000    how often each race with the guard is tried (400; a million takes some eight
                            minutes each): scripts/pytest tests/escape -k races --timeout 0

    CORDON_IN_LAYER=1       every command in a change layer, of which all is accepted when it has ended

While commands run inside, watch.py sees every name that comes to be in the workspace, $TMPDIR and
(as root) /tmp: one that the attacks do not speak of is Cordon's own, and a failure.
"""

import atexit
import importlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))


def open_to_all(folder):
    return all(place.stat().st_mode & 0o001 for place in (folder, *folder.parents))


def programs_for_all(build):
    """Of a build where an ordinary user cannot look, a copy of its programs where they can."""
    copy = Path(tempfile.mkdtemp(prefix="build-", dir=os.environ["CORDON_TESTS"]))
    atexit.register(shutil.rmtree, copy)
    copy.chmod(0o755)
    for program in build.glob("src/**/cordon*"):
        if program.is_file():
            (copy / program.parent.relative_to(build)).mkdir(parents=True, exist_ok=True)
            shutil.copy(program, copy / program.relative_to(build))
    return copy


BUILD = Path(os.environ.get("CORDON_BUILD", HERE.parents[1] / "build")).resolve()
if os.geteuid() == 0 and not open_to_all(BUILD):
    os.environ["CORDON_BUILD"] = str(programs_for_all(BUILD))  # before stage.py reads it

for case in sorted((HERE / "cases").glob("[a-z]*.py")):
    importlib.import_module(f"cases.{case.stem}")

MUST_WORK = os.environ.get("CORDON_MUST_WORK") == "1"


@pytest.fixture(scope="session")
def tools():
    """Folder with the attack program, outside everything that a sandbox may write."""
    folder = Path(tempfile.mkdtemp(prefix="attacks-", dir=os.environ["CORDON_TESTS"]))
    folder.chmod(0o755)
    sources = sorted((HERE / "attacks").glob("*.c"))
    subprocess.run([os.environ.get("CC", "cc"), "-D_GNU_SOURCE", "-std=gnu17", "-O1", "-Wall",
                    "-Wextra", "-o", folder / "attacks", *sources, "-lrt"], check=True)
    yield folder
    shutil.rmtree(folder)


# What is another thing in a layer: nothing runs outside of it; a pipe is nothing to be accepted; what is swapped outside
# meanwhile is not seen inside.
NOT_IN_A_LAYER = ("test_a_stub", "test_the_path_flips[/usr/bin/readlink", "test_the_folder_is_renamed",
                  "test_a_fifo_does_not_keep_it", "test_a_link_on_the_way_is_swapped_while_held")
WITHOUT_LAYERS = ("no-user-namespace", "no-namespaces")  # who cannot have one


def pytest_collection_modifyitems(items):
    if os.environ.get("CORDON_IN_LAYER") == "1":
        items[:] = [item for item in items if not item.name.startswith(NOT_IN_A_LAYER)
                    and not any(who in item.name for who in WITHOUT_LAYERS)]


@pytest.fixture
def lack():
    """Skips with a reason, or fails where everything must work."""
    def say(reason):
        if MUST_WORK:
            pytest.fail(f"{reason} (CORDON_MUST_WORK=1)")
        pytest.skip(reason)
    return say
