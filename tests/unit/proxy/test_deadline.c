/* Waits that end in their order, however often they start anew. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/err.h"
#include "loop/loop.h"
#include "proxy/deadline.h"

#include <string.h>

static struct deadline deadlines[4];
static struct deadline_queue queue;
static char order[8];
static bool is_over;
static int wanted;

static void on_time(struct deadline *deadline)
{
    const char name[] = {(char)('a' + (deadline - deadlines)), '\0'};

    strncat(order, name, sizeof order - strlen(order) - 1);
    is_over = --wanted == 0;
    if (deadline == &deadlines[3] && strlen(order) == 2) /* starts once more by itself */
        deadline_set(deadline, &queue);
}

static void in_order(void **state)
{
    struct err err;
    struct loop *loop = loop_new(&err);

    assert_non_null(loop);
    deadline_queue_init(&queue, loop, 3 * CLOCK_NS_PER_MS, on_time);
    for (int i = 0; i < 4; i++)
        deadline_set(&deadlines[i], &queue);
    deadline_touch(&deadlines[0]); /* behind the others */
    deadline_clear(&deadlines[1]);
    deadline_touch(&deadlines[1]); /* waits for nothing, and still does */
    wanted = 4;
    assert_int_equal(loop_run(loop, &is_over, &err), 0);
    assert_string_equal(order, "cdad");
    deadline_queue_done(&queue);
    loop_free(loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(in_order)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
