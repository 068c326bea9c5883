#!/usr/bin/python3
"""A day's work, outside of any sandbox and inside: `make day` (scripts/day), and a part of it in CI
(test_day.py).

What people do is data, tasks/GROUP.toml, a table per task (README.md says what may stand in it). Each is
played in folders of its own, with a new $HOME, outside and inside in turns, and has to end alike: exit
status, output, tree of files. What cannot be the same says why, and how it ends instead. `slow` tasks and
those of the network are for `make day`."""
import argparse
import datetime
import json
import os
import platform
import re
import shutil
import string
import subprocess
import sys
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
sys.path.insert(1, str(HERE.parent / "e2e"))

from folders import make_base  # noqa: E402
from harness import BUILD, CORDON, TOP, Place  # noqa: E402
from network_servers import Servers  # noqa: E402
from tools import NOBODY, Sides, give_to_nobody, has_account  # noqa: E402
from world import World  # noqa: E402

PAGE = TOP / "docs/day.md"
NODE_MODULES = BUILD / "day/node_modules"  # programs of npm's: scripts/day puts them there
MOST_FLAGS = 2


def is_here(program):
    return (NODE_MODULES / program).exists() or shutil.which(program, path=f"{NODE_MODULES}/.bin:{Place.PATH}")


def packages():
    """{"debian" or "npm": {package: programs}}"""
    return tomllib.loads((HERE / "programs.toml").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Task:
    group: str
    name: str
    run: str
    needs: list = field(default_factory=list)
    flags: list = field(default_factory=list)  # of `cordon run`, with their values: at most two
    before: str = ""  # outside, before either side
    after: str = ""  # outside, at the end
    files: dict = field(default_factory=dict)  # of the workspace
    env: dict = field(default_factory=dict)
    config: str = ""  # of the user's config.toml
    status: int = 0
    loose: list = field(default_factory=list)  # (expression, replacement) for what differs in the output from one run to the next
    unlike: list = field(default_factory=list)  # patterns of files whose content does
    untold: list = field(default_factory=list)  # patterns of files that need not be there
    why: str = ""  # it is not the same inside ...
    inside: int = 0  # ... ends with this, and prints
    says: str = ""
    slow: bool = False
    network: bool = False
    internet: list | None = None  # it is played where there is one (tests/world.py), and these servers in it
    account: bool = False  # not root's, and not of a user without an entry in passwd

    @property
    def title(self):
        return f"{self.group}/{self.name}"

    def lacks(self):
        return [name for name in self.needs if not is_here(name)] + (
            ["account of this user"] if self.account and not has_account() else [])


def joined(one, other):
    """What is said for every task of a group, and what for one."""
    return {**one, **other} if isinstance(one, dict) else one + other


def tasks():
    found = []
    for path in sorted((HERE / "tasks").glob("*.toml")):
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
        every = tables.pop("every", {})
        for name, own in tables.items():
            table = {**own, **{key: joined(value, own.get(key, type(value)())) for key, value in every.items()}}
            found.append(Task(path.stem, name, **table))
    return found


def play(task, rounds=1):
    """Both sides; fails by AssertionError. The seconds outside and inside."""
    place = Place()
    with place.cleanup:
        place.watch_all()
        env = {"CORDON": str(CORDON), "OUTSIDE": str(place.outside), "WS": str(place.ws), "NODE_PATH": str(NODE_MODULES), **place.env,
               "PATH": f"{NODE_MODULES}/.bin:{place.env['PATH']}"}
        become, cordon = (), CORDON
        if task.internet is not None:
            world = place.cleanup.enter_context(World(place))
            become = world.enter()
            env |= {"WORLD": str(world.base), "CA": str(world.ca)}
            for server in task.internet:
                getattr(Servers(world), server)()
        for key, value in task.env.items():
            env[key] = string.Template(value).substitute(env)
        for name, text in task.files.items():
            (place.ws / name).parent.mkdir(parents=True, exist_ok=True)
            (place.ws / name).write_text(text, encoding="utf-8")
        if task.account and os.getuid() == 0:
            become = ("setpriv", "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups")
            cordon = give_to_nobody(place)
        sides = Sides(place, loose=task.loose, unlike=task.unlike, untold=task.untold, env=env, become=become,
                      cordon=cordon)

        def aside(script):
            if script:
                ran = sides.bare("set -e\n" + script)
                assert ran.returncode == 0, (script, ran)

        place.cleanup.callback(aside, task.after)
        aside(task.before)
        if task.config:
            place.config(task.config)
        flags = [word for flag in task.flags for word in string.Template(flag).substitute(env).split(" ")]
        if not task.why:
            sides.is_alike(task.run, *flags, code=task.status, rounds=rounds)
        else:
            sides.is_refused(task.run, *flags, code=task.status, inside=task.inside, says=task.says)
        made = {path.name for path in place.ws.iterdir()}  # a .git that is still there is the task's own
        left = [path for path in place.of_cordon() if path.name not in made]
        assert not left, left
        return sides.seconds


def missing(source):
    wanted = {name for task in tasks() for name in task.needs}
    return [package for package, programs in packages()[source].items()
            if any(name in wanted and not is_here(name) for name in programs)]


# From here on: all of them, and the table.

def rows(found, rounds):
    """Plays; a row for each."""
    for number, task in enumerate(found, 1):
        row = {"task": task.title, "flags": task.flags, "verdict": "same", "why": task.why}
        lacks = task.lacks()
        print(f"[{number}/{len(found)}] {task.title} ", end="", file=sys.stderr, flush=True)
        if lacks:
            row.update(verdict="not tried", why=f"not here: {', '.join(lacks)}")
        else:
            try:
                outside, inside = play(task, rounds)
                row.update(verdict="not the same, as is said" if task.why else "same", outside=round(outside, 3),
                           inside=round(inside, 3), ratio=round(inside / outside, 2))
            except (AssertionError, OSError, subprocess.SubprocessError) as error:
                row.update(verdict="FAILED", why=str(error))
        print(row["verdict"], row["why"] if row["verdict"] == "FAILED" else "", file=sys.stderr)
        yield row


def table(done):
    lines = [("task", "flags", "inside", "outside s", "inside s", "ratio")]
    for row in done:
        verdict = row["verdict"] + (f": {row['why'][:90]}" if row["why"] else "")
        lines.append((row["task"], " ".join(row["flags"]), verdict, *(str(row.get(key, "")) for key in (
            "outside", "inside", "ratio"))))
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    order = (0, 3, 4, 5, 1, 2)
    return "\n".join("  ".join(line[i].ljust(widths[i]) for i in order).rstrip() for line in lines)


def page(done, before):
    """docs/day.md: of what was played now, and what was before."""
    lines = {title: line for line in before.splitlines() for title in re.findall(r"^\| ([a-z-]+/\S+) \|", line)}
    for row in done:
        flags = " ".join(f"`{flag}`" for flag in row["flags"])
        verdict = row["verdict"] if row["verdict"] == "same" else row["why"]
        lines[row["task"]] = f"| {row['task']} | {flags} | {verdict} | {row['outside']:.2f} | {row['ratio']:.2f} |"
    shown = [lines[task.title] for task in tasks() if task.title in lines]
    ratios = sorted(float(line.split("|")[-2]) for line in shown if "| same |" in line)
    return "\n".join([f"""\
# A day's work, outside and inside
Written by `make day DAY=--docs` on {datetime.date.today().isoformat()}: {os.cpu_count()} cores, Linux {platform.release()},
{len(shown)} tasks of `tests/day/tasks` with programs of Debian 12 and npm, each in a new home directory.
"same": the same exit status, output (where it does not differ by itself) and files. Ratio: the time
inside by the time outside, on a machine that did other things as well. Half of the tasks are below {ratios[len(ratios) // 2]},
nine of ten below {ratios[len(ratios) * 9 // 10]}: those that take milliseconds outside pay for the start of a sandbox.

| task | flags | inside | outside, s | ratio |
| --- | --- | --- | --- | --- |""", *shown]) + "\n"


def main():
    words = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    words.add_argument("part", nargs="*", help="groups or tasks (git, git/commit); by default all")
    words.add_argument("--missing", choices=("debian", "npm"), help="the packages that are not here")
    words.add_argument("--json", action="store_true", help="one JSON value in place of the table")
    words.add_argument("--docs", action="store_true", help="writes what was played into docs/day.md")
    words.add_argument("--rounds", type=int, default=1, metavar="N", help="of which the shortest time counts")
    words = words.parse_args()
    if words.missing:
        print("".join(f"{package}\n" for package in missing(words.missing)), end="")
        return
    found = [task for task in tasks() if not words.part or {task.group, task.title} & set(words.part)]
    base = make_base()
    try:
        done = list(rows(found, words.rounds))
    finally:
        shutil.rmtree(base, ignore_errors=True)
    print(json.dumps(done, indent=1) if words.json else table(done))
    failed = [row["task"] for row in done if row["verdict"] == "FAILED"]
    if words.docs:
        played = [row for row in done if "ratio" in row]
        PAGE.write_text(page(played, PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""), encoding="utf-8")
    sys.exit(f"day: FAILED: {' '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main()
