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
def leave_a_setuid_program(stage):
    """Outside, whoever finds it is root. (An ordinary user's own set-id files are let through:
    git and others make shared folders with them.)"""
    file = stage.file("ws/program", "#!/bin/sh\n", 0o755)
    stage.attack("chmod", file, "04755")
    return file.stat().st_mode & 0o4000


@attack(users=("root",))
def create_a_setuid_program(stage):
    """The bit can be there from the start, without chmod(2)."""
    script = "import os; print('@start', flush=True); os.open('program', os.O_CREAT, 0o4755)"
    stage.run("/usr/bin/python3", "-c", script)
    program = stage.ws / "program"
    return program.exists() and program.stat().st_mode & 0o4000


@attack(users=("root",))
def become_another_user(stage):
    return stage.attack("setuid", 64998).won


@attack(users=("root",))
def join_another_group(stage):
    return stage.attack("setgroups", 64998).won
