/* See learn_profile.h. The table stands between two lines of ours, so that it can be found and replaced as
 * text: everything that a person wrote around it stays as it is, byte by byte. */
#include "cli/learn_profile.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "base/utf8.h"
#include "cli/console.h"
#include "policy/config/config.h"
#include "policy/config/config_values.h"
#include "policy/network_hook.h"
#include "policy/profile.h"
#include "policy/tool_cache.h"
#include "timeline/timeline.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char begin_mark[] = "# >>> cordon learn: ";
static const char end_mark[] = "# <<< cordon learn: ";

static int check_name(const char *name, struct err *err)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";

    if (!*name || name[strspn(name, letters)])
        return err_set(err, ERR_INVALID,
                       "\"%s\" is no name for a profile: letters, digits, - and _", name);
    if (profile_builtin_name(name))
        return err_set(err, ERR_INVALID, "\"%s\" is built in; choose another name", name);
    return 0;
}

/* --- text --- */

/* As a string of TOML; caller frees. */
static char *quoted(const char *text)
{
    AUTO_FREE char *key = config_key_text(text);

    return *key == '"' ? TAKE_PTR(key) : alloc_strf("\"%s\"", key);
}

static char *key_of(const struct learn_profile *profile, const char *path)
{
    size_t len = profile->home ? strlen(profile->home) : 0;
    AUTO_FREE char *text = len > 1 && path_is_within(path, profile->home) && path[len]
                               ? alloc_strf("~%s", path + len)
                               : alloc_str(path);

    return quoted(text);
}

static void print_who(const struct strv *who, struct buf *ret)
{
    for (size_t i = 0; i < who->len; i++)
        buf_appendf(ret, "%s%s", i ? "; " : "  # ", who->items[i]);
    buf_append_str(ret, "\n");
}

static void print_entries(const struct learn_profile *profile, bool is_socket, struct buf *ret)
{
    for (size_t i = 0; i < profile->needs->len; i++) {
        const struct learn_need *need = &profile->needs->items[i];
        AUTO_FREE char *key = key_of(profile, need->path);

        if (need->is_socket != is_socket)
            continue;
        buf_appendf(ret, "%s = \"%s\"", key, is_socket ? "allow" : "write");
        print_who(&need->who, ret);
    }
}

static size_t count(const struct learn_needs *needs, bool is_socket)
{
    size_t len = 0;

    for (size_t i = 0; i < needs->len; i++)
        len += needs->items[i].is_socket == is_socket;
    return len;
}

static void print_refusals(const struct learn_needs *needs, struct buf *ret)
{
    if (needs->refusals_len)
        console_line(ret, "# Not opened:");
    for (size_t i = 0; i < needs->refusals_len; i++)
        console_line(ret, "#   %s, by %s: %s", needs->refusals[i].what, needs->refusals[i].who,
                     needs->refusals[i].why);
    if (needs->refusals_more)
        console_line(ret, "#   and %zu more", needs->refusals_more);
    if (needs->lost)
        console_line(ret,
                     "# %llu things were done faster than they could be seen: learn again, if the "
                     "profile does not do.",
                     needs->lost);
}

void learn_profile_presets(const struct learn_profile *profile, struct strv *ret)
{
    for (size_t i = 0; i < profile->needs->len; i++) {
        const char *name = tool_cache_preset(profile->needs->items[i].path, profile->home);

        if (name && !strv_has(ret, name))
            strv_push(ret, name);
    }
}

static void print_presets(const struct learn_profile *profile, struct buf *ret)
{
    AUTO(strv_done) struct strv names = {0};

    learn_profile_presets(profile, &names);
    for (size_t i = 0; i < names.len; i++)
        console_line(ret,
                     "# Your own %s believes what is there. A cache for commands alone: cordon "
                     "learn --with %s",
                     names.items[i], names.items[i]);
}

/* Beside rules, of which those that allow are no part of the profile: what was reached is. */
static bool asks_network(const struct network_policy *asked)
{
    return asked->host_ports_len || asked->allow_local_binding || asked->publications.len;
}

static void print_asked_network(const struct network_policy *asked, struct buf *ret)
{
    if (asked->allow_local_binding)
        buf_append_str(ret, "allow_local_binding = true  # asked for by an option\n");
    for (size_t i = 0; i < asked->host_ports_len; i++)
        buf_appendf(ret, "%s%u%s", i ? ", " : "host_ports = [", asked->host_ports[i],
                    i + 1 < asked->host_ports_len ? "" : "]  # asked for by an option\n");
    for (size_t i = 0; i < asked->publications.len; i++) {
        AUTO_FREE char *text = publication_format(&asked->publications.items[i]);

        buf_appendf(ret, "%s\"%s\"%s", i ? ", " : "publish = [", text,
                    i + 1 < asked->publications.len ? "" : "]  # asked for by an option\n");
    }
}

/* They are names of variables, and hosts. */
static void print_credentials(const struct learn_profile *profile, struct buf *ret)
{
    const struct network_hooks *hooks = profile->asked->hooks;

    if (hooks)
        buf_appendf(ret, "\n[permissions.%s.network.credentials]\n", profile->name);
    for (size_t i = 0; hooks && i < hooks->credentials_len; i++) {
        const struct network_credential *credential = &hooks->credentials[i];

        for (size_t j = 0; j < credential->hosts.len; j++)
            buf_appendf(ret, "%s%s\"%s\"%s", j ? "" : credential->name, j ? ", " : " = [",
                        credential->hosts.items[j],
                        j + 1 < credential->hosts.len ? "" : "]  # asked for by an option\n");
    }
}

/* They are ASCII without quotes. */
static void print_hosts(const struct learn_profile *profile, struct buf *ret)
{
    const struct learn_needs *needs = profile->needs;

    if (needs->hosts.len)
        buf_appendf(ret, "\n[permissions.%s.network.domains]\n", profile->name);
    for (size_t i = 0; i < needs->hosts.len; i++)
        buf_appendf(ret, "\"%s\" = \"allow\"  # %s\n", needs->hosts.items[i],
                    needs->hosts_who.items[i]);
    for (size_t i = 0; needs->hosts.len && i < profile->asked->rules_len; i++) {
        const struct network_rule *rule = &profile->asked->rules[i];
        AUTO_FREE char *pattern = host_pattern_format(&rule->pattern, rule->port);

        if (rule->verdict == NETWORK_DENY)
            buf_appendf(ret, "\"%s\" = \"deny\"  # asked for by an option\n", pattern);
    }
}

void learn_profile_print(const struct learn_profile *profile, struct buf *ret)
{
    AUTO(buf_done) struct buf words = {.max = SIZE_MAX / 2};
    AUTO_FREE char *base = quoted(profile->base);
    AUTO_FREE char *plain = NULL;
    char day[16] = "";
    time_t now = time(NULL);
    struct tm tm;
    const bool has_sockets = count(profile->needs, true) > 0;

    if (gmtime_r(&now, &tm))
        strftime(day, sizeof day, "%Y-%m-%d", &tm);
    timeline_append_argv(profile->argv, &words);
    plain = utf8_plain(words.data ? words.data : "");
    console_line(ret, "# Learnt on %s of: %s", day, plain);
    if (profile->status)
        console_line(ret, "# It ended with %d: what it would have done then is not here.",
                     profile->status);
    buf_appendf(ret, "[permissions.%s]\nextends = %s\n", profile->name, base);
    for (size_t i = 0; profile->presets[i]; i++)
        buf_appendf(ret, "%s\"%s\"%s", i ? ", " : "with = [", profile->presets[i],
                    profile->presets[i + 1] ? "" : "]\n");
    if (profile->tmp)
        buf_appendf(ret, "tmp = \"%s\"\n", profile->tmp);
    if (profile->git) {
        buf_appendf(ret, "git = \"%s\"", profile->git);
        print_who(&profile->needs->git, ret);
    }
    if (count(profile->needs, false) || *profile->specials)
        buf_appendf(ret, "\n[permissions.%s.filesystem]\n", profile->name);
    for (char *const *special = profile->specials; *special; special++)
        buf_appendf(ret, "\"%s\" = \"write\"  # asked for by an option\n", *special);
    print_entries(profile, false, ret);
    if (profile->is_enabled || has_sockets || asks_network(profile->asked))
        buf_appendf(ret, "\n[permissions.%s.network]\n", profile->name);
    print_asked_network(profile->asked, ret);
    if (profile->is_enabled) {
        buf_append_str(ret, "enabled = true  # asked for by --network enabled");
        for (size_t i = 0; i < profile->needs->remote.len; i++)
            buf_appendf(ret, "; %s", profile->needs->remote.items[i]);
        buf_append_str(ret, "\n");
    }
    print_hosts(profile, ret);
    print_credentials(profile, ret);
    if (has_sockets) {
        buf_appendf(ret, "\n[permissions.%s.network.unix_sockets]\n", profile->name);
        print_entries(profile, true, ret);
    }
    print_presets(profile, ret);
    print_refusals(profile->needs, ret);
}

/* --- file --- */

/* The line that begins with the mark and ends with the name, behind `from`; NULL: there is none. */
static const char *find_mark(const char *from, const char *mark, const char *name)
{
    AUTO_FREE char *line = alloc_strf("%s%s\n", mark, name);
    const char *text = from;

    while ((from = strstr(from, line))) {
        if (from == text || from[-1] == '\n')
            return from;
        from++;
    }
    return NULL;
}

/* Takes the table away that came from here, if there is one, and the empty line in front of it. */
static void cut_table(struct buf *text, const char *name)
{
    const char *all = text->data ? text->data : "";
    const char *begin = find_mark(all, begin_mark, name);
    const char *end = begin ? find_mark(begin, end_mark, name) : NULL;
    AUTO(buf_done) struct buf rest = {.max = text->max};

    if (!end)
        return;
    end += strcspn(end, "\n") + 1;
    if (begin - all >= 2 && begin[-2] == '\n')
        begin--;
    buf_append(&rest, all, (size_t)(begin - all));
    buf_append_str(&rest, end);
    buf_done(text);
    *text = rest;
    rest = (struct buf){.max = 0};
}

static bool has_table(const struct config *config, const char *name)
{
    AUTO(strv_done) struct strv names = {0};

    config_profile_names(config, &names);
    return strv_has(&names, name);
}

static void config_free_slot(struct config **slot)
{
    config_free(*slot);
}

/* The file as it is, without a table that is to be replaced. */
static int read_rest(const char *name, const char *path, bool replaces, struct buf *ret,
                     struct err *err)
{
    AUTO(config_free_slot) struct config *config = NULL;

    if (fd_read_file(path, CONFIG_SIZE_MAX, ret, err)) {
        if (err->sys != ENOENT)
            return -1;
        buf_clear(ret);
    }
    if (ret->len && strlen(ret->data) != ret->len)
        return err_set(err, ERR_INVALID, "%s: a NUL is in it", path);
    if (replaces)
        cut_table(ret, name);
    config = config_load(ret->data ? ret->data : "", ret->len, path, err);
    if (!config)
        return -1;
    if (!has_table(config, name))
        return 0;
    return err_set(err, ERR_INVALID,
                   replaces ? "%s: [permissions.%s] was not written by \"cordon learn\"; change it "
                              "there, or choose another name"
                            : "%s: there is a profile %s already; choose another name, or say "
                              "--replace",
                   path, name);
}

int learn_profile_check(const char *name, const char *path, bool replaces, struct err *err)
{
    AUTO_FREE char *real = realpath(path, NULL);
    AUTO(buf_done) struct buf rest = {.max = CONFIG_SIZE_MAX};

    return check_name(name, err) || read_rest(name, real ? real : path, replaces, &rest, err) ? -1
                                                                                              : 0;
}

int learn_profile_write(const struct learn_profile *profile, const char *path, bool replaces,
                        struct err *err)
{
    AUTO_FREE char *link = realpath(path, NULL);
    const char *real = link ? link : path;
    AUTO_FREE char *dir = path_parent(real);
    AUTO(buf_done) struct buf text = {.max = CONFIG_SIZE_MAX};
    AUTO(config_free_slot) struct config *config = NULL;
    AUTO(config_profile_done) struct config_profile checked = {0};
    bool ends = true;

    if (fd_make_dirs(dir, 0700, err) || read_rest(profile->name, real, replaces, &text, err))
        return -1;
    if (text.len)
        ends = buf_append_str(&text, text.data[text.len - 1] == '\n' ? "\n" : "\n\n");
    ends &= buf_appendf(&text, "%s%s\n", begin_mark, profile->name);
    learn_profile_print(profile, &text);
    ends &= buf_appendf(&text, "%s%s\n", end_mark, profile->name);
    if (!ends)
        return err_set(err, ERR_LIMIT, "%s would be longer than %d bytes", path, CONFIG_SIZE_MAX);
    config = config_load(text.data, text.len, real, err);
    if (!config || config_profile(config, profile->name, profile->home, &checked, err))
        return err_wrap(err, "what was learnt cannot be added");
    return fd_replace_file(real, &text, 0600, err);
}
