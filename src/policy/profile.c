/* See profile.h: the value and its built-in forms. Text forms are in profile_text.c (people) and
 * profile_json.c (programs). */
#include "policy/profile.h"

#include "base/alloc.h"
#include "base/str.h"

#include <stdlib.h>

static void profile_entry_done(struct profile_entry *entry)
{
    free(entry->path);
    free(entry->subpath);
    free(entry->origin);
}

void profile_entries_done(struct profile_entries *entries)
{
    for (size_t i = 0; i < entries->len; i++)
        profile_entry_done(&entries->items[i]);
    free(entries->items);
    *entries = (struct profile_entries){0};
}

void profile_entries_add(struct profile_entries *entries, const struct profile_entry *entry)
{
    struct profile_entry *copy;

    entries->items =
        alloc_grow(entries->items, entries->len, &entries->cap, sizeof *entries->items);
    copy = &entries->items[entries->len++];
    *copy = *entry;
    copy->path = alloc_str(entry->path);
    copy->subpath = alloc_str(entry->subpath);
    copy->origin = alloc_str(entry->origin ? entry->origin : "permission profile");
}

void profile_done(struct profile *profile)
{
    profile_entries_done(&profile->entries);
    free(profile->id);
    free(profile->extends);
    *profile = (struct profile){0};
}

void profile_copy(const struct profile *profile, struct profile *ret)
{
    struct profile copy = *profile;

    copy.entries = (struct profile_entries){0};
    for (size_t i = 0; i < profile->entries.len; i++)
        profile_add(&copy, &profile->entries.items[i]);
    copy.id = alloc_str(profile->id);
    copy.extends = alloc_str(profile->extends);
    *ret = copy;
}

void profile_add(struct profile *profile, const struct profile_entry *entry)
{
    profile_entries_add(&profile->entries, entry);
}

static void profile_add_special(struct profile *profile, enum profile_path_kind kind,
                                enum access access, const char *origin)
{
    /* profile_add() copies, and only reads */
    struct profile_entry entry = {.path_kind = kind, .access = access, .origin = (char *)origin};

    profile_add(profile, &entry);
}

void profile_init_read_only(struct profile *ret, enum network_access network)
{
    *ret = (struct profile){.network = network};
    profile_add_special(ret, PROFILE_PATH_ROOT, ACCESS_READ, "built-in read-only");
}

void profile_init_workspace_write(struct profile *ret, const struct profile_workspace *options)
{
    const char *origin = options->origin ? options->origin : "built-in workspace-write";

    *ret = (struct profile){.network = options->network};
    profile_add_special(ret, PROFILE_PATH_ROOT, ACCESS_READ, origin);
    profile_add_special(ret, PROFILE_PATH_PROJECT_ROOTS, ACCESS_WRITE, origin);
    if (!(options->exclude & PROFILE_EXCLUDE_SLASH_TMP))
        profile_add_special(ret, PROFILE_PATH_SLASH_TMP, ACCESS_WRITE, origin);
    if (!(options->exclude & PROFILE_EXCLUDE_TMPDIR))
        profile_add_special(ret, PROFILE_PATH_TMPDIR, ACCESS_WRITE, origin);
    for (size_t i = 0; options->extra_roots && options->extra_roots[i]; i++) {
        struct profile_entry entry = {.path_kind = PROFILE_PATH_LITERAL,
                                      .access = ACCESS_WRITE,
                                      .path = options->extra_roots[i],
                                      .origin = (char *)origin};

        profile_add(ret, &entry);
    }
}

void profile_init_danger_full_access(struct profile *ret)
{
    *ret = (struct profile){
        .kind = PROFILE_DISABLED, .files = PROFILE_FILES_UNRESTRICTED, .network = NETWORK_ENABLED};
}

bool profile_init_builtin(struct profile *ret, const char *name)
{
    if (str_eq(name, ":read-only") || str_eq(name, "read-only"))
        profile_init_read_only(ret, NETWORK_RESTRICTED);
    else if (str_eq(name, ":workspace") || str_eq(name, "workspace-write"))
        profile_init_workspace_write(ret, &(struct profile_workspace){0});
    else if (str_eq(name, ":danger-full-access") || str_eq(name, "danger-full-access"))
        profile_init_danger_full_access(ret);
    else
        return false;
    ret->id = alloc_str(name);
    return true;
}

static bool text_equal(const char *a, const char *b)
{
    return a && b ? str_eq(a, b) : a == b;
}

bool profile_entry_equal(const struct profile_entry *a, const struct profile_entry *b)
{
    return a->path_kind == b->path_kind && a->access == b->access && a->missing == b->missing &&
           text_equal(a->path, b->path) && text_equal(a->subpath, b->subpath);
}
