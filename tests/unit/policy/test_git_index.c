/* git_index: against indexes that git itself wrote (the seeds of the fuzz target): versions 2 to 4,
 * both hashes, with none, one and three submodules. */
#include "../base/cases.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/strv.h"
#include "policy/git_index.h"

#include <string.h>

static int submodules(const char *name, struct strv *ret, struct err *err)
{
    size_t len;
    AUTO_FREE char *bytes = case_text("../../fuzz/corpus/fuzz_git_index", name, &len);

    AUTO_FREE char *shared = NULL;
    int status = git_index_submodules(bytes, len, ret, &shared, err);

    assert_null(shared);
    return status;
}

static void indexes_of_git(void **state)
{
    static const char *const hashes[] = {"sha1", "sha256"};
    static const int counts[] = {0, 1, 3};

    for (int version = 2; version <= 4; version++) {
        for (int i = 0; i < 6; i++) {
            int count = counts[i % 3];
            AUTO_FREE char *name = alloc_strf("v%d-%s-%d", version, hashes[i / 3], count);
            AUTO(strv_done) struct strv paths = {0};
            struct err err = {0};

            if (submodules(name, &paths, &err))
                fail_msg("%s: %s", name, err.msg);
            assert_int_equal(paths.len, count);
            for (int j = 0; j < count; j++) {
                AUTO_FREE char *wanted = alloc_strf("sub/dir%.*s", j, "yyy");

                assert_string_equal(paths.items[j], wanted);
            }
        }
    }
}

static void broken_ones(void **state)
{
    static const char *const names[] = {"cut", "empty", "header", "count"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        AUTO(strv_done) struct strv paths = {0};
        struct err err = {0};

        assert_int_equal(submodules(names[i], &paths, &err), -1);
        assert_int_equal(err.code, ERR_INVALID);
        assert_int_equal(paths.len, 0);
    }
}

/* Nobody knows yet what such a version would mean, even where nothing is in it. */
static void versions_that_git_does_not_have(void **state)
{
    static const char versions[] = {0, 1, 5};
    size_t len;
    AUTO_FREE char *bytes = case_text("../../fuzz/corpus/fuzz_git_index", "v4-sha1-0", &len);

    memset(bytes + 8, 0, 4); /* no entries: those could not be read in any case */
    for (size_t i = 0; i < sizeof versions; i++) {
        AUTO(strv_done) struct strv paths = {0};
        struct err err = {0};

        AUTO_FREE char *shared = NULL;

        bytes[7] = versions[i];
        assert_int_equal(git_index_submodules(bytes, len, &paths, &shared, &err), -1);
        assert_string_equal(err.msg, "the git index is malformed, or not of version 2 to 4");
    }
}

/* An index with the extension of `name`, of the bytes of a hash and two more, in front of its own hash. */
static char *with_extension(const char *name, unsigned char hash, size_t *ret_len)
{
    static const unsigned char size[] = {0, 0, 0, 22};
    size_t len;
    AUTO_FREE char *bytes = case_text("../../fuzz/corpus/fuzz_git_index", "v2-sha1-1", &len);
    char *ret = alloc_zero(1, len + 30);
    size_t at = len - 20;

    memcpy(ret, bytes, at);
    memcpy(ret + at, name, 4);
    memcpy(ret + at + 4, size, 4);
    memset(ret + at + 8, hash, 20);
    memcpy(ret + at + 30, bytes + at, 20);
    *ret_len = len + 30;
    return ret;
}

static void split_ones(void **state)
{
    static const struct {
        const char *name;
        unsigned char hash;
        const char *shared; /* NULL: none */
    } cases[] = {
        {"link", 0xab, "sharedindex.abababababababababababababababababababab"},
        {"link", 0, NULL},
        {"TREE", 0xab, NULL},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t len;
        AUTO_FREE char *bytes = with_extension(cases[i].name, cases[i].hash, &len);
        AUTO(strv_done) struct strv paths = {0};
        AUTO_FREE char *shared = NULL;
        struct err err;

        assert_int_equal(git_index_submodules(bytes, len, &paths, &shared, &err), 0);
        assert_int_equal(paths.len, 1);
        if (cases[i].shared)
            assert_string_equal(shared, cases[i].shared);
        else
            assert_null(shared);
    }
}

/* A submodule without a path takes the place of one in the shared index. */
static void a_replaced_submodule(void **state)
{
    size_t len;
    AUTO_FREE char *bytes = with_extension("link", 0xab, &len);
    AUTO(strv_done) struct strv paths = {0};
    AUTO_FREE char *shared = NULL;
    struct err err;
    char *path = memmem(bytes, len, "sub/dir", 7);

    assert_non_null(path);
    memset(path, 0, 2);
    memmove(path + 2, path + 10,
            (size_t)(bytes + len - path) - 10); /* an entry of 64 bytes, not 72 */
    assert_int_equal(git_index_submodules(bytes, len - 8, &paths, &shared, &err), -1);
    assert_int_equal(err.code, ERR_INVALID);
    assert_null(shared);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(indexes_of_git),
        cmocka_unit_test(broken_ones),
        cmocka_unit_test(versions_that_git_does_not_have),
        cmocka_unit_test(split_ones),
        cmocka_unit_test(a_replaced_submodule),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
