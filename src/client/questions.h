/* What the server asks while a command runs, shown to the person at our terminal, one question after the
 * other. Where there is none, and as long as nobody answers, it is a no there. */
#pragma once

#include <stdbool.h>

struct connection;
struct questions;

/* `on_lend`: the terminal is needed for a question, or is not any more; what reads it otherwise has to
 * leave it alone meanwhile. Never NULL. */
struct questions *questions_new(struct connection *connection,
                                void (*on_lend)(void *data, bool is_lent), void *data);

/* Before the connection; safe on NULL. */
void questions_free(struct questions *questions);
