/* What a directory offers a client of Codex: skills (SKILL.md, with agents/openai.yaml beside it),
 * manifests of plugins, and the files that the directory's own manifest names. */
#pragma once

#include "base/err.h"

#include <jansson.h>
#include <stddef.h>

/* Each file is {"path": URI, "contents": text}. */
struct found {
    char *root;         /* the directory, clean */
    json_t *manifest;   /* the plugin's own; NULL: it is no plugin */
    json_t *parsed;     /* the same as a value; NULL: it is not valid JSON */
    json_t *mcp;        /* the configuration files; NULL: none */
    json_t *apps;       /*   */
    json_t *skills;     /* of {"instructions": file, "metadata": file or null} */
    json_t *namespaces; /* of files: the manifests that name the skills below them */
    json_t *warnings;   /* of texts */
    size_t bytes;       /* of all contents */
};

/* Looks through the directory. Fails when it is no directory, or cannot be looked through; everything else that is
 * wrong is a warning. */
int found_look(struct found *ret, const char *root, struct err *err);
void found_done(struct found *found);

/* "<before> <URI of the path><behind>" */
void found_warn(struct found *found, const char *before, const char *path, const char *behind);
