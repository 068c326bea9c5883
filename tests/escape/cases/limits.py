"""Limits that the person set for the command."""

from catalogue import attack
from stage import WAIT


@attack(unheld="as root only a cgroup or a pid namespace counts processes")
def fork_without_end(stage):
    """Root is not counted before Linux 6.14 without a cgroup; then Cordon has to say so."""
    ran = stage.attack("forks", 200, cordon=["--max-pids", "50"])
    return ran.won and "--max-pids is not enforced" not in ran.err


@attack()
def use_more_memory(stage):
    return stage.attack("memory", 512, cordon=["--max-memory", "128M"]).won


@attack()
def use_more_cpu(stage):
    return stage.attack("cpu", 2, cordon=["--max-cpu-time", "1s"], timeout=5 * WAIT).won


@attack()
def write_a_larger_file(stage):
    stage.attack("file", stage.ws / "large", 64, cordon=["--max-file-size", "1M"])
    large = stage.ws / "large"
    return large.exists() and large.stat().st_size > 1 << 20


@attack()
def open_more_descriptors(stage):
    """Also by raising the limit to what the host allows: 7 is RLIMIT_NOFILE, lower than it was."""
    if stage.inside:
        return stage.attack("raise", 7, 1024, cordon=["--max-files", "64"]).won
    return stage.attack("raise", 7, 1024).won


@attack()
def raise_the_limit_again(stage):
    """RLIMIT_FSIZE back to 64 MiB, by who is root in a namespace of its own."""
    flags = ["--max-file-size", "1M"]
    if stage.inside:
        return stage.attack("raise", 1, 64 << 20, cordon=flags).won
    return stage.attack("raise", 1, 64 << 20).won


@attack()
def run_longer(stage):
    seconds = 5 if stage.inside else 0.5
    ran = stage.run("/bin/sh", "-c", f"echo @start; sleep {seconds}; echo @won",
                    cordon=["--timeout", "200ms"])
    return "@won" in ran.out
