/* `cordon rules`: what the rules say about a command, adding one, and running their examples. The
 * subcommands have a file each; here are their options and what they have in common. */
#include "cli/rules.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/console.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct subcommand {
    const char *name;
    unsigned options; /* of enum rules_option: those that mean something */
    int (*run)(const struct rules_options *options, char **words);
} subcommands[] = {
    {"check", RULES_OPTION_RULES | RULES_OPTION_JSON | RULES_OPTION_HOST | RULES_OPTION_PROTOCOL,
     rules_check},
    {"add",
     RULES_OPTION_RULES | RULES_OPTION_JSON | RULES_OPTION_HOST | RULES_OPTION_PROTOCOL |
         RULES_OPTION_DECISION | RULES_OPTION_SANDBOX | RULES_OPTION_JUSTIFICATION,
     rules_add},
    {"test", RULES_OPTION_RULES | RULES_OPTION_JSON, rules_test},
};

enum { SUBCOMMANDS = sizeof subcommands / sizeof *subcommands };

/* --- for the subcommands --- */

int rules_source_init(struct rules_source *ret, const struct rules_options *options,
                      struct err *err)
{
    char *folder = getcwd(NULL, 0);
    struct rules_source source = {.options = options};
    struct rule_owner owner;

    if (!folder)
        return err_sys(err, "the current folder");
    if (config_file_load(NULL, folder, &source.config, err)) {
        free(folder);
        return -1;
    }
    owner = config_file_owner(&source.config);
    rule_layers_find(&owner, folder, &source.places, &source.project);
    free(folder);
    *ret = source;
    return 0;
}

void rules_source_done(struct rules_source *source)
{
    config_file_done(&source->config);
    free(source->project);
}

enum rule_protocol rules_options_protocol(const struct rules_options *options)
{
    enum rule_protocol protocol = RULE_PROTOCOL_HTTPS;

    if (options->protocol)
        (void)rule_protocol_parse(options->protocol, &protocol); /* a word of the option's table */
    return protocol;
}

int rules_print(const struct rules_options *options, struct json_t *json, const struct buf *text)
{
    int status =
        options->given & RULES_OPTION_JSON ? console_print_json(json) : console_print(text);

    json_decref(json);
    return status;
}

/* --- options --- */

static void rules_options_done(struct rules_options *options)
{
    strv_done(&options->files);
}

static int set_rules(void *data, const char *value, struct err *err)
{
    struct rules_options *options = data;

    options->given |= RULES_OPTION_RULES;
    strv_push(&options->files, value);
    return 0;
}

static int set_json(void *data, const char *value, struct err *err)
{
    ((struct rules_options *)data)->given |= RULES_OPTION_JSON;
    return 0;
}

static int set_host(void *data, const char *value, struct err *err)
{
    struct rules_options *options = data;

    options->given |= RULES_OPTION_HOST;
    options->host = value;
    return 0;
}

static int set_protocol(void *data, const char *value, struct err *err)
{
    struct rules_options *options = data;

    options->given |= RULES_OPTION_PROTOCOL;
    options->protocol = value;
    return 0;
}

static int set_decision(void *data, const char *value, struct err *err)
{
    struct rules_options *options = data;

    options->given |= RULES_OPTION_DECISION;
    options->decision = value;
    return 0;
}

static int set_sandbox(void *data, const char *value, struct err *err)
{
    struct rules_options *options = data;

    options->given |= RULES_OPTION_SANDBOX;
    options->sandbox = value;
    return 0;
}

static int set_justification(void *data, const char *value, struct err *err)
{
    struct rules_options *options = data;

    if (!value[strspn(value, " \t\r\n")])
        return err_set(err, ERR_INVALID, "it is blank; give a reason or leave it out");
    options->given |= RULES_OPTION_JUSTIFICATION;
    options->justification = value;
    return 0;
}

static const char *const protocol_words[] = {"http", "https", "socks5_tcp", "socks5_udp", NULL};
static const char *const decision_words[] = {"allow", "prompt", "forbidden", NULL};
static const char *const grant_words[] = {"keep", "bypass", NULL};

static const struct option common_options[] = {
    {.name = "rules",
     .value = "FILE",
     .set = set_rules,
     .help = "Takes this file instead of the layers; may be given several times. For \"add\": the "
             "file that the rule is added to, instead of rules/default.rules in the config "
             "folder."},
    {.name = "host",
     .value = "NAME",
     .set = set_host,
     .help = "Asks about, or adds a rule for, a host instead of a command."},
    {.name = "protocol",
     .value = "WORD",
     .words = protocol_words,
     .set = set_protocol,
     .help = "How the host is reached: http, https (the default), socks5_tcp or socks5_udp."},
    {.name = "json", .letter = 'j', .set = set_json, .help = "Prints one JSON value."},
    {.name = NULL},
};

static const struct option add_options[] = {
    {.name = "decision",
     .value = "WORD",
     .words = decision_words,
     .set = set_decision,
     .help = "What the rule says: allow (the default), prompt or forbidden."},
    {.name = "sandbox",
     .value = "WORD",
     .words = grant_words,
     .set = set_sandbox,
     .help = "What \"allow\" grants: keep (the default), no prompt; or bypass, no sandbox either, "
             "which is what Codex means by \"allow\"."},
    {.name = "justification",
     .value = "TEXT",
     .set = set_justification,
     .help = "Why; shown when the rule asks or forbids."},
    {.name = NULL},
};

static const struct option_group rules_groups[] = {
    {"Options", common_options}, {"Adding", add_options}, {NULL, NULL}};

/* --- the command --- */

static const struct subcommand *find_subcommand(const char *name)
{
    const char *names[SUBCOMMANDS + 1] = {NULL};
    const char *nearest;

    for (size_t i = 0; i < SUBCOMMANDS; i++) {
        if (str_eq(subcommands[i].name, name))
            return &subcommands[i];
        names[i] = subcommands[i].name;
    }
    nearest = str_nearest(name, names);
    console_say("there is no \"cordon rules %s\"%s%s%s; there are check, add and test", name,
                nearest ? " (did you mean \"" : "", nearest ? nearest : "", nearest ? "\"?)" : "");
    return NULL;
}

static bool is_meaningful(const struct subcommand *subcommand, const struct rules_options *options)
{
    static const char *const names[] = {"rules",    "json",    "host",         "protocol",
                                        "decision", "sandbox", "justification"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (options->given & ~subcommand->options & 1U << i) {
            console_say("--%s means nothing to \"cordon rules %s\"", names[i], subcommand->name);
            return false;
        }
    if (options->protocol && !options->host) {
        console_say("--protocol is about a host; add --host NAME");
        return false;
    }
    return true;
}

static int rules_run(char **argv)
{
    AUTO(rules_options_done) struct rules_options options = {.given = 0};
    const struct subcommand *subcommand;
    char **rest;
    int status;

    if (!argv[1] || *argv[1] == '-') {
        if (command_parse(&command_rules, argv, &options, &rest, &status)) {
            console_say("what about the rules? cordon rules check -- COMMAND, add, or test "
                        "(\"cordon help rules\" explains)");
            status = EXIT_FAILED;
        }
        return status;
    }
    subcommand = find_subcommand(argv[1]);
    if (!subcommand)
        return EXIT_FAILED;
    if (!command_parse(&command_rules, argv + 1, &options, &rest, &status))
        return status;
    return is_meaningful(subcommand, &options) ? subcommand->run(&options, rest) : EXIT_FAILED;
}

const struct command command_rules = {
    .name = "rules",
    .summary = "tell what the rules say about a command, add one, run their examples",
    .usage = "check|add|test [OPTION]... [--] [COMMAND...]",
    .about =
        "Rules allow, forbid, or ask about commands that begin with certain words. They stand in "
        "files named *.rules: in the folder rules of the config folder (yours), in .cordon/rules "
        "and .codex/rules of a project that you trust, and in /etc/cordon/rules (the "
        "administrator's). The strictest rule that matches decides, wherever it stands. A file "
        "that cannot be read or parsed allows nothing: what no other file decides is asked about, "
        "because that file may forbid it.\n"
        "\n"
        "\"check\" tells what they say about a command, with file and line, and whether it would "
        "keep its sandbox. Of a shell's script every command is judged. \"add\" appends a rule for "
        "all commands that begin with the given words. \"test\" runs the examples (match, "
        "not_match) of all rules.\n"
        "\n"
        "The exit status is 0 when the question was answered, whatever the answer; for \"test\" 1 "
        "when an example does not hold or a file is broken; 125 when it could not be done.\n",
    .examples =
        "  cordon rules check -- git push origin\n"
        "  cordon rules check --json -- bash -lc 'make && make install'\n"
        "  cordon rules check --host example.org\n"
        "  cordon rules add -- npm test\n"
        "  cordon rules add --decision forbidden --justification 'use the mirror' -- git push\n"
        "  cordon rules test --rules ./project.rules\n",
    .page = "cordon-rules",
    .groups = rules_groups,
    .run = rules_run,
};
