/* The text of a packed-refs of git's, which may be anybody's. */
#pragma once

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>

enum { COMMIT_ID_MAX = 64 }; /* hexadecimal digits of a SHA-256 */

struct packed_ref {
    const char *name; /* "refs/..."; ends with the line */
    size_t name_len;
    const char *commit;
    size_t commit_len;
};

struct packed_refs {
    struct buf text;
    struct packed_ref *items; /* by name; of one name the first in the text is the first */
    size_t len;
    size_t cap;
};

/* How many digits begin the text, if those are the id of a commit; else 0. */
size_t commit_id_len(const char *text);

/* Reads `text`; what is no line of a reference is left out. */
void packed_refs_parse(struct packed_refs *refs);
void packed_refs_done(struct packed_refs *refs);

/* NULL: there is none. */
const struct packed_ref *packed_refs_find(const struct packed_refs *refs, const char *name,
                                          size_t len);
