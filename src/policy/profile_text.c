/* See profile_text.h. Used for the command line and for keys in config.toml, so that both mean the
 * same. Nothing here looks at the disk: a path is cleaned as text. */
#include "policy/profile_text.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/path.h"
#include "base/str.h"
#include "base/utf8.h"
#include "policy/glob.h"
#include "policy/glob_name.h"

#include <string.h>

struct special {
    const char *name;
    enum profile_path_kind kind;
};

/* spec/sandboxing.md 6.1; the first name of a kind is the one that is printed */
static const struct special specials[] = {
    {":root", PROFILE_PATH_ROOT},
    {":minimal", PROFILE_PATH_MINIMAL},
    {":workspace_roots", PROFILE_PATH_PROJECT_ROOTS},
    {":project_roots", PROFILE_PATH_PROJECT_ROOTS},
    {":tmpdir", PROFILE_PATH_TMPDIR},
    {":slash_tmp", PROFILE_PATH_SLASH_TMP},
    {NULL, PROFILE_PATH_UNKNOWN},
};

static const struct special *special_find(const char *name)
{
    const struct special *special = specials;

    while (special->name && !str_eq(special->name, name))
        special++;
    return special;
}

bool profile_text_is_special(const char *name)
{
    return special_find(name)->name != NULL;
}

char *profile_entry_text(const struct profile_entry *entry)
{
    const char *name = entry->path;

    for (const struct special *special = specials; !name && special->name; special++)
        if (special->kind == entry->path_kind)
            name = special->name;
    if (!name)
        return alloc_str("");
    return entry->subpath ? path_join(name, entry->subpath) : alloc_str(name);
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

/* Whether a pattern is a good one can be said at once; where it starts does not matter for that.
 * It has to be UTF-8, because JSON could not carry it otherwise. */
static int check_pattern(const char *pattern, struct err *err)
{
    AUTO_FREE char *absolute = pattern[0] == '/' ? alloc_str(pattern) : path_join("/-", pattern);
    struct glob *glob = NULL;

    if (!utf8_is_valid(pattern, strlen(pattern)))
        return err_set(err, ERR_INVALID, "a pattern is not UTF-8");
    glob = glob_compile(absolute, err);
    glob_free(glob);
    return glob ? 0 : -1;
}

static void add_literal(struct profile *profile, const struct profile_text *options, char *path)
{
    struct profile_entry entry = {.path_kind = PROFILE_PATH_LITERAL,
                                  .access = options->access,
                                  .path = path,
                                  .origin = (char *)options->origin};

    profile_add(profile, &entry);
}

/* Adds a pattern, absolute or relative to the workspace; one without a live character is the path
 * that it escapes. */
static int add_pattern(struct profile *profile, const struct profile_text *options, char *pattern,
                       struct err *err)
{
    struct profile_entry entry = {.path_kind = PROFILE_PATH_GLOB,
                                  .access = options->access,
                                  .path = strip_tree(pattern, options->access),
                                  .origin = (char *)options->origin};

    if (!glob_has_meta(pattern)) {
        AUTO_FREE char *plain = glob_unescape(pattern);
        AUTO_FREE char *path = path_clean("/", plain);

        add_literal(profile, options, path);
        return 0;
    }
    if (options->access != ACCESS_DENY)
        return err_set(err, ERR_INVALID,
                       "the pattern \"%s\" can only deny; to allow a whole folder, name the folder",
                       options->text);
    if (check_pattern(pattern, err))
        return -1;
    profile_add(profile, &entry);
    return 0;
}

/* A subpath of the workspace roots; a pattern in it makes a pattern relative to each of them. */
static int add_workspace(struct profile *profile, const struct profile_text *options,
                         const char *subpath, struct err *err)
{
    AUTO_FREE char *text = strip_tree(alloc_strf("/%s", subpath), options->access);
    AUTO_FREE char *plain = is_pattern(text) ? glob_unescape(text) : alloc_str(text);
    struct profile_entry entry = {.path_kind = PROFILE_PATH_PROJECT_ROOTS,
                                  .access = options->access,
                                  .subpath = plain[0] ? plain + 1 : NULL,
                                  .origin = (char *)options->origin};

    if (entry.subpath && !profile_subpath_is_valid(entry.subpath))
        return err_set(err, ERR_INVALID,
                       "\"%s\" is not a path below the workspace: no empty, \".\" or \"..\" "
                       "component may be in it",
                       options->text);
    if (glob_has_meta(text))
        return add_pattern(profile, options, text + 1, err);
    profile_add(profile, &entry);
    return 0;
}

static int add_token(struct profile *profile, const struct profile_text *options, struct err *err)
{
    const char *slash = strchr(options->text, '/');
    AUTO_FREE char *name =
        alloc_strn(options->text, slash ? (size_t)(slash - options->text) : strlen(options->text));
    const struct special *special = special_find(name);
    struct profile_entry entry = {
        .path_kind = special->kind, .access = options->access, .origin = (char *)options->origin};

    if (!utf8_is_valid(options->text, strlen(options->text)))
        return err_set(err, ERR_INVALID, "a name that starts with \":\" is not UTF-8");
    if (slash && special->kind == PROFILE_PATH_PROJECT_ROOTS)
        return add_workspace(profile, options, slash + 1, err);
    if (slash && special->kind != PROFILE_PATH_UNKNOWN)
        return err_set(err, ERR_INVALID, "%s takes no path below it; write the path itself", name);
    if (special->kind == PROFILE_PATH_UNKNOWN && options->unknown == PROFILE_UNKNOWN_REFUSE)
        return err_set(err, ERR_INVALID,
                       "%s is not one of :root, :minimal, :workspace_roots, :tmpdir, :slash_tmp",
                       name);
    if (special->kind == PROFILE_PATH_UNKNOWN) {
        entry.path = name;
        entry.subpath = slash ? (char *)slash + 1 : NULL;
    }
    profile_add(profile, &entry);
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
        add_literal(profile, options, path);
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
            return err_set(err, ERR_INVALID, "\"%s\": the home folder is not known", text);
        return add_below(profile, options, options->home, text[1] ? text + 2 : "", err);
    }
    if (!options->base || !text[0])
        return err_set(err, ERR_INVALID,
                       "\"%s\" is neither an absolute path, nor \"~/...\", nor a name like "
                       ":workspace_roots",
                       text);
    return add_below(profile, options, options->base, text, err);
}
