/* execution_audit: what a command did becomes records, as far as there is room. */
#include "../base/support.h"

#include "audit/audit.h"
#include "executor/execution_audit.h"
#include "sandbox/sandbox.h"
#include "timeline/timeline.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

static char long_name[3000];

static void done(struct timeline *timeline, int number)
{
    char path[sizeof long_name + 20];

    snprintf(path, sizeof path, "/w/%d%s", number, long_name);
    timeline_add(timeline, &(struct launch_fact){.kind = FACT_DONE,
                                                 .operation = FACT_CREATE,
                                                 .call = SYS_openat,
                                                 .path = path,
                                                 .program = "sh"});
}

static bool next(struct audit_trail *trail, const struct timeline *timeline, bool has_room,
                 enum audit_event event, json_int_t count)
{
    struct audit_note note;

    if (!execution_audit_trace(trail, timeline, has_room, &note))
        return false;
    assert_int_equal(note.event, event);
    assert_int_equal(json_integer_value(json_object_get(note.body, "count")), count);
    json_decref(note.body);
    return true;
}

static void test_no_room(void **state)
{
    struct timeline *timeline = timeline_new(&(struct timeline_options){.topics = TIMELINE_ALL});
    struct audit_trail trail = {.topics = TIMELINE_ALL};

    done(timeline, 1);
    assert_true(next(&trail, timeline, true, AUDIT_FILE, 0));
    assert_false(next(&trail, timeline, true, AUDIT_FILE, 0));
    done(timeline, 2);
    done(timeline, 3);
    timeline_add(timeline, &(struct launch_fact){.kind = FACT_LOST, .more = 5});
    assert_false(next(&trail, timeline, false, AUDIT_FILE, 0));
    assert_false(next(&trail, timeline, true, AUDIT_FILE, 0)); /* told before the next record */
    done(timeline, 4);
    assert_true(next(&trail, timeline, true, AUDIT_LOST, 7));
    assert_true(next(&trail, timeline, true, AUDIT_FILE, 0));
    done(timeline, 5);
    assert_false(next(&trail, timeline, false, AUDIT_FILE, 0));
    assert_true(next(&trail, NULL, false, AUDIT_LOST, 1)); /* or at the end */
    assert_false(next(&trail, NULL, false, AUDIT_LOST, 0));
    timeline_free(timeline);
}

static void test_one_command_does_not_fill_the_log(void **state)
{
    struct timeline *timeline = timeline_new(&(struct timeline_options){.topics = TIMELINE_ALL});
    struct audit_trail trail = {.topics = TIMELINE_ALL};
    int told = 0;

    memset(long_name, 'x', sizeof long_name - 1);
    for (int i = 0; i < 5000; i++) {
        done(timeline, i);
        told += next(&trail, timeline, true, AUDIT_FILE, 0);
    }
    assert_in_range(told, AUDIT_TRACE_BYTES_MAX / 4000, AUDIT_TRACE_BYTES_MAX / 3000);
    assert_true(next(&trail, NULL, true, AUDIT_LOST, 5000 - told));
    timeline_free(timeline);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_room),
        cmocka_unit_test(test_one_command_does_not_fill_the_log),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
