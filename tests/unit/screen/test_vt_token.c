/* vt_token: what of a control sequence is kept, and how much at most. */
#include "../base/support.h"

#include "screen/vt_token.h"

#include <stdio.h>
#include <string.h>

/* The first token that the text completes. */
static struct vt_token token_of(const char *text)
{
    struct vt vt = {0};
    struct vt_token token = {.kind = VT_NONE};
    size_t len = strlen(text);

    while (len && token.kind == VT_NONE) {
        size_t taken = vt_next(&vt, text, len, &token);

        text += taken;
        len -= taken;
    }
    return token;
}

static void parameters_come_by_their_place(void **state)
{
    struct vt_token token = token_of("\033[?12;;7 q");

    assert_int_equal(token.kind, VT_CSI);
    assert_int_equal(token.leader, '?');
    assert_int_equal(token.intermediate, ' ');
    assert_int_equal(token.final, 'q');
    assert_int_equal(token.param_len, 3);
    assert_int_equal(token.params[0], 12);
    assert_int_equal(token.params[1], 0);
    assert_int_equal(token.params[2], 7);
    assert_int_equal(token_of("\033[m").param_len, 1);
}

/* Readers take param_len for the number of params that there are. */
static void parameters_are_no_more_than_there_is_room_for(void **state)
{
    for (unsigned count = 1; count < 3 * VT_PARAMS_MAX; count++) {
        char text[3 * 4 * VT_PARAMS_MAX] = "\033[";
        const unsigned kept = count < VT_PARAMS_MAX ? count : VT_PARAMS_MAX;
        struct vt_token token;

        for (unsigned i = 1; i <= count; i++)
            snprintf(text + strlen(text), sizeof text - strlen(text), "%u%s", i,
                     i < count ? ";" : "m");
        token = token_of(text);
        assert_int_equal(token.kind, VT_CSI);
        assert_int_equal(token.param_len, kept);
        for (unsigned i = 0; i < kept; i++)
            assert_int_equal(token.params[i], i + 1);
    }
}

static void numbers_are_bounded(void **state)
{
    assert_int_equal(token_of("\033[9998m").params[0], 9998);
    assert_int_equal(token_of("\033[10000m").params[0], VT_PARAM_LIMIT);
    assert_int_equal(token_of("\033[99999999999999999999m").params[0], VT_PARAM_LIMIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters_come_by_their_place),
        cmocka_unit_test(parameters_are_no_more_than_there_is_room_for),
        cmocka_unit_test(numbers_are_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
