/* host_executable(name, paths) and network_rule(host, protocol, decision, justification): their
 * arguments. Source of names and limits: spec/exec-core.md 7.2. */
#include "rules/file/rule_draft.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/path.h"
#include "base/str.h"
#include "rules/file/rule_token.h"

#include <string.h>

/* --- host_executable --- */

static int set_name(struct rule_draft *draft, const struct rule_value *value, struct err *err)
{
    if (rule_draft_want_string(draft, value, "name", err))
        return -1;
    if (!*value->text || strchr(value->text, '/'))
        return rule_draft_fail(draft, value, err,
                               "name is the bare name of a program, without a folder");
    draft->program.name = alloc_str(value->text);
    return 0;
}

/* `name` was set before: required arguments are set in order. */
static int add_path(struct rule_draft *draft, const struct rule_value *value, struct err *err)
{
    const char *home = draft->file->origin.home;
    AUTO_FREE char *path = NULL;

    if (rule_draft_want_string(draft, value, "a path", err))
        return -1;
    if (*value->text == '/')
        path = path_clean("/", value->text);
    else if (!str_starts(value->text, "~/"))
        return rule_draft_fail(draft, value, err, "a path begins with / or ~/");
    else if (home)
        path = path_clean(home, value->text + 2);
    else
        return rule_draft_fail(draft, value, err,
                               "the home folder is not known; write the path from /");
    if (!str_eq(path_name(path), draft->program.name))
        return rule_fail(draft->file->origin.file, value->place, err,
                         "the path ends in \"%.60s\"; it has to end in the name, \"%.60s\"",
                         path_name(path), draft->program.name);
    if (!strv_has(&draft->program.paths, path))
        strv_push_take(&draft->program.paths, TAKE_PTR(path));
    return 0;
}

static int set_paths(struct rule_draft *draft, const struct rule_value *value, struct err *err)
{
    if (value->kind != RULE_VALUE_LIST)
        return rule_draft_fail(draft, value, err, "paths is a list: [...]");
    for (size_t i = 0; i < value->len; i++)
        if (add_path(draft, &value->items[i], err))
            return -1;
    return 0;
}

/* A later definition of a name replaces the one before it. */
static int finish_program(struct rule_draft *draft, struct err *err)
{
    struct rules_file *file = draft->file;
    struct host_program *slot = NULL;

    for (size_t i = 0; i < file->programs_len; i++)
        if (str_eq(file->programs[i].name, draft->program.name))
            slot = &file->programs[i];
    if (slot) {
        host_program_done(slot);
    } else {
        file->programs = alloc_grow(file->programs, file->programs_len, &file->programs_cap,
                                    sizeof *file->programs);
        slot = &file->programs[file->programs_len++];
    }
    *slot = draft->program;
    draft->program = (struct host_program){.name = NULL};
    return 0;
}

/* --- network_rule --- */

static int set_host(struct rule_draft *draft, const struct rule_value *value, struct err *err)
{
    struct err inner;

    if (rule_draft_want_string(draft, value, "host", err))
        return -1;
    draft->host.host = host_rule_host(value->text, &inner);
    return draft->host.host ? 0 : rule_draft_fail(draft, value, err, inner.msg);
}

static int set_protocol(struct rule_draft *draft, const struct rule_value *value, struct err *err)
{
    static const char *const words[] = {
        "http", "https", "https_connect", "http-connect", "socks5_tcp", "socks5_udp", NULL};
    size_t word;

    if (rule_draft_word(draft, value, words, &word, err))
        return -1;
    (void)rule_protocol_parse(words[word], &draft->host.protocol);
    return 0;
}

static int set_host_decision(struct rule_draft *draft, const struct rule_value *value,
                             struct err *err)
{
    static const char *const words[] = {"allow", "prompt", "forbidden", "deny", NULL};
    static const enum rule_verdict verdicts[] = {RULE_KEEP, RULE_PROMPT, RULE_FORBIDDEN,
                                                 RULE_FORBIDDEN};
    size_t word;

    if (rule_draft_word(draft, value, words, &word, err))
        return -1;
    draft->host.verdict = verdicts[word];
    return 0;
}

static int finish_host(struct rule_draft *draft, struct err *err)
{
    struct rules_file *file = draft->file;

    draft->host.justification = TAKE_PTR(draft->justification);
    file->hosts = alloc_grow(file->hosts, file->hosts_len, &file->hosts_cap, sizeof *file->hosts);
    file->hosts[file->hosts_len++] = draft->host;
    draft->host = (struct host_rule){.host = NULL};
    return 0;
}

static const struct rule_parameter program_parameters[] = {
    {"name", true, set_name},
    {"paths", true, set_paths},
    {NULL, false, NULL},
};

static const struct rule_parameter host_parameters[] = {
    {"host", true, set_host},
    {"protocol", true, set_protocol},
    {"decision", true, set_host_decision},
    {"justification", false, rule_draft_justification},
    {NULL, false, NULL},
};

const struct rule_function rule_function_program = {
    .name = "host_executable", .parameters = program_parameters, .finish = finish_program};

const struct rule_function rule_function_host = {
    .name = "network_rule", .parameters = host_parameters, .finish = finish_host};
