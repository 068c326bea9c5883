/* Whether the layers that a host gives can express an access map, before anything is compiled. What they cannot is refused, with
 * what would help. */
#include "sandbox/linux/plan.h"

#include "base/auto.h"
#include "base/path.h"
#include "base/str.h"
#include "sandbox/linux/guard_map.h"
#include "sandbox/linux/landlock.h"

#include <sched.h>
#include <string.h>

/* What decides about the directory that holds `path`. Nothing of the host's devices is to be had but what an entry names. */
static enum access access_around(const struct access_map *map, const char *path)
{
    AUTO_FREE char *parent = path_parent(path);

    if (path_is_within(path, "/dev") && !str_eq(path, "/dev"))
        return ACCESS_DENY;
    return access_map_check(map, path[1] ? parent : path);
}

/* A name that is missing can only be kept from being made by the guard, or, closely, by Landlock. */
static int check_names(const struct access_map *map, const struct plan_host *host, unsigned wishes,
                       struct err *err)
{
    const struct landlock_spec landlock = {
        .abi = host->landlock,
        .has_mounts = host->namespaces & CLONE_NEWNS,
        .allow_nested_namespaces = wishes & PLAN_NESTED_NAMESPACES,
    };

    for (size_t i = 0; i < map->len; i++)
        if (map->entries[i].allows_commits && !host->has_listener)
            return err_set(err, ERR_UNSUPPORTED,
                           "--git commit needs the guard, and none can be asked on this host: "
                           "`cordon doctor` tells more, or choose --git read");
    if (host->has_listener || host->has_around || landlock_guards_names(map, &landlock) ||
        !guard_map_has_names(map, false))
        return 0;
    return err_set(err, ERR_UNSUPPORTED,
                   "protected names that do not exist cannot be kept so: no guard can be asked on "
                   "this host, and %s: `cordon doctor` tells more, or accept no sandbox with "
                   "--sandbox disabled",
                   host->landlock ? "Landlock does not go with nested namespaces"
                                  : "there is no Landlock");
}

/* What is asked of Landlock and the guard by themselves, they can do. */
static int check_alone(const struct access_map *map, const struct plan_host *host, unsigned wishes,
                       struct err *err)
{
    if (host->landlock < 3)
        return err_set(err, ERR_UNSUPPORTED,
                       "--sandbox landlock needs Landlock ABI 3 (Linux 6.2, lsm=landlock); here it "
                       "is %d: enable user namespaces (`cordon doctor` tells how), or choose "
                       "--sandbox disabled",
                       host->landlock);
    if (wishes & PLAN_NESTED_NAMESPACES)
        return err_set(err, ERR_UNSUPPORTED,
                       "--sandbox landlock and allow_nested_namespaces exclude each other: choose "
                       "a profile without it");
    if (access_map_check(map, "/") == ACCESS_WRITE && plan_needs_guard(map, wishes))
        return err_set(err, ERR_UNSUPPORTED,
                       "with --sandbox landlock nothing can be narrower where / is writable: "
                       "name the folders that are to be writable instead");
    if (plan_needs_guard(map, wishes) && !host->has_listener)
        return err_set(err, ERR_UNSUPPORTED,
                       "--sandbox landlock needs the guard where names in a writable folder are "
                       "protected: choose --profile read-only or --sandbox disabled");
    return 0;
}

/* Without mounts of our own: by the guard around (a name that is missing), its mounts, or, where nothing can come to be
 * beside it, by rules of Landlock's for each of its neighbours. */
static bool is_kept_around(const struct access_map *map, const struct plan_host *host,
                           const struct access_entry *entry)
{
    const bool is_denied = entry->access == ACCESS_DENY;

    if (!host->has_around)
        return false;
    return entry->kind == ACCESS_MISSING || host->is_held(entry->path, is_denied) ||
           (is_denied && access_around(map, entry->path) == ACCESS_READ);
}

/* Landlock adds up rights from the root down and cannot take any away again, so it alone can
 * express a map only when no entry is narrower than the one around it. */
static int check_without_mounts(const struct access_map *map, const struct plan_host *host,
                                unsigned wishes, struct err *err)
{
    static const char remedy[] =
        "enable user namespaces (`cordon doctor` says how), or --sandbox landlock "
        "(weaker), --profile read-only or --sandbox disabled";
    static const char of_closed[] =
        "enable user namespaces (`cordon doctor` says how), or --sandbox landlock "
        "(weaker) or --sandbox disabled";

    if ((wishes & PLAN_ALONE) && !host->has_around)
        return check_alone(map, host, wishes, err);
    for (size_t i = 0; i < map->len; i++) {
        const struct access_entry *entry = &map->entries[i];
        bool is_closed = entry->is_protected && entry->access == ACCESS_DENY;

        if (entry->access >= access_around(map, entry->path) || is_kept_around(map, host, entry))
            continue;
        return err_set(err, ERR_UNSUPPORTED, "without namespaces %s%s cannot be kept %s: %s",
                       strlen(entry->path) > 60 ? "..." : "",
                       entry->path + (strlen(entry->path) > 60 ? strlen(entry->path) - 60 : 0),
                       entry->access == ACCESS_DENY ? "unreadable" : "read-only",
                       is_closed ? of_closed : remedy);
    }
    if (host->landlock < 3 && map->restricted && !access_map_full_write(map))
        return err_set(err, ERR_UNSUPPORTED, "neither namespaces nor Landlock (ABI 3): %s", remedy);
    return 0;
}

int plan_check(const struct access_map *map, const struct plan_host *host, unsigned wishes,
               struct err *err)
{
    if (map->network == NETWORK_PROXIED && !(host->namespaces & CLONE_NEWNET))
        return err_set(
            err, ERR_UNSUPPORTED,
            "a proxied network needs a network namespace, and there is none: enable user "
            "namespaces (`cordon doctor` says how), or choose --network restricted");
    if (plan_is_led(map, host) && !host->has_listener)
        return err_set(err, ERR_UNSUPPORTED,
                       "a proxied network needs nf_tables and nf_nat of the kernel (modules "
                       "nft_redir, nf_nat), or the "
                       "guard, and there is neither: `cordon doctor` tells more, or choose "
                       "--network restricted");
    if (!(host->namespaces & CLONE_NEWNS) && check_without_mounts(map, host, wishes, err))
        return -1;
    return check_names(map, host, wishes, err);
}
