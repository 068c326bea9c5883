/* base/git_names: what a path in a git directory is. */
#include "support.h"

#include "base/git_names.h"

#include <string.h>

static const struct {
    enum git_kind kind;
    const char *paths[32];
} rows[] = {
    {GIT_DATA,
     {"packed-refs",
      "packed-refs.lock",
      "packed-refs.new",
      "ORIG_HEAD",
      "FETCH_HEAD",
      "MERGE_MSG",
      "MERGE_MODE",
      "COMMIT_EDITMSG",
      "COMMIT_EDITMSG~",
      ".COMMIT_EDITMSG.swp",
      "REBASE_HEAD",
      "AUTO_MERGE",
      "index.lock",
      "index.stash.123",
      "index.stash.123.lock",
      "next-index-9.lock",
      "HEAD.lock",
      "config.lock",
      "shallow",
      "shallow.lock",
      "gc.pid.lock",
      "info/refs",
      "info/refs_Xa1b2c",
      "tAb12Cd",
      "worktrees/x/HEAD",
      "worktrees/x/locked",
      "worktrees/x/index.lock",
      "worktrees/x/ORIG_HEAD",
      "BISECT_LOG"}},
    {GIT_FOLDER,
     {"objects/ab", "objects/ab/cd", "objects/pack/pack-1.idx", "objects/info/commit-graph",
      "refs/heads", "refs/heads/config", "refs/heads/hooks/x", "refs/stash", "logs", "logs/HEAD",
      "rebase-merge", "rebase-merge/git-rebase-todo", "rebase-apply/next", "sequencer/todo",
      "rr-cache/1/preimage", "lfs/objects/a", "worktrees/x/logs/HEAD",
      "worktrees/x/refs/bisect/bad", "worktrees/x/rebase-merge/done"}},
    {GIT_HOLDER,
     {"objects", "refs", "worktrees", "worktrees/x", "worktrees/config", "worktrees/x/refs"}},
    {GIT_HEAD, {"HEAD"}},
    {GIT_INDEX, {"index", "worktrees/x/index"}},
    {GIT_CONFIG, {"config"}},
    {GIT_COMMONDIR, {"worktrees/x/commondir"}},
    {GIT_GITDIR, {"worktrees/x/gitdir"}},
    {GIT_CLOSED,
     {"hooks",
      "hooks/pre-commit",
      "hooks/pre-commit.sample",
      "config.worktree",
      "config.worktree.lock",
      "CONFIG",
      "Config",
      "HOOKS",
      "INFO",
      "commondir",
      "gitdir",
      "info",
      "info/attributes",
      "info/exclude",
      "info/grafts",
      "info/sparse-checkout",
      "objects/info/alternates",
      "objects/info/http-alternates",
      "objects/info/alternates.lock",
      "objects/INFO/Alternates",
      "objects/inf\xc2\xado/alternates",
      "objects/info/alternate\xc5\xbf",
      "modules",
      "modules/x/config",
      "modules/x/HEAD",
      "description",
      "branches",
      "remotes/x"}},
    {GIT_CLOSED,
     {"worktrees/x/config", "worktrees/x/config.lock", "worktrees/x/config.worktree",
      "worktrees/x/hooks", "worktrees/x/hooks/x", "worktrees/x/info", "fsmonitor--daemon",
      "fsmonitor--daemon.ipc", "svn/x", "annex", "head", "Index", "INDEX", "x", ".x", "tab",
      "sharedindex.12"}},
};

static void test_names(void **state)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (const char *const *path = rows[i].paths; *path; path++)
            if (git_name_of(*path, false).kind != rows[i].kind)
                fail_msg("%s is %d, not %d", *path, git_name_of(*path, false).kind, rows[i].kind);
}

static void test_templates(void **state)
{
    assert_int_equal(git_name_of("hooks/pre-commit.sample", true).kind, GIT_DATA);
    assert_int_equal(git_name_of("info/exclude", true).kind, GIT_DATA);
    assert_int_equal(git_name_of("hooks", true).kind, GIT_HOLDER);
    assert_int_equal(git_name_of("hooks/pre-commit", true).kind, GIT_CLOSED);
    assert_int_equal(git_name_of("hooks/x/y.sample", true).kind, GIT_CLOSED);
    assert_int_equal(git_name_of("info/attributes", true).kind, GIT_CLOSED);
}

static void test_worktrees(void **state)
{
    const struct git_name name = git_name_of("worktrees/x/refs/y", false);

    assert_true(name.is_of_worktree);
    assert_string_equal(name.rest, "refs/y");
    assert_false(git_name_of("worktrees/x", false).is_of_worktree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_templates),
        cmocka_unit_test(test_worktrees),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
