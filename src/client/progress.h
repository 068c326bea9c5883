/* How far a copy is, on a terminal, when it takes longer than two seconds: one line on stderr that
 * is written over. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROGRESS_AFTER_NS UINT64_C(2000000000)
#define PROGRESS_EVERY_NS UINT64_C(200000000)

struct progress {
    int fd; /* -1: nothing is shown */
    uint64_t files;
    uint64_t bytes;
    uint64_t next_ns; /* when it is to be shown next */
    bool is_shown;
};

/* From now on; nothing is shown when `fd` is no terminal. */
void progress_init(struct progress *progress, int fd);

void progress_add_bytes(struct progress *progress, size_t bytes);
void progress_add_file(struct progress *progress);

/* Takes the line away, as long as something else is to be said, and at the end. */
void progress_clear(struct progress *progress);

enum { PROGRESS_TEXT_SIZE = 64 };

/* "12 files, 3.4 MiB". Pure. */
void progress_text(uint64_t files, uint64_t bytes, char ret[PROGRESS_TEXT_SIZE]);
