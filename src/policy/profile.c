/* See profile.h: the value, its built-in forms, entries as people write them, and overlays. What
 * programs write is in profile_json.c.
 *
 * The text of an entry is the same on the command line and as a key of config.toml. Nothing here
 * looks at the disk: a path is cleaned as text. An overlay only ever adds; what it asks for is
 * judged by the one who grants it, and its entries take part in the usual rules of precedence. */
#include "policy/profile.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/path.h"
#include "base/str.h"
#include "base/utf8.h"
#include "policy/glob.h"

#include <stdlib.h>
#include <string.h>

const char *const profile_git_words[] = {"read", "commit", NULL};
const char *const profile_judge_words[] = {"command", "every-exec", NULL};
const char *const profile_watch_words[] = {"facts", "off", "ask", "learn", NULL};
const char *const profile_tmp_words[] = {"host", "private", NULL};

static void profile_entries_done(struct profile_entries *entries)
{
    for (size_t i = 0; i < entries->len; i++) {
        free(entries->items[i].path);
        free(entries->items[i].subpath);
        free(entries->items[i].origin);
    }
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
    profile_entries_done(&profile->unix_sockets);
    network_policy_done(&profile->network_policy);
    free(profile->id);
    free(profile->extends);
    *profile = (struct profile){0};
}

void profile_copy(const struct profile *profile, struct profile *ret)
{
    struct profile copy = *profile;

    copy.entries = (struct profile_entries){0};
    for (size_t i = 0; i < profile->entries.len; i++)
        profile_entries_add(&copy.entries, &profile->entries.items[i]);
    copy.unix_sockets = (struct profile_entries){0};
    for (size_t i = 0; i < profile->unix_sockets.len; i++)
        profile_entries_add(&copy.unix_sockets, &profile->unix_sockets.items[i]);
    network_policy_copy(&profile->network_policy, &copy.network_policy);
    copy.id = alloc_str(profile->id);
    copy.extends = alloc_str(profile->extends);
    *ret = copy;
}

static void profile_add_special(struct profile *profile, enum profile_path_kind kind,
                                enum access access, const char *origin)
{
    /* it is copied, and only read */
    struct profile_entry entry = {.path_kind = kind,
                                  .access = access,
                                  .is_of_host_tmp =
                                      kind == PROFILE_PATH_SLASH_TMP || kind == PROFILE_PATH_TMPDIR,
                                  .origin = (char *)origin};

    profile_entries_add(&profile->entries, &entry);
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

        profile_entries_add(&ret->entries, &entry);
    }
}

void profile_init_danger_full_access(struct profile *ret)
{
    *ret = (struct profile){
        .kind = PROFILE_DISABLED, .files = PROFILE_FILES_UNRESTRICTED, .network = NETWORK_ENABLED};
}

const char *profile_builtin_name(const char *name)
{
    static const char *const names[][2] = {{":read-only", "read-only"},
                                           {":workspace", "workspace-write"},
                                           {":danger-full-access", "danger-full-access"}};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (str_eq(name, names[i][0]) || str_eq(name, names[i][1]))
            return names[i][1];
    return NULL;
}

bool profile_init_builtin(struct profile *ret, const char *name)
{
    const char *builtin = profile_builtin_name(name);

    if (!builtin)
        return false;
    if (str_eq(builtin, "read-only"))
        profile_init_read_only(ret, NETWORK_RESTRICTED);
    else if (str_eq(builtin, "workspace-write"))
        profile_init_workspace_write(ret, &(struct profile_workspace){0});
    else
        profile_init_danger_full_access(ret);
    ret->tmp = PROFILE_TMP_PRIVATE;
    ret->id = alloc_str(builtin);
    return true;
}

static bool text_equal(const char *a, const char *b)
{
    return a && b ? str_eq(a, b) : a == b;
}

bool profile_entry_equal(const struct profile_entry *a, const struct profile_entry *b)
{
    return a->path_kind == b->path_kind && a->access == b->access && a->missing == b->missing &&
           a->asks == b->asks && text_equal(a->path, b->path) && text_equal(a->subpath, b->subpath);
}

/* --- entries as people write them --- */

static const struct special {
    const char *name;
    enum profile_path_kind kind;
} specials[] = {
    {":root", PROFILE_PATH_ROOT},
    {":minimal", PROFILE_PATH_MINIMAL},
    {":workspace_roots", PROFILE_PATH_PROJECT_ROOTS},
    {":project_roots", PROFILE_PATH_PROJECT_ROOTS},
    {":tmpdir", PROFILE_PATH_TMPDIR},
    {":slash_tmp", PROFILE_PATH_SLASH_TMP},
    {":gpu", PROFILE_PATH_GPU},
    {NULL, PROFILE_PATH_UNKNOWN},
};

static const struct special *special_find(const char *name)
{
    const struct special *special = specials;

    while (special->name && !str_eq(special->name, name))
        special++;
    return special;
}

int profile_add_socket(struct profile *profile, const struct profile_text *options, struct err *err)
{
    AUTO(profile_done) struct profile single = {0};
    struct profile_text text = *options;

    text.access = ACCESS_DENY; /* as only that takes patterns, which are refused here */
    text.unknown = PROFILE_UNKNOWN_REFUSE;
    if (profile_add_text(&single, &text, err))
        return -1;
    single.entries.items[0].access = ACCESS_READ;
    if (single.entries.items[0].path_kind != PROFILE_PATH_LITERAL)
        return err_set(err, ERR_INVALID, "\"%s\" is not the path of a socket", options->text);
    profile_entries_add(&profile->unix_sockets, &single.entries.items[0]);
    return 0;
}

bool profile_text_is_special(const char *name)
{
    return special_find(name)->name != NULL;
}

bool profile_subpath_is_valid(const char *subpath)
{
    AUTO_FREE char *absolute = alloc_strf("/%s", subpath);

    return *subpath && path_is_clean(absolute);
}

static bool is_pattern(const char *text)
{
    return glob_has_meta(text) || glob_has_escape(text);
}

/* "DIR/" and two stars becomes DIR, for accesses other than deny. Changes and returns `text`. */
static char *strip_tree(char *text, enum access access)
{
    if (access != ACCESS_DENY && str_ends(text, "/**"))
        text[strlen(text) - 3] = '\0';
    return text;
}

static void add_entry(struct profile *profile, const struct profile_text *options,
                      enum profile_path_kind kind, const char *path, const char *subpath)
{
    /* it is copied, and only read */
    struct profile_entry entry = {.path_kind = kind,
                                  .access = options->access,
                                  .asks = options->asks,
                                  .path = (char *)path,
                                  .subpath = (char *)subpath,
                                  .origin = (char *)options->origin};

    profile_entries_add(&profile->entries, &entry);
}

/* Adds a pattern, absolute or relative to the workspace; one without a live character is the path
 * that it escapes. Whether a pattern is a good one can be said at once; where it starts does not
 * matter for that. It has to be UTF-8, because JSON could not carry it otherwise. */
static int add_pattern(struct profile *profile, const struct profile_text *options, char *pattern,
                       struct err *err)
{
    AUTO_FREE char *absolute = NULL;
    struct glob *glob;

    strip_tree(pattern, options->access);
    if (!glob_has_meta(pattern)) {
        AUTO_FREE char *plain = glob_unescape(pattern);
        AUTO_FREE char *path = path_clean("/", plain);

        add_entry(profile, options, PROFILE_PATH_LITERAL, path, NULL);
        return 0;
    }
    if (options->access != ACCESS_DENY)
        return err_set(
            err, ERR_INVALID,
            "the pattern \"%s\" can only deny; to allow a whole directory, name the directory",
            options->text);
    if (options->asks)
        return err_set(err, ERR_INVALID,
                       "the pattern \"%s\" can only deny; to be asked, name each path",
                       options->text);
    if (!utf8_is_valid(pattern, strlen(pattern)))
        return err_set(err, ERR_INVALID, "a pattern is not UTF-8");
    absolute = pattern[0] == '/' ? alloc_str(pattern) : path_join("/-", pattern);
    glob = glob_compile(absolute, err);
    if (!glob)
        return -1;
    glob_free(glob);
    add_entry(profile, options, PROFILE_PATH_GLOB, pattern, NULL);
    return 0;
}

/* A subpath of the workspace roots; a pattern in it makes a pattern relative to each of them. */
static int add_workspace(struct profile *profile, const struct profile_text *options,
                         const char *subpath, struct err *err)
{
    AUTO_FREE char *text = strip_tree(alloc_strf("/%s", subpath), options->access);
    AUTO_FREE char *plain = is_pattern(text) ? glob_unescape(text) : alloc_str(text);

    if (plain[0] && !profile_subpath_is_valid(plain + 1))
        return err_set(err, ERR_INVALID,
                       "\"%s\" is not a path below the workspace: no empty, \".\" or \"..\" "
                       "component may be in it",
                       options->text);
    if (glob_has_meta(text))
        return add_pattern(profile, options, text + 1, err);
    add_entry(profile, options, PROFILE_PATH_PROJECT_ROOTS, NULL, plain[0] ? plain + 1 : NULL);
    return 0;
}

static int add_token(struct profile *profile, const struct profile_text *options, struct err *err)
{
    const char *slash = strchr(options->text, '/');
    AUTO_FREE char *name =
        alloc_strn(options->text, slash ? (size_t)(slash - options->text) : strlen(options->text));
    const struct special *special = special_find(name);
    bool is_unknown = special->kind == PROFILE_PATH_UNKNOWN;

    if (!utf8_is_valid(options->text, strlen(options->text)))
        return err_set(err, ERR_INVALID, "a name that starts with \":\" is not UTF-8");
    if (slash && special->kind == PROFILE_PATH_PROJECT_ROOTS)
        return add_workspace(profile, options, slash + 1, err);
    if (slash && !is_unknown)
        return err_set(err, ERR_INVALID, "%s takes no path below it; write the path itself", name);
    if (is_unknown && options->unknown == PROFILE_UNKNOWN_REFUSE)
        return err_set(err, ERR_INVALID,
                       "%s is not one of :root, :minimal, :workspace_roots, :tmpdir, :slash_tmp, "
                       ":gpu",
                       name);
    if (options->asks && special->kind != PROFILE_PATH_PROJECT_ROOTS)
        return err_set(err, ERR_INVALID, "%s cannot be asked about; name a path", name);
    add_entry(profile, options, special->kind, is_unknown ? name : NULL,
              is_unknown && slash ? slash + 1 : NULL);
    return 0;
}

/* Adds the path `text` below `dir`, or the pattern. An absolute one needs no `dir`. */
static int add_below(struct profile *profile, const struct profile_text *options, const char *dir,
                     const char *text, struct err *err)
{
    AUTO_FREE char *escaped = NULL;
    AUTO_FREE char *path = NULL;

    if (!is_pattern(text)) {
        path = path_clean(dir, text);
        add_entry(profile, options, PROFILE_PATH_LITERAL, path, NULL);
        return 0;
    }
    escaped = glob_escape(dir);
    path = text[0] == '/' ? alloc_str(text) : path_join(escaped, text);
    return add_pattern(profile, options, path, err);
}

int profile_add_text(struct profile *profile, const struct profile_text *options, struct err *err)
{
    const char *text = options->text;

    if (text[0] == ':')
        return add_token(profile, options, err);
    if (text[0] == '/')
        return add_below(profile, options, "/", text, err);
    if (text[0] == '~' && (text[1] == '/' || text[1] == '\0')) {
        if (!options->home)
            return err_set(err, ERR_INVALID, "\"%s\": the home directory is not known", text);
        return add_below(profile, options, options->home, text[1] ? text + 2 : "", err);
    }
    if (!options->base || !text[0])
        return err_set(err, ERR_INVALID,
                       "\"%s\" is neither an absolute path, nor \"~/...\", nor a name like "
                       ":workspace_roots",
                       text);
    return add_below(profile, options, options->base, text, err);
}

/* --- overlays --- */

void profile_overlay_done(struct profile_overlay *overlay)
{
    profile_entries_done(&overlay->entries);
    *overlay = (struct profile_overlay){0};
}

bool profile_overlay_is_empty(const struct profile_overlay *overlay)
{
    return overlay->network != OVERLAY_NETWORK_ENABLED && overlay->entries.len == 0;
}

static void entries_add_new(struct profile_entries *entries, const struct profile_entry *entry)
{
    for (size_t i = 0; i < entries->len; i++)
        if (profile_entry_equal(&entries->items[i], entry))
            return;
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

void profile_overlay_merge(const struct profile_overlay *a, const struct profile_overlay *b,
                           struct profile_overlay *ret)
{
    struct profile_overlay merged = {.network = a->network ? a->network : b->network};

    if (b->network == OVERLAY_NETWORK_ENABLED)
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

void profile_overlay_apply(struct profile *profile, const struct profile_overlay *overlay)
{
    if (profile->kind == PROFILE_DISABLED)
        return;
    if (overlay->network == OVERLAY_NETWORK_ENABLED && profile->network == NETWORK_RESTRICTED)
        profile->network = NETWORK_ENABLED;
    if (profile->kind != PROFILE_MANAGED || profile->files != PROFILE_FILES_RESTRICTED)
        return;
    /* 0 is no limit for a profile, which is deeper than any */
    if (profile->glob_scan_max_depth && overlay->glob_scan_max_depth > profile->glob_scan_max_depth)
        profile->glob_scan_max_depth = overlay->glob_scan_max_depth;
    for (size_t i = 0; i < overlay->entries.len; i++)
        entries_add_new(&profile->entries, &overlay->entries.items[i]);
}
