/* Stamps as text. */
#include "layer/change.h"

#include "base/auto.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void test_stamp_as_text(void **state)
{
    const struct change_stamp stamp = {
        .dev = 0xfe00, .ino = 17, .size = 4096, .ctime_ns = 10, .mode = 0100644};
    AUTO_FREE char *text = change_stamp_format(&stamp);
    AUTO_FREE char *none = change_stamp_format(&(struct change_stamp){0});

    assert_string_equal(text, "fe00-11-1000-a-81a4");
    assert_string_equal(none, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stamp_as_text),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
