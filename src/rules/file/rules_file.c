/* From calls to rules. Each function is a table of its arguments with their types; what they come
 * to is checked by one function for each, which adds the rule to the file.
 *
 *     prefix_rule(pattern, decision, sandbox, justification, match, not_match, reviewer)
 *     host_executable(name, paths)
 *     network_rule(host, protocol, decision, justification)
 *
 * Names, defaults and limits are those of Codex's execpolicy; `sandbox` is our own. An argument or
 * word that is not known is an error: a rule that is only half understood could be milder than what
 * was meant. Examples are checked afterwards, when all programs of the file are known; they are
 * matched as Codex does it, where an allow rule is wider than ours (rules.h), so that files written
 * for it hold. */
#include "rules/file/rules_file.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/path.h"
#include "base/str.h"
#include "rules/file/rule_parse.h"
#include "rules/file/rule_token.h"
#include "rules/shell/shell_words.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* --- the lists --- */

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

void rules_file_take_prefix(struct rules_file *file, struct prefix_rule *rule)
{
    file->prefixes =
        alloc_grow(file->prefixes, file->prefixes_len, &file->prefixes_cap, sizeof *file->prefixes);
    file->prefixes[file->prefixes_len++] = *rule;
    *rule = (struct prefix_rule){.len = 0};
}

void rules_file_take_host(struct rules_file *file, struct host_rule *rule)
{
    file->hosts = alloc_grow(file->hosts, file->hosts_len, &file->hosts_cap, sizeof *file->hosts);
    file->hosts[file->hosts_len++] = *rule;
    *rule = (struct host_rule){.host = NULL};
}

void rules_file_take_program(struct rules_file *file, struct host_program *program)
{
    struct host_program *slot = NULL;

    for (size_t i = 0; i < file->programs_len; i++)
        if (file->programs[i].layer == program->layer &&
            str_eq(file->programs[i].name, program->name))
            slot = &file->programs[i];
    if (slot) {
        host_program_done(slot);
    } else {
        file->programs = alloc_grow(file->programs, file->programs_len, &file->programs_cap,
                                    sizeof *file->programs);
        slot = &file->programs[file->programs_len++];
    }
    *slot = *program;
    *program = (struct host_program){.name = NULL};
}

/* --- arguments --- */

enum parameter_kind {
    TAKES_TEXT,  /* one string */
    TAKES_WORD,  /* one of some words */
    TAKES_LIST,  /* a list */
    TAKES_ITEMS, /* a list with at least one item */
};

struct parameter {
    const char *name;
    enum parameter_kind kind;
    bool is_required;              /* those come first, and may be given by position */
    const struct rule_word *words; /* of TAKES_WORD; ended by one without text */
};

struct argument {
    const struct rule_value *value; /* NULL: not given */
    int word;                       /* of TAKES_WORD: what the word stands for */
};

/* One call on its way to a rule. */
struct draft {
    struct rules_file *file;
    struct rule_place place;
    struct argument arguments[RULE_ARGUMENTS_MAX];
};

struct function {
    const char *name;
    const struct parameter *parameters; /* ended by one without a name */
    /* All arguments have their types: checks what they come to, and adds the rule to the file. */
    int (*add)(const struct draft *draft, struct err *err);
};

static int fail_at(const struct draft *draft, const struct rule_value *value, struct err *err,
                   const char *text)
{
    return rule_fail(draft->file->origin.file, value->place, err, "%s", text);
}

static int want_text(const struct draft *draft, const struct rule_value *value, const char *what,
                     struct err *err)
{
    if (value->kind == RULE_VALUE_STRING)
        return 0;
    return rule_fail(draft->file->origin.file, value->place, err, "%s is one string, not a list",
                     what);
}

static int want_list(const struct draft *draft, const struct rule_value *value, const char *what,
                     size_t least, struct err *err)
{
    if (value->kind != RULE_VALUE_LIST)
        return rule_fail(draft->file->origin.file, value->place, err, "%s is a list: [...]", what);
    if (value->len < least)
        return rule_fail(draft->file->origin.file, value->place, err,
                         "%s is an empty list; it needs an item", what);
    return 0;
}

static int want_word(const struct draft *draft, const struct rule_value *value,
                     const struct rule_word *words, int *ret, struct err *err)
{
    AUTO(buf_done) struct buf list;

    buf_init(&list, sizeof err->msg);
    for (size_t i = 0; words[i].text; i++) {
        if (value->kind == RULE_VALUE_STRING && str_eq(words[i].text, value->text)) {
            *ret = words[i].value;
            return 0;
        }
        buf_appendf(&list, "%s\"%s\"", i ? ", " : "", words[i].text);
    }
    if (value->kind == RULE_VALUE_LIST)
        return rule_fail(draft->file->origin.file, value->place, err,
                         "a list is not one of the words %s", list.data);
    return rule_fail(draft->file->origin.file, value->place, err,
                     "\"%.40s\" is not one of the words %s", value->text, list.data);
}

/* Appends the strings of a list. */
static int take_strings(const struct draft *draft, const struct rule_value *list, struct strv *ret,
                        const char *problem, struct err *err)
{
    for (size_t i = 0; i < list->len; i++) {
        if (list->items[i].kind != RULE_VALUE_STRING)
            return fail_at(draft, &list->items[i], err, problem);
        strv_push(ret, list->items[i].text);
    }
    return 0;
}

/* The reason of a rule, which may be missing: NULL. */
static int take_reason(const struct draft *draft, const struct argument *argument, char **ret,
                       struct err *err)
{
    const struct rule_value *value = argument->value;

    if (value && !value->text[strspn(value->text, " \t\r\n")])
        return fail_at(draft, value, err, "justification is blank; give a reason or leave it out");
    *ret = value ? alloc_str(value->text) : NULL;
    return 0;
}

/* --- prefix_rule --- */

static const struct rule_word decisions[] = {
    {"allow", RULE_BYPASS}, {"prompt", RULE_PROMPT}, {"forbidden", RULE_FORBIDDEN}, {NULL, 0}};

static const struct rule_word sandboxes[] = {
    {"bypass", RULE_BYPASS}, {"keep", RULE_KEEP}, {NULL, 0}};

static const struct rule_word reviewers[] = {
    {"user", RULE_REVIEWER_USER}, {"auto_review", RULE_REVIEWER_AUTOMATIC}, {NULL, 0}};

enum { PATTERN, PREFIX_DECISION, SANDBOX, PREFIX_REASON, MATCH, NOT_MATCH, REVIEWER };

static const struct parameter prefix_parameters[] = {
    [PATTERN] = {"pattern", TAKES_ITEMS, .is_required = true},
    [PREFIX_DECISION] = {"decision", TAKES_WORD, .words = decisions},
    [SANDBOX] = {"sandbox", TAKES_WORD, .words = sandboxes},
    [PREFIX_REASON] = {"justification", TAKES_TEXT},
    [MATCH] = {"match", TAKES_LIST},
    [NOT_MATCH] = {"not_match", TAKES_LIST},
    [REVIEWER] = {"reviewer", TAKES_WORD, .words = reviewers},
    {NULL},
};

/* Each position is a word or a list of them. */
static int take_pattern(const struct draft *draft, struct prefix_rule *rule, struct err *err)
{
    const struct rule_value *pattern = draft->arguments[PATTERN].value;

    rule->words = alloc_zero(pattern->len, sizeof *rule->words);
    for (size_t i = 0; i < pattern->len; i++) {
        const struct rule_value *position = &pattern->items[i];
        struct strv *words = &rule->words[rule->len++];

        if (position->kind == RULE_VALUE_STRING)
            strv_push(words, position->text);
        else if (want_list(draft, position, "a position with alternatives", 1, err) ||
                 take_strings(draft, position, words,
                              "alternatives are strings; a pattern has no lists inside of those",
                              err))
            return -1;
    }
    if (strv_has(&rule->words[0], ""))
        return fail_at(draft, &pattern->items[0], err,
                       "no program has an empty name; the pattern begins with the program");
    return 0;
}

static const char *split_words(const char *text, struct strv *ret);

/* An example is a list of words, or a text that is split like a shell's. */
static int add_examples(const struct draft *draft, const struct rule_value *list, bool is_match,
                        struct err *err)
{
    struct rules_file *file = draft->file;

    for (size_t i = 0; list && i < list->len; i++) {
        const struct rule_value *item = &list->items[i];
        struct rule_example *example;
        const char *problem;

        file->examples = alloc_grow(file->examples, file->examples_len, &file->examples_cap,
                                    sizeof *file->examples);
        example = &file->examples[file->examples_len++];
        *example = (struct rule_example){
            .rule = file->prefixes_len, .is_match = is_match, .place = item->place};
        problem = item->kind == RULE_VALUE_STRING ? split_words(item->text, &example->words) : NULL;
        if (problem)
            return rule_fail(file->origin.file, item->place, err,
                             "this example cannot be split into words: %s", problem);
        if (item->kind == RULE_VALUE_LIST &&
            (want_list(draft, item, "an example", 1, err) ||
             take_strings(draft, item, &example->words,
                          "an example is a list of strings; write one word in each", err)))
            return -1;
    }
    return 0;
}

static int add_prefix(const struct draft *draft, struct err *err)
{
    const struct argument *arguments = draft->arguments;
    AUTO(prefix_rule_done)
    struct prefix_rule rule = {
        .verdict = RULE_BYPASS,
        .reviewer = (enum rule_reviewer)arguments[REVIEWER].word,
        .layer = draft->file->origin.layer,
        .file = draft->file->origin.file,
        .place = draft->place,
    };

    if (arguments[PREFIX_DECISION].value)
        rule.verdict = (enum rule_verdict)arguments[PREFIX_DECISION].word;
    if (take_pattern(draft, &rule, err) ||
        take_reason(draft, &arguments[PREFIX_REASON], &rule.justification, err))
        return -1;
    if (arguments[SANDBOX].value && rule.verdict != RULE_BYPASS)
        return fail_at(draft, arguments[SANDBOX].value, err,
                       "sandbox says what \"allow\" grants; leave it out of other rules");
    if (arguments[SANDBOX].value)
        rule.verdict = (enum rule_verdict)arguments[SANDBOX].word;
    if (add_examples(draft, arguments[NOT_MATCH].value, false, err) ||
        add_examples(draft, arguments[MATCH].value, true, err))
        return -1;
    rules_file_take_prefix(draft->file, &rule);
    return 0;
}

/* --- host_executable --- */

enum { NAME, PATHS };

static const struct parameter program_parameters[] = {
    [NAME] = {"name", TAKES_TEXT, .is_required = true},
    [PATHS] = {"paths", TAKES_LIST, .is_required = true},
    {NULL},
};

static int add_path(const struct draft *draft, const struct rule_value *value,
                    struct host_program *program, struct err *err)
{
    const char *home = draft->file->origin.home;
    AUTO_FREE char *path = NULL;

    if (want_text(draft, value, "a path", err))
        return -1;
    if (*value->text == '/')
        path = path_clean("/", value->text);
    else if (!str_starts(value->text, "~/"))
        return fail_at(draft, value, err, "a path begins with / or ~/");
    else if (home)
        path = path_clean(home, value->text + 2);
    else
        return fail_at(draft, value, err, "the home directory is not known; write the path from /");
    if (!str_eq(path_name(path), program->name))
        return rule_fail(draft->file->origin.file, value->place, err,
                         "the path ends in \"%.60s\"; it has to end in the name, \"%.60s\"",
                         path_name(path), program->name);
    if (!strv_has(&program->paths, path))
        strv_push_take(&program->paths, TAKE_PTR(path));
    return 0;
}

static int add_program(const struct draft *draft, struct err *err)
{
    const struct rule_value *name = draft->arguments[NAME].value;
    const struct rule_value *paths = draft->arguments[PATHS].value;
    AUTO(host_program_done)
    struct host_program program = {.layer = draft->file->origin.layer};

    if (!*name->text || strchr(name->text, '/'))
        return fail_at(draft, name, err, "name is the bare name of a program, without a directory");
    program.name = alloc_str(name->text);
    for (size_t i = 0; i < paths->len; i++)
        if (add_path(draft, &paths->items[i], &program, err))
            return -1;
    rules_file_take_program(draft->file, &program);
    return 0;
}

/* --- network_rule --- */

static const struct rule_word host_decisions[] = {
    {"allow", RULE_KEEP},
    {"prompt", RULE_PROMPT},
    {"forbidden", RULE_FORBIDDEN},
    {"deny", RULE_FORBIDDEN},
    {NULL, 0},
};

enum { HOST, PROTOCOL, HOST_DECISION, HOST_REASON };

static const struct parameter host_parameters[] = {
    [HOST] = {"host", TAKES_TEXT, .is_required = true},
    [PROTOCOL] = {"protocol", TAKES_WORD, .is_required = true, .words = rule_protocols},
    [HOST_DECISION] = {"decision", TAKES_WORD, .is_required = true, .words = host_decisions},
    [HOST_REASON] = {"justification", TAKES_TEXT},
    {NULL},
};

static int add_host(const struct draft *draft, struct err *err)
{
    const struct argument *arguments = draft->arguments;
    AUTO(host_rule_done)
    struct host_rule rule = {
        .protocol = (enum rule_protocol)arguments[PROTOCOL].word,
        .verdict = (enum rule_verdict)arguments[HOST_DECISION].word,
        .layer = draft->file->origin.layer,
        .file = draft->file->origin.file,
        .place = draft->place,
    };
    struct err inner;

    rule.host = host_rule_host(arguments[HOST].value->text, &inner);
    if (!rule.host)
        return fail_at(draft, arguments[HOST].value, err, inner.msg);
    if (take_reason(draft, &arguments[HOST_REASON], &rule.justification, err))
        return -1;
    rules_file_take_host(draft->file, &rule);
    return 0;
}

/* --- calls --- */

static const struct function functions[] = {
    {"prefix_rule", prefix_parameters, add_prefix},
    {"host_executable", program_parameters, add_program},
    {"network_rule", host_parameters, add_host},
};

enum { FUNCTIONS = sizeof functions / sizeof *functions };

static const struct function *find_function(const struct rules_file *file,
                                            const struct rule_call *call, struct err *err)
{
    const char *names[FUNCTIONS + 1] = {NULL};
    const char *nearest;

    for (size_t i = 0; i < FUNCTIONS; i++) {
        if (str_eq(functions[i].name, call->name))
            return &functions[i];
        names[i] = functions[i].name;
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

/* No parameter of the function takes the argument. */
static int fail_argument(const struct rules_file *file, const struct function *function,
                         const struct rule_argument *argument, struct err *err)
{
    const char *names[RULE_ARGUMENTS_MAX + 1] = {NULL};
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

/* Puts the arguments of the call where their parameters are in the table. */
static int sort_arguments(struct draft *draft, const struct function *function,
                          const struct rule_call *call, struct err *err)
{
    for (size_t i = 0; i < call->len; i++) {
        const struct rule_argument *argument = &call->arguments[i];
        const struct parameter *parameters = function->parameters;
        size_t at = 0;

        while (parameters[at].name && !(argument->name ? str_eq(parameters[at].name, argument->name)
                                                       : parameters[at].is_required && at == i))
            at++;
        if (!parameters[at].name)
            return fail_argument(draft->file, function, argument, err);
        if (draft->arguments[at].value)
            return rule_fail(draft->file->origin.file, argument->place, err,
                             "%s is given twice; give it once", parameters[at].name);
        draft->arguments[at].value = &argument->value;
    }
    return 0;
}

static int check_argument(const struct draft *draft, const struct parameter *parameter,
                          struct argument *argument, struct err *err)
{
    switch (parameter->kind) {
    case TAKES_TEXT:
        return want_text(draft, argument->value, parameter->name, err);
    case TAKES_WORD:
        return want_word(draft, argument->value, parameter->words, &argument->word, err);
    case TAKES_LIST:
    case TAKES_ITEMS:
        break;
    }
    return want_list(draft, argument->value, parameter->name, parameter->kind == TAKES_ITEMS, err);
}

static int on_call(void *data, const struct rule_call *call, struct err *err)
{
    struct draft draft = {.file = data, .place = call->place};
    const struct function *function = find_function(draft.file, call, err);

    if (!function || sort_arguments(&draft, function, call, err))
        return -1;
    for (size_t i = 0; function->parameters[i].name; i++) {
        const struct parameter *parameter = &function->parameters[i];

        if (!draft.arguments[i].value && parameter->is_required)
            return rule_fail(draft.file->origin.file, call->place, err,
                             "%s needs the argument \"%s\"", function->name, parameter->name);
        if (draft.arguments[i].value && check_argument(&draft, parameter, &draft.arguments[i], err))
            return -1;
    }
    return function->add(&draft, err);
}

int rules_file_parse(const struct rules_origin *origin, const char *text, size_t len,
                     struct rules_file *ret, struct err *err)
{
    const struct rule_parse parse = {
        .file = origin->file, .text = text, .len = len, .on_call = on_call, .data = ret};

    *ret = (struct rules_file){.origin = *origin};
    return rule_parse(&parse, err);
}

/* --- examples ---
 *
 * A text is split into words as Codex does it: quotes and backslashes of POSIX shells (POSIX.1-2017,
 * Shell Command Language 2.2), comments, and nothing else; "|" and "$x" are text. */

#define BLANKS " \t\n"

/* Behind the opening quote; to behind the closing one. */
static const char *read_double(const char **at, struct buf *word)
{
    for (; **at != '"'; (*at)++) {
        if (**at == '\\' && (*at)[1] == '\n') {
            (*at)++;
            continue;
        }
        if (**at == '\\' && (*at)[1] && strchr("$`\"\\", (*at)[1]))
            (*at)++;
        if (!**at)
            return "a double quote is not closed";
        buf_append(word, *at, 1);
    }
    (*at)++;
    return NULL;
}

static const char *read_single(const char **at, struct buf *word)
{
    size_t len = strcspn(*at, "'");

    buf_append(word, *at, len);
    *at += len;
    if (!**at)
        return "a single quote is not closed";
    (*at)++;
    return NULL;
}

/* One character outside of quotes, or a whole quoted part. */
static const char *read_part(const char **at, struct buf *word)
{
    char c = *(*at)++;

    if (c == '"')
        return read_double(at, word);
    if (c == '\'')
        return read_single(at, word);
    if (c == '\\') {
        c = *(*at)++;
        if (!c)
            return "it ends in a backslash";
        if (c == '\n')
            return NULL;
    }
    buf_append(word, &c, 1);
    return NULL;
}

static const char *read_word(const char **at, struct strv *ret)
{
    AUTO(buf_done) struct buf word;
    const char *problem = NULL;

    buf_init(&word, SIZE_MAX / 2);
    buf_append(&word, "", 0);
    while (!problem && **at && !strchr(BLANKS, **at))
        problem = read_part(at, &word);
    if (!problem)
        strv_push(ret, word.data);
    return problem;
}

/* NULL, or what is wrong (static). */
static const char *split_words(const char *text, struct strv *ret)
{
    const char *problem = NULL;

    while (!problem && *(text += strspn(text, BLANKS)))
        if (*text == '#')
            text += strcspn(text, "\n");
        else
            problem = read_word(&text, ret);
    if (!problem && !ret->len)
        problem = "it holds no command";
    return problem;
}

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
