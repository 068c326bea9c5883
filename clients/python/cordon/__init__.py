"""Commands in a sandbox: a client of Cordon.

    import asyncio, cordon

    async def main():
        async with cordon.spawn() as client:                  # a server of its own; connect(URL): another
            result = await client.run("make test", "/work", timeout=600)
            print(result.exit_code, result.text, result.denials)

            async with client.start(["npm", "run", "dev"], "/work") as process:
                async for line in process.lines():
                    print(line)

    asyncio.run(main())

Nothing has to be said to be safe: a command may write its workspace and temporary folders of its own, and
has no network. `sandbox=` says it otherwise (Sandbox). `cordon.sync` is the same without asyncio. Nothing
but the standard library is needed, and Python 3.9.
"""
from .client import Client, Command, Patched, connect, run, spawn
from .errors import (CommandFailed, Disconnected, Error, Forbidden, InputClosed, InvalidParams,
                     InvalidRequest, LimitReached, NotAdmitted, NotFound, ProgramNotFound, RpcError,
                     ServerEnded, SessionAttached, SystemRefused, TimedOut, UnknownMethod)
from .files import Entry, Files, Handle, Metadata, Walk
from .layers import AnyLayer, Applied, Change, Changes, Diff, Layer, Layers, Left, What
from .opening import Opening
from .process import Closed, Denial, Event, Exited, Gap, Output, Process, Result
from .questions import (Approval, ApprovalRequest, Asked, Decision, Network, PutQuestion, Question,
                        QuestionAnswer, Verdict)
from .sandbox import AnySandbox, Sandbox
from .sessions import Answer, Screen, Session, Sessions, Until
from . import sync as sync

__all__ = [
    "Answer", "AnyLayer", "AnySandbox", "Applied", "Approval", "ApprovalRequest", "Asked", "Change",
    "Changes", "Client", "Closed", "Command", "CommandFailed", "Decision", "Denial", "Diff",
    "Disconnected", "Entry", "Error", "Event", "Exited", "Files", "Forbidden", "Gap", "Handle",
    "InputClosed", "InvalidParams", "InvalidRequest", "Layer", "Layers", "Left", "LimitReached",
    "Metadata", "Network", "NotAdmitted", "NotFound", "Opening", "Output", "Patched", "Process",
    "ProgramNotFound", "PutQuestion", "Question", "QuestionAnswer", "Result", "RpcError", "Sandbox",
    "Screen", "ServerEnded", "Session", "SessionAttached", "Sessions", "SystemRefused", "TimedOut",
    "UnknownMethod", "Until", "Verdict", "Walk", "What", "connect", "run", "spawn",
]
