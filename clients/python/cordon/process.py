"""One running command.

Events come with numbers that have no holes. They are put in order here, and what a lost connection
swallowed is fetched with process/read, so a reader sees every byte once and in order, or a Gap that
says how many are gone for good."""
from __future__ import annotations

import asyncio
import base64
import codecs
import collections
import contextlib
import dataclasses
from typing import (TYPE_CHECKING, Any, AsyncGenerator, Deque, Dict, List, Literal, Optional, TypedDict, Union)

from .errors import CommandFailed, Disconnected, InputClosed, RpcError

if TYPE_CHECKING:
    from .client import Client

READ_MAX = 4 << 20  # bytes of one process/read
UNREAD_MAX = 32 << 20  # bytes of output that wait for a reader
OF_EACH = 256  # bytes that an event takes besides its own
LINE_MAX = 1 << 20  # characters of a line that is not over
OUTPUT_MAX = 16 << 20  # bytes of each stream that are collected, unless it is said

Data = Union[bytes, str]  # a str goes as UTF-8


def to_base64(data: Data) -> str:
    return base64.b64encode(data.encode() if isinstance(data, str) else data).decode()


class Denial(TypedDict, total=False):
    """Something that was refused, as in process/exited (docs/protocol.md). What is not known is None or
    missing; `operation`, `source` and `remedy` are always there."""

    operation: Literal["read", "write", "execute", "connect", "bind", "signal", "other"]
    evidence: Literal["fact", "heuristic"]
    source: Literal["sandbox", "host", "unknown"]  # host: the sandbox lets it through, and there it failed
    path: Optional[str]
    path2: Optional[str]  # of a rename or link
    host: Optional[str]
    port: Optional[int]
    errno: Optional[str]
    decided_by: Optional[str]
    reason: Optional[str]  # of a host
    remedy: str  # what would allow it, by the options of `cordon run`: --writable is `writable` of a Sandbox
    program: Optional[str]
    pid: Optional[int]
    call: Optional[str]
    creates: bool  # a new name
    count: int  # how often
    below: bool  # so many below `path`, which are not told one by one
    aside: bool  # tried in passing, and not why the command failed


@dataclasses.dataclass(frozen=True)
class Output:
    """Bytes that were written."""

    stream: str  # "stdout", "stderr", "pty"
    data: bytes
    offset: Optional[int] = None  # of its first byte in all output; None: the server does not tell


@dataclasses.dataclass(frozen=True)
class Gap:
    """Output that is not retained any more: its reader was away for too long, or too slow (32 MiB)."""

    bytes: int


@dataclasses.dataclass(frozen=True)
class Exited:
    """How a command ended."""

    exit_code: int  # 128 + n for signal n
    sandbox_denied: bool = False  # it failed, and the sandbox refused it something
    signal: Optional[str] = None  # "SIGKILL"
    denials: List[Denial] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class Closed:
    """The last event: nothing holds the output open any more."""


Event = Union[Output, Gap, Exited, Closed]


@dataclasses.dataclass(frozen=True)
class Result:
    """What run() and Process.communicate() give. On a terminal everything is in `stdout`."""

    stdout: bytes
    stderr: bytes
    exit: Exited
    lost: int  # bytes that are in neither, because there were too many

    @property
    def exit_code(self) -> int:
        """Of the command; 128 + n for signal n."""
        return self.exit.exit_code

    @property
    def denials(self) -> List[Denial]:
        """What was refused to it."""
        return self.exit.denials

    @property
    def text(self) -> str:
        """`stdout` as text; what is no UTF-8 is replaced."""
        return self.stdout.decode(errors="replace")

    def check(self) -> "Result":
        """Itself, or CommandFailed when the command did not end with 0."""
        if self.exit.exit_code != 0:
            raise CommandFailed(self)
        return self


class Collector:
    """Makes a Result of events, of at most `limit` bytes of each stream: the first ones."""

    def __init__(self, limit: int) -> None:
        self._parts: Dict[str, List[bytes]] = {"stdout": [], "stderr": []}
        self._room = {"stdout": limit, "stderr": limit}
        self._lost = 0

    def add(self, event: Event) -> None:
        if isinstance(event, Gap):
            self._lost += event.bytes
        elif isinstance(event, Output):
            stream = "stderr" if event.stream == "stderr" else "stdout"
            taken = event.data[:self._room[stream]]
            self._room[stream] -= len(taken)
            self._lost += len(event.data) - len(taken)
            self._parts[stream].append(taken)

    def result(self, exited: Exited) -> Result:
        return Result(b"".join(self._parts["stdout"]), b"".join(self._parts["stderr"]), exited, self._lost)


class _Lines:
    """Of one stream: its whole lines that nobody has taken yet, and the beginning of another."""

    def __init__(self) -> None:
        self.whole: Deque[str] = collections.deque()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest: List[str] = []
        self._held = 0  # characters in it

    def _take_rest(self) -> str:
        text, self._rest, self._held = "".join(self._rest), [], 0
        return text

    def add(self, data: bytes) -> None:
        *whole, rest = self._decoder.decode(data).split("\n")
        for text in whole:
            line = self._take_rest() + text
            self.whole.append(line[:-1] if line.endswith("\r") else line)
        self._rest.append(rest)
        self._held += len(rest)
        if self._held > LINE_MAX:
            self.whole.append(self._take_rest())

    def end(self) -> None:
        last = self._take_rest() + self._decoder.decode(b"", True)
        if last:
            self.whole.append(last)


class Process:
    """A running command, made by Client.start(). `async with` ends it at the end of the block, with all that
    it started; `async for` gives its events."""

    def __init__(self, client: "Client", process_id: str) -> None:
        self.id = process_id  # for take_up()
        self.sandbox_type = "none"  # "none" or "linuxSeccomp"
        self.warnings: List[str] = []  # for people: limits that do not hold as they are meant
        self.exit: Optional[Exited] = None  # how it ended
        self.is_closed = False  # nothing holds its output open any more
        self._has_started = False  # as far as it is known here
        self._client = client
        self._next_seq = 1
        self._next_offset = 0
        self._early: Dict[int, Dict[str, Any]] = {}  # came before those in front of them
        self._events: "asyncio.Queue[Optional[Event]]" = asyncio.Queue()
        self._unread = 0  # bytes in it
        self._gap = 0  # bytes behind it that are gone
        self._has_exited = asyncio.Event()
        self._lines: Dict[str, _Lines] = {}  # by stream
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
        if offset is not None:
            self._gap += max(0, offset - self._next_offset)
            self._next_offset = offset + len(data)
        if self._unread + len(data) + OF_EACH > UNREAD_MAX:
            self._gap += len(data)  # rather than the memory of this program
            return
        self._unread += len(data) + OF_EACH
        self._put(Output(chunk["stream"], data, offset))

    def _put(self, event: Event) -> None:
        if self._gap:
            self._events.put_nowait(Gap(self._gap))
            self._gap = 0
        self._events.put_nowait(event)

    def _add_exit(self, exited: Exited) -> None:
        if self.exit is None:
            self.exit = exited
            self._has_exited.set()
            self._put(exited)

    def _add_closed(self) -> None:
        if not self.is_closed:
            self.is_closed = True
            self._client._forget(self)
            self._put(Closed())
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

    async def __aenter__(self) -> "Process":
        return self

    async def __aexit__(self, *_: object) -> None:
        if not self.is_closed and self._failure is None:
            with contextlib.suppress(Disconnected):
                await self.terminate()

    def __aiter__(self) -> AsyncGenerator[Event, None]:
        return self.events()

    async def events(self) -> AsyncGenerator[Event, None]:
        """Everything that happens, in order, until it is closed. For one reader."""
        while True:
            event = await self._events.get()
            if event is None:
                self._events.put_nowait(None)
                if self._failure is not None and not self.is_closed:
                    raise self._failure
                return
            if isinstance(event, Output):
                self._unread -= len(event.data) + OF_EACH
            yield event

    async def output(self, stream: Optional[str] = None) -> AsyncGenerator[bytes, None]:
        """The bytes of "stdout", "stderr" or both, as they come. For one reader, as events()."""
        async for event in self.events():
            if isinstance(event, Output) and stream in (None, event.stream):
                yield event.data

    async def lines(self, stream: Optional[str] = None) -> AsyncGenerator[str, None]:
        """Whole lines of "stdout", "stderr" or both, without their ends, as text; what is no UTF-8 is
        replaced, and a line of more than 1 MiB comes in pieces. For one reader, as events(); a loop that was
        left may be begun again, with the next line."""
        def begun() -> List[_Lines]:
            return [lines for name, lines in self._lines.items() if stream in (None, name)]

        for lines in begun():
            while lines.whole:
                yield lines.whole.popleft()
        async for event in self.events():
            if not isinstance(event, Output) or stream not in (None, event.stream):
                continue
            lines = self._lines.setdefault(event.stream, _Lines())
            lines.add(event.data)
            while lines.whole:
                yield lines.whole.popleft()
        for lines in begun():
            lines.end()
            while lines.whole:
                yield lines.whole.popleft()

    def timeline(self, after: int = 0) -> AsyncGenerator[Dict[str, Any], None]:
        """Client.timeline() of this process."""
        return self._client.timeline(self.id, after)

    async def communicate(self, data: Optional[Data] = None, *, max_output: int = OUTPUT_MAX) -> Result:
        """Writes `data` and ends the input, and collects output until it is closed: of each stream the
        first `max_output` bytes."""
        return await self._collect(data, Collector(max_output))

    async def _collect(self, data: Optional[Data], collector: Collector) -> Result:
        if data is not None:
            try:
                await self.write(data)
                await self.close_stdin()
            except InputClosed:
                pass  # it does not want that much
        async for event in self.events():
            collector.add(event)
        return collector.result(await self.wait())

    async def wait(self) -> Exited:
        """How the command ended. Its output may go on, if it left something behind."""
        await self._has_exited.wait()
        if self.exit is None:
            raise self._failure or Disconnected("the connection is gone")
        return self.exit

    async def write(self, data: Data) -> None:
        """Sends input: of a terminal, or of one that was started with `stdin`; InputClosed when it takes
        none. Written once, also when the connection is lost meanwhile."""
        self._writes += 1
        params = {"processId": self.id, "writeId": str(self._writes), "chunk": to_base64(data)}
        try:
            answer = await self._write(params)
        except Disconnected:
            answer = await self._write(params)
        if answer["status"] != "accepted":
            raise InputClosed(f"writing to the command: {answer['status']}")

    async def _write(self, params: Dict[str, Any]) -> Dict[str, Any]:
        try:
            return await self._client.call("process/write", params)
        except RpcError as error:
            if error.code == RpcError.INTERNAL:
                raise InputClosed("writing to the command: it has ended") from error
            raise

    async def close_stdin(self) -> bool:
        """Ends its input. False: it had none, or it was closed before."""
        return bool((await self._call("process/closeStdin")).get("closed"))

    async def interrupt(self) -> None:
        """SIGINT, as by Ctrl-C."""
        await self._call("process/signal", signal="interrupt")

    async def terminate(self, grace: float = 0) -> bool:
        """Ends it with all that it started; after SIGTERM and `grace` seconds if there are any. Returns
        whether it was still running."""
        more = {"graceMs": round(grace * 1000)} if grace else {}
        return bool((await self._call("process/terminate", **more))["running"])

    async def resize(self, rows: int, columns: int) -> None:
        """Of its terminal."""
        await self._call("process/resize", rows=rows, columns=columns)

    async def _call(self, method: str, **params: Any) -> Dict[str, Any]:
        return await self._client.call(method, {"processId": self.id, **params})
