"""The same without asyncio and without threads: every call runs the event loop until it is done.

    with cordon_client.sync.connect("ws://127.0.0.1:4711") as client:
        process = client.start(["make"], "/work")
        for event in process.events(): ...
        print(process.wait().exit_code, client.files.read("/work/log"))

What is awaited in cordon_client is called here, what is iterated with `async for` is iterated with
`for`; names, parameters and results are the same. Nothing is received while no call runs; it waits in
the socket. A Client belongs to one thread.
"""
from __future__ import annotations

import asyncio
import inspect
from typing import Any, Iterator, Optional, Sequence

from . import client as _client
from .files import Files as _Files
from .files import Handle as _Handle
from .process import Process as _Process
from .sessions import Sessions as _Sessions


class Blocking:
    """Stands for an object of cordon_client."""

    def __init__(self, loop: asyncio.AbstractEventLoop, inner: Any) -> None:
        self._loop, self._inner = loop, inner

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._inner, name)
        if isinstance(value, (_Files, _Sessions)):
            return Blocking(self._loop, value)
        if not callable(value) or inspect.isclass(value):
            return value
        return lambda *args, **kwargs: self._run(value(*args, **kwargs))

    def _run(self, value: Any) -> Any:
        if inspect.isasyncgen(value):
            return self._iterate(value)
        if inspect.iscoroutine(value):
            value = self._loop.run_until_complete(value)
        if isinstance(value, (_Files, _Handle, _Process)):
            return Blocking(self._loop, value)
        return value

    def _iterate(self, generator: Any) -> Iterator[Any]:
        while True:
            try:
                yield self._loop.run_until_complete(generator.__anext__())
            except StopAsyncIteration:
                return

    def __enter__(self) -> "Blocking":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        if isinstance(self._inner, _client.Client):
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()


def _open(work: Any, loop: asyncio.AbstractEventLoop) -> Blocking:
    try:
        return Blocking(loop, loop.run_until_complete(work))
    except BaseException:
        loop.close()
        raise


def connect(url: str, *, token: Optional[str] = None, name: str = "cordon-client",
            reconnect_for: float = 45.0, resume: Optional[str] = None) -> Blocking:
    """As cordon_client.connect()."""
    return _open(_client.connect(url, token=token, name=name, reconnect_for=reconnect_for,
                                 resume=resume), asyncio.new_event_loop())


def spawn(argv: Sequence[str], *, name: str = "cordon-client") -> Blocking:
    """As cordon_client.spawn()."""
    return _open(_client.spawn(argv, name=name), asyncio.new_event_loop())
