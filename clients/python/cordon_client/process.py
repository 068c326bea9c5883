"""One running command.

Events come with numbers that have no holes. They are put in order here, and what a lost connection
swallowed is fetched with process/read, so a reader sees every byte once and in order, or a Gap that
says how many are gone for good."""
from __future__ import annotations

import asyncio
import base64
import dataclasses
from typing import TYPE_CHECKING, Any, AsyncIterator, Dict, List, Optional, Union

from .errors import Disconnected, RpcError

if TYPE_CHECKING:
    from .client import Client

READ_MAX = 4 << 20  # bytes of one process/read


@dataclasses.dataclass(frozen=True)
class Output:
    stream: str  # "stdout", "stderr", "pty"
    data: bytes
    offset: Optional[int] = None  # of its first byte in all output; None: the server does not tell


@dataclasses.dataclass(frozen=True)
class Gap:
    """Output that is not retained any more."""

    bytes: int


@dataclasses.dataclass(frozen=True)
class Exited:
    exit_code: int
    sandbox_denied: bool = False
    signal: Optional[str] = None
    denials: List[Dict[str, Any]] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class Closed:
    """The last event: nothing holds the output open any more."""


Event = Union[Output, Gap, Exited, Closed]


@dataclasses.dataclass(frozen=True)
class Result:
    """What Process.communicate() gives. On a terminal everything is in `stdout`."""

    stdout: bytes
    stderr: bytes
    exit: Exited
    lost: int  # bytes


class Process:
    """Made by Client.start()."""

    def __init__(self, client: "Client", process_id: str) -> None:
        self.id = process_id
        self.sandbox_type = "none"
        self.exit: Optional[Exited] = None
        self.is_closed = False
        self._has_started = False  # as far as it is known here
        self._client = client
        self._next_seq = 1
        self._next_offset = 0
        self._early: Dict[int, Dict[str, Any]] = {}  # came before those in front of them
        self._events: "asyncio.Queue[Optional[Event]]" = asyncio.Queue()
        self._has_exited = asyncio.Event()
        self._writes = 0
        self._failure: Optional[Exception] = None

    # --- what the server tells ---

    def _on_message(self, method: str, params: Dict[str, Any]) -> None:
        seq = params["seq"]
        if seq < self._next_seq:
            return
        self._early[seq] = {"method": method, **params}
        while self._next_seq in self._early:
            self._take(self._early.pop(self._next_seq))
            self._next_seq += 1

    def _take(self, event: Dict[str, Any]) -> None:
        if event["method"] == "process/output":
            self._add_output(event)
        elif event["method"] == "process/exited":
            self._add_exit(Exited(event["exitCode"], event.get("sandboxDenied", False),
                                  event.get("signal"), event.get("denials", [])))
        else:
            self._add_closed()

    def _add_output(self, chunk: Dict[str, Any]) -> None:
        data = base64.b64decode(chunk["chunk"])
        offset = chunk.get("offset")
        if offset is not None and offset > self._next_offset:
            self._events.put_nowait(Gap(offset - self._next_offset))
        if offset is not None:
            self._next_offset = offset + len(data)
        self._events.put_nowait(Output(chunk["stream"], data, offset))

    def _add_exit(self, exited: Exited) -> None:
        if self.exit is None:
            self.exit = exited
            self._has_exited.set()
            self._events.put_nowait(exited)

    def _add_closed(self) -> None:
        if not self.is_closed:
            self.is_closed = True
            self._client._forget(self)
            self._events.put_nowait(Closed())
            self._events.put_nowait(None)

    async def _catch_up(self) -> None:
        """After a new connection: what happened meanwhile."""
        while True:
            read = await self._client.call("process/read", {
                "processId": self.id, "afterSeq": self._next_seq - 1, "maxBytes": READ_MAX,
                "waitMs": 0})
            for chunk in read["chunks"]:
                if chunk["seq"] >= self._next_seq:
                    self._add_output(chunk)
                    self._next_seq = chunk["seq"] + 1
            if not read["chunks"]:
                break
        for event in self._early.values():  # it says more than the answer to a read
            if event["method"] == "process/exited":
                self._take(event)
        if read["exited"]:
            self._add_exit(Exited(read["exitCode"], read.get("sandboxDenied", False)))
        self._next_seq = max(self._next_seq, read["nextSeq"])
        early, self._early = self._early, {}
        if read["closed"]:
            self._add_closed()
        for event in early.values():
            self._on_message(event.pop("method"), event)

    def _fail(self, error: Exception) -> None:
        self._failure = error
        self._has_exited.set()
        self._events.put_nowait(None)

    # --- for the caller ---

    async def events(self) -> AsyncIterator[Event]:
        """Everything that happens, in order, until it is closed. For one reader."""
        while True:
            event = await self._events.get()
            if event is None:
                self._events.put_nowait(None)
                if self._failure is not None and not self.is_closed:
                    raise self._failure
                return
            yield event

    def timeline(self, after: int = 0) -> AsyncIterator[Dict[str, Any]]:
        """Client.timeline() of this process."""
        return self._client.timeline(self.id, after)

    async def communicate(self, data: Optional[bytes] = None) -> Result:
        """Writes `data` and ends the input, and collects all output until it is closed."""
        if data is not None:
            await self.write(data)
            await self.close_stdin()
        streams: Dict[str, List[bytes]] = {"stdout": [], "stderr": [], "pty": []}
        lost = 0
        async for event in self.events():
            if isinstance(event, Output):
                streams[event.stream].append(event.data)
            elif isinstance(event, Gap):
                lost += event.bytes
        return Result(b"".join(streams["stdout"] + streams["pty"]), b"".join(streams["stderr"]),
                      await self.wait(), lost)

    async def wait(self) -> Exited:
        """How the command ended. Its output may go on, if it left something behind."""
        await self._has_exited.wait()
        if self.exit is None:
            raise self._failure or Disconnected("the connection is gone")
        return self.exit

    async def write(self, data: bytes) -> None:
        """Sends input: of a terminal, or of one that was started with `stdin`. Written once, also
        when the connection is lost meanwhile."""
        self._writes += 1
        params = {"processId": self.id, "writeId": str(self._writes),
                  "chunk": base64.b64encode(data).decode()}
        try:
            answer = await self._client.call("process/write", params)
        except Disconnected:
            answer = await self._client.call("process/write", params)
        if answer["status"] != "accepted":
            raise RpcError(RpcError.INVALID_REQUEST, f"writing to {self.id}: {answer['status']}")

    async def close_stdin(self) -> bool:
        """false: it had no input, or it was closed before."""
        return bool((await self._call("process/closeStdin")).get("closed"))

    async def interrupt(self) -> None:
        """SIGINT, as by Ctrl-C."""
        await self._call("process/signal", signal="interrupt")

    async def terminate(self, grace: float = 0) -> bool:
        """Ends it with all that it started; after SIGTERM and `grace` seconds if there are any.
        Whether it was still running."""
        more = {"graceMs": round(grace * 1000)} if grace else {}
        return bool((await self._call("process/terminate", **more))["running"])

    async def resize(self, rows: int, columns: int) -> None:
        await self._call("process/resize", rows=rows, columns=columns)

    async def _call(self, method: str, **params: Any) -> Dict[str, Any]:
        return await self._client.call(method, {"processId": self.id, **params})
