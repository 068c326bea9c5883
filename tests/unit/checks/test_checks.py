#!/usr/bin/python3 -B
"""The checks of `make check` catch what they are for: each is run on a small tree that is right but
for one thing. Also holds the lists that meson needs against what lies in the folders."""

import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

TREE = pathlib.Path(__file__).resolve().parents[3]

# A tree in which nothing is wrong.
GOOD = {
    "src/base/err.h": "#pragma once\nstruct err;\n",
    "src/base/path.h": "#pragma once\nint path_depth(const char *path);\n",
    "src/base/path.c": '/* Paths. */\n#include "base/path.h"\n\n#include <string.h>\n',
    "src/policy/profile.c": '/* Profiles. */\n#include "base/path.h"\n',
    "include/cordon.h": "#pragma once\nint cordon_version(void);\n",
}


class Checks(unittest.TestCase):
    def run_check(self, check, files):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in {**GOOD, **files}.items():
                path = pathlib.Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            return subprocess.run(
                [TREE / "scripts" / check, folder], capture_output=True, text=True, check=False
            )

    def passes(self, check, files):
        result = self.run_check(check, files)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def catches(self, check, files, *words):
        result = self.run_check(check, files)
        output = result.stdout + result.stderr
        self.assertNotEqual(result.returncode, 0, output)
        for word in words:
            self.assertIn(word, output)

    def in_source(self, check, code, *words):
        """Caught in a .c file of src/, with its line."""
        text = "/* Essay. */\nvoid f(void)\n{\n" + code + "\n}\n"
        self.catches(check, {"src/process/x.c": text}, "src/process/x.c:4", *words)

    def not_in_source(self, check, code):
        self.passes(check, {"src/process/x.c": "/* Essay. */\nvoid f(void)\n{\n" + code + "\n}\n"})

    def test_a_right_tree_passes_every_check(self):
        for check in ("layers", "banned", "style", "headers", "format", "schema"):
            with self.subTest(check):
                self.passes("check-" + check, {})


class Layers(Checks):
    HEADERS = {
        f"src/{name}.h": "#pragma once\n"
        for name in (
            "policy/access", "rules/word", "loop/loop", "sandbox/launcher/plan_format", "sandbox/sandbox",
            "process/process", "executor/executor", "server/server",
            "cli/command", "rpc/rpc", "audit/audit", "base/buf",
        )
    }

    def include(self, source, header):
        return {**self.HEADERS, source: f'/* Essay. */\n#include "{header}"\n'}

    def test_allowed(self):
        for source, header in (
            ("src/sandbox/plan.c", "policy/access.h"),
            ("src/sandbox/linux/plan.c", "sandbox/sandbox.h"),
            ("src/sandbox/linux/plan.c", "sandbox/launcher/plan_format.h"),
            ("src/rpc/unix.c", "loop/loop.h"),
            ("src/executor/a.c", "rules/word.h"),
            ("src/process/a.c", "sandbox/sandbox.h"),
            ("src/executor/a.c", "process/process.h"),
            ("src/cli/a.c", "server/server.h"),
            ("src/cli/a.c", "policy/access.h"),
            ("src/sandbox/launcher/main.c", "base/err.h"),
            ("src/sandbox/launcher/main.c", "sandbox/launcher/plan_format.h"),
            ("src/executor/api.c", "cordon.h"),
        ):
            with self.subTest(source=source, header=header):
                self.passes("check-layers", self.include(source, header))

    def test_not_allowed(self):
        for source, header in (
            ("src/base/a.c", "policy/access.h"),
            ("src/policy/a.c", "sandbox/sandbox.h"),
            ("src/policy/a.c", "rules/word.h"),
            ("src/policy/a.c", "loop/loop.h"),
            ("src/loop/a.c", "process/process.h"),
            ("src/sandbox/a.c", "loop/loop.h"),
            ("src/output/a.c", "process/process.h"),
            ("src/audit/a.c", "policy/access.h"),
            ("src/rpc/a.c", "policy/access.h"),
            ("src/process/a.c", "sandbox/launcher/plan_format.h"),
            ("src/process/a.c", "executor/executor.h"),
            ("src/executor/a.c", "server/server.h"),
            ("src/job/a.c", "server/server.h"),
            ("src/server/a.c", "cli/command.h"),
            ("src/sandbox/launcher/a.c", "base/buf.h"),
            ("src/sandbox/launcher/a.c", "policy/access.h"),
            ("src/sandbox/launcher/a.c", "sandbox/sandbox.h"),
        ):
            with self.subTest(source=source, header=header):
                self.catches("check-layers", self.include(source, header), f"{source}:2", header)

    def test_form_of_includes(self):
        for include in ("buf.h", "../base/buf.h", "base/missing.h"):
            with self.subTest(include):
                self.catches("check-layers", self.include("src/base/a.c", include), "no such file")

    def test_in_a_comment_is_none(self):
        text = '/* Essay.\n#include "sandbox/sandbox.h"\n*/\n'
        self.passes("check-layers", {**self.HEADERS, "src/policy/a.c": text})

    def test_own_header_comes_first(self):
        own = {"src/base/x.h": "#pragma once\n"}
        late = '/* Essay. */\n#include <stdio.h>\n#include "base/x.h"\n'
        self.catches("check-layers", {**own, "src/base/x.c": late}, "first include", '"base/x.h"')
        self.catches("check-layers", {**own, "src/base/x.c": "/* Essay. */\n"}, "first include")

    def test_launcher_links_nothing(self):
        text = "/* Essay. */\n#include <seccomp.h>\n"
        self.catches("check-layers", {"src/sandbox/launcher/a.c": text}, "the C library")

    def test_unknown_layer(self):
        self.catches("check-layers", {"src/misc/a.c": "/* Essay. */\n"}, "not a room")


class Banned(Checks):
    CALLS = (
        "strcpy strcat sprintf vsprintf strncpy gets system popen strtok alloca tmpnam mktemp atoi "
        "atol accept dup dup2 pipe creat openpty forkpty mkstemp"
    ).split()

    def test_calls(self):
        for name in self.CALLS:
            with self.subTest(name):
                self.in_source("check-banned", f"    {name}(a, b);", name)

    def test_names_that_only_look_alike(self):
        for code in (
            "    my_strcpy(a);", "    host->open(a);", "    host.system(a);", "    strcpy_s(a);",
            "    /* strcpy(a) and goto */", '    puts("system(x) goto TOD");', "    snprintf(a);",
            "    int dup = 1;", "    // popen()", "    getsockopt(a);", "    x = '\"'; /* gets( */",
        ):
            with self.subTest(code):
                self.not_in_source("check-banned", code)

    def test_words(self):
        for code, word in (
            ("    goto out;", "goto"),
            ("    pthread_create(a);", "threads"),
            ("    thrd_create(a);", "threads"),
            ("    fcntl(fd, F_DUPFD, 3);", "F_DUPFD"),
            ("    /* TODO: later */", "TODO"),
        ):
            with self.subTest(code):
                self.in_source("check-banned", code, word)

    def test_descriptors_without_close_on_exec(self):
        for code in (
            "    open(path, O_RDONLY);", "    openat(dir, path, O_RDONLY | O_PATH, f(1));",
            "    socket(AF_UNIX, SOCK_STREAM, 0);", "    socketpair(AF_UNIX, SOCK_STREAM, 0, v);",
            "    pipe2(v, 0);", "    accept4(fd, a, b, 0);", "    dup3(a, b, 0);",
            "    eventfd(0, 0);", "    signalfd(-1, &m, 0);", "    timerfd_create(c, 0);",
            "    memfd_create(n, 0);", "    epoll_create1(0);", "    recvmsg(fd, &m, 0);",
            "    posix_openpt(O_RDWR);", '    fopen(path, "r");', "    open(path, flags);",
            "    open(path, O_RDONLY /* O_CLOEXEC */);",
        ):
            with self.subTest(code):
                self.in_source("check-banned", code)

    def test_descriptors_with_close_on_exec(self):
        for code in (
            "    open(path, O_PATH | O_CLOEXEC);",
            "    openat(dir, f(a, (b)),\n           O_RDONLY | O_DIRECTORY | O_CLOEXEC);",
            "    socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);",
            "    const int flags = O_RDONLY | O_NONBLOCK | O_CLOEXEC;\n    open(path, flags | O_CREAT);",
            '    fopen("/etc/passwd", "re");', "    recvmsg(fd, &m, MSG_CMSG_CLOEXEC);",
        ):
            with self.subTest(code):
                self.not_in_source("check-banned", code)

    def test_opening_what_may_wait_for_ever(self):
        for code in (
            "    open(path, O_RDONLY | O_CLOEXEC);", "    openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);",
            '    fopen(path, "re");', '    open("/dev/nullx", O_RDONLY | O_CLOEXEC);',
            "    const int flags = O_RDONLY | O_CLOEXEC; open(path, flags);",
        ):
            with self.subTest(code):
                self.in_source("check-banned", code, "fd_open_file")
        for code in (
            "    open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);",
            "    openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);",
            '    open("/dev/null", O_RDWR | O_CLOEXEC);', '    open("/proc/self/maps", O_RDONLY | O_CLOEXEC);',
            "    open(path, O_RDONLY | O_CLOEXEC); /* allow blocking open: who waits */",
        ):
            with self.subTest(code):
                self.not_in_source("check-banned", code)
        self.passes("check-banned", {"src/guard/x.c": "/* E. */\nint a(void)\n{\n"
                                     "    return open(path, O_RDONLY | O_CLOEXEC);\n}\n"})

    def test_allowing_needs_the_name_and_a_reason(self):
        self.not_in_source("check-banned", "    dup2(a, 1); /* allow dup2: the command's own */")
        self.not_in_source("check-banned", "    /* allow dup2: the command's own */\n    dup2(a, 1);")
        self.in_source("check-banned", "    dup2(a, 1); /* allow dup2 */")
        self.in_source("check-banned", "    dup2(a, 1); /* allow dup: wrong name */")

    def test_declaring_is_not_calling(self):
        self.passes("check-banned", {"src/base/sys.h": "int sys_memfd_create(const char *name);\n"})


class Style(Checks):
    @staticmethod
    def function(name, lines):
        """A function of so many lines, from its name to its last brace."""
        return f"int {name}(int a)\n{{\n" + "    a++;\n" * (lines - 3) + "}\n"

    def source(self, text, **files):
        return {"src/process/x.c": "/* Essay. */\n" + text, **files}

    def test_function_at_the_limit_and_beyond(self):
        self.passes("check-style", self.source(self.function("f", 60)))
        self.catches("check-style", self.source(self.function("first", 5) + "\n" +
                                                self.function("second", 61)),
                     "src/process/x.c:8", "second", "61 lines")

    def test_a_signature_of_several_lines_counts(self):
        text = "static int\nf(int a,\n  int b)\n{\n" + "    a++;\n" * 56 + "}\n"
        self.catches("check-style", self.source(text), "f has 61 lines")

    def test_file_at_the_limit_and_beyond(self):
        self.passes("check-style", self.source("int a;\n" * 699))
        self.catches("check-style", self.source("int a;\n" * 700), "has 701 lines")
        self.passes("check-style", {"tests/unit/x.c": "int a;\n" * 800})
        self.catches("check-style", {"tests/unit/x.c": "int a;\n" * 801}, "has 801 lines")

    def test_allow_list(self):
        long = self.source(self.function("f", 80))
        allow = "src/process/x.c:f 80 a table\n"
        self.passes("check-style", {**long, "scripts/style-allow": "# comment\n" + allow})
        self.catches("check-style", {**long, "scripts/style-allow": allow.replace("80", "79")},
                     "the limit is 79")
        self.catches("check-style", {**long, "scripts/style-allow": "src/process/x.c:f 80\n"},
                     "not PLACE NUMBER REASON")

    def test_allow_list_holds_nothing_that_is_not_needed(self):
        self.catches("check-style", {"scripts/style-allow": "src/process/gone.c 500 big\n"}, "remove it")

    def test_essay(self):
        self.catches("check-style", {"src/process/x.c": "#include <stdio.h>\n"}, "essay")


class Headers(Checks):
    def test_a_header_that_leans_on_its_includer(self):
        self.catches("check-headers", {"src/base/x.h": "#pragma once\nsize_t x(void);\n"},
                     "src/base/x.h: does not compile alone")

    def test_a_header_that_cannot_be_included_twice(self):
        self.catches("check-headers", {"src/base/x.h": "struct x { int a; };\n"}, "src/base/x.h")

    def test_installed_headers_are_c99(self):
        text = "#pragma once\n_Static_assert(1, \"C11\");\n"
        self.catches("check-headers", {"include/x.h": text}, "include/x.h")
        self.passes("check-headers", {"src/base/x.h": text})


class Format(Checks):
    def test_wrong_format(self):
        self.in_source("check-format", "  int  a ;", "clang-format")

    def test_tests_are_looked_at_too(self):
        self.catches("check-format", {"tests/unit/x.c": "int  a ;\n"}, "tests/unit/x.c")


class Lists(unittest.TestCase):
    """What meson has to be told by name is complete."""

    def listed(self, folder, pattern):
        text = (TREE / folder / "meson.build").read_text()
        for path in sorted((TREE / folder).glob(pattern)):
            with self.subTest(path.name):
                self.assertRegex(text, rf"'{re.escape(path.name.split('.')[0])}\b")

    def test_fuzz_targets(self):
        self.listed("fuzz", "fuzz_*.c")

    def test_man_pages(self):
        self.listed("man", "*.scd")

    def test_completions(self):
        self.listed("completions", "cordon*")

    def test_scripts_are_executable(self):
        for path in [*(TREE / "scripts").glob("*"), TREE / ".ci" / "run"]:
            if path.is_file() and path.read_text().startswith("#!"):
                with self.subTest(path.name):
                    self.assertTrue(path.stat().st_mode & 0o100)


class Schema(unittest.TestCase):
    NINJA = ("rule schema\n command = scripts/schema c $out methods.d\n depfile = methods.d\n"
             "build methods.c methods.h: schema\n")
    METHOD = ('{"method": "zebra/run", "kind": "request", "family": "zebra", "origin": "cordon", '
              '"about": "Runs.", "params": {}}')

    def test_a_new_family_makes_the_table_anew(self):
        with tempfile.TemporaryDirectory() as folder:
            top = pathlib.Path(folder)
            shutil.copytree(TREE / "schema", top / "schema")
            (top / "scripts").mkdir()
            shutil.copy(TREE / "scripts" / "schema", top / "scripts")
            (top / "build.ninja").write_text(self.NINJA)

            def ninja():
                return subprocess.run(["ninja"], cwd=top, capture_output=True, text=True,
                                      check=True).stdout

            ninja()
            self.assertIn("no work to do", ninja())
            (top / "schema" / "zebra").mkdir()
            (top / "schema" / "zebra" / "run.json").write_text(self.METHOD)
            ninja()
            self.assertIn("zebra/run", (top / "methods.c").read_text())
            self.assertIn("void method_zebra_run(", (top / "methods.h").read_text())
            self.assertIn("no work to do", ninja())


if __name__ == "__main__":
    unittest.main()
