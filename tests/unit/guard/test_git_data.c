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
        assert_true(git_index_each_link(made.bytes, made.len, hashes[i], is_part, &seen));
        assert_int_equal(seen, 0);
        make(&made, one, hashes[i], "TREE");
        assert_true(git_index_each_link(made.bytes, made.len, hashes[i], is_part, &seen));
        assert_int_equal(seen, 1);
        make(&made, other, hashes[i], NULL);
        assert_false(git_index_each_link(made.bytes, made.len, hashes[i], is_part, &seen));
        assert_false(git_index_each_link(made.bytes, made.len, 52 - hashes[i], is_part, &seen));
        for (size_t j = 0; j < 3; j++) {
            make(&made, plain, hashes[i], (const char *[]){"link", "sdir", "IEOT"}[j]);
            assert_false(git_index_each_link(made.bytes, made.len, hashes[i], is_part, &seen));
        }
    }
}

/* git writes each at the next `git checkout .` */
static void test_index_of_other_paths(void **state)
{
    static const char *const good[] = {".gitignore", "a/.gitmodules", ".git-x",
                                       "..a/b..",    ".git.x/part",   "git~10",
                                       "...",        ".g\xc3\xa9t",   NULL};
    static const char *const bad[] = {"../a",
                                      "a/../../b",
                                      "/a",
                                      "a//b",
                                      "./a",
                                      "a/.",
                                      "",
                                      "a/",
                                      ".git/x",
                                      "a/.GiT",
                                      ".git. /x",
                                      "GIT~1/x",
                                      ".git::$I/x",
                                      "a/.g\xe2\x80\x8cIt/x",
                                      "\xc2\xad.git",
                                      NULL};
    struct made made;
    int seen = 0;

    for (size_t i = 0; good[i]; i++) {
        make(&made, (const char *[]){good[i], NULL}, 20, NULL);
        assert_true(git_index_each_link(made.bytes, made.len, 20, is_part, &seen));
    }
    for (size_t i = 0; bad[i]; i++) {
        make(&made, (const char *[]){bad[i], NULL}, 20, NULL);
        if (git_index_each_link(made.bytes, made.len, 20, is_part, &seen))
            fail_msg("%s", bad[i]);
    }
}

/* What git would read in another way: a path whose length is another than where it ends, entries that are
 * elsewhere, a directory in the place of what is in it. */
static void test_index_that_git_reads_otherwise(void **state)
{
    static const char *const one[] = {"abcd", NULL};
    struct made made;
    int seen = 0;

    make(&made, one, 20, NULL);
    made.bytes[12 + 61] = 3;
    assert_false(git_index_each_link(made.bytes, made.len, 20, is_part, &seen));
    made.bytes[12 + 61] = 5;
    assert_false(git_index_each_link(made.bytes, made.len, 20, is_part, &seen));
    made.bytes[12 + 60] = 0x0f;
    made.bytes[12 + 61] = 0xff; /* it is as long as it is */
    assert_true(git_index_each_link(made.bytes, made.len, 20, is_part, &seen));
    made.bytes[12 + 26] = 0x40;
    made.bytes[12 + 27] = 0;
    assert_false(git_index_each_link(made.bytes, made.len, 20, is_part, &seen));
    for (unsigned char end = 83; end < 86; end++) { /* entries end at 84 */
        make(&made, one, 20, NULL);
        assert_int_equal(made.len, 84 + 20);
        made.len -= 20;
        add(&made, "EOIE\0\0\0\30\0\0\0", 11);
        add(&made, &end, 1);
        memset(made.bytes + made.len, 0, 40);
        made.len += 40;
        assert_int_equal(git_index_each_link(made.bytes, made.len, 20, is_part, &seen), end == 84);
    }
}

static void test_hash_of_the_repository(void **state)
{
    static const struct {
        const char *config;
        size_t hash;
    } cases[] = {
        {"", 20},
        {"[core]\n\trepositoryformatversion = 1\n[extensions]\n\tobjectformat = sha256\n", 32},
        {"[extensions]\n\tobjectFormat = SHA256\n", 32},
        {"[extensions]\n\tobjectformat = sha1\n", 20},
        {"# objectformat = sha256\n[user]\n\tname = objectformat = sha256\n", 20},
        {"[extensions]\n# objectformat = sha256\n[user]\nobjectformat = sha256\n", 20},
        {"[extensions]\n\tobjectformat = \"sha256\"\n", 0},
        {"[extensions] objectFormat = sha256\n", 0},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(git_config_hash_bytes(cases[i].config, strlen(cases[i].config)),
                         cases[i].hash);
}

static void test_broken_index(void **state)
{
    static const char *const one[] = {"a", "*part", NULL};
    struct made made;
    int seen = 0;

    make(&made, one, 20, NULL);
    for (size_t len = 0; len < made.len; len++)
        assert_false(git_index_each_link(made.bytes, len, 20, is_part, &seen));
    for (unsigned char version = 1; version < 6;
         version++) { /* in 4 paths are written in another way */
        made.bytes[7] = version;
        assert_int_equal(git_index_each_link(made.bytes, made.len, 20, is_part, &seen),
                         version == 2 || version == 3);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_head),
        cmocka_unit_test(test_config_of_data),
        cmocka_unit_test(test_config_of_what_is_run),
        cmocka_unit_test(test_config_that_is_moved),
        cmocka_unit_test(test_index),
        cmocka_unit_test(test_index_of_other_paths),
        cmocka_unit_test(test_index_that_git_reads_otherwise),
        cmocka_unit_test(test_hash_of_the_repository),
        cmocka_unit_test(test_broken_index),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
