/* What of a sandbox is the guard's: for which wishes and maps one is of use, for which it has to be there, and what the
 * filter asks it about. Without a listener of our own nobody is asked; what changes modes, owners and times ends then where
 * mounts, or those of a sandbox around, make it end. */
#include "sandbox/linux/plan.h"

#include "base/auto.h"
#include "base/path.h"
#include "sandbox/linux/guard_map.h"
#include "sandbox/linux/landlock.h"

#include <sched.h>

static bool asks_sockets(const struct access_map *map, uint32_t namespaces)
{
    return map->network == NETWORK_ENABLED ||
           (!network_is_hosts(map->network) && (namespaces & CLONE_NEWNET));
}

bool plan_wants_guard(const struct access_map *map, uint32_t namespaces, unsigned wishes)
{
    return (wishes & (PLAN_FACTS | PLAN_EXEC | PLAN_JUDGE)) || asks_sockets(map, namespaces) ||
           guard_map_has_names(map, wishes & PLAN_ALONE);
}

bool plan_needs_guard(const struct access_map *map, unsigned wishes)
{
    return (wishes & PLAN_ALONE) && guard_map_has_names(map, true);
}

bool plan_is_led(const struct access_map *map, const struct plan_host *host)
{
    return map->network == NETWORK_PROXIED && !host->has_redirect;
}

/* Programs may lie in what is denied. */
static bool hides_programs(const struct access_map *map)
{
    for (size_t i = 0; i < map->len; i++)
        if (map->entries[i].access == ACCESS_DENY && map->entries[i].kind != ACCESS_MISSING)
            return true;
    return access_map_check(map, "/") == ACCESS_DENY;
}

/* What comes to be beside it cannot be read by a rule of Landlock's. */
static bool denies_below_writable(const struct access_map *map)
{
    for (size_t i = 0; i < map->len; i++) {
        AUTO_FREE char *parent = path_parent(map->entries[i].path);

        if (map->entries[i].access == ACCESS_DENY && map->entries[i].kind != ACCESS_MISSING &&
            access_map_check(map, parent) == ACCESS_WRITE)
            return true;
    }
    return false;
}

void plan_ask_guard(const struct access_map *map, const struct plan_host *host, unsigned wishes,
                    struct seccomp_spec *spec)
{
    if (!host->has_listener) {
        spec->performs =
            host->has_around && !spec->has_mount_namespace && host->writes_no_more(map);
        return;
    }
    spec->performs = plan_needs_guard(map, wishes);
    spec->asks_names = guard_map_has_names(map, wishes & PLAN_ALONE);
    spec->asks_facts = (wishes & PLAN_FACTS) || spec->performs;
    spec->asks_reads = spec->asks_facts &&
                       ((wishes & PLAN_READS) || (spec->performs && denies_below_writable(map)));
    spec->asks_descriptors = spec->performs || (spec->asks_facts && (wishes & PLAN_DESCRIPTORS));
    spec->asks_signals =
        spec->asks_facts && !spec->has_pid_namespace && host->landlock >= LANDLOCK_SCOPES_ABI;
    spec->asks_sockets = asks_sockets(map, host->namespaces);
    spec->asks_datagrams = spec->asks_facts && map->network == NETWORK_PROXIED;
    spec->asks_exec =
        (wishes & (PLAN_EXEC | PLAN_JUDGE)) || (spec->asks_facts && hides_programs(map));
}
