/* What a patch changes, in words: for a model, a person, a program. Pure. */
#pragma once

#include "patch/changes.h"

struct buf;
struct json_t;

/* "Success. Updated the following files:", then the files as the patch spells them: added ("A "),
 * modified ("M "), deleted ("D "). False beyond the buffer's limit. */
bool report_summary(const struct changes *changes, struct buf *ret);

/* A unified diff as git writes and reads it, with so many equal lines around each difference. False
 * beyond the buffer's limit. */
bool report_diff(const struct changes *changes, size_t context, struct buf *ret);

/* [{"path": "...", "change": "add" | "update" | "delete" | "rename", "from": "..." (a rename's),
 *   "lines_added": N, "lines_removed": N}], sorted as the patch names them. New reference. */
struct json_t *report_to_json(const struct changes *changes);
