/* What a call is about: one of its paths, followed as far as the call follows it. */
#pragma once

#include "guard/place.h"

struct object {
    struct place place;
    char path[PATH_MAX]; /* canonical, as the command sees it */
    struct stat st;
    bool exists;
    bool is_name;    /* the name itself is made, removed or moved */
    bool is_denied;  /* by the profile, whose deciding entry is `entry` */
    bool is_refused; /* we tried, and the name or a mount was in the way */
    bool is_closed;  /* nobody is asked about it */
    int entry;
};

#define AUTO_OBJECT AUTO(object_done)
#define NO_OBJECT ((struct object){.place = {.dir = -1, .lock = -1}})

static inline void object_done(struct object *object)
{
    place_done(&object->place);
}
