"""The same sequences outside and inside, and the shortest one that shows a difference."""
import difflib


def seeds(stage, cordon, first, count, extra=()):
    """Seeds whose sequence does not give the same inside."""
    words = ["--first", first, "--count", count, "--places", ",".join(stage.places), *extra]
    outside = stage.run(words).splitlines()
    inside = stage.run(words, cordon).splitlines()
    if len(outside) != count:
        raise RuntimeError(f"{len(outside)} of {count} sequences outside")
    wrong = {line.split()[0] for line in set(outside) ^ set(inside)}
    return sorted(map(int, wrong))


def sequence(stage, seed, extra=()):
    """Its lines."""
    words = ["--first", seed, "--count", 1, "--places", ",".join(stage.places), "--print", *extra]
    return stage.run(words).splitlines()[1:]


def logs(stage, cordon, lines):
    """What these lines give, outside and inside."""
    script = stage.base / "script"
    script.write_text("\n".join(["# sequence", *lines, ""]), errors="surrogateescape")
    return [stage.run(["--script", script], which) for which in (None, cordon)]


def differs(stage, cordon, lines):
    outside, inside = logs(stage, cordon, lines)
    return outside != inside


def reduce(stage, cordon, lines):
    """Leaves out what can be left out, larger parts first."""
    size = len(lines) // 2
    while size:
        at = 1  # the place stays
        while at < len(lines):
            fewer = lines[:at] + lines[at + size:]
            if differs(stage, cordon, fewer):
                lines = fewer
            else:
                at += size
        size //= 2
    return lines


def explain(stage, cordon, seed, extra=()):
    """The shortest sequence that shows what differs, with both results."""
    lines = sequence(stage, seed, extra)
    if not differs(stage, cordon, lines):
        return f"seed {seed}: no difference when played again"
    outside, inside = logs(stage, cordon, reduce(stage, cordon, lines))
    text = difflib.unified_diff(outside.splitlines(), inside.splitlines(), "outside", "inside", "", "",
                                n=60, lineterm="")
    return f"seed {seed}:\n" + "\n".join(text)
