"""The questions that a server puts to the client whose command it is (docs/approvals.md): as they go over the
wire, so these are types and nothing else.

    async def ask(request: ApprovalRequest) -> Approval:
        return {"decision": "approved" if request["question"]["kind"] == "held" else "denied"}

    client.handlers["approval/request"] = ask
"""
from __future__ import annotations

from typing import List, Literal, Optional, TypedDict

Decision = Literal["approved", "approved_for_session", "approved_execpolicy_amendment",
                   "approved_without_sandbox", "denied", "denied_execpolicy_amendment", "timed_out",
                   "abort"]


class Network(TypedDict):
    """What a command wants to connect to."""

    host: str
    port: int
    protocol: Literal["http", "https", "socks5_tcp", "socks5_udp"]


class Question(TypedDict):
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
    """What is to be answered."""

    reason: Optional[str]


class QuestionAnswer(TypedDict):
    decision: Decision
    by: str  # "client", "hook", "terminal", "session": it was answered before, "nobody"
    reason: Optional[str]


class PutQuestion(Question, total=False):
    """One of the `questions` of exec/run."""

    id: Optional[str]
    answer: QuestionAnswer  # missing: there is none
    held_ms: int  # these two of kind "held": how long the call waited
    done: bool  # a yes led to it
