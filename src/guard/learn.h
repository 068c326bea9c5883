/* What is opened only to be read (watch = "learn"). */
#pragma once

#include "guard/object.h"

/* Tells that the object of an open with these flags is read, or that the profile is in the way of it. What
 * could not be found has the path that the call says; "": not even that. */
void learn_read(const struct request *request, const struct object *object, unsigned flags);
