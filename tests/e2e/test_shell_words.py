"""Shell words (src/rules/shell/shell_words.h) against the programs that know: what is called plain is
what shfmt parses and what bash, zsh and dash run; and a forbidden command never hides in it."""
import os
import re
import subprocess

import pytest

import hidden_commands
import shell_words
from harness import CORDON, WAIT
from tools import need

LINES_MIN = 3000
# Everything there is takes a minute: CORDON_SHELL_WORDS=all. Otherwise a part of it.
ALL = os.environ.get("CORDON_SHELL_WORDS") == "all"
LINES_WANTED = 1_000_000 if ALL else 2 * LINES_MIN
SOME = 1_000_000 if ALL else 400  # of each kind of scripts are given to real shells
PAIRS_STEP = 1 if ALL else 5


@pytest.fixture(scope="module")
def lines():
    found = shell_words.machine_lines(LINES_WANTED)
    assert len(found) >= LINES_MIN, "this machine has too few shell scripts to learn from"
    return shell_words.plain(found)


@pytest.fixture(scope="module")
def singles():
    return shell_words.plain(shell_words.single_scripts())


@pytest.fixture(scope="module")
def pairs():
    found = shell_words.plain(shell_words.pair_scripts()[::PAIRS_STEP])
    assert len(found) > 5000 / PAIRS_STEP
    return found


@pytest.fixture(scope="module")
def rows():
    found = shell_words.plain(list(shell_words.random_scripts(10_000, seed=5)))
    assert len(found) > 400
    return found


def some(batch):
    """Evenly spread."""
    return batch[:: max(1, len(batch) // SOME)]


def test_shfmt_reads_the_same_words(lines):
    need("shfmt")
    assert len(lines) >= 300
    wanted = [command for _, answer in lines for command in answer["commands"]]
    assert shell_words.shfmt(b"\n".join(script for script, _ in lines)) == wanted


@pytest.mark.parametrize("shell", ["bash", "zsh", "dash"])
def test_shells_run_the_same_words(place, lines, singles, pairs, rows, shell):
    need(shell)
    batch = singles + some(lines) + some(pairs) + some(rows)
    found, count = shell_words.differences(place, shell, batch)
    assert found == []
    assert count > 1000


def test_quoted_text_is_the_same_in_other_locales(place, singles, pairs):
    """Where é and other characters are two characters, or blanks."""
    need("bash")
    batch = [(script, answer) for script, answer in singles + pairs if not script.isascii()]
    found, count = shell_words.differences(place, "bash", some(batch), locale="C")
    assert found == []
    assert count > 50


@pytest.mark.parametrize("shell, question", [
    ("bash", "compgen -b -k"),
    ("zsh", "zmodload zsh/parameter; print -l ${(k)builtins} ${(k)reswords}"),
])
def test_every_builtin_was_thought_of(shell, question):
    """A plain command is either no builtin or one of these."""
    need(shell)
    known = {*shell_words.BUILTINS.split(), "builtin", "return"}
    ran = subprocess.run([shell, "-c", question], stdout=subprocess.PIPE, check=True, timeout=WAIT)
    names = set(ran.stdout.split())
    assert len(names) > 60
    accepted = {script.decode() for script, _ in shell_words.plain(sorted(names))}
    accepted |= {script.split()[0].decode()
                 for script, _ in shell_words.plain([name + b" a" for name in sorted(names)])}
    assert accepted - known == set()


# --- hidden commands ---


def marker_place(place):
    """A program `marker` that leaves a trace, also under other names; and the environment."""
    folder = place.home / "bin"
    (folder / "alike").mkdir(parents=True)
    for name in ("marker", "m\u0430rker", "alike/innocent"):
        program = folder / name
        program.write_text('#!/bin/sh\n: > "$MARKS/$MARK"\n')
        program.chmod(0o755)
    (place.ws / "marks").mkdir()
    return folder, {**place.env, "LC_ALL": "C.UTF-8", "MARKS": str(place.ws / "marks"),
                    "PATH": f"{folder}:{place.env['PATH']}"}


def run_all(place, scripts, env):
    """The numbers of those that ran the marker; each in a shell of its own, all in one sandbox."""
    text = "exec < /dev/null > /dev/null 2>&1\n"
    for number, (shell, _, _, script) in enumerate(scripts):
        quoted = "'" + script.replace("'", "'\\''") + "'"
        text += f"MARK={number} timeout 20 {shell} -c {quoted} &\n"
        text += "wait\n" if number % 4 == 3 else ""
    driver = place.outside / "driver"
    driver.write_text(text + "wait\n")
    subprocess.run([CORDON, "run", "-C", place.ws, "--", "bash", driver], env=env, check=True,
                   stdin=subprocess.DEVNULL, timeout=3 * WAIT)
    return {int(path.name) for path in (place.ws / "marks").iterdir()}


def shows_marker(answer):
    """Some command, also one inside, is the forbidden one by name."""
    names = (words[0] for words in answer["commands"] + answer["inside"])
    return any(re.fullmatch(r"(.*/)?marker", name) for name in names)


def test_no_forbidden_command_hides_in_a_plain_script(place):
    need("bash", "zsh")
    folder, env = marker_place(place)
    scripts = hidden_commands.generate(str(folder))
    ran = run_all(place, scripts, env)
    answers = shell_words.judge([script.encode() for *_, script in scripts])
    hidden = [scripts[n] for n in sorted(ran)
              if answers[n]["opaque"] is None and not shows_marker(answers[n])]
    assert hidden == []
    assert len(ran) >= 1000
    tried = {(shell, way) for shell, way, *_ in scripts}
    assert tried - {scripts[n][:2] for n in ran} == set(), "these never ran the marker"
    assert {name for _, _, name, _ in scripts} == {scripts[n][2] for n in ran}


def test_a_nul_byte_hides_nothing():
    """A shell that reads its input drops NUL bytes, one that gets an argument stops at them."""
    scripts = [b"mar\0ker", b"echo ok\0\nmarker", b"echo \0; marker", b"echo '\0'; marker",
               b"\0marker", b"echo\0"]
    assert shell_words.plain(scripts) == []
