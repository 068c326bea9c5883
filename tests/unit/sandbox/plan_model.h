/* Carries a plan out on paper: what would be visible and writable where, and whether each operation
 * would find what it needs. So a plan is held against the access map it was compiled from, without
 * a kernel and without a word of the compiler. */
#pragma once

#include "sandbox/linux/plan.h"

struct plan_model;

/* The host is taken to have what the map says it has, and the directories above that. Both are borrowed. Ends the test (cmocka) when an operation could not be carried
 * out. */
struct plan_model *plan_model_new(const struct plan *plan, const struct access_map *map);
void plan_model_free(struct plan_model *model);

/* What the command may do at a path that need not exist. */
enum access plan_model_access(const struct plan_model *model, const char *path);

/* A mount is at just this path, so the directory cannot be renamed or removed. */
bool plan_model_is_mount(const struct plan_model *model, const char *path);

/* A watchpoint is there, and all of them are taken away: what the command may do is what it may do
 * after a yes to each. */
bool plan_model_is_watched(const struct plan_model *model, const char *path);
void plan_model_uncover(struct plan_model *model);
