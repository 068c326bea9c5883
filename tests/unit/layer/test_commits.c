/* Commits of a layer, fetched into the real repository, by real git; and what somebody who may write anything in the layer's
 * git directory (which a guard does not let commands) comes to with it: nothing. */
#include "real_layer.h"

#include "../base/support.h"
#include "base/alloc.h"
#include "base/auto.h"
#include "base/str.h"
#include "layer/change.h"
#include "layer/commits.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct world {
    struct place place;
    struct layer *layer;
};

/* Outside; the status. */
static int outside(const struct world *world, const char *script)
{
    AUTO_FREE char *whole =
        alloc_strf("cd '%s' && { %s; } >>../said 2>&1", world->place.root, script);

    return system(whole);
}

static int inside(const struct world *world, const char *script)
{
    AUTO_FREE char *whole =
        alloc_strf("cd '%s' && { %s; } >/dev/null 2>&1", world->place.root, script);

    return place_run(world->layer, whole);
}

/* With a repository of one commit in root/, and its branch main. */
static bool world_init(struct world *world)
{
    const struct layer_options options = {.name = "w", .has_git = true, .held_by = "test"};
    struct err err;

    *world = (struct world){0};
    if (!place_init(&world->place))
        return false;
    setenv("HOME", world->place.dir, 1);
    setenv("GIT_CONFIG_NOSYSTEM", "1", 1);
    if (outside(world,
                "git config --global user.name n && git config --global user.email e@x && "
                "git init -q -b main && git add . && git commit -qm first && git branch other"))
        fail_msg("no repository could be made");
    world->layer = layer_create(&options, &err);
    if (!world->layer || layer_cover(world->layer, &world->place.map, &err))
        fail_msg("%s", err.msg);
    return true;
}

static void world_done(struct world *world)
{
    struct err err;

    assert_int_equal(outside(world, "test ! -e ../pwned && git fsck --strict --no-progress"), 0);
    assert_int_equal(layer_remove(world->layer, &err), 0);
    place_done(&world->place);
}

static void take(const struct world *world, const struct commits_wish *wish, struct commits *ret)
{
    static const struct commits_wish all;
    struct err err;

    if (commits_take(world->layer, wish ? wish : &all, ret, &err))
        fail_msg("%s", err.msg);
}

/* All zero: there is none. */
static struct commits_branch branch_of(const struct commits *commits, const char *name)
{
    for (size_t i = 0; i < commits->len; i++)
        if (str_eq(commits->items[i].name, name))
            return commits->items[i];
    return (struct commits_branch){0};
}

/* --- as it is meant --- */

static void test_branches_are_taken(void **state)
{
    AUTO(commits_done) struct commits listed = {0};
    AUTO(commits_done) struct commits taken = {0};
    AUTO(commits_done) struct commits again = {0};
    AUTO(changes_done) struct changes changes = {0};
    AUTO(strv_done) struct strv problems = {0};
    struct commits_branch branch;
    struct world world;
    struct err err;

    if (!world_init(&world))
        skip();
    assert_int_equal(
        inside(&world,
               "echo 2 > one && git commit -qam second && echo 3 > one && git commit -qam third && "
               "git switch -qc topic other && echo t > t && git add t && git commit -qm topic && "
               "git switch -q --detach && git commit -q --allow-empty -m loose && git tag v1"),
        0);
    assert_int_equal(commits_list(world.layer, &listed, &err), 0);
    assert_int_equal(listed.len, 3);
    assert_false(branch_of(&listed, "main").is_new);
    assert_true(branch_of(&listed, "topic").is_new);
    assert_non_null(branch_of(&listed, "HEAD").name);
    assert_int_equal(listed.notes.len, 1);
    assert_contains(listed.notes.items[0], "tags stay in the layer");

    /* the git directory is no part of the list, and nothing of it can be named */
    assert_int_equal(change_list(world.layer, &(struct change_query){0}, &changes, &problems, &err),
                     0);
    for (size_t i = 0; i < changes.len; i++)
        assert_null(strstr(changes.items[i].path, ".git"));

    take(&world, &(struct commits_wish){.is_dry = true}, &taken);
    assert_false(branch_of(&taken, "main").is_taken);
    assert_int_not_equal(outside(&world, "git rev-parse -q --verify cordon/w/main"), 0);
    commits_done(&taken);
    take(&world, NULL, &taken);
    for (size_t i = 0; i < taken.len; i++)
        assert_null(taken.items[i].why);
    branch = branch_of(&taken, "main");
    assert_true(branch.is_taken);
    assert_int_equal(branch.ahead, 2);
    assert_string_equal(branch.target, "cordon/w/main");
    assert_int_equal(branch_of(&taken, "topic").ahead, 1);
    assert_int_equal(
        outside(
            &world,
            "test \"$(git log --format=%s main..cordon/w/main | tr '\\n' ' ')\" = 'third second ' "
            "&& "
            "test \"$(git show cordon/w/topic:t)\" = t && "
            "test \"$(git log -1 --format=%s cordon/w/HEAD)\" = loose && "
            "test -z \"$(git status --porcelain)\" && test \"$(git log --oneline | wc -l)\" = 1 && "
            "test -z \"$(git tag)\" && test ! -e .git/FETCH_HEAD"),
        0);
    take(&world, NULL, &again);
    assert_true(branch_of(&again, "main").is_taken);
    world_done(&world);
}

static void test_what_the_user_did_stays(void **state)
{
    AUTO(commits_done) struct commits taken = {0};
    AUTO(commits_done) struct commits forced = {0};
    struct world world;
    struct err err;

    if (!world_init(&world))
        skip();
    assert_int_equal(inside(&world, "echo 2 > one && git commit -qam second"), 0);
    assert_int_equal(outside(&world, "git checkout -q -b cordon/w/main && git commit -q "
                                     "--allow-empty -m mine && git checkout -q main"),
                     0);
    take(&world, NULL, &taken);
    assert_contains(branch_of(&taken, "main").why, "--force");
    assert_int_equal(outside(&world, "test \"$(git log -1 --format=%s cordon/w/main)\" = mine"), 0);
    take(&world, &(struct commits_wish){.is_forced = true, .branch = "main"}, &forced);
    assert_true(branch_of(&forced, "main").is_taken);
    assert_int_equal(
        commits_take(world.layer, &(struct commits_wish){.branch = "nosuch"}, &taken, &err), -1);
    assert_int_equal(err.code, ERR_NOT_FOUND);
    world_done(&world);
}

static void test_packed_and_gone(void **state)
{
    AUTO(commits_done) struct commits taken = {0};
    struct world world;

    if (!world_init(&world))
        skip();
    assert_int_equal(outside(&world, "git pack-refs --all && git gc -q"), 0);
    assert_int_equal(
        inside(&world,
               "echo 2 > one && git commit -qam second && git branch -D other && git branch b/c && "
               "git gc -q --prune=now && git pack-refs --all"),
        0);
    take(&world, NULL, &taken);
    assert_true(branch_of(&taken, "main").is_taken);
    assert_true(branch_of(&taken, "b/c").is_taken);
    assert_true(branch_of(&taken, "other").is_gone);
    assert_false(branch_of(&taken, "other").is_taken);
    assert_int_equal(
        outside(&world,
                "git rev-parse -q --verify other && test \"$(git show cordon/w/main:one)\" = 2"),
        0);
    world_done(&world);
}

/* --- attacks --- */

/* Each is tried in a layer of its own; `left`: the branch "main" is not to be taken. */
static const struct attack {
    const char *name;
    const char *script;
    bool left;
} attacks[] = {
    {"hooks and configuration",
     "printf '#!/bin/sh\\ntouch %s/../pwned\\n' \"$PWD\" > .git/hooks/x && chmod +x .git/hooks/x "
     "&& "
     "for h in post-checkout reference-transaction post-merge pre-auto-gc post-index-change "
     "fsmonitor-watchman update pre-receive post-update; do "
     "cp .git/hooks/x .git/hooks/$h; done && "
     "git config core.fsmonitor \"$PWD/.git/hooks/x\" && git config core.hooksPath "
     "\"$PWD/.git/hooks\" && git config core.sshCommand \"$PWD/.git/hooks/x\" && "
     "git config uploadpack.packObjectsHook \"$PWD/.git/hooks/x\" && git config "
     "core.alternateRefsCommand \"$PWD/.git/hooks/x\" && "
     "git config extensions.worktreeConfig true && printf '[core]\\nfsmonitor = "
     "%s/.git/hooks/x\\n' \"$PWD\" > .git/config.worktree",
     false},
    {"alternates to a folder of mine",
     "git init -q --bare ../evil; mkdir -p .git/objects/info && echo /etc > "
     ".git/objects/info/alternates",
     false},
    {"objects elsewhere", /* the objects of the commit are only reached by alternates */
     "mkdir -p sub/o && cp -r .git/objects/* sub/o/ && t=$(GIT_OBJECT_DIRECTORY=$PWD/sub/o git "
     "commit-tree -m far HEAD^{tree}) && "
     "mkdir -p .git/objects/info && echo \"$PWD/sub/o\" > .git/objects/info/alternates && echo $t "
     "> .git/refs/heads/main",
     true},
    {"a link for a branch", "rm .git/refs/heads/main; ln -s /etc/hostname .git/refs/heads/main",
     false},
    {"a link for the objects",
     "rm -rf .git/objects/pack; ln -s /etc .git/objects/pack; mv .git/objects .git/o && ln -s o "
     ".git/objects",
     true},
    {"a link for refs", "mv .git/refs .git/r && ln -s r .git/refs", false},
    {"a pipe for a branch", "rm .git/refs/heads/main; mkfifo .git/refs/heads/main", false},
    {"an object under another name",
     "c=$(git rev-parse HEAD) && d=.git/objects/$(echo $c | cut -c1-2) && mkdir -p $d && chmod -R "
     "u+w $d && "
     "b=$(echo evil | git hash-object -w --stdin) && cp .git/objects/$(echo $b | cut -c1-2)/$(echo "
     "$b | cut -c3-) $d/$(echo $c | cut -c3-) -f",
     true},
    {"a tree with .git in it",
     "raw() { perl -e 'print pack q(H*), shift' $1; } && b=$(echo evil | git hash-object -w "
     "--stdin) && "
     "t=$({ printf '100644 config\\0'; raw $b; } | git hash-object -t tree -w --literally --stdin) "
     "&& "
     "r=$({ printf '40000 .git\\0'; raw $t; } | git hash-object -t tree -w --literally --stdin) && "
     "c=$(git commit-tree -m evil $r) && echo $c > .git/refs/heads/main",
     true},
    {"a submodule whose address is an option",
     "printf '[submodule \"x\"]\\npath = x\\nurl = --upload-pack=touch pwned\\n' > .gitmodules && "
     "git add .gitmodules && git commit -qm evil",
     true},
    {"replaced",
     "n=$(git commit-tree -m evil HEAD^{tree}) && mkdir -p .git/refs/replace && echo $n > "
     ".git/refs/replace/$(git rev-parse HEAD)",
     false},
    {"grafted",
     "mkdir -p .git/info && echo $(git rev-parse HEAD) > .git/info/grafts; echo $(git rev-parse "
     "HEAD) > .git/shallow",
     false},
    {"filters",
     "printf '* filter=x\\n' > .gitattributes; git config filter.x.smudge 'touch ../pwned'; git "
     "config filter.x.clean cat; "
     "mkdir -p .git/info; cp .gitattributes .git/info/attributes; git add . && git commit -qm f",
     false},
    {"odd names in packed-refs",
     "c=$(git rev-parse HEAD); rm -f .git/refs/heads/main; { echo \"$c refs/heads/../../config\"; "
     "echo \"$c refs/heads/-x\"; "
     "echo \"$c refs/heads/a b\"; echo \"$c refs/heads/\"; echo \"$c refs/heads/x.lock\"; echo "
     "\"$c\"; echo 'refs/heads/main'; "
     "echo \"$c refs/heads/\\$(touch ../pwned)\"; printf '%s refs/heads/no-end' $c; } > "
     ".git/packed-refs",
     false},
    {"names of files",
     "mkdir -p '.git/refs/heads/--upload-pack=touch pwned' && cp .git/HEAD '.git/refs/heads/--x' "
     "&& git rev-parse HEAD > '.git/refs/heads/;touch pwned'",
     false},
    {"a branch that is a tree", "t=$(git rev-parse HEAD^{tree}) && echo $t > .git/refs/heads/main",
     true},
    {"a pack that is none",
     "p=$(printf '%040d' 7); echo PACK > .git/objects/pack/pack-$p.pack; echo x > "
     ".git/objects/pack/pack-$p.idx; git commit -q --allow-empty -m x",
     true},
    {"HEAD is a link", "rm .git/HEAD; ln -s /etc/passwd .git/HEAD", false},
    {"a long file for a branch", "head -c 100000 /dev/zero | tr '\\0' a > .git/refs/heads/main",
     false},
};

static void test_attacks(void **state)
{
    for (size_t i = 0; i < sizeof attacks / sizeof *attacks; i++) {
        AUTO(commits_done) struct commits taken = {0};
        struct commits_branch branch;
        struct world world;
        struct err err = {0};
        int status;

        if (!world_init(&world))
            skip();
        if (outside(&world, "cp -a .git ../before && git for-each-ref > ../refs"))
            fail();
        print_message("# %s\n", attacks[i].name);
        if (inside(&world, attacks[i].script) != 0)
            fail_msg("the attack itself failed: %s", attacks[i].name);
        status = commits_take(world.layer, &(struct commits_wish){0}, &taken, &err);
        branch = branch_of(&taken, "main");
        if (attacks[i].left && status == 0 && branch.is_taken)
            fail_msg("%s: it was taken", attacks[i].name);
        /* whatever came: only branches of ours, and what they need */
        assert_int_equal(
            outside(
                &world,
                "git for-each-ref | grep -v refs/heads/cordon/w/ > ../now; cmp ../refs ../now && "
                "diff -r --exclude=objects --exclude=cordon --exclude=logs ../before .git && "
                "test -z \"$(git status --porcelain)\" && find .git ! -type f ! -type d | wc -l | "
                "grep -qx 0"),
            0);
        world_done(&world);
    }
}

static void test_without_git(void **state)
{
    AUTO(commits_done) struct commits taken = {0};
    struct place place;
    struct layer *layer;
    struct err err;

    if (!place_init(&place))
        skip();
    layer = place_layer(&place, NULL);
    assert_int_equal(commits_list(layer, &taken, &err), 0);
    assert_int_equal(taken.len, 0);
    assert_int_equal(commits_take(layer, &(struct commits_wish){0}, &taken, &err), -1);
    assert_contains(err.msg, "--layer-git");
    assert_int_equal(layer_remove(layer, &err), 0);
    place_done(&place);
}

#define ID "0123456789012345678901234567890123456789"

/* Sorted or not; of two of one name the first. */
static void test_packed_refs(void **state)
{
    static const char text[] =
        "# pack-refs with: peeled fully-peeled sorted\n" /* as git writes it */
        "a" ID "24680123456789012345678 refs/heads/sha256\n"
        "1" ID " refs/heads/long\n" ID " refs/heads/b\n"
        "^" ID "\n" ID " refs/heads/ab\n"
        "a" ID "\n" ID "\n"
        "9123456789012345678901234567890123456789 refs/heads/b\n" ID " refs/heads/a";
    static const char *const names[] = {"refs/heads/a", "refs/heads/ab", "refs/heads/b",
                                        "refs/heads/b", "refs/heads/sha256"};
    AUTO(packed_refs_done) struct packed_refs refs = {.text = {.max = 4096}};

    packed_refs_parse(&refs);
    assert_int_equal(refs.len, 0);
    buf_append_str(&refs.text, text);
    packed_refs_parse(&refs);
    assert_int_equal(refs.len, 5);
    for (size_t i = 0; i < refs.len; i++) {
        const struct packed_ref *ref = &refs.items[i];

        assert_int_equal(ref->name_len, strlen(names[i]));
        assert_memory_equal(ref->name, names[i], ref->name_len);
        assert_ptr_equal(packed_refs_find(&refs, names[i], ref->name_len), i == 3 ? ref - 1 : ref);
    }
    assert_int_equal(*refs.items[2].commit, '0');
    assert_int_equal(refs.items[4].commit_len, 64);
    assert_null(packed_refs_find(&refs, "refs/heads/", 11));
    assert_null(packed_refs_find(&refs, "refs/heads/long", 15));
    assert_null(packed_refs_find(&refs, "refs/tags/a", 11));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_branches_are_taken), cmocka_unit_test(test_what_the_user_did_stays),
        cmocka_unit_test(test_packed_and_gone),    cmocka_unit_test(test_attacks),
        cmocka_unit_test(test_without_git),        cmocka_unit_test(test_packed_refs),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
