/* See learn.h. Below a mask there is nothing to be seen, so what the path says has to do there. */
#include "guard/learn.h"

#include "base/auto.h"
#include "guard/facts.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

void learn_read(const struct request *request, const struct object *object, unsigned flags)
{
    const struct map *map = &request->command->map;
    const int entry = map_find(map, object->path);
    const bool is_masked = map_access(map, entry) == GUARD_DENY;
    const struct fact fact = {.operation = GUARD_OP_READ,
                              .path = object->path,
                              .entry = is_masked ? entry : GUARD_NO_ENTRY,
                              .error = is_masked ? EACCES : 0};
    AUTO_CLOSE int outside = -1;

    if (!*object->path || map_is_ours(object->path))
        return;
    if (is_masked) {
        outside = place_open_host(request->command->outside, object->path, 0);
        if (outside >= 0 && place_permits(request->command, object->path, R_OK) &&
            request_is_valid(request))
            facts_tell(request, &fact);
    } else if (object->exists &&
               (S_ISDIR(object->st.st_mode) ||
                (S_ISREG(object->st.st_mode) && !(flags & O_DIRECTORY))) &&
               faccessat(object->place.dir, object->place.name, R_OK, AT_EACCESS) == 0 &&
               request_is_valid(request)) {
        facts_tell_done(request, &fact);
    }
}
