"""The token that this user's own servers at loopback addresses know as well (cordon-serve(1),
--ws-auth). It is never sent, because anybody may have taken the port: what is sent is signed with it,
for one address and half a minute, and the server has to prove that it knows the token, too."""
from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import ipaddress
import json
import os
import pwd
import stat
import time
from typing import Any, Dict, Optional

from .errors import Error

LIFETIME = 30  # seconds
SIZE_MAX = 4096


def _directory() -> Optional[str]:
    named, home = os.environ.get("CORDON_HOME"), os.environ.get("HOME", "")
    if named:
        return named
    if not home.startswith("/"):
        with contextlib.suppress(KeyError):
            home = pwd.getpwuid(os.geteuid()).pw_dir
    return os.path.join(home, ".config/cordon") if home.startswith("/") else None


def _check(fd: int, path: str) -> None:
    info = os.fstat(fd)
    if info.st_uid != os.geteuid() or stat.S_IMODE(info.st_mode) & 0o077:
        raise Error(f"{path} has to belong to you and be open to nobody else: remove it, and the "
                    "next server makes a new one")


def find() -> Optional[str]:
    """None when there is none."""
    directory = _directory()
    if directory is None:
        return None
    folder = os.path.join(directory, "private")
    path = os.path.join(folder, "ws-token")
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
    with contextlib.ExitStack() as opened:
        try:
            place = os.open(folder, flags | os.O_DIRECTORY)
            opened.callback(os.close, place)
            _check(place, folder)
            file = os.open("ws-token", flags | os.O_NONBLOCK | os.O_NOCTTY, dir_fd=place)
            opened.callback(os.close, file)
        except FileNotFoundError:
            return None
        except PermissionError as error:
            raise Error(f"{path}: {error.strerror}, as it is to every command in a sandbox (token=\"\" "
                        "does without)") from error
        except OSError as error:
            raise Error(f"{path}: {error.strerror}; links are not followed: remove it, and the next "
                        "server makes a new one") from error
        _check(file, path)
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise Error(f"{path} is no regular file: remove it, and the next server makes a new one")
        text = os.read(file, SIZE_MAX).decode("latin-1").split()
    if not text:
        raise Error(f"{path} is empty: remove it, and the next server makes a new one")
    return text[0]


def address_of(peer: Any) -> Optional[str]:
    """How a server at the other end calls itself; None when that is not a loopback address."""
    address = ipaddress.ip_address(peer[0].partition("%")[0])
    if not address.is_loopback:
        return None
    return f"ws://[{address}]:{peer[1]}" if address.version == 6 else f"ws://{address}:{peer[1]}"


def _hmac(token: str, text: str) -> bytes:
    return hmac.new(token.encode(), text.encode(), hashlib.sha256).digest()


def _url64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def sign(token: str, address: str) -> str:
    """A JSON Web Token for the server at this address."""
    claims: Dict[str, Any] = {"aud": address, "exp": int(time.time()) + LIFETIME}
    text = ".".join(_url64(json.dumps(part).encode())
                    for part in ({"alg": "HS256", "typ": "JWT"}, claims))
    return f"{text}.{_url64(_hmac(token, text))}"


def is_proof(token: str, key: str, proof: str) -> bool:
    """Of the server that was asked with this Sec-WebSocket-Key."""
    right = base64.b64encode(_hmac(token, f"cordon-proof {key}"))
    return hmac.compare_digest(right, proof.encode("latin-1"))
