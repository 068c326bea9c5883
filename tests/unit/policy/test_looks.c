/* Cannot look = closed. What is protected is computed from looks at the host; here each of them fails in
 * turn, with the usual errnos, and some with every one, but for the two that say that nothing is there. Either that is an error, or what
 * comes out protects no less than it does when every look works.
 *
 * The sources of policy, and of sandbox what looks, are compiled into this program once more, with
 * CORDON_FAULTS. */
#include "../base/sanitized.h"
#include "../base/support.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "base/sys.h"
#include "policy/host_view.h"
#include "policy/profile.h"
#include "policy/protect.h"
#include "policy/resolve.h"
#include "sandbox/linux/own_paths.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const dirs[] = {
    "ws",
    "ws/.git",
    "ws/.git/objects",
    "ws/.git/hooks",
    "ws/.git/refs",
    "ws/.git/modules",
    "ws/.git/modules/sub",
    "ws/.codex",
    "ws/sub",
    "ws/deep",
    "ws/deep/er",
    "ws/own",
    "tree",
    "tree/main",
    "tree/main/worktrees",
    "tree/main/worktrees/w",
    "tree/w",
    "bare",
    "bare/objects",
    "bare/refs",
    "elsewhere",
    "target",
    "ws/scripts",
};

static const struct {
    const char *dir;
    const char *name;
    const char *text;
} texts[] = {
    {"ws/.git", "HEAD", "ref: refs/heads/main\n"},
    {"ws/.git", "config", "[core]\n\tbare = false\n"},
    {"ws/.git/modules/sub", "HEAD", "ref: refs/heads/main\n"},
    {"ws/sub", ".git", "gitdir: ../.git/modules/sub\n"},
    {"ws/deep", "secret", "x"},
    {"ws/deep", ".env", "x"},
    {"ws/deep/er", ".env", "x"},
    {"ws/own", "rules", "x"},
    {"tree/w", ".git", "gitdir: ../main/worktrees/w\n"},
    {"tree/main/worktrees/w", "commondir", "../..\n"},
    {"tree/main/worktrees/w", "HEAD", "ref: refs/heads/w\n"},
    {"bare", "HEAD", "ref: refs/heads/main\n"},
    {"target", ".env", "x"},
    {"ws/scripts", "check", "x"},
};

/* Version 2, one entry: the submodule "sub". */
static void write_index(const char *ws)
{
    static const char path[] = "sub";
    unsigned char bytes[12 + 72 + 20] = "DIRC\0\0\0\2\0\0\0\1";
    AUTO_FREE char *file = path_join(ws, ".git/index");
    AUTO_CLOSE int fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    bytes[12 + 26] = 0xe0; /* the mode: 0160000 */
    bytes[12 + 61] = sizeof path - 1;
    memcpy(bytes + 12 + 62, path, sizeof path);
    assert_int_equal(write(fd, bytes, sizeof bytes), sizeof bytes);
}

static int enter(void **state)
{
    char *scratch = support_scratch_new();
    AUTO_FREE char *ws = path_join(scratch, "ws");
    AUTO_FREE char *link = path_join(scratch, "elsewhere/link.env");
    AUTO_FREE char *target = path_join(scratch, "target/.env");
    AUTO_FREE char *hook = path_join(scratch, "ws/.git/hooks/pre-commit");

    for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++) {
        AUTO_FREE char *path = path_join(scratch, dirs[i]);

        if (mkdir(path, 0700))
            return -1;
    }
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        AUTO_FREE char *dir = path_join(scratch, texts[i].dir);

        support_write(dir, texts[i].name, texts[i].text);
    }
    write_index(ws);
    *state = scratch;
    return symlink(target, link) || symlink("../../scripts/check", hook) ? -1 : 0;
}

static int leave(void **state)
{
    support_scratch_remove(*state);
    return 0;
}

static void add(struct profile *profile, const char *scratch, const char *text, enum access access)
{
    const struct profile_text options = {.text = text, .access = access, .base = scratch};
    struct err err;

    if (profile_add_text(profile, &options, &err))
        fail_msg("%s", err.msg);
}

/* What a run in ws is held to: profile, protected names, patterns, and what belongs to Cordon. */
static int compute(const char *scratch, struct access_map *ret, struct err *err)
{
    AUTO(profile_done) struct profile profile = {0};
    AUTO(access_map_done) struct access_map map = {0};
    AUTO_FREE char *ws = path_join(scratch, "ws");
    AUTO_FREE char *rules = path_join(scratch, "ws/own/rules");
    AUTO_FREE char *config = path_join(scratch, "ws/conf/cordon");
    AUTO(strv_done) struct strv own_paths = {0};
    char *const roots[] = {ws, NULL};
    AUTO(protect_choice_done) struct protect_choice protect = {0};
    const struct resolve_context context = {
        .view = &host_view_real, .workspace_roots = roots, .protect = &protect};

    if (protect_choice_add(&protect, "git", err) || protect_choice_add(&protect, "./.codex", err))
        return -1;
    add(&profile, scratch, ":root", ACCESS_READ);
    add(&profile, scratch, "ws", ACCESS_WRITE);
    add(&profile, scratch, "tree", ACCESS_WRITE);
    add(&profile, scratch, "tree/w", ACCESS_WRITE);
    add(&profile, scratch, "bare", ACCESS_WRITE);
    add(&profile, scratch, "ws/deep/secret", ACCESS_DENY);
    add(&profile, scratch, "ws/deep/none", ACCESS_DENY);
    add(&profile, scratch, "ws/**/.env", ACCESS_DENY);
    add(&profile, scratch, "elsewhere/*.env", ACCESS_DENY);
    strv_push(&own_paths, rules);
    strv_push(&own_paths, config);
    if (profile_resolve(&profile, &context, &map, err) || own_paths_protect(&map, &own_paths, err))
        return -1;
    *ret = map;
    map = (struct access_map){0};
    return 0;
}

/* A name that is there and taken for missing would be held, and not covered. */
static void check_no_less(const struct access_map *map, const struct access_map *wanted, int error,
                          unsigned nth)
{
    for (size_t i = 0; i < wanted->len; i++) {
        const struct access_entry *entry = &wanted->entries[i];
        const struct access_entry *now = access_map_exact(map, entry->path);

        /* a link in a directory that is denied as a whole is as good as removed */
        if (error == EACCES && str_starts(entry->origin, "target of "))
            continue;
        if (access_map_check(map, entry->path) > entry->access)
            fail_msg("look %u failing with %s opens %s", nth, strerror(error), entry->path);
        if (now && now->kind == ACCESS_MISSING && entry->kind != ACCESS_MISSING)
            fail_msg("look %u failing with %s hides %s", nth, strerror(error), entry->path);
    }
}

static bool is_usual(int error)
{
    static const int usual[] = {EPERM, EINTR, EIO, EAGAIN, EACCES, EMFILE, ELOOP, ESTALE};

    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        if (usual[i] == error)
            return true;
    return false;
}

static void every_errno_at_every_look(void **state)
{
    enum { ERRORS = 133 /* EHWPOISON, the last one */, STRIDE = SANITIZED ? 5 : 1 };
    AUTO(access_map_done) struct access_map wanted = {0};
    unsigned looks, refused = 0, covered = 0;
    struct err err;

    sys_fault_at(0, 0);
    if (compute(*state, &wanted, &err))
        fail_msg("%s", err.msg);
    looks = sys_fault_count();
    assert_true(looks > 100);
    for (unsigned nth = 1; nth <= looks; nth += STRIDE) {
        for (int error = 1; error <= ERRORS; error++) {
            AUTO(access_map_done) struct access_map map = {0};

            /* the two that mean "not there" are left out; the usual ones fail every look */
            if (error == ENOENT || error == ENOTDIR || (nth % 32 != 1 && !is_usual(error)))
                continue;
            sys_fault_at(nth, error);
            if (compute(*state, &map, &err)) {
                refused++;
                assert_true(*err.msg);
                continue;
            }
            /* what is hidden can be covered, and a read that was interrupted begins again */
            if (error != EACCES && error != EINTR)
                fail_msg("look %u failing with %s changes nothing", nth, strerror(error));
            covered++;
            check_no_less(&map, &wanted, error, nth);
        }
    }
    sys_fault_at(0, 0);
    assert_true(refused > covered && covered > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_errno_at_every_look, enter, leave),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
