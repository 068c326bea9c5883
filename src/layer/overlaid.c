/* See opaque.h. By /proc/self/fd, since the calls that take a descriptor want one that is open for reading. */
#include "layer/overlaid.h"

#include "base/sys.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <sys/xattr.h>

enum { PLACE_MAX = 64 + NAME_MAX };

static const char opaque[] = "user.overlay.opaque";

static void place_of(int dir, const char *name, char ret[PLACE_MAX])
{
    snprintf(ret, PLACE_MAX, "/proc/self/fd/%d%s%s", dir, name ? "/" : "", name ? name : "");
}

bool overlaid_is_opaque(int dir, const char *name)
{
    char place[PLACE_MAX], value[2];

    place_of(dir, name, place);
    return (name ? lgetxattr(place, opaque, value, sizeof value)
                 : getxattr(place, opaque, value, sizeof value)) == 1 &&
           *value == 'y';
}

int overlaid_set_opaque(int dir, const char *name)
{
    char place[PLACE_MAX];

    place_of(dir, name, place);
    if (sys_fault())
        return -1;
    return name ? lsetxattr(place, opaque, "y", 1, 0) : setxattr(place, opaque, "y", 1, 0);
}

int overlaid_clear_opaque(int dir)
{
    char place[PLACE_MAX];

    place_of(dir, NULL, place);
    return sys_fault() || (removexattr(place, opaque) && errno != ENODATA) ? -1 : 0;
}

bool overlaid_is_copy(int dir, const char *name)
{
    char place[PLACE_MAX];

    place_of(dir, name, place);
    return lgetxattr(place, "user.overlay.origin", NULL, 0) >= 0;
}
