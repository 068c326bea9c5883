/* spool: what was written can be read, and when a call fails the output behind it still tells
 * exactly what it has. The sources are compiled once more, with CORDON_FAULTS. */
#include "../base/support.h"
#include "script.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/sys.h"
#include "output/output.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef CORDON_FAULTS
#error "has to be compiled with -DCORDON_FAULTS, like the sources that it links"
#endif

struct place {
    char *dir;
    unsigned fds;
};

static int setup(void **state)
{
    struct place *place = alloc_zero(1, sizeof *place);

    sys_fault_at(0, 0);
    place->dir = support_scratch_new();
    place->fds = support_open_fds();
    *state = place;
    return 0;
}

static int teardown(void **state)
{
    struct place *place = *state;

    sys_fault_at(0, 0);
    assert_int_equal(support_open_fds(), place->fds);
    support_scratch_remove(place->dir);
    free(place);
    return 0;
}

static const char *dir_of(void **state)
{
    return ((const struct place *)*state)->dir;
}

static struct output *new_output(size_t memory_max, struct spool_options spool)
{
    return output_new(&(struct output_options){.memory_max = memory_max, .spool = &spool});
}

static struct output_info info_of(const struct output *output)
{
    struct output_info info;

    output_info(output, &info);
    return info;
}

static void fill(struct script *script, struct output *output, size_t len)
{
    while (script->len < len)
        script_append(script, output, 50);
}

/* Reads all of it, from the beginning, and returns how many bytes were gone. */
static uint64_t check_all(const struct script *script, struct output *output, enum output_unit unit)
{
    struct output_cursor cursor = {0};
    struct output_record record;
    uint64_t gone = 0;
    uint64_t at = 0;
    char bytes[70];

    for (;;) {
        output_read(output, &cursor, unit, bytes, sizeof bytes, &record);
        assert_int_equal(record.offset, at);
        if (record.kind == OUTPUT_EMPTY || record.kind == OUTPUT_END)
            break;
        script_check(script, &record, bytes, unit);
        at += record.len;
        if (record.kind == OUTPUT_GAP)
            gone += record.len;
    }
    assert_int_equal(at, script->len);
    return gone;
}

static void nothing_is_lost_within_the_quota(void **state)
{
    struct output *output =
        new_output(100, (struct spool_options){.dir = dir_of(state), .quota = 1 << 20});
    struct script script;

    script_init(&script, 1);
    fill(&script, output, 40);
    assert_int_equal(support_open_fds(), ((struct place *)*state)->fds); /* memory was enough */
    fill(&script, output, 50000);
    assert_int_equal(info_of(output).spool, SPOOL_OK);
    assert_int_equal(check_all(&script, output, OUTPUT_BY_CHUNK), 0);
    assert_int_equal(check_all(&script, output, OUTPUT_BY_RUN), 0);
    output_free(output);
    script_done(&script);
}

static void the_quota_is_exact(void **state)
{
    struct output *output =
        new_output(100, (struct spool_options){.dir = dir_of(state), .quota = 1234});
    struct script script;

    script_init(&script, 2);
    fill(&script, output, 5000);
    assert_int_equal(info_of(output).spool, SPOOL_FULL);
    assert_int_equal(info_of(output).spool_errno, 0);
    assert_int_equal(info_of(output).prefix_end, 1234);
    assert_int_equal(info_of(output).tail_start, script.len - 50);
    assert_int_equal(check_all(&script, output, OUTPUT_BY_CHUNK), script.len - 50 - 1234);
    output_free(output);
    script_done(&script);
}

struct losses {
    struct output_watch watch;
    char bytes[2048]; /* at their offsets */
    uint64_t next;
};

static void on_loss(struct output_watch *watch, uint64_t offset, const char *bytes, size_t len)
{
    struct losses *losses = container_of(watch, struct losses, watch);

    assert_int_equal(offset, losses->next);
    assert_true(offset + len <= sizeof losses->bytes);
    memcpy(losses->bytes + offset, bytes, len);
    losses->next += len;
}

/* The spool may end anywhere within what leaves memory, and within what never came there. */
static void what_the_quota_leaves_out_is_shown_with_its_offset(void **state)
{
    for (uint64_t quota = 0; quota < 400; quota++) {
        const uint64_t start = quota < 20 ? 20 : quota; /* the head is in memory */
        struct output *output =
            new_output(40, (struct spool_options){.dir = dir_of(state), .quota = quota});
        struct losses losses = {.watch = {.on_loss = on_loss}, .next = start};
        struct script script;

        script_init(&script, 3);
        output_watch(output, &losses.watch);
        fill(&script, output, 1000);
        assert_int_equal(losses.next, info_of(output).tail_start);
        assert_memory_equal(losses.bytes + start, script.bytes + start, losses.next - start);
        output_unwatch(&losses.watch);
        output_free(output);
        script_done(&script);
    }
}

static void a_file_with_a_name_holds_everything_in_the_end(void **state)
{
    AUTO_FREE char *path = path_join(dir_of(state), "log");
    AUTO(buf_done) struct buf text;
    struct output *output = new_output(
        100, (struct spool_options){.dir = dir_of(state), .name = "log", .quota = 1 << 20});
    struct script script;
    struct stat st;
    struct err err;

    script_init(&script, 3);
    fill(&script, output, 5000);
    output_finish(output);
    assert_int_equal(fd_read_file(path, 1 << 20, &text, &err), 0);
    assert_int_equal(text.len, script.len);
    assert_memory_equal(text.data, script.bytes, script.len);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    output_free(output);
    assert_int_equal(stat(path, &st), 0);
    script_done(&script);
}

static void a_short_output_is_in_its_file_too(void **state)
{
    AUTO_FREE char *path = path_join(dir_of(state), "log");
    AUTO(buf_done) struct buf text;
    struct output *output = new_output(
        100, (struct spool_options){.dir = dir_of(state), .name = "log", .quota = 1 << 20});
    struct err err;

    output_append(output, STREAM_STDOUT, "short", 5);
    output_finish(output);
    assert_int_equal(fd_read_file(path, 100, &text, &err), 0);
    assert_string_equal(text.data, "short");
    output_free(output);
}

static void check_unusable(struct spool_options spool, int error)
{
    struct output *output = new_output(100, spool);
    struct script script;

    script_init(&script, 4);
    fill(&script, output, 1000);
    assert_int_equal(info_of(output).spool, SPOOL_FAILED);
    assert_int_equal(info_of(output).spool_errno, error);
    assert_int_equal(info_of(output).prefix_end, 50);
    assert_int_equal(check_all(&script, output, OUTPUT_BY_CHUNK), script.len - 100);
    output_free(output);
    script_done(&script);
}

static void places_that_cannot_be_used(void **state)
{
    AUTO_FREE char *missing = path_join(dir_of(state), "missing");

    support_write(dir_of(state), "taken", "precious");
    check_unusable((struct spool_options){.dir = missing, .quota = 1000}, ENOENT);
    check_unusable((struct spool_options){.dir = dir_of(state), .name = "taken", .quota = 1000},
                   EEXIST);
    check_unusable((struct spool_options){.dir = dir_of(state), .name = "../up", .quota = 1000},
                   EINVAL);
}

/* A file size limit makes write(2) stop short and then fail, as a full disk does. */
static void a_write_that_stops_short(void **state)
{
    struct output *output =
        new_output(100, (struct spool_options){.dir = dir_of(state), .quota = 1 << 20});
    struct rlimit before;
    struct rlimit limit;
    struct script script;

    script_init(&script, 5);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = (struct rlimit){.rlim_cur = 777, .rlim_max = before.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    fill(&script, output, 3000);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_DFL);
    assert_int_equal(info_of(output).spool, SPOOL_FAILED);
    assert_int_equal(info_of(output).spool_errno, EFBIG);
    assert_int_equal(info_of(output).prefix_end, 777);
    assert_int_equal(check_all(&script, output, OUTPUT_BY_RUN), script.len - 50 - 777);
    output_free(output);
    script_done(&script);
}

static void every_failure_of_a_write_is_survived(void **state)
{
    unsigned calls = 1;

    for (unsigned nth = 0; nth <= calls; nth++) {
        struct output *output =
            new_output(100, (struct spool_options){.dir = dir_of(state), .quota = 1 << 20});
        struct script script;
        struct output_info info;

        script_init(&script, 6);
        sys_fault_at(nth, ENOSPC);
        fill(&script, output, 1500);
        if (!nth)
            calls = sys_fault_count();
        info = info_of(output);
        assert_int_equal(info.spool, nth ? SPOOL_FAILED : SPOOL_OK);
        assert_int_equal(info.spool_errno, nth ? ENOSPC : 0);
        sys_fault_at(0, 0);
        assert_int_equal(check_all(&script, output, OUTPUT_BY_CHUNK),
                         info.tail_start - info.prefix_end);
        assert_int_equal(info.prefix_end == info.tail_start, !nth);
        output_free(output);
        script_done(&script);
    }
    assert_true(calls > 20);
}

static void interrupted_calls_go_on(void **state)
{
    for (unsigned nth = 4; nth < 20; nth++) { /* before, files are opened */
        struct output *output =
            new_output(100, (struct spool_options){.dir = dir_of(state), .quota = 1 << 20});
        struct script script;

        script_init(&script, 6);
        sys_fault_at(nth, EINTR);
        fill(&script, output, 1500);
        assert_int_equal(info_of(output).spool, SPOOL_OK);
        sys_fault_at(nth, EINTR);
        assert_int_equal(check_all(&script, output, OUTPUT_BY_CHUNK), 0);
        output_free(output);
        script_done(&script);
    }
}

/* Whichever read fails: what was delivered before is right, and the rest of the prefix is one gap.
 */
static void every_failure_of_a_read_becomes_a_gap(void **state)
{
    unsigned calls = 1;

    for (unsigned nth = 0; nth <= calls; nth++) {
        struct output *output =
            new_output(100, (struct spool_options){.dir = dir_of(state), .quota = 1 << 20});
        struct script script;
        uint64_t gone;

        script_init(&script, 7);
        fill(&script, output, 3000);
        sys_fault_at(nth, EIO);
        gone = check_all(&script, output, OUTPUT_BY_CHUNK);
        if (!nth)
            calls = sys_fault_count();
        assert_int_equal(gone > 0, nth > 0);
        output_free(output);
        script_done(&script);
    }
    assert_true(calls > 20);
}

/* By whoever else may write the file: what is gone is one gap, and reading comes to its end. */
static void a_file_that_is_shortened_becomes_a_gap(void **state)
{
    AUTO_FREE char *path = path_join(dir_of(state), "log");
    struct output *output = new_output(
        100, (struct spool_options){.dir = dir_of(state), .name = "log", .quota = 1 << 20});
    struct script script;

    script_init(&script, 8);
    fill(&script, output, 5000);
    assert_int_equal(truncate(path, 0), 0);
    assert_int_equal(check_all(&script, output, OUTPUT_BY_CHUNK), script.len - 100);
    assert_int_equal(info_of(output).spool, SPOOL_FAILED);
    assert_int_equal(info_of(output).spool_errno, EIO);
    output_free(output);
    script_done(&script);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nothing_is_lost_within_the_quota, setup, teardown),
        cmocka_unit_test_setup_teardown(the_quota_is_exact, setup, teardown),
        cmocka_unit_test_setup_teardown(what_the_quota_leaves_out_is_shown_with_its_offset, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_file_with_a_name_holds_everything_in_the_end, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_short_output_is_in_its_file_too, setup, teardown),
        cmocka_unit_test_setup_teardown(places_that_cannot_be_used, setup, teardown),
        cmocka_unit_test_setup_teardown(a_write_that_stops_short, setup, teardown),
        cmocka_unit_test_setup_teardown(every_failure_of_a_write_is_survived, setup, teardown),
        cmocka_unit_test_setup_teardown(interrupted_calls_go_on, setup, teardown),
        cmocka_unit_test_setup_teardown(every_failure_of_a_read_becomes_a_gap, setup, teardown),
        cmocka_unit_test_setup_teardown(a_file_that_is_shortened_becomes_a_gap, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
