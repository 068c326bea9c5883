/* Every command that can be read anywhere in the text of a shell script: in loops, functions,
 * substitutions, pipelines, behind redirections; each reduced to its literal words. Only to find
 * what is dangerous: that something is not found proves nothing. */
#pragma once

#include "rules/shell/shell_words.h"

#include <stdbool.h>

enum shell_text {
    SHELL_TEXT_SCRIPT,
    SHELL_TEXT_BODY, /* of a here-document: text in which only substitutions run */
};

struct shell_literals {
    struct shell_commands commands; /* all words exact: what is not literal is left out */
    struct strv bodies;             /* here-documents and here-strings, as they are written */
    bool too_deep; /* given up somewhere: more constructs in each other than read */
};

/* Pure; time is linear in `len`. `*ret` is initialised by the call. */
void shell_literals_read(const char *text, size_t len, enum shell_text kind,
                         struct shell_literals *ret);
void shell_literals_done(struct shell_literals *literals);
