"""`cordon run`: what goes in and out - pipes, terminals, signals, time."""
import fcntl
import hashlib
import os
import pty
import select
import signal
import struct
import subprocess
import termios

import pytest

from harness import CORDON, SIGNALS, WAIT, finish, read_until

# --- pipes


@pytest.mark.no_userns
def test_streams_stay_apart(place):
    ran = place.shell("echo out; echo err >&2", "-p", "read-only", "-q")
    assert (ran.stdout, ran.stderr) == ("out\n", "err\n")


@pytest.mark.no_userns
def test_bytes_are_passed_as_they_are(place):
    process = place.start("run", "-q", "-p", "read-only", "--", "cat")
    data = bytes(range(256)) * 1000
    out, err = process.communicate(data, timeout=WAIT)
    assert (out, err, process.returncode) == (data, b"", 0)


def test_fifty_megabytes_without_loss(place):
    size = 50 << 20
    script = ("import hashlib, sys, random; r = random.Random(7); h = hashlib.sha256()\n"
              f"for _ in range({size >> 20}):\n"
              "    b = r.randbytes(1 << 20); h.update(b); sys.stdout.buffer.write(b)\n"
              "sys.stderr.write(h.hexdigest())")
    process = place.start("run", "--", "/usr/bin/python3", "-c", script)
    out, err = process.communicate(timeout=WAIT)
    assert len(out) == size
    assert hashlib.sha256(out).hexdigest() == err.decode()


def test_a_slow_reader_loses_nothing(place):
    """150 kB fit into the pipes on the way, so the command ends at once; what it wrote waits for as
    long as it takes, longer than the two seconds that a drain has."""
    process = place.start("run", "--", "head", "-c", "150000", "/dev/zero")
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(timeout=2.5)
    assert finish(process, 0)[0] == bytes(150000)


def test_time_runs_while_the_reader_is_slow(place):
    process = place.start("run", "--timeout", "300ms", "--", "yes")
    assert process.wait(timeout=WAIT) == 124


def test_a_signal_works_while_the_reader_is_slow(place):
    process = place.start("run", "--", "sh", "-c", "echo ready >&2; exec yes")
    read_until(process.stderr, b"ready")
    process.terminate()
    assert process.wait(timeout=WAIT) == 128 + signal.SIGTERM


def test_a_reader_that_goes_away_ends_the_command(place):
    process = place.start("run", "--", "yes")
    read_until(process.stdout, b"y\n")
    process.stdout.close()
    assert process.wait(timeout=WAIT) == 128 + signal.SIGPIPE
    assert process.stderr.read() == b""


@pytest.mark.no_userns
def test_output_that_cannot_be_written_is_said(place):
    with open("/dev/full", "wb") as full:
        ran = place.shell("echo out", "-q", "-p", "read-only", stdout=full)
    assert ran.returncode == 125
    assert ran.stderr == "cordon: writing to stdout: No space left on device\n"


@pytest.mark.no_userns
@pytest.mark.parametrize("fd", [0, 1, 2])
def test_a_closed_descriptor_confuses_nobody(place, fd):
    ran = subprocess.run(["sh", "-c", f'exec "$0" "$@" {fd}<&-',
                          str(CORDON), "run", "-q", "-p", "read-only",
                          "--", "sh", "-c", "cat; echo out; echo err >&2"], cwd=place.ws,
                         env=place.env, stdin=subprocess.DEVNULL, capture_output=True,
                         check=False, timeout=WAIT)
    assert ran.returncode == 0
    assert ran.stdout == (b"" if fd == 1 else b"out\n")
    assert ran.stderr == (b"" if fd == 2 else b"err\n")


def test_the_command_never_gets_our_descriptors(place):
    (place.ws / "in").write_text("text\n")
    with open(place.ws / "in", "rb") as file, open(place.ws / "out", "wb") as out:
        place.shell("ls -l /proc/self/fd; cat", stdin=file, stdout=out)
    seen = (place.ws / "out").read_text()
    assert seen.endswith("text\n")
    assert "/in" not in seen and "/out" not in seen
    assert seen.count("pipe:") == 3


def test_stdin_null(place):
    ran = place.shell("cat; readlink /proc/self/fd/0", "--stdin", "null", text="not passed on\n")
    assert ran.stdout == "/dev/null\n"


def test_a_loop_over_stdin_needs_stdin_null(place):
    script = 'while read -r x; do "$0" run --stdin null -- echo "$x"; done'
    ran = subprocess.run(["sh", "-c", script, str(CORDON)],
                         input="1\n2\n3\n", cwd=place.ws, env=place.env, text=True,
                         capture_output=True, check=True, timeout=WAIT)
    assert ran.stdout == "1\n2\n3\n"


@pytest.mark.parametrize("device", ["/dev/null", "/dev/zero", "/etc/passwd", "/"])
def test_any_kind_of_stdin(place, device):
    fd = os.open(device, os.O_RDONLY)
    ran = place.shell("head -c 3 | wc -c", stdin=fd)
    os.close(fd)
    assert ran.returncode == 0 and ran.stderr == ""
    assert ran.stdout.strip() == ("3" if device in ("/dev/zero", "/etc/passwd") else "0")


# --- signals


@pytest.mark.parametrize("name", ["SIGINT", "SIGQUIT"])
def test_int_and_quit_are_the_commands_to_handle(place, name):
    trap = name.removeprefix("SIG")
    process = place.start("run", "--", "sh", "-c",
                          f"trap 'echo caught; exit 7' {trap}; echo ready; while :; do sleep 0.01; "
                          "done")
    read_until(process.stdout, b"ready")
    process.send_signal(SIGNALS[name])
    out, _ = finish(process, 7)
    assert out.endswith(b"caught\n")


def test_int_ends_a_command_that_does_not_handle_it(place):
    process = place.start("run", "--", "sh", "-c", "echo ready; exec sleep 1000")
    read_until(process.stdout, b"ready")
    process.send_signal(signal.SIGINT)
    finish(process, 128 + signal.SIGINT)


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_term_and_hup_end_the_command_and_keep_its_last_words(place, name):
    process = place.start("run", "--", "sh", "-c",
                          "trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.01; done")
    read_until(process.stdout, b"ready")
    process.send_signal(SIGNALS[name])
    out, _ = finish(process, 128 + SIGNALS[name])
    assert out.endswith(b"bye\n")


def test_kill_after(place):
    process = place.start("run", "--kill-after", "100ms", "--", "sh", "-c",
                          "trap '' TERM; echo ready; while :; do sleep 0.01; done")
    read_until(process.stdout, b"ready")
    process.terminate()
    finish(process, 128 + signal.SIGTERM)


def test_killing_cordon_kills_the_command(place):
    process = place.start("run", "--", "sh", "-c", "trap '' TERM HUP; echo ready; exec sleep 1000")
    read_until(process.stdout, b"ready")
    process.kill()
    assert process.stdout.read() == b"", "whoever still holds the pipe is alive"


# --- time


@pytest.mark.parametrize("script", ["echo out; exec sleep 1000",
                                    "trap '' TERM; echo out; while :; do sleep 0.01; done",
                                    "echo out; setsid sleep 1000 & wait"])
def test_timeout_keeps_the_output_and_exits_with_124(place, script):
    ran = place.shell(script, "--timeout", "1s", "--kill-after", "100ms")
    assert (ran.returncode, ran.stdout) == (124, "out\n")
    assert ran.stderr.startswith("cordon: time is up after ")


def test_timeout_in_json(place):
    result = place.json("run", "--json", "--timeout=1s", "--", "sh", "-c",
                        "echo out; sleep 1000", code=124)
    assert (result["end"], result["timed_out"], result["stdout"]) == ("timed-out", True, "out\n")


@pytest.mark.no_userns
def test_no_timeout_is_needed_by_a_quick_command(place):
    ran = place.shell("echo out", "-q", "-p", "read-only", "--timeout", "1h")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "out\n", "")


# --- terminals


class Terminal:
    """A terminal with a person in front of it: `cordon` gets its slave as 0, 1 and 2."""

    def __init__(self, place, *words, size=(33, 111), redirect=None):
        self.master, slave = pty.openpty()
        place.cleanup.callback(os.close, self.master)
        self.name = os.ttyname(slave)
        self.resize(*size)
        self.before = termios.tcgetattr(slave)
        streams = dict.fromkeys(("stdin", "stdout", "stderr"), slave)
        streams.update(redirect or {})
        self.process = place.start("run", *words, start_new_session=True,
                                   preexec_fn=self.take, **streams)
        self.slave = slave
        place.cleanup.callback(os.close, slave)
        self.seen = b""

    @staticmethod
    def take():
        for fd in (0, 1, 2):
            if os.isatty(fd):
                fcntl.ioctl(fd, termios.TIOCSCTTY, 0)
                return

    def resize(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def until(self, text):
        """Everything that came until the text is there."""
        while text not in self.seen:
            ready, _, _ = select.select([self.master], [], [], WAIT)
            assert ready, f"{text!r} never came: {self.seen!r}"
            self.seen += os.read(self.master, 65536)
        return self.seen

    def type(self, data):
        os.write(self.master, data)

    def end(self):
        """Waits for cordon; its status, and what was shown."""
        code = self.process.wait(timeout=WAIT)
        while select.select([self.master], [], [], 0)[0]:
            self.seen += os.read(self.master, 65536)
        return code

    def is_restored(self):
        return termios.tcgetattr(self.slave) == self.before


def test_on_a_terminal_the_command_gets_one_of_its_own(place):
    terminal = Terminal(place, "--", "sh", "-c", "test -t 0 && test -t 1 && test -t 2 && tty && "
                        "ls -l /proc/self/fd; stty size; exit 3")
    assert terminal.end() == 3
    assert terminal.name.encode() not in terminal.seen
    assert b"33 111" in terminal.seen
    assert terminal.is_restored()


def test_output_of_a_terminal_ends_whole(place):
    for _ in range(20):
        terminal = Terminal(place, "--", "seq", "-f", "line %.0f", "500")
        terminal.end()
        terminal.until(b"line 500\r\n")


def test_window_size_follows(place):
    terminal = Terminal(place, "--", "sh", "-c",
                        "trap 'stty size; exit 0' WINCH; echo ready; while :; do sleep 0.01; done")
    terminal.until(b"ready")
    terminal.resize(44, 55)
    assert terminal.end() == 0
    assert b"44 55" in terminal.seen


def test_control_c_goes_to_the_command(place):
    terminal = Terminal(place, "--", "sh", "-c",
                        "trap 'echo caught; exit 9' INT; echo ready; while :; do sleep 0.01; done")
    terminal.until(b"ready")
    terminal.type(b"\x03")
    assert terminal.end() == 9
    assert b"caught" in terminal.seen and terminal.is_restored()


def test_what_is_typed_is_read(place):
    terminal = Terminal(place, "--", "sh", "-c", "echo ready; read -r line; echo got $line; cat")
    terminal.until(b"ready")
    terminal.type(b"hello\r")
    terminal.until(b"got hello\r\n")
    terminal.type(b"\x04")
    assert terminal.end() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_the_terminal_is_restored_when_cordon_is_ended(place, number):
    terminal = Terminal(place, "--", "sh", "-c", "echo ready; exec sleep 1000")
    terminal.until(b"ready")
    assert not terminal.is_restored(), "raw while the command runs"
    terminal.process.send_signal(number)
    assert terminal.end() == 128 + number
    assert terminal.is_restored()


def test_messages_on_a_raw_terminal_end_in_carriage_returns(place):
    terminal = Terminal(place, "--sandbox", "disabled", "--", "sh", "-c", "echo out")
    assert terminal.end() == 0
    assert terminal.seen.count(b"\n") == terminal.seen.count(b"\r\n") == 2


def test_no_tty_on_a_terminal(place):
    terminal = Terminal(place, "--no-tty", "--", "sh", "-c", "test -t 1 || echo pipes")
    assert terminal.end() == 0
    terminal.until(b"pipes\r\n")
    assert terminal.is_restored()


@pytest.mark.parametrize("stream", ["stdin", "stdout", "stderr"])
def test_a_redirected_stream_stays_what_it_is(place, stream):
    """With stdin, stdout or stderr redirected by the person, there is no terminal: it would merge
    the streams, or interpret bytes."""
    with open(place.ws / "file", "w+b") as file:
        terminal = Terminal(place, "--", "sh", "-c", "test -t 1; echo tty $?; echo err >&2",
                            redirect={stream: file})
        assert terminal.end() == 0
        terminal.seen += (place.ws / "file").read_bytes()
    assert b"tty 1" in terminal.seen and b"err" in terminal.seen
    if stream == "stderr":
        assert (place.ws / "file").read_text() == "err\n"


def test_tty_without_a_terminal(place):
    ran = place.shell("test -t 0 && test -t 1 && stty size; cat", "--tty", text="typed\n")
    assert ran.returncode == 0
    assert "24 80\n" in ran.stdout
    assert ran.stdout.count("typed\n") == 2, "echoed by the terminal, and by cat"


def test_json_with_a_tty(place):
    result = place.json("run", "--json", "--tty", "--", "sh", "-c", "echo out; echo err >&2")
    assert result["tty"] is True and "stderr" not in result
    assert result["stdout"] == "out\r\nerr\r\n"
