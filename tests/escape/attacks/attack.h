/* What the attack programs share. One binary, one sub-command per attack:
 *
 *     attacks NAME ARGS...
 *
 * It says "@start NAME" first (so that an attack that never ran is not taken for one that was
 * refused), then "@won ..." and exit status 0, or "@lost ..." with the kernel's reason and 1. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct attack {
    const char *name;
    int args; /* at least as many words must follow the name */
    int (*run)(int argc, char **argv);
};

/* Each table ends with an entry without a name. */
extern const struct attack file_attacks[];
extern const struct attack mount_attacks[];
extern const struct attack network_attacks[];
extern const struct attack ring_attacks[];
extern const struct attack ipc_attacks[];
extern const struct attack process_attacks[];
extern const struct attack namespace_attacks[];
extern const struct attack kernel_attacks[];
extern const struct attack terminal_attacks[];
extern const struct attack resource_attacks[];
extern const struct attack name_attacks[];
extern const struct attack race_attacks[];
extern const struct attack guard_attacks[];

int won(const char *fmt, ...) __attribute__((format(printf, 1, 2)));  /* returns 0 */
int lost(const char *fmt, ...) __attribute__((format(printf, 1, 2))); /* with errno; returns 1 */

/* The verdict for a system call's return value: lost when negative. */
int judge(long result, const char *what);

/* Tells the harness something while the attack goes on ("@NOTE ..."). */
void note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

long number(const char *text); /* ends the program when it is none */

/* Overwrites a file; the verdict of that. */
int overwrite(const char *path);

/* Reads `fd` and shows what comes; lost when nothing can be read. */
int show(int fd, const char *what);
