/* The programs that a command executed, as a tree: who started whom, with what, and how it ended. Bounded: the
 * first EXEC_NODES_MAX are kept, the others counted. */
#pragma once

#include "sandbox/sandbox.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct json_t;

enum { EXEC_NODES_MAX = 1024, EXEC_BYTES_MAX = 1 << 20 };

struct exec_node {
    uint64_t id;
    uint64_t parent; /* the exec of the process before, or of the nearest one above; 0 */
    pid_t pid;
    char *path;
    char *cwd;
    char **argv; /* NULL-terminated */
    bool is_truncated;
    bool is_replaced; /* the same process executed something else: that has its end */
    bool has_ended;
    bool is_outside;               /* it ran outside of the sandbox */
    int wait_status;               /* has_ended: as from waitpid(2); -1 when it cannot be told */
    uint64_t started_ns, ended_ns; /* CLOCK_MONOTONIC */
};

struct exec_tree;

struct exec_tree *exec_tree_new(void);
void exec_tree_free(struct exec_tree *tree); /* NULL is fine */

void exec_tree_add(struct exec_tree *tree, const struct launch_fact *fact);

/* The last exec of the process; 0 when none is known. */
uint64_t exec_tree_of_pid(const struct exec_tree *tree, pid_t pid);

/* NULL when it is not kept. */
const struct exec_node *exec_tree_find(const struct exec_tree *tree, uint64_t id);

size_t exec_tree_len(const struct exec_tree *tree);
uint64_t exec_tree_dropped(const struct exec_tree *tree);

/* [{"id", "parent", "pid", "program", "argv", "cwd", "started_ns", "duration_ns", "exit_code",
 * "signal", ...}] in the order in which they began; docs/timeline.md. A new reference. */
struct json_t *exec_tree_to_json(const struct exec_tree *tree);

/* A line for each, indented by what started it. */
void exec_tree_append(const struct exec_tree *tree, struct buf *ret);
