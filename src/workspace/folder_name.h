#pragma once

/* The name of a folder in which something is kept for one workspace, outside of it: something of the path as
 * people know it, and enough of its hash to be the only one. `root` is canonical. Caller frees. */
char *folder_name(const char *root);
