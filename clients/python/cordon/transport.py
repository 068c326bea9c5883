"""Messages over a WebSocket (RFC 6455), or as lines over a Unix socket or the pipes of a server
that we start. A transport sends and receives whole texts; `receive` gives None at the end."""
from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import os
import struct
from typing import List, Optional, Protocol, Sequence, Tuple
from urllib.parse import urlsplit

from . import user_token
from .errors import Disconnected, Error, NotAdmitted, ProgramNotFound, ServerEnded

TEXT, BINARY, CONTINUATION, CLOSE, PING, PONG = 1, 2, 0, 8, 9, 10
MESSAGE_MAX = 1 << 30  # a file of 512 MiB is one message
READ_AHEAD = 1 << 20  # bytes
GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455 1.3


class Transport(Protocol):
    async def send(self, text: bytes) -> None: ...

    async def receive(self) -> Optional[bytes]: ...

    async def close(self) -> None: ...

    def abort(self) -> None: ...

    async def why(self, error: Optional[Exception]) -> Disconnected:
        """It is gone: what to say of that."""


def _gone(error: Optional[Exception]) -> Disconnected:
    if isinstance(error, (ValueError, KeyError, TypeError, AttributeError, RecursionError)):
        return Disconnected(f"what is there does not speak the protocol ({error!r})")
    return Disconnected(f"the connection is gone: {error}" if error else "the connection is gone: closed")


class Lines:
    """One JSON text per line."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter,
                 server: "Optional[OwnServer]" = None) -> None:
        self._reader, self._writer, self._server = reader, writer, server
        self._parts: List[bytes] = []  # of the line that is coming in
        self._held = 0  # bytes in them
        self._lines: List[bytes] = []  # whole ones, the newest first

    async def send(self, text: bytes) -> None:
        self._writer.write(text + b"\n")
        await self._writer.drain()

    async def receive(self) -> Optional[bytes]:
        while not self._lines:
            data = await self._reader.read(1 << 18)
            if not data:
                return None
            *whole, rest = data.split(b"\n")
            if whole:
                whole[0] = b"".join(self._parts) + whole[0]
                self._parts = []
                self._held = 0
            self._parts.append(rest)
            self._held += len(rest)
            if self._held > MESSAGE_MAX:
                raise Error(f"a line of more than {MESSAGE_MAX} bytes")
            self._lines = [line for line in reversed(whole) if line.strip()]
        return self._lines.pop()

    async def close(self) -> None:
        self._writer.close()
        if self._server is not None:
            await self._server.end()

    def abort(self) -> None:
        if self._server is None:
            self._writer.transport.abort()
        else:
            self._server.kill()

    async def why(self, error: Optional[Exception]) -> Disconnected:
        if self._server is None or not (error is None or isinstance(error, ConnectionError)):
            return _gone(error)
        return await self._server.why()


class OwnServer:
    """A server that was started for us. What it says is kept for an error."""

    LOG_MAX = 2000  # bytes of its end
    PATIENCE = 10.0  # seconds, until it has ended by itself

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._log = b""
        self._reading = asyncio.get_running_loop().create_task(self._read())

    async def _read(self) -> None:
        assert self._process.stderr is not None
        while data := await self._process.stderr.read(1 << 16):
            self._log = (self._log + data)[-self.LOG_MAX:]

    async def end(self) -> None:
        """Its input has ended, so it ends, with all that it runs."""
        try:
            await asyncio.wait_for(self._process.wait(), self.PATIENCE)
        except asyncio.TimeoutError:
            self.kill()
            await self._process.wait()
        await asyncio.wait([self._reading], timeout=1)  # longer only if what it ran holds it open
        self._reading.cancel()

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()

    async def why(self) -> Disconnected:
        await self.end()
        lines = [line for line in self._log.decode(errors="replace").splitlines() if " info " not in line]
        return ServerEnded(self._process.returncode, " / ".join(lines[-3:]))


def mask(payload: bytes, key: bytes) -> bytes:
    size = len(payload)
    whole = int.from_bytes((key * (size // 4 + 1))[:size], "big")
    return (int.from_bytes(payload, "big") ^ whole).to_bytes(size, "big")


class WebSocket:
    """The client's side of one WebSocket, without extensions."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    def _user_token(self) -> Tuple[Optional[str], str]:
        """For a server of the same user: the token, and the address that it is good for."""
        peer = self._writer.get_extra_info("peername")
        address = user_token.address_of(peer) if peer else None
        return (user_token.find(), address) if address is not None else (None, "")

    async def handshake(self, host: str, target: str, token: Optional[str],
                        is_own: bool = False) -> None:
        """`is_own`: of a server of the same user, if it is at a loopback address."""
        known, address = self._user_token() if is_own else (None, "")
        if known is not None:
            token = user_token.sign(known, address)
        key = base64.b64encode(os.urandom(16))
        lines = [f"GET {target} HTTP/1.1", f"Host: {host}", "Connection: Upgrade",
                 "Upgrade: websocket", "Sec-WebSocket-Version: 13",
                 f"Sec-WebSocket-Key: {key.decode()}"]
        if token:
            lines.append(f"Authorization: Bearer {token}")
        self._writer.write("\r\n".join([*lines, "", ""]).encode("latin-1"))
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *fields = head.split("\r\n")
        status = first.split(" ")[1:2]
        if status in (["401"], ["403"]):
            raise NotAdmitted(f"the server refuses us ({first}): it wants its user's token, which is found "
                        "in ~/.config/cordon/private, or the one that it was started with (token=)")
        if status != ["101"]:
            raise Error(f"the server does not speak WebSocket: {first}")
        wanted = base64.b64encode(hashlib.sha1(key + GUID).digest()).decode()
        accepted = {line.partition(":")[0].strip().lower(): line.partition(":")[2].strip()
                    for line in fields}
        if accepted.get("sec-websocket-accept") != wanted:
            raise Error("the server did not accept the WebSocket key")
        if known is not None and not user_token.is_proof(known, key.decode(),
                                                         accepted.get("cordon-proof", "")):
            raise NotAdmitted("who listens there does not know your token: it is no server of yours, or "
                        "one that was told not to ask for it (then say token=\"\")")

    async def _send_frame(self, opcode: int, payload: bytes) -> None:
        size, key = len(payload), os.urandom(4)
        head = bytes([0x80 | opcode])
        if size < 126:
            head += bytes([0x80 | size])
        elif size < 1 << 16:
            head += bytes([0x80 | 126]) + struct.pack(">H", size)
        else:
            head += bytes([0x80 | 127]) + struct.pack(">Q", size)
        self._writer.write(head + key + mask(payload, key))
        await self._writer.drain()

    async def send(self, text: bytes) -> None:
        limit = 1 << 24  # of one frame, as the server takes it
        pieces = [text[i:i + limit] for i in range(0, len(text), limit)] or [b""]
        if len(pieces) == 1:
            await self._send_frame(TEXT, text)
            return
        for number, piece in enumerate(pieces):  # nothing else is sent meanwhile: Client has a lock
            await self._send_piece(piece, number == 0, number == len(pieces) - 1)

    async def _send_piece(self, piece: bytes, is_first: bool, is_last: bool) -> None:
        key = os.urandom(4)
        head = bytes([is_last << 7 | (TEXT if is_first else CONTINUATION), 0x80 | 127])
        self._writer.write(head + struct.pack(">Q", len(piece)) + key + mask(piece, key))
        await self._writer.drain()

    async def receive(self) -> Optional[bytes]:
        parts: List[bytes] = []
        held = 0  # bytes in them
        try:
            while True:
                first, second = await self._reader.readexactly(2)
                size = second & 127
                if size == 126:
                    size, = struct.unpack(">H", await self._reader.readexactly(2))
                elif size == 127:
                    size, = struct.unpack(">Q", await self._reader.readexactly(8))
                if held + size > MESSAGE_MAX:
                    raise Error(f"a message of more than {MESSAGE_MAX} bytes")
                payload = await self._reader.readexactly(size)
                opcode = first & 15
                if opcode == CLOSE:
                    return None
                if opcode == PING:
                    await self._send_frame(PONG, payload)
                elif opcode in (TEXT, BINARY, CONTINUATION):
                    parts.append(payload)
                    held += size
                    if first & 0x80:
                        return b"".join(parts)
        except (asyncio.IncompleteReadError, ConnectionError):
            return None

    async def close(self) -> None:
        with contextlib.suppress(ConnectionError):
            await self._send_frame(CLOSE, struct.pack(">H", 1000))
        self._writer.close()

    def abort(self) -> None:
        self._writer.transport.abort()

    async def why(self, error: Optional[Exception]) -> Disconnected:
        return _gone(error)


async def open_url(url: str, token: Optional[str]) -> Transport:
    """ws://HOST:PORT, wss://..., unix:PATH."""
    try:
        if url.startswith("unix:"):
            return Lines(*await asyncio.open_unix_connection(url[len("unix:"):], limit=READ_AHEAD))
        parts = urlsplit(url)
        if parts.scheme not in ("ws", "wss") or not parts.hostname:
            raise Error(f"{url!r} should be ws://HOST:PORT, wss://HOST:PORT or unix:PATH")
        is_secure = parts.scheme == "wss"
        port = parts.port or (443 if is_secure else 80)
        socket = WebSocket(*await asyncio.open_connection(parts.hostname, port,
                                                          limit=READ_AHEAD,
                                                          ssl=True if is_secure else None))
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        try:
            await socket.handshake(parts.netloc.rpartition("@")[2], target, token,
                                   is_own=token is None and not is_secure)
        except BaseException:
            socket.abort()
            raise
        return socket
    except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
        raise Disconnected(f"{url}: {error}") from error


async def open_command(argv: Sequence[str]) -> Transport:
    """A server that is started for us and speaks on its stdin and stdout; in a session of its own, so
    that Ctrl-C is for us to handle."""
    pipe = asyncio.subprocess.PIPE
    try:
        process = await asyncio.create_subprocess_exec(*argv, stdin=pipe, stdout=pipe, stderr=pipe,
                                                       limit=READ_AHEAD, start_new_session=True)
    except OSError as error:
        raise ProgramNotFound(f"starting {argv[0]}: {error.strerror}") from error
    assert process.stdin is not None and process.stdout is not None
    return Lines(process.stdout, process.stdin, OwnServer(process))
