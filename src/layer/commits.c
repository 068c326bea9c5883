/* See commits.h. What lies in a git directory of a layer was written by commands, and whoever reads it with git obeys it: so
 * no git is ever run on it. We read names and commits ourselves, from regular files and through no link, and judge the
 * names; we copy what has the name of an object or a pack into a repository that is of our own making, with a
 * configuration of our own, whose other objects are the real ones; and there the user's git fetches from, into the
 * real repository. It verifies what it gets (fetch.fsckObjects): an object is what its bytes are, and one that git would
 * be misled by is refused. What git is to write we say, and it is nothing but refs/heads/cordon/LAYER/BRANCH.
 *
 *     .git of the layer (up of each step)          ours: LAYER/take.git            real .git
 *       refs/heads, packed-refs, HEAD  -- names and commits -> refs/heads   -- fetch --> refs/heads/cordon/LAYER
 *       objects/ab/..., pack/pack-X.pack -- copies         -> objects
 *       everything else                   nothing of it
 *
 * Git directories are those that are real: what is new in a layer (a clone in a folder) is a folder like any other, and is
 * listed file by file. Tags, notes, stashes and worktrees stay in the layer, and that is said.
 *
 * A fetch is done or not, by git's own transactions. After a kill nothing of ours is left but a folder in the layer,
 * which the next one removes. */
#include "layer/commits.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/path.h"
#include "base/str.h"
#include "base/utf8.h"
#include "layer/change.h"
#include "layer/git_run.h"
#include "layer/inside.h"
#include "layer/repository.h"
#include "layer/walk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    REF_FILE_MAX = 4096,
    PACKED_MAX = 64 << 20,
    BRANCH_MAX = 200, /* bytes of a name */
    COPY_MAX = 1 << 30,
};

static const char heads[] = "refs/heads/";
static const char take_name[] = "take.git";

/* --- names and commits: pure --- */

/* As git check-ref-format has it, of printable text. */
static bool is_branch_name(const char *name)
{
    size_t len = strlen(name);

    if (!len || len > BRANCH_MAX || !utf8_is_valid(name, len) || strstr(name, "..") ||
        strstr(name, "@{") || strstr(name, "//") || *name == '-' || *name == '/' ||
        name[len - 1] == '/' || name[len - 1] == '.' || strpbrk(name, " ~^:?*[\\\"'`$;&|<>()!#"))
        return false;
    for (const char *at = name; *at; at++)
        if ((unsigned char)*at < 0x20 || *at == 0x7f)
            return false;
    for (const char *part = name; part; part = strchr(part, '/')) {
        size_t part_len;

        part += *part == '/';
        part_len = strcspn(part, "/");
        if (*part == '.' || (part_len >= 5 && strncmp(part + part_len - 5, ".lock", 5) == 0))
            return false;
    }
    return !str_eq(name, "HEAD") && !str_eq(name, "@");
}

static bool read_commit(const char *text, char ret[COMMIT_ID_MAX + 1])
{
    size_t len = commit_id_len(text);

    if (!len || strspn(text + len, " \n") != strlen(text + len))
        return false;
    memcpy(ret, text, len);
    ret[len] = '\0';
    return true;
}

/* "objects/ab/cdef..." or "objects/pack/pack-....pack", and nothing else. */
static bool is_object(const char *name)
{
    const char *digits = "0123456789abcdef";
    size_t len = strlen(name);

    if (strncmp(name, "objects/pack/pack-", 18) == 0)
        return (len == 18 + 40 + 5 || len == 18 + 64 + 5) &&
               (strspn(name + 18, digits) == len - 18 - 5) && str_eq(name + len - 5, ".pack");
    return (len == 8 + 2 + 1 + 38 || len == 8 + 2 + 1 + 62) && strncmp(name, "objects/", 8) == 0 &&
           strspn(name + 8, digits) == 2 && name[10] == '/' &&
           strspn(name + 11, digits) == len - 11;
}

/* --- which branches are others --- */

struct refs {
    const struct repository *repository;
    struct packed_refs packed_view;
    struct packed_refs packed_real;
    struct strv names; /* of branches that may be others, some more than once */
    struct commits *ret;
};

static void refs_done(struct refs *refs)
{
    packed_refs_done(&refs->packed_view);
    packed_refs_done(&refs->packed_real);
    strv_done(&refs->names);
}

/* False: there is none, or it is no commit's id, as where a branch is another name of one. */
static bool commit_of(const struct refs *refs, const char *ref, bool is_view,
                      char ret[COMMIT_ID_MAX + 1])
{
    AUTO(buf_done) struct buf text = {0};
    const struct packed_ref *packed;
    struct err err;
    int status = is_view ? repository_read(refs->repository, ref, REF_FILE_MAX, &text, &err)
                         : repository_read_real(refs->repository, ref, REF_FILE_MAX, &text, &err);

    if (status == 0)
        return text.data && read_commit(text.data, ret);
    if (err.code != ERR_NOT_FOUND)
        return false;
    packed = packed_refs_find(is_view ? &refs->packed_view : &refs->packed_real, ref, strlen(ref));
    if (!packed)
        return false;
    memcpy(ret, packed->commit, packed->commit_len);
    ret[packed->commit_len] = '\0';
    return true;
}

/* Names of layers may hold what names of branches may not. */
static char *target_of(const struct layer *layer, const char *branch)
{
    AUTO_FREE char *name = alloc_str(layer_name(layer));

    for (char *at = name; *at; at++)
        if (*at == '.')
            *at = '-';
    return alloc_strf("cordon/%s/%s", name, branch);
}

static struct commits_branch *add_branch(const struct refs *refs, const char *name)
{
    struct commits *commits = refs->ret;
    struct commits_branch *branch;

    commits->items =
        alloc_grow(commits->items, commits->len, &commits->cap, sizeof *commits->items);
    branch = &commits->items[commits->len++];
    *branch = (struct commits_branch){
        .repository = alloc_str(refs->repository->absolute),
        .name = alloc_str(name),
        .target = target_of(refs->repository->layer, name),
    };
    return branch;
}

static void note_taken(const struct refs *refs, struct commits_branch *branch)
{
    AUTO_FREE char *ref = alloc_strf("refs/heads/%s", branch->target);
    char taken[COMMIT_ID_MAX + 1];

    branch->is_taken = commit_of(refs, ref, false, taken) && str_eq(taken, branch->commit);
}

/* `ref` is a branch of either side, of a good name. */
static void look_at(struct refs *refs, const char *ref)
{
    const char *name = ref + sizeof heads - 1;
    char now[COMMIT_ID_MAX + 1] = "", before[COMMIT_ID_MAX + 1] = "";
    struct commits_branch *branch;
    bool is_there, was_there;

    is_there = commit_of(refs, ref, true, now);
    was_there = commit_of(refs, ref, false, before);
    if ((is_there && was_there && str_eq(now, before)) || (!is_there && !was_there))
        return;
    branch = add_branch(refs, name);
    memcpy(branch->commit, is_there ? now : before, sizeof branch->commit);
    note_taken(refs, branch);
    branch->is_new = is_there && !was_there;
    branch->is_gone = !is_there;
}

/* Branches of a packed-refs that are not so in the other one. */
static void add_packed(struct refs *refs, const struct packed_refs *packed,
                       const struct packed_refs *other)
{
    for (size_t i = 0; i < packed->len; i++) {
        const struct packed_ref *ref = &packed->items[i];
        const struct packed_ref *same;

        if (strncmp(ref->name, heads, sizeof heads - 1) != 0)
            continue;
        same = packed_refs_find(other, ref->name, ref->name_len);
        if (!same || same->commit_len != ref->commit_len ||
            memcmp(same->commit, ref->commit, ref->commit_len) != 0)
            strv_push_take(&refs->names, alloc_strn(ref->name, ref->name_len));
    }
}

static void look_at_all(struct refs *refs)
{
    bool has_odd = false;

    strv_sort(&refs->names);
    for (size_t i = 0; i < refs->names.len; i++) {
        const char *ref = refs->names.items[i];

        if (i && str_eq(ref, refs->names.items[i - 1]))
            continue;
        if (is_branch_name(ref + sizeof heads - 1))
            look_at(refs, ref);
        else
            has_odd = true;
    }
    if (has_odd)
        strv_pushf(&refs->ret->notes,
                   "%s: a branch is left in the layer whose name is none for a branch (or too "
                   "odd a one)",
                   refs->repository->absolute);
}

/* Commits on no branch: HEAD says one itself, and no branch is there. */
static void look_at_head(struct refs *refs)
{
    char now[COMMIT_ID_MAX + 1], before[COMMIT_ID_MAX + 1] = "";
    struct commits_branch *branch;

    if (!repository_change(refs->repository, "HEAD") || !commit_of(refs, "HEAD", true, now) ||
        (commit_of(refs, "HEAD", false, before) && str_eq(now, before)))
        return;
    for (size_t i = 0; i < refs->ret->len; i++)
        if (str_eq(refs->ret->items[i].commit, now))
            return;
    branch = add_branch(refs, "HEAD");
    memcpy(branch->commit, now, sizeof branch->commit);
    note_taken(refs, branch);
    branch->is_new = true;
}

static void note_others(struct refs *refs)
{
    static const struct {
        const char *start, *what;
    } others[] = {
        {"refs/tags/", "tags"},
        {"refs/stash", "stashes"},
        {"refs/notes/", "notes"},
        {"refs/replace/", "replacements of objects"},
        {"worktrees/", "linked worktrees"},
    };
    const struct changes *changes = &refs->repository->changes;

    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        for (size_t j = 0; j < changes->len; j++) {
            if (!str_starts(repository_name_in(refs->repository, &changes->items[j]),
                            others[i].start))
                continue;
            strv_pushf(&refs->ret->notes, "%s: %s stay in the layer: only branches are taken",
                       refs->repository->absolute, others[i].what);
            break;
        }
}

static int list_branches(const struct repository *repository, struct commits *ret, struct err *err)
{
    AUTO(refs_done) struct refs refs = {.repository = repository, .ret = ret};
    const struct changes *changes = &repository->changes;

    if ((repository_read(repository, "packed-refs", PACKED_MAX, &refs.packed_view.text, err) &&
         err->code != ERR_NOT_FOUND) ||
        (repository_read_real(repository, "packed-refs", PACKED_MAX, &refs.packed_real.text, err) &&
         err->code != ERR_NOT_FOUND))
        return -1;
    packed_refs_parse(&refs.packed_view);
    packed_refs_parse(&refs.packed_real);
    for (size_t i = 0; i < changes->len; i++) {
        const struct change *change = &changes->items[i];
        const char *name = repository_name_in(repository, change);

        if (str_starts(name, heads) &&
            (S_ISREG(change->layer.mode) || S_ISREG(change->real.mode)) &&
            !(strlen(name) > 5 && str_eq(name + strlen(name) - 5, ".lock")))
            strv_push(&refs.names, name);
    }
    add_packed(&refs, &refs.packed_view, &refs.packed_real);
    add_packed(&refs, &refs.packed_real, &refs.packed_view);
    look_at_all(&refs);
    look_at_head(&refs);
    note_others(&refs);
    return 0;
}

int commits_list(const struct layer *layer, struct commits *ret, struct err *err)
{
    AUTO(repositories_done) struct repositories repositories = {0};
    AUTO(commits_done) struct commits commits = {0};

    if (repositories_find(layer, &repositories, err))
        return -1;
    for (size_t i = 0; i < repositories.len; i++)
        if (list_branches(&repositories.items[i], &commits, err))
            return -1;
    *ret = commits;
    commits = (struct commits){0};
    return 0;
}

/* --- ours --- */

static int copy_file(int from, int to, struct err *err)
{
    AUTO_FREE char *block = alloc_zero(1, 1 << 16);

    for (;;) {
        ssize_t len = copy_file_range(from, NULL, to, NULL, COPY_MAX, 0);

        if (len > 0)
            continue;
        if (len == 0)
            return 0;
        if (errno != EXDEV && errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP)
            return err_sys(err, "copying an object");
        len = fd_read_block(from, block, 1 << 16);
        if (len < 0)
            return err_sys(err, "reading an object");
        if (fd_write_all(to, block, (size_t)len, err))
            return -1;
        if (len < 1 << 16)
            return 0;
    }
}

/* `name` as is_object() has it. What is really there needs no copy. */
static int copy_object(const struct repository *repository, const struct change *change, int ours,
                       struct err *err)
{
    const char *name = repository_name_in(repository, change);
    AUTO_FREE char *folder = alloc_strn(name, (size_t)(strrchr(name, '/') - name));
    AUTO_CLOSE int from = change_open(repository->layer, change, CHANGE_LAYER, err);
    AUTO_CLOSE int to = -1;

    if (from < 0)
        return err->code == ERR_CONFLICT
                   ? 0
                   : -1; /* git tidies up meanwhile: if it was needed, the fetch says so */
    if (mkdirat(ours, folder, 0700) && errno != EEXIST)
        return err_sys(err, "%s", folder);
    to = openat(ours, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (to < 0)
        return errno == EEXIST ? 0 : err_sys(err, "%s", name);
    return copy_file(from, to, err);
}

struct ours {
    char *path; /* absolute */
    int fd;
};

static void ours_done(struct ours *ours)
{
    free(ours->path);
    auto_close(&ours->fd);
}

static int git_ours(const struct ours *ours, const char *const *argv, struct err *err)
{
    AUTO(buf_done) struct buf ignored = {0};
    const struct git_call call = {.git_dir = ours->path, .argv = argv, .is_ours = true};

    return git_run(&call, &ignored, err);
}

static int write_text(int dir, const char *name, const struct buf *text, struct err *err)
{
    AUTO_CLOSE int fd =
        openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

    return fd < 0 ? err_sys(err, "%s", name) : fd_write_all(fd, text->data, text->len, err);
}

/* The real objects are its, too; and where the real history ends, its does. */
static int lean_on_real(const struct repository *repository, const struct ours *ours,
                        struct err *err)
{
    AUTO(buf_done) struct buf alternates = {.max = REF_FILE_MAX * 2};
    AUTO(buf_done) struct buf shallow = {0};

    if (strchr(repository->absolute, '\n') ||
        !buf_appendf(&alternates, "%s/objects\n", repository->absolute))
        return err_set(err, ERR_INVALID, "%s: git has no way to write this path down",
                       repository->absolute);
    if (mkdirat(ours->fd, "objects/info", 0700) && errno != EEXIST)
        return err_sys(err, "objects/info");
    if (write_text(ours->fd, "objects/info/alternates", &alternates, err))
        return -1;
    if (repository_read_real(repository, "shallow", PACKED_MAX, &shallow, err))
        return err->code == ERR_NOT_FOUND ? 0 : -1;
    return write_text(ours->fd, "shallow", &shallow, err);
}

static int copy_objects(const struct repository *repository, const struct ours *ours,
                        struct err *err)
{
    const struct changes *changes = &repository->changes;

    for (size_t i = 0; i < changes->len; i++) {
        const struct change *change = &changes->items[i];
        const char *name = repository_name_in(repository, change);

        if (!S_ISREG(change->layer.mode) || !is_object(name))
            continue;
        if (copy_object(repository, change, ours->fd, err))
            return -1;
        if (str_starts(name, "objects/pack/")) {
            AUTO_FREE char *pack = path_join(ours->path, name);
            const char *const argv[] = {"index-pack", pack, NULL};

            if (git_ours(ours, argv, err))
                return err_wrap(err, "a pack of the layer");
        }
    }
    return 0;
}

static int make_ours(const struct repository *repository, bool is_sha256, struct ours *ret,
                     struct err *err)
{
    const struct layer *layer = repository->layer;
    const char *const argv[] = {
        "init", "--quiet", "--bare", "--template=", is_sha256 ? "--object-format=sha256" : NULL,
        NULL};

    if (store_discard(layer, layer_fd(layer), take_name, err) || store_empty_trash(layer, err))
        return -1;
    ret->path = path_join(layer_folder(layer), take_name);
    if (git_ours(ret, argv, err))
        return -1;
    ret->fd = walk_open(layer_fd(layer), take_name, O_RDONLY | O_DIRECTORY);
    if (ret->fd < 0)
        return err_sys(err, "%s", ret->path);
    return lean_on_real(repository, ret, err) || copy_objects(repository, ret, err) ? -1 : 0;
}

/* --- taking --- */

/* How many commits the user has not; left at 0 where that cannot be told. */
static void count_ahead(const struct repository *repository, struct commits_branch *branch)
{
    AUTO_FREE char *range =
        branch->is_new ? alloc_strf("HEAD..refs/heads/%s", branch->target)
                       : alloc_strf("refs/heads/%s..refs/heads/%s", branch->name, branch->target);
    const char *const argv[] = {"rev-list", "--count", range, NULL};
    const struct git_call call = {.git_dir = repository->absolute, .argv = argv};
    AUTO(buf_done) struct buf text = {0};
    struct err ignored;

    if (git_run(&call, &text, &ignored) == 0 && text.data)
        branch->ahead = strtoul(text.data, NULL, 10);
}

/* The real git fetches just that one. */
static int fetch(const struct repository *repository, const struct ours *ours, bool is_forced,
                 const struct commits_branch *branch, struct err *err)
{
    AUTO_FREE char *refspec =
        alloc_strf("%srefs/heads/taken:refs/heads/%s", is_forced ? "+" : "", branch->target);
    AUTO(buf_done) struct buf ignored = {0};
    const char *const update[] = {"update-ref", "refs/heads/taken", branch->commit, NULL};
    const char *const argv[] = {"fetch",
                                "--no-progress",
                                "--no-tags",
                                "--no-recurse-submodules",
                                "--no-write-fetch-head",
                                ours->path,
                                refspec,
                                NULL};
    const struct git_call call = {.git_dir = repository->absolute, .argv = argv};

    return git_ours(ours, update, err) || git_run(&call, &ignored, err) ? -1 : 0;
}

static void take_branch(const struct repository *repository, const struct ours *ours,
                        const struct commits_wish *wish, struct commits_branch *branch)
{
    struct err err;

    if (fetch(repository, ours, wish->is_forced, branch, &err) == 0) {
        branch->is_taken = true;
        count_ahead(repository, branch);
        return;
    }
    branch->why =
        strstr(err.msg, "non-fast-forward")
            ? alloc_strf("%s has commits that the layer does not (any more): rename or delete it "
                         "(git branch -m, git branch -D), or take it with --force",
                         branch->target)
            : alloc_strf("%s; what is in the layer stays there", err.msg);
}

static bool is_wished(const struct commits_wish *wish, const struct commits_branch *branch)
{
    return !branch->is_gone && (!wish->branch || str_eq(wish->branch, branch->name));
}

/* `branches`: those of this repository. */
static int take_from(const struct repository *repository, const struct commits_wish *wish,
                     struct commits_branch *branches, size_t len, struct err *err)
{
    AUTO(ours_done) struct ours ours = {.fd = -1};
    int status = 0;

    for (size_t i = 0; i < len && !status; i++) {
        if (branches[i].is_taken)
            count_ahead(repository, &branches[i]);
        if (!is_wished(wish, &branches[i]) || branches[i].is_taken || wish->is_dry)
            continue;
        if (!ours.path)
            status = make_ours(repository, strlen(branches[i].commit) == COMMIT_ID_MAX, &ours, err);
        if (!status)
            take_branch(repository, &ours, wish, &branches[i]);
    }
    if (ours.path) {
        struct err ignored; /* the next one removes it */

        if (store_discard(repository->layer, layer_fd(repository->layer), take_name, &ignored) == 0)
            (void)store_empty_trash(repository->layer, &ignored);
    }
    return status;
}

int commits_take(struct layer *layer, const struct commits_wish *wish, struct commits *ret,
                 struct err *err)
{
    AUTO(repositories_done) struct repositories repositories = {0};
    AUTO(commits_done) struct commits commits = {0};
    bool is_found = !wish->branch;

    if (!layer_has_git(layer))
        return err_set(
            err, ERR_INVALID,
            "the layer %s has no git directories: commits are made in one that was begun with "
            "--layer-git",
            layer_name(layer));
    if (repositories_find(layer, &repositories, err))
        return -1;
    for (size_t i = 0; i < repositories.len; i++) {
        const size_t before = commits.len;

        if (list_branches(&repositories.items[i], &commits, err) ||
            (commits.len > before && take_from(&repositories.items[i], wish, commits.items + before,
                                               commits.len - before, err)))
            return err_wrap(err, "%s", repositories.items[i].absolute);
    }
    for (size_t i = 0; i < commits.len; i++)
        is_found |= is_wished(wish, &commits.items[i]);
    if (!is_found)
        return err_set(err, ERR_NOT_FOUND, "the layer %s has no branch %s with commits of its own",
                       layer_name(layer), wish->branch);
    *ret = commits;
    commits = (struct commits){0};
    return 0;
}

void commits_done(struct commits *commits)
{
    for (size_t i = 0; i < commits->len; i++) {
        free(commits->items[i].repository);
        free(commits->items[i].name);
        free(commits->items[i].target);
        free(commits->items[i].why);
    }
    free(commits->items);
    strv_done(&commits->notes);
    *commits = (struct commits){0};
}

json_t *commits_to_json(const struct commits *commits)
{
    json_t *branches = json_array();

    for (size_t i = 0; i < commits->len; i++) {
        const struct commits_branch *branch = &commits->items[i];

        json_array_append_new(
            branches,
            json_pack("{s:o, s:o, s:o, s:s, s:b, s:b, s:b, s:o*, s:o*}", "repository",
                      json_lossy(branch->repository), "name", json_lossy(branch->name), "target",
                      json_lossy(branch->target), "commit", branch->commit, "new", branch->is_new,
                      "deleted", branch->is_gone, "taken", branch->is_taken, "ahead",
                      branch->is_taken ? json_integer((json_int_t)branch->ahead) : NULL, "why",
                      branch->why ? json_lossy(branch->why) : NULL));
    }
    return json_pack("{s:o, s:o}", "branches", branches, "notes",
                     json_lossy_list(strv_view(&commits->notes)));
}
