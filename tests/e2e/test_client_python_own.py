"""clients/python with a server of its own: what it does when nothing is said, its time-outs, questions, sessions and
errors, without asyncio, and its examples."""
import asyncio
import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading

import pytest

from harness import BUILD, TOP, WAIT
from file_server import Server
from test_client_python import CLIENT, Proxy, run

import cordon
from cordon import Sandbox, sync
from cordon import client as client_module

CLI = BUILD / "src/cli"
EXAMPLES = CLIENT / "examples"


@pytest.fixture
def own(place, monkeypatch):
    """Where spawn() finds a program, and its server no home of somebody else."""
    for name, value in {**place.env, "PATH": f"{CLI}:{place.PATH}"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(place.ws)
    return place


# --- what is said by nothing ---

@run
async def test_safe_when_nothing_is_said(own):
    result = await cordon.run(f"echo in >f; echo out >{own.outside}/f; getent hosts example.org; pwd")
    assert (own.ws / "f").exists() and not (own.outside / "f").exists()
    assert result.text == f"{own.ws}\n" and result.exit_code == 0
    assert {(one["operation"], one["path"] or "net") for one in result.denials} == {
        ("write", f"{own.outside}/f"), ("connect", "net")}
    async with cordon.spawn() as client:
        with pytest.raises(cordon.RpcError, match="Read-only"):
            await client.files.write(own.outside / "f", b"")
        await client.files.write("mine", "text")
        assert await client.files.read(own.ws / "mine") == b"text"
        with pytest.raises(cordon.RpcError, match="Read-only"):
            await client.files.inside("read-only").remove("mine")
        with pytest.raises(ValueError, match="empty"):
            await client.files.remove("")
        answer = await client.sessions.exec(f"echo out >{own.outside}/f", login=False)
        assert answer.exit_code != 0 and answer.denials[0]["path"] == f"{own.outside}/f"
        patch = f"*** Begin Patch\n*** Add File: {own.outside}/f\n+x\n*** End Patch\n"
        assert "outside" in (await client.patch(patch)).error
    assert not (own.outside / "f").exists()


@run
async def test_a_client_has_a_sandbox_of_its_own(own):
    async with cordon.spawn(sandbox="read-only") as client:
        assert (await client.run(["touch", "f"])).exit_code == 1
        assert (await client.run(["touch", "f"], sandbox=Sandbox(writable=["."]))).exit_code == 0
        (own.ws / "sub").mkdir()
        assert (await client.run("pwd", "sub")).text == f"{own.ws}/sub\n"
        assert (await client.run(["touch", own.outside / "f"], sandbox="none")).check()
    assert (own.outside / "f").exists()


@run
async def test_what_is_no_option_is_not_believed_to_count(own):
    """The server minds no field that it does not know: a command would have run with less of a sandbox than was meant."""
    with pytest.raises(TypeError, match="'profile'.*sandbox="):
        await cordon.run(["touch", "f"], profile="read-only")
    async with cordon.spawn() as client:
        with pytest.raises(TypeError, match="'timeout_ms'"):
            await client.start(["touch", "f"], timeout_ms=5)
        assert (await client.run("ulimit -n", maxFiles=99)).text == "99\n"
    assert not (own.ws / "f").exists()
    assert client_module.FURTHER < json.loads((TOP / "schema/process/start.json").read_text())["params"].keys()


def test_lists_of_a_sandbox_are_lists():
    with pytest.raises(TypeError, match="allow_hosts"):
        Sandbox(allow_hosts="example.org").to_json()
    assert Sandbox(protect=[]).to_json() == {"profile": None, "protect": []}
    assert Sandbox("read-only", presets=["node"], tmp="host").to_json() == {
        "profile": "read-only", "with": ["node"], "tmp": "host"}


@run
async def test_variables(own, monkeypatch):
    monkeypatch.setenv("ANY_TOKEN", "secret")
    async with cordon.spawn() as client:
        result = await client.run("echo $ANY_TOKEN-$HOME-$X", extra_env={"X": "x"})
        assert result.text == f"-{own.home}-x\n"
        result = await client.run(["/usr/bin/env"], env={"A": "b"})
        assert "A=b" in result.text and str(own.home) not in result.text


# --- time-outs, cancellation, ends ---

@run
async def test_time_is_over(own):
    async with cordon.spawn() as client:
        with pytest.raises(cordon.TimedOut, match="0.2 s") as caught:
            await client.run("trap 'echo bye; exit 3' TERM; echo begun; while :; do sleep 60 & wait; done", timeout=0.2)
        assert isinstance(caught.value, TimeoutError)
        # a busy machine may take longer to begin
        assert caught.value.result.text in ("begun\nbye\n", "") and caught.value.result.exit_code in (3, 143, 137)
        assert (await client.call("process/list"))["processes"][-1]["exited"]
        with pytest.raises(cordon.TimedOut):
            async with client.start(["sleep", "600"]) as process:
                await client.call("process/wait", {"processId": process.id}, timeout=0.05)


async def ended(client):
    """When all that it started is."""
    for process in (await client.call("process/list"))["processes"]:
        await client.call("process/wait", {"processId": process["processId"], "until": "closed"})


@run
async def test_what_is_cancelled_is_ended(own):
    async with cordon.spawn() as client:
        async with client.start(["mkfifo", "f", "g"]) as process:
            await process.wait()
        call = asyncio.create_task(client.run("echo >f; exec sleep 600"))
        await asyncio.to_thread((own.ws / "f").read_text)  # it has begun
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await ended(client)
        with pytest.raises(ZeroDivisionError):
            async with client.start(["sleep", "600"]) as process:
                raise ZeroDivisionError
        await ended(client)
        assert (await process.wait()).signal == "SIGKILL"
        with pytest.raises(TypeError):
            await client.run("sleep 600", input=7)
        await ended(client)


@run
async def test_much_output_is_cut(own):
    async with cordon.spawn() as client:
        result = await client.run("seq 300000; seq 3 >&2", max_output=10)
        assert result.stdout == b"1\n2\n3\n4\n5\n" and result.stderr == b"1\n2\n3\n"
        assert result.lost == len("".join(f"{i}\n" for i in range(1, 300001))) - 10


@run
async def test_output_that_nobody_reads(own, monkeypatch):
    """Does not fill the memory of the program: what is too much for it is told as a gap."""
    monkeypatch.setattr("cordon.process.UNREAD_MAX", 100000)
    async with cordon.spawn() as client:
        async with client.start("seq 300000") as process:
            await process.wait()
            await client.call("process/wait", {"processId": process.id, "until": "closed"})
            events = [event async for event in process]
        kept = sum(len(event.data) for event in events if isinstance(event, cordon.Output))
        gaps = sum(event.bytes for event in events if isinstance(event, cordon.Gap))
        assert kept <= 100000 and kept + gaps == 1988895 and isinstance(events[-1], cordon.Closed)


@run
async def test_lines(own):
    async with cordon.spawn() as client:
        async with client.start("printf 'a\\303'; printf '\\244\\r\\n\\nb\\377'; echo err >&2", stdin=True) as process:
            assert sorted([line async for line in process.lines()]) == ["", "aä", "b\ufffd", "err"]
        async with client.start("echo out; echo err >&2") as process:
            assert [data async for data in process.output("stderr")] == [b"err\n"]
        async with client.start("printf 'ready\\none\\ntwo'") as process:
            await process.wait()
            async for line in process.lines("stdout"):
                break
            assert line == "ready" and [line async for line in process.lines()] == ["one", "two"]
        async with client.start("head -c 3000000 /dev/zero; echo; echo end") as process:
            *pieces, last = [line async for line in process.lines()]
            assert len(pieces) in (2, 3) and "".join(pieces) == "\0" * 3000000 and last == "end"


@run
async def test_input_for_who_wants_none(own):
    async with cordon.spawn() as client:
        for _ in range(5):
            assert (await client.run("true", input=bytes(1 << 20))).exit_code == 0


# --- errors ---

@run
async def test_errors_have_classes_and_remedies(own):
    rules = own.home / ".config/cordon/rules"
    rules.mkdir(parents=True)
    (rules / "my.rules").write_text('prefix_rule(pattern=["mkdir"], decision="forbidden", justification="use install -d")\n')
    async with cordon.spawn() as client:
        with pytest.raises(cordon.CommandFailed) as failed:
            await client.run(["touch", own.outside / "f"], check=True)
        assert failed.value.remedy == failed.value.denials[0]["remedy"] and failed.value.remedy in str(failed.value)
        assert "ended with 1 (touch" in str(failed.value)
        with pytest.raises(cordon.CommandFailed, match=r"\(\?\]0;gotcha\?\)$"):
            await client.run("printf '\\033]0;gotcha\\a' >&2; exit 1", check=True)
        with pytest.raises(cordon.CommandFailed, match="was ended by SIGKILL"):
            (await client.run("kill -9 $$")).check()
        with pytest.raises(cordon.Forbidden, match="use install -d") as forbidden:
            await client.run(["mkdir", "d"])
        assert (forbidden.value.code, forbidden.value.reason) == (-32600, "forbidden")
        with pytest.raises(cordon.NotFound, match="^/no/such/file: No such file"):
            await client.files.read("/no/such/file")
        with pytest.raises(cordon.SystemRefused):
            await client.run(["true"], sandbox="no-such-profile")
        with pytest.raises(cordon.SystemRefused, match="starting no-such: No such file"):
            await client.run(["no-such"])
        with pytest.raises(cordon.SystemRefused, match="starting true in no-such: No such file"):
            await client.run(["true"], "no-such")
        with pytest.raises(cordon.InvalidParams) as invalid:
            await client.call("session/exec", {"cmd": 3})
        assert invalid.value.data == {"path": "$.cmd"}
        with pytest.raises(cordon.UnknownMethod):
            await client.call("no/such")
        with pytest.raises(cordon.InvalidRequest) as unknown:
            await client.sessions.write(99)
        assert unknown.value.text.startswith("write_stdin failed")
        async with client.start(["sleep", "600"], stdin=True) as process:
            await process.write(bytes(2 << 20))
            with pytest.raises(cordon.LimitReached, match="read its output") as full:
                await process.write(bytes(2 << 20))
            assert full.value.reason == "input-full"


@run
async def test_no_program(own, monkeypatch):
    """One that lies where a command may have put it is none."""
    (own.ws / "cordon").symlink_to("/bin/true")
    for path in ("", ".", f"bin:{own.home}", "::."):
        monkeypatch.setenv("PATH", path)
        with pytest.raises(cordon.ProgramNotFound, match="install Cordon"):
            await cordon.spawn()
    with pytest.raises(cordon.ProgramNotFound, match="/no/such: No such file"):
        await cordon.spawn(["/no/such", "serve"])


@pytest.mark.parametrize("argv, said", [
    (["false"], "ended with status 1"), (["sh", "-c", "echo it is broken >&2; exit 3"], "status 3, and said: it is broken$"),
    (["sh", "-c", "echo hello; exec cat >/dev/null"], "does not speak the protocol"), (["sh", "-c", "kill -9 $$"], "by signal 9"),
    (["sh", "-c", r"printf '\033]0;gotcha\a' >&2"], r"said: \?\]0;gotcha\?$"),
], ids=["silent", "says", "speaks-otherwise", "signal", "escapes"])
@run
async def test_a_server_that_cannot(own, argv, said):
    with pytest.raises(cordon.Disconnected, match=said):
        await cordon.spawn(argv)


@run
async def test_a_server_that_dies(own):
    async with cordon.spawn() as client:
        server = client._transport._server._process
        async with client.start(["sleep", "600"], sandbox="none") as process:
            server.kill()
            with pytest.raises(cordon.ServerEnded, match="signal 9") as caught:
                await process.wait()
            assert caught.value.status == -9
        with pytest.raises(cordon.ServerEnded, match="signal 9"):
            await client.run("true")


@run
async def test_who_lets_nobody_in_again(place):
    """A connection that is lost, and then refused: calls and readers have an end."""
    class Refusing(Proxy):
        async def serve(self, reader, writer):
            if not self.is_closed:
                await super().serve(reader, writer)
            else:
                writer.write(b"HTTP/1.1 401 Unauthorized\r\n\r\n")
                writer.close()

    proxy = Refusing(Server(place).url)
    async with cordon.connect(await proxy.open(), token="", reconnect_for=0.2) as client:
        async with client.start(["sleep", "600"]) as process:
            proxy.cut(stay_away=True)
            with pytest.raises(cordon.Disconnected, match="the server refuses us"):
                await process.wait()
        with pytest.raises(cordon.Disconnected, match="the server refuses us"):
            await client.run("true")


@run
async def test_an_answer_is_for_its_own_connection(place):
    """Where requests have the same numbers again."""
    connections, answers = [], []
    asked, told = {"one": asyncio.Event(), "two": asyncio.Event()}, asyncio.Event()

    async def serve(reader, writer):
        question = ["one", "two"][len(connections)]
        connections.append(writer)
        async for line in reader:
            message = json.loads(line)
            if message.get("method") == "initialize":
                request = {"id": 1, "method": "approval/request", "params": {"approvalId": question, "question": question}}
                for one in ({"id": message["id"], "result": {"sessionId": "s"}}, request):
                    writer.write(json.dumps(one).encode() + b"\n")
            elif "method" not in message:
                answers.append((question, message["result"]["decision"]))
                told.set()

    async def ask(question):
        asked[question].set()
        while not asked["two"].is_set():
            with contextlib.suppress(asyncio.CancelledError):  # it does not let itself be stopped
                await asked["two"].wait()
        for _ in range(10 if question == "two" else 0):
            await asyncio.sleep(0)
        return question == "one"

    async with await asyncio.start_unix_server(serve, str(place.base / "s")):
        async with cordon.connect(f"unix:{place.base}/s", on_question=ask):
            await asked["one"].wait()
            connections[0].close()
            await told.wait()
    assert answers == [("two", "denied")]


@run
async def test_who_does_not_answer(place):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"ws://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(cordon.TimedOut):
            await cordon.connect(url, token="", timeout=0.1)
    with pytest.raises(cordon.TimedOut):
        await cordon.spawn(["sleep", "600"], timeout=0.1)


# --- questions ---

@pytest.mark.parametrize("kind", ["plain", "coroutine", "object"])
@run
async def test_a_callback_answers(own, kind):
    asked = []

    def plain(question):
        asked.append((question, threading.current_thread() is threading.main_thread()))
        return own.ws.name in question["covers"]

    async def coroutine(question):
        return {"decision": "approved" if plain(question) else "denied", "reason": "as it is"}

    class Asker:
        async def __call__(self, question):
            return "approved" if plain(question) else "denied"

    callback = {"plain": plain, "coroutine": coroutine, "object": Asker()}[kind]
    async with cordon.spawn(sandbox="read-only", on_question=callback) as client:
        result = await client.run(f"touch f; touch {own.outside}/f")
    assert (own.ws / "f").exists() and not (own.outside / "f").exists() and result.exit_code == 1
    assert [question["kind"] for question, _ in asked] == ["held", "held"]
    assert {is_main for _, is_main in asked} == {kind != "plain"}


@run
async def test_a_callback_that_fails_is_a_no(own):
    seen = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: seen.append(context["exception"]))
    for answer in (lambda _: 1 / 0, lambda _: "of-course", lambda _: None, lambda question: re.search("^", question["covers"])):
        async with cordon.spawn(sandbox="read-only", on_question=answer) as client:
            assert (await client.run(["touch", "f"])).exit_code == 1
            with pytest.raises(cordon.InvalidRequest):  # the sandbox's own word counts
                await client.timeline((await client.start("touch f", sandbox=Sandbox("read-only", watch="off"))).id).__anext__()
    assert not (own.ws / "f").exists() and isinstance(seen[0], ZeroDivisionError)
    assert "not by None" in str(seen) and "not by <re.Match" in str(seen)


@run
async def test_a_question_that_is_withdrawn(own):
    begun, cancelled = asyncio.Event(), asyncio.Event()

    async def ask(_):
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    async with cordon.spawn(sandbox="read-only", on_question=ask) as client:
        async with client.start(["touch", "f"]):
            await begun.wait()
        await cancelled.wait()


# --- sessions ---

@run
async def test_a_session(own):
    async with cordon.spawn() as client:
        async with client.sessions.start("echo hi; read x; echo got $x; read y", login=False, shell="/bin/sh",
                                         until="hi") as session:
            assert session.is_running and (await session.screen()).lines[0] == "hi"
            assert "got you" in (await session.write("you\n", until="got you")).text
            assert len(await client.sessions.list()) == 1
        assert not session.is_running and await client.sessions.list() == []
        assert (await session.wait()) is session.answer is await session.terminate()
        with pytest.raises(cordon.InvalidRequest, match="has ended"):
            await session.write("x")
        script = "for i in 1 2 3; do echo $i; sleep 0.1; done; exit 5"
        async with client.sessions.start(script, login=False, tty=False, yield_time=0.25) as session:
            answers = [answer async for answer in session]
        assert b"".join(answer.output for answer in answers) == b"1\n2\n3\n" and answers[-1].exit_code == 5


@run
async def test_a_cancelled_call_takes_nothing(own):
    async with cordon.spawn() as client:
        assert (await client.sessions.exec("cat", login=False, input="given\n")).output == b"given\n"
        os.mkfifo(own.ws / "f")
        async with client.sessions.start("cat f; exit 5", login=False, tty=False, yield_time=0.25) as session:
            call = asyncio.create_task(session.wait())
            await asyncio.sleep(0)  # it is sent
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            await asyncio.to_thread((own.ws / "f").write_text, "out\n")
            answer = await session.wait()
            assert (answer.output, answer.exit_code) == (b"out\n", 5)


@run
async def test_patches(own):
    (own.ws / "f").write_text("a\nb\n")
    patch = "*** Begin Patch\n*** Update File: f\n@@\n-b\n+c\n*** End Patch\n"
    async with cordon.spawn() as client:
        seen = await client.patch(patch, task="diff")
        assert "+c" in seen.diff and (own.ws / "f").read_text() == "a\nb\n"
        done = await client.patch(patch)
        assert done.applied and done.error is None and (own.ws / "f").read_text() == "a\nc\n"
        assert [file["path"] for file in done.files] == ["f"]
        assert "line 2" in (await client.patch(patch.replace(": f", ": g"))).error


@run
async def test_what_would_be_allowed(own):
    async with cordon.spawn() as client:
        assert (await client.explain(path="f", access="write"))["allowed"] is True
        refused = await client.explain(path=own.outside / "f", access="write")
        assert refused["allowed"] is False and refused["decided_by"]
        assert (await client.explain(host="example.org"))["allowed"] is False
        assert (await client.explain(host="example.org:443", sandbox=Sandbox(allow_hosts=["example.org"])))["allowed"]
        assert "command" in await client.explain(["touch", "f"])


# --- without asyncio ---

def test_without_asyncio(own):
    async def within():  # as in a notebook
        with sync.spawn() as client:
            return client.run("echo hi").text

    assert asyncio.run(within()) == "hi\n"
    asked = []
    (own.ws / "sub").mkdir()
    with sync.spawn(sandbox="read-only", on_question=lambda question: asked.append(question) or True) as client:
        assert client.run(["touch", "f"]).exit_code == 0 and len(asked) == 1
        texts = {}
        threads = [threading.Thread(target=lambda n=n: texts.update({n: client.run(f"echo {n}").text})) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert texts == {n: f"{n}\n" for n in range(4)}
        with client.start(["sleep", "600"]) as process:
            pass
        assert process.wait().signal == "SIGKILL"
        with client.sessions.start("cat", login=False, until={"bytes": 0}, yield_time=0.25) as session:
            assert "x" in session.write("x\n", until="x").text
    failed = []

    async def ask(_):
        try:
            client.run("true")
        except cordon.Error as error:
            failed.append(error)
        return False

    with sync.spawn(sandbox="read-only", on_question=lambda _: client.run("true").exit_code == 0) as client:
        assert client.run(["touch", "g"]).exit_code == 0  # a plain function may call
        client.on_question = ask
        assert client.run(["touch", "sub/g"]).exit_code == 1 and "wait for itself" in str(failed[0])
        lines = client.start("seq 3").lines()
        assert next(lines) == "1"
        lines.close()
        client.close()
        with pytest.raises(cordon.Disconnected, match="was closed"):
            client.run("true")
    assert sync.run(["pwd"]).text == f"{own.ws}\n"
    with pytest.raises(cordon.ServerEnded):
        sync.spawn(["false"])


def test_ctrl_c_ends_what_was_begun(own):
    script = ("import os, cordon.sync\n"
              "with cordon.sync.spawn() as client:\n"
              "    try:\n"
              "        client.run('echo >f; exec sleep 600')\n"
              "    except KeyboardInterrupt:\n"
              "        print(client.run('echo still here').text, end='')\n")
    os.mkfifo(own.ws / "f")
    child = subprocess.Popen([sys.executable, "-B", "-c", script], env={**os.environ, "PYTHONPATH": str(CLIENT)},
                             stdout=subprocess.PIPE, start_new_session=True)
    with child:
        assert (own.ws / "f").read_text() == "\n"
        os.killpg(child.pid, signal.SIGINT)
        assert child.communicate(timeout=WAIT)[0] == b"still here\n" and child.returncode == 0


# --- the examples ---

def blocks(text):
    return re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def test_the_programs_in_the_texts(own):
    """With a `make` and an `npm` that say so, and the place for a folder."""
    tools = own.base / "tools"
    tools.mkdir()
    for name in ("make", "npm"):
        (tools / name).write_text(f"#!/bin/sh\necho this is {name} $*\n")
        (tools / name).chmod(0o755)
    readme, (package, _), (plain, _) = (blocks((CLIENT / "README.md").read_text()), indented(cordon), indented(sync))
    assert len(readme) == 1
    for text, said in ((readme[0], "0 this is make test"), (package, "this is npm run dev"), (plain, "this is make")):
        if "import" not in text:
            text = "import cordon.sync\n" + text
        ran = subprocess.run([sys.executable, "-B", "-c", text.replace('"/work"', repr(str(own.ws)))], text=True,
                             timeout=WAIT, capture_output=True,
                             env={**os.environ, "PYTHONPATH": str(CLIENT), "PATH": f"{tools}:{os.environ['PATH']}"})
        assert ran.returncode == 0 and said in ran.stdout, ran


def indented(module):
    """The first block of its docstring, and how many lines it has."""
    lines = module.__doc__.splitlines()
    code = [line[4:] for line in lines if line[:4] in ("    ", "")]
    return "\n".join(code), len(code)



def example(own, name, *words, stdin=None):
    return subprocess.run([sys.executable, "-B", EXAMPLES / name, *words], input=stdin, text=True, timeout=WAIT,
                          env={**os.environ, "PYTHONPATH": str(CLIENT)}, capture_output=True)


def test_example_run(own):
    ran = example(own, "run.py", own.ws, "sh", "-c", f"echo out; echo err >&2; touch {own.outside}/x; exit 9")
    assert (ran.returncode, ran.stdout) == (9, "out\n")
    assert ran.stderr.startswith("err\n") and f"refused: write '{own.outside}/x' - " in ran.stderr


def test_example_approvals_at_once(own):
    """Of two questions that are open one answer is for one."""
    ran = example(own, "approvals.py", own.ws, "sh", "-c", 'touch f & touch "$1" & wait', "sh", own.outside / "f", stdin="y\n")
    assert ran.stdout.count("a yes covers: ") == 2, ran
    assert (own.ws / "f").exists() + (own.outside / "f").exists() == 1


@pytest.mark.parametrize("said, code", [("y\n", 0), ("n\n", 1), ("", 1)], ids=["yes", "no", "end"])
def test_example_approvals(own, said, code):
    ran = example(own, "approvals.py", own.ws, "touch", "f", stdin=said)
    assert ran.returncode == code and "a yes covers: " in ran.stdout, ran
    assert (own.ws / "f").exists() == (code == 0)


def test_example_session(own):
    ran = example(own, "session.py", own.ws)
    assert ran.returncode == 0 and "42" in ran.stdout and ran.stdout.endswith("ended with 0\n"), ran


def test_example_plain(own):
    ran = example(own, "plain.py", own.ws, "sh", "-c", "echo ok")
    assert (ran.returncode, ran.stdout) == (0, "ok\npatched: ['RESULT']\n"), ran
    assert (own.ws / "RESULT").read_text() == "all passed\n"
    ran = example(own, "plain.py", own.ws, "sh", "-c", f"touch {own.outside}/x")
    assert ran.returncode == 1 and "To allow" in ran.stderr or "llow" in ran.stderr, ran
    assert {path.name for path in EXAMPLES.glob("*.py")} == {"run.py", "approvals.py", "session.py", "plain.py"}
