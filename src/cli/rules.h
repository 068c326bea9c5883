/* What `cordon rules check` says for people; `cordon explain` says it, too. */
#pragma once

struct buf;
struct rules_check;

void rules_check_print(const struct rules_check *check, struct buf *text);
