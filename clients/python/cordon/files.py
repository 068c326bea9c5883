"""Files on the server's host. Paths are absolute (or file URIs), or count from the server's folder, which
is the workspace if the sandbox names none. A call is carried out inside of the sandbox, and the kernel decides what it may."""
from __future__ import annotations

import base64
import dataclasses
import itertools
import os
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Sequence
from urllib.parse import unquote

from . import sandbox as boxes
from .errors import InvalidRequest, NotFound, SystemRefused, rpc_error
from .layers import AnyLayer
from .layers import to_json as layer_to_json
from .opening import Opening
from .process import Data, to_base64
from .sandbox import AnySandbox, Path

if TYPE_CHECKING:
    from .client import Client

BLOCK = 1 << 20  # bytes of fs/readBlock and fs/writeBlock


def to_path(uri: str) -> str:
    return unquote(uri[len("file://"):], errors="surrogateescape")


@dataclasses.dataclass(frozen=True)
class Metadata:
    """What Files.metadata() gives."""

    is_directory: bool
    is_file: bool
    is_symlink: bool
    size: int
    created_at_ms: int  # 0: the file system does not know
    modified_at_ms: int


@dataclasses.dataclass(frozen=True)
class Entry:
    """One name in a folder."""

    name: str
    is_directory: bool
    is_file: bool


@dataclasses.dataclass(frozen=True)
class Walk:
    """What Files.walk() found."""

    directories: List[str]
    files: List[str]
    errors: Dict[str, str]  # by path
    truncated: bool


class Handle:
    """An open file, made by Files.open(). Ends with the connection."""

    def __init__(self, client: "Client", handle_id: str) -> None:
        self._client, self._id = client, handle_id

    async def read(self, offset: int, size: int = BLOCK) -> bytes:
        """At most 1 MiB; b"" at the end."""
        answer = await self._client.call("fs/readBlock", {"handleId": self._id, "offset": offset,
                                                          "len": size})
        return base64.b64decode(answer["chunk"])

    async def write(self, offset: int, data: bytes) -> None:
        """At a place."""
        for start in range(0, len(data), BLOCK):
            await self._client.call("fs/writeBlock", {
                "handleId": self._id, "offset": offset + start,
                "chunk": base64.b64encode(data[start:start + BLOCK]).decode()})

    async def close(self) -> None:
        """Ends it."""
        await self._client.call("fs/close", {"handleId": self._id})

    async def __aenter__(self) -> "Handle":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class Files:
    """Client.files, and what Files.inside() gives."""

    _numbers = itertools.count(1)

    def __init__(self, client: "Client", sandbox: AnySandbox = None,
                 follow_symlinks: bool = True, layer: AnyLayer = None) -> None:
        self._client = client
        self._sandbox = sandbox
        self._layer = layer
        self._follow: Dict[str, Any] = {} if follow_symlinks else {"followSymlinks": False}

    def inside(self, sandbox: AnySandbox = None, follow_symlinks: bool = True, *, layer: AnyLayer = None) -> "Files":
        """The same, carried out in a sandbox, or in a change layer; without `follow_symlinks` paths with links in
        them are refused."""
        return Files(self._client, sandbox, follow_symlinks, layer)

    def _uri(self, path: Path) -> str:
        if not os.fspath(path):  # which would be a whole folder, for remove(), too
            raise ValueError("a path that is empty")
        return self._client._uri(path, as_is=True)

    async def _call(self, method: str, **params: Any) -> Dict[str, Any]:
        box = boxes.to_json(self._client._given(self._sandbox, self._layer))
        if self._layer is not None:
            params["layer"] = layer_to_json(self._layer)
        try:
            return await self._client.call(f"fs/{method}", {
                **params, "sandbox": boxes.with_workspace(box, self._client._uri(None))})
        except (InvalidRequest, NotFound, SystemRefused) as error:  # which do not say of what
            names = " to ".join(to_path(params[name]) for name in ("path", "sourcePath", "destinationPath") if name in params)
            raise rpc_error(error.code, f"{names}: {error.message}", error.data) from None

    async def read(self, path: Path) -> bytes:
        """The whole file."""
        answer = await self._call("readFile", path=self._uri(path), **self._follow)
        return base64.b64decode(answer["dataBase64"])

    async def write(self, path: Path, data: Data) -> None:
        """The whole file, which is made or replaced."""
        await self._call("writeFile", path=self._uri(path), dataBase64=to_base64(data), **self._follow)

    async def make_directory(self, path: Path, parents: bool = True) -> None:
        """Makes a folder; with `parents` also those above it, and it may be there."""
        await self._call("createDirectory", path=self._uri(path), recursive=parents, **self._follow)

    async def metadata(self, path: Path) -> Metadata:
        """What is known of a name."""
        answer = await self._call("getMetadata", path=self._uri(path), **self._follow)
        return Metadata(answer["isDirectory"], answer["isFile"], answer["isSymlink"],
                        answer["size"], answer["createdAtMs"], answer["modifiedAtMs"])

    async def real_path(self, path: Path) -> str:
        """The path without links and dots."""
        return to_path((await self._call("canonicalize", path=self._uri(path)))["path"])

    async def list(self, path: Path) -> "List[Entry]":
        """What is in a folder."""
        answer = await self._call("readDirectory", path=self._uri(path))
        return [Entry(entry["fileName"], entry["isDirectory"], entry["isFile"])
                for entry in answer["entries"]]

    async def walk(self, path: Path, max_depth: int = 64, max_directories: int = 10000,
                   max_entries: int = 50000, *, follow_links: bool = False,
                   prune_hidden: bool = False) -> Walk:
        """All that is below a folder, within limits."""
        answer = await self._call("walk", path=self._uri(path), options={
            "maxDepth": max_depth, "maxDirectories": max_directories, "maxEntries": max_entries,
            "followDirectorySymlinks": follow_links, "pruneHiddenDirectories": prune_hidden})
        named: Callable[[str], "List[str]"] = lambda kind: [
            to_path(entry["path"]) for entry in answer["entries"] if entry["kind"] == kind]
        return Walk(named("directory"), named("file"),
                    {to_path(error["path"]): error["message"] for error in answer["errors"]},
                    answer["truncated"])

    async def remove(self, path: Path, recursive: bool = True, *, missing_ok: bool = True) -> None:
        """A file, or a folder with all that is in it."""
        await self._call("remove", path=self._uri(path), recursive=recursive, force=missing_ok,
                         **self._follow)

    async def copy(self, source: Path, destination: Path, recursive: bool = False) -> None:
        """A file, or with `recursive` a folder."""
        await self._call("copy", sourcePath=self._uri(source), destinationPath=self._uri(destination),
                         recursive=recursive)

    def open(self, path: Path, mode: str = "read") -> "Opening[Handle]":
        """`mode`: "read", or "replace" to make or empty it for writing."""
        return Opening(self._open(path, mode))

    async def _open(self, path: Path, mode: str) -> Handle:
        handle = f"h{next(self._numbers)}"
        await self._call("open", handleId=handle, path=self._uri(path), mode=mode)
        return Handle(self._client, handle)

    async def wait_for(self, missing: Sequence[Path]) -> bool:
        """Waits until one of the paths, which are not there, may have appeared. False at once: the
        server cannot watch them, or something is there already."""
        return await self._client._watch([self._uri(path) for path in missing])
