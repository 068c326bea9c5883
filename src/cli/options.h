/* Options of a command, as tables: what is parsed, what becomes of it, what --help says, what the
 * shell completions are made of and what man pages are checked against (`cordon help --json`) come
 * from the same lines.
 *
 *     --name VALUE   --name=VALUE   -n VALUE   -nVALUE   --flag   -f
 *
 * Options end at the first argument that is not one, or behind "--": what follows belongs to the
 * command that is to be run, and is not looked at.
 *
 * A row says what the option is for and into which member of the command's struct its value goes:
 *
 *     {.name = "timeout",
 *      .letter = 't',
 *      .value = "TIME",
 *      INTO_DURATION(struct run_options, timeout_ns),
 *      .help = "Ends the command after TIME."},
 */
#pragma once

#include "base/err.h"
#include "base/strv.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

enum option_kind {
    OPTION_CALL,     /* `set` knows */
    OPTION_TEXT,     /* const char *: borrowed from argv, which lives as long as the program */
    OPTION_LIST,     /* struct strv: one item for every time it is given */
    OPTION_TRUE,     /* bool */
    OPTION_FLAG,     /* unsigned: gets the bits of `number` */
    OPTION_CHOICE,   /* enum: becomes `number` */
    OPTION_WORD,     /* enum: `number` for the first of `words`, and so on */
    OPTION_COUNT,    /* uint64_t: a whole number */
    OPTION_DURATION, /* uint64_t: nanoseconds */
    OPTION_SIZE,     /* uint64_t: bytes */
};

struct option {
    const char *name;  /* without "--" */
    char letter;       /* its short form, 0 without one */
    const char *value; /* what stands for the value in texts, "DIR"; NULL: takes none */
    bool may_lack; /* OPTION_CALL: --name alone is right, too, and then `set` gets NULL; a value has
                      to come with "=" */
    const char *const *words; /* the only values that are taken, NULL-terminated; NULL: any */
    const char *help;         /* sentences */
    const char *brief;        /* of --help, less than a line; NULL: the first clause of `help` */
    enum option_kind kind;
    size_t offset; /* of the member that it sets, in the struct of the group */
    uint64_t number;
    uint64_t min, max; /* of a number; of a list, how often it may be given; max 0: no limit */
    const char *wrong; /* what is said of an empty text (NULL: it is taken) or of a number that is
                          out of range (NULL: which ones are right) */
    /* For OPTION_CALL: `member` is at `offset`; `value` is NULL for an option without one. Called
     * once for every time it is given, in order. An error need not say which option it is about. */
    int (*set)(const struct option *option, void *member, const char *value, struct err *err);
};

/* The kind and the member of a row. A member of another type does not compile. */
#define OPTION_OFFSET(type, member, wanted)                                                        \
    (offsetof(type, member) + _Generic(((type *)NULL)->member, wanted : 0))
#define INTO_TEXT(type, member)                                                                    \
    .kind = OPTION_TEXT, .offset = OPTION_OFFSET(type, member, const char *)
#define INTO_NOT_EMPTY(type, member) INTO_TEXT(type, member), .wrong = "the value is empty"
#define INTO_LIST(type, member)                                                                    \
    .kind = OPTION_LIST, .offset = OPTION_OFFSET(type, member, struct strv)
#define INTO_TRUE(type, member) .kind = OPTION_TRUE, .offset = OPTION_OFFSET(type, member, bool)
#define INTO_FLAG(type, member, bits)                                                              \
    .kind = OPTION_FLAG, .offset = OPTION_OFFSET(type, member, unsigned), .number = (bits)
#define INTO_CHOICE(type, member, choice)                                                          \
    .kind = OPTION_CHOICE, .offset = OPTION_OFFSET(type, member, unsigned), .number = (choice)
#define INTO_WORD(type, member, first)                                                             \
    .kind = OPTION_WORD, .offset = OPTION_OFFSET(type, member, unsigned), .number = (first)
#define INTO_COUNT(type, member)                                                                   \
    .kind = OPTION_COUNT, .offset = OPTION_OFFSET(type, member, uint64_t)
#define INTO_DURATION(type, member)                                                                \
    .kind = OPTION_DURATION, .offset = OPTION_OFFSET(type, member, uint64_t)
#define INTO_SIZE(type, member) .kind = OPTION_SIZE, .offset = OPTION_OFFSET(type, member, uint64_t)

struct option_group {
    const char *title;            /* "Permissions" */
    const struct option *options; /* ended by one without a name */
    size_t offset;                /* of the struct that they set members of, in the command's */
};

struct options_rest {
    char **argv;     /* what follows the options; NULL-terminated, part of the argv given */
    bool wants_help; /* --help or -h was among them; what follows it was not read */
};

/* `groups` end with one without options; `data` is the command's struct, which holds the defaults.
 * ERR_INVALID for an option that there is not (the message names the nearest), a value that is
 * missing or not allowed, or what `set` says. */
int options_parse(const struct option_group *groups, char **argv, void *data,
                  struct options_rest *ret, struct err *err);

/* The group titles, options and their help, wrapped to 80 columns; or what each is in a few words. */
void options_print(const struct option_group *groups, bool is_brief, struct buf *ret);

/* Appends the text, wrapped to 80 columns and indented; ends with a line feed. Lines that begin
 * with a space are not wrapped. */
void options_print_text(const char *text, unsigned indent, struct buf *ret);
