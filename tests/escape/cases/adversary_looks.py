"""Attacks of an adversary who had not built the guards, on looks: what a command does so that the next one
is less protected than its profile says. Patterns that deny are the most of it."""

import os
import subprocess

from catalogue import attack

DOWN = """
import os, sys
os.chdir("deep")
for _ in range(30):
    os.makedirs("d" * 200, exist_ok=True)
    os.chdir("d" * 200)
"""


def pattern(name, deny, *scripts, secret="ws/d/a.key"):
    """The last of the commands reads, each under the same profile."""
    def play(stage):
        path = os.path.join(os.fsencode(stage.base), os.fsencode(secret))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="ascii") as file:
            file.write("the secret")
        ran = [stage.shell(script, cordon=["--deny", deny]) for script in scripts]
        return "the secret" in ran[-1].out
    play.__name__ = name
    attack(refusal_holds=True)(play)


SEEK = "cat */a.key */*/a.key */*/*/a.key */*/*/*/a.key"
pattern("rename_the_folder_of_a_pattern", "d/*.key", "mv d e", SEEK)
pattern("link_where_the_folder_of_a_pattern_was", "d/*.key", "mv d e; ln -s e d", SEEK)
pattern("swap_the_folders_of_a_pattern", "d/*.key", "mkdir f; mv d e; mv f d", SEEK)
pattern("move_what_a_deep_pattern_finds", "d/**/*.key", "mv d/e/f d/g; mv d/e d/x; mv d/x .; mv d y", SEEK,
        secret="ws/d/e/f/a.key")
pattern("hide_from_a_pattern_by_rights", "**/*.key", "chmod 311 d/e; chmod 111 d", f"chmod 755 d d/e; {SEEK}; chmod 755 d d/e",
        secret="ws/d/e/a.key")
for word, spelling in (("brackets", b"[d]"), ("a_star", b"*"), ("a_newline", b"d\nd"), ("no_utf8", b"\xff\xfe"),
                       ("a_backslash", b"d\\"), ("a_brace", b"{d,e}"), ("a_blank", b" ")):
    pattern(f"match_below_a_folder_named_with_{word}", "**/*.key", SEEK, secret=b"ws/" + spelling + b"/a.key")


@attack(refusal_holds=True)
def retarget_the_link_of_a_pattern(stage):
    stage.file("ws/real/a.key", "the secret")
    (stage.ws / "d").symlink_to("real")
    stage.shell("rm d; mkdir d", cordon=["--deny", "d/*.key"])
    return "the secret" in stage.shell(SEEK, cordon=["--deny", "d/*.key"]).out


@attack(refusal_holds=True)
def bury_deeper_than_a_path_may_lead(stage):
    """Only a walk leads there."""
    stage.file("ws/deep/d/a.key", "the secret")
    python = ["/usr/bin/python3", "-c"]
    stage.run(*python, f"print('@start');here = __import__('os').open('deep', 0);{DOWN}os.rename('d', 'd', src_dir_fd=here)",
              cordon=["--deny", "**/*.key"])
    ran = stage.run(*python, f"print('@start');{DOWN}print(open('d/a.key').read())", cordon=["--deny", "**/*.key"])
    subprocess.run(["rm", "-rf", stage.ws / "deep"], check=True)  # which Python cannot
    return "the secret" in ran.out


@attack(refusal_holds=True)
def move_what_a_pattern_finds_meanwhile(stage):
    """Another command moves it, all the time."""
    stage.file("ws/d/a.key", "the secret")
    flip = stage.start("/bin/sh", "-c", "echo @start; while :; do mv d e; mv e d; done", cordon=["--deny", "**/*.key"])
    flip.stdout.readline()
    won = [stage.shell(f"{SEEK}; {SEEK}; {SEEK}", cordon=["--deny", "**/*.key"]).out for _ in range(3)]
    return "the secret" in "".join(won)
