/* What is changed by a descriptor of the caller's: the call names no path. */
#pragma once

#include "guard/object.h"

bool descriptor_is_meant(const struct request *request);

/* The caller opened it by a read-only mount: the kernel refuses to change it, whatever there may be by
 * another mount. All else the kernel does by itself. */
bool descriptor_is_read_only(const struct request *request);

/* Looks it up by the path that it has, as a call by path would be; it has to be the file that is there. false:
 * it is not, or the call would fail. */
bool descriptor_find(const struct request *request, struct object *ret);
