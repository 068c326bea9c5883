/* What the parts of the plan compiler share. */
#pragma once

#include "sandbox/linux/plan.h"

struct compiler {
    const struct access_map *map;
    const struct plan_host *host;
    struct plan *plan;
    struct plan *held_devices; /* only their records are used; strings are the plan's */
    struct plan *held;
    struct plan *body;
    struct plan *seals;
    enum access base;
    bool in_place; /* the host's tree stays the root */
    uint32_t slots;
    bool has_masks;
    const char *last_dir; /* the mount point made last, to not make its parents again */
};

/* Appends a record for `path` to one of the lists above. */
struct plan_record *compiler_push(struct compiler *compiler, struct plan *list, enum plan_op op,
                                  const char *path);

/* Appends a record without a path. */
struct plan_record *plan_push(struct plan *plan, enum plan_op op);

/* Puts a text into the plan's strings; returns its offset. */
uint32_t plan_intern(struct plan *plan, const char *text);

/* What decides about the folder that holds entry `index`. */
enum access compiler_access_around(const struct compiler *compiler, size_t index);

/* The operations on the file system, complete and in order. */
void compile_file_system(struct compiler *compiler);
