/* A command with ports that are published: where they listen outside. */
#pragma once

#include "base/err.h"
#include "policy/publication.h"

struct process;
struct process_options;

/* process_start(), with the ports that the policy of its sandbox says; nothing is started where one of them cannot be had.
 * `ret`: with those that they have got. */
struct process *publish_start(const struct process_options *options, struct publications *ret,
                              struct err *err);

/* One more, of a process that runs; `ret`, which is in the list then, too, is what it has got. Who has the port otherwise is
 * said, as far as it can be known. */
int publish_port(struct process *process, const struct publication *publication,
                 struct publications *list, struct publication *ret, struct err *err);
