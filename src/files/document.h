/* A YAML document (libyaml) that a stranger wrote, looked at field by field. What a scalar is
 * follows YAML's core schema where it is plain; a quoted one is always text. */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <yaml.h>

struct document {
    yaml_document_t tree;
    bool is_loaded;
};

/* A stream of at most one document; an empty one has no root. */
int document_load(struct document *ret, const char *text, size_t len, struct err *err);
void document_done(struct document *document);

const yaml_node_t *document_root(struct document *document); /* NULL: empty */
const yaml_node_t *document_node(struct document *document, int index);

/* The value of a key; `*ret` is NULL when it is missing or null. Fails when `map` is not NULL and
 * no mapping, or has the key twice. */
int document_field(struct document *document, const yaml_node_t *map, const char *key,
                   const yaml_node_t **ret, struct err *err);

/* A sequence; NULL when the key is missing, but null is none. */
int document_list(struct document *document, const yaml_node_t *map, const char *key,
                  const yaml_node_t **ret, struct err *err);

/* As document_field() for a scalar's text (borrowed; NULL: missing or null), a boolean (1, 0, -1:
 * missing), and an integer from 0 to 65535 (-1: missing). */
int document_text(struct document *document, const yaml_node_t *map, const char *key,
                  const char **ret, struct err *err);
int document_flag(struct document *document, const yaml_node_t *map, const char *key, int *ret,
                  struct err *err);
int document_port(struct document *document, const yaml_node_t *map, const char *key, int *ret,
                  struct err *err);

/* The text with every run of white space (of Unicode) become one space, and none at the ends.
 * Caller frees; NULL stays NULL. */
char *document_one_line(const char *text);

/* Characters of valid UTF-8. */
size_t document_characters(const char *text);
