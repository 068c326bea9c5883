"""What may be awaited, or entered by `async with` at once."""
from __future__ import annotations

from typing import Any, Coroutine, Generator, Generic, Optional, TypeVar

T = TypeVar("T")


class Opening(Coroutine[Any, Any, T], Generic[T]):
    """`await` gives the thing itself, which is then yours to close; `async with` closes it at the end of
    the block."""

    def __init__(self, work: Coroutine[Any, Any, T]) -> None:
        self._work = work
        self._opened: Optional[T] = None

    def __await__(self) -> Generator[Any, None, T]:
        return self._work.__await__()

    def send(self, value: Any) -> Any:
        return self._work.send(value)

    def throw(self, *error: Any) -> Any:
        return self._work.throw(*error)

    def close(self) -> None:
        self._work.close()

    async def __aenter__(self) -> T:
        self._opened = await self._work
        await self._opened.__aenter__()  # type: ignore[attr-defined]
        return self._opened

    async def __aexit__(self, *error: object) -> None:
        await self._opened.__aexit__(*error)  # type: ignore[union-attr]
