"""What src/rules reads out of shell scripts, what shfmt reads, and what shells really run."""
import collections
import json
import os
import random
import re
import subprocess

from harness import BUILD, CORDON, WAIT

SHOW = BUILD / "tests/unit/rules/show_commands"
FOLDERS = ("/var/lib/dpkg/info", "/etc", "/usr/bin", "/usr/sbin", "/usr/share", "/usr/lib")
SHEBANG = re.compile(rb"#! ?/(usr/)?bin/(env )?(ba|da|z)?sh\b")
SUFFIXES = ("", ".sh", ".preinst", ".postinst", ".prerm", ".postrm", ".config")
FILE_MAX = 200_000  # bytes

# --- ours ---


def judge(scripts):
    """What show_commands says about each script (bytes)."""
    text = b"".join(b"%d\n%s" % (len(script), script) for script in scripts)
    ran = subprocess.run([SHOW], input=text, stdout=subprocess.PIPE, timeout=WAIT, check=True)
    answers = [json.loads(line) for line in ran.stdout.splitlines()]
    assert len(answers) == len(scripts)
    return answers


def plain(scripts):
    """[(script, answer)] of those that are plain."""
    return [(s, a) for s, a in zip(scripts, judge(scripts)) if a["opaque"] is None]


# --- scripts of this machine ---


def script_texts():
    """The shell scripts of the distribution, in a fixed order."""
    for top in FOLDERS:
        for folder, folders, names in os.walk(top):
            folders.sort()
            for name in sorted(names):
                path = os.path.join(folder, name)
                if os.path.splitext(name)[1] not in SUFFIXES or not os.path.isfile(path):
                    continue
                try:
                    with open(path, "rb") as file:
                        head = file.read(64)
                        if SHEBANG.match(head):
                            yield head + file.read(FILE_MAX)
                except OSError:  # somebody else's
                    pass


def machine_lines(wanted):
    """At least `wanted` different lines of code from scripts, unless the machine has fewer."""
    lines = {}
    for text in script_texts():
        for line in text.split(b"\n"):
            line = line.strip(b" \t")
            if line and not line.startswith(b"#") and b"\0" not in line:
                lines[line] = True
        if len(lines) >= wanted:
            break
    return list(lines)


# --- shfmt ---


def shfmt_word(word):
    """The text of a word of literal parts; an AssertionError when a part is of another kind."""
    text = ""
    for part in word["Parts"]:
        if part["Type"] == "DblQuoted":
            assert not part.get("Dollar"), part
            text += shfmt_word({"Parts": part.get("Parts") or []})
        else:
            assert part["Type"] in ("Lit", "SglQuoted") and not part.get("Dollar"), part
            text += part.get("Value", "")
    return text


def shfmt_commands(statement):
    """The simple commands of a statement; an AssertionError when there is anything else."""
    assert not {"Negated", "Background", "Coprocess", "Redirs"} & {
        key for key, value in statement.items() if value}, statement
    command = statement["Cmd"]
    if command["Type"] == "BinaryCmd":
        return shfmt_commands(command["X"]) + shfmt_commands(command["Y"])
    assert command["Type"] == "CallExpr" and not command.get("Assigns"), command
    return [[shfmt_word(word) for word in command["Args"]]]


def shfmt(script):
    """The simple commands of a script of such, as lists of words."""
    ran = subprocess.run(["shfmt", "-ln", "bash", "--to-json"], input=script,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=WAIT)
    assert ran.returncode == 0, (script, ran.stderr)
    tree = json.loads(ran.stdout)
    return [command for statement in tree["Stmts"] for command in shfmt_commands(statement)]


# --- shells ---

# Names that these shells do not let a function stand in for, or that the tracing needs.
UNTRACED = {
    "bash": {"builtin", "return"},
    "zsh": {"builtin", "return", "command", "exec"},
    "dash": {"return"},
}
# Those that a plain script may have, and two more for zsh.
BUILTINS = (": a b cd chdir command dirs echo exec exit false help kill popd printf pushd pwd set "
            "test times true type umask wait whence where which")
# What dash lets no function replace (POSIX: special builtins).
DASH_SPECIAL = {"exec", "exit", "set", "times", ":"}

TRACE = {
    "bash": """
command_not_found_handle() { builtin printf '%s\\0' "$ID" "$#" "$@" >&9; return $STATUS; }
""",
    # with two names that `=a` and `=b` find; stand_ins() has functions for them
    "zsh": """setopt nonomatch
hash a=/bin/sh b=/bin/sh
command_not_found_handler() { builtin printf '%s\\0' "$ID" "$#" "$@" >&9; return $STATUS; }
""",
    "dash": """
command_not_found_handle() { command printf '%s\\0' "$ID" "$#" "$@" >&9; return $STATUS; }
""",
}


def is_identifier(name):
    return re.fullmatch("[A-Za-z_][A-Za-z_0-9]*", name) is not None


def traceable(shell, commands):
    """A shell can report all of these instead of running anything."""
    names = {words[0] for words in commands}
    # paths are not looked up, and zsh takes dots for folders
    if names & UNTRACED[shell] or any("/" in name or not name.strip(".") for name in names):
        return False
    return shell != "dash" or all(is_identifier(n) and n not in DASH_SPECIAL for n in names)


def stand_ins(shell, names):
    """Functions in place of builtins (and in dash of everything)."""
    builtins = set(BUILTINS.split()) - UNTRACED[shell]
    if shell == "dash":
        builtins = {name for name in names if is_identifier(name)} - DASH_SPECIAL
    handler = "command_not_found_handler" if shell == "zsh" else "command_not_found_handle"
    return "".join(f'{name}() {{ {handler} {name} "$@"; }}\n' for name in sorted(builtins))


def driver(shell, batch, status):
    """A script that gives each of the scripts to the shell's own parser, in a subshell."""
    names = {words[0] for _, answer in batch for words in answer["commands"]}
    head = f"exec 9>&1 >/dev/null 2>/dev/null </dev/null\nSTATUS={status}\nPATH=/nonexistent\n"
    text = (head + TRACE[shell] + stand_ins(shell, names)).encode()
    # a newline in front, or a script that begins with a dash would be an option of eval
    run = b"(%s eval '\n'%s)\n" % (b"command" if shell == "dash" else b"builtin", b"%s")
    for number, (script, _) in enumerate(batch):
        quoted = b"'" + script.replace(b"'", b"'\\''") + b"'"
        text += b"ID=%d\n" % number + run % quoted
    return text


def trace(place, shell, batch, status, locale):
    """For each script the commands that the shell ran, as lists of words (bytes). All of it happens
    in a sandbox that may only read, in an empty folder."""
    file = place.outside / f"driver-{shell}-{status}"
    empty = place.ws / "empty"
    empty.mkdir(exist_ok=True)
    file.write_bytes(driver(shell, batch, status))
    ran = subprocess.run(
        [CORDON, "run", "-p", "read-only", "-C", empty, "--", shell, file], env={
            **place.env, "LC_ALL": locale}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, timeout=WAIT)
    assert ran.returncode in (0, 1), ran.stderr
    ran_by = collections.defaultdict(list)
    fields = ran.stdout.split(b"\0")[:-1]
    at = 0
    while at < len(fields):
        number, count = int(fields[at]), int(fields[at + 1])
        ran_by[number].append(fields[at + 2:at + 2 + count])
        at += 2 + count
    return ran_by


def fits(words, command, exact):
    """The words that ran are those that were read, as far as they are exact."""
    wanted = [word.encode() for word in command]
    if exact == len(wanted):
        return words == wanted
    return words[:exact] == wanted[:exact]


def unread(ran, answer):
    """Commands that ran and were not read."""
    left = list(zip(answer["commands"], answer["exact"]))
    extra = []
    for words in ran:
        fitting = [item for item in left if fits(words, *item)]
        if fitting:
            left.remove(max(fitting, key=lambda item: item[1]))
        else:
            extra.append(words)
    return extra, [command for command, _ in left]


def is_refused(shell, answer):
    """zsh does not run a command with a glob that it cannot read."""
    return shell == "zsh" and any(
        exact < len(words) for words, exact in zip(answer["commands"], answer["exact"]))


def differences(place, shell, batch, locale="C.UTF-8"):
    """Every script of which the shell ran something else than was read out of it, once with every
    command succeeding and once with every command failing; and the number of scripts."""
    batch = [(s, a) for s, a in batch if traceable(shell, a["commands"])]
    found = []
    for status, skips in ((0, b"||"), (1, b"&&")):
        # only || makes a difference to what runs when commands fail
        part = batch if status == 0 else [(s, a) for s, a in batch if skips in s or b"||" in s]
        ran_by = trace(place, shell, part, status, locale)
        for number, (script, answer) in enumerate(part):
            extra, missing = unread(ran_by[number], answer)
            if extra or (missing and skips not in script and not is_refused(shell, answer)):
                found.append((shell, script, answer["commands"], ran_by[number]))
    return found, len(batch)


# --- generated scripts ---

SPECIAL = [bytes([c]) for c in range(1, 128) if not chr(c).isalnum()] + [
    b"\x80", b"\xa0", b"\xff", *(c.encode() for c in "\u00e9\u00a0\u2028\uff04")]

CONTEXTS = [
    b"mk @", b"mk a@", b"mk @b", b"mk a@b", b"mk a @ b", b"@mk a", b"mk@", b"mk@ a", b"m@k a",
    b"mk '@'", b'mk "@"', b"mk a'@'b", b'mk "a@b" c', b"mk a; @mk b", b"mk a |@ mk b",
    b"mk a &&@mk b", b"mk a@;mk b", b"mk a\n@mk b", b"mk a@\nmk b", b"mk a=@", b"mk -@",
    b"mk a:@", b"mk a ||@ mk b@"]


def in_every_place(inserts):
    return [context.replace(b"@", insert) for context in CONTEXTS for insert in inserts]


def single_scripts():
    """Every special byte in every place of a script."""
    return in_every_place(SPECIAL)


def pair_scripts():
    """Every two of them."""
    return in_every_place([a + b for a in SPECIAL for b in SPECIAL])


TOKENS = [
    b"mk", b"a", b"b.c", b"-x", b"--long=v", b"'", b"'a b'", b'"', b'"c d"', b"''", b'""', b" ",
    b" ", b" ", b" ", b"\t", b"\n", b";", b"|", b"&&", b"||", b"&", b"=", b"{}", b"{", b"}", b",",
    b"*", b"?", b"[a]", b"~", b"#", b"!", b"\\", b"$", b"`", b"(", b")", b"<", b">", b"@", b"%1",
    b"^", b"cd /", b"echo", b"printf %s", b"test", b"if", b"time", b"[[", b"2", b"\r", b"\xc3\xa9",
    b"//", b":", b"+"]


def random_scripts(count, seed):
    """Rows of tokens that often come near to plain scripts."""
    source = random.Random(seed)
    for _ in range(count):
        script = b"mk"
        for _ in range(source.randint(1, 14)):
            script += source.choice(TOKENS)
        yield script
