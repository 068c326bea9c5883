"""The questions that a server puts to the client whose command it is (docs/approvals.md). They are as they
go over the wire, so these are types and nothing else.

    async def ask(question: Question) -> bool:
        return question["kind"] == "held" and "/work/out" in question["covers"]

    client = await spawn(on_question=ask)
"""
from __future__ import annotations

from typing import Awaitable, Callable, List, Literal, Optional, TypedDict, Union

Decision = Literal["approved", "approved_for_session", "approved_execpolicy_amendment",
                   "approved_without_sandbox", "denied", "denied_execpolicy_amendment", "timed_out",
                   "abort"]


class Network(TypedDict):
    """What a command wants to connect to."""

    host: str
    port: int
    protocol: Literal["http", "https", "socks5_tcp", "socks5_udp"]


class Question(TypedDict):
    """What is asked."""

    # before it runs; once more, after its sandbox refused something; or while it runs and what its
    # sandbox refuses waits (watch="ask")
    kind: Literal["command", "retry", "held"]
    argv: List[str]
    cwd: str
    reason: str
    covers: str  # what a yes would allow
    programs: Optional[str]  # where the names of its programs lead
    variables: List[str]  # "NAME=value", that the call sets
    proposed_execpolicy_amendment: Optional[List[str]]  # prefix that a rule would allow
    network: Optional[Network]  # where it is about a host
    available_decisions: List[Decision]


class ApprovalRequest(TypedDict):
    """Of approval/request, and of approval/list."""

    approvalId: str
    sessionId: str
    question: Question


class _Approval(TypedDict):
    decision: Decision  # one of available_decisions


class Approval(_Approval, total=False):
    """An answer with a reason, for the one who wanted the command."""

    reason: Optional[str]


class QuestionAnswer(TypedDict):
    """How a question was answered."""

    decision: Decision
    by: str  # "client", "hook", "terminal", "session": it was answered before, "nobody"
    reason: Optional[str]


class PutQuestion(Question, total=False):
    """One of the `questions` of exec/run."""

    id: Optional[str]
    answer: QuestionAnswer  # missing: there is none
    held_ms: int  # these two of kind "held": how long the call waited
    done: bool  # a yes led to it


# What a callback may answer: True is "approved", False "denied". Anything else is an error, and "denied".
Verdict = Union[bool, Decision, Approval]
# A plain function is called in a thread of its own, so that it may wait for a person. Several questions may
# be open at once, each with a call of its own; a coroutine is cancelled when its question is withdrawn.
Asked = Callable[[Question], Union[Verdict, Awaitable[Verdict]]]


def to_approval(verdict: Verdict) -> Approval:
    if isinstance(verdict, bool):
        return {"decision": "approved" if verdict else "denied"}
    if isinstance(verdict, str):
        return {"decision": verdict}
    if isinstance(verdict, dict) and "decision" in verdict:
        return verdict
    raise TypeError(f"a question is answered by True, False, a decision or an Approval, and not by {verdict!r}")
