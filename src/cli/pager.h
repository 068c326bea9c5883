/* The program through which a person reads what is longer than a screen: the one that git uses. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct pager {
    int fd;          /* where the text goes: the pager, or stdout */
    pid_t child;     /* 0: there is none */
    bool is_gone;    /* nobody reads any more: it was left, or the pipe was closed */
    bool has_failed; /* stdout cannot be written */
};

/* Started when stdout is a terminal, unless the person has none ("cat"): $GIT_PAGER, git's core.pager (that of the person,
 * not of a repository), $PAGER, less. */
void pager_start(struct pager *ret);

/* False: nobody reads any more. What is wrong with stdout otherwise is said when it ends. */
bool pager_write(struct pager *pager, const void *text, size_t len);

/* Waits until the person has read; an exit status. */
int pager_end(struct pager *pager);

/* Runs a program and waits for it: its exit status, 127 when it is not there, 128 + N when signal N ended it. `out`:
 * its stdout, -1: ours; `dir`: where; NULL: here. */
int program_wait(const char *const *argv, const char *dir, int out);
