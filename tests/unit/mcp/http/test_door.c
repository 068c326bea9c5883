/* Who is let in by HTTP, and to what (tests/cases/mcp_door). A case has:
 *
 *     loopback   the client came to such an address
 *     token      what clients have to bring; missing: nothing
 *     heads      {"name": [lines of the head, status, a part of the text]}; status 0: goes on */
#include "../../base/cases.h"

#include "base/auto.h"
#include "base/http_message.h"
#include "base/sha256.h"
#include "mcp/http/door.h"
#include "rpc/transport/auth.h"

#include <stdio.h>
#include <string.h>

/* The SHA-256 of "secret". */
static const char digest[] = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b";

static struct rpc_auth *auth_for(const char *token)
{
    const struct rpc_auth_options options = {.mode = RPC_AUTH_CAPABILITY_TOKEN,
                                             .token_sha256 = digest};
    struct rpc_auth *auth = NULL;
    struct err err;

    if (*token)
        assert_int_equal(rpc_auth_new(&options, &auth, &err), 0);
    return auth;
}

static struct door_answer ask(const char *head, const struct door_situation *situation)
{
    char text[4096];
    struct http_request request;
    struct door_answer answer;
    struct err err;
    int len = snprintf(text, sizeof text, "%s\r\n\r\n", head);

    if (http_request_read(text, (size_t)len, &request, &err))
        fail_msg("%s: %s", head, err.msg);
    answer = door_lets_in(&request, situation);
    return answer.status ? answer : door_routes(&request);
}

static void door_case(void **state)
{
    static const char *const keys[] = {"why", "loopback", "token", "heads", NULL};
    const struct test_case *given = *state;
    struct rpc_auth *auth = auth_for(case_string_or(given->json, "token", ""));
    const struct door_situation situation = {
        .auth = auth,
        .address = "http://127.0.0.1:4711",
        .port = 4711,
        .is_loopback = json_is_true(json_object_get(given->json, "loopback")),
    };
    const char *head;
    json_t *wanted;

    case_check_keys(given->json, keys);
    json_object_foreach(json_object_get(given->json, "heads"), head, wanted)
    {
        struct door_answer answer = ask(head, &situation);

        if (answer.status != json_integer_value(json_array_get(wanted, 0)))
            fail_msg("%s: %d", head, answer.status);
        assert_true(!answer.text == !answer.status);
        assert_true(!answer.allow == (answer.status != 405));
        if (answer.status)
            assert_contains(answer.text, json_string_value(json_array_get(wanted, 1)));
    }
    rpc_auth_free(auth);
}

static void session_ids(void **state)
{
    char ids[64][DOOR_SESSION_ID_SIZE];

    for (size_t i = 0; i < 64; i++) {
        door_session_id(ids[i]);
        assert_int_equal(strlen(ids[i]), 32);
        assert_int_equal(strspn(ids[i], "0123456789abcdef"), 32);
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(ids[i], ids[j]);
    }
}

int main(void)
{
    const struct CMUnitTest more[] = {cmocka_unit_test(session_ids)};

    return cases_run("mcp_door", door_case, more, sizeof more / sizeof *more);
}
