"""What a command or a file call may do, as the protocol says it."""
from __future__ import annotations

import dataclasses
import os
import pathlib
from typing import Any, Dict, List, Optional, Sequence, Union

Path = Union[str, "os.PathLike[str]"]


def to_uri(path: Path) -> str:
    """An absolute path as the file URI that goes over the wire; a URI stays."""
    text = os.fspath(path)
    return text if text.startswith("file:") else pathlib.PurePosixPath(text).as_uri()


def _entry(path: Path, access: str) -> Dict[str, Any]:
    text = os.fspath(path)
    if text.startswith(":"):
        return {"path": {"type": "special", "value": {"kind": text[1:]}}, "access": access}
    if any(char in text for char in "*?["):
        return {"path": {"type": "glob_pattern", "pattern": text}, "access": access}
    return {"path": {"type": "path", "path": to_uri(text)}, "access": access}


@dataclasses.dataclass(frozen=True)
class Sandbox:
    """Paths are absolute, or special places: ":root", ":minimal" (what programs need to start),
    ":project_roots" (the workspace), ":tmpdir", ":slash_tmp". In `deny` they may be patterns.
    `watch`: "off", "facts", "ask" (what it refuses waits while the client is asked), "learn"."""

    workspace: Path
    read: Sequence[Path] = (":root",)
    write: Sequence[Path] = (":project_roots", ":slash_tmp", ":tmpdir")
    deny: Sequence[Path] = ()
    network: bool = False
    watch: Optional[str] = None

    @classmethod
    def read_only(cls, workspace: Path, network: bool = False) -> "Sandbox":
        return cls(workspace, write=(), network=network)

    def to_json(self) -> Dict[str, Any]:
        entries: List[Dict[str, Any]] = [_entry(path, "read") for path in self.read]
        entries += [_entry(path, "write") for path in self.write]
        entries += [_entry(path, "deny") for path in self.deny]
        permissions = {"type": "managed", "network": "enabled" if self.network else "restricted",
                       "file_system": {"type": "restricted", "entries": entries}}
        if self.watch is not None:
            permissions["watch"] = self.watch
        return {
            "permissions": permissions,
            "cwd": to_uri(self.workspace), "workspaceRoots": [to_uri(self.workspace)],
            "windowsSandboxLevel": "disabled",
        }


# A Sandbox; the protocol's own object, which may be in the words of `cordon run`, as {"profile": None, "protect":
# ["git"], "judge": "every-exec"} (docs/protocol.md, "The sandbox object"); the name of a profile of the server's user; None: the profile that the
# configuration there says, else workspace-write. Only the word "none" means no sandbox at all.
AnySandbox = Union[Sandbox, Dict[str, Any], str, None]


def to_json(sandbox: AnySandbox) -> Any:
    if sandbox is None:
        return "default"
    return sandbox.to_json() if isinstance(sandbox, Sandbox) else sandbox
