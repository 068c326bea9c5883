/* See profile_overlay.h. An overlay only ever adds; what it asks for is judged by whoever grants
 * it, and its entries take part in the usual rules of precedence. */
#include "policy/profile_overlay.h"

#include "base/alloc.h"
#include "base/path.h"
#include "base/str.h"

#include <stdlib.h>

void profile_overlay_done(struct profile_overlay *overlay)
{
    profile_entries_done(&overlay->entries);
    *overlay = (struct profile_overlay){0};
}

bool profile_overlay_is_empty(const struct profile_overlay *overlay)
{
    return overlay->network != OVERLAY_NETWORK_ENABLED && overlay->entries.len == 0;
}

static bool entries_have(const struct profile_entries *entries, const struct profile_entry *wanted)
{
    for (size_t i = 0; i < entries->len; i++)
        if (profile_entry_equal(&entries->items[i], wanted))
            return true;
    return false;
}

static void entries_add_new(struct profile_entries *entries, const struct profile_entry *entry)
{
    if (!entries_have(entries, entry))
        profile_entries_add(entries, entry);
}

int profile_overlay_normalise(struct profile_overlay *overlay, struct err *err)
{
    struct profile_entries kept = {0};

    for (size_t i = 0; i < overlay->entries.len; i++) {
        struct profile_entry *entry = &overlay->entries.items[i];

        if (entry->path_kind == PROFILE_PATH_GLOB && entry->access != ACCESS_DENY) {
            profile_entries_done(&kept);
            return err_set(err, ERR_INVALID, "%s: the pattern %s can only deny", entry->origin,
                           entry->path);
        }
        if (entry->path_kind == PROFILE_PATH_LITERAL && !path_is_clean(entry->path)) {
            char *clean = path_clean("/", entry->path);

            free(entry->path);
            entry->path = clean;
        }
        entries_add_new(&kept, entry);
    }
    profile_entries_done(&overlay->entries);
    overlay->entries = kept;
    return 0;
}

static bool is_enabled(const struct profile_overlay *overlay)
{
    return overlay->network == OVERLAY_NETWORK_ENABLED;
}

void profile_overlay_merge(const struct profile_overlay *a, const struct profile_overlay *b,
                           struct profile_overlay *ret)
{
    struct profile_overlay merged = {.network = a->network ? a->network : b->network};

    if (is_enabled(a) || is_enabled(b))
        merged.network = OVERLAY_NETWORK_ENABLED;
    merged.glob_scan_max_depth = a->glob_scan_max_depth > b->glob_scan_max_depth
                                     ? a->glob_scan_max_depth
                                     : b->glob_scan_max_depth;
    for (size_t i = 0; i < a->entries.len; i++)
        entries_add_new(&merged.entries, &a->entries.items[i]);
    for (size_t i = 0; i < b->entries.len; i++)
        entries_add_new(&merged.entries, &b->entries.items[i]);
    *ret = merged;
}

void profile_overlay_intersect(const struct profile_overlay *requested,
                               const struct profile_overlay *granted, struct profile_overlay *ret)
{
    struct profile_overlay both = {.glob_scan_max_depth = granted->glob_scan_max_depth};

    if (is_enabled(requested) && is_enabled(granted))
        both.network = OVERLAY_NETWORK_ENABLED;
    for (size_t i = 0; i < requested->entries.len; i++)
        if (entries_have(&granted->entries, &requested->entries.items[i]))
            entries_add_new(&both.entries, &requested->entries.items[i]);
    *ret = both;
}

void profile_overlay_apply(struct profile *profile, const struct profile_overlay *overlay)
{
    if (profile->kind == PROFILE_DISABLED)
        return;
    if (is_enabled(overlay) && profile->network == NETWORK_RESTRICTED)
        profile->network = NETWORK_ENABLED;
    if (profile->kind != PROFILE_MANAGED || profile->files != PROFILE_FILES_RESTRICTED)
        return;
    /* 0 is no limit for a profile, which is deeper than any */
    if (profile->glob_scan_max_depth && overlay->glob_scan_max_depth > profile->glob_scan_max_depth)
        profile->glob_scan_max_depth = overlay->glob_scan_max_depth;
    for (size_t i = 0; i < overlay->entries.len; i++)
        entries_add_new(&profile->entries, &overlay->entries.items[i]);
}
