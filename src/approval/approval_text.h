/* What a question says to people. Pure. */
#pragma once

#include "approval/requirement.h"
#include "base/strv.h"

/* The text as one line that cannot command a terminal or pass for another one, by utf8_plain().
 * NULL becomes "". Caller frees. */
char *approval_plain_text(const char *text);

/* The command in that way, quoted as for a shell. Caller frees. */
char *approval_command_text(char *const *argv);

struct approval_scope {
    enum requirement_place place;
    const char *profile;  /* its name */
    const char *widened;  /* what it gets beyond, in words; NULL: nothing */
    bool covers_retry;    /* and a second attempt without a sandbox */
    char *const *patched; /* files whose later patches a yes for the session covers; NULL: none */
};

/* What a yes would allow, as a sentence without a full stop. Of many files it names a few, and says
 * how many more there are. Caller frees. */
char *approval_covers(const struct approval_scope *scope);
