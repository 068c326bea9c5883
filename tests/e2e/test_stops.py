"""Ctrl-Z, fg and bg of `cordon run` in an interactive bash at a terminal, as without a sandbox."""
import termios

import pytest

from harness import CORDON
from person import Person

ECHO = "sh -c 'trap \"stty size\" WINCH; stty size; while :; do read x && echo got $x; done'"


class Bash(Person):
    """A person in front of a shell, whose prompt is `> `."""

    def __init__(self, place):
        super().__init__(place)
        self.resize(24, 80)
        place.start("--norc", "--noprofile", "-i", program="/bin/bash", preexec_fn=self.take_terminal, stdin=self.side,
                    stdout=self.side, stderr=self.side, env={"PS1": "> ", "TERM": "dumb", "HISTFILE": "/dev/null"})
        self.until("> ")

    def type(self, line):
        self.say(f"{line}\r")
        self.until("\n")

    def stop(self):
        """The shell has its prompt and the terminal its modes again."""
        self.say("\x1a")
        self.until("Stopped")
        self.until("\n> ")
        assert self.is_cooked()

    def type_until(self, text):
        """The shell does not tell when it has handed the terminal over: a line may come too early."""
        while text not in self.seen:
            self.say("a\r")
            self.is_shown_more(0.5)
        self.until(text)

    def is_cooked(self):
        """But for what an editor of lines switches while a line is typed."""
        self.type("stty -a | grep -o '[ -]icanon'")
        return self.until("> ").startswith(" icanon")

    def continue_job(self):
        """The shell says what it continues; what is typed before is its own."""
        self.type("fg")
        self.until("\n")

    def leave_job(self):
        self.say("\x03")
        self.until("> ")
        self.type("echo $?")
        return self.until("\n> ").split()[0]


@pytest.fixture
def bash(place):
    return Bash(place)


def test_stop_and_go_on(bash):
    bash.type(f"{CORDON} run -- {ECHO}")
    bash.until("24 80")
    bash.say("a\r")
    bash.until("got a")
    bash.stop()
    bash.resize(44, 99)  # while it is stopped
    bash.type("fg")
    bash.until("44 99")
    bash.say("b\r")
    bash.until("got b")
    assert bash.leave_job() == "130"


def test_in_the_background(bash):
    bash.type(f"{CORDON} run -- {ECHO}")
    bash.until("24 80")
    bash.stop()
    bash.type("bg")
    bash.until("> ")
    bash.type("echo mine")  # what is typed is the shell's
    assert "got" not in bash.until("\n> ")
    bash.type("jobs")
    bash.until("Running")
    bash.until("> ")
    bash.type("fg")
    bash.type_until("got a")
    bash.resize(44, 99)
    bash.until("44 99")
    assert bash.leave_job() == "130"


def test_a_pipeline_stops_whole(bash):
    bash.type(f"{CORDON} run -- sh -c 'echo up; read x; echo $x' | cat")
    bash.until("up")
    bash.stop()
    bash.continue_job()
    bash.say("a\r")
    bash.until("a\na\n")
    bash.until("> ")


def test_a_shell_inside_stops_its_own(bash):
    bash.type(f"{CORDON} run -- bash --norc --noprofile -i")
    bash.until("> ")
    bash.type("sh -c 'echo up; read x; echo got $x'")
    bash.until("up")
    bash.stop()
    bash.type("jobs -p | wc -l")
    bash.until("1\n")
    bash.until("> ")
    bash.continue_job()
    bash.say("a\r")
    bash.until("got a")
    bash.until("> ")
    bash.type("exit 7")
    bash.until("> ")
    bash.type("echo $?")
    bash.until("7\n")


def test_the_clock_stands_still(bash):
    """Two seconds to run; more are spent in the shell."""
    bash.type(f"{CORDON} run --timeout 2s -- sh -c 'echo up; read x; echo got $x'")
    bash.until("up")
    bash.stop()
    bash.type("sleep 2.1")
    bash.until("> ")
    bash.continue_job()
    bash.say("a\r")
    bash.until("got a")
    bash.until("> ")
    bash.type("echo $?")
    bash.until("0\n")


def test_a_command_that_stops_itself(bash):
    """As an editor does, which reads the key itself."""
    bash.type(f"{CORDON} run -- sh -c 'stty -isig; echo up; read x; kill -TSTP 0; echo again'")
    bash.until("up")
    bash.say("a\r")
    bash.until("Stopped")
    bash.until("> ")
    assert bash.is_cooked()
    bash.type("fg")
    bash.until("again\n")
    bash.until("> ")
    assert termios.tcgetattr(bash.side)[3] & termios.ISIG


def test_who_has_no_shell_is_not_stopped(place):
    """Nobody could continue it: as it is for every command of an orphaned group."""
    person = Person(place)
    process = place.start("run", "--", "sh", "-c", "echo up; read x; echo got $x", preexec_fn=person.take_terminal,
                          stdin=person.side, stdout=person.side, stderr=person.side)
    person.until("up")
    person.say("\x1a")
    person.say("a\r")
    person.until("got a")
    assert process.wait() == 0
