/* See options.h. Of our own and not getopt_long(3), because that has its state in globals, guesses
 * at abbreviations (so that a new option can break old scripts), and can neither say what was
 * probably meant nor print the table that it is given. */
#include "cli/options.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/str.h"
#include "base/strv.h"
#include "base/units.h"

#include <inttypes.h>
#include <string.h>

enum { COLUMNS = 80, HELP_INDENT = 10, BRIEF_INDENT = 30 };

static const struct option help_option = {
    .name = "help", .letter = 'h', .help = "Shows this text and does nothing else."};

/* An option as it was found on the command line. */
struct given {
    const struct option *option;
    void *data;          /* the struct of its group */
    const char *spelled; /* "--name" or "-n", for messages; of the length below */
    size_t spelled_len;
    const char *value; /* attached to it; NULL for none */
};

/* Walks all options of all groups: the one behind `group` and `option`, NULL at the end. */
static const struct option *option_next(const struct option_group **group,
                                        const struct option *option)
{
    option = option ? option + 1 : (*group)->options;
    while (option && !option->name) {
        (*group)++;
        option = (*group)->options;
    }
    return option;
}

/* The option of this name, or with this letter, and its group; NULL when there is none. */
static const struct option *option_find(const struct option_group **group, const char *name,
                                        size_t len, char letter)
{
    const struct option *option = NULL;

    if (name ? len == strlen(help_option.name) && memcmp(name, help_option.name, len) == 0
             : letter == help_option.letter)
        return &help_option;
    while ((option = option_next(group, option)))
        if (name ? strlen(option->name) == len && memcmp(option->name, name, len) == 0
                 : option->letter == letter)
            return option;
    return NULL;
}

static int unknown_option(const struct option_group *groups, const char *argument, size_t len,
                          struct err *err)
{
    AUTO_FREE char *name = alloc_strn(argument + 2, len - 2);
    AUTO(strv_done) struct strv names = {0};
    const struct option *option = NULL;
    const char *nearest;

    strv_push(&names, help_option.name);
    while ((option = option_next(&groups, option)))
        strv_push(&names, option->name);
    nearest = str_nearest(name, (const char *const *)strv_view(&names));
    return err_set(err, ERR_INVALID, "there is no option --%s%s%s%s", name,
                   nearest ? "; did you mean --" : "", nearest ? nearest : "", nearest ? "?" : "");
}

/* Finds the option of `argument`, which begins with "-". */
static int given_find(const struct option_group *groups, const char *argument, void *data,
                      struct given *ret, struct err *err)
{
    bool is_long = argument[1] == '-';
    const struct option_group *group = groups;
    size_t len = is_long ? strcspn(argument, "=") : 2;

    ret->spelled = argument;
    ret->spelled_len = len;
    ret->option = option_find(&group, is_long ? argument + 2 : NULL, len - 2, argument[1]);
    ret->value = argument[len] ? argument + len + is_long : NULL;
    ret->data = (char *)data + group->offset;
    if (ret->option)
        return 0;
    return is_long ? unknown_option(groups, argument, len, err)
                   : err_set(err, ERR_INVALID, "there is no option -%c", argument[1]);
}

/* Whether there is a value where there should be one, and a right one. */
static int given_check(const struct given *given, struct err *err)
{
    const struct option *option = given->option;
    AUTO(buf_done) struct buf words = {.max = SIZE_MAX / 2}; /* "a, b or c" */
    const char *nearest;

    if (!option->value)
        return given->value ? err_set(err, ERR_INVALID, "takes no value") : 0;
    for (const char *const *word = option->words; word && *word; word++) {
        if (given->value && str_eq(*word, given->value))
            return 0;
        buf_appendf(&words, "%s%s", !words.len ? "" : word[1] ? ", " : " or ", *word);
    }
    if (!given->value && option->may_lack)
        return 0;
    if (!given->value)
        return err_set(err, ERR_INVALID, "needs a value: %s",
                       option->words ? words.data : option->value);
    if (!option->words)
        return 0;
    nearest = str_nearest(given->value, option->words);
    return err_set(err, ERR_INVALID, "\"%s\" is not one of %s%s%s%s", given->value, words.data,
                   nearest ? "; did you mean " : "", nearest ? nearest : "", nearest ? "?" : "");
}

/* --- values --- */

static int set_number(const struct option *option, uint64_t *member, const char *value,
                      struct err *err)
{
    uint64_t number;
    int failed = option->kind == OPTION_COUNT      ? units_parse_count(value, &number, err)
                 : option->kind == OPTION_DURATION ? units_parse_duration(value, &number, err)
                                                   : units_parse_size(value, &number, err);

    if (failed)
        return -1;
    if (number >= option->min && (!option->max || number <= option->max)) {
        *member = number;
        return 0;
    }
    if (option->wrong)
        return err_set(err, ERR_INVALID, "%s", option->wrong);
    if (!option->max)
        return err_set(err, ERR_INVALID, "has to be at least %" PRIu64, option->min);
    return err_set(err, ERR_INVALID, "has to be from %" PRIu64 " to %" PRIu64, option->min,
                   option->max);
}

static int option_set(const struct option *option, void *member, const char *value, struct err *err)
{
    switch (option->kind) {
    case OPTION_CALL:
        return option->set(option, member, value, err);
    case OPTION_TEXT:
        if (!*value && option->wrong)
            return err_set(err, ERR_INVALID, "%s", option->wrong);
        *(const char **)member = value;
        return 0;
    case OPTION_LIST:
        if (option->max && ((struct strv *)member)->len == option->max)
            return err_set(err, ERR_LIMIT, "given more than %" PRIu64 " times", option->max);
        strv_push(member, value);
        return 0;
    case OPTION_TRUE:
        *(bool *)member = true;
        return 0;
    case OPTION_FLAG:
        *(unsigned *)member |= (unsigned)option->number;
        return 0;
    case OPTION_CHOICE:
        *(unsigned *)member = (unsigned)option->number;
        return 0;
    case OPTION_WORD:
        *(unsigned *)member = (unsigned)option->number;
        for (const char *const *word = option->words; !str_eq(*word, value); word++)
            ++*(unsigned *)member;
        return 0;
    case OPTION_COUNT:
    case OPTION_DURATION:
    case OPTION_SIZE:
        break;
    }
    return set_number(option, member, value, err);
}

int options_parse(const struct option_group *groups, char **argv, void *data,
                  struct options_rest *ret, struct err *err)
{
    struct options_rest rest = {.argv = argv};

    while (*rest.argv && rest.argv[0][0] == '-' && rest.argv[0][1]) {
        const char *argument = *rest.argv++;
        struct given given;

        if (str_eq(argument, "--"))
            break;
        if (given_find(groups, argument, data, &given, err))
            return -1;
        rest.wants_help = given.option == &help_option;
        if (rest.wants_help)
            break;
        if (given.option->value && !given.option->may_lack && !given.value && *rest.argv)
            given.value = *rest.argv++;
        if (given_check(&given, err) ||
            option_set(given.option, (char *)given.data + given.option->offset, given.value, err))
            return err_wrap(err, "%.*s", (int)given.spelled_len, given.spelled);
    }
    *ret = rest;
    return 0;
}

/* --- texts --- */

/* The length of the line that begins at `text` and has room for `width` characters: to the last
 * space that fits, or to the end of the first word. */
static size_t line_len(const char *text, size_t width)
{
    size_t end = strcspn(text, "\n");
    size_t len = 0;

    while (len < end) {
        size_t word = len + strspn(text + len, " ");

        word += strcspn(text + word, " \n");
        if (word > width && len)
            break;
        len = word;
    }
    return len;
}

void options_print_text(const char *text, unsigned indent, struct buf *ret)
{
    while (*text) {
        bool is_fixed = *text == ' ' || *text == '\n';
        size_t len = is_fixed ? strcspn(text, "\n") : line_len(text, COLUMNS - indent);

        buf_appendf(ret, "%*s%.*s\n", len ? (int)indent : 0, "", (int)len, text);
        text += len;
        if (*text == '\n')
            text++;
        else
            text += strspn(text, " ");
    }
}

/* "-n, --name VALUE" */
static void option_spell(const struct option *option, struct buf *ret)
{
    buf_append_str(ret, "  ");
    if (option->letter)
        buf_appendf(ret, "-%c, ", option->letter);
    buf_appendf(ret, "--%s%s%s%s", option->name,
                option->may_lack ? "[="
                : option->value  ? " "
                                 : "",
                option->value ? option->value : "", option->may_lack ? "]" : "");
}

static void option_print(const struct option *option, struct buf *ret)
{
    option_spell(option, ret);
    buf_append_str(ret, "\n");
    options_print_text(option->help, HELP_INDENT, ret);
}

/* Up to the mark that ends its first clause. */
static char *first_clause(const char *help)
{
    size_t len = strcspn(help, ".;:");

    while (help[len] && help[len + 1] && help[len + 1] != ' ')
        len += 1 + strcspn(help + len + 1, ".;:");
    return alloc_strn(help, len);
}

static void option_print_brief(const struct option *option, struct buf *ret)
{
    AUTO_FREE char *text = option->brief ? alloc_str(option->brief) : first_clause(option->help);
    const char *rest = text;
    const size_t start = ret->len;
    size_t width;

    option_spell(option, ret);
    width = ret->len - start;
    while (*rest) {
        size_t len = line_len(rest, COLUMNS - BRIEF_INDENT);

        if (width + 2 > BRIEF_INDENT) {
            buf_append_str(ret, "\n");
            width = 0;
        }
        buf_appendf(ret, "%*s%.*s\n", (int)(BRIEF_INDENT - width), "", (int)len, rest);
        width = 0;
        rest += len + strspn(rest + len, " ");
    }
}

void options_print(const struct option_group *groups, bool is_brief, struct buf *ret)
{
    void (*print)(const struct option *, struct buf *) =
        is_brief ? option_print_brief : option_print;

    for (; groups->options; groups++) {
        if (!groups->options->name)
            continue;
        buf_appendf(ret, "\n%s:\n", groups->title);
        for (const struct option *option = groups->options; option->name; option++)
            print(option, ret);
    }
    if (!is_brief) {
        buf_append_str(ret, "\n");
        print(&help_option, ret);
    }
}
