/* Lists of names in one text, as they are read best: "cd echo false". */
#pragma once

#include <stdbool.h>

/* `name` is one of the words of `list`, which are separated by blanks. */
bool name_list_has(const char *list, const char *name);
