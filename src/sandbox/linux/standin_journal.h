/* The registry of stand-ins: which ones this process made, for whoever comes after it. */
#pragma once

#include "base/err.h"

/* Notes that a stand-in is about to be made at `path`; on the disk before it returns. */
int journal_add(const char *path, struct err *err);

/* Forgets all that was noted: nothing of it is left. */
void journal_close(void);

/* Removes what the journals of dead processes name, and those journals. */
void journal_recover(void);
