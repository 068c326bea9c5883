/* The registry of stand-ins: which ones this process made, for whoever comes after it. */
#pragma once

#include "base/err.h"

#include <stdbool.h>

/* Notes that a stand-in is about to be made at `path`; on the disk before it returns. */
int journal_add(const char *path, struct err *err);

/* Ends the journal; with `has_leftover` it stays for a later process to act on. */
void journal_close(bool has_leftover);

/* Removes what the journals of dead processes name, and those journals but for the lasting one. */
void journal_recover(void);
