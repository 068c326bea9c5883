"""Capabilities, ids and setuid programs."""

import os

from catalogue import attack
from stage import Unavailable


@attack(holes=(1,))
def hold_a_capability(stage):
    """In any set: the bounding set is what a setuid program would get back."""
    return stage.attack("caps").won


@attack()
def gain_privileges_by_exec(stage):
    return stage.attack("new-privileges").won


@attack(users=("user",))
def run_a_setuid_program(stage):
    program = "/usr/bin/su"
    if not os.path.exists(program) or not os.stat(program).st_mode & 0o4000:
        raise Unavailable(f"{program} is not setuid here")
    return stage.attack("setuid-exec", program).won


@attack(users=("root",))
def become_another_user(stage):
    return stage.attack("setuid", 64998).won


@attack(users=("root",))
def join_another_group(stage):
    return stage.attack("setgroups", 64998).won
