/* auth: what counts behind a reload, that a failed one changes nothing, and what a signed token has
 * to say. (Who is let in by what: tests/e2e/test_rpc_auth.py.) */
#include "../base/support.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/fd.h"
#include "base/user_token.h"
#include "rpc/transport/auth.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HERE "ws://127.0.0.1:7"

static char path[] = "/tmp/cordon-auth-XXXXXX";

static void put(const char *text)
{
    AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    struct err err;

    assert_true(fd >= 0);
    assert_int_equal(fd_write_all(fd, text, strlen(text), &err), 0);
}

static int make_file(void **state)
{
    int fd = mkostemp(path, O_CLOEXEC);

    return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state)
{
    unlink(path);
    return 0;
}

static void auth_auto(struct rpc_auth **auth)
{
    rpc_auth_free(*auth);
}

static void a_new_token_counts_and_the_old_one_no_longer(void **state)
{
    const struct rpc_auth_options options = {.mode = RPC_AUTH_CAPABILITY_TOKEN, .token_file = path};
    AUTO(auth_auto) struct rpc_auth *auth = NULL;
    bool has_changed = true;
    struct err err;

    put("one\n");
    assert_int_equal(rpc_auth_new(&options, &auth, &err), 0);
    put("  one\n"); /* the same */
    assert_int_equal(rpc_auth_reload(auth, &options, &has_changed, &err), 0);
    assert_false(has_changed);
    put("two\n");
    assert_int_equal(rpc_auth_reload(auth, &options, &has_changed, &err), 0);
    assert_true(has_changed);
    assert_true(rpc_auth_allows(auth, "Bearer two", HERE));
    assert_false(rpc_auth_allows(auth, "Bearer one", HERE));
}

static void what_is_wrong_changes_nothing(void **state)
{
    const struct rpc_auth_options options = {.mode = RPC_AUTH_CAPABILITY_TOKEN, .token_file = path};
    AUTO(auth_auto) struct rpc_auth *auth = NULL;
    bool has_changed = false;
    struct err err;

    put("one\n");
    assert_int_equal(rpc_auth_new(&options, &auth, &err), 0);
    put(" \n");
    assert_int_equal(rpc_auth_reload(auth, &options, &has_changed, &err), -1);
    assert_non_null(strstr(err.msg, "no token"));
    unlink(path);
    assert_int_equal(rpc_auth_reload(auth, &options, &has_changed, &err), -1);
    assert_false(has_changed);
    assert_true(rpc_auth_allows(auth, "Bearer one", HERE));
}

/* {"exp": 4102444800}, which is the year 2100, signed with 32 times "a" and 32 times "b". */
#define CLAIMS "eyJhbGciOiJIUzI1NiJ9.eyJleHAiOjQxMDI0NDQ4MDB9."
static const char by_a[] = "Bearer " CLAIMS "hFueCpXr5f9SENnbD5CP-Tr_XfdVKGWU05Z-fE1Y6Y0";
static const char by_b[] = "Bearer " CLAIMS "h5Sjst0raUiPRg6zWx5rZkQWW2sY64a44qX47tta-pM";

static void another_secret_lets_others_in(void **state)
{
    const struct rpc_auth_options options = {.mode = RPC_AUTH_SIGNED_BEARER_TOKEN,
                                             .shared_secret_file = path};
    AUTO(auth_auto) struct rpc_auth *auth = NULL;
    bool has_changed = false;
    struct err err;

    put("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
    assert_int_equal(rpc_auth_new(&options, &auth, &err), 0);
    assert_true(rpc_auth_allows(auth, by_a, HERE));
    put("too short");
    assert_int_equal(rpc_auth_reload(auth, &options, &has_changed, &err), -1);
    assert_true(rpc_auth_allows(auth, by_a, HERE));
    put("bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb");
    assert_int_equal(rpc_auth_reload(auth, &options, &has_changed, &err), 0);
    assert_true(has_changed);
    assert_false(rpc_auth_allows(auth, by_a, HERE));
    assert_true(rpc_auth_allows(auth, by_b, HERE));
}

/* All signed with the right secret, 32 times "a". */
static void a_right_signature_is_not_enough(void **state)
{
    static const struct {
        const char *header;
        bool is_allowed;
    } cases[] = {
        /* {"exp": 4102444800, "nbf": 1} */
        {"Bearer eyJhbGciOiJIUzI1NiJ9.eyJleHAiOjQxMDI0NDQ4MDAsIm5iZiI6MX0."
         "6AyZho1JuLsZB9wsWUe-fJti1Bnr8Z31BIFymUjf0S0",
         true},
        /* {"exp": 1}: over */
        {"Bearer eyJhbGciOiJIUzI1NiJ9.eyJleHAiOjF9."
         "gk2YbRtpDiXTRSdgDFI4EEpr9_GsL9U-gYS_WqtjsUw",
         false},
        /* no "exp" */
        {"Bearer eyJhbGciOiJIUzI1NiJ9.eyJuYmYiOjF9."
         "v9rxokKfrpb87Pu1uoPRLdfqAkjZ2QgY29i0S0Hyi48",
         false},
        /* "exp" as a text */
        {"Bearer eyJhbGciOiJIUzI1NiJ9.eyJleHAiOiI0MTAyNDQ0ODAwIn0."
         "LhOzbhPYOkY82ZdZT5urmIn52ees_k6f79EdNR78xyo",
         false},
        /* "nbf" in the year 2100: not yet */
        {"Bearer eyJhbGciOiJIUzI1NiJ9.eyJleHAiOjQxMDI0NDQ4MDAsIm5iZiI6NDEwMjQ0NDgwMH0."
         "6bl6AV0obXsJquc7oN7CQFx7usbLLL0eE85nWHm1jdY",
         false},
        /* "nbf" as a text */
        {"Bearer eyJhbGciOiJIUzI1NiJ9.eyJleHAiOjQxMDI0NDQ4MDAsIm5iZiI6IjEifQ."
         "uPq5kLuezZcEWmV7TBxYCn10o95sp9C4dVHWwyQTd3U",
         false},
        /* "alg": "none", although signed */
        {"Bearer eyJhbGciOiJub25lIn0.eyJleHAiOjQxMDI0NDQ4MDB9."
         "NQGpGT0Y4GJiFXFExK_V1SYq9DNh652vLm5DPtq_JU0",
         false},
        /* "alg" missing */
        {"Bearer eyJ0eXAiOiJKV1QifQ.eyJleHAiOjQxMDI0NDQ4MDB9."
         "Zq5AE_6QcOlb-YsDZLY2Rgpa7XxnhvUEZgxSDtFnRfc",
         false},
        /* "crit": demands that are not known here */
        {"Bearer eyJhbGciOiJIUzI1NiIsImNyaXQiOlsiZXhwIl19.eyJleHAiOjQxMDI0NDQ4MDB9."
         "o2WShAbgNtMbXAZw9n7N-VBB8EXpqtf6FBm29SrdvzI",
         false},
    };
    const struct rpc_auth_options options = {.mode = RPC_AUTH_SIGNED_BEARER_TOKEN,
                                             .shared_secret_file = path};
    AUTO(auth_auto) struct rpc_auth *auth = NULL;
    struct err err;

    put("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
    assert_int_equal(rpc_auth_new(&options, &auth, &err), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(rpc_auth_allows(auth, cases[i].header, HERE), cases[i].is_allowed);
}

/* Of the user's token: it is never sent by who signs with it, and what is sent serves nobody else. */
static void who_knows_the_users_token_is_let_in_where_they_meant(void **state)
{
    AUTO_FREE char *folder = strdup("/tmp/cordon-auth-user-XXXXXX");
    const struct rpc_auth_options options = {.mode = RPC_AUTH_USER_TOKEN, .user_dir = folder};
    AUTO(auth_auto) struct rpc_auth *auth = NULL;
    AUTO_FREE char *token = NULL;
    AUTO_FREE char *here = NULL;
    AUTO_FREE char *foreign = NULL;
    AUTO_FREE char *sent = NULL;
    AUTO_FREE char *forged = NULL;
    AUTO_FREE char *raw = NULL;
    char proof[RPC_AUTH_PROOF_SIZE];
    struct err err;

    assert_non_null(mkdtemp(folder));
    assert_int_equal(rpc_auth_new(&options, &auth, &err), 0);
    assert_int_equal(user_token_read(folder, &token, &err), 0);
    here = rpc_auth_sign(token, HERE);
    foreign = rpc_auth_sign("0123456789012345678901234567890123456789", HERE);
    sent = alloc_strf("Bearer %s", here);
    forged = alloc_strf("Bearer %s", foreign);
    raw = alloc_strf("Bearer %s", token);
    assert_null(strstr(sent, token));
    assert_true(rpc_auth_allows(auth, sent, HERE));
    assert_true(rpc_auth_allows(auth, raw, HERE));
    assert_false(rpc_auth_allows(auth, sent, "ws://127.0.0.1:8"));
    assert_false(rpc_auth_allows(auth, sent, "ws://127.0.0.2:7"));
    assert_false(rpc_auth_allows(auth, forged, HERE));
    assert_false(rpc_auth_allows(auth, NULL, HERE));
    assert_true(rpc_auth_is_for_own_processes(auth));

    assert_true(rpc_auth_prove(auth, "a-key", proof));
    assert_true(rpc_auth_is_proof(token, "a-key", proof));
    assert_false(rpc_auth_is_proof(token, "b-key", proof));
    assert_false(rpc_auth_is_proof(foreign, "a-key", proof));
    assert_false(rpc_auth_is_proof(token, "a-key", NULL));
    assert_false(rpc_auth_is_proof(token, "a-key", ""));

    free(TAKE_PTR(raw));
    raw = alloc_strf("%s/private/ws-token", folder);
    assert_int_equal(unlink(raw), 0);
    *strrchr(raw, '/') = '\0';
    assert_int_equal(rmdir(raw), 0);
    assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_token_counts_and_the_old_one_no_longer),
        cmocka_unit_test(what_is_wrong_changes_nothing),
        cmocka_unit_test(another_secret_lets_others_in),
        cmocka_unit_test(a_right_signature_is_not_enough),
        cmocka_unit_test(who_knows_the_users_token_is_let_in_where_they_meant),
    };

    return cmocka_run_group_tests(tests, make_file, remove_file);
}
