"""What goes wrong, each kind a class of its own. All are `Error`, and many know a `remedy`."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, List, Optional, Type

if TYPE_CHECKING:
    from .process import Denial, Result


def printable(text: str) -> str:
    """What a command or a server wrote, for a person's terminal: nothing in it controls that."""
    return "".join(char if char.isprintable() or char == "\n" else "?" for char in text)


class Error(Exception):
    """Everything that this package raises. `remedy`: what would help, where that is known; it is part of
    the text, too, in which nothing controls a terminal."""

    def __init__(self, message: str, remedy: Optional[str] = None) -> None:
        super().__init__(printable(f"{message}: {remedy}" if remedy else message))
        self.message, self.remedy = message, remedy


class ProgramNotFound(Error):
    """There is no `cordon` to start a server with."""


class NotAdmitted(Error):
    """The server does not let us in, or does not prove that it is one of this user's."""


class Disconnected(Error):
    """The connection is gone. A call that was on its way may have been carried out or not."""


class ServerEnded(Disconnected):
    """The server that spawn() started is gone. `status`: its exit status, -N for signal N; `log`: the
    end of what it wrote to its standard error."""

    def __init__(self, status: Optional[int], log: str) -> None:
        how = "" if status is None else f" by signal {-status}" if status < 0 else f" with status {status}"
        super().__init__(f"the server ended{how}" + (f", and said: {log}" if log else ""))
        self.status, self.log = status, log


class TimedOut(Error, TimeoutError):
    """The time that was given is over. `result`: of run(), which has ended the command, what that had
    written until then."""

    def __init__(self, message: str, result: "Optional[Result]" = None) -> None:
        super().__init__(message)
        self.result = result


class CommandFailed(Error):
    """Raised by Result.check(), and by run(check=True): the command did not end with 0. The remedy is
    that of the first thing that its sandbox refused and that mattered."""

    def __init__(self, result: "Result") -> None:
        ended = result.exit
        how = f"was ended by {ended.signal}" if ended.signal else f"ended with {ended.exit_code}"
        last = result.stderr.decode(errors="replace").strip().rpartition("\n")[2][-200:]
        mattered = [one for one in ended.denials if not one.get("aside")]
        super().__init__(f"the command {how}" + (f" ({last})" if last else ""),
                         mattered[0]["remedy"] if mattered else None)
        self.result = result

    @property
    def denials(self) -> "List[Denial]":
        """What was refused to it."""
        return self.result.exit.denials


class InputClosed(Error):
    """Input for a command that takes none: it has ended, or its input was closed or never open."""


class RpcError(Error):
    """The server's answer to a call is an error. `code` is that of the protocol, `data` what came with
    it, `reason` a word for programs, where there is one, and `text` what a model is to see."""

    NOT_FOUND = -32004
    INVALID_REQUEST = -32600
    UNKNOWN_METHOD = -32601
    INVALID_PARAMS = -32602
    INTERNAL = -32603
    SESSION_ATTACHED = -32010

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        self.code, self.data = code, data
        known: Dict[str, Any] = data if isinstance(data, dict) else {}
        self.reason: Optional[str] = known.get("reason")
        self.text: str = known.get("text") or message
        super().__init__(f"{message} ({code})", REMEDIES.get(self.reason or ""))
        self.message = message


class NotFound(RpcError):
    """There is no such file."""


class InvalidRequest(RpcError):
    """Wrong state, an unknown or duplicate id, a file that may not be touched."""


class Forbidden(InvalidRequest):
    """A rule of the server's user forbids the command; the message says which."""


class LimitReached(RpcError):
    """A limit of the server or of its system; `reason` says which."""


class UnknownMethod(RpcError):
    """The server does not know the method: it is older, or not Cordon's."""


class InvalidParams(RpcError):
    """A parameter is wrong; data["path"] is where."""


class SystemRefused(RpcError):
    """The system said no: no such program, directory, profile..."""


class SessionAttached(RpcError):
    """The session to be resumed is another connection's."""


REMEDIES = {
    "input-full": "read its output, or write again when it has read its input",
    "max-processes": "end some, or start the server with a larger --max-processes",
    "max-connections": "close some, or start the server with a larger --max-connections",
    "max-calls": "wait for answers before calling more",
    "max-open-files": "close some handles",
    "max-http-requests": "wait for some to end",
    "stopping": "connect to another server; this one is being stopped",
    "descriptors": "start the server with a larger limit of open files (ulimit -n)",
    "disk-full": "make room on the disk",
    "file-too-large": "write less, or give the server a larger limit (ulimit -f)",
    "memory": "give the machine more memory, or run less at once",
    "system-processes": "raise the limit of processes (ulimit -u), or run less at once",
}

_BY_CODE: Dict[int, Type[RpcError]] = {
    RpcError.NOT_FOUND: NotFound, RpcError.INVALID_REQUEST: InvalidRequest,
    RpcError.UNKNOWN_METHOD: UnknownMethod, RpcError.INVALID_PARAMS: InvalidParams,
    RpcError.INTERNAL: SystemRefused, RpcError.SESSION_ATTACHED: SessionAttached,
}


def rpc_error(code: int, message: str, data: Any) -> RpcError:
    """In the class of its own."""
    reason = data.get("reason") if isinstance(data, dict) else None
    kind = _BY_CODE.get(code, RpcError)
    if reason == "forbidden":
        kind = Forbidden
    elif isinstance(reason, str) and reason in REMEDIES:
        kind = LimitReached
    return kind(code, message, data)
