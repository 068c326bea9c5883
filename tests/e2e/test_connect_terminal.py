"""`cordon --connect URL attach` and `run --tty`, with a person at a terminal."""
import signal

import pytest

from harness import WAIT, read_until
from person import Person
from remote import Terminal
from served import Server, uri
from ws_client import RpcError

DETACH = b"\x1c"


@pytest.fixture(params=["ws", "unix"])
def server(place, request):
    listen = "ws://127.0.0.1:0" if request.param == "ws" else f"unix:{place.base}/serve.sock"
    with Server(place, listen=listen) as server:
        yield server
        server.stop(signal.SIGKILL)  # shells on a terminal ignore SIGTERM


@pytest.fixture
def agent(server):
    with server.client() as client:
        yield client


def shell_on_terminal(agent, name="agent"):
    """A shell that an agent started; it says when it is ready."""
    agent.start(name, "stty -echo; echo ready; exec sh", tty=True, env={"PS1": "", "TERM": "vt100"})
    agent.output_until(name, b"ready")


def attach(place, server, *words, **kwargs):
    return Terminal(place, "--connect", server.url, "attach", *words, **kwargs)


def test_attach_is_a_terminal_to_a_live_process(place, server, agent):
    shell_on_terminal(agent)
    terminal = attach(place, server, "agent")
    terminal.until(b"attached to ")
    terminal.until(b"ready")
    terminal.type(b"echo $((6 * 7)) there\n")
    terminal.until(b"42 there")
    assert terminal.is_raw()
    terminal.type(b"stty size\n")
    terminal.until(b"33 111")
    terminal.resize(20, 60)
    terminal.process.send_signal(signal.SIGWINCH)  # as the kernel does; it may have come already
    terminal.type(b"until [ \"$(stty size)\" = '20 60' ]; do :; done; echo re'sized'\n")
    terminal.until(b"resized")
    terminal.type(DETACH)
    assert terminal.end() == 0 and b"it goes on as before" in terminal.seen
    assert terminal.is_restored()
    agent.write("agent", b"echo still 'here'\n", "1")
    agent.output_until("agent", b"still here")


def test_attach_to_what_a_model_runs(place, server, agent):
    number = agent.call("session/exec", {
        "cmd": "stty -echo; echo ready; exec cat", "shell": "/bin/sh", "login": False, "tty": True,
        "cwd": uri(place.ws), "until": {"text": "ready"}})["sessionId"]
    write = {"sessionId": number, "chars": "from the model\n", "until": {"text": "model"}}
    onlooker = attach(place, server, "--read-only", f"session:{number}")
    onlooker.until(b"ready")
    assert agent.call("session/write", write)["reason"] == "met"
    onlooker.until(b"from the model")
    person = attach(place, server, f"{agent.session[:8]}/session:{number}")
    person.until(b"from the model")
    waiting = agent.request("session/wait", {"sessionId": number, "until": {"text": "person"}})
    person.type(b"from a person\n")
    assert "from a person" in agent.answer(waiting)["result"]["text"]
    for terminal in (onlooker, person):
        terminal.until(b"from a person")
    with pytest.raises(RpcError, match="another client writes"):
        agent.call("session/write", write)
    person.type(DETACH)
    assert person.end() == 0
    assert agent.call("session/write", write)["reason"] == "met"
    onlooker.until(b"from the model")
    onlooker.type(DETACH)
    assert onlooker.end() == 0


def test_attach_ends_with_the_process(place, server, agent):
    shell_on_terminal(agent)
    terminal = attach(place, server, "agent")
    terminal.until(b"ready")
    terminal.type(b"exit 9\n")
    assert terminal.end() == 9 and terminal.is_restored()


def test_attach_to_what_has_ended_shows_it(place, server, agent):
    agent.start("agent", "echo over; exit 4", tty=True)
    agent.follow("agent")
    terminal = attach(place, server, "agent")
    terminal.until(b"over")
    assert terminal.end() == 4 and terminal.is_restored()


def test_attach_replays_from_any_byte(place, server, agent):
    agent.start("agent", "stty raw; printf 0123456789; read x", tty=True)
    agent.output_until("agent", b"9")
    for words, wanted in (([], b"0123456789"), (["--from", "4"], b"456789"),
                          (["--from=-2"], b"89"), (["--from", "end"], b"")):
        terminal = attach(place, server, *words, "agent")
        terminal.until(b"leaves it\r\n")
        if wanted:
            terminal.until(wanted[-1:])
            terminal.seen = b""
        terminal.type(DETACH)
        terminal.end()
        assert b"0123456789"[:1] not in terminal.seen
        assert terminal.process.returncode == 0
    again = attach(place, server, "--from", "3", "agent")
    again.until(b"leaves it\r\n")
    assert again.until(b"9") == b"345678"


def test_one_writes_and_others_look_on(place, server, agent):
    shell_on_terminal(agent)
    writer = attach(place, server, "agent")
    writer.until(b"ready")
    second = attach(place, server, "agent")
    assert second.end() == 125 and b"--read-only" in second.seen and second.is_restored()
    watcher = attach(place, server, "--read-only", "agent", size=(5, 5))
    watcher.until(b"read-only")
    watcher.type(b"echo not'hing'\n")
    writer.type(b"echo $((1 + 1)) 'written'; stty size\n")
    watcher.until(b"2 written")
    assert watcher.until(b"33 111").find(b"nothing") < 0
    watcher.type(b"\x03")  # Ctrl-C leaves, and interrupts nothing
    assert watcher.end() == 0 and watcher.is_restored()
    writer.type(b"echo 'go'es on\n")
    writer.until(b"goes on")


def test_another_detach_key(place, server, agent):
    shell_on_terminal(agent)
    terminal = attach(place, server, "--detach-key", "ctrl-p,ctrl-q", "agent")
    terminal.until(b"ctrl-p,ctrl-q leaves it")
    terminal.until(b"ready")
    terminal.type(b"echo a\x10b | od -c\n")  # Ctrl-P alone goes through
    terminal.until(b"020")
    terminal.type(b"\x10\x11")
    assert terminal.end() == 0 and terminal.is_restored()


def test_one_can_leave_a_server_that_has_stopped(place, server, agent):
    shell_on_terminal(agent)
    terminal = attach(place, server, "agent")
    terminal.until(b"ready")
    server.process.send_signal(signal.SIGSTOP)
    terminal.type(b"nobody answers this")
    terminal.type(DETACH)
    assert terminal.end() == 0 and terminal.is_restored()
    server.process.send_signal(signal.SIGCONT)


def test_keys_reach_the_process_as_they_are(place, server, agent):
    shell_on_terminal(agent)
    terminal = attach(place, server, "agent")
    terminal.until(b"ready")
    terminal.type(b"trap 'echo trap''ped' INT; echo wai'ting'; read x\n")
    terminal.until(b"waiting")
    terminal.type(b"\x03")
    terminal.until(b"trapped")


def test_a_signal_leaves_and_restores(place, server, agent):
    shell_on_terminal(agent)
    terminal = attach(place, server, "agent")
    terminal.until(b"ready")
    terminal.process.terminate()
    assert terminal.end() == 0 and terminal.is_restored()


@pytest.mark.parametrize("command", ["attach", "run"])
def test_a_server_that_dies_leaves_the_terminal_as_it_was(place, server, agent, command):
    if command == "attach":
        shell_on_terminal(agent)
        terminal = attach(place, server, "agent")
    else:
        terminal = Terminal(place, "--connect", server.url, "run", "--tty", "--", "sh", "-c",
                            "echo ready; exec sleep 1000")
    terminal.until(b"ready")
    server.stop(signal.SIGKILL)
    assert terminal.end() == 125
    assert b"is gone" in terminal.seen and terminal.is_restored()


def test_attach_without_a_terminal_of_its_own(place, server, agent):
    agent.start("pipe", "echo ready; while read x; do echo got $x; done", pipeStdin=True)
    process = place.start("--connect", server.url, "attach", "pipe")
    read_until(process.stdout, b"ready\n")
    process.stdin.write(b"line\n")
    process.stdin.flush()
    read_until(process.stdout, b"got line\n")
    process.stdin.close()  # ends nothing
    agent.call("process/terminate", {"processId": "pipe"})
    assert process.wait(WAIT) == 137


def test_attach_to_what_takes_no_input_says_so(place, server, agent):
    agent.start("deaf", "echo ready; exec sleep 1000")
    process = place.start("--connect", server.url, "attach", "deaf")
    read_until(process.stdout, b"ready\n")
    process.stdin.write(b"line\n")
    process.stdin.flush()
    read_until(process.stderr, b"the command takes no input\n")
    process.send_signal(signal.SIGQUIT)
    assert process.wait(WAIT) == 0


def test_attach_shows_much_output_whole(place, server, agent):
    agent.start("much", "read x; seq 100000", pipeStdin=True)
    process = place.start("--connect", server.url, "attach", "--from", "start", "much")
    process.stdin.write(b"go\n")
    process.stdin.flush()
    out, _ = process.communicate(timeout=WAIT)
    assert process.returncode == 0
    assert out == b"".join(b"%d\n" % n for n in range(1, 100001))


def test_run_on_a_terminal(place, server):
    terminal = Terminal(place, "--connect", server.url, "run", "--tty", "--", "sh", "-c",
                        "tty; stty size; echo $TERM; read x; echo got $x; exit 3")
    terminal.until(b"33 111")
    terminal.until(b"vt100")
    assert terminal.is_raw()
    terminal.type(b"this\r")
    terminal.until(b"got this")
    assert terminal.end() == 3 and terminal.is_restored()


def test_run_on_a_terminal_passes_interrupt_and_size(place, server):
    terminal = Terminal(place, "--connect", server.url, "run", "--tty", "--", "sh", "-c",
                        "trap 'stty size; exit 5' WINCH; trap 'echo int' INT; echo ready; "
                        "while :; do sleep 1000 & wait; done")
    terminal.until(b"ready")
    terminal.type(b"\x03")
    terminal.until(b"int")
    terminal.resize(7, 77)
    terminal.until(b"7 77")
    assert terminal.end() == 5 and terminal.is_restored()


@pytest.mark.parametrize("key, exists", [("y", True), ("n", False)])
def test_what_the_sandbox_refuses_is_asked_here(place, server, key, exists):
    person = Person(place)
    process = place.start("--connect", server.url, "run", "--watch", "ask", "--", "sh", "-c",
                          f"echo before; touch {place.outside}/new; echo behind; cat",
                          preexec_fn=person.take_terminal)
    person.until("allow this, while the command waits?")
    person.until("\n> ")
    person.say(f"{key}\n")
    stdout, stderr = process.communicate(b"input\n", timeout=WAIT)
    assert stdout == b"before\nbehind\ninput\n" and (b"Read-only" in stderr) != exists
    assert (place.outside / "new").exists() == exists and person.is_restored()


def test_without_a_terminal_it_is_a_no(place, server):
    ran = place.cordon("--connect", server.url, "run", "--watch", "ask", "--", "sh", "-c",
                       f"touch {place.outside}/new || echo refused", start_new_session=True)
    assert ran.stdout == "refused\n" and not (place.outside / "new").exists()
