"""What programs show on their terminal: real ones, read through the call `screen`."""
import subprocess
import time

import pytest

from harness import BUILD, LAUNCHER, TOP, WAIT
from test_library import sanitizers
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
    talk.call("resize", session_id=less, rows=5, columns=40)
    talk.write(less, "g", quiet_ms=100)
    show(talk, less, lambda screen: screen["rows"][:4] == [f"line {i}" for i in range(1, 5)])
    assert talk.write(less, "q", exit=True)["exit_code"] == 0


def is_top(screen):
    return (screen["rows"][0].startswith("top - ") and
            any(row.split()[:2] == ["PID", "USER"] for row in screen["rows"]))


def test_top_resized(talk):
    need("top")
    top = start(talk, "top -d 600")
    screen = show(talk, top, is_top)
    assert len(screen["rows"]) == 24
    assert any(row.split()[-1:] == ["top"] for row in screen["rows"])
    talk.call("resize", session_id=top, rows=12, columns=60)
    screen = show(talk, top, is_top)
    assert len(screen["rows"]) == 12 and max(map(len, screen["rows"])) <= 60
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

HOST = r"""
#include <cordon.h>
#include <stdio.h>

static void print(int failed, struct cordon_screen **given, const struct cordon_error *error)
{
    struct cordon_screen *screen = *given;

    if (failed) {
        printf("failed: %d\n", error->code);
        return;
    }
    printf("%u %u %u %u %d %d [%s] [%.*s] %zu\n", screen->rows, screen->columns, screen->cursor_row,
           screen->cursor_column, screen->cursor_visible, screen->alternate, screen->title,
           (int)screen->scrollback_len, screen->scrollback, screen->text_len);
    fputs(screen->text, stdout);
    cordon_screen_free(screen);
}

static void show(struct cordon_engine *engine, unsigned flags)
{
    const char *argv[] = {"printf", "1\n2\n3\n\033]2;t\0074", NULL};
    struct cordon_session_options options = {.size = sizeof options, .argv = argv, .flags = flags,
                                             .rows = 3, .columns = 20};
    struct cordon_session *session;
    struct cordon_screen *screen = NULL;
    struct cordon_error error = {0};

    if (cordon_session_start(engine, &options, &session, &error) ||
        cordon_session_wait(session, -1, &error) != 1)
        puts(error.message);
    print(cordon_session_screen(session, &screen, &error), &screen, &error);
    cordon_session_free(session);
}

static void on_answer(void *data, const struct cordon_answer *answer)
{
    *(int *)data = answer->session_id;
}

int main(void)
{
    struct cordon_engine_options options = {.size = sizeof options, .flags = CORDON_IDS_IN_ORDER};
    struct cordon_pace pace = {.size = sizeof pace, .until = CORDON_UNTIL_TEXT, .text = "ready"};
    struct cordon_exec exec = {.size = sizeof exec, .cmd = "printf ready; read x", .no_login = 1,
                               .flags = CORDON_TTY | CORDON_SCREEN, .rows = 2, .columns = 20,
                               .pace = &pace};
    struct cordon_engine *engine;
    struct cordon_screen *screen = NULL;
    struct cordon_error error = {0};
    int id = 0;

    if (cordon_open(&options, &engine, &error))
        return puts(error.message);
    show(engine, CORDON_TTY | CORDON_SCREEN);
    show(engine, CORDON_TTY);
    show(engine, CORDON_SCREEN);
    if (cordon_exec_command(engine, &exec, on_answer, &id, NULL, &error))
        puts(error.message);
    while (!id && !cordon_wait(engine, -1, &error))
        ;
    if (cordon_resize(engine, id, 2, 30, &error))
        puts(error.message);
    print(cordon_screen_of(engine, id, &screen, &error), &screen, &error);
    print(cordon_screen_of(engine, 77, &screen, &error), &screen, &error);
    cordon_screen_free(NULL);
    cordon_close(engine);
    return 0;
}
"""


def test_library(place):
    (place.base / "host.c").write_text(HOST)
    subprocess.run(["cc", "-Wall", "-Werror", f"-I{TOP}/include", place.base / "host.c",
                    BUILD / "src/engine/libcordon.a", "-levent_core", "-ljansson", "-lvterm",
                    "-lstdc++", *sanitizers(), "-o", place.base / "host"], check=True)
    ran = place.cordon(program=place.base / "host",
                       env={"CORDON_LINUX_SANDBOX_EXE": str(LAUNCHER)})
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout == ("3 20 2 1 1 0 [t] [1\n] 6\n2\n3\n4\n"  # a session
                          "failed: 1\nfailed: 1\n"  # without a screen, without a terminal
                          "2 30 0 5 1 0 [] [] 7\nready\n\n"
                          "failed: 2\n")
