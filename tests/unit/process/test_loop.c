/* loop: watches, timers, signals, child ends; and that nothing comes after it was taken away. */
#include "../base/support.h"

#include "base/clock.h"
#include "loop/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define FAR_NS (600 * CLOCK_NS_PER_S)

struct note {
    struct loop_timer *timer;
    struct loop_timer *other;
    struct loop_watch *watch;
    struct loop_watch *other_watch;
    char log[64];
    size_t len;
    unsigned count;
    bool done;
};

static struct loop *new_loop(void)
{
    struct err err = ERR_UNTOUCHED;
    struct loop *loop = loop_new(&err);

    assert_non_null(loop);
    assert_untouched(err);
    return loop;
}

static void run(struct loop *loop, const bool *until)
{
    struct err err = ERR_UNTOUCHED;

    assert_int_equal(loop_run(loop, until, &err), 0);
    assert_untouched(err);
}

struct letter {
    struct note *note;
    char letter;
    bool is_last;
};

static void on_letter(void *data)
{
    struct letter *letter = data;

    letter->note->log[letter->note->len++] = letter->letter;
    letter->note->done |= letter->is_last;
}

static void test_timers_in_order(void **state)
{
    struct loop *loop = new_loop();
    struct note note = {0};
    struct letter letters[] = {{&note, 'c', true}, {&note, 'a', false}, {&note, 'b', false}};
    const uint64_t delays[] = {3 * CLOCK_NS_PER_MS, 0, CLOCK_NS_PER_MS};
    struct loop_timer *timers[3];
    uint64_t begin = clock_now_ns();

    for (int i = 0; i < 3; i++) {
        timers[i] = loop_timer_new(loop, on_letter, &letters[i]);
        loop_timer_start(timers[i], delays[i]);
    }
    run(loop, &note.done);
    assert_string_equal(note.log, "abc");
    assert_true(clock_now_ns() - begin >= 3 * CLOCK_NS_PER_MS); /* never early */
    for (int i = 0; i < 3; i++)
        loop_timer_free(timers[i]);
    loop_free(loop);
}

static void test_timer_restart_and_stop(void **state)
{
    struct loop *loop = new_loop();
    struct note note = {0};
    struct letter a = {&note, 'a', false};
    struct letter b = {&note, 'b', false};
    struct letter z = {&note, 'z', true};
    struct loop_timer *first = loop_timer_new(loop, on_letter, &a);
    struct loop_timer *second = loop_timer_new(loop, on_letter, &b);
    struct loop_timer *last = loop_timer_new(loop, on_letter, &z);

    loop_timer_start(first, FAR_NS);
    loop_timer_start(first, 0); /* anew, sooner */
    loop_timer_start(second, 0);
    loop_timer_stop(second);
    loop_timer_start(last, CLOCK_NS_PER_MS);
    run(loop, &note.done);
    assert_string_equal(note.log, "az");
    loop_timer_free(first);
    loop_timer_free(second);
    loop_timer_free(last);
    loop_timer_free(NULL);
    loop_free(loop);
}

static void on_again(void *data)
{
    struct note *note = data;

    if (++note->count < 1000)
        loop_timer_start(note->timer, 0);
    else
        note->done = true;
}

static void test_deferred_calls(void **state)
{
    struct loop *loop = new_loop();
    struct note note = {0};

    note.timer = loop_timer_new(loop, on_again, &note);
    loop_timer_start(note.timer, 0);
    run(loop, &note.done);
    assert_int_equal(note.count, 1000);
    loop_timer_free(note.timer);
    loop_free(loop);
}

/* Both are due in the same round; whoever comes first frees both. */
static void on_free_all(void *data)
{
    struct note *note = data;

    note->count++;
    loop_timer_free(note->timer);
    loop_timer_free(note->other);
    note->done = true;
}

static void test_freed_in_callback(void **state)
{
    struct loop *loop = new_loop();
    struct note note = {0};

    note.timer = loop_timer_new(loop, on_free_all, &note);
    note.other = loop_timer_new(loop, on_free_all, &note);
    loop_timer_start(note.timer, 0);
    loop_timer_start(note.other, 0);
    run(loop, &note.done);
    assert_int_equal(note.count, 1);
    loop_free(loop);
}

static void on_free_watches(void *data, int fd, unsigned ready)
{
    struct note *note = data;

    note->count++;
    loop_watch_free(note->watch);
    loop_watch_free(note->other_watch);
    note->done = true;
}

static void test_watches_freed_in_callback(void **state)
{
    struct loop *loop = new_loop();
    struct note note = {0};
    struct err err;
    int a[2];
    int b[2];

    assert_int_equal(pipe2(a, O_CLOEXEC), 0);
    assert_int_equal(pipe2(b, O_CLOEXEC), 0);
    assert_int_equal(write(a[1], "x", 1) + write(b[1], "x", 1), 2);
    note.watch = loop_watch_new(loop, a[0], LOOP_READ, on_free_watches, &note, &err);
    note.other_watch = loop_watch_new(loop, b[0], LOOP_READ, on_free_watches, &note, &err);
    run(loop, &note.done);
    assert_int_equal(note.count, 1);
    loop_free(loop);
    for (int i = 0; i < 2; i++) {
        close(a[i]);
        close(b[i]);
    }
}

static void on_ready(void *data, int fd, unsigned ready)
{
    struct note *note = data;

    note->log[note->len++] = ready == LOOP_READ ? 'r' : ready == LOOP_WRITE ? 'w' : '?';
    if (ready == LOOP_WRITE) {
        assert_int_equal(write(fd, "x", 1), 1);
        loop_watch_set(note->other_watch, LOOP_NOTHING);
        loop_watch_set(note->watch, LOOP_READ);
    } else {
        note->done = true;
    }
}

static void test_interest(void **state)
{
    struct loop *loop = new_loop();
    struct note note = {0};
    struct err err = ERR_UNTOUCHED;
    int ends[2];

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    note.watch = loop_watch_new(loop, ends[0], LOOP_NOTHING, on_ready, &note, &err);
    note.other_watch = loop_watch_new(loop, ends[1], LOOP_WRITE, on_ready, &note, &err);
    assert_untouched(err);
    run(loop, &note.done);
    assert_string_equal(note.log, "wr");
    loop_watch_free(note.watch);
    loop_watch_free(note.other_watch);
    loop_watch_free(NULL);
    close(ends[0]);
    close(ends[1]);
    loop_free(loop);
}

static void test_hang_up_is_readable(void **state)
{
    struct loop *loop = new_loop();
    struct note note = {0};
    struct err err;
    int ends[2];

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    note.watch = loop_watch_new(loop, ends[0], LOOP_READ, on_ready, &note, &err);
    close(ends[1]);
    run(loop, &note.done);
    assert_string_equal(note.log, "r");
    loop_watch_free(note.watch);
    close(ends[0]);
    loop_free(loop);
}

static void test_what_cannot_be_watched(void **state)
{
    static const char *const always_ready[] = {"/proc/self/exe", "/", "/dev/null"};
    struct loop *loop = new_loop();
    struct err err = ERR_UNTOUCHED;

    for (size_t i = 0; i < 3; i++) {
        int fd = open(always_ready[i], O_RDONLY | O_CLOEXEC);

        assert_null(loop_watch_new(loop, fd, LOOP_READ, on_ready, NULL, &err));
        assert_int_equal(err.code, ERR_UNSUPPORTED);
        close(fd);
        assert_null(loop_watch_new(loop, fd, LOOP_READ, on_ready, NULL, &err));
        assert_int_equal(err.code, ERR_SYSTEM);
        assert_int_equal(err.sys, EBADF);
    }
    loop_free(loop);
}

static void test_nothing_to_wait_for(void **state)
{
    struct loop *loop = new_loop();
    const bool never = false;
    const bool already = true;
    struct err err = ERR_UNTOUCHED;

    assert_int_equal(loop_run(loop, &already, &err), 0);
    assert_untouched(err);
    assert_int_equal(loop_run(loop, &never, &err), -1);
    assert_int_equal(err.code, ERR_BUG);
    loop_free(loop);
}

static void on_signal(void *data, int signal)
{
    struct note *note = data;

    note->log[note->len++] = signal == SIGUSR1 ? '1' : '2';
    note->done = note->len == 2;
}

static void test_signals(void **state)
{
    const int list[] = {SIGUSR1, SIGUSR2, 0};
    struct loop *loop = new_loop();
    struct note note = {0};
    struct err err = ERR_UNTOUCHED;
    struct loop_signals *signals = loop_signals_new(loop, list, on_signal, &note, &err);
    sigset_t mask;

    assert_non_null(signals);
    raise(SIGUSR2);
    raise(SIGUSR1);
    run(loop, &note.done);
    assert_non_null(strchr(note.log, '1'));
    assert_non_null(strchr(note.log, '2'));
    loop_signals_free(signals);
    loop_signals_free(NULL);
    sigprocmask(SIG_BLOCK, NULL, &mask);
    assert_false(sigismember(&mask, SIGUSR1));
    loop_free(loop);
}

static void test_child_end(void **state)
{
    struct loop *loop = new_loop();
    struct note note = {0};
    struct err err;
    pid_t child = fork();
    int pidfd;

    if (child == 0)
        _exit(3);
    pidfd = pidfd_open(child, 0);
    assert_true(pidfd >= 0);
    note.watch = loop_watch_new(loop, pidfd, LOOP_READ, on_ready, &note, &err);
    run(loop, &note.done);
    assert_int_equal(waitpid(child, NULL, WNOHANG), child);
    loop_watch_free(note.watch);
    close(pidfd);
    loop_free(loop);
}

static void test_no_descriptor_is_left(void **state)
{
    unsigned before = support_open_fds();

    test_signals(state);
    test_interest(state);
    assert_int_equal(support_open_fds(), before);
    loop_free(NULL);
}

/* --- in a loop of somebody else --- */

static void on_host_time(void *data)
{
    ((struct note *)data)->count++;
}

static void on_host_byte(void *data, int fd, unsigned ready)
{
    char byte;

    ((struct note *)data)->count += (unsigned)read(fd, &byte, 1);
}

/* Waits as a host does, until `count` calls were made. */
static void host_until(struct loop *loop, const struct note *note, unsigned count)
{
    struct err err = ERR_UNTOUCHED;
    struct pollfd ready = {.fd = loop_fd(loop, &err), .events = POLLIN};

    while (note->count < count) {
        assert_int_equal(poll(&ready, 1, -1), 1);
        assert_int_equal(loop_dispatch(loop, &err), 0);
    }
    assert_untouched(err);
}

static bool host_is_woken(struct loop *loop)
{
    struct err err = ERR_UNTOUCHED;
    struct pollfd ready = {.fd = loop_fd(loop, &err), .events = POLLIN};

    return poll(&ready, 1, 0) > 0;
}

static void test_one_descriptor_says_it_all(void **state)
{
    struct loop *loop = new_loop();
    struct note note = {.count = 0};
    struct loop_timer *early = loop_timer_new(loop, on_host_time, &note);
    struct loop_timer *timer;
    struct loop_watch *watch;
    struct err err = ERR_UNTOUCHED;
    int ends[2];

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    loop_timer_start(early, CLOCK_NS_PER_MS); /* before anybody asked for the descriptor */
    host_until(loop, &note, 1);
    timer = loop_timer_new(loop, on_host_time, &note);
    loop_timer_start(timer, 0);
    host_until(loop, &note, 2);
    loop_timer_start(timer, FAR_NS);
    loop_timer_start(early, CLOCK_NS_PER_MS);
    host_until(loop, &note, 3);
    watch = loop_watch_new(loop, ends[0], LOOP_READ, on_host_byte, &note, &err);
    assert_non_null(watch);
    assert_int_equal(write(ends[1], "x", 1), 1);
    host_until(loop, &note, 4);
    loop_timer_stop(timer);
    loop_timer_free(early);
    assert_int_equal(loop_dispatch(loop, &err), 0);
    assert_false(host_is_woken(loop)); /* nothing is left to do, and nothing wakes the host */
    loop_timer_free(timer);
    loop_watch_free(watch);
    loop_free(loop);
    close(ends[0]);
    close(ends[1]);
}

static void on_few(void *data)
{
    struct note *note = data;

    if (++note->count < 3)
        loop_timer_start(note->timer, 0);
}

static void on_endless(void *data, int fd, unsigned ready)
{
    ((struct note *)data)->count++; /* and reads nothing */
}

/* What goes on being ready does not keep the host. */
static void test_dispatching_what_is_always_ready(void **state)
{
    struct loop *loop = new_loop();
    struct note note = {.count = 0};
    struct err err = ERR_UNTOUCHED;
    struct loop_watch *watch;
    int ends[2];

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(write(ends[1], "x", 1), 1);
    watch = loop_watch_new(loop, ends[0], LOOP_READ, on_endless, &note, &err);
    assert_non_null(watch);
    assert_int_equal(loop_dispatch(loop, &err), 0);
    assert_int_equal(note.count, 1);
    assert_true(host_is_woken(loop));
    loop_watch_free(watch);
    loop_free(loop);
    close(ends[0]);
    close(ends[1]);
}

/* What is deferred by what is dispatched is done by the same dispatch, but not without end. */
static void test_deferred_calls_of_one_dispatch(void **state)
{
    struct loop *loop = new_loop();
    struct note few = {.timer = loop_timer_new(loop, on_few, &few)};
    struct note many = {.timer = loop_timer_new(loop, on_again, &many)};
    struct err err = ERR_UNTOUCHED;

    assert_true(loop_fd(loop, &err) >= 0);
    loop_timer_start(few.timer, 0);
    assert_int_equal(loop_wait(loop, -1, &err), 0);
    assert_int_equal(loop_dispatch(loop, &err), 0);
    assert_int_equal(few.count, 3);
    assert_false(host_is_woken(loop));
    assert_int_equal(loop_wait(loop, 0, &err), 0);
    loop_timer_start(many.timer, 0);
    assert_int_equal(loop_dispatch(loop, &err), 0);
    assert_in_range(many.count, 2, 100);
    assert_true(host_is_woken(loop));
    loop_timer_free(few.timer);
    loop_timer_free(many.timer);
    loop_free(loop);
}

/* The right one of several loops is found. */
static void test_each_loop_has_its_descriptor(void **state)
{
    struct loop *loops[3];
    struct note notes[3] = {{.count = 0}};
    struct loop_timer *timers[3];
    struct err err = ERR_UNTOUCHED;

    for (int i = 0; i < 3; i++) {
        loops[i] = new_loop();
        timers[i] = loop_timer_new(loops[i], on_host_time, &notes[i]);
    }
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < i; j++)
            assert_int_not_equal(loop_fd(loops[i], &err), loop_fd(loops[j], &err));
    for (int i = 2; i >= 0; i--) {
        loop_timer_start(timers[i], 0);
        host_until(loops[i], &notes[i], 1);
    }
    for (int i = 0; i < 3; i++) {
        assert_int_equal(notes[i].count, 1);
        loop_timer_free(timers[i]);
        loop_free(loops[i]);
    }
    assert_untouched(err);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_timers_in_order),
        cmocka_unit_test(test_timer_restart_and_stop),
        cmocka_unit_test(test_deferred_calls),
        cmocka_unit_test(test_freed_in_callback),
        cmocka_unit_test(test_watches_freed_in_callback),
        cmocka_unit_test(test_interest),
        cmocka_unit_test(test_hang_up_is_readable),
        cmocka_unit_test(test_what_cannot_be_watched),
        cmocka_unit_test(test_nothing_to_wait_for),
        cmocka_unit_test(test_signals),
        cmocka_unit_test(test_child_end),
        cmocka_unit_test(test_one_descriptor_says_it_all),
        cmocka_unit_test(test_dispatching_what_is_always_ready),
        cmocka_unit_test(test_deferred_calls_of_one_dispatch),
        cmocka_unit_test(test_each_loop_has_its_descriptor),
        cmocka_unit_test(test_no_descriptor_is_left),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
