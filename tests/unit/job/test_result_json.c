/* result_json: the documented names are all there, and say what happened. */
#include "fake_sandbox.h"
#include "run.h"

#include "base/auto.h"
#include "base/base64.h"
#include "base/buf.h"
#include "job/job_run.h"
#include "job/result_json.h"
#include "job/result_text.h"

#include <jansson.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static struct job_result run_script(const char *script, const struct job_run_options *given)
{
    char *const argv[] = {(char *)"sh", (char *)"-c", (char *)script, NULL};
    struct job_run_options options = *given;
    struct job_result result;
    struct err err;

    options.sandbox = fake_sandbox();
    options.argv = argv;
    options.env = test_env;
    options.cwd = "/";
    options.without_cgroup = true;
    if (job_run(&options, &result, &err))
        fail_msg("job_run: %s", err.msg);
    return result;
}

static json_t *json_of(const char *script, const struct job_run_options *given)
{
    struct job_run_options defaults;
    struct job_result result;
    json_t *json;

    fake = (struct fake){0};
    job_run_defaults(&defaults);
    result = run_script(script, given ? given : &defaults);
    json = result_to_json(&result, NULL);
    job_result_done(&result);
    return json;
}

static const char *text_of(json_t *json, const char *key)
{
    json_t *value = json_object_get(json, key);

    if (!json_is_string(value))
        fail_msg("%s is no text", key);
    return json_string_value(value);
}

static json_int_t number_of(json_t *json, const char *key)
{
    json_t *value = json_object_get(json, key);

    if (!json_is_integer(value))
        fail_msg("%s is no number", key);
    return json_integer_value(value);
}

/* Exactly these keys, in this order: the names are promised in result_json.h. */
static void assert_keys(json_t *json, const char *expected)
{
    struct buf keys;
    const char *key;
    json_t *value;

    buf_init(&keys, 4096);
    json_object_foreach(json, key, value)
        assert_true(buf_appendf(&keys, "%s%s", keys.len ? " " : "", key));
    assert_string_equal(keys.data, expected);
    buf_done(&keys);
}

static void test_names(void **state)
{
    json_t *json = json_of("echo out; echo err >&2; exit 3", NULL);

    assert_keys(json, "end exit_code signal signal_number timed_out shell_exit_code "
                      "wall_time_ns failure usage limits tty stdout stdout_bytes "
                      "stdout_omitted_bytes stderr stderr_bytes stderr_omitted_bytes order "
                      "order_omitted_bytes output_cut denials sandbox");
    assert_keys(json_object_get(json, "usage"),
                "user_time_ns system_time_ns memory_peak_kb voluntary_context_switches "
                "involuntary_context_switches bytes_written");
    assert_string_equal(text_of(json, "end"), "exited");
    assert_int_equal(number_of(json, "exit_code"), 3);
    assert_int_equal(number_of(json, "shell_exit_code"), 3);
    assert_true(json_is_null(json_object_get(json, "signal")));
    assert_true(json_is_null(json_object_get(json, "failure")));
    assert_true(json_is_false(json_object_get(json, "timed_out")));
    assert_true(json_is_false(json_object_get(json, "tty")));
    assert_string_equal(text_of(json, "stdout"), "out\n");
    assert_string_equal(text_of(json, "stderr"), "err\n");
    assert_int_equal(number_of(json, "stdout_bytes"), 4);
    assert_int_equal(json_object_size(json_object_get(json, "limits")), 0);
    assert_int_equal(json_array_size(json_object_get(json, "order")), 2);
    assert_keys(json_array_get(json_object_get(json, "order"), 0), "stream offset at len");
    json_decref(json);
}

static void test_signal(void **state)
{
    json_t *json = json_of("kill -KILL $$", NULL);

    assert_string_equal(text_of(json, "end"), "signaled");
    assert_string_equal(text_of(json, "signal"), "SIGKILL");
    assert_int_equal(number_of(json, "signal_number"), SIGKILL);
    assert_int_equal(number_of(json, "shell_exit_code"), 137);
    assert_true(json_is_null(json_object_get(json, "exit_code")));
    json_decref(json);

    json = json_of("kill -64 $$", NULL);
    assert_string_equal(text_of(json, "signal"), "SIG64");
    json_decref(json);
}

/* Bytes that are no UTF-8 are readable as text and exact as base64; NUL is text. */
static void test_bytes(void **state)
{
    json_t *json = json_of("printf 'a\\377b\\0c'; printf 'x\\0y' >&2", NULL);
    const char *base64 = text_of(json, "stdout_base64");
    char bytes[16];
    struct err err;

    assert_int_equal(base64_decoded_len(base64, strlen(base64)), 5);
    assert_int_equal(base64_decode(base64, strlen(base64), bytes, &err), 0);
    assert_memory_equal(bytes, "a\377b\0c", 5);
    assert_int_equal(json_string_length(json_object_get(json, "stdout")), 7);
    assert_memory_equal(text_of(json, "stdout"),
                        "a\xef\xbf\xbd"
                        "b\0c",
                        7);
    assert_null(json_object_get(json, "stderr_base64"));
    assert_int_equal(json_string_length(json_object_get(json, "stderr")), 3);
    json_decref(json);
}

static void test_gap(void **state)
{
    struct job_run_options options;
    json_t *json;

    job_run_defaults(&options);
    options.max_output = 10;
    json = json_of("printf 0123456789ab", &options);
    assert_string_equal(text_of(json, "stdout"), "01234\n... 2 bytes omitted ...\n789ab");
    assert_int_equal(number_of(json, "stdout_bytes"), 12);
    assert_int_equal(number_of(json, "stdout_omitted_bytes"), 2);
    assert_int_equal(number_of(json, "stdout_omitted_at"), 5);
    assert_null(json_object_get(json, "stderr_omitted_at"));
    json_decref(json);
}

/* A character that only the border of head and tail divides is whole. */
static void test_character_on_the_border(void **state)
{
    struct job_run_options options;
    json_t *json;

    job_run_defaults(&options);
    options.max_output = 6;
    json = json_of("printf '12\\303\\2744'", &options);
    assert_string_equal(text_of(json, "stdout"), "12\303\2744");
    assert_null(json_object_get(json, "stdout_base64"));
    json_decref(json);
}

static void test_tty_has_one_stream(void **state)
{
    struct job_run_options options;
    json_t *json;

    job_run_defaults(&options);
    options.stdio = PROCESS_TTY;
    json = json_of("echo out; echo err >&2", &options);
    assert_true(json_is_true(json_object_get(json, "tty")));
    assert_string_equal(text_of(json, "stdout"), "out\r\nerr\r\n");
    assert_null(json_object_get(json, "stderr"));
    json_decref(json);
}

static void test_failure(void **state)
{
    struct job_run_options options;
    json_t *json;
    json_t *failure;

    job_run_defaults(&options);
    options.program = "/does/not/exist";
    json = json_of("true", &options);
    failure = json_object_get(json, "failure");
    assert_string_equal(text_of(json, "end"), "failed-to-start");
    assert_keys(failure, "stage code errno message");
    assert_string_equal(text_of(failure, "stage"), "exec");
    assert_string_equal(text_of(failure, "code"), "system");
    assert_string_equal(text_of(failure, "errno"), "ENOENT");
    assert_int_equal(number_of(json, "shell_exit_code"), 127);
    json_decref(json);
}

static void test_limits(void **state)
{
    struct job_run_options options;
    json_t *json;
    json_t *limit;

    job_run_defaults(&options);
    options.limits = (struct resource_limits){.of = {[LIMIT_MEMORY] = UINT64_C(1) << 62,
                                                     [LIMIT_CPU_TIME] = 60000000000,
                                                     [LIMIT_PIDS] = LIMIT_NONE}};
    json = json_of("true", &options);
    assert_keys(json_object_get(json, "limits"), "memory cpu-time");
    limit = json_object_get(json_object_get(json, "limits"), "memory");
    assert_keys(limit, "value by hit default");
    assert_int_equal(number_of(limit, "value"), INT64_C(1) << 62);
    assert_string_equal(text_of(limit, "by"), "rlimit");
    assert_true(json_is_null(json_object_get(limit, "hit"))); /* nobody tells */
    limit = json_object_get(json_object_get(json, "limits"), "cpu-time");
    assert_true(json_is_false(json_object_get(limit, "hit")));
    assert_true(json_is_false(json_object_get(limit, "default")));
    json_decref(json);
}

static void test_denials(void **state)
{
    struct access_map map = {.restricted = true, .network = NETWORK_RESTRICTED};
    struct job_run_options options;
    json_t *json;
    json_t *denial;

    access_map_add(&map, "/", ACCESS_READ, ACCESS_DIR, "built-in read-only");
    job_run_defaults(&options);
    options.access = &map;
    json =
        json_of("echo \"touch: cannot touch '/etc/x': Read-only file system\"; exit 1", &options);
    assert_string_equal(text_of(json, "end"), "denied");
    assert_int_equal(number_of(json, "exit_code"), 1);
    denial = json_array_get(json_object_get(json, "denials"), 0);
    assert_keys(
        denial,
        "operation evidence source path host errno decided_by remedy reason path2 port call "
        "program pid creates count below aside");
    assert_true(json_is_null(json_object_get(denial, "call")));
    assert_int_equal(number_of(denial, "count"), 1);
    assert_string_equal(text_of(denial, "operation"), "write");
    assert_string_equal(text_of(denial, "evidence"), "heuristic");
    assert_string_equal(text_of(denial, "source"), "sandbox");
    assert_string_equal(text_of(denial, "path"), "/etc/x");
    assert_string_equal(text_of(denial, "errno"), "EROFS");
    assert_string_equal(text_of(denial, "decided_by"), "built-in read-only");
    assert_contains(text_of(denial, "remedy"), "--writable /etc");
    assert_true(json_is_null(json_object_get(denial, "host")));
    json_decref(json);
    access_map_done(&map);
}

static void test_layers(void **state)
{
    struct job_run_options options;
    struct job_result result;
    json_t *json;
    json_t *layers;

    job_run_defaults(&options);
    fake = (struct fake){.is_degraded = true};
    result = run_script("true", &options);
    json = result_to_json(&result, NULL);
    assert_true(json_is_true(json_object_get(json_object_get(json, "sandbox"), "degraded")));
    layers = json_object_get(json_object_get(json, "sandbox"), "layers");
    assert_int_equal(json_object_size(layers), DEFENCE_COUNT);
    assert_string_equal(text_of(json_object_get(layers, "landlock"), "state"), "partial");
    assert_string_equal(text_of(json_object_get(layers, "landlock"), "why"), "the fake has none");
    assert_string_equal(text_of(json_object_get(layers, "seccomp"), "state"), "enforced");
    assert_true(json_is_null(json_object_get(json_object_get(layers, "seccomp"), "why")));
    json_decref(json);
    job_result_done(&result);
}

static int take(const char *text, size_t len, void *data)
{
    return buf_append(data, text, len) ? 0 : -1;
}

/* The same document, whether the output is in it or is read when it is written. */
static void test_dump(void **state)
{
    static const char *const scripts[] = {
        "true",
        "echo out; echo err >&2",
        "printf 'a\\377\\0\\303\\251\\\\\"\\t\\360\\237\\230\\200\\303'",
        "i=0; while [ $i -lt 9000 ]; do printf '\\303\\251\\342\\202\\254'; i=$((i + 1)); done",
        "i=0; while [ $i -lt 9000 ]; do printf '\\303\\251\\342\\377\\254'; i=$((i + 1)); done",
    };
    static const size_t sizes[] = {1 << 20, 101};

    for (size_t i = 0; i < 2 * sizeof scripts / sizeof *scripts; i++)
        for (size_t flags = 0; flags <= JSON_ENSURE_ASCII; flags += JSON_ENSURE_ASCII) {
            AUTO(result_texts_done) struct result_texts texts = {0};
            AUTO(buf_done) struct buf text = {.max = SIZE_MAX / 2};
            struct job_run_options options;
            struct job_result result;
            json_t *whole, *apart;
            char *wanted;

            fake = (struct fake){0};
            job_run_defaults(&options);
            options.max_output = sizes[i % 2];
            result = run_script(scripts[i / 2], &options);
            whole = result_to_json(&result, NULL);
            apart = result_to_json(&result, &texts);
            wanted = json_dumps(whole, JSON_INDENT(2) | flags);
            assert_int_equal(result_texts_dump(apart, &texts, flags, take, &text), 0);
            assert_string_equal(text.data, wanted);
            assert_string_equal(text_of(apart, "stdout"), "");
            free(wanted);
            json_decref(whole);
            json_decref(apart);
            job_result_done(&result);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_signal),
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_gap),
        cmocka_unit_test(test_character_on_the_border),
        cmocka_unit_test(test_tty_has_one_stream),
        cmocka_unit_test(test_failure),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_denials),
        cmocka_unit_test(test_layers),
        cmocka_unit_test(test_dump),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
