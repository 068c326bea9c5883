/* guard/git_data: which HEAD, configuration and index may take the place of the one that is there. */
#include "../base/support.h"

#include "guard/git_data.h"

#include <string.h>

static void test_head(void **state)
{
    static const char *const good[] = {"ref: refs/heads/main\n", "ref: refs/heads/\xc3\xa4\n",
                                       "0123456789abcdef0123456789abcdef01234567\n"};
    static const char *const bad[] = {"",
                                      "\n",
                                      "ref: refs/\n",
                                      "ref: refs/heads/main",
                                      "ref: heads/main\n",
                                      "none\n",
                                      "ref: refs/heads/a b\n",
                                      "ref: refs/heads/a\nx\n",
                                      "0123\n",
                                      "0123456789abcdef0123456789abcdef0123456x\n"};

    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_true(git_head_is_whole(good[i], strlen(good[i])));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(git_head_is_whole(bad[i], strlen(bad[i])));
    assert_false(git_head_is_whole("ref: refs/a\0b\n", 14));
}

static bool may_become(const char *old, const char *new)
{
    return git_config_is_same(old, strlen(old), new, strlen(new));
}

#define REMOTE                                                                                     \
    "[remote \"origin\"]\n\turl = /srv/x\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n"

static void test_config_of_data(void **state)
{
    assert_true(
        may_become("", "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n"
                       "\tlogallrefupdates = true\n"));
    assert_true(may_become("", "[user]\n\tname = A B\n\temail = a@b\n"));
    assert_true(
        may_become(REMOTE, REMOTE
                   "[branch \"x\"]\n\tremote = origin\n\tmerge = refs/heads/x\n\trebase = true\n"));
    assert_true(may_become("", "[branch \"x\"]\n\tremote = .\n\tmerge = refs/heads/y\n"));
    assert_true(may_become("[core]\n\tfsmonitor = x\n# c\n",
                           "[CORE]\n\tbare=false\n[core]\n\tfsmonitor = x\n"));
    assert_true(may_become("[alias]\n\tx = \"!a \\\n\tb\"\n",
                           "[alias]\n\tx = \"!a \\\n\tb\"\n[branch \"x\"]\n"));
}

static void test_config_of_what_is_run(void **state)
{
    static const char *const added[] = {
        "[core]\n\tfsmonitor = x\n",
        "[core] fsmonitor = x\n",
        "[core]fsmonitor=x\n",
        "[core]\n\thooksPath = x\n",
        "[core]\n\tbare = true\n",
        "[core]\n\tbare = false ; \\\n\tfsmonitor = x\n",
        "[core]\n\tworktree = /x\n",
        "[core]\n\tfilemode = true \\\n",
        "[core \"x\"]\n\tbare = false\n",
        "[include]\n\tpath = x\n",
        "[alias]\n\tname = !x\n",
        "[user]\n\tsigningKey = x\n",
        "[user]\n\tname = \"x\n",
        "[remote \"x\"]\n\turl = x\n",
        "[branch \"x\"]\n\tremote = ./x\n",
        "[branch \"x\"]\n\tremote = origin2\n",
        "[branch \"x\"]\n\tpushRemote = origin\n",
        "[branch \"x\"]\n\tmerge = x\n",
        "[branch.x]\n\tremote = origin\n",
        "[branch \"x\\\"y\"]\n\tremote = .\n",
        "[diff \"x\"]\n\ttextconv = x\n",
        "x\n",
    };

    for (size_t i = 0; i < sizeof added / sizeof *added; i++) {
        char text[512] = REMOTE;

        strcat(text, added[i]);
        if (may_become(REMOTE, text))
            fail_msg("added: %s", added[i]);
        if (may_become(text, REMOTE) && strcmp(added[i], "[core]\n\tbare = true\n") != 0 &&
            !strstr(added[i], "branch"))
            fail_msg("taken away: %s", added[i]);
    }
}

static void test_config_that_is_moved(void **state)
{
    /* another section, another order, the middle of a value */
    assert_false(may_become("[a]\nx = y\n[b]\n", "[a]\n[b]\nx = y\n"));
    assert_false(may_become("[alias]\nx = a\ny = b\n", "[alias]\ny = b\nx = a\n"));
    assert_false(
        may_become("[alias]\nx = a \\\n b\n", "[alias]\nx = a \\\n[user]\nname = c\n b\n"));
    assert_false(
        may_become("[user]\nx = y ; \\\n[alias]\n", "[user]\nx = y ; \\\n[alias]\nname = !c\n"));
    assert_false(
        may_become("[remote \"./x\"]\n", "[remote \"./x\"]\n[branch \"m\"]\nremote = ./x\n"));
    assert_false(git_config_is_same("", 0, "[user]\nname = a\0b\n", 18));
}

/* --- index --- */

struct made {
    unsigned char bytes[1024];
    size_t len;
};

static void add(struct made *made, const void *bytes, size_t len)
{
    memcpy(made->bytes + made->len, bytes, len);
    made->len += len;
}

/* An index of version 2 with these paths, of which those with a star are submodules. */
static void make(struct made *made, const char *const *paths, size_t hash, const char *extension)
{
    static const unsigned char zeros[64];
    unsigned char count = 0;

    *made = (struct made){0};
    add(made, "DIRC\0\0\0\2\0\0\0", 11);
    while (paths[count])
        count++;
    add(made, &count, 1);
    for (; *paths; paths++) {
        const bool is_link = **paths == '*';
        const char *path = *paths + is_link;
        const size_t start = made->len;
        const unsigned char mode[4] = {0, 0, is_link ? 0xe0 : 0x81, is_link ? 0 : 0xa4};
        const unsigned char flags[2] = {0, (unsigned char)strlen(path)};

        add(made, zeros, 24);
        add(made, mode, 4);
        add(made, zeros, 12 + hash);
        add(made, flags, 2);
        add(made, path, strlen(path) + 1);
        add(made, zeros, (start - made->len) % 8);
    }
    if (extension) {
        add(made, extension, 4);
        add(made, "\0\0\0\4abcd", 8);
    }
    add(made, zeros, hash);
}

static bool is_part(void *data, const char *path)
{
    (*(int *)data)++;
    return strcmp(path, "part") == 0;
}

static void test_index(void **state)
{
    static const size_t hashes[] = {20, 32};
    static const char *const plain[] = {"a", "b/c", NULL};
    static const char *const one[] = {"a", "*part", "z", NULL};
    static const char *const other[] = {"*other", "*part", NULL};
    struct made made;

    for (size_t i = 0; i < 2; i++) {
        int seen = 0;

        make(&made, plain, hashes[i], NULL);
        assert_true(git_index_each_link(made.bytes, made.len, is_part, &seen));
        assert_int_equal(seen, 0);
        make(&made, one, hashes[i], "TREE");
        assert_true(git_index_each_link(made.bytes, made.len, is_part, &seen));
        assert_int_equal(seen, 1);
        make(&made, other, hashes[i], NULL);
        assert_false(git_index_each_link(made.bytes, made.len, is_part, &seen));
        make(&made, plain, hashes[i], "link");
        assert_false(git_index_each_link(made.bytes, made.len, is_part, &seen));
    }
}

static void test_broken_index(void **state)
{
    static const char *const one[] = {"a", "*part", NULL};
    struct made made;
    int seen = 0;

    make(&made, one, 20, NULL);
    for (size_t len = 0; len < made.len; len++)
        assert_false(git_index_each_link(made.bytes, len, is_part, &seen));
    made.bytes[7] = 5;
    assert_false(git_index_each_link(made.bytes, made.len, is_part, &seen));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_head),
        cmocka_unit_test(test_config_of_data),
        cmocka_unit_test(test_config_of_what_is_run),
        cmocka_unit_test(test_config_that_is_moved),
        cmocka_unit_test(test_index),
        cmocka_unit_test(test_broken_index),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
