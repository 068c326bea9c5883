/* `cordon accept -i`: a person goes through the changes of a layer, file by file, hunk by hunk where that is wanted. */
#pragma once

#include "cli/review_terminal.h"
#include "layer/accept.h"
#include "layer/change.h"
#include "layer/layer.h"

/* Asks about each, and accepts at the end what was said yes to: in one go, but for files of which just a part was taken, which
 * are one each. The result is that of all; `accept` of it the last. Who is interrupted has done nothing. -1 like change_accept(). */
int review_run(struct review_terminal *terminal, struct layer *layer, const struct changes *changes,
               const char *cwd, struct accept_result *ret, struct err *err);
