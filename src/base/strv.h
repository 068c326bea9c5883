/* A list of owned strings, always NULL-terminated behind `len`, so `items` is an argv or envp. */
#pragma once

#include "base/alloc.h"

#include <stdbool.h>
#include <stddef.h>

struct strv {
    char **items; /* NULL while the list has never held anything */
    size_t len;
    size_t cap;
};

void strv_done(struct strv *strv);
void strv_push(struct strv *strv, const char *text); /* copies */
void strv_push_take(struct strv *strv, char *text);  /* takes ownership of `text` */
#define strv_pushf(strv, ...) strv_push_take(strv, alloc_strf(__VA_ARGS__))
void strv_push_all(struct strv *strv, char *const *items); /* NULL-terminated; NULL is empty */
void strv_sort(struct strv *strv);                         /* bytewise */
bool strv_has(const struct strv *strv, const char *text);

/* NULL-terminated view; an empty list gives a pointer to NULL. */
char *const *strv_view(const struct strv *strv);
