/* Which program applies patches inside of sandboxes. */
#pragma once

/* Absolute: the static `cordon` beside this program or where it is installed. Caller frees; NULL
 * when there is none. */
char *patch_program_find(void);
