/* git_config: what a configuration of git names, key by key. */
#include "../base/support.h"

#include "base/auto.h"
#include "base/buf.h"
#include "policy/git_config.h"

#include <string.h>

static void check(const char *text, const char *wanted)
{
    static const char *const kinds[] = {"-", "include", "worktree", "hooks", "path", "command"};
    AUTO(git_config_done) struct git_config_reader reader = {0};
    AUTO(buf_done) struct buf got = {.max = 4096};
    enum git_config_kind kind;

    git_config_begin(&reader, text, strlen(text));
    while ((kind = git_config_next(&reader)) != GIT_CONFIG_NOTHING)
        buf_appendf(&got, "%s=%s|", kinds[kind], reader.value);
    assert_string_equal(got.len ? got.data : "", wanted);
}

static void what_is_named(void **state)
{
    check("[core]\n\tbare = false\n\thooksPath = .husky/_\n", "hooks=.husky/_|");
    check("[include] path=a\n[includeIf \"gitdir:~/x/\"]\npath = b ; c\n", "include=a|include=b|");
    check("[CORE]FSMONITOR=x y\n[core]fsmonitor\n[core]\nfsmonitor =\n", "command=x y|");
    check("[filter \"lfs\"]\nclean = \"git-lfs clean -- %f\" # c\nrequired = true\n",
          "command=git-lfs clean -- %f|");
    check("[diff.bin]\r\n\ttextconv = \"a;b\"\\\r\n c\r\n", "command=a;b c|");
    check("\xef\xbb\xbf[alias]\n x = !sh ./y\n[core]worktree=../w",
          "command=!sh ./y|worktree=../w|");
    check("[tar \"tar.x\"]command=a\n[submodule \"s\"]update=!./b\n", "command=a|command=!./b|");
    check("[merge \"a\\\"]b\"]\n driver = m %A \\\n  n\n", "command=m %A   n|");
}

/* It goes on behind what git would not accept. */
static void what_is_broken(void **state)
{
    check("", "");
    check("hooksPath = x\n", "");
    check("[core\nhooksPath = x\n", "hooks=x|");
    check("[core]\n= y\n!\nhooksPath \"x\"\nhooksPath = z", "hooks=z|");
    check("[core]\nhooksPath = \"x", "hooks=x|");
    check("[core]\nhooksPath = x\\", "hooks=x|");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_named),
        cmocka_unit_test(what_is_broken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
