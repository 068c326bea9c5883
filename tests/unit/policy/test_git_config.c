/* git_config: what a configuration of git names, key by key. */
#include "../base/support.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "policy/git_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const kinds[] = {"-", "include", "worktree", "hooks", "path", "command"};

static void read_all(const char *text, struct buf *ret)
{
    AUTO(git_config_done) struct git_config_reader reader = {0};
    enum git_config_kind kind;

    buf_append_str(ret, "");
    git_config_begin(&reader, text, strlen(text));
    while ((kind = git_config_next(&reader)) != GIT_CONFIG_NOTHING)
        buf_appendf(ret, "%s=%s|", kinds[kind], reader.value);
}

static void check(const char *text, const char *wanted)
{
    AUTO(buf_done) struct buf got = {.max = 4096};

    read_all(text, &got);
    assert_string_equal(got.data ? got.data : "", wanted);
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
    check("[alias]\nl = log\nf = \"!./f\"\n[submodule \"s\"]update=merge\n", "command=!./f|");
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

/* --- as git reads it --- */

/* What git lists is "KEY\nVALUE\0", or "KEY\0" for a key without value. false: it takes it for broken. */
static bool ask_git(const char *path, struct buf *ret)
{
    AUTO_FREE char *command = alloc_strf("git config --null --list --file '%s' 2>/dev/null", path);
    FILE *pipe = popen(command, "re");
    char list[1 << 16];
    size_t len;

    assert_non_null(pipe);
    len = fread(list, 1, sizeof list - 1, pipe);
    list[len] = '\0';
    for (const char *at = list; at < list + len; at += strlen(at) + 1) {
        const char *value = strchr(at, '\n');

        if (value && value[1] && strncmp(at, "pager.", 6) == 0)
            buf_appendf(ret, "command=%s|", value + 1);
        else if (value && value[1] && strncmp(at, "core.hookspath\n", 15) == 0)
            buf_appendf(ret, "hooks=%s|", value + 1);
        else if (value && value[1] && strncmp(at, "include.path\n", 13) == 0)
            buf_appendf(ret, "include=%s|", value + 1);
    }
    return pclose(pipe) == 0;
}

/* Before 2.45 git takes each blank within a value for a space. */
static void blanks(struct buf *text)
{
    for (size_t i = 0; i < text->len; i++)
        if (text->data[i] == '\t' || text->data[i] == '\r')
            text->data[i] = ' ';
}

static const char *const pieces[] = {
    "[core]",
    "[PAGER]",
    "[include]",
    "[pager \"a]b\\\"c\"]",
    "[pager.sub]",
    "hooksPath",
    "path",
    "x-1",
    "=",
    " = ",
    "\n",
    "\r\n",
    "\t",
    " ",
    "\"",
    "\\\"",
    "\\\\",
    "\\n",
    "\\\n",
    "\\\r\n",
    "# c",
    " ; c",
    "a b",
    "!sh ./y",
    "x = 1\n",
    "path = p\n",
    "\n[core]\n",
    "hooksPath = \"h #\" ;\n",
    "\n[pager]\nx=",
    "\r",
};

static void git_reads_the_same(void **state)
{
    AUTO_FREE char *dir = support_scratch_new();
    AUTO_FREE char *path = alloc_strf("%s/config", dir);
    unsigned seed = 1;
    int taken = 0;

    for (int round = 0; round < 120; round++) {
        AUTO(buf_done) struct buf text = {.max = 4096};
        AUTO(buf_done) struct buf wanted = {.max = 1 << 16};
        AUTO(buf_done) struct buf got = {.max = 1 << 16};
        FILE *file = fopen(path, "we");

        buf_append_str(&text, round % 3 ? "[core]\nhooksPath = " : "[pager]\nx = ");
        for (int i = 0; i < 2 + round % 9; i++)
            buf_append_str(&text, pieces[(size_t)rand_r(&seed) % (sizeof pieces / sizeof *pieces)]);
        assert_non_null(file);
        fwrite(text.data, 1, text.len, file);
        fclose(file);
        buf_append_str(&wanted, "");
        if (!ask_git(path, &wanted))
            continue;
        taken++;
        read_all(text.data, &got);
        blanks(&wanted);
        blanks(&got);
        if (strcmp(got.data ? got.data : "", wanted.data ? wanted.data : "") != 0)
            fail_msg("\"%s\": \"%s\", git: \"%s\"", text.data, got.data, wanted.data);
    }
    assert_true(taken > 20);
    support_scratch_remove(alloc_str(dir));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_named),
        cmocka_unit_test(what_is_broken),
        cmocka_unit_test(git_reads_the_same),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
