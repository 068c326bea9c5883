"""The same without asyncio.

    with cordon.sync.spawn() as client:
        print(client.run("make test", timeout=60).text)
        with client.start(["make"], "/work") as process:
            for line in process.lines():
                print(line)

What is awaited in `cordon` is called here, what is iterated with `async for` is iterated with `for`;
names, parameters and results are the same (sync.pyi has their types). An event loop runs in a thread of
its own, so questions are answered and connections made anew also while nothing is called, calls may come
from any thread, and a program that has an event loop, such as a notebook, does not mind."""
from __future__ import annotations

import asyncio
import inspect
import threading
from typing import Any, Iterator

from . import client as _client
from .errors import Disconnected as _Disconnected
from .errors import Error as _Error
from .files import Files as _Files
from .files import Handle as _Handle
from .layers import Layer as _Layer
from .layers import Layers as _Layers
from .opening import Opening as _Opening
from .process import Process as _Process
from .sessions import Session as _Session
from .sessions import Sessions as _Sessions

_OBJECTS = (_client.Client, _Files, _Handle, _Layer, _Layers, _Process, _Session, _Sessions)


class _Loop:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="cordon", daemon=True)
        self._thread.start()

    def run(self, work: Any) -> Any:
        if threading.current_thread() is self._thread:
            work.close()
            raise _Error("a call in the event loop of this client would wait for itself",
                         "answer questions with a plain function, which may call, and let on_event only take notes")

        if self.is_over:
            work.close()
            raise _Disconnected("the client was closed")

        async def doing() -> Any:
            return await work
        future = asyncio.run_coroutine_threadsafe(doing(), self._loop)
        try:
            return future.result()
        except BaseException:  # Ctrl-C, too: what was begun is not left alone
            future.cancel()
            raise

    @property
    def is_over(self) -> bool:
        return self._loop.is_closed()

    def end(self) -> None:
        self.run(self._loop.shutdown_asyncgens())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class _Blocking:
    """Stands for an object of the package."""

    def __init__(self, loop: _Loop, inner: Any) -> None:
        self._loop, self._inner = loop, inner

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._inner, name)
        if isinstance(value, _OBJECTS):
            return _Blocking(self._loop, value)
        if not inspect.ismethod(value):
            return value
        if name == "close" and isinstance(self._inner, _client.Client):
            return self._close
        return lambda *args, **kwargs: self._finished(value(*args, **kwargs))

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("_loop", "_inner"):
            super().__setattr__(name, value)
        else:
            setattr(self._inner, name, value)

    def __dir__(self) -> Any:
        return dir(self._inner)

    def _finished(self, value: Any) -> Any:
        if inspect.isasyncgen(value):
            return self._iterate(value)
        if inspect.iscoroutine(value) or isinstance(value, _Opening):
            value = self._loop.run(value)
        return _Blocking(self._loop, value) if isinstance(value, _OBJECTS) else value

    def _iterate(self, generator: Any) -> Iterator[Any]:
        try:
            while True:
                try:
                    value = self._loop.run(generator.__anext__())
                except StopAsyncIteration:
                    return
                yield value
        finally:
            if not self._loop.is_over:
                self._loop.run(generator.aclose())

    def _close(self) -> None:
        if self._loop.is_over:
            return
        try:
            self._loop.run(self._inner.close())
        finally:
            self._loop.end()

    def __iter__(self) -> Iterator[Any]:
        return self._iterate(self._inner.__aiter__())

    def __enter__(self) -> "_Blocking":
        return self

    def __exit__(self, *error: object) -> None:
        if isinstance(self._inner, _client.Client):
            self._close()
        elif not self._loop.is_over:
            self._loop.run(self._inner.__aexit__(*error))


def _open(function: Any, *args: Any, **kwargs: Any) -> _Blocking:
    loop = _Loop()

    async def opening() -> Any:
        return await function(*args, **kwargs)
    try:
        return _Blocking(loop, loop.run(opening()))
    except BaseException:
        loop.end()
        raise


def connect(*args: Any, **kwargs: Any) -> _Blocking:
    """As cordon.connect()."""
    return _open(_client.connect, *args, **kwargs)


def spawn(*args: Any, **kwargs: Any) -> _Blocking:
    """As cordon.spawn()."""
    return _open(_client.spawn, *args, **kwargs)


def run(*args: Any, **kwargs: Any) -> Any:
    """As cordon.run()."""
    loop = _Loop()
    try:
        return loop.run(_client.run(*args, **kwargs))
    finally:
        loop.end()
