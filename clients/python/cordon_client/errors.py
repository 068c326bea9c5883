"""What goes wrong."""
from __future__ import annotations

from typing import Any


class Error(Exception):
    """Everything that this package raises."""


class RpcError(Error):
    """The server's answer to a call is an error."""

    NOT_FOUND = -32004
    INVALID_REQUEST = -32600
    UNKNOWN_METHOD = -32601
    INVALID_PARAMS = -32602
    INTERNAL = -32603
    SESSION_ATTACHED = -32010

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(f"{message} ({code})")
        self.code, self.message, self.data = code, message, data


class Disconnected(Error):
    """The connection is gone. A call that was on its way may have been carried out or not."""
