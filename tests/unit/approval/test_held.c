/* held: what the guard asks about becomes a question, and its answer goes back; the clocks of the
 * job stand still meanwhile. The guard is a double. */
#include "../base/support.h"
#include "../process/fake_sandbox.h"
#include "../process/run.h"

#include "approval/approvals.h"
#include "approval/held.h"
#include "base/str.h"
#include "job/job.h"
#include "policy/profile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { JOBS = 2 };

/* A session of commands, and whoever is asked. */
static struct {
    struct loop *loop;
    struct approvals *approvals;
    struct approver approver;
    struct job *jobs[JOBS];
    struct job_watch watches[JOBS];
    struct gate gate;
    unsigned asked;
    unsigned withdrawn;
    bool has_come; /* whatever the loop runs for */
    char id[32];
    char reason[512];
    char covers[512];
    unsigned offers;
    char steps[1024]; /* of the first job: its clock, and what its asker tells */
    char warning[256];
    char *rules_file;
    bool has_ended;
} desk;

static void note(const char *text)
{
    assert_true(strlen(desk.steps) + strlen(text) < sizeof desk.steps);
    strcat(desk.steps, text); /* allow strcat: it fits */
}

static void on_ask(struct approver *approver, const struct approval_request *question)
{
    assert_int_equal(question->kind, APPROVAL_KIND_HELD);
    desk.asked++;
    desk.has_come = true;
    snprintf(desk.id, sizeof desk.id, "%s", question->id);
    snprintf(desk.reason, sizeof desk.reason, "%s", question->reason);
    snprintf(desk.covers, sizeof desk.covers, "%s", question->covers);
    desk.offers = question->offers;
}

static void on_withdraw(struct approver *approver, const char *id)
{
    desk.withdrawn++;
}

static void free_nothing(struct approver *approver)
{
}

static void on_job(struct job_watch *watch, enum job_event event)
{
    bool is_first = watch == &desk.watches[0];

    if (event == JOB_HELD && is_first)
        note(" stop");
    else if (event == JOB_RELEASED && is_first)
        note(" go");
    else if (event == JOB_STARTED)
        desk.has_come = true;
    else if (event == JOB_ENDED)
        desk.has_ended = true;
}

static void on_event(void *data, const struct held_event *event)
{
    char text[64];

    if (event->warning)
        snprintf(desk.warning, sizeof desk.warning, "%s", event->warning);
    if (event->step == HELD_OVER)
        snprintf(text, sizeof text, " over(%s%s)",
                 event->answer ? approval_decision_name(event->answer->decision) : "none",
                 event->is_done ? ", done" : "");
    else
        snprintf(text, sizeof text, "%s", event->step == HELD_ASKED ? " asked" : " answered");
    if (data == &desk.watches[0])
        note(text);
}

static void run_until(const bool *condition)
{
    struct err err;

    assert_int_equal(loop_run(desk.loop, condition, &err), 0);
}

/* A turn of the loop: all that is ready. */
static void on_turn(void *data)
{
    *(bool *)data = true;
}

static void turn(void)
{
    for (int i = 0; i < 3; i++) {
        bool is_over = false;
        struct loop_timer *timer = loop_timer_new(desk.loop, on_turn, &is_over);

        loop_timer_start(timer, CLOCK_NS_PER_MS);
        run_until(&is_over);
        loop_timer_free(timer);
    }
}

static void start(int which)
{
    static char own[] = "/home/u/.config/cordon";
    static char *const own_paths[] = {own, NULL};
    static char program[] = "cat";
    char *const argv[] = {program, desk.gate.path, NULL};
    const struct process_options process = {
        .loop = desk.loop,
        .sandbox = fake_sandbox(),
        .argv = argv,
        .env = test_env,
        .cwd = "/",
        .asks = true,
    };
    const struct job_options options = {
        .command = "cat", .process = &process, .without_cgroup = true};
    struct err err;

    fake.facts_len = 0;
    desk.jobs[which] = job_start(&options, &err);
    assert_non_null(desk.jobs[which]);
    desk.watches[which].on_event = on_job;
    job_watch(desk.jobs[which], &desk.watches[which]);
    job_set_asker(desk.jobs[which], held_new(&(struct held_options){
                                        .approvals = desk.approvals,
                                        .argv = argv,
                                        .cwd = "/",
                                        .profile = "workspace-write",
                                        .own_paths = own_paths,
                                        .home = "/home/u",
                                        .rules_file = desk.rules_file,
                                        .on_event = on_event,
                                        .data = &desk.watches[which],
                                    }));
    desk.has_come = false;
    run_until(&desk.has_come);
    desk.has_come = false;
}

static void desk_open(uint64_t timeout_ns)
{
    struct err err;

    fake = (struct fake){.has_guard = true};
    memset(&desk, 0, sizeof desk);
    desk.loop = loop_new(&err);
    desk.approver = (struct approver){.ask = on_ask, .withdraw = on_withdraw, .free = free_nothing};
    desk.approvals = approvals_new(desk.loop, timeout_ns);
    approvals_add_approver(desk.approvals, &desk.approver);
    gate_init(&desk.gate);
}

static int setup(void **state)
{
    desk_open(0);
    return 0;
}

static int teardown(void **state)
{
    for (int i = 0; i < JOBS; i++)
        if (desk.jobs[i]) {
            job_unwatch(&desk.watches[i]);
            job_free(desk.jobs[i]);
        }
    approvals_free(desk.approvals);
    gate_done(&desk.gate);
    loop_free(desk.loop);
    return 0;
}

static struct launch_fact write_of(uint64_t id, const char *path)
{
    return (struct launch_fact){
        .kind = FACT_ASKED,
        .id = id,
        .operation = FACT_WRITE,
        .path = path,
        .program = "git",
        .pid = 12,
    };
}

static void tell(const struct launch_fact *fact)
{
    fake_tell(fact, 1);
    turn();
}

static void answer(enum approval_decision decision)
{
    struct approval_answer given = {.decision = decision, .by = "test"};
    struct err err;

    if (approvals_answer(desk.approvals, desk.id, &given, &err))
        fail_msg("%s", err.msg);
    turn();
}

static void assert_answered(size_t at, uint64_t id, enum launch_verdict verdict)
{
    assert_true(fake.answers_len > at);
    assert_int_equal(fake.answers[at].id, id);
    assert_int_equal(fake.answers[at].verdict, verdict);
}

static void a_yes_lets_it_go(void **state)
{
    struct access_entry entry = {.origin = (char *)"--readable", .access = ACCESS_READ};
    struct launch_fact fact = write_of(7, "/w/kept/x");
    struct launch_fact done = {.kind = FACT_DONE, .id = 7};

    start(0);
    fact.entry = &entry;
    tell(&fact);
    assert_int_equal(desk.asked, 1);
    assert_string_equal(desk.reason,
                        "git (pid 12) wants to write /w/kept/x, which the profile workspace-write "
                        "does not allow (--readable)");
    assert_string_equal(desk.covers, "writing /w/kept/x until the command ends");
    assert_int_equal(desk.offers, 1u << APPROVAL_APPROVED | 1u << APPROVAL_FOR_SESSION |
                                      1u << APPROVAL_DENIED | 1u << APPROVAL_ABORT);
    assert_true(job_is_held(desk.jobs[0]));
    answer(APPROVAL_APPROVED);
    assert_answered(0, 7, LAUNCH_YES);
    assert_false(job_is_held(desk.jobs[0]));
    tell(&done);
    assert_string_equal(desk.steps, " asked stop answered go over(approved, done)");
}

static void a_no_is_the_refusal(void **state)
{
    struct launch_fact fact = write_of(7, "/x");

    start(0);
    tell(&fact);
    answer(APPROVAL_DENIED);
    assert_answered(0, 7, LAUNCH_NO);
    assert_string_equal(desk.steps, " asked stop answered over(denied) go");
}

static void no_answer_in_time_is_a_no(void **state)
{
    struct launch_fact fact = write_of(7, "/x");

    teardown(state);
    desk_open(CLOCK_NS_PER_MS);
    start(0);
    tell(&fact);
    while (job_is_held(desk.jobs[0]))
        turn();
    assert_answered(0, 7, LAUNCH_NO);
    assert_string_equal(desk.steps, " asked stop answered over(timed_out) go");
}

static void abort_ends_the_command(void **state)
{
    struct launch_fact fact = write_of(7, "/x");

    start(0);
    tell(&fact);
    answer(APPROVAL_ABORT);
    assert_answered(0, 7, LAUNCH_STOP);
    run_until(&desk.has_ended);
    assert_true(job_was_terminated(desk.jobs[0]));
}

static void a_yes_for_the_session_counts_for_later_commands(void **state)
{
    struct launch_fact fact = write_of(7, "/x");
    struct launch_fact made = write_of(8, "/x");
    struct launch_fact other = write_of(9, "/y");

    start(0);
    tell(&fact);
    answer(APPROVAL_FOR_SESSION);
    start(1);
    made.operation = FACT_CREATE; /* what a yes covers is the same */
    tell(&made);
    assert_answered(1, 8, LAUNCH_YES);
    assert_int_equal(desk.asked, 1);
    assert_false(job_is_held(desk.jobs[1]));
    tell(&other);
    assert_int_equal(desk.asked, 2);
}

/* A path that reads like two is one. */
static void a_name_does_not_widen_a_yes(void **state)
{
    struct launch_fact fact = write_of(7, "/w/x and everything in /srv");
    struct launch_fact both = write_of(8, "/w/x");

    start(0);
    tell(&fact);
    answer(APPROVAL_FOR_SESSION);
    both.other_path = "/srv/f";
    both.other_covers = "/srv/";
    tell(&both);
    assert_int_equal(desk.asked, 2);
    assert_string_equal(desk.covers, "writing /w/x and everything in /srv until the command ends");
}

static void two_commands_join_one_question(void **state)
{
    struct launch_fact first = write_of(7, "/x/a");
    struct launch_fact second = write_of(8, "/x/b");

    first.operation = second.operation = FACT_CREATE;
    first.covers = second.covers = "/x/";
    start(0);
    tell(&first);
    start(1);
    tell(&second);
    assert_int_equal(desk.asked, 1);
    assert_string_equal(desk.covers, "writing everything in /x until the command ends");
    answer(APPROVAL_APPROVED);
    assert_int_equal(fake.answers_len, 2);
    assert_true(fake.answers[0].verdict == LAUNCH_YES && fake.answers[1].verdict == LAUNCH_YES);
}

static void a_call_that_goes_away_takes_its_question_back(void **state)
{
    struct launch_fact fact = write_of(7, "/x");
    struct launch_fact gone = {.kind = FACT_WITHDRAWN, .id = 7};

    start(0);
    tell(&fact);
    tell(&gone);
    assert_int_equal(desk.withdrawn, 1);
    assert_int_equal(fake.answers_len, 0);
    assert_string_equal(desk.steps, " asked stop over(none) go");
}

/* The clock stands still for as long as any of them waits. */
static void the_clock_waits_for_the_last(void **state)
{
    struct launch_fact facts[] = {write_of(7, "/x"), write_of(8, "/y")};
    struct launch_fact gone = {.kind = FACT_WITHDRAWN, .id = 7};

    start(0);
    fake_tell(facts, 2);
    turn();
    assert_int_equal(desk.asked, 2);
    tell(&gone);
    assert_true(job_is_held(desk.jobs[0]));
    answer(APPROVAL_APPROVED); /* the one that was asked last: /y */
    assert_false(job_is_held(desk.jobs[0]));
    assert_true(job_held_ns(desk.jobs[0]) > 0);
    assert_string_equal(desk.steps, " asked stop asked over(none) answered go");
}

static void the_end_of_the_command_takes_all_back(void **state)
{
    struct launch_fact facts[] = {write_of(7, "/x"), write_of(8, "/y")};
    struct err err;

    start(0);
    fake_tell(facts, 2);
    turn();
    assert_int_equal(job_terminate(desk.jobs[0], 0, &err), 0);
    run_until(&desk.has_ended);
    assert_int_equal(desk.withdrawn, 2);
    assert_string_equal(desk.steps, " asked stop asked over(none) over(none) go");
}

static void a_job_without_an_asker_gets_a_no(void **state)
{
    struct launch_fact fact = write_of(7, "/x");

    start(0);
    tell(&fact);
    assert_true(job_is_held(desk.jobs[0]));
    job_set_asker(desk.jobs[0], NULL);
    assert_int_equal(desk.withdrawn, 1);
    assert_false(job_is_held(desk.jobs[0]));
    fact.id = 8;
    tell(&fact);
    assert_answered(0, 8, LAUNCH_NO);
}

static void what_no_yes_opens_is_not_asked_about(void **state)
{
    struct access_entry denied = {.origin = (char *)"--deny", .access = ACCESS_DENY};
    struct launch_fact secret = write_of(7, "/s");
    struct launch_fact own = write_of(8, "/home/u/.config/cordon/rules/x");
    struct launch_fact moved = write_of(9, "/w/x");
    struct launch_fact hook = write_of(10, "/w/.git/hooks/pre-commit");
    struct launch_fact in_home = write_of(11, "/home/u/new");
    struct launch_fact shell = write_of(12, "/home/u/.bashrc");

    in_home.covers = "/home/u/";
    secret.entry = &denied;
    moved.other_path = "/home/u/.config/cordon";
    start(0);
    tell(&secret);
    tell(&own);
    tell(&moved);
    tell(&hook);
    tell(&in_home);
    tell(&shell);
    assert_int_equal(desk.asked, 0);
    for (size_t i = 0; i < 6; i++)
        assert_answered(i, 7 + i, LAUNCH_NO);
}

static void a_denied_place_may_want_to_be_asked_about(void **state)
{
    struct access_entry asks = {.access = ACCESS_DENY, .asks = true};
    struct launch_fact fact = write_of(7, "/s/x");

    fact.operation = FACT_READ;
    fact.covers = "/s";
    fact.entry = &asks;
    start(0);
    tell(&fact);
    assert_string_equal(desk.covers, "reading /s until the command ends");
    assert_string_equal(desk.reason, "git (pid 12) wants to read /s/x, which the profile "
                                     "workspace-write does not allow");
    answer(APPROVAL_APPROVED);
    assert_answered(0, 7, LAUNCH_YES);
}

/* It asks about reading alone. */
static void writing_what_asks(void **state)
{
    struct access_entry asks = {.origin = (char *)"config", .access = ACCESS_DENY, .asks = true};
    struct launch_fact fact = write_of(7, "/home/u/.ssh/new");

    fact.entry = &asks;
    start(0);
    tell(&fact);
    assert_int_equal(desk.asked, 0);
    assert_answered(0, 7, LAUNCH_NO);
}

static void there_is_a_ceiling(void **state)
{
    struct launch_fact facts[HELD_OPEN_MAX + 1];
    char paths[HELD_OPEN_MAX + 1][16];

    start(0);
    for (size_t i = 0; i < HELD_OPEN_MAX + 1; i++) {
        snprintf(paths[i], sizeof paths[i], "/x/%zu", i);
        facts[i] = write_of(i, paths[i]);
    }
    fake_tell(facts, HELD_OPEN_MAX + 1);
    turn();
    assert_int_equal(desk.asked, HELD_OPEN_MAX);
    assert_int_equal(fake.answers_len, 1);
    assert_answered(0, HELD_OPEN_MAX, LAUNCH_NO);
}

/* --- hosts --- */

static struct launch_fact connect_of(uint64_t id, const struct launch_connect *connect)
{
    static char path[400];

    snprintf(path, sizeof path, strchr(connect->host, ':') ? "[%s]:%u" : "%s:%u", connect->host,
             connect->port);
    return (struct launch_fact){
        .kind = FACT_ASKED,
        .id = id,
        .operation = FACT_CONNECT,
        .path = path,
        .program = id % 2 ? "curl" : "",
        .pid = 12,
        .connect = connect,
    };
}

static void a_host_is_asked_about_by_name_port_and_protocol(void **state)
{
    const struct launch_connect connects[] = {
        {.host = "example.com", .port = 443, .protocol = NETWORK_HTTPS},
        {.host = "example.com", .port = 443, .protocol = NETWORK_HTTPS},
        {.host = "example.com", .port = 443, .protocol = NETWORK_HTTP},
        {.host = "example.com", .port = 444, .protocol = NETWORK_HTTPS},
        {.host = "2a00::1", .port = 443, .protocol = NETWORK_HTTPS},
    };

    start(0);
    for (unsigned i = 0; i < sizeof connects / sizeof *connects; i++) {
        struct launch_fact fact = connect_of(i + 1, &connects[i]);

        tell(&fact);
        if (i == 0) {
            assert_string_equal(
                desk.reason,
                "curl (pid 12) wants to connect to example.com:443 (https), which no rule "
                "of the profile workspace-write allows");
            assert_string_equal(desk.covers,
                                "connecting to example.com:443 (https) until the command ends");
            assert_int_equal(desk.offers, 1u << APPROVAL_APPROVED | 1u << APPROVAL_FOR_SESSION |
                                              1u << APPROVAL_DENIED | 1u << APPROVAL_ABORT);
            answer(APPROVAL_FOR_SESSION);
            assert_answered(0, 1, LAUNCH_YES); /* and nothing more is heard of it */
            assert_string_equal(desk.steps,
                                " asked stop answered over(approved_for_session, done) go");
        } else if (i == 1) {
            assert_answered(1, 2, LAUNCH_YES);
            assert_int_equal(desk.asked, 1);
        } else {
            assert_int_equal(desk.asked, i);
            assert_int_equal(
                strncmp(desk.reason, i % 2 ? "a program of the command wants" : "curl", 4), 0);
            answer(APPROVAL_DENIED);
            assert_answered(i, i + 1, LAUNCH_NO);
        }
    }
    assert_string_equal(desk.covers, "connecting to [2a00::1]:443 (https) until the command ends");
}

/* A rule has no port, and counts at once: in this command, and in the next. */
static void an_answer_for_good_is_about_every_port(void **state)
{
    static const enum approval_decision decisions[] = {APPROVAL_WITH_RULE, APPROVAL_NO_BY_RULE};
    static const char *const hosts[] = {"good.com", "bad.com"};
    static char file[] = "/proc/nowhere/rules";
    uint64_t id = 0;

    desk.rules_file = file; /* cannot be written: the answer holds all the same */
    start(0);
    for (unsigned i = 0; i < 2; i++) {
        const struct launch_connect first = {
            .host = hosts[i], .port = 443, .protocol = NETWORK_HTTPS};
        const struct launch_connect other = {
            .host = hosts[i], .port = 8443, .protocol = NETWORK_HTTPS};
        const struct launch_connect plain = {
            .host = hosts[i], .port = 80, .protocol = NETWORK_HTTP};
        const enum launch_verdict verdict = i ? LAUNCH_NO : LAUNCH_YES;
        struct launch_fact fact = connect_of(++id, &first);

        tell(&fact);
        assert_int_equal(desk.asked, 2 * i + 1);
        assert_true(desk.offers & 1u << decisions[i]);
        answer(decisions[i]);
        assert_answered(id - 1, id, verdict);
        fact = connect_of(++id, &other);
        tell(&fact);
        assert_int_equal(desk.asked, 2 * i + 1);
        assert_answered(id - 1, id, verdict);
        fact = connect_of(++id, &plain);
        tell(&fact);
        assert_int_equal(desk.asked, 2 * i + 2);
        answer(APPROVAL_DENIED);
        assert_answered(id - 1, id, LAUNCH_NO);
    }
    assert_non_null(strstr(desk.warning, "the rule could not be written"));
}

/* The proxy says what a host is as it is compared: all else is none of ours. */
static void what_is_no_plain_host_is_not_asked_about(void **state)
{
    static const char *const hosts[] = {
        "Example.com",
        "example.com.",
        "ex\xc3\xa4mple.com",
        "a b",
        "example.com:443 (https)\n",
        "\033[2J",
        "",
        "2A00::1",
        "*.example.com",
        "127.1",
        "0x7f.1",
    };
    static const struct launch_connect no_port = {.host = "example.com"};
    struct launch_fact fact;
    unsigned i;

    start(0);
    for (i = 0; i < sizeof hosts / sizeof *hosts; i++) {
        const struct launch_connect connect = {.host = hosts[i], .port = 443};

        fact = connect_of(i + 1, &connect);
        tell(&fact);
        assert_answered(i, i + 1, LAUNCH_NO);
    }
    fact = connect_of(i + 1, &no_port);
    tell(&fact);
    assert_answered(i, i + 1, LAUNCH_NO);
    assert_int_equal(desk.asked, 0);
}

static void letters_that_look_alike_are_told(void **state)
{
    const struct launch_connect connect = {.host = "xn--pple-43d.com", .port = 80};
    struct launch_fact fact = connect_of(1, &connect);

    start(0);
    tell(&fact);
    assert_non_null(strstr(desk.reason, "xn--pple-43d.com:80 (http)"));
    assert_non_null(strstr(desk.reason, "letters that are not those of English"));
    answer(APPROVAL_DENIED);
}

/* --- when there are questions at all --- */

static void who_may_be_asked(void **state)
{
    static const struct {
        struct approval_policy policy;
        bool may;
    } rows[] = {
        {{.mode = APPROVAL_UNTRUSTED}, true},
        {{.mode = APPROVAL_ON_REQUEST}, true}, /* on-failure, too */
        {{.mode = APPROVAL_NEVER}, false},
        {{.mode = APPROVAL_GRANULAR, .questions = APPROVAL_QUESTION_SANDBOX}, true},
        {{.mode = APPROVAL_GRANULAR,
          .questions = APPROVAL_QUESTIONS_ALL & ~(unsigned)APPROVAL_QUESTION_SANDBOX},
         false},
        {{.mode = APPROVAL_GRANULAR}, false},
    };
    struct profile profile = {.watch = PROFILE_WATCH_ASK};
    struct network_rule rule = {.verdict = NETWORK_ASK};
    struct access_map access = {.network = NETWORK_PROXIED};
    struct access_map asks = {.network_policy = {.rules = &rule, .rules_len = 1}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(held_may_ask(&rows[i].policy), rows[i].may);
        profile.watch = PROFILE_WATCH_ASK;
        assert_int_equal(held_is_wanted(&access, &profile, &rows[i].policy), rows[i].may);
        assert_false(held_is_wanted(NULL, &profile, &rows[i].policy));
        profile.watch = PROFILE_WATCH_FACTS;
        assert_false(held_is_wanted(&access, &profile, &rows[i].policy));
        assert_int_equal(held_is_wanted(&asks, &profile, &rows[i].policy), rows[i].may);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_yes_lets_it_go, setup, teardown),
        cmocka_unit_test_setup_teardown(a_no_is_the_refusal, setup, teardown),
        cmocka_unit_test_setup_teardown(no_answer_in_time_is_a_no, setup, teardown),
        cmocka_unit_test_setup_teardown(abort_ends_the_command, setup, teardown),
        cmocka_unit_test_setup_teardown(a_yes_for_the_session_counts_for_later_commands, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_name_does_not_widen_a_yes, setup, teardown),
        cmocka_unit_test_setup_teardown(two_commands_join_one_question, setup, teardown),
        cmocka_unit_test_setup_teardown(a_call_that_goes_away_takes_its_question_back, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(the_clock_waits_for_the_last, setup, teardown),
        cmocka_unit_test_setup_teardown(the_end_of_the_command_takes_all_back, setup, teardown),
        cmocka_unit_test_setup_teardown(a_job_without_an_asker_gets_a_no, setup, teardown),
        cmocka_unit_test_setup_teardown(what_no_yes_opens_is_not_asked_about, setup, teardown),
        cmocka_unit_test_setup_teardown(a_denied_place_may_want_to_be_asked_about, setup, teardown),
        cmocka_unit_test_setup_teardown(writing_what_asks, setup, teardown),
        cmocka_unit_test_setup_teardown(there_is_a_ceiling, setup, teardown),
        cmocka_unit_test_setup_teardown(a_host_is_asked_about_by_name_port_and_protocol, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(an_answer_for_good_is_about_every_port, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_no_plain_host_is_not_asked_about, setup, teardown),
        cmocka_unit_test_setup_teardown(letters_that_look_alike_are_told, setup, teardown),
        cmocka_unit_test_setup_teardown(who_may_be_asked, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
