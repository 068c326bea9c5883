"""The connection: calls and their answers, events to where they belong, and a new connection to the
same session when one is lost."""
from __future__ import annotations

import asyncio
import contextlib
import json
import uuid
from typing import Any, AsyncIterator, Awaitable, Callable, Dict, List, Mapping, Optional, Sequence, Set

from . import sandbox as boxes
from .errors import Disconnected, Error, RpcError
from .files import Files
from .process import Process
from .sandbox import AnySandbox, Path, to_uri
from .sessions import Sessions
from .transport import Transport, open_command, open_url

RETRY_DELAY = 0.1  # seconds
TIMELINE_WAIT_MS = 60000  # of one session/events

# Answers a request of the server: gets its params, gives the result.
Handler = Callable[[Any], Awaitable[Any]]


async def connect(url: str, *, token: Optional[str] = None, name: str = "cordon-client",
                  reconnect_for: float = 45.0, resume: Optional[str] = None) -> "Client":
    """Connects to ws://HOST:PORT, wss://HOST:PORT or unix:PATH. A connection that is lost is made
    anew for `reconnect_for` seconds (0: not at all); `resume` takes up the session of an earlier
    client. `token` is sent; without one, a server at a loopback address has to know the user's own
    token, if there is one, which is shown to be known and never sent; "" is for a server that does
    not."""
    client = Client(lambda: open_url(url, token), name, reconnect_for)
    await client._open(resume)
    return client


async def spawn(argv: Sequence[str], *, name: str = "cordon-client") -> "Client":
    """Starts a server, such as ["cordon", "serve", "--listen", "stdio"]; it ends with the client."""
    client = Client(lambda: open_command(argv), name, 0)
    await client._open(None)
    return client


class Client:
    """Made by connect() or spawn(); `async with` closes it."""

    def __init__(self, dial: Callable[[], Awaitable[Transport]], name: str,
                 reconnect_for: float) -> None:
        self.session_id = ""
        self.info: Dict[str, Any] = {}  # of the server's environment
        self.files = Files(self)
        self.sessions = Sessions(self)
        self.handlers: Dict[str, Handler] = {}  # by method, for requests of the server
        self.on_event: Optional[Callable[[str, Dict[str, Any]], None]] = None  # other notifications
        self._dial, self._name, self._reconnect_for = dial, name, reconnect_for
        self._transport: Optional[Transport] = None
        self._ready = asyncio.Event()  # a session is open
        self._sending = asyncio.Lock()
        self._next_id = 1
        self._answers: Dict[int, "asyncio.Future[Any]"] = {}
        self._processes: Dict[str, Process] = {}
        self._tasks: Set["asyncio.Task[Any]"] = set()
        self._reader: Optional["asyncio.Task[None]"] = None
        self._failure: Optional[Exception] = None  # for good
        self._watch_id = 0
        self._watcher: Optional["asyncio.Future[bool]"] = None

    async def __aenter__(self) -> "Client":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Ends the connection. What runs goes on for as long as the server keeps the session."""
        self._end(Disconnected("the client was closed"))
        if self._reader is not None:
            self._reader.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._reader
        transport = self._transport
        self._lost(None)
        if transport is not None:
            await transport.close()

    # --- calls ---

    async def call(self, method: str, params: Optional[Mapping[str, Any]] = None) -> Dict[str, Any]:
        """Any method of the protocol; the result. RpcError for an error."""
        if self._failure is None:
            await self._ready.wait()
        if self._failure is not None:
            raise self._failure
        return await self._request(method, params or {})

    async def _request(self, method: str, params: Mapping[str, Any]) -> Dict[str, Any]:
        number, self._next_id = self._next_id, self._next_id + 1
        answer: "asyncio.Future[Any]" = asyncio.get_running_loop().create_future()
        self._answers[number] = answer
        try:
            await self._send({"id": number, "method": method, "params": params})
            result: Dict[str, Any] = await answer
            return result
        finally:
            self._answers.pop(number, None)

    async def _send(self, message: Mapping[str, Any]) -> None:
        text = json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode()
        async with self._sending:
            if self._transport is None:
                raise Disconnected("the connection is gone")
            try:
                await self._transport.send(text)
            except ConnectionError as error:
                raise Disconnected(str(error)) from error

    # --- processes ---

    async def start(self, argv: Sequence[str], cwd: Path, *, env: Optional[Mapping[str, str]] = None,
                    sandbox: AnySandbox = None, tty: bool = False, stdin: bool = False,
                    arg0: Optional[str] = None, size: Optional["tuple[int, int]"] = None,
                    process_id: Optional[str] = None, trace: Sequence[str] = (),
                    **more: Any) -> Process:
        """Starts a command. `env` None: the server's environment without secrets; otherwise exactly
        that. `stdin`: write() is wanted. `size`: (rows, columns) of the terminal. `trace`: what
        timeline() tells, of "files", "network" and "exec". `more` are further fields of
        process/start."""
        process = Process(self, process_id or str(uuid.uuid4()))
        params: Dict[str, Any] = {
            "processId": process.id, "argv": list(argv), "cwd": to_uri(cwd), "tty": tty,
            "env": dict(env or {}), "pipeStdin": stdin, "arg0": arg0,
            "sandbox": boxes.to_json(sandbox), **more}
        if env is None and "envPolicy" not in more:
            params["envPolicy"] = {"inherit": "all", "ignoreDefaultExcludes": False, "exclude": [],
                                   "set": {}, "includeOnly": []}
        if trace:
            params["trace"] = list(trace)
        if size is not None:
            params["rows"], params["columns"] = size
        self._processes[process.id] = process  # its events may come before the answer
        try:
            await self._start(process, params)
        except BaseException:
            self._forget(process)
            raise
        return process

    async def _start(self, process: Process, params: Mapping[str, Any]) -> None:
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

    async def take_up(self, process_id: str) -> Process:
        """A process of this session that another client started (connect(resume=...)), with what is
        retained of its output."""
        process = Process(self, process_id)
        process._has_started = True
        self._processes[process_id] = process
        await process._catch_up()
        return process

    async def timeline(self, process_id: str, after: int = 0) -> AsyncIterator[Dict[str, Any]]:
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

    async def _open(self, resume: Optional[str]) -> None:
        transport = await self._dial()
        self._transport = transport
        reader = asyncio.get_running_loop().create_task(self._read(transport))
        try:
            answer = await self._request("initialize", {"clientName": self._name,
                                                        "resumeSessionId": resume})
            await self._send({"method": "initialized", "params": {}})
        except BaseException:
            reader.cancel()
            self._transport = None
            await transport.close()
            raise
        self.session_id = answer["sessionId"]
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
            with contextlib.suppress(OSError):
                await transport.close()
        self._lost(error)
        if self._reader is asyncio.current_task():
            await self._reconnect()

    def _lost(self, error: Optional[Exception]) -> None:
        self._transport = None
        self._ready.clear()
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(Disconnected(f"the connection is gone: {error or 'closed'}"))
        if self._watcher is not None and not self._watcher.done():
            self._watcher.set_result(False)

    async def _reconnect(self) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._reconnect_for
        while True:
            if loop.time() >= deadline:
                self._end(Disconnected("the connection is gone"))
                return
            try:
                await self._open(self.session_id)
                break
            except RpcError as error:
                if error.code != RpcError.SESSION_ATTACHED:
                    self._end(Disconnected(f"the session is gone: {error}"))
                    return
            except (Disconnected, OSError):
                pass
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
            self._spawn(self._answer(message))
        else:
            self._take_event(message["method"], message.get("params") or {})

    def _take_answer(self, message: Dict[str, Any]) -> None:
        answer = self._answers.get(message["id"])
        if answer is None or answer.done():
            return
        if "error" in message:
            error = message["error"]
            answer.set_exception(RpcError(error["code"], error["message"], error.get("data")))
        else:
            answer.set_result(message["result"])

    def _take_event(self, method: str, params: Dict[str, Any]) -> None:
        process = self._processes.get(params.get("processId", ""))
        if method in ("process/output", "process/exited", "process/closed") and process:
            process._on_message(method, params)
        elif method == "fs/missingChanged" and params.get("watchId") == self._watch_id:
            if self._watcher is not None and not self._watcher.done():
                self._watcher.set_result(True)
        elif self.on_event is not None:
            self.on_event(method, params)

    async def _answer(self, message: Dict[str, Any]) -> None:
        handler = self.handlers.get(message["method"])
        reply: Dict[str, Any] = {"id": message["id"]}
        try:
            if handler is None:
                raise RpcError(RpcError.UNKNOWN_METHOD, f"no handler for {message['method']}")
            reply["result"] = await handler(message.get("params") or {})
        except RpcError as error:
            reply["error"] = {"code": error.code, "message": error.message}
        except Exception as error:  # a handler's own: the server has to get an answer
            reply["error"] = {"code": RpcError.INTERNAL, "message": str(error)}
        with contextlib.suppress(Disconnected):
            await self._send(reply)

    async def _watch(self, uris: List[str]) -> bool:
        self._watch_id += 1
        if self._watcher is not None and not self._watcher.done():
            self._watcher.set_result(False)
        self._watcher = asyncio.get_running_loop().create_future()
        watcher = self._watcher
        answer = await self.call("fs/watchMissing", {"watchId": self._watch_id, "missing": uris})
        return await watcher if answer["watching"] else False

    def _spawn(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
