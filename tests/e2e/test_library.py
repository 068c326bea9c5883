"""libcordon: the two examples, built against the installed header and run."""
import json
import os
import re
import socket
import subprocess

import pytest

from harness import BUILD, TOP, WAIT, Place, cpu_ticks, finish, read_until
from host import ENV, build, sanitizers

ONESHOT = BUILD / "examples/example_oneshot"
POLL_HOST = BUILD / "examples/example_poll_host"
PYTHON = "/usr/bin/python3"
APPROVE = BUILD / "examples/example_approve"


def test_only_what_is_declared_is_shown():
    symbols = subprocess.run(["nm", "-g", "--defined-only", BUILD / "src/libcordon/libcordon.a"],
                             capture_output=True, text=True, check=True).stdout
    shown = {line.split()[2] for line in symbols.splitlines() if len(line.split()) == 3}
    header = (TOP / "include/cordon.h").read_text()
    declared = set(re.findall(r"\b(cordon_\w+)\(", header)) - {"cordon_answer_fn", "cordon_done_fn"}
    assert shown == declared


def test_installed_it_is_found_by_pkg_config(place):
    """An example is built against what `meson install` gives, by nothing but pkg-config."""
    root = place.base / "root"
    subprocess.run(["meson", "install", "-C", BUILD, "--no-rebuild", "--destdir", root],
                   check=True, capture_output=True)
    pc = next(root.rglob("cordon.pc"))
    env = {**os.environ, "PKG_CONFIG_PATH": str(pc.parent), "PKG_CONFIG_SYSROOT_DIR": str(root)}
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "cordon"], env=env, text=True,
                           capture_output=True, check=True).stdout.split()
    subprocess.run(["cc", TOP / "examples/oneshot.c", *flags, *sanitizers(),
                    "-o", place.base / "built"],
                   check=True)
    ran = place.cordon("echo", "hi", program=place.base / "built", env=ENV)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "hi\n", "")


def oneshot(place, *words, **kwargs):
    return place.cordon(*words, program=ONESHOT, env=ENV, **kwargs)


def test_one_command(place):
    ran = oneshot(place, "sh", "-c", "echo out; echo err >&2; exit 3")
    assert (ran.returncode, ran.stdout, ran.stderr) == (3, "out\n", "err\n")


def test_what_was_refused_is_said(place):
    ran = oneshot(place, "touch", place.outside / "x")
    assert ran.returncode == 1 and not (place.outside / "x").exists()
    assert f"{place.outside}/x was refused" in ran.stderr


def test_a_program_that_is_not_there(place):
    ran = oneshot(place, "no-such-program")
    assert ran.returncode == 127 and "no-such-program" in ran.stderr


def test_its_own_configuration_is_guarded(place):
    config = place.config(text := 'default_permissions = ":workspace"\n')
    ran = oneshot(place, "sh", "-c", f"cd {place.home}; echo > {config}")
    assert ran.returncode != 0 and "refused" in ran.stderr and config.read_text() == text


def test_who_names_no_configuration_gets_the_users(place):
    secret = place.ws / "secret"
    secret.write_text("key\n")
    assert oneshot(place, "cat", secret).stdout == "key\n"
    place.config(f'default_permissions = "mine"\n[permissions.mine]\nextends = ":workspace"\n'
                 f'[permissions.mine.filesystem]\n"{secret}" = "deny"\n')
    ran = oneshot(place, "cat", secret)
    assert ran.returncode != 0 and ran.stdout == ""
    place.config("no_such_key = 1\n")
    ran = oneshot(place, "true")
    assert ran.returncode != 0 and "no_such_key" in ran.stderr


def test_a_host_with_a_poll_loop(place):
    host = place.start(program=POLL_HOST, env=ENV)
    first = read_until(host.stdout, b"ready\n").decode()
    assert "Process running with session ID" in first
    host.stdin.write(b"X=6\n")
    host.stdin.flush()
    read_until(host.stdout, b"Output:\n")
    host.stdin.write(b"echo $((X * 7))\n")
    host.stdin.flush()
    read_until(host.stdout, b"Output:\n42\n")
    out, err = finish(host, 0)
    assert b"Process exited with code 0" in out and err == b""


def test_an_idle_host_sleeps(place):
    """With a session that does nothing, the host's own poll() is all that happens."""
    host = place.start(program=POLL_HOST, env=ENV)
    read_until(host.stdout, b"ready\n")
    before = cpu_ticks(host.pid)
    with pytest.raises(subprocess.TimeoutExpired):
        host.wait(timeout=1)
    assert cpu_ticks(host.pid) - before <= os.sysconf("SC_CLK_TCK") // 20
    finish(host, 0)


def test_what_comes_to_match_a_pattern_is_denied_to_the_next_command(place):
    (place.ws / "a").mkdir()
    host = place.start(program=build(place, "deny"), env=ENV)
    for name in ("", "one", "two"):
        if name:
            (place.ws / f"a/{name}.env").write_text(f"secret-{name}\n")
        host.stdin.write(b"go\n")
        host.stdin.flush()
        said = read_until(host.stdout, b";\n")
        assert said.startswith(b"exit code 1:") and b"secret" not in said
    finish(host, 0)


def test_nothing_is_put_into_the_workspace_of_an_idle_host(place):
    host = place.start(program=build(place, "idle"), env=ENV)
    for _ in range(2):
        host.stdin.write(b"go\n")
        host.stdin.flush()
        read_until(host.stdout, b"ran\n")
        assert not os.listdir(place.ws)
    finish(host, 0)


# --- the network

@pytest.fixture(scope="module")
def network_host():
    place = Place()
    yield build(place, "network")
    place.cleanup.close()


@pytest.mark.parametrize("words, command, says", [
    (["allow", "a.test", "deny", "b.a.test"], "echo $CORDON_NETWORK_PROXY_ACTIVE", "1\ndenial none"),
    (["allow", "a.test"], "getent hosts b.test", "denial connect of b.test was refused. Allow it with --allow-host b.test."),
    (["publish", "0:3000"], "exit 0", "published 127.0.0.1:"),
    (["credential", "MINE=a.test"], 'test ${#MINE} = 16 -a "$MINE" != 0123456789abcdef && echo withheld', "withheld"),
    (["port", "PORT"], "bash -c 'read x </dev/tcp/localhost/PORT; echo $x'", "from outside"),
    (["port", "70000"], "exit", "error: policy.host_ports: 70000 is no port"),
    (["publish", "80"], "exit", "error: policy.publish: "),
    (["credential", "MINE"], "exit", "error: policy.credentials: "),
    (["credential", "NOT_THERE=a.test"], "exit", "error: policy.credentials NOT_THERE: there is no such variable"),
    (["local", "1"], "exit", "error: policy.allow_local_binding is about the hosts of a network that is proxied"),
    (["network", "1", "allow", "a.test"], "exit", "error: policy.allow_hosts a.test contradicts policy.network restricted"),
    (["network", "2", "deny", "a.test"], "exit", "error: policy.deny_hosts a.test cannot be kept"),
    (["allow", "127.1"], "exit", "error: policy.allow_hosts 127.1: "),
])
def test_what_a_policy_says_of_the_network(place, network_host, words, command, says):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        host = place.start(*(word.replace("PORT", port) for word in [*words, command]), program=network_host,
                           env={**ENV, "MINE": "0123456789abcdef"})
        if "PORT" in words:
            server.settimeout(WAIT)
            client, _ = server.accept()
            with client:
                client.sendall(b"from outside\n")
        out, err = host.communicate(timeout=WAIT)
    assert says in out.decode(), (out, err)


# --- a host that asks


RULES = """prefix_rule(["touch"], decision="prompt", justification="look first")
prefix_rule(["git", "push"], decision="forbidden")
"""


class Asking:
    """The example, one command or answer after the other."""

    def __init__(self, place, *config):
        place.config(RULES, "home/policy/rules/a.rules")
        self.host = place.start(place.home / "policy", *config, program=APPROVE, env=ENV)

    def say(self, line, until="done\n"):
        self.host.stdin.write(f"{line}\n".encode())
        self.host.stdin.flush()
        return read_until(self.host.stdout, until.encode()).decode()


@pytest.fixture
def asking(place):
    return Asking(place)


def test_a_host_is_asked_and_says_yes(place, asking):
    asked = asking.say("touch x", until="covers: this command in its sandbox (profile "
                                        "workspace-write)\n")
    assert asked.startswith("asked: touch x: the rule `touch`") and "look first" in asked
    assert not (place.ws / "x").exists()
    assert asking.say("maybe", until="that is no answer here\n")
    assert asking.say("yes") == "ran in the sandbox: exit code 0\ndone\n"
    assert (place.ws / "x").exists()
    assert "asked" in asking.say("touch x", until="covers:")  # once is once


def test_a_host_remembers_a_yes_for_the_session(place, asking):
    asking.say("touch x", until="covers:")
    asking.say("session")
    assert asking.say("touch x") == "ran in the sandbox: exit code 0\ndone\n"
    assert "asked" in asking.say("touch y", until="covers:")


def test_a_host_says_no(place, asking):
    asking.say("touch x", until="covers:")
    assert "not run: it had to be asked about, and the answer was no (by host)" in asking.say("no")
    assert not (place.ws / "x").exists()
    assert "forbids it" in asking.say("git push")
    out, err = finish(asking.host, 0)
    assert err == b""


def test_a_yes_for_good_is_a_rule(place):
    asking = Asking(place, place.config('approval_policy = "untrusted"\n'))
    assert "not known to be harmless" in asking.say("make x; true", until="covers:")
    asking.say("rule")
    assert (place.home / "policy/rules/default.rules").read_text() == \
        'prefix_rule(pattern=["make", "x"], decision="allow", sandbox="keep")\n'
    assert "asked" not in asking.say("make x")


def test_a_broken_file_is_told_to_the_host(place, asking):
    (place.home / "policy/rules/a.rules").write_text("prefix_rule(\n")
    asked = asking.say("make x", until="covers:")
    assert "broken" in asked and "a.rules:2:1" in asked


def test_a_host_offers_the_smallest_widening(place, asking):
    file = place.outside / "x"
    file.write_text("old\n")
    asked = asking.say(f"echo new > {file}", until="covers:")
    assert f"asked: echo new > {file}: the sandbox refused writing {file}" in asked
    done = asking.say("yes")
    assert f"writing {file}" in done  # in words what it covers, and what it ran with
    assert "ran in the sandbox: exit code" in done and "ran widened, with writing" in done
    assert file.read_text() == "new\n"
    asking.say(f"echo newer > {file}", until="covers:")
    assert "widened" not in asking.say("no") and file.read_text() == "new\n"


def test_the_rules_of_a_host_are_guarded(place, asking):
    rules = place.home / "policy/rules/a.rules"
    asking.say(f"cd {place.home} && echo > {rules} || echo refused")
    assert rules.read_text() == RULES


def test_a_host_that_goes_away_has_said_no(place, asking):
    asking.say("touch x", until="covers:")
    out, err = finish(asking.host, 0)
    assert b"not run" in out and not (place.ws / "x").exists()


def test_questions_and_what_may_be_called_from_them(place):
    """Answers and cancels from inside of a callback, time-outs, granular: hosts/executor.c."""
    place.config('prefix_rule(["echo"], decision="prompt")\n', "home/policy/rules/a.rules")
    more = json.dumps({"file_system": {"write": [str(place.outside)]}})
    ran = place.cordon(place.home / "policy", more, program=build(place, "executor"), env=ENV)
    assert ran.stdout.splitlines() == [
        "answer: asked q1, done: ran in 0, output hello",
        "cancel: asked q2, over q2, done: rejected, it was cancelled before it was approved",
        "time: asked q3, over q3, done: rejected, it had to be asked about, and nobody "
        "answered in time",
        "off: done: forbidden",
        'wrong: there is no open question "q3"',
        "widened: asked q4, done: ran in 1, output hello",
        "close: asked q1, ",
        'wrong: the question "q1" does not offer "approved_without_sandbox"',
    ], ran
    assert ran.returncode == 0 and ran.stderr == ""


def test_a_policy_has_what_run_has(place):
    """Protected names, sockets and judged programs; and two that are wrong."""
    place.config('prefix_rule(["mkdir"], decision="forbidden")\n', "home/.config/cordon/rules/default.rules")
    (place.ws / "script").write_text("mkdir new || exit 5\n")
    host = place.start(place.base / "sock", program=build(place, "options"), env=ENV)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(place.base / "sock"))
        listener.listen()
        connect = f'import socket; socket.socket(socket.AF_UNIX).connect("{place.base}/sock")'
        host.stdin.write(f"touch own\ntouch .vscode\nsh ./script\n{PYTHON} -c '{connect}'\n".encode())
        out, _ = finish(host, 0)
    assert out.decode().splitlines() == ["0 1", "0 0", "0 5", "0 0"]
    wrong = place.cordon("x", "no such set", program=build(place, "options"), env=ENV)
    assert wrong.returncode == 1 and "policy.protect" in wrong.stderr
