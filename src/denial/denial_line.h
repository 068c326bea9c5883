/* What one line of output says about a refusal: which error, which paths, which host. Internal to
 * exec; denial.h is the interface. Pure. */
#pragma once

#include "base/strv.h"

#include <stdbool.h>
#include <stddef.h>

/* What the words around the error say was tried. */
enum denial_hint {
    DENIAL_HINT_NONE,
    DENIAL_HINT_READ,
    DENIAL_HINT_WRITE,
    DENIAL_HINT_EXECUTE, /* never from the words, see denial.c */
    DENIAL_HINT_CONNECT,
};

enum denial_topic {
    DENIAL_TOPIC_FILE,    /* or anything else that can give such an error */
    DENIAL_TOPIC_NETWORK, /* the outside world cannot be reached */
};

struct denial_clue {
    enum denial_topic topic;
    enum denial_hint hint;
    int error;         /* errno value; 0 when the words name none */
    bool needs_proof;  /* weak words: only together with a path that the profile denies */
    bool is_rust;      /* "(os error N)": the path stands some lines above */
    struct strv paths; /* with a slash in them, as written, the likeliest first */
    struct strv names; /* single words that could be file names in the working directory */
    char *host;        /* NETWORK; NULL when not said */
};

/* false when the line speaks of no refusal; `ret` is only filled (and to be done) otherwise. Looks
 * at the first 4 KiB of the line. */
bool denial_line_read(const char *line, size_t len, struct denial_clue *ret);

/* The paths in quotes in a line that needs no refusal in it, appended to `paths`. */
void denial_line_quoted(const char *line, size_t len, struct strv *paths);

void denial_clue_done(struct denial_clue *clue);
