/* What a client's parameters mean: paths, sandbox objects of both generations, environments. */
#include "../base/support.h"

#include "base/auto.h"
#include "base/json.h"
#include "server/rpc_path.h"
#include "server/sandbox_request.h"
#include "server/start_env.h"

#include <string.h>
#include <unistd.h>

/* --- paths --- */

static void uris_become_clean_paths(void **state)
{
    static const char *const cases[][2] = {
        {"file:///etc/hosts", "/etc/hosts"},
        {"file:///etc/host%73", "/etc/hosts"},
        {"file:///etc/../tmp/./x/", "/tmp/x"},
        {"FILE:///x", "/x"},
        {"file://localhost/x", "/x"},
        {"file://LOCALHOST/x", "/x"},
        {"file:etc", "/etc"},
        {"file:/etc", "/etc"},
        {"file:///sp ace \xc3\xa9", "/sp ace \xc3\xa9"},
        {"file:///%ff", "/\xff"},
        {"file:///../..", "/"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        enum rpc_code code;
        struct err err = {0};
        AUTO_FREE char *path = rpc_path_parse(cases[i][0], &code, &err);

        if (!path)
            fail_msg("%s: %s", cases[i][0], err.msg);
        assert_string_equal(path, cases[i][1]);
    }
}

static void other_uris_are_refused_each_with_its_code(void **state)
{
    static const struct {
        const char *uri;
        enum rpc_code code;
        const char *message;
    } cases[] = {
        {"/etc", RPC_INVALID_PARAMS, "invalid URI: relative URL without a base"},
        {"", RPC_INVALID_PARAMS, "invalid URI: relative URL without a base"},
        {"http://x/y", RPC_INVALID_PARAMS, "unsupported path URI scheme `http`"},
        {"file:///x?y", RPC_INVALID_PARAMS, "query parameters are not allowed in path URIs"},
        {"file:///x#y", RPC_INVALID_PARAMS, "fragments are not allowed in path URIs"},
        {"file:///%00", RPC_INVALID_PARAMS, "'file:///%00' is invalid on 'linux'"},
        {"file://other/x", RPC_INVALID_REQUEST, "'file://other/x' is invalid on 'linux'"},
        {"file:///C:/x", RPC_INVALID_REQUEST, "'file:///C:/x' is invalid on 'linux'"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        enum rpc_code code;
        struct err err;

        assert_null(rpc_path_parse(cases[i].uri, &code, &err));
        assert_int_equal(code, cases[i].code);
        assert_string_equal(err.msg, cases[i].message);
    }
}

/* --- sandbox objects --- */

#define ENTRIES                                                                                    \
    "\"entries\":[{\"path\":{\"type\":\"special\",\"value\":{\"kind\":\"root\"}},\"access\":"      \
    "\"read\"},{\"path\":{\"type\":\"special\",\"value\":{\"kind\":\"project_roots\"}},"           \
    "\"access\":\"write\"}]"
#define PERMISSIONS                                                                                \
    "\"permissions\":{\"type\":\"managed\",\"network\":\"restricted\",\"file_system\":{\"type\":"  \
    "\"restricted\"," ENTRIES "}}"
#define LEVEL "\"windowsSandboxLevel\":\"disabled\""

static int read_request(const char *text, const char *cwd, struct sandbox_request *ret,
                        enum rpc_code *ret_code, struct err *err)
{
    AUTO_JSON json_t *object = json_parse(text, strlen(text), err);

    assert_non_null(object);
    return sandbox_request_read(object, cwd, ret, ret_code, err);
}

struct request_case {
    const char *text;
    enum sandbox_mode mode;
    const char *type;
    const char *root; /* the only one; NULL: none */
    enum network_access network;
};

static void both_generations_are_read(void **state)
{
    static const struct request_case cases[] = {
        {"{" PERMISSIONS "," LEVEL "}", SANDBOX_AUTO, "linuxSeccomp", NULL, NETWORK_RESTRICTED},
        {"{" PERMISSIONS "," LEVEL ",\"workspaceRoots\":[\"file:///w\"],\"new\":1}", SANDBOX_AUTO,
         "linuxSeccomp", "/w", NETWORK_RESTRICTED},
        {"{" PERMISSIONS "," LEVEL
         ",\"workspaceRoots\":[],\"policyContext\":{\"workspaceRoots\":[\"file:///v\"]}}",
         SANDBOX_AUTO, "linuxSeccomp", "/v", NETWORK_RESTRICTED},
        {"{\"permissions\":{\"type\":\"disabled\"}," LEVEL "}", SANDBOX_DISABLED, "linuxSeccomp",
         NULL, NETWORK_ENABLED},
        {"{\"mode\":\"auto\",\"policy\":{\"type\":\"read-only\"},\"sandboxPolicyCwd\":\"/w\"}",
         SANDBOX_AUTO, "linux-seccomp", "/w", NETWORK_RESTRICTED},
        {"{\"mode\":\"require\",\"fileSystemPolicy\":{\"kind\":\"restricted\"," ENTRIES
         "},\"networkPolicy\":\"enabled\",\"sandboxPolicyCwd\":\"/w\"}",
         SANDBOX_REQUIRE, "linux-seccomp", "/w", NETWORK_ENABLED},
        {"{\"mode\":\"disabled\",\"policy\":{\"type\":\"read-only\"},\"sandboxPolicyCwd\":\"/w\"}",
         SANDBOX_DISABLED, "none", "/w", NETWORK_RESTRICTED},
        {"{\"mode\":\"auto\",\"fileSystemPolicy\":{\"kind\":\"unrestricted\"},\"sandboxPolicyCwd\":"
         "\"/w\"}",
         SANDBOX_AUTO, "linux-seccomp", "/w", NETWORK_RESTRICTED},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        AUTO(sandbox_request_done) struct sandbox_request request = {0};
        enum rpc_code code;
        struct err err;

        if (read_request(cases[i].text, "/cwd", &request, &code, &err))
            fail_msg("%s: %s", cases[i].text, err.msg);
        assert_int_equal(request.mode, cases[i].mode);
        assert_string_equal(request.type, cases[i].type);
        assert_int_equal(request.roots.len, cases[i].root ? 1 : 0);
        if (cases[i].root)
            assert_string_equal(request.roots.items[0], cases[i].root);
        assert_int_equal(request.profile.network, cases[i].network);
    }
}

static void what_is_no_sandbox_object_is_refused(void **state)
{
    static const char *const cases[][2] = {
        {"[]", "sandbox: $: has the wrong type"},
        {"{}", "missing field `permissions`"},
        {"{" PERMISSIONS "}", "missing field `windowsSandboxLevel`"},
        {"{" PERMISSIONS ",\"windowsSandboxLevel\":\"x\"}", "windowsSandboxLevel"},
        {"{" PERMISSIONS "," LEVEL ",\"workspaceRoots\":[\"w\"]}", "workspaceRoots[0]"},
        {"{" PERMISSIONS "," LEVEL ",\"cwd\":5}", "$.cwd"},
        {"{\"mode\":\"sometimes\"}", "$.mode"},
        {"{\"mode\":\"auto\"}", "missing field `permissions`"},
        {"{\"mode\":\"auto\",\"policy\":{\"type\":\"read-only\"}}", "sandboxPolicyCwd"},
        {"{\"mode\":\"auto\",\"fileSystemPolicy\":{\"kind\":\"x\"}}", "kind"},
        {"{\"mode\":\"auto\",\"fileSystemPolicy\":{\"kind\":\"restricted\"}}", "entries"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sandbox_request request;
        enum rpc_code code;
        struct err err;

        assert_int_equal(read_request(cases[i][0], "/cwd", &request, &code, &err), -1);
        assert_int_equal(code, RPC_INVALID_PARAMS);
        if (!strstr(err.msg, cases[i][1]))
            fail_msg("%s: \"%s\" is not in \"%s\"", cases[i][0], cases[i][1], err.msg);
    }
}

static void files_need_to_know_where_the_workspace_is(void **state)
{
    struct sandbox_request request;
    enum rpc_code code;
    struct err err;

    assert_int_equal(read_request("{" PERMISSIONS "," LEVEL "}", NULL, &request, &code, &err), -1);
    assert_int_equal(code, RPC_INVALID_PARAMS);
    assert_non_null(strstr(err.msg, "$.cwd"));
    assert_int_equal(read_request("{" PERMISSIONS "," LEVEL ",\"cwd\":\"file:///w\"}", NULL,
                                  &request, &code, &err),
                     0);
    sandbox_request_done(&request);
}

/* --- environment --- */

static void build(const char *policy, const char *env, struct strv *ret)
{
    struct err err;
    AUTO_JSON json_t *policy_json = json_parse(policy, strlen(policy), &err);
    AUTO_JSON json_t *env_json = json_parse(env, strlen(env), &err);

    start_env_build(json_is_null(policy_json) ? NULL : policy_json, env_json, ret);
    strv_sort(ret);
}

static void assert_env(const struct strv *env, const char *const *wanted)
{
    size_t len = 0;

    for (; wanted[len]; len++) {
        assert_true(len < env->len);
        assert_string_equal(env->items[len], wanted[len]);
    }
    assert_int_equal(env->len, len);
}

#define POLICY(inherit, defaults, exclude, set, only)                                              \
    "{\"inherit\":\"" inherit "\",\"ignoreDefaultExcludes\":" defaults ",\"exclude\":" exclude     \
    ",\"set\":" set ",\"includeOnly\":" only "}"

static void without_a_policy_what_is_given_is_all(void **state)
{
    AUTO(strv_done) struct strv env = {0};

    build("null",
          "{\"A\":\"1\",\"CORDON_TOKEN\":\"x\",\"CODEX_EXEC_SERVER_NOISE_AUTH_TOKEN\":\"y\","
          "\"\":\"z\"}",
          &env);
    assert_env(&env, (const char *const[]){"A=1", NULL});
}

static void a_policy_is_applied_and_overlaid(void **state)
{
    char *ours[] = {(char *)"HOME=/h", (char *)"MY_TOKEN=t", (char *)"OTHER=o", NULL};
    char **before = environ;
    AUTO(strv_done) struct strv all = {0};
    AUTO(strv_done) struct strv none = {0};
    AUTO(strv_done) struct strv core = {0};

    environ = ours;
    build(POLICY("all", "false", "[\"OT*\"]", "{\"S_KEY\":\"1\"}", "[]"), "{\"HOME\":\"/x\"}",
          &all);
    assert_env(&all, (const char *const[]){"HOME=/x", "S_KEY=1", NULL});
    build(POLICY("core", "true", "[]", "{}", "[]"), "{\"X\":\"y\"}", &core);
    assert_env(&core, (const char *const[]){"HOME=/h", "X=y", NULL});
    build(POLICY("none", "true", "[]", "{\"A\":\"1\",\"B\":\"2\"}", "[\"A\"]"), "{\"C\":\"3\"}",
          &none);
    environ = before;
    assert_env(&none, (const char *const[]){"A=1", "C=3", NULL});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(uris_become_clean_paths),
        cmocka_unit_test(other_uris_are_refused_each_with_its_code),
        cmocka_unit_test(both_generations_are_read),
        cmocka_unit_test(what_is_no_sandbox_object_is_refused),
        cmocka_unit_test(files_need_to_know_where_the_workspace_is),
        cmocka_unit_test(without_a_policy_what_is_given_is_all),
        cmocka_unit_test(a_policy_is_applied_and_overlaid),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
