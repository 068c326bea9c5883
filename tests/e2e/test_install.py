"""`make uninstall` takes away what `make install` has put there, and nothing else."""
import json
import os
import re
import subprocess

import pytest

from harness import BUILD, TOP

pytestmark = pytest.mark.no_userns
PREFIX = next(option["value"] for option in json.loads((BUILD / "meson-info/intro-buildoptions.json").read_text())
              if option["name"] == "prefix")


def make(place, *words, code=0):
    env = {**os.environ, "DESTDIR": str(place.outside), "CORDON_BUILD": str(BUILD)}
    ran = subprocess.run(words, cwd=TOP, env=env, capture_output=True, text=True, timeout=200, check=False)
    assert ran.returncode == code, ran.stderr
    return ran


def tree(folder):
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
            for path in folder.rglob("*")}


def install(place):
    """As scripts/install does, without its look whether anything is to be built."""
    plan = place.base / "plan"
    plan.write_text(make(place, "scripts/installed", "plan", BUILD, PREFIX).stdout)
    for line in plan.read_text().splitlines():
        path = place.outside / PREFIX.lstrip("/") / line
        if line.endswith("/"):
            path.mkdir(parents=True, exist_ok=True)
        elif line != "libexec/cordon/installed":
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("installed")
    make(place, "scripts/installed", "keep", plan, PREFIX)


def uninstall(place, code=0):
    return make(place, "make", "uninstall", f"PREFIX={PREFIX}", code=code)


def test_nothing_is_left_and_nothing_else_goes(place):
    root = place.outside / PREFIX.lstrip("/")
    (root / "bin").mkdir(parents=True)
    (root / "bin/other").write_text("theirs")
    (root / "share/man").mkdir(parents=True)
    (root / "lib").mkdir()  # empty, and theirs
    before = tree(place.outside)
    install(place)
    assert (root / "bin/cordon").exists() and (root / "libexec/cordon/cordon-guard").exists()
    (root / "share/man/man1/theirs.1").write_text("theirs")
    install(place)  # once more: what was noted stays so
    uninstall(place)
    assert tree(place.outside) == {**before, f"{PREFIX[1:]}/share/man/man1": None,
                                   f"{PREFIX[1:]}/share/man/man1/theirs.1": b"theirs"}


def test_what_an_older_one_had_goes_too(place):
    install(place)
    root = place.outside / PREFIX.lstrip("/")
    (root / "libexec/cordon/cordon-old").write_text("old")
    with open(root / "libexec/cordon/installed", "a", encoding="utf-8") as note:
        note.write("libexec/cordon/cordon-old\n")
    install(place)
    uninstall(place)
    assert not [path for path in place.outside.rglob("*") if path.is_file()]


def test_nothing_outside_of_the_prefix_goes(place):
    assert "nothing was installed there" in uninstall(place, code=2).stderr
    install(place)
    (place.outside / "kept").write_text("kept")
    root = place.outside / PREFIX.lstrip("/")
    with open(root / "libexec/cordon/installed", "a", encoding="utf-8") as note:
        note.write("../" * PREFIX.count("/") + "kept\n")
    before = tree(place.outside)
    assert "not below the prefix" in uninstall(place, code=2).stderr
    assert tree(place.outside) == before


def test_what_meson_installs_is_what_is_noted(place):
    told = make(place, "meson", "install", "-C", BUILD, "--no-rebuild", "--dry-run").stdout
    found = {os.path.normpath(f"{folder}/{os.path.basename(file)}")
             for file, folder in re.findall(r"^Installing (\S+) to (\S+)$", told, re.MULTILINE)}
    plan = make(place, "scripts/installed", "plan", BUILD, PREFIX).stdout.splitlines()
    assert found == {f"{place.outside}{PREFIX}/{line}" for line in plan
                     if not line.endswith("/")} - {f"{place.outside}{PREFIX}/libexec/cordon/installed"}
