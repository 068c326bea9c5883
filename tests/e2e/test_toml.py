"""Our TOML reader against Python's: the documents of tests/cases/toml, what small slips make of them,
and documents from a grammar that likes to say things twice. Both accept and refuse the same, and read
the same. Seeds are fixed; TOML_DOCUMENTS=100000 tries more."""
import datetime
import json
import os
import random
import subprocess
import tomllib

from harness import BUILD, TOP

COUNT = int(os.environ.get("TOML_DOCUMENTS", "4000"))
PIECES = ["[", "]", "{", "}", "=", ".", ",", "\n", "\r\n", "\r", " ", "\t", "#", '"', "'", '"""', "'''",
          "\\", "\\u00e9", "\\ud800", "\\U0010ffff", "0", "1", "_", "-", "+", "e", "0x", "inf", ":", "a",
          "T", "Z", "\x01", "\x7f", "é", "\u2028", "1979-05-27", " 07:32:00", ".5", "true"]
SCALARS = ["1", "-7", "+0", "0", "00", "1_000", "1__0", "_1", "0xDEAD_beef", "0o17", "0b101", "0o8", "0x",
           "-0x1", "9223372036854775807", "-9223372036854775808", "true", "false", "True", "1.5", "-0.0",
           "1.", ".5", "1e5", "1e+5", "1.5E-3", "1e", "1_0.0_1", "inf", "-nan", "+inf", "1979-05-27",
           "1979-05-27T07:32:00Z", "1979-05-27 07:32:00.5+01:00", "1979-02-29", "2000-02-29",
           "1979-13-01", "07:32:00", "07:32:00.999", "07:32", "24:00:00", "07:32:60", "1979-05-27t07:32:00z",
           "1979-05-27 # not a time", "1979-05-27T", '"x"', "'x'", '"a\\tb\\u00e9"', '"\\x"', "'\\x'", '""',
           '"""a\nb"""', '"""\n"quoted"""""', '"""a \\\n   \n b"""', '"""a \\ b"""', "'''\nx''y'''", '"a\nb"',
           "bare"]


def key(rng):
    part = ["a", "b", "c", '"a"', "'b'", "d-_1", '""', "é", "1", '"a.b"', ' a '][min(int(rng.expovariate(.5)), 10)]
    return part if rng.random() < .6 else part + rng.choice([".", " . "]) + key(rng)


def value(rng, depth=0):
    kind = rng.random()
    if depth < 3 and kind < .15:
        items = [value(rng, depth + 1) for _ in range(rng.randrange(4))]
        return "[" + rng.choice([",", ", ", ",\n", " , # x\n"]).join(items) + rng.choice(["", ",", "\n", " "]) * (
            len(items) > 0) + "]"
    if depth < 3 and kind < .4:
        items = [f"{key(rng)} = {value(rng, depth + 1)}" for _ in range(rng.randrange(4))]
        return "{" + ", ".join(items) + rng.choice(["", "", "", " ", ","]) + "}"
    return rng.choice(SCALARS if rng.random() < .3 else SCALARS[:1])


def document(rng):
    lines = []
    for _ in range(rng.randrange(1, 9)):
        kind = rng.random()
        if kind < .3:
            lines.append(f"[{key(rng)}]")
        elif kind < .45:
            lines.append(f"[[{key(rng)}]]")
        else:
            lines.append(f"{key(rng)} = {value(rng)}")
    return rng.choice(["\n", "\n", "\r\n", " # x\n"]).join(lines)


def slip(rng, text):
    at = rng.randrange(len(text) + 1)
    behind = at + rng.choice([0, 0, 1, 2])
    return text[:at] + rng.choice(PIECES + [""]) + text[behind:]


def cases():
    for file in sorted((TOP / "tests/cases/toml").glob("*.json")):
        for case in json.loads(file.read_text())["documents"]:
            yield case["toml"]


def plain(item):
    """As toml_json.h has it; ValueError for what we refuse on purpose, or Python does."""
    if isinstance(item, dict):
        return {plain(key): plain(value) for key, value in item.items()}
    if isinstance(item, list):
        return [plain(value) for value in item]
    if isinstance(item, str) and "\0" in item or type(item) is int and not -2**63 <= item < 2**63:
        raise ValueError("not ours")
    if isinstance(item, (float, datetime.date, datetime.time)):
        return None
    return item


def by_python(text):
    """None when the text is not TOML."""
    try:
        return plain(tomllib.loads(text))
    except (ValueError, RecursionError):
        return None


def compare(texts):
    texts = [text for text in texts if not text.startswith("\ufeff") and "0000-" not in text]
    ran = subprocess.run([BUILD / "tests/unit/policy/toml_documents"], text=True, check=True, capture_output=True,
                         input="".join(json.dumps(text) + "\n" for text in texts))
    answers = [json.loads(line) for line in ran.stdout.split("\n")[:-1]]
    assert len(answers) == len(texts)
    for text, ours in zip(texts, answers):
        assert ours.get("tree") == by_python(text), (text, ours)
    return sum("tree" in ours for ours in answers)


def test_cases():
    assert compare(list(cases())) > 30


def test_slips():
    rng = random.Random(1)
    texts = list(cases())
    changed = [slip(rng, rng.choice(texts)) for _ in range(COUNT)]
    assert COUNT / 10 < compare(changed) < COUNT


def test_documents():
    rng = random.Random(2)
    assert COUNT / 10 < compare([document(rng) for _ in range(COUNT)]) < COUNT
