/* See layered.h. A layer is a promise about writes, kept by mounts that only a sandbox joins. So whatever has none, or has
 * none of ours, is refused where the workspace is made and not when something has been written: a profile that is open, a
 * mode without mounts, a profile that has the host isolate its files, one in which the whole disk may be written. What
 * would lead a single command out of its sandbox later (a rule, a yes) is the executor's to refuse, by the same words.
 *
 * The folders of layers are Cordon's: a command that could write there could make a layer that somebody takes, and who
 * reads there reads what another profile may have denied. One that is missing belongs to what no command makes, as
 * the configuration does. */
#include "workspace/layered.h"

#include "base/auto.h"
#include "base/strv.h"
#include "layer/layer.h"
#include "policy/access.h"
#include "policy/host_view.h"
#include "policy/profile.h"
#include "policy/protect.h"

static const char *word_of(const char *word, const char *otherwise)
{
    return word ? word : otherwise;
}

int layered_hide(const struct host_view *view, struct access_map *map, struct err *err)
{
    AUTO(strv_done) struct strv folders = {0};

    if (!map->restricted)
        return 0;
    layers_folders(&folders);
    for (size_t i = 0; i < folders.len; i++) {
        AUTO(path_walk_done) struct path_walk walk = {0};

        if (path_walk(view, folders.items[i], &walk, err))
            return err_wrap(err, "the folder of change layers");
        if ((walk.end != PATH_FOUND && walk.end != PATH_HIDDEN) ||
            access_map_is_private(map, walk.path) ||
            !access_map_is_open_within(map, walk.path, ACCESS_DENY))
            continue;
        access_map_close(map, walk.path, walk.kind, "change layers");
        access_map_exact(map, walk.path)->is_others_tmp = true;
    }
    return 0;
}

int layered_guard(const struct access_map *map, struct strv *ret, struct err *err)
{
    AUTO(strv_done) struct strv folders = {0};

    layers_folders(&folders);
    for (size_t i = 0; i < folders.len; i++) {
        AUTO(path_walk_done) struct path_walk walk = {0};

        if (path_walk(&host_view_real, folders.items[i], &walk, err) ||
            protect_check_links(map, folders.items[i], walk.links, walk.links_len, err))
            return err_wrap(err, "the folder of change layers");
        strv_push(ret, walk.path);
    }
    return 0;
}

int layered_check(const struct workspace *workspace, const struct workspace_request *request,
                  struct err *err)
{
    const struct workspace_words *words = request->words;
    const char *layer = word_of(words ? words->layer : NULL, "a layer");
    const struct profile *profile = &workspace->profile;

    if (!workspace->layer)
        return 0;
    if (profile->kind == PROFILE_DISABLED || workspace->mode == SANDBOX_DISABLED)
        return err_set(
            err, ERR_INVALID,
            "%s: nothing of a layer runs without a sandbox, and here there is none (%s %s, from "
            "%s): choose a profile such as workspace-write and a sandbox that is not disabled, or "
            "leave the layer out",
            layer, profile->kind == PROFILE_DISABLED ? "profile" : "sandbox disabled, profile",
            workspace->profile_name, workspace->profile_from);
    if (profile->kind == PROFILE_EXTERNAL || profile->files == PROFILE_FILES_UNRESTRICTED)
        return err_set(
            err, ERR_INVALID,
            "%s: the profile %s (from %s) lets the whole disk be written, and a layer lies over "
            "folders that are named: choose one such as workspace-write, or leave the layer out",
            layer, workspace->profile_name, workspace->profile_from);
    if (workspace->mode == SANDBOX_LANDLOCK)
        return err_set(
            err, ERR_INVALID,
            "%s: a layer is mounted, and the sandbox \"landlock\" has no mounts: say auto, on a "
            "machine that has user namespaces (\"cordon doctor\" says how to get them), or leave "
            "the "
            "layer out",
            layer);
    if (profile->git == PROFILE_GIT_COMMIT && !layer_has_git(workspace->layer))
        return err_set(err, ERR_INVALID,
                       "%s: commits would be made in the real repository, and not in the layer: "
                       "make the layer "
                       "with %s, which keeps them there until they are taken, or say git \"read\"",
                       layer, word_of(words ? words->layer_git : NULL, "hasGit"));
    return 0;
}

int layered_cover(struct layer *layer, struct access_map *map, bool grows, struct err *err)
{
    if (!layer)
        return 0;
    if (grows)
        return layer_cover(layer, map, err);
    layer_cover_none(layer, map);
    return 0;
}

int layered_refuse_outside(struct err *err)
{
    return err_set(
        err, ERR_FORBIDDEN,
        "its session writes to a layer, and nothing of a layer runs outside of the sandbox: it "
        "would "
        "write to the real files. Let it run in the sandbox, or start it without a layer");
}
