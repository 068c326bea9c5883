/* See exec_tree.h. Nodes are kept in the order in which they began, which is that of their numbers. */
#include "timeline/exec_tree.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/json.h"
#include "timeline/timeline.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

struct exec_tree {
    struct exec_node *nodes;
    size_t len, cap;
    size_t bytes;
    uint64_t dropped;
};

struct exec_tree *exec_tree_new(void)
{
    return alloc_zero(1, sizeof(struct exec_tree));
}

void exec_tree_free(struct exec_tree *tree)
{
    for (size_t i = 0; tree && i < tree->len; i++) {
        struct exec_node *node = &tree->nodes[i];

        free(node->path);
        free(node->cwd);
        for (char **word = node->argv; *word; word++)
            free(*word);
        free(node->argv);
    }
    if (tree)
        free(tree->nodes);
    free(tree);
}

static struct exec_node *find(const struct exec_tree *tree, uint64_t id)
{
    size_t low = 0;
    size_t high = tree->len;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (tree->nodes[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < tree->len && tree->nodes[low].id == id ? &tree->nodes[low] : NULL;
}

const struct exec_node *exec_tree_find(const struct exec_tree *tree, uint64_t id)
{
    return find(tree, id);
}

uint64_t exec_tree_of_pid(const struct exec_tree *tree, pid_t pid)
{
    for (size_t i = tree->len; i-- > 0;)
        if (tree->nodes[i].pid == pid)
            return tree->nodes[i].has_ended ? 0 : tree->nodes[i].id;
    return 0;
}

static void add(struct exec_tree *tree, const struct launch_fact *fact)
{
    struct exec_node *before = find(tree, fact->parent);
    size_t bytes = strlen(fact->path) + (fact->cwd ? strlen(fact->cwd) : 0);
    size_t argc = 0;
    struct exec_node *node;

    if (before && before->pid == fact->pid)
        before->is_replaced = true;
    for (; fact->argv && fact->argv[argc]; argc++)
        bytes += strlen(fact->argv[argc]) + 1;
    if (find(tree, fact->id))
        return;
    if (tree->len == EXEC_NODES_MAX || tree->bytes + bytes > EXEC_BYTES_MAX) {
        tree->dropped++;
        return;
    }
    tree->nodes = alloc_grow(tree->nodes, tree->len, &tree->cap, sizeof *tree->nodes);
    node = &tree->nodes[tree->len++];
    /* one that was asked about keeps its number, and may come behind others */
    for (; node > tree->nodes && node[-1].id > fact->id; node--)
        *node = node[-1];
    *node = (struct exec_node){
        .id = fact->id,
        .parent = fact->parent,
        .pid = fact->pid,
        .path = alloc_str(fact->path),
        .cwd = alloc_str(fact->cwd),
        .argv = alloc_zero(argc + 1, sizeof *node->argv),
        .is_truncated = fact->is_truncated,
        .is_outside = fact->kind == FACT_OUTSIDE,
        .started_ns = fact->time_ns,
    };
    for (size_t i = 0; i < argc; i++)
        node->argv[i] = alloc_str(fact->argv[i]);
    tree->bytes += bytes;
}

void exec_tree_add(struct exec_tree *tree, const struct launch_fact *fact)
{
    struct exec_node *node;

    if ((fact->kind == FACT_EXEC || fact->kind == FACT_OUTSIDE) && fact->id) {
        add(tree, fact);
        return;
    }
    if (fact->kind == FACT_EXEC)
        tree->dropped += fact->more;
    node = fact->kind == FACT_EXIT ? find(tree, fact->id) : NULL;
    if (!node)
        return;
    node->has_ended = true;
    node->wait_status = fact->number;
    node->ended_ns = fact->time_ns;
}

size_t exec_tree_len(const struct exec_tree *tree)
{
    return tree->len;
}

uint64_t exec_tree_dropped(const struct exec_tree *tree)
{
    return tree->dropped;
}

/* --- for readers --- */

static json_t *node_to_json(const struct exec_node *node, uint64_t start_ns)
{
    bool is_known = node->has_ended && node->wait_status >= 0;
    json_t *json = json_pack(
        "{s:I, s:o, s:i, s:o, s:o, s:b, s:o, s:I, s:o, s:b, s:b}", "id", (json_int_t)node->id,
        "parent", node->parent ? json_integer((json_int_t)node->parent) : json_null(), "pid",
        (int)node->pid, "program", json_lossy(node->path), "argv", json_lossy_list(node->argv),
        "truncated", node->is_truncated, "cwd", json_lossy(node->cwd), "started_ns",
        (json_int_t)(node->started_ns - start_ns), "duration_ns",
        node->has_ended ? json_integer((json_int_t)(node->ended_ns - node->started_ns))
                        : json_null(),
        "replaced", node->is_replaced, "outside", node->is_outside);

    json_object_set_new(json, "exit_code",
                        is_known && WIFEXITED(node->wait_status)
                            ? json_integer(WEXITSTATUS(node->wait_status))
                            : json_null());
    json_object_set_new(json, "signal",
                        is_known && WIFSIGNALED(node->wait_status)
                            ? json_integer(WTERMSIG(node->wait_status))
                            : json_null());
    return json;
}

json_t *exec_tree_to_json(const struct exec_tree *tree)
{
    json_t *json = json_array();

    for (size_t i = 0; i < tree->len; i++)
        json_array_append_new(json, node_to_json(&tree->nodes[i], tree->nodes[0].started_ns));
    return json;
}

enum { INDENT_MAX = 20 };

static void append_end(const struct exec_node *node, struct buf *ret)
{
    const char *name;

    if (node->is_replaced)
        return;
    if (node->has_ended && node->wait_status >= 0 && WIFSIGNALED(node->wait_status)) {
        name = sigabbrev_np(WTERMSIG(node->wait_status));
        buf_appendf(ret, "  (SIG%s", name ? name : "?");
    } else if (node->has_ended && node->wait_status >= 0) {
        buf_appendf(ret, "  (exit %d", WEXITSTATUS(node->wait_status));
    } else {
        buf_append_str(ret, node->has_ended ? "  (ended" : "  (end not seen");
    }
    if (node->has_ended)
        buf_appendf(ret, ", %.3f s", (double)(node->ended_ns - node->started_ns) / 1e9);
    buf_append_str(ret, node->is_outside ? ", outside of the sandbox)" : ")");
}

/* Each below what started it, in the order in which they began. */
static void append_node(const struct exec_tree *tree, const struct exec_node *node, unsigned depth,
                        struct buf *ret)
{
    buf_appendf(ret, "%*s", 2 * (int)(depth < INDENT_MAX ? depth : INDENT_MAX), "");
    timeline_append_argv(node->argv, ret);
    if (node->is_truncated)
        buf_append_str(ret, " ...");
    append_end(node, ret);
    buf_append_str(ret, "\n");
    for (size_t i = (size_t)(node - tree->nodes) + 1; i < tree->len; i++)
        if (tree->nodes[i].parent == node->id)
            append_node(tree, &tree->nodes[i], depth + 1, ret);
}

void exec_tree_append(const struct exec_tree *tree, struct buf *ret)
{
    for (size_t i = 0; i < tree->len; i++) {
        const struct exec_node *node = &tree->nodes[i];
        const struct exec_node *parent = find(tree, node->parent);

        if (!parent || parent >= node)
            append_node(tree, node, 0, ret);
    }
    if (tree->dropped)
        buf_appendf(ret, "... and %llu more\n", (unsigned long long)tree->dropped);
}
