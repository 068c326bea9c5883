/* Programs that run another one which is among their words, as a table (used by command_inside.c).
 */
#pragma once

enum runner_kind {
    RUNS_PREFIX,  /* NAME options [operands] COMMAND */
    RUNS_COMMAND, /* the same, but for -v and -V */
    RUNS_EVAL,
    RUNS_FIND,
    RUNS_TRAP,
    RUNS_XARGS,
    RUNS_SHELL,       /* with the syntax of sh */
    RUNS_OTHER_SHELL, /* with another one */
    RUNS_SOMETHING,   /* in a way that is not worth reading */
};

enum runner_trait {
    TAKES_ASSIGNMENTS = 1, /* NAME=VALUE words in front of the command */
    STARTS_SHELL = 2,      /* an interactive shell when there is no command */
    BY_SHELL = 4,          /* the command may be a builtin */
};

struct runner {
    const char *name;   /* base name */
    const char *flags;  /* short options without a value */
    const char *values; /* short options with one */
    const char *longs;  /* long options between blanks, with "=" behind it when it has a value */
    unsigned operands;  /* words in front of the command */
    unsigned traits;
    enum runner_kind kind;
};

/* NULL when it is none of them. */
const struct runner *runner_find(const char *name);
