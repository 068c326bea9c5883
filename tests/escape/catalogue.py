"""The list of attacks. A case is one function that takes a Stage, sets the scene, runs the attack
by stage.attack(), stage.shell() or stage.run(), and returns whether it succeeded (any true value
is shown as the evidence). The same function plays bare and inside Cordon."""

import os
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Attack:
    name: str  # area/what
    play: Callable
    holes: tuple  # numbers of the holes of docs/peer-holes.md that it stands for
    users: tuple  # the identities for which it works on the bare host
    private_tmp: bool  # plays with a /tmp of its own
    refusal_holds: bool  # Cordon may refuse to start (125): that, too, stops the attack
    unheld: str  # why it is not claimed without namespaces; "" when it is
    silent: bool  # the command tried need not say "@start"
    needs_host: bool  # the scene takes capabilities of the host or a namespace to set
    on_guard: bool  # on what only a whole sandbox has: plays nowhere else


ATTACKS = {}


def attack(*, holes=(), users=("root", "user"), private_tmp=False, refusal_holds=False, unheld="",
           silent=False, needs_host=False, machine=None, on_guard=False):
    """`machine`: the only one on which the attack exists."""
    def register(play):
        if machine not in (None, os.uname().machine):
            return play
        area = play.__module__.rpartition(".")[2]
        name = f"{area}/{play.__name__.replace('_', '-').strip('-')}"
        assert name not in ATTACKS, f"two attacks are called {name}"
        ATTACKS[name] = Attack(name, play, tuple(holes), tuple(users), private_tmp, refusal_holds,
                               unheld, silent, needs_host, on_guard)
        return play

    return register
