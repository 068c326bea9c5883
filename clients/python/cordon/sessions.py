"""The calls of a model (session/...), which only Cordon's server has: shell text in, and the text
that a model is to see out."""
from __future__ import annotations

import base64
import contextlib
import dataclasses
from typing import TYPE_CHECKING, Any, AsyncGenerator, Dict, List, Mapping, Optional, Sequence, Union

from .errors import Disconnected, InvalidRequest
from .layers import AnyLayer
from .layers import to_json as layer_to_json
from .opening import Opening
from .process import Denial
from .sandbox import AnySandbox, Path

if TYPE_CHECKING:
    from .client import Client

# What else ends the wait of a call: a text in the output; {"text": ...}, {"quietMs": ...} or {"bytes": ...}.
Until = Union[str, Mapping[str, Any]]


@dataclasses.dataclass(frozen=True)
class Answer:
    """What a call of a model gives."""

    text: str  # for the model
    reason: str  # "ended", "yielded", "met"
    session_id: Optional[int]  # None: the command has ended
    exit_code: Optional[int]
    signal: Optional[str]
    output: bytes
    output_bytes: int
    omitted_bytes: int
    notes: List[str]
    denials: List[Denial] = dataclasses.field(default_factory=list)
    process_id: Optional[str] = None  # with `trace`: for Client.timeline(), also when it has ended
    # with `layer`, at the end: what its step changed so far: layerId, stepId, shared, added, modified, deleted
    changes: Optional[Dict[str, Any]] = None


@dataclasses.dataclass(frozen=True)
class Screen:
    """What a terminal shows."""

    lines: List[str]
    rows: int
    columns: int
    cursor_row: int
    cursor_column: int
    title: str


def _answer(result: Mapping[str, Any]) -> Answer:
    return Answer(result["text"], result["reason"], result["sessionId"], result["exitCode"],
                  result["signal"], base64.b64decode(result["output"]), result["outputBytes"],
                  result["omittedBytes"], result["notes"], result.get("denials", []),
                  result.get("processId"), result.get("changes"))


def _given(**params: Any) -> Dict[str, Any]:
    return {name: value for name, value in params.items() if value is not None}


def _ms(seconds: Optional[float]) -> Optional[int]:
    return None if seconds is None else round(seconds * 1000)


def _until(until: Optional[Until]) -> Optional[Mapping[str, Any]]:
    return {"text": until} if isinstance(until, str) else until


class Sessions:
    """Client.sessions: by number, as the tools of a model have them, or as a Session by start(). Times are
    seconds."""

    def __init__(self, client: "Client") -> None:
        self._client = client

    async def exec(self, cmd: str, cwd: Optional[Path] = None, *, sandbox: AnySandbox = None,
                   tty: bool = False, stdin: bool = False, input: Optional[str] = None, screen: bool = False,
                   yield_time: Optional[float] = None, max_output_tokens: Optional[int] = None,
                   env: Optional[Mapping[str, str]] = None, shell: Optional[str] = None,
                   login: bool = True, until: Optional[Until] = None, trace: Sequence[str] = (),
                   layer: AnyLayer = None) -> Answer:
        """Runs shell text until it ends, the time is up (10 seconds), or what `until` says has come. A
        command that goes on is a session with a number, also when the call is cancelled: then nothing of
        its output is lost. `input` is its whole input; with `stdin` it has one for write(). `env` is laid over the server's environment
        without secrets; `trace` and `layer` as of Client.start()."""
        return _answer(await self._client.call("session/exec", _given(
            cmd=cmd, cwd=self._client._uri(cwd), sandbox=self._client._sandbox(sandbox, layer), layer=layer_to_json(layer), tty=tty,
            pipeStdin=stdin, stdin=input, screen=screen, yieldTimeMs=_ms(yield_time), maxOutputTokens=max_output_tokens,
            env=None if env is None else dict(env), shell=shell, login=login, until=_until(until),
            trace=list(trace) or None)))

    def start(self, cmd: str, cwd: Optional[Path] = None, *, sandbox: AnySandbox = None,
              tty: bool = True, stdin: bool = False, screen: bool = True,
              yield_time: Optional[float] = None, max_output_tokens: Optional[int] = None,
              env: Optional[Mapping[str, str]] = None, shell: Optional[str] = None,
              login: bool = True, until: Optional[Until] = None,
              trace: Sequence[str] = (), layer: AnyLayer = None) -> "Opening[Session]":
        """As exec(), on a terminal that can be looked at; `async with` ends the session at the end of the
        block."""
        return Opening(self._start(self.exec(
            cmd, cwd, sandbox=sandbox, tty=tty, stdin=stdin, screen=screen and tty, yield_time=yield_time,
            max_output_tokens=max_output_tokens, env=env, shell=shell, login=login, until=until, trace=trace,
            layer=layer)))

    async def _start(self, answer: Any) -> "Session":
        return Session(self, await answer)

    async def write(self, session_id: int, chars: str = "", *, close: bool = False,
                    yield_time: Optional[float] = None, max_output_tokens: Optional[int] = None,
                    until: Optional[Until] = None) -> Answer:
        """Sends characters (U+0003 alone interrupts), or none, and waits a little for what comes; `close`
        ends the input behind them."""
        return _answer(await self._client.call("session/write", _given(
            sessionId=session_id, chars=chars, close=close, yieldTimeMs=_ms(yield_time),
            maxOutputTokens=max_output_tokens, until=_until(until))))

    async def wait(self, session_id: int, *, yield_time: Optional[float] = None,
                   max_output_tokens: Optional[int] = None, until: Optional[Until] = None) -> Answer:
        """Waits for its end, or for what `until` says; at most 300 seconds."""
        return _answer(await self._client.call("session/wait", _given(
            sessionId=session_id, yieldTimeMs=_ms(yield_time), maxOutputTokens=max_output_tokens,
            until=_until(until))))

    async def terminate(self, session_id: int, grace: Optional[float] = None) -> Answer:
        """Ends it with all that it started, `grace` seconds (2) after SIGTERM; its last output."""
        return _answer(await self._client.call("session/terminate", _given(
            sessionId=session_id, graceMs=_ms(grace))))

    async def screen(self, session_id: int, scrollback: int = 0) -> Screen:
        """What its terminal shows, behind `scrollback` lines that went off at the top. Needs `screen` at
        its start."""
        seen = await self._client.call("session/screen", {"sessionId": session_id,
                                                          "scrollback": scrollback})
        return Screen(seen["lines"], seen["rows"], seen["columns"], seen["cursorRow"],
                      seen["cursorColumn"], seen["title"])

    async def list(self) -> "List[Dict[str, Any]]":
        """Those whose commands still run."""
        return list((await self._client.call("session/list", {}))["sessions"])


class Session:
    """One command of a model, made by Sessions.start(). `answer` is the newest; `async for` gives this
    one and all that come until the end."""

    def __init__(self, sessions: Sessions, answer: Answer) -> None:
        self.answer = answer
        self._sessions, self._id = sessions, answer.session_id

    @property
    def is_running(self) -> bool:
        """As far as the newest answer tells."""
        return self._id is not None

    def _running(self) -> int:
        if self._id is None:
            raise InvalidRequest(InvalidRequest.INVALID_REQUEST, "the session has ended")
        return self._id

    def _take(self, answer: Answer) -> Answer:
        self.answer, self._id = answer, answer.session_id
        return answer

    async def write(self, chars: str = "", *, close: bool = False, yield_time: Optional[float] = None,
                    max_output_tokens: Optional[int] = None, until: Optional[Until] = None) -> Answer:
        """As Sessions.write()."""
        return self._take(await self._sessions.write(
            self._running(), chars, close=close, yield_time=yield_time,
            max_output_tokens=max_output_tokens, until=until))

    async def wait(self, *, yield_time: Optional[float] = None, max_output_tokens: Optional[int] = None,
                   until: Optional[Until] = None) -> Answer:
        """As Sessions.wait(); when it has ended, the last answer again."""
        if self._id is None:
            return self.answer
        return self._take(await self._sessions.wait(
            self._id, yield_time=yield_time, max_output_tokens=max_output_tokens, until=until))

    async def screen(self, scrollback: int = 0) -> Screen:
        """As Sessions.screen()."""
        return await self._sessions.screen(self._running(), scrollback)

    async def terminate(self, grace: Optional[float] = None) -> Answer:
        """As Sessions.terminate(); when it has ended, the last answer again."""
        if self._id is None:
            return self.answer
        return self._take(await self._sessions.terminate(self._id, grace))

    async def __aenter__(self) -> "Session":
        return self

    async def __aexit__(self, *_: object) -> None:
        with contextlib.suppress(Disconnected, InvalidRequest):  # gone, or just ended
            await self.terminate(0)

    async def __aiter__(self) -> AsyncGenerator[Answer, None]:
        yield self.answer
        while self._id is not None:
            answer = await self.wait(until={"bytes": 1})
            if answer.output_bytes or self._id is None:
                yield answer
