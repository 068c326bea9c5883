"""What the check-* scripts share: which files to look at, C without its comments and strings, and
one form of report. Every check takes the tree to look at as its only argument (default: this one),
which is how tests/unit/checks shows that each of them catches what it is for."""

import pathlib
import re
import sys

SUFFIXES = {".c", ".h"}


def root():
    """The tree to check, from the command line."""
    if len(sys.argv) > 2:
        sys.exit(f"usage: {sys.argv[0]} [TREE]")
    if len(sys.argv) == 2:
        return pathlib.Path(sys.argv[1])
    return pathlib.Path(__file__).resolve().parent.parent


def sources(tree, *folders, suffixes=frozenset(SUFFIXES)):
    """C files in these folders of the tree, in a fixed order."""
    return sorted(
        path
        for folder in folders
        for path in (tree / folder).rglob("*")
        if path.suffix in suffixes and path.is_file()
    )


TOKEN = re.compile(
    r"""(?P<comment>/\*.*?\*/|//[^\n]*) | (?P<string>"(?:\\.|[^"\\\n])*") | '(?:\\.|[^'\\\n])+'""",
    re.DOTALL | re.VERBOSE,
)


def blank(text):
    """The same text with spaces in place of whatever is not a line feed."""
    return re.sub(r"[^\n]", " ", text)


def without_comments(text):
    return TOKEN.sub(lambda m: blank(m[0]) if m["comment"] else m[0], text)


def code_only(text):
    """Comments and the insides of literals blanked; every offset and line number stays."""
    return TOKEN.sub(lambda m: m[0][0] + blank(m[0][1:-1]) + m[0][-1] if not m["comment"]
                     else blank(m[0]), text)


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def finish(problems, checked):
    """Prints the problems and ends the program: status 1 when there are any."""
    name = pathlib.Path(sys.argv[0]).name
    for problem in problems:
        print(problem)
    if problems:
        sys.exit(f"{name}: {len(problems)} problem{'s' if len(problems) > 1 else ''}")
    print(f"{name}: {checked} files, all right")
