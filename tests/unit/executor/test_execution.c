/* execution: the whole way of commands that really run, in a double of the sandbox; several at once
 * in one loop, with answers from the test. */
#include "../base/support.h"
#include "../process/fake_sandbox.h"
#include "../process/run.h"

#include "approval/approvals.h"
#include "base/alloc.h"
#include "base/auto.h"
#include "base/json.h"
#include "base/str.h"
#include "executor/execution.h"
#include "policy/profile.h"
#include "rules/rules_disk.h"
#include "workspace/workspace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* A session: what its executions share. */
struct session {
    struct loop *loop;
    struct approvals *approvals;
    struct approver approver;
    char folder[32]; /* of the rules */
    struct workspaces *workspaces;
    struct workspace *workspace;
    struct job_run_options job;
    enum approval_decision answer; /* to every question */
    bool is_silent;                /* there is none */
    unsigned asked;
    char covers[256];
    unsigned offers;
};

struct call {
    struct session *session;
    struct execution_options options;
    struct execution *execution;
    char *argv[4];
    char events[256]; /* their first letters, and where an attempt ran */
    bool is_done;
    bool fails_to_prepare; /* the second attempt */
};

static struct session session;

static void answer_at_once(struct approver *approver, const struct approval_request *question)
{
    struct approval_answer answer = {.decision = session.answer, .by = "test"};
    struct err err;

    session.asked++;
    session.offers = question->offers;
    snprintf(session.covers, sizeof session.covers, "%s", question->covers);
    if (!session.is_silent && approvals_answer(approver->approvals, question->id, &answer, &err))
        fail_msg("%s", err.msg);
}

static void ignore_withdrawal(struct approver *approver, const char *id)
{
}

static void free_nothing(struct approver *approver)
{
}

static const char rules_text[] = "prefix_rule(pattern=[\"sh\"], decision=\"prompt\")\n"
                                 "prefix_rule(pattern=[\"false\"], decision=\"forbidden\")\n";

/* The only workspace of a profile that a sandbox mode names. */
static void use_profile(const char *name)
{
    static const struct workspace_words words = {.profile = "profile"};
    const struct workspace_request request = {
        .words = &words, .dir = "/", .profile_name = name, .tmp = WORKSPACE_TMP_HOST};
    const struct workspaces_options options = {.config = NULL};
    struct err err;

    workspaces_free(session.workspaces);
    session.workspaces = workspaces_new(&options);
    session.workspace = workspace_make(session.workspaces, NULL, &request, &err);
    assert_non_null(session.workspace);
}

static void write_rules(void)
{
    AUTO_FREE char *dir = NULL;
    AUTO_FREE char *path = NULL;
    FILE *file;

    strcpy(session.folder, "/tmp/cordon-test-XXXXXX"); /* allow strcpy: it fits */
    assert_non_null(mkdtemp(session.folder));
    dir = alloc_strf("%s/" RULES_DIR, session.folder);
    path = alloc_strf("%s/test.rules", dir);
    assert_int_equal(mkdir(dir, 0700), 0);
    file = fopen(path, "we");
    assert_non_null(file);
    fputs(rules_text, file);
    fclose(file);
}

static void remove_rules(void)
{
    AUTO_FREE char *dir = alloc_strf("%s/" RULES_DIR, session.folder);
    AUTO_FREE char *path = alloc_strf("%s/test.rules", dir);

    unlink(path);
    rmdir(dir);
    rmdir(session.folder);
}

static int setup(void **state)
{
    struct err err;

    fake = (struct fake){0};
    session = (struct session){
        .loop = loop_new(&err),
        .approver = {.ask = answer_at_once, .withdraw = ignore_withdrawal, .free = free_nothing},
    };
    session.approvals = approvals_new(session.loop, 0);
    approvals_add_approver(session.approvals, &session.approver);
    write_rules();
    use_profile("read-only");
    job_run_defaults(&session.job);
    session.job.without_cgroup = true;
    return 0;
}

static int teardown(void **state)
{
    approvals_free(session.approvals);
    workspaces_free(session.workspaces);
    remove_rules();
    loop_free(session.loop);
    return 0;
}

static void note(struct call *call, const char *text)
{
    assert_true(strlen(call->events) + strlen(text) < sizeof call->events);
    strcat(call->events, text); /* allow strcat: it fits */
}

static void on_attempt(void *data, enum run_where where, struct workspace *workspace)
{
    assert_non_null(workspace->sandbox);
    note(data, where == RUN_UNCONFINED          ? " none"
               : workspace != session.workspace ? " widened"
                                                : " sandbox");
}

static void on_event(void *data, const struct execution_event *event)
{
    static const char *const names[] = {
        [EXECUTION_ASKED] = " asked",     [EXECUTION_ANSWERED] = " answered",
        [EXECUTION_HELD] = " held",       [EXECUTION_DENIED] = " denied",
        [EXECUTION_RETRIED] = " retried",
    };

    note(data, names[event->kind]);
    fake.refuses = event->kind == EXECUTION_RETRIED && ((struct call *)data)->fails_to_prepare;
}

static void on_done(void *data)
{
    struct call *call = data;

    note(call, " done");
    call->is_done = true;
}

static void call_init(struct call *call, enum approval_mode mode, const char *script)
{
    *call = (struct call){.argv = {(char *)"sh", (char *)"-c", (char *)script}};
    call->options = (struct execution_options){
        .loop = session.loop,
        .approvals = session.approvals,
        .workspace = session.workspace,
        .rules = {.dir = session.folder},
        .policy = {.mode = mode},
        .argv = call->argv,
        .env = test_env,
        .cwd = "/",
        .job = &session.job,
        .on_attempt = on_attempt,
        .on_event = on_event,
        .on_done = on_done,
        .data = call,
    };
}

static void call_start(struct call *call)
{
    call->execution = execution_start(&call->options);
}

static const struct execution_result *call_finish(struct call *call)
{
    struct err err;

    assert_int_equal(loop_run(session.loop, &call->is_done, &err), 0);
    return execution_result(call->execution);
}

static const struct execution_result *call_run(struct call *call)
{
    call_start(call);
    return call_finish(call);
}

static void call_done(struct call *call)
{
    execution_free(call->execution);
}

static void a_yes_runs_it(void **state)
{
    struct call call;
    const struct execution_result *result;

    call_init(&call, APPROVAL_ON_REQUEST, "exit $((3))");
    result = call_run(&call);
    assert_string_equal(call.events, " asked answered sandbox done");
    assert_int_equal(result->outcome, EXECUTION_RAN);
    assert_int_equal(result->attempts_len, 1);
    assert_int_equal(result->attempts[0].result.process->code, 3);
    call_done(&call);
}

static void a_no_does_not(void **state)
{
    struct call call;
    const struct execution_result *result;

    session.answer = APPROVAL_DENIED;
    call_init(&call, APPROVAL_ON_REQUEST, "exit $((3))");
    result = call_run(&call);
    assert_string_equal(call.events, " asked answered done");
    assert_int_equal(result->outcome, EXECUTION_REJECTED);
    assert_int_equal(result->attempts_len, 0);
    assert_int_equal(fake.launches, 0);
    call_done(&call);
}

static void a_yes_for_the_session_is_not_asked_again(void **state)
{
    session.answer = APPROVAL_FOR_SESSION;
    for (int i = 0; i < 3; i++) {
        struct call call;

        call_init(&call, APPROVAL_ON_REQUEST, i < 2 ? "exit $((3))" : "exit $((4))");
        assert_int_equal(call_run(&call)->outcome, EXECUTION_RAN);
        assert_string_equal(call.events,
                            i == 1 ? " answered sandbox done" : " asked answered sandbox done");
        call_done(&call);
    }
    assert_int_equal(session.asked, 2);
}

/* What a command is refused: as words, and as the guard tells it. */
#define WORDS "echo 'sh: cannot create /etc/hostname: Read-only file system' >&2; exit 1"
#define REFUSED "exit $((1))"

static void guard_tells(const char *path)
{
    static struct launch_fact denied;

    denied = (struct launch_fact){
        .kind = FACT_DENIED, .operation = FACT_WRITE, .path = path, .program = "sh"};
    fake.has_guard = true;
    fake.facts = &denied;
    fake.facts_len = 1;
}

static unsigned asked_about(const char *script, char *const *patched)
{
    unsigned before = session.asked;
    struct call call;

    call_init(&call, APPROVAL_ON_REQUEST, script);
    call.options.patched = patched;
    assert_int_equal(call_run(&call)->outcome, EXECUTION_RAN);
    call_done(&call);
    return session.asked - before;
}

#define FILES(...) ((char *const[]){__VA_ARGS__, NULL})

static void a_yes_for_the_session_counts_for_each_file_of_a_patch(void **state)
{
    char *a = (char *)"/a", *b = (char *)"/b", *c = (char *)"/c";

    session.answer = APPROVAL_FOR_SESSION;
    assert_int_equal(asked_about("exit $((1))", FILES(a, b)), 1);
    assert_int_equal(asked_about("exit $((2))", FILES(b)), 0);
    assert_int_equal(asked_about("exit $((3))", FILES(b, a)), 0);
    assert_int_equal(asked_about("exit $((4))", FILES(b, c)), 1);
    assert_int_equal(asked_about("exit $((5))", FILES(c)), 0);
    assert_int_equal(asked_about("exit $((5))", NULL), 1); /* that command is no patch */
}

/* Nothing is said of which files: each is asked about, and no yes for the session is offered. */
static void a_patch_that_is_none_is_asked_about_each_time(void **state)
{
    assert_int_equal(asked_about("exit $((1))", FILES(NULL)), 1);
    assert_int_equal(asked_about("exit $((1))", FILES(NULL)), 1);
    assert_int_equal(session.offers & 1u << APPROVAL_FOR_SESSION, 0);
}

/* Each yes of a grant is that of one file with it. */
static void a_grant_to_a_patch_counts_for_each_file(void **state)
{
    char *a = (char *)"/a", *b = (char *)"/b";

    guard_tells("/etc/hostname");
    session.answer = APPROVAL_FOR_SESSION;
    assert_int_equal(asked_about(REFUSED, FILES(a, b)), 2);
    assert_int_equal(asked_about(REFUSED "; true", FILES(b)), 0);
}

/* Who said yes to the one has not seen the other. */
static void patches_of_the_same_file_are_asked_about_each(void **state)
{
    char *const *files = FILES((char *)"/a");
    struct call calls[2];

    for (size_t i = 0; i < 2; i++) {
        call_init(&calls[i], APPROVAL_ON_REQUEST, i ? "exit $((4))" : "exit $((3))");
        calls[i].options.patched = files;
        call_start(&calls[i]);
    }
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(call_finish(&calls[i])->outcome, EXECUTION_RAN);
        call_done(&calls[i]);
    }
    assert_int_equal(session.asked, 2);
}

static void many_at_once_share_one_question(void **state)
{
    struct call calls[8];

    for (size_t i = 0; i < 8; i++) {
        call_init(&calls[i], APPROVAL_ON_REQUEST, i == 7 ? "exit $((4))" : "exit $((3))");
        call_start(&calls[i]);
    }
    for (size_t i = 0; i < 8; i++) {
        const struct execution_result *result = call_finish(&calls[i]);

        assert_int_equal(result->outcome, EXECUTION_RAN);
        assert_int_equal(result->attempts[0].result.process->code, i == 7 ? 4 : 3);
        call_done(&calls[i]);
    }
    assert_int_equal(session.asked, 2);
}

static void forbidden_is_not_asked(void **state)
{
    struct call call;
    const struct execution_result *result;

    call_init(&call, APPROVAL_ON_REQUEST, "true && false");
    result = call_run(&call);
    assert_string_equal(call.events, " done");
    assert_int_equal(result->outcome, EXECUTION_FORBIDDEN);
    assert_non_null(strstr(result->reason, "test.rules:2"));
    call_done(&call);
}

static void a_denial_is_retried_with_a_grant(void **state)
{
    struct call call;
    const struct execution_result *result;
    AUTO_JSON json_t *json = NULL;

    guard_tells("/etc/hostname");
    call_init(&call, APPROVAL_ON_REQUEST, REFUSED);
    result = call_run(&call);
    assert_string_equal(call.events, " asked answered sandbox denied asked answered retried "
                                     "widened denied done");
    assert_string_equal(session.covers,
                        "this command in its sandbox (profile read-only), and beyond that "
                        "writing /etc/hostname");
    assert_int_equal(result->attempts_len, 2); /* and not a third, though it was denied again */
    assert_string_equal(result->attempts[1].widened, "writing /etc/hostname");
    json = execution_to_json(result, NULL);
    assert_int_equal(json_array_size(json_object_get(json, "attempts")), 2);
    assert_int_equal(json_array_size(json_object_get(json, "questions")), 2);
    call_done(&call);
}

static void a_grant_for_the_session_is_not_asked_again(void **state)
{
    guard_tells("/etc/hostname");
    session.answer = APPROVAL_FOR_SESSION;
    for (int i = 0; i < 2; i++) {
        struct call call;

        call_init(&call, APPROVAL_ON_REQUEST, REFUSED);
        assert_int_equal(call_run(&call)->attempts_len, 2);
        call_done(&call);
    }
    assert_int_equal(session.asked, 2);
}

static void the_first_yes_covers_a_retry_only_on_request(void **state)
{
    struct call call;

    guard_tells("/etc/hostname");
    for (int covers = 0; covers < 2; covers++) {
        call_init(&call, APPROVAL_UNTRUSTED, REFUSED);
        call.options.policy.yes_means_unsandboxed = covers;
        call_start(&call);
        while (!session.asked)
            assert_int_equal(loop_dispatch(session.loop, &(struct err){0}), 0);
        assert_int_equal(strstr(session.covers, "once more without a sandbox") != NULL, covers);
        assert_int_equal(call_finish(&call)->attempts_len, 2);
        assert_string_equal(call.events, covers ? " asked answered sandbox denied retried widened "
                                                  "denied done"
                                                : " asked answered sandbox denied asked answered "
                                                  "retried widened denied done");
        assert_int_equal(session.asked, covers ? 1 : 2);
        assert_int_equal(session.offers & 1u << APPROVAL_UNCONFINED, 0);
        call_done(&call);
        session.asked = 0;
    }
}

/* Nothing says that it was refused, but what the command prints. */
static void words_alone_offer_nothing(void **state)
{
    static const enum approval_mode modes[] = {APPROVAL_ON_REQUEST, APPROVAL_UNTRUSTED,
                                               APPROVAL_GRANULAR};
    struct call call;

    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        session.asked = 0;
        call_init(&call, modes[i], WORDS);
        call.options.policy.questions = APPROVAL_QUESTIONS_ALL;
        assert_int_equal(call_run(&call)->attempts_len, 1);
        assert_string_equal(call.events, " asked answered sandbox denied done");
        assert_int_equal(session.asked, 1);
        call_done(&call);
    }
    call_init(&call, APPROVAL_UNTRUSTED, WORDS);
    call.options.policy.yes_means_unsandboxed = true;
    assert_int_equal(call_run(&call)->attempts_len, 2);
    assert_string_equal(call.events, " asked answered sandbox denied retried none done");
    call_done(&call);
}

static void what_others_believe_is_not_offered(void **state)
{
    static const char *const paths[] = {"/w/.git/hooks/pre-commit", "/w/.vscode/tasks.json",
                                        "/home/u/.bashrc", "/home/u/new", "/home/u/.config/new"};
    struct call call;

    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        guard_tells(paths[i]);
        session.asked = 0;
        call_init(&call, APPROVAL_ON_REQUEST, REFUSED);
        call.options.rules.home = "/home/u";
        assert_int_equal(call_run(&call)->attempts_len, 1);
        assert_int_equal(session.asked, 1);
        call_done(&call);
    }
}

static void a_retry_that_cannot_be_made_leaves_the_first_attempt(void **state)
{
    struct call call;
    const struct execution_result *result;

    guard_tells("/etc/hostname");
    call_init(&call, APPROVAL_ON_REQUEST, REFUSED);
    call.fails_to_prepare = true;
    result = call_run(&call);
    assert_int_equal(result->outcome, EXECUTION_RAN);
    assert_int_equal(result->attempts_len, 1);
    assert_int_equal(result->warnings.len, 1);
    call_done(&call);
}

static void signals_and_time_are_not_retried(void **state)
{
    struct call call;

    call_init(&call, APPROVAL_ON_REQUEST,
              "echo 'sh: cannot create /etc/x: Read-only file system' >&2; kill -KILL $$");
    assert_int_equal(call_run(&call)->attempts_len, 1);
    assert_int_equal(session.asked, 1);
    call_done(&call);
}

static void without_a_policy_nothing_but_forbid_counts(void **state)
{
    struct call call;

    guard_tells("/etc/hostname");
    call_init(&call, APPROVAL_NEVER, REFUSED);
    call.options.gate = EXECUTION_FORBIDS_ONLY;
    call.options.approvals = NULL;
    assert_int_equal(call_run(&call)->attempts_len, 1);
    assert_string_equal(call.events, " sandbox denied done");
    call_done(&call);
    call_init(&call, APPROVAL_NEVER, "false");
    call.options.gate = EXECUTION_FORBIDS_ONLY;
    assert_int_equal(call_run(&call)->outcome, EXECUTION_FORBIDDEN);
    call_done(&call);
}

static void nobody_to_ask_is_a_no(void **state)
{
    struct call call;

    call_init(&call, APPROVAL_ON_REQUEST, "exit $((3))");
    call.options.approvals = NULL;
    assert_int_equal(call_run(&call)->outcome, EXECUTION_REJECTED);
    assert_string_equal(call.events, " done");
    call_done(&call);
}

static void what_a_call_asks_for_is_in_the_question(void **state)
{
    struct profile_overlay overlay = {.network = OVERLAY_NETWORK_ENABLED};
    struct call call;

    call_init(&call, APPROVAL_ON_REQUEST, "true");
    call.options.permissions = SANDBOX_WITH_ADDITIONAL;
    call.options.additional = &overlay;
    assert_string_equal(call_run(&call)->attempts[0].widened, "the network");
    assert_string_equal(call.events, " asked answered widened done");
    assert_string_equal(
        session.covers,
        "this command in its sandbox (profile read-only), and beyond that the network");
    call_done(&call);
    call_init(&call, APPROVAL_ON_REQUEST, "true");
    call.options.permissions = SANDBOX_ESCALATED;
    call_run(&call);
    assert_string_equal(call.events, " asked answered none done");
    assert_non_null(strstr(session.covers, "without a sandbox"));
    call_done(&call);
}

static void without_confinement_a_yes_covers_everything(void **state)
{
    struct call call;

    use_profile("danger-full-access");
    call_init(&call, APPROVAL_UNTRUSTED, "exit $((3))");
    call_run(&call);
    assert_string_equal(session.covers, "this command without a sandbox: it may do whatever you "
                                        "may, files and network");
    call_done(&call);
}

static void cancelled_while_asked_is_rejected(void **state)
{
    struct call call;
    struct err err;

    session.is_silent = true;
    call_init(&call, APPROVAL_ON_REQUEST, "exit $((3))");
    call_start(&call);
    while (!session.asked && !call.is_done)
        assert_int_equal(loop_dispatch(session.loop, &err), 0);
    execution_cancel(call.execution);
    assert_int_equal(call_finish(&call)->outcome, EXECUTION_REJECTED);
    call_done(&call);
}

static void cancelled_before_it_begins_it_is_not_started(void **state)
{
    struct call call;
    const struct execution_result *result;

    call_init(&call, APPROVAL_ON_REQUEST, "exit $((3))");
    call_start(&call);
    execution_cancel(call.execution);
    result = call_finish(&call);
    assert_int_equal(result->outcome, EXECUTION_FAILED);
    assert_int_equal(session.asked, 0);
    assert_int_equal(fake.launches, 0);
    call_done(&call);
}

static void a_broken_rules_file_is_told(void **state)
{
    AUTO_FREE char *path = alloc_strf("%s/" RULES_DIR "/broken.rules", session.folder);
    FILE *file = fopen(path, "we");
    struct call call;

    assert_non_null(file);
    fputs("prefix_rule([", file);
    fclose(file);
    call_init(&call, APPROVAL_ON_REQUEST, "exit $((3))");
    call_start(&call);
    unlink(path);
    assert_int_equal(call_finish(&call)->outcome, EXECUTION_RAN);
    assert_int_equal(execution_result(call.execution)->problems.len, 1);
    assert_non_null(strstr(execution_result(call.execution)->problems.items[0], "broken.rules:1"));
    call_done(&call);
}

static void freed_at_any_time(void **state)
{
    struct call call;
    struct err err;

    session.is_silent = true;
    call_init(&call, APPROVAL_ON_REQUEST, "exit $((3))");
    call_start(&call);
    call_done(&call); /* before it begins */
    call_start(&call);
    while (!session.asked && !call.is_done)
        assert_int_equal(loop_dispatch(session.loop, &err), 0);
    call_done(&call); /* while somebody is asked */
    session.is_silent = false;
    call.argv[2] = (char *)"exec sleep 1000";
    call_start(&call);
    while (!fake.launches)
        assert_int_equal(loop_dispatch(session.loop, &err), 0);
    call_done(&call); /* while it runs */
}

/* --- what is held while it runs --- */

/* The command ends with 1 behind a `cat` of the gate, which opens once the guard has its answer. */
static void run_held(struct call *call, enum approval_mode mode, const struct launch_fact *denied)
{
    static const struct access_entry entry = {.origin = (char *)"the test", .access = ACCESS_READ};
    struct launch_fact facts[] = {
        {.kind = FACT_ASKED,
         .id = 5,
         .operation = FACT_WRITE,
         .path = "/etc/hostname",
         .program = "sh",
         .pid = 12,
         .entry = &entry},
        *denied,
    };
    struct gate gate;
    char script[256];
    struct err err;

    gate_init(&gate);
    gate_script(&gate, script, sizeof script, "cat GATE; exit 1");
    fake.has_guard = true;
    fake.facts = facts;
    fake.facts_len = denied->path ? 2 : 1;
    session.workspace->profile.watch = PROFILE_WATCH_ASK;
    call_init(call, mode, script);
    call->options.gate = EXECUTION_ASKS;
    call->options.rules.dir = NULL;
    call_start(call);
    while (!fake.answers_len && !call->is_done)
        assert_int_equal(loop_dispatch(session.loop, &err), 0);
    if (!call->is_done && session.answer != APPROVAL_ABORT) /* that ends it */
        gate_open(&gate);
    call_finish(call);
    gate_done(&gate);
}

static const json_t *first_question(const struct call *call)
{
    return json_array_get(execution_result(call->execution)->questions, 0);
}

static const char *decision_of(const struct call *call)
{
    return json_string_value(
        json_object_get(json_object_get(first_question(call), "answer"), "decision"));
}

static void what_is_refused_is_asked_about_while_it_runs(void **state)
{
    const struct launch_fact none = {.path = NULL};
    struct call call;

    run_held(&call, APPROVAL_ON_REQUEST, &none);
    assert_string_equal(call.events, " sandbox asked answered held done");
    assert_int_equal(fake.answers[0].verdict, LAUNCH_YES);
    assert_string_equal(json_string_value(json_object_get(first_question(&call), "kind")), "held");
    assert_string_equal(decision_of(&call), "approved");
    assert_true(json_is_integer(json_object_get(first_question(&call), "held_ms")));
    assert_true(json_is_false(json_object_get(first_question(&call), "done")));
    assert_int_equal(execution_result(call.execution)->attempts_len, 1);
    call_done(&call);
}

static void after_a_no_there_is_no_retry(void **state)
{
    const struct launch_fact denied = {
        .kind = FACT_DENIED, .operation = FACT_WRITE, .path = "/etc/hostname", .program = "sh"};
    struct call call;

    session.answer = APPROVAL_DENIED;
    run_held(&call, APPROVAL_ON_REQUEST, &denied);
    assert_string_equal(call.events, " sandbox asked answered held denied done");
    assert_int_equal(fake.answers[0].verdict, LAUNCH_NO);
    assert_int_equal(session.asked, 1);
    call_done(&call);
}

static void an_abort_ends_it(void **state)
{
    const struct launch_fact none = {.path = NULL};
    struct call call;

    session.answer = APPROVAL_ABORT;
    run_held(&call, APPROVAL_ON_REQUEST, &none);
    assert_int_equal(execution_result(call.execution)->attempts[0].result.end, JOB_RUN_CANCELLED);
    assert_string_equal(decision_of(&call), "abort");
    call_done(&call);
}

/* Nothing is launched that would be held: the guard is not asked to, which the double passes on. */
static void where_nothing_is_asked_nothing_is_held(void **state)
{
    struct execution_options options = {
        .workspace = session.workspace, .gate = EXECUTION_ASKS, .approvals = session.approvals};

    assert_false(execution_holds(&options)); /* the profile does not want it */
    session.workspace->profile.watch = PROFILE_WATCH_ASK;
    assert_true(execution_holds(&options));
    options.approvals = NULL;
    assert_false(execution_holds(&options));
    options.approvals = session.approvals;
    options.gate = EXECUTION_FORBIDS_ONLY;
    assert_false(execution_holds(&options));
    options.gate = EXECUTION_ASKS;
    options.policy.mode = APPROVAL_NEVER;
    assert_false(execution_holds(&options));
}

#define SESSION(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SESSION(a_yes_runs_it),
        SESSION(a_no_does_not),
        SESSION(a_yes_for_the_session_is_not_asked_again),
        SESSION(a_yes_for_the_session_counts_for_each_file_of_a_patch),
        SESSION(a_patch_that_is_none_is_asked_about_each_time),
        SESSION(a_grant_to_a_patch_counts_for_each_file),
        SESSION(patches_of_the_same_file_are_asked_about_each),
        SESSION(many_at_once_share_one_question),
        SESSION(forbidden_is_not_asked),
        SESSION(a_denial_is_retried_with_a_grant),
        SESSION(a_grant_for_the_session_is_not_asked_again),
        SESSION(the_first_yes_covers_a_retry_only_on_request),
        SESSION(words_alone_offer_nothing),
        SESSION(what_others_believe_is_not_offered),
        SESSION(a_retry_that_cannot_be_made_leaves_the_first_attempt),
        SESSION(signals_and_time_are_not_retried),
        SESSION(without_a_policy_nothing_but_forbid_counts),
        SESSION(nobody_to_ask_is_a_no),
        SESSION(what_a_call_asks_for_is_in_the_question),
        SESSION(without_confinement_a_yes_covers_everything),
        SESSION(cancelled_while_asked_is_rejected),
        SESSION(cancelled_before_it_begins_it_is_not_started),
        SESSION(a_broken_rules_file_is_told),
        SESSION(freed_at_any_time),
        SESSION(what_is_refused_is_asked_about_while_it_runs),
        SESSION(after_a_no_there_is_no_retry),
        SESSION(an_abort_ends_it),
        SESSION(where_nothing_is_asked_nothing_is_held),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
