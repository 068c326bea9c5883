/* resource_limits: which limit a command ran into, by how it ended and what it used. */
#include "../base/support.h"

#include "base/auto.h"
#include "base/clock.h"
#include "base/strv.h"
#include "process/process.h"
#include "process/resource_limits.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

static struct resource_limits_report report_of(const struct resource_limits *limits,
                                               const struct process_end *end)
{
    struct resource_limits_scope scope;
    struct resource_limits_report report;
    struct launch_limits rlimits;

    resource_limits_open(NULL, limits, &scope);
    scope.without_cgroup = true;
    resource_limits_apply(&scope, 0, COUNTER_USER_NAMESPACE, &rlimits);
    resource_limits_report(&scope, end, &report);
    resource_limits_close(&scope);
    return report;
}

static bool is_out_of_cpu_time(struct process_end end)
{
    const struct resource_limits limits = {.of = {[LIMIT_CPU_TIME] = 3 * CLOCK_NS_PER_S}};

    return report_of(&limits, &end).hit[LIMIT_CPU_TIME] == LIMIT_HIT;
}

static void cpu_time_is_that_of_the_program_and_of_the_kernel_for_it(void **state)
{
    static const struct {
        long user_us, system_us;
        bool is_hit;
    } cases[] = {
        {3000000, 0, true},
        {0, 3000000, true},
        {1600000, 1400000, true},
        {1400000, 1600000, true},
        {0, 0, false},
        {1000000, 1000000, false},
        {1900000, 100000, false},
        {100000, 1900000, false},
        {2990000, 0, true},
        {1500000, 1490000, true},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct timeval user = {cases[i].user_us / 1000000, cases[i].user_us % 1000000};
        const struct timeval sys = {cases[i].system_us / 1000000, cases[i].system_us % 1000000};
        struct process_end end = {.how = PROCESS_SIGNALED,
                                  .signal = SIGKILL,
                                  .usage_known = true,
                                  .usage = {.ru_utime = user, .ru_stime = sys}};

        assert_int_equal(is_out_of_cpu_time(end), cases[i].is_hit);
        end.usage_known = false; /* who killed it cannot be told */
        assert_false(is_out_of_cpu_time(end));
    }
}

static void the_soft_limit_has_a_signal_of_its_own(void **state)
{
    assert_true(
        is_out_of_cpu_time((struct process_end){.how = PROCESS_SIGNALED, .signal = SIGXCPU}));
    assert_true(
        is_out_of_cpu_time((struct process_end){.how = PROCESS_EXITED, .code = 128 + SIGXCPU}));
    assert_false(is_out_of_cpu_time((struct process_end){.how = PROCESS_EXITED, .code = SIGXCPU}));
    assert_false(
        is_out_of_cpu_time((struct process_end){.how = PROCESS_SIGNALED, .signal = SIGXFSZ}));
}

/* A command may send itself any signal. */
static void what_was_not_asked_for_is_not_hit(void **state)
{
    const struct process_end cpu = {.how = PROCESS_SIGNALED, .signal = SIGXCPU};
    const struct process_end file = {.how = PROCESS_SIGNALED, .signal = SIGXFSZ};
    const struct resource_limits file_size = {.of = {[LIMIT_FILE_SIZE] = 1000}};
    const struct resource_limits cpu_time = {.of = {[LIMIT_CPU_TIME] = 1}};

    assert_false(report_of(&file_size, &cpu).hit[LIMIT_CPU_TIME]);
    assert_true(report_of(&file_size, &file).hit[LIMIT_FILE_SIZE]);
    assert_int_equal(report_of(&file_size, &file).by[LIMIT_FILE_SIZE], LIMIT_BY_RLIMIT);
    assert_false(report_of(&cpu_time, &file).hit[LIMIT_FILE_SIZE]);
}

static void cpu_time_is_rounded_up_to_seconds(void **state)
{
    static const uint64_t cases[][2] = {
        {0, 0}, {1, 1}, {CLOCK_NS_PER_S, 1}, {CLOCK_NS_PER_S + 1, 2}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct resource_limits_scope scope;
        struct launch_limits rlimits;

        resource_limits_open(
            NULL, &(struct resource_limits){.of = {[LIMIT_CPU_TIME] = cases[i][0]}}, &scope);
        scope.without_cgroup = true;
        resource_limits_apply(&scope, 0, COUNTER_USER_NAMESPACE, &rlimits);
        assert_int_equal(rlimits.cpu_time, cases[i][1]);
        resource_limits_close(&scope);
    }
}

/* Who keeps what, without a cgroup; and whom the kernel counts decides about processes. */
static void without_a_cgroup_rlimits_do(void **state)
{
    static const struct {
        bool is_default;
        enum process_counter counter;
        uint64_t processes; /* that are set; of who is no root */
        uint64_t of_root;
        const char *warning; /* of who is no root */
        const char *roots;
    } cases[] = {
        {true, COUNTER_USER_NAMESPACE, 50, 50, NULL, NULL},
        {true, COUNTER_PID_NAMESPACE, 50, 50, NULL, NULL},
        {true, COUNTER_USER, 0, 0, NULL, NULL},
        {false, COUNTER_USER_NAMESPACE, 50, 50, NULL, NULL},
        {false, COUNTER_PID_NAMESPACE, 50, 50, NULL, NULL},
        {false, COUNTER_USER, 50, 0, "--max-pids counts all of your processes",
         "--max-pids is not enforced"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct resource_limits limits = {.of = {[LIMIT_PIDS] = 50,
                                                [LIMIT_FILE_SIZE] = 4096,
                                                [LIMIT_FILES] = LIMIT_NONE,
                                                [LIMIT_ADDRESS_SPACE] = 1 << 30},
                                         .defaults = cases[i].is_default ? 1u << LIMIT_PIDS : 0};
        const char *warning = geteuid() == 0 ? cases[i].roots : cases[i].warning;
        AUTO(strv_done) struct strv warnings = {0};
        struct resource_limits_scope scope;
        struct launch_limits rlimits;

        resource_limits_open(&limits, NULL, &scope);
        scope.without_cgroup = true;
        resource_limits_apply(&scope, 0, cases[i].counter, &rlimits);
        assert_int_equal(rlimits.processes, geteuid() == 0 ? cases[i].of_root : cases[i].processes);
        assert_int_equal(scope.by[LIMIT_PIDS], !rlimits.processes ? LIMIT_UNSET
                                               : cases[i].counter == COUNTER_PID_NAMESPACE
                                                   ? LIMIT_BY_PID_NAMESPACE
                                                   : LIMIT_BY_RLIMIT);
        assert_int_equal(rlimits.file_size, 4096);
        assert_int_equal(rlimits.files, 0);
        assert_int_equal(scope.by[LIMIT_FILES], LIMIT_UNSET);
        assert_int_equal(rlimits.address_space, 1 << 30);
        assert_int_equal(rlimits.data, 0);
        resource_limits_warn(&scope, &warnings);
        assert_int_equal(warnings.len, warning ? 1 : 0);
        if (warning)
            assert_contains(warnings.items[0], warning);
        resource_limits_close(&scope);
    }
}

static void memory_of_each_process_is_warned_of(void **state)
{
    const struct resource_limits limits = {.of = {[LIMIT_MEMORY] = 1 << 30}};
    const struct process_end end = {.how = PROCESS_EXITED, .code = 1};
    AUTO(strv_done) struct strv warnings = {0};
    struct resource_limits_scope scope;
    struct resource_limits_report report;
    struct launch_limits rlimits;

    resource_limits_open(NULL, &limits, &scope);
    scope.without_cgroup = true;
    resource_limits_apply(&scope, 0, COUNTER_USER_NAMESPACE, &rlimits);
    assert_int_equal(rlimits.data, 1 << 30); /* and not the address space */
    assert_int_equal(rlimits.address_space, 0);
    resource_limits_warn(&scope, &warnings);
    assert_int_equal(warnings.len, 1);
    assert_contains(warnings.items[0], "--max-memory holds for each process by itself");
    resource_limits_report(&scope, &end, &report);
    assert_int_equal(report.hit[LIMIT_MEMORY], LIMIT_HIT_UNKNOWN);
    resource_limits_close(&scope);
}

/* A launch that is tried again asks again. */
static void what_is_asked_lies_over_what_the_sandbox_says(void **state)
{
    const struct resource_limits asked = {.of = {[LIMIT_PIDS] = LIMIT_NONE, [LIMIT_FILE_SIZE] = 7}};
    struct resource_limits_scope scope;
    struct launch_limits rlimits;

    resource_limits_open(&resource_limits_default, &asked, &scope);
    scope.without_cgroup = true;
    for (int i = 0; i < 2; i++) {
        resource_limits_apply(&scope, 0, COUNTER_USER_NAMESPACE, &rlimits);
        assert_int_equal(rlimits.processes, 0);
        assert_int_equal(rlimits.file_size, 7);
        assert_int_equal(rlimits.files, resource_limits_default.of[LIMIT_FILES]);
    }
    assert_int_equal(scope.asked.defaults, 1u << LIMIT_FILES);
    resource_limits_close(&scope);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cpu_time_is_that_of_the_program_and_of_the_kernel_for_it),
        cmocka_unit_test(the_soft_limit_has_a_signal_of_its_own),
        cmocka_unit_test(what_was_not_asked_for_is_not_hit),
        cmocka_unit_test(cpu_time_is_rounded_up_to_seconds),
        cmocka_unit_test(without_a_cgroup_rlimits_do),
        cmocka_unit_test(memory_of_each_process_is_warned_of),
        cmocka_unit_test(what_is_asked_lies_over_what_the_sandbox_says),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
