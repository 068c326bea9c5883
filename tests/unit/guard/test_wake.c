/* Who is kept on one processor has its own mask again afterwards, and so have we. */
#include "../base/support.h"

#include "guard/wake.h"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static cpu_set_t mask_of(pid_t thread)
{
    cpu_set_t mask;

    assert_int_equal(sched_getaffinity(thread, sizeof mask, &mask), 0);
    return mask;
}

enum { MASKS_MAX = 4 };

/* As taskset(1) does, where that leaves more than one. */
static cpu_set_t restrict_us(void)
{
    cpu_set_t mask = mask_of(0);

    for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&mask) > 2; i++)
        if (CPU_ISSET(i, &mask)) {
            CPU_CLR(i, &mask);
            break;
        }
    assert_int_equal(sched_setaffinity(0, sizeof mask, &mask), 0);
    return mask;
}

static pid_t start_caller(void)
{
    pid_t pid = fork();

    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            pause();
    }
    assert_true(pid > 0);
    return pid;
}

static void test_masks_come_back(void **state)
{
    const cpu_set_t ours = restrict_us();
    const struct k_seccomp_notif_addfd add = {0}; /* nobody takes it: there is no listener */
    struct command command = {.listener = -1, .is_sync = true, .kept_calls = 1};
    const struct request request = {.command = &command, .thread = start_caller()};
    cpu_set_t masks[MASKS_MAX];
    int count = 0;

    masks[count++] = ours;
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &ours) && count < MASKS_MAX) {
            masks[count] = ours;
            CPU_CLR(i, &masks[count]);
            count += CPU_COUNT(&masks[count]) > 0;
        }
    for (int i = 0; i < count; i++) {
        cpu_set_t now;

        assert_int_equal(sched_setaffinity(request.thread, sizeof masks[i], &masks[i]), 0);
        assert_int_equal(wake_keeps(&request), CPU_COUNT(&ours) > 1);
        assert_int_equal(wake_to_take(&request, &add), -1);
        now = mask_of(request.thread);
        assert_true(CPU_EQUAL(&now, &masks[i]));
        wake_in_child();
        now = mask_of(0);
        assert_true(CPU_EQUAL(&now, &ours));
    }
    kill(request.thread, SIGKILL);
    waitpid(request.thread, NULL, 0);
}

static void test_who_moves_its_threads_is_not_moved(void **state)
{
    struct command command = {.listener = -1, .is_sync = true, .kept_calls = 1};
    const struct request request = {.command = &command, .thread = getpid()};

    wake_leave(&command);
    assert_false(wake_keeps(&request));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_masks_come_back),
        cmocka_unit_test(test_who_moves_its_threads_is_not_moved),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
