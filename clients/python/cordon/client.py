"""The connection: calls and their answers, events to where they belong, and a new connection to the
same session when one is lost."""
from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import inspect
import json
import os
import threading
import uuid
from typing import (Any, AsyncGenerator, Awaitable, Callable, Coroutine, Dict, List, Mapping, Optional,
                    Sequence, Set, Union)

from . import program
from . import sandbox as boxes
from .errors import (Disconnected, Error, RpcError, SessionAttached, SystemRefused, TimedOut, rpc_error)
from .files import Files, to_path
from .layers import AnyLayer, Layers
from .layers import to_json as layer_to_json
from .opening import Opening
from .process import OUTPUT_MAX, Collector, Data, Process, Result
from .questions import Asked, to_approval
from .sandbox import AnySandbox, Path, to_uri
from .sessions import Sessions
from .transport import Transport, open_command, open_url

RETRY_DELAY = 0.1  # seconds
GRACE = 2.0  # seconds, from SIGTERM to SIGKILL, of a command whose time is over
TIMELINE_WAIT_MS = 60000  # of one session/events

TAKEN_BACK = ("session/exec", "session/write", "session/wait", "session/events")
# Fields of process/start that start() has no parameters for. The server does not mind others, so that a
# misspelt option, or one of Sandbox, would be believed to count.
FURTHER = frozenset(("envPolicy", "metadata", "enforceManagedNetwork", "managedNetwork", "networkProxy", "maxMemoryBytes",
                     "maxCpuTimeMs", "maxPids", "maxFileBytes", "maxFiles", "maxAddressSpaceBytes", "spoolBytes"))

# Answers a request of the server: gets its params, gives the result.
Handler = Callable[[Any], Awaitable[Any]]

# A program with its arguments, or shell text.
Command = Union[str, Sequence[str]]


@dataclasses.dataclass(frozen=True)
class Patched:
    """What Client.patch() did. `error`: why nothing was changed, or None."""

    applied: bool
    files: List[Dict[str, Any]]
    diff: Optional[str]
    error: Optional[str]


def connect(url: str, *, token: Optional[str] = None, name: str = "cordon-client",
            reconnect_for: float = 45.0, resume: Optional[str] = None, timeout: float = 30.0,
            sandbox: AnySandbox = None, on_question: Optional[Asked] = None) -> "Opening[Client]":
    """Connects to ws://HOST:PORT, wss://HOST:PORT or unix:PATH, within `timeout` seconds.

    A connection that is lost is made anew for `reconnect_for` seconds (0: not at all): the session goes on, and
    the output of the time in between is fetched, so that events come once and in order, or a Gap says how
    much is gone. Calls that were on their way raise Disconnected; Process.write() is repeated and still
    written once. The server keeps a session for 80 s: `resume` and Client.take_up() go on with it in another
    program.

    `token` is sent; without one, a server at a loopback address has to know the user's own
    token, if there is one, which is shown to be known and never sent; "" is for a server that does not.

    `sandbox` is what calls have that say none. `on_question` answers what the server asks (a Question):
    then what a sandbox refuses waits for the answer, if the sandbox says no other `watch`."""
    client = Client(lambda: open_url(url, token), name, reconnect_for, timeout, sandbox, on_question)
    return Opening(client._opened(resume))


def spawn(argv: Optional[Sequence[str]] = None, *, name: str = "cordon-client", timeout: float = 30.0,
          sandbox: AnySandbox = None, on_question: Optional[Asked] = None) -> "Opening[Client]":
    """Starts a server of our own, which ends with the client: that of the `cordon` in this package or on
    the PATH, or any other command that serves on its standard input and output. The rest as of
    connect()."""
    client = Client(lambda: open_command(program.serve() if argv is None else argv), name, 0, timeout,
                    sandbox, on_question)
    return Opening(client._opened(None))


async def run(argv: Command, cwd: Optional[Path] = None, *, sandbox: AnySandbox = None,
              on_question: Optional[Asked] = None, **more: Any) -> Result:
    """Client.run() of a server that is started for this one command."""
    async with spawn(sandbox=sandbox, on_question=on_question) as client:
        return await client.run(argv, cwd, **more)


async def _in_thread(function: Callable[[Any], Any], argument: Any) -> Any:
    """Calls what may wait for a person. The thread does not keep the program from ending."""
    loop = asyncio.get_running_loop()
    answer: "asyncio.Future[Any]" = loop.create_future()

    def settle(value: Any, error: Optional[BaseException]) -> None:
        if answer.done():
            return
        if error is None:
            answer.set_result(value)
        else:
            answer.set_exception(error)

    def work() -> None:
        value, error = None, None
        try:
            value = function(argument)
        except BaseException as failure:
            error = failure if isinstance(failure, Exception) else Error(repr(failure))
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(settle, value, error)

    threading.Thread(target=work, name="cordon-question", daemon=True).start()
    return await answer


class Client:
    """A connection, made by connect() or spawn(); `async with` closes it."""

    def __init__(self, dial: Callable[[], Awaitable[Transport]], name: str, reconnect_for: float,
                 timeout: float = 30.0, sandbox: AnySandbox = None,
                 on_question: Optional[Asked] = None) -> None:
        self.session_id = ""  # for connect(resume=...)
        self.info: Dict[str, Any] = {}  # of the server's environment
        self.sandbox = sandbox  # what calls have that say none
        self.on_question = on_question
        self.files = Files(self)
        self.sessions = Sessions(self)
        self.layers = Layers(self)
        self.handlers: Dict[str, Handler] = {}  # by method, for other requests of the server
        self.on_event: Optional[Callable[[str, Dict[str, Any]], None]] = None  # other notifications
        self._dial, self._name, self._reconnect_for = dial, name, reconnect_for
        self._timeout = timeout
        self._transport: Optional[Transport] = None
        self._ready = asyncio.Event()  # a session is open
        self._sending = asyncio.Lock()
        self._next_id = 1
        self._answers: Dict[int, "asyncio.Future[Any]"] = {}
        self._processes: Dict[str, Process] = {}
        self._questions: Dict[str, "asyncio.Task[Any]"] = {}  # by approvalId
        self._tasks: Set["asyncio.Task[Any]"] = set()
        self._reader: Optional["asyncio.Task[None]"] = None
        self._failure: Optional[Exception] = None  # for good
        self._gone = Disconnected("the connection is gone")  # why it is
        self._watch_id = 0
        self._watcher: Optional["asyncio.Future[bool]"] = None

    async def __aenter__(self) -> "Client":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Ends the connection. What runs goes on for as long as the server keeps the session; a server of
        our own ends with all that it runs."""
        self._end(Disconnected("the client was closed"))
        for task in list(self._questions.values()):
            task.cancel()
        if self._reader is not None:
            self._reader.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._reader
        transport = self._transport
        self._lost(None)
        if transport is not None:
            await transport.close()

    # --- calls ---

    async def call(self, method: str, params: Optional[Mapping[str, Any]] = None, *,
                   timeout: Optional[float] = None) -> Dict[str, Any]:
        """Any method of the protocol (docs/protocol.md); the result. RpcError for an error, TimedOut after
        `timeout` seconds without an answer, when nobody knows whether it was carried out."""
        result: Dict[str, Any] = await self._within(self._call(method, params or {}), timeout,
                                                    f"no answer to {method}")
        return result

    async def _call(self, method: str, params: Mapping[str, Any]) -> Dict[str, Any]:
        if self._failure is None:
            await self._ready.wait()
        if self._failure is not None:
            raise self._failure
        return await self._request(method, params)

    @staticmethod
    async def _within(work: Coroutine[Any, Any, Any], timeout: Optional[float], what: str) -> Any:
        try:
            return await asyncio.wait_for(work, timeout)
        except asyncio.TimeoutError as error:
            raise TimedOut(f"{what} within {timeout:g} s") from error

    async def _request(self, method: str, params: Mapping[str, Any]) -> Dict[str, Any]:
        number, self._next_id = self._next_id, self._next_id + 1
        answer: "asyncio.Future[Any]" = asyncio.get_running_loop().create_future()
        self._answers[number] = answer
        try:
            await self._send({"id": number, "method": method, "params": params})
            result: Dict[str, Any] = await answer
            return result
        except asyncio.CancelledError:
            if method in TAKEN_BACK and self._transport is not None:
                self._spawn(self._take_back(number))
            raise
        finally:
            self._answers.pop(number, None)
            if answer.done() and not answer.cancelled():
                answer.exception()  # it is seen, also when the request could not be sent

    async def _take_back(self, number: int) -> None:
        """Nobody takes the answer: the output in it is for the next call."""
        with contextlib.suppress(Error):  # of a server that does not know it, too
            await self._request("session/cancel", {"requestId": number})

    async def _send(self, message: Mapping[str, Any]) -> None:
        text = json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode()
        async with self._sending:
            transport = self._transport
            if transport is None:
                raise self._gone
            try:
                await transport.send(text)
            except ConnectionError as error:
                raise await transport.why(error) from error

    # --- processes ---

    def _uri(self, path: Optional[Path], as_is: bool = False) -> str:
        """Of the server's own folder, or of what is absolute or counts from that. `as_is`: with its dots, since
        behind a link they lead elsewhere."""
        own = self.info.get("cwd") or "file:///"
        text = "" if path is None else os.fspath(path)
        if text.startswith("file:"):
            return text
        joined = os.path.join(to_path(own), text)
        return to_uri(joined if as_is else os.path.normpath(joined))

    def _sandbox(self, sandbox: AnySandbox, layer: AnyLayer = None) -> Any:
        given = self._given(sandbox, layer)
        if given is None and layer is not None and self.on_question is None:
            return None  # of a layer that others made: its own
        return boxes.to_json(given, self.on_question is not None)

    def _given(self, sandbox: AnySandbox, layer: AnyLayer = None) -> AnySandbox:
        """In a layer, what that was made with."""
        if sandbox is None and layer is not None and not isinstance(layer, str):
            sandbox = layer._sandbox
        return self.sandbox if sandbox is None else sandbox

    async def run(self, argv: Command, cwd: Optional[Path] = None, *, input: Optional[Data] = None,
                  timeout: Optional[float] = None, check: bool = False, max_output: int = OUTPUT_MAX,
                  env: Optional[Mapping[str, str]] = None, extra_env: Optional[Mapping[str, str]] = None,
                  sandbox: AnySandbox = None, layer: AnyLayer = None, **more: Any) -> Result:
        """Runs a command to its end. After `timeout` seconds it is ended, and TimedOut has what it wrote;
        so it is when the call is cancelled. `check`: CommandFailed if it does not end with 0. Of each
        stream the first `max_output` bytes are kept. The rest as of start()."""
        process = await self._start(argv, cwd, {"env": env, "extra_env": extra_env, "sandbox": sandbox,
                                                "layer": layer, "stdin": input is not None, **more})
        collector = Collector(max_output)
        work = asyncio.ensure_future(process._collect(input, collector))
        try:
            done, _ = await asyncio.wait([work], timeout=timeout)
            if not done:
                await process.terminate(GRACE)
                result = await work
                raise TimedOut(f"the command was ended after {timeout:g} s", result)
            return (await work).check() if check else await work
        finally:
            work.cancel()
            if not process.is_closed:
                self._spawn(self._abandon(process))

    async def _abandon(self, process: Process) -> None:
        with contextlib.suppress(Error):
            await process.terminate()

    def start(self, argv: Command, cwd: Optional[Path] = None, *, env: Optional[Mapping[str, str]] = None,
              extra_env: Optional[Mapping[str, str]] = None, sandbox: AnySandbox = None, tty: bool = False,
              stdin: bool = False, arg0: Optional[str] = None, size: Optional["tuple[int, int]"] = None,
              process_id: Optional[str] = None, trace: Sequence[str] = (), layer: AnyLayer = None,
              **more: Any) -> "Opening[Process]":
        """Starts a command: a program with its arguments, or a text for `sh -c`. `cwd` is by default the
        server's own folder. `env` None: the server's environment without secrets, and `extra_env`;
        otherwise exactly that. `sandbox` None: that of the client, else what the configuration of the
        server's user says, else workspace-write; only "none" is no sandbox. `stdin`: write() is wanted.
        `size`: (rows, columns) of the terminal that `tty` gives. `trace`: what timeline() tells, of
        "files", "network" and "exec". `layer`: a change layer that takes what it writes. `more` are further
        fields of process/start (docs/protocol.md), such as maxMemoryBytes=1 << 30; what is none is a
        TypeError."""
        return Opening(self._start(argv, cwd, {
            "env": env, "extra_env": extra_env, "sandbox": sandbox, "tty": tty, "stdin": stdin, "arg0": arg0,
            "size": size, "process_id": process_id, "trace": trace, "layer": layer, **more}))

    async def _start(self, argv: Command, cwd: Optional[Path], options: Dict[str, Any]) -> Process:
        env, extra, trace, size = (options.pop(name, None) for name in ("env", "extra_env", "trace", "size"))
        layer: AnyLayer = options.pop("layer", None)
        unknown = sorted(options.keys() - FURTHER - {"process_id", "tty", "stdin", "arg0", "sandbox"})
        if unknown:
            raise TypeError(f"a command has no option {unknown[0]!r}; what it may do is said by sandbox=")
        process = Process(self, options.pop("process_id", None) or str(uuid.uuid4()))
        params: Dict[str, Any] = {
            "processId": process.id, "argv": ["/bin/sh", "-c", argv] if isinstance(argv, str) else
            [os.fspath(word) for word in argv], "cwd": self._uri(cwd), "tty": options.pop("tty", False),
            "env": {**(env or {}), **(extra or {})}, "pipeStdin": options.pop("stdin", False),
            "arg0": options.pop("arg0", None), "sandbox": self._sandbox(options.pop("sandbox", None), layer), **options}
        if layer is not None:
            params["layer"] = layer_to_json(layer)
        if env is None and "envPolicy" not in params:
            params["envPolicy"] = {"inherit": "all", "ignoreDefaultExcludes": False, "exclude": [],
                                   "set": {}, "includeOnly": []}
        if trace:
            params["trace"] = list(trace)
        if size is not None:
            params["rows"], params["columns"] = size
        self._processes[process.id] = process  # its events may come before the answer
        try:
            await self._start_once(process, params)
        except SystemRefused as error:  # which says neither of what
            self._forget(process)
            where = "" if cwd is None else f" in {os.fspath(cwd)}"
            raise rpc_error(error.code, f"starting {params['argv'][0]}{where}: {error.message}", error.data) from None
        except BaseException as error:
            self._forget(process)
            if isinstance(error, asyncio.CancelledError):
                self._spawn(self._abandon(process))  # it may run already
            raise
        return process

    async def _start_once(self, process: Process, params: Mapping[str, Any]) -> None:
        """Once, also when the connection is lost before the answer: the server knows the id then."""
        try:
            answer = await self.call("process/start", params)
            process._has_started = True
        except Disconnected:
            try:
                answer = await self.call("process/start", params)
                process._has_started = True
            except RpcError as error:
                if "already exists" not in error.message:
                    raise
                process._has_started = True
                await process._catch_up()  # answered when it has started, or could not
                answer = next(one for one in (await self.call("process/list"))["processes"]
                              if one["processId"] == process.id)
        process.sandbox_type = answer.get("sandboxType", "none")
        process.warnings = answer.get("warnings", [])

    async def take_up(self, process_id: str) -> Process:
        """A process of this session that another client started (connect(resume=...)), with what is
        retained of its output."""
        process = Process(self, process_id)
        process._has_started = True
        self._processes[process_id] = process
        await process._catch_up()
        return process

    async def patch(self, patch: str, cwd: Optional[Path] = None, *, sandbox: AnySandbox = None,
                    task: str = "apply", layer: AnyLayer = None) -> Patched:
        """Applies a patch in the apply_patch grammar below a folder, all of it or nothing. `task`: "check"
        and "diff" change nothing. `layer`: in place of the real files, those of a change layer."""
        given = self._given(sandbox, layer)
        answer = await self.call("patch/apply", {
            "patch": patch, "cwd": self._uri(cwd), "task": task, "layer": layer_to_json(layer),
            "sandbox": None if given is None and layer is not None else boxes.to_json(given)})
        error = answer["error"]
        return Patched(answer["applied"], answer["files"], answer["diff"], error and error["message"])

    async def explain(self, argv: Optional[Sequence[str]] = None, cwd: Optional[Path] = None, *,
                      path: Optional[Path] = None, access: str = "read", host: Optional[str] = None,
                      sandbox: AnySandbox = None) -> Dict[str, Any]:
        """What a sandbox lets a command do, and who decided it, as `cordon explain --json` says it: of one
        `path` (to "read" or "write"), of one `host` (HOST or HOST:PORT), of a command, which is not run, or
        of everything."""
        question = {"argv": argv and list(argv), "path": path and os.fspath(path), "host": host,
                    "access": None if path is None else access}
        answer = await self.call("permissions/explain", {
            "cwd": self._uri(cwd), "sandbox": boxes.to_json(self.sandbox if sandbox is None else sandbox),
            **{name: value for name, value in question.items() if value is not None}})
        told: Dict[str, Any] = answer["answer"]
        return told

    async def timeline(self, process_id: str, after: int = 0) -> AsyncGenerator[Dict[str, Any], None]:
        """What a process did that was started with `trace`, event by event until it is closed
        (docs/timeline.md); Answer.process_id names that of a session. Any number of readers. What was not
        kept until it was read is one {"event": "lost", "count": N}."""
        while True:
            page = await self.call("session/events", {"processId": process_id, "afterSeq": after,
                                                      "waitMs": TIMELINE_WAIT_MS})
            if page["dropped"]:
                yield {"event": "lost", "count": page["dropped"]}
            for event in page["events"]:
                yield event
            if page["closed"] and not page["events"]:
                return
            after = page["nextSeq"] - 1

    def _forget(self, process: Process) -> None:
        self._processes.pop(process.id, None)

    # --- the connection ---

    async def _opened(self, resume: Optional[str]) -> "Client":
        await self._within(self._open(resume), self._timeout, "the server did not answer")
        return self

    async def _open(self, resume: Optional[str]) -> None:
        transport = await self._dial()
        self._transport = transport
        reader = asyncio.get_running_loop().create_task(self._read(transport))
        try:
            answer = await self._request("initialize", {"clientName": self._name,
                                                        "resumeSessionId": resume})
            await self._send({"method": "initialized", "params": {}})
            if self._transport is not transport:  # lost meanwhile
                raise self._gone
            self.session_id = str(answer["sessionId"])
        except BaseException as error:
            reader.cancel()
            self._transport = None
            transport.abort()
            await transport.close()
            if isinstance(error, KeyError):
                raise await transport.why(error) from error
            raise
        self.info = answer.get("environmentInfo") or {}
        self._reader = reader
        self._ready.set()

    async def _read(self, transport: Transport) -> None:
        error: Optional[Exception] = None
        try:
            while (text := await transport.receive()) is not None:
                self._sort(json.loads(text))
        except Exception as failure:  # whatever a server sends ends its connection, and no more
            error = failure
            transport.abort()
        self._lost(await transport.why(error))
        if self._reader is asyncio.current_task():
            await self._reconnect()

    def _lost(self, error: Optional[Disconnected]) -> None:
        self._transport = None
        self._ready.clear()
        self._gone = error or Disconnected("the connection is gone")
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(self._gone)
        for question in list(self._questions.values()):
            question.cancel()
        if self._watcher is not None and not self._watcher.done():
            self._watcher.set_result(False)

    async def _reconnect(self) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._reconnect_for
        while True:
            if loop.time() >= deadline:
                self._end(self._gone)
                return
            try:
                await self._within(self._open(self.session_id), self._timeout, "no answer")
                break
            except Exception as error:
                if isinstance(error, RpcError) and not isinstance(error, SessionAttached):
                    self._end(Disconnected(f"the session is gone: {error}"))
                    return
                self._gone = Disconnected(f"the connection is gone, and not to be had again: {error}")
            await asyncio.sleep(RETRY_DELAY)
        for process in list(self._processes.values()):
            if process._has_started:  # the others are asked about by who starts them
                self._spawn(self._resume(process))

    async def _resume(self, process: Process) -> None:
        try:
            await process._catch_up()
        except RpcError as error:
            process._fail(error)
            self._forget(process)
        except Disconnected:
            pass  # and once more, or the end

    def _end(self, error: Exception) -> None:
        if self._failure is not None:
            return
        self._failure = error
        self._lost_processes(error)
        self._ready.set()  # the caller that waits finds the failure

    def _lost_processes(self, error: Exception) -> None:
        processes, self._processes = self._processes, {}
        for process in processes.values():
            process._fail(error)

    # --- messages ---

    def _sort(self, message: Dict[str, Any]) -> None:
        if "method" not in message:
            self._take_answer(message)
        elif "id" in message:
            self._take_request(message)
        else:
            self._take_event(message["method"], message.get("params") or {})

    def _take_request(self, message: Dict[str, Any]) -> None:
        task = self._spawn(self._answer(message, self._transport))
        if message["method"] == "approval/request":
            approval = str(message["params"]["approvalId"])
            self._questions[approval] = task
            task.add_done_callback(lambda _: self._questions.pop(approval, None))

    def _take_answer(self, message: Dict[str, Any]) -> None:
        answer = self._answers.get(message["id"])
        if answer is None or answer.done():
            return
        if "error" in message:
            error = message["error"]
            answer.set_exception(rpc_error(error["code"], error["message"], error.get("data")))
        elif isinstance(message["result"], dict):
            answer.set_result(message["result"])
        else:
            raise TypeError("a result that is no object")

    def _take_event(self, method: str, params: Dict[str, Any]) -> None:
        process = self._processes.get(params.get("processId", ""))
        if method in ("process/output", "process/exited", "process/closed") and process:
            process._on_message(method, params)
        elif method == "fs/missingChanged" and params.get("watchId") == self._watch_id:
            if self._watcher is not None and not self._watcher.done():
                self._watcher.set_result(True)
        elif method == "approval/withdrawn" and params.get("approvalId") in self._questions:
            self._questions[params["approvalId"]].cancel()
        elif self.on_event is not None:  # what it raises is told as that of other callbacks
            asyncio.get_running_loop().call_soon(self.on_event, method, params)

    async def _answer(self, message: Dict[str, Any], transport: Optional[Transport]) -> None:
        """To where it came from: another connection has requests of the same numbers."""
        handler = self.handlers.get(message["method"])
        if handler is None and message["method"] == "approval/request" and self.on_question is not None:
            handler = self._ask
        reply: Dict[str, Any] = {"id": message["id"]}
        try:
            if handler is None:
                raise RpcError(RpcError.UNKNOWN_METHOD, f"no handler for {message['method']}")
            reply["result"] = await handler(message.get("params") or {})
            json.dumps(reply)  # or it is a failure of the handler's
        except RpcError as error:
            reply["error"] = {"code": error.code, "message": error.message}
        except Exception as error:  # a handler's own: the server has to get an answer, which is a no
            reply.pop("result", None)
            reply["error"] = {"code": RpcError.INTERNAL, "message": str(error)}
            context = {"message": f"cordon: answering {message['method']}", "exception": error}
            asyncio.get_running_loop().call_exception_handler(context)
        if self._transport is transport:
            with contextlib.suppress(Disconnected):
                await self._send(reply)

    async def _ask(self, params: Dict[str, Any]) -> Any:
        asked = self.on_question
        assert asked is not None
        if inspect.iscoroutinefunction(asked) or inspect.iscoroutinefunction(getattr(asked, "__call__", None)):
            verdict = await asked(params["question"])  # type: ignore[misc]
        else:
            verdict = await _in_thread(asked, params["question"])
            if inspect.isawaitable(verdict):
                verdict = await verdict
        return to_approval(verdict)

    async def _watch(self, uris: List[str]) -> bool:
        self._watch_id += 1
        if self._watcher is not None and not self._watcher.done():
            self._watcher.set_result(False)
        self._watcher = asyncio.get_running_loop().create_future()
        watcher = self._watcher
        answer = await self.call("fs/watchMissing", {"watchId": self._watch_id, "missing": uris})
        return await watcher if answer["watching"] else False

    def _spawn(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[Any]":
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task
