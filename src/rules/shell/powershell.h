/* PowerShell writes its output in a code page unless it is told otherwise
 * (spec/exec-core.md 9.3). */
#pragma once

#include "base/strv.h"

#include <stdbool.h>

/* When `argv` is PowerShell with no other options than -NoLogo, -NoProfile and -Command or -c in
 * front of one script: appends it to `ret` with one line in front of the script that sets the
 * encoding of its output to UTF-8, and returns true. Otherwise, also when the line is there
 * already: false, and `ret` is as it was. */
bool powershell_use_utf8(char *const *argv, struct strv *ret);
