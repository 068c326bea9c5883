/* Paths at the server, as people write them. Pure. */
#pragma once

#include "base/err.h"

/* The file: URI of `path` at a server whose own folder is `folder` (a file: URI; NULL: not known).
 * A relative path counts from there; NULL is the folder itself. Caller frees; NULL (ERR_INVALID)
 * when that is not known. */
char *remote_path_uri(const char *folder, const char *path, struct err *err);

/* What follows "remote:"; NULL for a path of this machine. Borrowed. */
const char *remote_path_of(const char *argument);
