"""Change layers (docs/layers.md), which only Cordon's server has: what commands write is kept apart from the real files, to be looked
at, accepted, dropped and taken back, file by file.

    async with client.layers.open("agent", "/work") as layer:
        await client.run("make fix", "/work", layer=layer)
        changes = await layer.changes()
        await layer.accept([one for one in changes if not one.marks])

What one call shows the next one takes: a Change that is accepted or dropped has to be what it was when it was listed.
"""
from __future__ import annotations

import base64
import dataclasses
import os
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Literal, Optional, Sequence, Union

from . import sandbox as boxes
from .errors import Disconnected, InvalidRequest
from .opening import Opening
from .sandbox import AnySandbox, Path, to_uri

if TYPE_CHECKING:
    from .client import Client

PAGE = 1000  # changes of one layer/changes
BLOCK = 1 << 20  # bytes of one layer/read


@dataclasses.dataclass(frozen=True)
class Change:
    """What a layer would do to one path of the real files."""

    path: str  # absolute
    kind: Literal["A", "M", "D", "R", "T", "m"]  # added, modified, deleted, renamed, of another type, permissions
    # why somebody should look first: "executable", "leaves" (a link out of the workspace), "protected", "runs-later",
    # "set-id", "special" (no file: cannot be accepted), "conflict" (the real one was changed meanwhile)
    marks: List[str]
    size: int
    mode: int
    is_binary: bool
    step: int  # that wrote it last
    stamp: str  # what it is in the layer
    moved_from: Optional[str] = None
    run_by: Optional[str] = None  # who runs or obeys it, with "runs-later"


@dataclasses.dataclass(frozen=True)
class Changes:
    """What Layer.changes() found; `for` gives each Change, by path."""

    items: List[Change]
    counts: Dict[str, int]  # added, modified, deleted, renamed, other, marked, conflicts
    state: Literal["quiet", "alive", "orphaned", "suspect"]
    problems: List[str]  # what could not be looked at

    def __iter__(self) -> Iterator[Change]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)


@dataclasses.dataclass(frozen=True)
class Diff:
    """How one path differs."""

    change: Change
    unified: Optional[str]  # as `git diff` writes it; None: it is no text, or too large
    is_truncated: bool
    old_size: int
    new_size: int
    old_sha256: Optional[str]  # of what is no text
    new_sha256: Optional[str]


@dataclasses.dataclass(frozen=True)
class Left:
    """A path that stays as it is."""

    path: str
    reason: str  # "conflict", "marked", "changed", "special", "suspect", "busy", "failed", "later"
    detail: Optional[str]  # ends in the remedy


@dataclasses.dataclass(frozen=True)
class Applied:
    """What Layer.accept(), drop() and undo() did."""

    done: List[str]
    left: List[Left]
    accept_id: Optional[int]  # for undo()


# What a call is about: a path with what lies below it, a Change, or several.
What = Union[Path, Change, Sequence[Union[Path, Change]], None]
# What commands write into: a Layer, or the id or name of one. None: the real files.
AnyLayer = Union["Layer", str, None]


def to_json(layer: AnyLayer) -> Optional[Dict[str, Any]]:
    if layer is None:
        return None
    return {"layerId": layer if isinstance(layer, str) else layer.id}


def _text(given: Dict[str, Any], key: str) -> Optional[str]:
    encoded = given.get(f"{key}Base64")
    return given.get(key) if encoded is None else os.fsdecode(base64.b64decode(encoded))


def _change(given: Dict[str, Any]) -> Change:
    return Change(_text(given, "path") or "", given["kind"], given["marks"], given["size"], given["mode"], given["binary"],
                  given["step"], given["stamp"], _text(given, "from"), given.get("runBy"))


def _applied(given: Dict[str, Any]) -> Applied:
    left = [Left(_text(one, "path") or "", one["reason"], one.get("detail")) for one in given["left"]]
    encoded = given.get("doneBase64")
    done = given["done"] if encoded is None else [os.fsdecode(base64.b64decode(path)) for path in encoded]
    return Applied(done, left, given.get("acceptId"))


class Layers:
    """Client.layers."""

    def __init__(self, client: "Client") -> None:
        self._client = client

    def open(self, name: Optional[str] = None, cwd: Optional[Path] = None, *, sandbox: AnySandbox = None,
             direct: Sequence[Path] = (), git: bool = False, max_bytes: int = 0) -> "Opening[Layer]":
        """The layer of this name, or id, which is made if there is none; without a name a new one. It lies over what a
        sandbox lets commands in `cwd` write, and what is run in it has that sandbox and workspace when it says none. `direct`: folders that are left
        out. `git`: git may commit in it. `async with` lets go of it at the end of the block; it stays on the disk."""
        return Opening(self._open(name, cwd, sandbox, {
            "direct": [self._client._uri(path) for path in direct], "git": git, "maxBytes": max_bytes}))

    async def _open(self, name: Optional[str], cwd: Optional[Path], sandbox: AnySandbox, more: Dict[str, Any]) -> "Layer":
        where = self._client._uri(cwd)
        given = boxes.with_workspace(boxes.to_json(self._client.sandbox if sandbox is None else sandbox), where)
        if name is not None:
            try:
                return Layer(self._client, await self._client.call("layer/info", {"layerId": name}), given)
            except InvalidRequest as error:
                if error.reason != "no-layer":
                    raise
        return Layer(self._client, await self._client.call("layer/create", {
            "name": name, "cwd": where, "sandbox": given, **more}), given)

    async def list(self, cwd: Optional[Path] = None, *, sizes: bool = False) -> "List[Dict[str, Any]]":
        """All layers of the server's user, or those that lie over a folder, as layer/list tells them; the one used last
        comes first. `sizes`: with what they take up."""
        where = None if cwd is None else self._client._uri(cwd)
        return list((await self._client.call("layer/list", {"cwd": where, "sizes": sizes}))["layers"])


class Layer:
    """A change layer, made by Layers.open()."""

    def __init__(self, client: "Client", told: Dict[str, Any], sandbox: AnySandbox = None) -> None:
        self.id: str = told["layerId"]
        self.name: Optional[str] = told["name"]
        self.roots: List[str] = [root["path"] for root in told["roots"] if not root["direct"]]  # what it lies over
        self.warnings: List[str] = told.get("warnings", [])  # for people
        self._client, self._sandbox = client, sandbox

    async def _call(self, method: str, **params: Any) -> Dict[str, Any]:
        return await self._client.call(f"layer/{method}", {"layerId": self.id, **params})

    def _uri(self, path: Path) -> str:
        if not os.fspath(path):  # which would be a whole folder
            raise ValueError("a path that is empty")
        return self._client._uri(path)

    def _meant(self, what: What, everything: bool) -> Dict[str, Any]:
        if (what is None) != everything:
            raise ValueError("either what is meant is named, or all=True is said")
        if what is None:
            return {"all": True}
        named: Sequence[Union[Path, Change]] = [what] if isinstance(what, (str, os.PathLike, Change)) else what
        shown = [one for one in named if isinstance(one, Change)]
        return {"paths": [to_uri(one.path) if isinstance(one, Change) else self._uri(one) for one in named],
                "expect": {**{to_uri(one.moved_from): "" for one in shown if one.moved_from},
                           **{to_uri(one.path): one.stamp for one in shown}}}

    async def changes(self, paths: Optional[Sequence[Path]] = None, *, step: Optional[int] = None) -> Changes:
        """What it would change: all, or of these paths and what lies below them; or what one step changed, against what was
        there before. Also while commands run in it."""
        params = {"paths": None if paths is None else [self._uri(path) for path in paths], "stepId": step, "limit": PAGE}
        page = await self._call("changes", **params)
        items = [_change(one) for one in page["changes"]]
        while page.get("next"):
            page = await self._call("changes", **params, after=page["next"])
            items += [_change(one) for one in page["changes"]]
        return Changes(items, page["counts"], page["state"], page["problems"])

    async def diff(self, path: Union[Path, Change], *, step: Optional[int] = None, context: int = 3,
                   max_bytes: int = 1 << 20) -> Diff:
        """How one path differs from the real one, with so many lines around each difference."""
        where = to_uri(path.path) if isinstance(path, Change) else self._uri(path)
        told = await self._call("diff", path=where, stepId=step, context=context, maxBytes=max_bytes)
        return Diff(_change(told["change"]), told["unified"], told["truncated"], told["oldSize"], told["newSize"],
                    told["oldSha256"], told["newSha256"])

    async def read(self, path: Union[Path, Change], side: Literal["layer", "real"] = "layer") -> bytes:
        """What is in a changed file, or what was; of a link its text."""
        where = to_uri(path.path) if isinstance(path, Change) else self._uri(path)
        data = b""
        while True:
            page = await self._call("read", path=where, side=side, offset=len(data), limit=BLOCK)
            data += base64.b64decode(page["chunk"])
            if page["eof"]:
                return data

    async def accept(self, what: What = None, *, all: bool = False, force: bool = False, marked: bool = False,
                     dry_run: bool = False) -> Applied:
        """Takes changes into the real files; what was there is kept for undo(). What was changed outside meanwhile is left,
        but for `force`; and of what is marked only what is named by its own path, but for `marked`."""
        return _applied(await self._call("accept", **self._meant(what, all), force=force, marked=marked, dryRun=dry_run))

    async def accept_text(self, what: Union[Path, Change], text: str) -> Applied:
        """Takes this text in place of a changed file's: a part of its differences. The rest stays in the layer."""
        return _applied(await self._call("accept", **self._meant(what, False), text=text))

    async def drop(self, what: What = None, *, all: bool = False, step: Optional[int] = None,
                   dry_run: bool = False) -> Applied:
        """Throws changes away, for good; or what one step wrote. While no command runs in it."""
        meant = self._meant(what, all) if step is None else {"stepId": step}
        return _applied(await self._call("drop", **meant, dryRun=dry_run))

    async def undo(self, accept_id: Optional[int] = None, paths: Optional[Sequence[Path]] = None, *, force: bool = False,
                   dry_run: bool = False) -> Applied:
        """Takes back what accept() did, the last time by default: the real files are what they were, and the changes in the
        layer again. What somebody changed since is left."""
        return _applied(await self._call("undo", acceptId=accept_id, force=force, dryRun=dry_run,
                                         paths=None if paths is None else [self._uri(path) for path in paths]))

    async def refresh(self) -> bool:
        """Lets commands that run in it see what others changed in the real files meanwhile. Whether any does."""
        return bool((await self._call("refresh"))["alive"])

    async def info(self) -> Dict[str, Any]:
        """Its state, its steps and what was accepted, as layer/info tells it."""
        return await self._call("info")

    async def close(self, *, keep: bool = True) -> None:
        """The server lets go of it, so that others can have it: at once, or when what runs in it has ended. Without `keep` it
        is removed, with all that is in it."""
        await self._call("close", keep=keep)

    async def __aenter__(self) -> "Layer":
        return self

    async def __aexit__(self, *_: object) -> None:
        try:
            await self.close()
        except (Disconnected, InvalidRequest):
            pass  # it is gone
