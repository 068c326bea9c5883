/* The folder that sequences are played in: made ready, and told and emptied after each. */
#pragma once

#include "log.h"

enum { FOLDER_FD = 3, FOLDERS_DEPTH = 5 };

struct stage {
    char folder[256]; /* the workspace; open as FOLDER_FD */
    char base[256];   /* where the sequence plays */
    bool is_deep;     /* FOLDERS_DEPTH below the place, so that ".." stays within it */
};

/* Makes the base folder and goes there. `place`: "root" (the workspace itself), "deep", or the name of
 * a folder below made/, which was there before. false when it is not to be had. */
bool stage_enter(struct stage *stage, const char *place);

/* Writes down all that is in the place, and removes it. */
void stage_leave(struct log *log);
