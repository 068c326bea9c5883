/* timeline: the ring and its cursor, repetitions, what facts become, the tree of execs. */
#include "../base/support.h"

#include "base/buf.h"
#include "denial/denial.h"
#include "timeline/exec_tree.h"
#include "timeline/timeline.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

static struct timeline *new_timeline(unsigned topics)
{
    return timeline_new(&(struct timeline_options){.topics = topics, .start_ns = 1000});
}

static void done(struct timeline *timeline, const char *path)
{
    timeline_add(timeline, &(struct launch_fact){.kind = FACT_DONE,
                                                 .operation = FACT_WRITE,
                                                 .call = SYS_openat,
                                                 .path = path,
                                                 .program = "sh",
                                                 .pid = 7,
                                                 .time_ns = 3000});
}

static void exec(struct timeline *timeline, uint64_t id, uint64_t parent, int pid, const char *word)
{
    const char *const argv[] = {word, "a b", NULL};

    timeline_add(timeline, &(struct launch_fact){.kind = FACT_EXEC,
                                                 .id = id,
                                                 .parent = parent,
                                                 .pid = pid,
                                                 .path = word,
                                                 .program = word,
                                                 .cwd = "/w",
                                                 .argv = argv,
                                                 .time_ns = 1000 + id * 1000});
}

static void ends(struct timeline *timeline, uint64_t id, int status)
{
    timeline_add(timeline, &(struct launch_fact){
                               .kind = FACT_EXIT, .id = id, .number = status, .time_ns = 90000});
}

static void test_topics(void **state)
{
    struct err err;
    unsigned topics;

    assert_int_equal(timeline_parse_topics("files", &topics, &err), 0);
    assert_int_equal(topics, TIMELINE_FILES);
    assert_int_equal(timeline_parse_topics("exec,network", &topics, &err), 0);
    assert_int_equal(topics, TIMELINE_EXEC | TIMELINE_NETWORK);
    assert_int_equal(timeline_watch(topics), WATCH_FACTS | WATCH_EXEC | WATCH_NETWORK);
    assert_int_equal(timeline_watch(0), 0);
    for (const char *const *wrong = (const char *const[]){"", "file", "files,", ",", NULL}; *wrong;
         wrong++)
        assert_int_equal(timeline_parse_topics(*wrong, &topics, &err), -1);
}

static void test_cursor(void **state)
{
    struct timeline *timeline = new_timeline(TIMELINE_ALL);
    const struct timeline_event *event;

    assert_null(timeline_after(timeline, 0));
    done(timeline, "/w/a");
    done(timeline, "/w/b");
    event = timeline_after(timeline, 0);
    assert_int_equal(event->seq, 1);
    assert_int_equal(event->time_ns, 2000);
    assert_string_equal(event->operation, "write");
    assert_string_equal(event->call, "openat");
    assert_string_equal(event->path, "/w/a");
    assert_string_equal(timeline_after(timeline, 1)->path, "/w/b");
    assert_null(timeline_after(timeline, 2));
    assert_null(timeline_after(timeline, 99));
    timeline_free(timeline);
}

/* A repetition is the event that there is; another call, program or path is not. */
static void test_repetition(void **state)
{
    struct timeline *timeline = new_timeline(TIMELINE_FILES);

    for (int i = 0; i < 1000; i++)
        done(timeline, "/w/a");
    done(timeline, "/w/b");
    done(timeline, "/w/a");
    assert_int_equal(timeline_last(timeline), 2);
    assert_int_equal(timeline_after(timeline, 0)->count, 1001);
    timeline_free(timeline);
}

static void test_bound(void **state)
{
    struct timeline *timeline = new_timeline(TIMELINE_FILES);
    char path[64];

    for (int i = 0; i < 3 * TIMELINE_EVENTS_MAX; i++) {
        snprintf(path, sizeof path, "/w/%d", i);
        done(timeline, path);
    }
    assert_int_equal(timeline_last(timeline), 3 * TIMELINE_EVENTS_MAX);
    assert_int_equal(timeline_dropped(timeline), 2 * TIMELINE_EVENTS_MAX);
    assert_int_equal(timeline_after(timeline, 0)->seq, 2 * TIMELINE_EVENTS_MAX + 1);
    assert_int_equal(timeline_after(timeline, 5)->seq, 2 * TIMELINE_EVENTS_MAX + 1);
    timeline_free(timeline);
}

/* Few events with much text are as bounded. */
static void test_bytes(void **state)
{
    struct timeline *timeline = new_timeline(TIMELINE_FILES);
    static char path[4096];

    memset(path, 'x', sizeof path - 1);
    for (int i = 0; i < 2000; i++) {
        path[snprintf(path, 16, "/w/%d", i)] = 'x';
        done(timeline, path);
    }
    assert_true(timeline_last(timeline) - timeline_dropped(timeline) < 520);
    assert_int_equal(timeline_last(timeline), 2000);
    timeline_free(timeline);
}

static const struct {
    enum fact_operation operation;
    int call;
    const char *expected;
} operations[] = {
    {FACT_CREATE, SYS_openat, "create"},    {FACT_WRITE, SYS_openat, "write"},
    {FACT_WRITE, SYS_unlinkat, "remove"},   {FACT_WRITE, SYS_renameat2, "rename"},
    {FACT_CREATE, SYS_renameat2, "rename"}, {FACT_CREATE, SYS_linkat, "link"},
    {FACT_CREATE, SYS_symlinkat, "create"}, {FACT_CREATE, SYS_mkdirat, "create"},
    {FACT_WRITE, SYS_fchmodat, "change"},   {FACT_WRITE, SYS_truncate, "change"},
    {FACT_WRITE, SYS_faccessat, "write"},   {FACT_CONNECT, SYS_connect, "connect"},
    {FACT_BIND, SYS_bind, "bind"},          {FACT_EXECUTE, SYS_execve, "execute"},
};

static void test_operations(void **state)
{
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        struct timeline *timeline = new_timeline(TIMELINE_ALL);

        timeline_add(timeline, &(struct launch_fact){.kind = FACT_DONE,
                                                     .operation = operations[i].operation,
                                                     .call = operations[i].call,
                                                     .path = "/x"});
        assert_string_equal(timeline_after(timeline, 0)->operation, operations[i].expected);
        timeline_free(timeline);
    }
}

static void test_only_its_topics(void **state)
{
    struct timeline *timeline = new_timeline(TIMELINE_NETWORK);

    done(timeline, "/w/a");
    exec(timeline, 1, 0, 7, "sh");
    ends(timeline, 1, 0);
    timeline_add(timeline, &(struct launch_fact){.kind = FACT_DENIED,
                                                 .operation = FACT_CONNECT,
                                                 .call = SYS_connect,
                                                 .path = "[::2]:443",
                                                 .error = ENETUNREACH});
    assert_int_equal(timeline_last(timeline), 1);
    assert_null(timeline_execs(timeline));
    timeline_free(timeline);
}

static void assert_json(const struct timeline_event *event, const char *expected)
{
    json_t *json = timeline_event_to_json(event);
    json_t *wanted = json_loads(expected, 0, NULL);

    assert_non_null(wanted);
    if (!json_equal(json, wanted))
        fail_msg("%s", json_dumps(json, JSON_SORT_KEYS));
    json_decref(json);
    json_decref(wanted);
}

static void test_json(void **state)
{
    struct timeline *timeline = new_timeline(TIMELINE_ALL);
    struct launch_fact asked = {.kind = FACT_ASKED,
                                .id = 5,
                                .operation = FACT_CREATE,
                                .call = SYS_mkdirat,
                                .path = "/x",
                                .program = "mkdir",
                                .pid = 9,
                                .time_ns = 1001};

    timeline_add(timeline, &(struct launch_fact){.kind = FACT_DENIED,
                                                 .operation = FACT_CONNECT,
                                                 .call = SYS_connect,
                                                 .path = "[::2]:443",
                                                 .program = "curl",
                                                 .pid = 8,
                                                 .error = ENETUNREACH,
                                                 .time_ns = 1000});
    assert_json(timeline_after(timeline, 0),
                "{\"event\": \"denied\", \"seq\": 1, \"time_ns\": 0, \"errno\": \"ENETUNREACH\", "
                "\"decided_by\": null, \"below\": false, \"exec\": null, \"pid\": 8, "
                "\"program\": \"curl\", \"operation\": \"connect\", \"call\": \"connect\", "
                "\"host\": \"::2\", \"port\": 443, \"count\": 1}");
    timeline_add(timeline, &asked);
    timeline_answer(timeline, 5, "no");
    timeline_answer(timeline, 6, "no"); /* of nobody */
    assert_json(timeline_after(timeline, 2),
                "{\"event\": \"answered\", \"seq\": 3, \"time_ns\": 1, \"question\": 5, "
                "\"exec\": null, \"pid\": 9, \"program\": \"mkdir\", \"operation\": \"create\", "
                "\"call\": \"mkdirat\", \"path\": \"/x\", \"answer\": \"no\"}");
    timeline_add(timeline, &(struct launch_fact){.kind = FACT_LOST, .more = 30, .time_ns = 1002});
    assert_json(timeline_after(timeline, 3),
                "{\"event\": \"lost\", \"seq\": 4, \"time_ns\": 2, \"count\": 30}");
    assert_null(timeline_after(timeline, 4));
    timeline_free(timeline);
}

/* sh -> make -> cc (killed), and sh executes true in its place. */
static void test_tree(void **state)
{
    struct timeline *timeline = new_timeline(TIMELINE_EXEC);
    struct buf text;
    json_t *json;

    buf_init(&text, SIZE_MAX / 2);
    exec(timeline, 1, 0, 10, "sh");
    exec(timeline, 2, 1, 11, "make");
    exec(timeline, 3, 2, 12, "cc");
    exec(timeline, 4, 1, 10, "true");
    ends(timeline, 3, 9);
    ends(timeline, 2, 2 << 8);
    ends(timeline, 77, 0); /* nobody's */
    assert_int_equal(exec_tree_of_pid(timeline_execs(timeline), 10), 4);
    assert_int_equal(exec_tree_of_pid(timeline_execs(timeline), 11), 0);
    exec_tree_append(timeline_execs(timeline), &text);
    assert_string_equal(text.data, "sh 'a b'\n"
                                   "  make 'a b'  (exit 2, 0.000 s)\n"
                                   "    cc 'a b'  (SIGKILL, 0.000 s)\n"
                                   "  true 'a b'  (end not seen)\n");
    json = exec_tree_to_json(timeline_execs(timeline));
    assert_int_equal(json_array_size(json), 4);
    assert_int_equal(json_integer_value(json_object_get(json_array_get(json, 1), "exit_code")), 2);
    assert_int_equal(json_integer_value(json_object_get(json_array_get(json, 2), "signal")), 9);
    assert_true(json_is_true(json_object_get(json_array_get(json, 0), "replaced")));
    json_decref(json);
    buf_done(&text);
    timeline_free(timeline);
}

static void test_tree_bound(void **state)
{
    struct timeline *timeline = new_timeline(TIMELINE_EXEC);

    for (uint64_t id = 1; id <= 2 * EXEC_NODES_MAX; id++)
        exec(timeline, id, id - 1, (int)id, "sh"); /* as deep as it goes */
    timeline_add(timeline, &(struct launch_fact){.kind = FACT_EXEC, .more = 5, .path = ""});
    assert_int_equal(exec_tree_len(timeline_execs(timeline)), EXEC_NODES_MAX);
    assert_int_equal(exec_tree_dropped(timeline_execs(timeline)), EXEC_NODES_MAX + 5);
    timeline_free(timeline);
}

/* What a program chooses does not reach a terminal as a command to it. */
static void test_words(void **state)
{
    struct buf text;

    buf_init(&text, SIZE_MAX / 2);
    timeline_append_argv(
        (char *const *)(const char *const[]){"ls", "", "it's", "\033[2J", "a=b", NULL}, &text);
    assert_string_equal(text.data, "ls '' 'it'\\''s' '\\x1b[2J' a=b");
    buf_done(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_topics),     cmocka_unit_test(test_cursor),
        cmocka_unit_test(test_repetition), cmocka_unit_test(test_bound),
        cmocka_unit_test(test_bytes),      cmocka_unit_test(test_operations),
        cmocka_unit_test(test_json),       cmocka_unit_test(test_only_its_topics),
        cmocka_unit_test(test_tree),       cmocka_unit_test(test_tree_bound),
        cmocka_unit_test(test_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
