"""A client of `cordon serve`, and of every other server of the exec-server protocol.

    import asyncio, cordon_client

    async def main():
        async with await cordon_client.connect("ws://127.0.0.1:4711") as client:
            process = await client.start(["make", "test"], cwd="/work")
            async for event in process.events():
                ...
            print((await process.wait()).exit_code)

    asyncio.run(main())

`cordon_client.sync` is the same without asyncio. Nothing but the standard library is needed.
"""
from .client import Client, connect, spawn
from .errors import Disconnected, Error, RpcError
from .files import Entry, Files, Handle, Metadata, Walk
from .process import Closed, Event, Exited, Gap, Output, Process, Result
from .questions import Approval, ApprovalRequest, Decision, PutQuestion, Question, QuestionAnswer
from .sandbox import Sandbox
from .sessions import Answer, Screen, Sessions

__all__ = [
    "Answer", "Approval", "ApprovalRequest", "Client", "Closed", "Decision", "Disconnected",
    "Entry", "Error", "Event", "Exited", "Files", "Gap", "Handle", "Metadata", "Output", "Process",
    "PutQuestion", "Question", "QuestionAnswer", "Result", "RpcError", "Sandbox", "Screen", "Sessions",
    "Walk", "connect", "spawn",
]
