/* Small allocations end the program when memory is out: there is no sensible way on, and no
 * caller has to pretend that there is (docs/decisions/0003-allocation.md). Anything sized by a
 * peer is checked against a limit before it comes here. All results are freed with free(). */
#pragma once

#include <stddef.h>

void *alloc_zero(size_t count, size_t size);
void *alloc_resize(void *block, size_t count, size_t size);
char *alloc_str(const char *text); /* NULL stays NULL */
char *alloc_strn(const char *text, size_t len);
char *alloc_strf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Makes room for one more item: grows `*items` (of `size` bytes each) when `len` reaches `*cap`. */
void *alloc_grow(void *items, size_t len, size_t *cap, size_t size);
