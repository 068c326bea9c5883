"""A day's work in a reduced form: the tasks whose programs are here, but for slow ones and those of the
network (`make day` plays all). And the tables about them."""
import re
import warnings

import pytest

import day

TASKS = day.tasks()
HERE = [task for task in TASKS if not task.slow and not task.network]
for task in HERE:
    if task.lacks():
        warnings.warn(f"{task.title} is left out: no {', '.join(task.lacks())}")


@pytest.mark.parametrize("task", [task for task in HERE if not task.lacks()], ids=lambda task: task.title)
def test_as_outside(task):
    day.play(task)


def test_few_flags():
    """At most two for any task, each a flag of `cordon run` with its value."""
    assert len({task.title for task in TASKS}) >= 60
    for task in TASKS:
        assert len(task.flags) <= day.MOST_FLAGS, task.title
        assert all(re.fullmatch(r"--[a-z-]+( \S+)?", flag) for flag in task.flags), task.title


def test_every_program_is_known():
    """scripts/day installs them."""
    known = {name for source in day.packages().values() for programs in source.values() for name in programs}
    assert {name for task in TASKS for name in task.needs} == known


def test_the_page_is_of_these_tasks():
    """docs/day.md is written by `make day DAY=--docs`."""
    said = re.findall(r"(?m)^\| ([a-z-]+/\S+) \| (.*?) \|", day.PAGE.read_text(encoding="utf-8"))
    assert said == [(task.title, " ".join(f"`{flag}`" for flag in task.flags)) for task in TASKS]


def test_every_defect_has_its_tests():
    """README.md names a test that exists for each defect of the newcomer's."""
    said = dict(re.findall(r"(?m)^\| ([ETD]\d+) \| [^|]* \| ([^|]*) \|$", (day.HERE / "README.md").read_text()))
    wanted = [f"{kind}{n}" for kind, last in (("T", 5), ("E", 13), ("D", 10)) for n in range(1, last + 1)]
    assert sorted(said) == sorted(wanted)
    titles = {task.title for task in TASKS}
    for defect, tests in said.items():
        named = re.findall(r"`([^`]+)`", tests)
        assert named, defect
        for one in named:
            file, _, name = one.partition("::")
            if name:
                text = (day.TOP / file).read_text(encoding="utf-8")
                assert re.search(rf"\b{re.escape(name)}\b", text), f"{defect}: no {name} in {file}"
            else:
                assert file in titles or (day.TOP / file).exists(), f"{defect}: no {file}"
