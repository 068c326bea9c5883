/* run_later: which files somebody runs or obeys later, and who. */
#include "policy/run_later.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const char *const cases[][2] = {
    {"/w/Makefile", "make"},
    {"/w/sub/dir/Makefile", "make"},
    {"/Makefile", "make"},
    {"/w/rules.mk", "make"},
    {"/w/package.json", "npm"},
    {"/w/vite.config.ts", "node's tools"},
    {"/w/tests/conftest.py", "pytest"},
    {"/w/.github/workflows/ci.yml", "CI"},
    {"/w/a/.github/workflows/ci.yml", "CI"},
    {"/.github/workflows/ci.yml", "CI"},
    {"/w/.github/actions/x/action.yml", "CI"},
    {"/w/AGENTS.md", "agents"},
    {"/w/.claude/settings.json", "agents"},
    {"/w/.husky/pre-commit", "git's hooks"},
    {"/w/.cargo/config.toml", "cargo"},
    {"/w/.vscode/tasks.json", "editors"},
    {".vscode/a/b", "editors"},
    {"/w/.claude/skills/x/run.py", "agents"},
    {".github/actions/a/b/index.js", "CI"},
    {"/w/JUSTFILE", "just"},
    {"x/dockerfile", "container builds"},
    {"bare/HEAD", "git"},
    {"/w/.rules.mk", "make"},
    {"a/Makefile.inc", "make"},
    {"out/build.ninja", "ninja"},
    {"package-lock.json", "npm"},
    {"gradle/wrapper/gradle-wrapper.jar", "gradle"},
    {"tests/__pycache__/conftest.cpython-311.pyc", "pytest"},
    {"lib/sitecustomize/__init__.py", "python"},
    {"compose.override.yml", "compose"},
    {".eslintrc", "node's tools"},
    {".mvn/jvm.config", "maven"},
    {".github/hooks/x.json", "agents"},
    {".clinerules/a.md", "agents"},
    {"dotfiles/.zprofile", "shells"},
    {".config/systemd/user/x.service", "many programs"},
    {".hg/hgrc", "hg"},
    {".claude/worktrees/x/.claude/settings.json", "agents"},
};

static void files_and_who_runs_them(void **state)
{
    static const char *const none[] = {
        "/",
        "/w",
        "/w/README.md",
        "/w/Makefile/x",
        "/w/makefile.c",
        "/workflows/ci.yml",
        "/w/workflows/ci.yml",
        "/w/.github/workflows",
        "/w/github/workflows/ci.yml",
        "/w/config.toml",
        "/w/config.js",
        "/w/x.config.json",
        "/w/.claude/worktrees/x/a.c",
        "/w/.claude",
        "/w/x.claude/a",
    };
    static const char *const through[] = {"/w/.vscode", ".github", "a/.github/workflows",
                                          ".Claude"};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (!run_later_by(cases[i][0]))
            fail_msg("nobody is said to run %s", cases[i][0]);
        assert_string_equal(run_later_by(cases[i][0]), cases[i][1]);
    }
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        if (run_later_by(none[i]))
            fail_msg("%s is said to run %s", run_later_by(none[i]), none[i]);
    for (size_t i = 0; i < sizeof through / sizeof *through; i++)
        assert_non_null(run_later_through(through[i]));
    assert_null(run_later_through("/w/workflows"));
    assert_null(run_later_through("/w/x.vscode"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(files_and_who_runs_them)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
