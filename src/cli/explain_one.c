/* `cordon explain --path` and `--host`: one thing, its verdict, and the entry that decides.
 *
 * A path is followed as the kernel would follow it, because entries are about what a path leads to
 * and not about how it is spelled. */
#include "cli/explain.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/path.h"
#include "base/str.h"
#include "cli/console.h"
#include "policy/host_view.h"
#include "policy/path_walk.h"
#include "sandbox/sandbox.h"

#include <stdlib.h>
#include <string.h>

void explain_answer_done(struct explain_answer *answer)
{
    free(answer->asked);
    free(answer->canonical);
    free(answer->decided_by);
    free(answer->entry);
    free(answer->note);
}

/* As a person writes it: "~/x", relative to the workspace folder, or absolute. Caller frees. */
static char *absolute(const struct settings *settings, const char *path)
{
    const char *home = settings->file.home;

    if (home && path[0] == '~' && (path[1] == '/' || !path[1]))
        return path_clean(home, path + 1 + (path[1] == '/'));
    return path_clean(settings->folder, path);
}

static char *note_for(const char *path, enum access_kind kind, bool is_bare)
{
    if (is_bare)
        return alloc_str("there is no sandbox; the permissions of the file decide");
    if (path_is_within(path, "/dev"))
        return alloc_str("inside, /dev is Cordon's own: null, zero, full, random, urandom, tty, "
                         "ptmx, pts and a private shm");
    if (path_is_within(path, "/proc"))
        return alloc_str("inside, /proc shows the command's own processes");
    if (kind == ACCESS_MISSING)
        return alloc_str("nothing is there");
    return NULL;
}

int explain_path(const struct explanation *explanation, const char *path, enum access wanted,
                 struct explain_answer *ret, struct err *err)
{
    const struct settings *settings = &explanation->settings;
    const struct access_map *map = explanation_access(explanation);
    AUTO_FREE char *clean = absolute(settings, path);
    AUTO(path_walk_done) struct path_walk walk = {0};
    bool is_bare = settings->mode == SANDBOX_DISABLED;
    const struct access_entry *entry;
    enum access verdict;

    if (path_walk(&host_view_real, clean, &walk, err))
        return -1;
    entry = access_map_find(map, walk.path);
    verdict = access_map_check(map, walk.path);
    *ret = (struct explain_answer){
        .is_allowed = verdict >= wanted,
        .asked = alloc_str(path),
        .canonical = alloc_str(walk.path),
        .verdict = access_name(verdict),
        .decided_by = alloc_str(entry     ? entry->origin
                                : is_bare ? "no sandbox"
                                          : "no entry of the profile allows it"),
        .entry = entry ? alloc_str(entry->path) : NULL,
        .note = note_for(walk.path, walk.kind, is_bare),
    };
    return 0;
}

/* RFC 6761 6.3 and the loopback blocks of RFC 6890. */
static bool is_loopback(const char *host)
{
    return str_eq(host, "localhost") || str_ends(host, ".localhost") || str_eq(host, "::1") ||
           str_eq(host, "[::1]") || str_starts(host, "127.");
}

void explain_host(const struct explanation *explanation, const char *host,
                  struct explain_answer *ret)
{
    const struct settings *settings = &explanation->settings;
    bool is_open = settings->access.network == NETWORK_ENABLED;
    bool is_inside = !is_open && is_loopback(host);

    *ret = (struct explain_answer){
        .is_allowed = is_open || is_inside,
        .asked = alloc_str(host),
        .verdict = is_open || is_inside ? "allow" : "deny",
        .decided_by =
            alloc_str(settings->mode == SANDBOX_DISABLED ? "no sandbox" : settings->network_origin),
    };
    if (is_inside)
        ret->note = alloc_str("the command's own localhost: servers that it starts are reached, "
                              "those of this machine are not");
    else if (!is_open)
        ret->note = alloc_str("the network is restricted; --network enabled opens it");
}

static void print_field(const char *name, const char *value, struct buf *text)
{
    if (value)
        console_line(text, "  %-11s %s", name, value);
}

void explain_answer_print(const struct explain_answer *answer, struct buf *ret)
{
    bool is_path = answer->canonical;

    console_line(ret, "%s: %s", answer->asked, answer->verdict);
    if (is_path && !str_eq(answer->canonical, answer->asked))
        print_field("path", answer->canonical, ret);
    print_field("decided by", answer->decided_by, ret);
    print_field("entry", answer->entry, ret);
    print_field("note", answer->note, ret);
}

json_t *explain_answer_to_json(const struct explain_answer *answer)
{
    return json_pack("{s:s, s:o, s:o, s:s, s:b, s:o, s:o, s:o}", "kind",
                     answer->canonical ? "path" : "host", "asked", json_lossy(answer->asked),
                     "canonical", json_lossy(answer->canonical), "verdict", answer->verdict,
                     "allowed", answer->is_allowed, "decided_by", json_lossy(answer->decided_by),
                     "entry", json_lossy(answer->entry), "note", json_lossy(answer->note));
}
