/* What happened, as text: hashed always, printed when wanted. The text holds nothing that differs
 * between two runs: no times, no inode numbers, no pids, and {W} in the place of the folder. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct log {
    uint64_t hash;
    bool is_shown;
    char folder[256]; /* that {W} stands for */
};

void log_init(struct log *log, const char *folder, bool is_shown);
/* One line, or a part of it. */
__attribute__((format(printf, 2, 3))) void log_add(struct log *log, const char *format, ...);
