/* Which rights Landlock handles, and why not all of them.
 *
 * With a mount namespace the tree is read-only already; Landlock adds what mounts let through
 * (writing to a FIFO or a device on a read-only mount, reopening a descriptor of the host's, chmod
 * by way of such a descriptor). Handling read or truncate rights would cost 20 % on `grep -r`
 * (measured); write rights cost 3 %. So only those are handled there, and reading is left to the
 * mounts. Without a mount namespace Landlock is all there is, and handles whatever the map narrows.
 *
 * What is missing and has to stay so can be covered by no mount. There the kernel refuses every
 * creation by Landlock, and the guard creates. Where there are no mounts at all, and something narrower is to be kept
 * so (`alone`), the kernel refuses all writing there, and the guard writes.
 */
#include "sandbox/linux/landlock.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/path.h"
#include "base/str.h"
#include "base/strv.h"
#include "sandbox/launcher/kernel.h"
#include "sandbox/linux/guard_map.h"

#include <stdlib.h>

#define CREATE_RIGHTS                                                                              \
    (K_LANDLOCK_MAKE_CHAR | K_LANDLOCK_MAKE_DIR | K_LANDLOCK_MAKE_REG | K_LANDLOCK_MAKE_SOCK |     \
     K_LANDLOCK_MAKE_FIFO | K_LANDLOCK_MAKE_BLOCK | K_LANDLOCK_MAKE_SYM)
#define WRITE_RIGHTS                                                                               \
    (K_LANDLOCK_WRITE_FILE | K_LANDLOCK_REMOVE_DIR | K_LANDLOCK_REMOVE_FILE | CREATE_RIGHTS)
#define READ_RIGHTS (K_LANDLOCK_EXECUTE | K_LANDLOCK_READ_FILE | K_LANDLOCK_READ_DIR)
#define FILE_RIGHTS                                                                                \
    (K_LANDLOCK_EXECUTE | K_LANDLOCK_WRITE_FILE | K_LANDLOCK_READ_FILE | K_LANDLOCK_TRUNCATE |     \
     K_LANDLOCK_IOCTL_DEV)

/* Devices that are usable in every sandbox. Each by itself, not by way of /dev: another device that
 * an entry shows there stays read-only, because a read-only mount does not make a device so. */
static const char *const harmless_devices[] = {
    "/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty",
};

/* And these when /dev is ours: the host's /dev/pts holds the user's other terminals. */
static const char *const own_devices[] = {"/dev/console", "/dev/ptmx", "/dev/pts"};

void landlock_rules_done(struct landlock_rules *rules)
{
    for (size_t i = 0; i < rules->len; i++)
        free(rules->items[i].path);
    free(rules->items);
    *rules = (struct landlock_rules){0};
}

static void rules_add(struct landlock_rules *rules, const char *path, uint64_t rights)
{
    if (!(rights & rules->handled))
        return;
    rules->items = alloc_grow(rules->items, rules->len, &rules->cap, sizeof *rules->items);
    rules->items[rules->len++] =
        (struct landlock_rule){.path = alloc_str(path), .rights = rights & rules->handled};
}

static bool has_by_guard(const struct access_map *map)
{
    for (size_t i = 0; i < map->len; i++)
        if (map->entries[i].is_by_guard)
            return true;
    return false;
}

static uint64_t rights_handled(const struct access_map *map, const struct landlock_spec *spec)
{
    bool is_root_writable = access_map_check(map, "/") == ACCESS_WRITE;
    uint64_t rights = 0;

    if (spec->has_mounts && spec->allow_nested_namespaces)
        return 0;
    if (is_root_writable)
        return guard_map_has_names(map, false)
                   ? CREATE_RIGHTS | (spec->abi >= 2 ? K_LANDLOCK_REFER : 0)
                   : 0;
    rights |= WRITE_RIGHTS;
    if (spec->abi >= 2)
        rights |= K_LANDLOCK_REFER; /* never allowed between directories unless handled */
    if (spec->abi >= 5)
        rights |= K_LANDLOCK_IOCTL_DEV;
    if (spec->abi >= 3 && has_by_guard(map))
        rights |= K_LANDLOCK_TRUNCATE;
    if (spec->has_mounts)
        return rights;
    if (spec->abi >= 3)
        rights |= K_LANDLOCK_TRUNCATE;
    if (!access_map_full_read(map))
        rights |= READ_RIGHTS;
    if (spec->alone)
        rights |= K_LANDLOCK_EXECUTE | K_LANDLOCK_READ_FILE;
    if (spec->alone && access_map_check(map, "/") != ACCESS_DENY)
        rights &= ~(uint64_t)K_LANDLOCK_READ_DIR; /* or none above what is denied could be listed */
    return rights;
}

bool landlock_guards_names(const struct access_map *map, const struct landlock_spec *spec)
{
    return spec->abi >= 1 && (rights_handled(map, spec) & CREATE_RIGHTS);
}

/* Something that may not be read lies in `dir`. The host's /dev has the disks, and the user's other terminals. */
static bool has_denied(const struct access_map *map, const struct landlock_alone *look,
                       const char *dir)
{
    if (str_eq(dir, "/") && !look->is_held)
        return true;
    for (size_t i = 0; i < map->len; i++)
        if (map->entries[i].access == ACCESS_DENY && map->entries[i].kind != ACCESS_MISSING &&
            path_is_within(map->entries[i].path, dir) &&
            !(look->is_held && look->is_held(map->entries[i].path, true)))
            return true;
    return false;
}

/* Rules for what is in `dir`, of which something is denied: `dirs` gets those in which something is, too. */
static void rules_for_readable(struct landlock_rules *rules, const struct access_map *map,
                               const struct landlock_alone *look, const char *dir,
                               struct strv *dirs)
{
    AUTO(strv_done) struct strv names = {0};
    size_t files;

    look->list_files(dir, &names);
    files = names.len;
    look->list_dirs(dir, &names);
    for (size_t i = 0; i < names.len; i++) {
        AUTO_FREE char *path = path_join(dir, names.items[i]);
        const bool is_file = i < files;
        const size_t before = rules->len;

        if (access_map_exact(map, path) || (str_eq(path, "/dev") && !look->is_held))
            continue;
        if (!is_file && has_denied(map, look, path)) {
            strv_push(dirs, path);
            continue;
        }
        rules_add(rules, path, is_file ? READ_RIGHTS & FILE_RIGHTS : READ_RIGHTS);
        if (rules->len == before)
            continue;
        rules->items[before].is_child = true;
        rules->items[before].is_file = is_file;
    }
}

/* To read at and below `top`, but for what is denied there. */
static void rules_for_reading(struct landlock_rules *rules, const struct access_map *map,
                              const struct landlock_alone *look, const char *top)
{
    AUTO(strv_done) struct strv dirs = {0};

    strv_push(&dirs, top);
    for (size_t i = 0; i < dirs.len; i++) {
        AUTO_FREE char *dir = alloc_str(dirs.items[i]);

        rules_for_readable(rules, map, look, dir, &dirs);
    }
}

/* Nothing at all keeps what is narrower below a writable directory but rules and the guard. */
static bool is_unmounted(const struct landlock_spec *spec)
{
    return spec->alone && !spec->alone->is_held;
}

static void rules_for_entry(struct landlock_rules *rules, const struct access_map *map,
                            const struct landlock_spec *spec, size_t index, bool is_guarded)
{
    const struct access_entry *entry = &map->entries[index];
    uint64_t rights = READ_RIGHTS;

    if (entry->access == ACCESS_DENY || entry->kind == ACCESS_MISSING)
        return;
    if (entry->access == ACCESS_WRITE)
        rights |= WRITE_RIGHTS | K_LANDLOCK_REFER | K_LANDLOCK_TRUNCATE | K_LANDLOCK_IOCTL_DEV;
    if (is_guarded)
        rights &= is_unmounted(spec) ? READ_RIGHTS : ~(CREATE_RIGHTS | K_LANDLOCK_REFER);
    if (entry->is_by_guard)
        rights &= ~(WRITE_RIGHTS | K_LANDLOCK_TRUNCATE);
    if (entry->kind == ACCESS_FILE)
        rights &= FILE_RIGHTS;
    if (spec->alone && entry->kind == ACCESS_DIR && has_denied(map, spec->alone, entry->path)) {
        rules_for_reading(rules, map, spec->alone, entry->path);
        rights &= ~READ_RIGHTS;
    }
    rules_add(rules, entry->path, rights);
}

/* A name that is held, or a guarded root, lies in `dir` or below it. */
static bool has_guarded(const struct access_map *map, const uint16_t *flags, const char *dir)
{
    for (size_t i = 0; i < map->len; i++)
        if (flags[i] && path_is_within(map->entries[i].path, dir))
            return true;
    return false;
}

/* The rules for the directories in `root`, in which nothing may be created directly. Those in which
 * something is guarded are roots again, and are put into `roots`. */
static void rules_for_children(struct landlock_rules *rules, const struct access_map *map,
                               const struct landlock_spec *spec, const uint16_t *flags,
                               const char *root, struct strv *roots)
{
    const struct access_entry *entry = access_map_exact(map, root);
    AUTO(strv_done) struct strv names = {0};

    spec->list_dirs(entry && entry->source ? entry->source : root, &names);
    for (size_t i = 0; i < names.len; i++) {
        AUTO_FREE char *path = path_join(root, names.items[i]);

        if (access_map_exact(map, path) || str_eq(path, "/dev") || str_eq(path, "/proc"))
            continue; /* it has rules of its own, or is narrower */
        if (has_guarded(map, flags, path)) {
            strv_push(roots, path);
        } else {
            rules_add(rules, path, CREATE_RIGHTS | K_LANDLOCK_REFER);
            rules->items[rules->len - 1].is_child = true;
        }
    }
}

/* Without a guard: what is left of creation. */
static void rules_without_guard(struct landlock_rules *rules, const struct access_map *map,
                                const struct landlock_spec *spec, const uint16_t *flags)
{
    AUTO(strv_done) struct strv roots = {0};

    for (size_t i = 0; i < map->len; i++)
        if (flags[i] & GUARD_ENTRY_ROOT)
            strv_push(&roots, map->entries[i].path);
    if (!access_map_find(map, "/") && access_map_check(map, "/") == ACCESS_WRITE)
        strv_push(&roots, "/");
    for (size_t i = 0; i < roots.len; i++) {
        AUTO_FREE char *root = alloc_str(roots.items[i]);

        rules_for_children(rules, map, spec, flags, root, &roots);
    }
}

static void rules_for_devices(struct landlock_rules *rules, bool is_ours)
{
    const uint64_t use =
        K_LANDLOCK_WRITE_FILE | K_LANDLOCK_IOCTL_DEV | K_LANDLOCK_READ_FILE | K_LANDLOCK_TRUNCATE;

    for (size_t i = 0; i < sizeof harmless_devices / sizeof *harmless_devices; i++)
        rules_add(rules, harmless_devices[i], use);
    if (!is_ours)
        return;
    for (size_t i = 0; i < sizeof own_devices / sizeof *own_devices; i++)
        rules_add(rules, own_devices[i], use);
    rules_add(rules, "/dev/shm", WRITE_RIGHTS | K_LANDLOCK_REFER);
    rules_add(rules, "/dev/mqueue", WRITE_RIGHTS); /* for mq_open(3), too, which names no path */
    rules_add(rules, "/proc", K_LANDLOCK_WRITE_FILE);
}

bool landlock_compile(const struct access_map *map, const struct landlock_spec *spec,
                      struct landlock_rules *ret)
{
    AUTO_FREE uint16_t *flags = guard_map_entry_flags(map, is_unmounted(spec));
    struct landlock_rules rules = {0};

    if (spec->abi < 1)
        return false;
    rules.handled = rights_handled(map, spec);
    if (spec->abi >= 4 && spec->refuses_tcp)
        rules.handled_network = K_LANDLOCK_BIND_TCP | K_LANDLOCK_CONNECT_TCP;
    if (spec->abi >= LANDLOCK_SCOPES_ABI)
        rules.scopes = K_LANDLOCK_SCOPE_SIGNAL | K_LANDLOCK_SCOPE_ABSTRACT_UNIX;
    if (!rules.handled && !rules.handled_network && !rules.scopes)
        return false;
    for (size_t i = 0; i < map->len; i++)
        rules_for_entry(&rules, map, spec, i, flags[i] & GUARD_ENTRY_ROOT);
    if (spec->list_dirs && (rules.handled & CREATE_RIGHTS))
        rules_without_guard(&rules, map, spec, flags);
    rules_for_devices(&rules, spec->has_mounts || (spec->alone && spec->alone->is_held));
    *ret = rules;
    return true;
}
