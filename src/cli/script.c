/* `cordon script`: plays a conversation of exec_command, write_stdin and wait_for against real
 * sessions, and prints each answer when it has come, one line of JSON each. It is what a model's
 * harness does, without the model, and the harness of the tests of sessions.
 *
 * Ids count from the smallest, so that a script can name the sessions that it starts. */
#include "cli/script.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/policy_options.h"
#include "cli/settings.h"

#include "base/auto.h"
#include "base/json.h"
#include "base/str.h"
#include "base/strv.h"
#include "base/units.h"
#include "job/job_environment.h"
#include "job/job_table.h"
#include "loop/loop.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct script_options {
    struct policy_options policy; /* first: its tables take it from there */
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
    unified_free(script->unified);
    script_audit_done(&script->audit);
    sandbox_free(script->sandbox);
    loop_free(script->loop);
}

/* --- set-up --- */

/* The ten variables of a session, but for those that the user set. */
static void make_env(const struct settings *settings, struct strv *ret)
{
    AUTO(strv_done) struct strv chosen = {0};
    const struct session_env_request request = {.base = strv_view(&settings->env)};
    struct session_env_request with = request;

    for (size_t i = 0; i < settings->env_report.len; i++)
        if (settings->env_report.notes[i].reason == ENVIRONMENT_SET)
            strv_push(&chosen, settings->env_report.notes[i].name);
    with.chosen = (const char *const *)strv_view(&chosen);
    session_env_build(&with, ret);
}

static int script_init(struct script *script, const struct script_options *options, struct err *err)
{
    struct unified_options unified = {
        .capacity = options->max_sessions,
        .ids = STORE_IDS_IN_ORDER,
    };

    script->has_fixed_times = options->has_fixed_times;
    script->sandbox = settings_sandbox(script->settings, err);
    if (!script->sandbox)
        return -1;
    if (script->settings->mode != SANDBOX_DISABLED)
        script->access = sandbox_access(script->sandbox);
    unified.loop = script->loop = loop_new(err);
    if (!script->loop)
        return -1;
    script->unified = unified_new(&unified, err);
    return script->unified ? 0 : -1;
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

static bool is_blank(const char *line)
{
    return line[strspn(line, " \t\r\n")] == '\0' || *line == '#';
}

static int play_line(struct script *script, const char *line, size_t len, const char *name,
                     unsigned number)
{
    struct err err;
    AUTO_JSON json_t *answer = NULL;

    if (is_blank(line))
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
    make_env(&settings, &env);
    script.env = strv_view(&env);
    script_audit_init(&script.audit, &settings);
    return play_file(&script, file, name);
}

/* --- options --- */

static int set_fixed_times(void *data, const char *value, struct err *err)
{
    ((struct script_options *)data)->has_fixed_times = true;
    return 0;
}

static int set_max_sessions(void *data, const char *value, struct err *err)
{
    struct script_options *options = data;

    if (units_parse_count(value, &options->max_sessions, err))
        return -1;
    if (!options->max_sessions || options->max_sessions > STORE_CAPACITY_MAX)
        return err_set(err, ERR_INVALID, "1 to %d are possible", STORE_CAPACITY_MAX);
    return 0;
}

static const struct option script_options[] = {
    {.name = "fixed-times",
     .set = set_fixed_times,
     .help = "Prints 0 for every measured time, so that two answers can be compared."},
    {.name = "max-sessions",
     .value = "N",
     .set = set_max_sessions,
     .help = "How many sessions are kept before the least recently used one is killed for a new "
             "one. Default: 64."},
    {.name = NULL},
};

static const struct option_group groups[] = {
    {"Sessions", script_options},
    {"Permissions", policy_permission_options},
    {"Environment", policy_environment_options},
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
    console_say("cordon script takes one file (or - for stdin), this many were given: %s",
                *rest ? "more" : "none");
    return EXIT_FAILED;
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
