/* Every request that a client may send; the table is made of schema/ by scripts/schema. */
#pragma once

#include "server/call.h"
#include "server/schema.h"

/* When it may be used. */
enum method_state {
    METHOD_ANY,   /* at any time */
    METHOD_READY, /* behind initialize and initialized */
};

struct method {
    const char *name;
    enum method_state state;
    bool is_control;             /* also when CALLS_MAX requests of the connection wait already */
    const char *family;          /* "client must call initialize before using ... methods" */
    const struct schema *params; /* NULL: it takes none */
    size_t params_size;          /* of their struct (methods.gen.h); 0: none */
    void (*handle)(struct call *call, const void *params);
};

extern const struct method methods[]; /* ordered by name */
extern const size_t methods_len;
