/* From calls to rules: which function a call means, and which argument goes where. What each
 * argument may be stands in tables with small setters, in rule_prefix_call.c and rule_host_calls.c.
 *
 * An argument or word that is not known is an error: a rule that is only half understood could be
 * milder than what was meant. Examples are checked afterwards, when all programs of the file are
 * known; they are matched as Codex does it, where an allow rule is wider than ours (rules.h), so
 * that files written for it hold. */
#include "rules/file/rules_file.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/path.h"
#include "base/str.h"
#include "rules/file/rule_draft.h"
#include "rules/file/rule_parse.h"
#include "rules/file/rule_token.h"
#include "rules/shell/shell_words.h"

#include <stdlib.h>
#include <string.h>

static const struct rule_function *const functions[] = {
    &rule_function_prefix, &rule_function_program, &rule_function_host};

enum { FUNCTIONS = sizeof functions / sizeof *functions };

void rules_file_done(struct rules_file *file)
{
    for (size_t i = 0; i < file->prefixes_len; i++)
        prefix_rule_done(&file->prefixes[i]);
    for (size_t i = 0; i < file->hosts_len; i++)
        host_rule_done(&file->hosts[i]);
    for (size_t i = 0; i < file->programs_len; i++)
        host_program_done(&file->programs[i]);
    for (size_t i = 0; i < file->examples_len; i++)
        strv_done(&file->examples[i].words);
    free(file->prefixes);
    free(file->hosts);
    free(file->programs);
    free(file->examples);
    *file = (struct rules_file){.prefixes = NULL};
}

static const struct rule_function *find_function(const struct rules_file *file,
                                                 const struct rule_call *call, struct err *err)
{
    const char *names[FUNCTIONS + 1] = {NULL};
    const char *nearest;

    for (size_t i = 0; i < FUNCTIONS; i++) {
        if (str_eq(functions[i]->name, call->name))
            return functions[i];
        names[i] = functions[i]->name;
    }
    nearest = str_nearest(call->name, names);
    rule_fail(
        file->origin.file, call->place, err,
        "there is no function \"%.40s\"%s%s%s; rules are made by prefix_rule, host_executable "
        "and network_rule",
        call->name, nearest ? " (did you mean \"" : "", nearest ? nearest : "",
        nearest ? "\"?)" : "");
    return NULL;
}

/* The argument is one that nothing takes. */
static int fail_argument(const struct rules_file *file, const struct rule_function *function,
                         const struct rule_argument *argument, struct err *err)
{
    const char *names[RULE_PARAMETERS_MAX + 1] = {NULL};
    const char *nearest;

    if (!argument->name)
        return rule_fail(file->origin.file, argument->place, err,
                         "%s takes this argument only by name; write NAME = value", function->name);
    for (size_t i = 0; function->parameters[i].name; i++)
        names[i] = function->parameters[i].name;
    nearest = str_nearest(argument->name, names);
    return rule_fail(file->origin.file, argument->place, err,
                     "%s takes no argument \"%.40s\"%s%s%s", function->name, argument->name,
                     nearest ? "; did you mean \"" : "", nearest ? nearest : "",
                     nearest ? "\"?" : "");
}

/* Which parameter the argument at `position` is for; that of the end of the table for none. */
static size_t find_parameter(const struct rule_function *function,
                             const struct rule_argument *argument, size_t position)
{
    size_t i = 0;

    if (!argument->name)
        while (function->parameters[i].name &&
               !(function->parameters[i].is_required && i == position))
            i++;
    else
        while (function->parameters[i].name &&
               !str_eq(function->parameters[i].name, argument->name))
            i++;
    return i;
}

/* `ret` gets the argument of each parameter, NULL where there is none. */
static int sort_arguments(const struct rules_file *file, const struct rule_function *function,
                          const struct rule_call *call, const struct rule_argument **ret,
                          struct err *err)
{
    for (size_t i = 0; i < call->len; i++) {
        const struct rule_argument *argument = &call->arguments[i];
        size_t parameter = find_parameter(function, argument, i);

        if (!function->parameters[parameter].name)
            return fail_argument(file, function, argument, err);
        if (ret[parameter])
            return rule_fail(file->origin.file, argument->place, err,
                             "%s is given twice; give it once",
                             function->parameters[parameter].name);
        ret[parameter] = argument;
    }
    return 0;
}

static int set_arguments(struct rule_draft *draft, const struct rule_function *function,
                         const struct rule_call *call, struct err *err)
{
    const struct rule_argument *arguments[RULE_PARAMETERS_MAX + 1] = {NULL};

    if (sort_arguments(draft->file, function, call, arguments, err))
        return -1;
    for (size_t i = 0; function->parameters[i].name; i++) {
        const struct rule_parameter *parameter = &function->parameters[i];

        if (!arguments[i] && parameter->is_required)
            return rule_fail(draft->file->origin.file, call->place, err,
                             "%s needs the argument \"%s\"", function->name, parameter->name);
        if (arguments[i] && parameter->set(draft, &arguments[i]->value, err))
            return -1;
    }
    return 0;
}

static int on_call(void *data, const struct rule_call *call, struct err *err)
{
    struct rules_file *file = data;
    const struct rule_function *function = find_function(file, call, err);
    AUTO(rule_draft_done) struct rule_draft draft = {.file = file};

    if (!function)
        return -1;
    draft.prefix.verdict = RULE_BYPASS;
    draft.prefix.layer = draft.host.layer = draft.program.layer = file->origin.layer;
    draft.prefix.file = draft.host.file = file->origin.file;
    draft.prefix.place = draft.host.place = call->place;
    if (set_arguments(&draft, function, call, err))
        return -1;
    return function->finish(&draft, err);
}

int rules_file_parse(const struct rules_origin *origin, const char *text, size_t len,
                     struct rules_file *ret, struct err *err)
{
    const struct rule_parse parse = {
        .file = origin->file, .text = text, .len = len, .on_call = on_call, .data = ret};

    *ret = (struct rules_file){.origin = *origin};
    return rule_parse(&parse, err);
}

/* --- examples --- */

static bool is_fitting(const struct rules_file *file, const struct rule_example *example)
{
    const struct prefix_rule *rule = &file->prefixes[example->rule];
    const struct shell_command command = {.words = example->words, .exact = example->words.len};
    const char *program = example->words.items[0];

    if (prefix_rule_fit(rule, program, &command) == PREFIX_FITS)
        return true;
    return *program == '/' &&
           host_program_find(file->programs, file->programs_len, program) != HOST_PROGRAM_OTHER &&
           prefix_rule_fit(rule, path_name(program), &command) == PREFIX_FITS;
}

int rules_file_check_example(const struct rules_file *file, const struct rule_example *example,
                             struct err *err)
{
    AUTO_FREE char *pattern = NULL;
    AUTO(buf_done) struct buf words = {0};

    if (is_fitting(file, example) == example->is_match)
        return 0;
    buf_init(&words, SIZE_MAX / 2);
    for (size_t i = 0; i < example->words.len; i++)
        buf_appendf(&words, "%s%s", i ? " " : "", example->words.items[i]);
    pattern = prefix_rule_text(&file->prefixes[example->rule]);
    return rule_fail(
        file->origin.file, example->place, err,
        "the example `%.60s` %s the rule `%.50s` of line %u; change one of them", words.data,
        example->is_match ? "should match but does not match" : "should not match but matches",
        pattern, file->prefixes[example->rule].place.line);
}

int rules_file_check(const struct rules_file *file, struct err *err)
{
    for (size_t i = 0; i < file->examples_len; i++)
        if (rules_file_check_example(file, &file->examples[i], err))
            return -1;
    return 0;
}
