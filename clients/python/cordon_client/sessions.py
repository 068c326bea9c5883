"""The calls of a model (session/...), which only Cordon's server has: shell text in, and the text
that a model is to see out."""
from __future__ import annotations

import base64
import dataclasses
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Sequence

from . import sandbox as boxes
from .sandbox import AnySandbox, Path, to_uri

if TYPE_CHECKING:
    from .client import Client


@dataclasses.dataclass(frozen=True)
class Answer:
    text: str  # for the model
    reason: str  # "ended", "yielded", "met"
    session_id: Optional[int]  # None: the command has ended
    exit_code: Optional[int]
    signal: Optional[str]
    output: bytes
    output_bytes: int
    omitted_bytes: int
    notes: List[str]
    denials: List[Dict[str, Any]] = dataclasses.field(default_factory=list)
    process_id: Optional[str] = None  # with `trace`: for Client.timeline(), also when it has ended


@dataclasses.dataclass(frozen=True)
class Screen:
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
                  result.get("processId"))


def _given(**params: Any) -> Dict[str, Any]:
    return {name: value for name, value in params.items() if value is not None}


class Sessions:
    """Client.sessions. Times are seconds; `until` is {"text": ...}, {"quietMs": ...} or
    {"bytes": ...}."""

    def __init__(self, client: "Client") -> None:
        self._client = client

    async def exec(self, cmd: str, cwd: Path, *, sandbox: AnySandbox = None, tty: bool = False,
                   stdin: bool = False, screen: bool = False, yield_time: Optional[float] = None,
                   max_output_tokens: Optional[int] = None, env: Optional[Mapping[str, str]] = None,
                   shell: Optional[str] = None, login: bool = True,
                   until: Optional[Dict[str, Any]] = None, trace: Sequence[str] = ()) -> Answer:
        """Runs shell text until it ends or the time is up. `trace` as of Client.start()."""
        return _answer(await self._client.call("session/exec", _given(
            cmd=cmd, cwd=to_uri(cwd), sandbox=boxes.to_json(sandbox), tty=tty, pipeStdin=stdin,
            screen=screen, yieldTimeMs=_ms(yield_time), maxOutputTokens=max_output_tokens,
            env=None if env is None else dict(env), shell=shell, login=login, until=until,
            trace=list(trace) or None)))

    async def write(self, session_id: int, chars: str = "", *, close: bool = False,
                    yield_time: Optional[float] = None, max_output_tokens: Optional[int] = None,
                    until: Optional[Dict[str, Any]] = None) -> Answer:
        return _answer(await self._client.call("session/write", _given(
            sessionId=session_id, chars=chars, close=close, yieldTimeMs=_ms(yield_time),
            maxOutputTokens=max_output_tokens, until=until)))

    async def wait(self, session_id: int, *, yield_time: Optional[float] = None,
                   max_output_tokens: Optional[int] = None,
                   until: Optional[Dict[str, Any]] = None) -> Answer:
        return _answer(await self._client.call("session/wait", _given(
            sessionId=session_id, yieldTimeMs=_ms(yield_time), maxOutputTokens=max_output_tokens,
            until=until)))

    async def terminate(self, session_id: int, grace: Optional[float] = None) -> Answer:
        return _answer(await self._client.call("session/terminate", _given(
            sessionId=session_id, graceMs=_ms(grace))))

    async def screen(self, session_id: int, scrollback: int = 0) -> Screen:
        seen = await self._client.call("session/screen", {"sessionId": session_id,
                                                          "scrollback": scrollback})
        return Screen(seen["lines"], seen["rows"], seen["columns"], seen["cursorRow"],
                      seen["cursorColumn"], seen["title"])

    async def list(self) -> "List[Dict[str, Any]]":
        return list((await self._client.call("session/list", {}))["sessions"])


def _ms(seconds: Optional[float]) -> Optional[int]:
    return None if seconds is None else round(seconds * 1000)
