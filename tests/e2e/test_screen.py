"""What programs show on their terminal: real ones, read through the call `screen`."""
import time

import pytest

import host
from harness import WAIT
from test_script import Talk
from tools import need


@pytest.fixture
def talk(place):
    talk = Talk(place)
    yield talk
    talk.end()


def start(talk, cmd, **parameters):
    parameters.setdefault("quiet_ms", 300)
    answer = talk.run("TERM=xterm exec " + cmd, tty=True, screen=True, **parameters)
    assert "exit_code" not in answer, answer
    return answer["session_id"]


def show(talk, session, holds):
    """The screen as soon as it is as wanted; drawing takes a program its time."""
    deadline = time.monotonic() + WAIT
    while True:
        screen = talk.call("screen", session_id=session)
        if "rows" in screen and holds(screen):
            return screen
        assert time.monotonic() < deadline, screen
        talk.wait(session, quiet_ms=50, yield_time_ms=250)


def test_vim(place, talk):
    need("vi")
    (place.ws / "poem").write_text("roses\nare\nred\n")
    vim = start(talk, "vi -u NONE -i NONE -n -c 'set nocp showmode' poem")
    screen = show(talk, vim, lambda screen: screen["rows"][3] == "~")
    assert screen["rows"][:3] == ["roses", "are", "red"]
    assert set(screen["rows"][3:23]) == {"~"}
    assert screen["alternate"] and screen["cursor"] == [0, 0] and screen["cursor_visible"]
    talk.write(vim, "jA not\x1b[D", quiet_ms=100)
    talk.write(vim, "\x1b", quiet_ms=100)
    talk.write(vim, ":s/are/were/\r", quiet_ms=100)
    screen = show(talk, vim, lambda screen: screen["rows"][1].startswith("were"))
    assert screen["rows"][0] == "roses" and screen["rows"][2] == "red"
    assert talk.write(vim, ":wq\r", exit=True)["exit_code"] == 0
    assert (place.ws / "poem").read_text().splitlines()[1].startswith("were")


def test_less(place, talk):
    need("less")
    (place.ws / "lines").write_text("".join(f"line {i}\n" for i in range(1, 101)))
    less = start(talk, "less lines", rows=10, columns=30)
    show(talk, less, lambda screen: screen["rows"][:9] == [f"line {i}" for i in range(1, 10)])
    talk.write(less, " ", quiet_ms=100)
    show(talk, less, lambda screen: screen["rows"][:9] == [f"line {i}" for i in range(10, 19)])
    talk.write(less, "/line 77\r", quiet_ms=100)
    screen = show(talk, less, lambda screen: screen["rows"][0] == "line 77")
    assert screen["alternate"] and len(screen["rows"]) == 10 and screen["columns"] == 30
    talk.call("resize", session_id=less, rows=12, columns=40)
    # Lines that were not there before: a key that meets its SIGWINCH is lost in less itself.
    show(talk, less, lambda screen: screen["rows"][:11] == [f"line {i}" for i in range(77, 88)])
    talk.write(less, "g", quiet_ms=100)
    show(talk, less, lambda screen: screen["rows"][:11] == [f"line {i}" for i in range(1, 12)])
    talk.call("resize", session_id=less, rows=5, columns=20)
    screen = show(talk, less, lambda screen: screen["rows"] == [f"line {i}" for i in range(1, 5)] + [":"])
    assert screen["columns"] == 20 and screen["cursor"] == [4, 1]
    assert talk.write(less, "q", exit=True)["exit_code"] == 0


def is_top(screen):
    return (screen["rows"][0].startswith("top - ") and
            any(row.split()[:2] == ["PID", "USER"] for row in screen["rows"]))


def test_top_resized(talk):
    need("top")
    top = start(talk, "top -d 600", rows=20, columns=40)
    screen = show(talk, top, is_top)
    assert len(screen["rows"]) == 20 and max(map(len, screen["rows"])) <= 40
    assert not any("COMMAND" in row for row in screen["rows"])
    talk.call("resize", session_id=top, rows=24, columns=100)
    # a column that was not there before: what was cut off comes back only when it draws again
    screen = show(talk, top, lambda screen: is_top(screen) and
                  any(row.endswith("COMMAND") for row in screen["rows"]))
    assert len(screen["rows"]) == 24
    assert any(row.split()[-1:] == ["top"] for row in screen["rows"])
    assert talk.write(top, "q", exit=True)["exit_code"] == 0


def test_htop(talk):
    need("htop")
    htop = start(talk, "htop")
    screen = show(talk, htop, lambda screen: "F10Quit" in screen["rows"][-1])
    assert any("PID" in row and "Command" in row for row in screen["rows"])
    assert screen["alternate"]
    assert talk.write(htop, "q", exit=True)["exit_code"] == 0


def test_a_shell_and_its_scrollback(talk):
    shell = start(talk, "sh -c 'seq 1 40; printf \"\\033]2;my title\\007here: \"; read x'")
    screen = show(talk, shell, lambda screen: "here:" in screen["rows"])
    assert screen["scrollback"] == [str(i) for i in range(1, 18)]
    assert screen["rows"] == [str(i) for i in range(18, 41)] + ["here:"]
    assert screen["cursor"] == [23, 6] and screen["title"] == "my title"
    assert not screen["alternate"]
    talk.call("terminate", session_id=shell)


def test_without_a_screen(talk):
    session = talk.run("read x", tty=True, yield_time_ms=250)["session_id"]
    assert talk.call("screen", session_id=session)["error"] == "invalid"
    pipe = talk.run("read x", stdin="pipe", screen=True, yield_time_ms=250)["session_id"]
    assert talk.call("screen", session_id=pipe)["error"] == "invalid"
    assert talk.call("screen", session_id=77)["error"] == "not-found"
    talk.call("terminate", session_id=session)
    talk.call("terminate", session_id=pipe)


# --- the library

def test_library(place):
    ran = place.cordon(program=host.build(place, "screen"), env=host.ENV)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout == ("3 20 2 1 1 0 [t] [1\n] 6\n2\n3\n4\n"  # a session
                          "failed: 1\nfailed: 1\n"  # without a screen, without a terminal
                          "2 30 0 5 1 0 [] [] 7\nready\n\n"
                          "failed: 2\n")
