/* `cordon script`: plays a conversation of exec_command, write_stdin and wait_for against real
 * sessions, and prints each answer when it has come, one line of JSON each. It is what a model's
 * harness does, without the model, and the harness of the tests of sessions.
 *
 * An answer has the fields of the call's result, and under "text" what a model would see. Measured
 * times are made 0 on request, so that answers can be compared. Ids count from the smallest, so that
 * a script can name the sessions that it starts. Beginning and end of each session go into the audit
 * log; a session that ends without an answer that tells of it (another one pushed it out, or the
 * script is over) was ended by us. */
#include "cli/script.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/str.h"
#include "base/strv.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/run.h"
#include "cli/settings.h"
#include "executor/execution.h"
#include "executor/execution_audit.h"
#include "executor/execution_report.h"
#include "job/job_table.h"
#include "job/model_calls.h"
#include "loop/loop.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- the audit log --- */

static const uint64_t begin_wait_ns = UINT64_C(100000000); /* 0.1 s, when others hold the log */
static const uint64_t wait_ns = UINT64_C(1000000000);      /* 1 s */

static void write_down(struct script_audit *audit, uint64_t wait)
{
    struct err err;

    if (!audit_flush(audit->audit, wait, &err) || (err.code == ERR_LIMIT && wait < wait_ns))
        return; /* done, or there will be another time */
    if (!audit->has_complained)
        console_say("this script is not in the audit log: %s", err.msg);
    audit->has_complained = true;
}

void script_audit_init(struct script_audit *audit, const struct settings *settings)
{
    *audit = (struct script_audit){.audit = NULL};
    if (run_audit_has_place(&settings->file))
        audit->audit = audit_new(settings->file.dir);
}

void script_audit_begin(struct script_audit *audit, const struct settings *settings,
                        const struct model_exec *exec)
{
    AUTO(strv_done) struct strv argv = model_exec_argv(exec);
    const struct audit_begin begin = {
        .argv = strv_view(&argv),
        .env = exec->env,
        .cwd = exec->workdir,
        .profile = settings->workspace->profile_name,
        .network = network_access_name(settings->workspace->map.network),
        .sandbox = execution_mode_name(settings->workspace->mode),
        .face = "script",
    };
    struct script_session *session;

    if (!audit->audit)
        return;
    audit->sessions = alloc_grow(audit->sessions, audit->len, &audit->cap, sizeof *audit->sessions);
    session = &audit->sessions[audit->len++];
    session->id = 0;
    audit_session_id(session->audit_id);
    audit_add(audit->audit, AUDIT_BEGIN, session->audit_id, audit_begin_body(&begin));
    write_down(audit, begin_wait_ns); /* who kills us cannot hide that it began */
}

void script_audit_started(struct script_audit *audit, int id, const struct err *failure)
{
    struct audit_end end = {.end = "failed-to-start", .exit_code = -1, .reason = failure->msg};

    if (!audit->audit)
        return;
    if (id)
        audit->sessions[audit->len - 1].id = id;
    else
        audit_add(audit->audit, AUDIT_END, audit->sessions[--audit->len].audit_id,
                  audit_end_body(&end));
}

static void write_denials(struct script_audit *audit, const struct script_session *session,
                          const struct denials *denials)
{
    for (size_t i = 0; denials && i < denials->len; i++) {
        const struct execution_event event = {.kind = EXECUTION_DENIED,
                                              .denial = &denials->items[i]};
        struct audit_note note;

        if (execution_audit_event(&event, NULL, NULL, &note))
            audit_add(audit->audit, note.event, session->audit_id, note.body);
    }
}

static void write_end(struct script_audit *audit, const struct script_session *session,
                      const struct process_end *end)
{
    struct audit_end body = {.end = "cancelled", .exit_code = -1};

    if (end) {
        body.wall_ns = end->ended_ns - end->started_ns;
        body.end = end->how == PROCESS_FAILED_TO_START ? "failed-to-start"
                   : end->how == PROCESS_SIGNALED      ? "signaled"
                                                       : "exited";
        body.exit_code = end->how == PROCESS_EXITED ? end->code : -1;
        body.signal = end->how == PROCESS_SIGNALED ? end->signal : 0;
        body.reason = end->how == PROCESS_FAILED_TO_START ? end->failure.msg : NULL;
    }
    audit_add(audit->audit, AUDIT_END, session->audit_id, audit_end_body(&body));
}

void script_audit_answer(struct script_audit *audit, const struct model_call_answer *response)
{
    for (size_t i = 0; response->end && i < audit->len; i++) {
        if (audit->sessions[i].id != response->session_id)
            continue;
        write_denials(audit, &audit->sessions[i], response->denials);
        write_end(audit, &audit->sessions[i], response->end);
        audit->sessions[i] = audit->sessions[--audit->len];
        write_down(audit, 0);
        return;
    }
}

void script_audit_done(struct script_audit *audit)
{
    for (size_t i = 0; i < audit->len; i++)
        write_end(audit, &audit->sessions[i], NULL);
    if (audit->audit)
        write_down(audit, wait_ns);
    audit_free(audit->audit);
    free(audit->sessions);
    *audit = (struct script_audit){.audit = NULL};
}

/* --- set-up --- */

struct script_options {
    struct policy_options policy;
    bool has_fixed_times;
    uint64_t max_sessions;
};

static void script_options_done(struct script_options *options)
{
    policy_options_done(&options->policy);
}

static void settings_auto(struct settings *settings)
{
    settings_done(settings);
}

static void script_auto(struct script *script)
{
    model_calls_free(script->model_calls);
    script_audit_done(&script->audit);
    loop_free(script->loop);
}

static int script_init(struct script *script, const struct script_options *options, struct err *err)
{
    struct model_calls_options calls = {
        .capacity = options->max_sessions,
        .ids = JOB_TABLE_IDS_IN_ORDER,
    };

    script->has_fixed_times = options->has_fixed_times;
    if (workspace_open(script->settings->workspace, err))
        return -1;
    script->sandbox = script->settings->workspace->sandbox;
    script->access = script->settings->workspace->access;
    calls.loop = script->loop = loop_new(err);
    if (!script->loop)
        return -1;
    script->model_calls = model_calls_new(&calls, err);
    return script->model_calls ? 0 : -1;
}

/* --- playing --- */

static int print_answer(json_t *answer)
{
    AUTO_FREE char *text = json_dumps(answer, JSON_COMPACT);

    if (puts(text) >= 0 && fflush(stdout) == 0)
        return EXIT_OK;
    console_say("writing to stdout: %s", strerror(errno));
    return EXIT_FAILED;
}

static int play_line(struct script *script, const char *line, size_t len, const char *name,
                     unsigned number)
{
    struct err err;
    AUTO_JSON json_t *answer = NULL;

    if (line[strspn(line, " \t\r\n")] == '\0' || *line == '#')
        return EXIT_OK;
    if (line[len - 1] == '\n') /* so that what is missing is missing on this line */
        len--;
    answer = script_play(script, line, len, &err);
    if (answer)
        return print_answer(answer);
    err_wrap(&err, "%s:%u", name, number);
    return console_fail(&err);
}

static int play_file(struct script *script, FILE *file, const char *name)
{
    AUTO_FREE char *line = NULL;
    int status = EXIT_OK;
    unsigned number = 0;
    size_t cap = 0;

    for (ssize_t len; status == EXIT_OK && (len = getline(&line, &cap, file)) >= 0;)
        status = play_line(script, line, (size_t)len, name, ++number);
    if (status != EXIT_OK || !ferror(file))
        return status;
    console_say("%s: %s", name, strerror(errno));
    return EXIT_FAILED;
}

static void file_auto(FILE **slot)
{
    if (*slot && *slot != stdin)
        (void)fclose(*slot);
}

static int play(const struct script_options *options, const char *name)
{
    /* allow blocking fopen: the person named it */
    AUTO(file_auto) FILE *file = str_eq(name, "-") ? stdin : fopen(name, "re");
    AUTO(settings_auto) struct settings settings = {0};
    AUTO(strv_done) struct strv env = {0};
    AUTO(script_auto) struct script script = {.settings = &settings};
    struct err err;

    if (!file) {
        console_say("%s: %s", name, strerror(errno));
        return EXIT_FAILED;
    }
    if (settings_init(&settings, &options->policy, &err) || script_init(&script, options, &err))
        return console_fail(&err);
    for (size_t i = 0; i < settings.warnings.len; i++)
        console_say("%s", settings.warnings.items[i]);
    workspace_job_env(settings.workspace, NULL, &env);
    script.env = strv_view(&env);
    script_audit_init(&script.audit, &settings);
    return play_file(&script, file, name);
}

/* --- options --- */

static const struct option script_options[] = {
    {.name = "fixed-times",
     INTO_TRUE(struct script_options, has_fixed_times),
     .brief = "Prints 0 for every measured time",
     .help = "Prints 0 for every measured time, so that two answers can be compared."},
    {.name = "max-sessions",
     .value = "N",
     INTO_COUNT(struct script_options, max_sessions),
     .min = 1,
     .max = JOB_TABLE_CAPACITY_MAX,
     .brief = "More, and the least recently used one is killed",
     .help = "How many sessions are kept before the least recently used one is killed for a new "
             "one. Default: 64."},
    {.name = NULL},
};

static const struct option_group groups[] = {
    {"Sessions", script_options},
    {"Permissions", policy_permission_options, offsetof(struct script_options, policy)},
    {"Environment", policy_environment_options, offsetof(struct script_options, policy)},
    {NULL, NULL},
};

static int script_main(char **argv)
{
    AUTO(script_options_done) struct script_options options = {.has_fixed_times = false};
    char **rest;
    int status;

    if (!command_parse(&command_script, argv, &options, &rest, &status))
        return status;
    if (*rest && !rest[1])
        return play(&options, *rest);
    return console_failf("cordon script takes one file (or - for stdin), this many were given: %s",
                         *rest ? "more" : "none");
}

const struct command command_script = {
    .name = "script",
    .summary = "play a conversation of exec_command and write_stdin calls",
    .usage = "[OPTION]... FILE",
    .about = "Each line of FILE (- is stdin) is a JSON object with one key, the name of a call: "
             "exec_command, write_stdin, wait_for, terminate, resize or list. The calls are made "
             "one after the other against real sessions in a sandbox, and each answer is printed "
             "as one line of JSON, with what a model would see under \"text\". Sessions are "
             "numbered from 1000. Blank lines and lines that begin with # are skipped. What still "
             "runs at the end is killed.\n",
    .examples = "  cordon script conversation.jsonl\n"
                "  echo '{\"exec_command\": {\"cmd\": \"echo hi\"}}' | cordon script -\n",
    .groups = groups,
    .run = script_main,
};
