"""What a command or a file call may do."""
from __future__ import annotations

import dataclasses
import os
import pathlib
from typing import Any, Dict, Literal, Mapping, Optional, Sequence, Union

Path = Union[str, "os.PathLike[str]"]


def to_uri(path: Path) -> str:
    """An absolute path as the file URI that goes over the wire; a URI stays."""
    text = os.fspath(path)
    return text if text.startswith("file:") else pathlib.PurePosixPath(text).as_uri()


@dataclasses.dataclass(frozen=True)
class Sandbox:
    """What a command may do, in the words of `cordon run`: laid over a profile of the server's user.
    Sandbox() is what a call has that says nothing: all may be read but secrets, the workspace and
    temporary folders of its own written, and there is no network.

        Sandbox("read-only")                              writes nothing
        Sandbox(allow_hosts=["example.org", "*.example.net:443"])   reaches these and no others
        Sandbox(writable=["/srv/data"], deny=["**/.env"])

    `workspace`, an absolute path, is by default the folder that the command starts in. Other paths are
    absolute, or count from the workspace."""

    profile: Optional[str] = None  # "workspace-write", "read-only" or another; None: what the configuration says
    workspace: Optional[Path] = None
    writable: Sequence[Path] = ()
    readable: Sequence[Path] = ()
    deny: Sequence[Path] = ()  # neither read nor written; may be patterns
    protect: Optional[Sequence[str]] = None  # sets of names, and "./NAME", that stay as they are
    presets: Sequence[str] = ()  # for tools, as of `cordon run --with`
    network: Optional[Literal["restricted", "proxied", "enabled", "host"]] = None
    allow_hosts: Sequence[str] = ()  # HOST, HOST:PORT, "*.D", "**.D"; nothing else is reached
    deny_hosts: Sequence[str] = ()
    allow_local_binding: Optional[bool] = None
    host_ports: Sequence[int] = ()  # of this machine's localhost
    publish: Sequence[str] = ()  # [ADDR:]HOSTPORT:PORT
    sockets: Sequence[Path] = ()
    watch: Optional[Literal["off", "facts", "ask", "learn"]] = None  # "ask": what is refused waits for an answer
    judge: Optional[Literal["command", "every-exec"]] = None
    git: Optional[Literal["read", "commit"]] = None
    tmp: Optional[Literal["private", "host"]] = None
    mode: Optional[Literal["auto", "require", "disabled", "landlock"]] = None

    def to_json(self) -> Dict[str, Any]:
        """As it goes over the wire (docs/protocol.md, "The sandbox object")."""
        named: Dict[str, Any] = {"profile": self.profile}
        if self.workspace is not None:
            named["cwd"] = to_uri(self.workspace)
        for field in dataclasses.fields(self)[2:]:
            value = getattr(self, field.name)
            if value is None or value == field.default:
                continue
            if field.default == () or field.name == "protect":
                if isinstance(value, str):
                    raise TypeError(f"{field.name} of a Sandbox is a list, and not {value!r}")
                value = [os.fspath(one) if isinstance(one, os.PathLike) else one for one in value]
            named[WIRE.get(field.name, field.name)] = value
        return named


WIRE = {"allow_hosts": "allowHosts", "deny_hosts": "denyHosts", "host_ports": "hostPorts",
        "allow_local_binding": "allowLocalBinding", "presets": "with"}

# A Sandbox; the name of a profile of the server's user; the protocol's own object; None: what the client was made
# with, else the profile that the configuration there says, else workspace-write. Only the word "none" means no
# sandbox at all.
AnySandbox = Union[Sandbox, Mapping[str, Any], str, None]


def to_json(sandbox: AnySandbox, is_asking: bool = False) -> Any:
    """`is_asking`: somebody answers what the sandbox would refuse, if it does not say otherwise."""
    given = "default" if sandbox is None else sandbox
    if isinstance(given, Sandbox):
        given = given.to_json()
    if not is_asking or given == "none":
        return given
    if isinstance(given, str):
        given = {"profile": None if given == "default" else given}
    return {"watch": "ask", **given} if "profile" in given else given


def with_workspace(given: Any, uri: str) -> Any:
    """As it goes over the wire, for a call that starts nowhere."""
    if isinstance(given, str) and given != "none":
        given = {"profile": None if given == "default" else given}
    return {"cwd": uri, **given} if isinstance(given, dict) and "profile" in given else given
