/* progress: what is shown when, by a clock that stands still. */
#include "../base/support.h"

#include "base/clock.h"
#include "client/cp.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

/* A terminal: what is written to `slave` can be read from `master`. */
static int master;
static int slave;

static int open_terminal(void **state)
{
    struct termios raw;

    master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
    if (master < 0 || grantpt(master) || unlockpt(master))
        return -1;
    slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (slave < 0 || tcgetattr(slave, &raw))
        return -1;
    cfmakeraw(&raw);
    return tcsetattr(slave, TCSANOW, &raw);
}

static int close_terminal(void **state)
{
    clock_release();
    return close(slave) | close(master);
}

static void assert_shown(const char *text)
{
    char seen[256] = "";
    ssize_t n = read(master, seen, sizeof seen - 1);

    assert_string_equal(n < 0 ? "" : seen, text);
}

static void a_short_copy_shows_nothing(void **state)
{
    struct progress progress;

    clock_freeze(CLOCK_NS_PER_S, 0);
    progress_init(&progress, slave);
    progress_add(&progress, 0, 5);
    clock_advance(PROGRESS_AFTER_NS - 1);
    progress_add(&progress, 1, 0);
    progress_clear(&progress);
    assert_shown("");
}

static void a_long_one_shows_how_far_it_is_now_and_then(void **state)
{
    struct progress progress;

    clock_freeze(CLOCK_NS_PER_S, 0);
    progress_init(&progress, slave);
    progress_add(&progress, 0, 5);
    clock_advance(PROGRESS_AFTER_NS);
    progress_add(&progress, 0, 2048);
    assert_shown("\r0 files, 2.0 KiB\033[K");
    progress_add(&progress, 1, 0);
    clock_advance(PROGRESS_EVERY_NS - 1);
    progress_add(&progress, 0, 1);
    assert_shown("");
    clock_advance(1);
    progress_add(&progress, 0, 1);
    assert_shown("\r1 file, 2.0 KiB\033[K");
    progress_clear(&progress);
    assert_shown("\r\033[K");
    progress_clear(&progress);
    assert_shown("");
}

static void without_a_terminal_nothing_is_shown(void **state)
{
    struct progress progress;
    int ends[2];

    assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    clock_freeze(CLOCK_NS_PER_S, 0);
    progress_init(&progress, ends[1]);
    clock_advance(2 * PROGRESS_AFTER_NS);
    progress_add(&progress, 1, 0);
    progress_clear(&progress);
    assert_int_equal(read(ends[0], ends, 1), -1);
    close(ends[0]);
    close(ends[1]);
}

static void sizes_are_for_people(void **state)
{
    static const struct {
        uint64_t files;
        uint64_t bytes;
        const char *text;
    } cases[] = {
        {0, 0, "0 files, 0 B"},
        {1, 1023, "1 file, 1023 B"},
        {2, 1024, "2 files, 1.0 KiB"},
        {3, UINT64_C(3) << 19, "3 files, 1.5 MiB"},
        {4, UINT64_MAX, "4 files, 16.0 EiB"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[PROGRESS_TEXT_SIZE];

        progress_text(cases[i].files, cases[i].bytes, text);
        assert_string_equal(text, cases[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_short_copy_shows_nothing, open_terminal, close_terminal),
        cmocka_unit_test_setup_teardown(a_long_one_shows_how_far_it_is_now_and_then, open_terminal,
                                        close_terminal),
        cmocka_unit_test_setup_teardown(without_a_terminal_nothing_is_shown, open_terminal,
                                        close_terminal),
        cmocka_unit_test(sizes_are_for_people),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
