/* host_view: the real host, in a scratch directory. */
#include "../base/cases.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/path.h"
#include "policy/host_view.h"
#include "policy/profile.h"
#include "policy/resolve.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct host_view *const view = &host_view_real;

/* A directory with one of each kind; removed by leave(). */
static int enter(void **state)
{
    const char *tmp = getenv("TMPDIR");
    char *dir = alloc_strf("%s/cordon-host-view-XXXXXX", tmp && tmp[0] ? tmp : "/tmp");
    char *real;
    int fd;

    if (!mkdtemp(dir) || !(real = realpath(dir, NULL)) || chdir(real))
        return -1;
    free(dir);
    fd = open("file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, "gitdir: x\n", 10) != 10 || close(fd) || mkdir("dir", 0700) ||
        mkfifo("pipe", 0600) || symlink("dir", "link") || symlink("nowhere", "dangling"))
        return -1;
    *state = real;
    return 0;
}

static int leave(void **state)
{
    AUTO_FREE char *dir = *state;

    return unlink("file") || rmdir("dir") || unlink("pipe") || unlink("link") ||
           unlink("dangling") || chdir("/") || rmdir(dir);
}

static enum host_kind kind_of(void **state, const char *name)
{
    AUTO_FREE char *path = path_join(*state, name);
    enum host_kind kind;
    struct err err;

    if (view->kind(view, path, &kind, &err))
        fail_msg("%s", err.msg);
    return kind;
}

static void kinds(void **state)
{
    assert_int_equal(kind_of(state, "file"), HOST_FILE);
    assert_int_equal(kind_of(state, "dir"), HOST_DIR);
    assert_int_equal(kind_of(state, "pipe"), HOST_OTHER);
    assert_int_equal(kind_of(state, "link"), HOST_SYMLINK);
    assert_int_equal(kind_of(state, "dangling"), HOST_SYMLINK);
    assert_int_equal(kind_of(state, "nothing"), HOST_MISSING);
    assert_int_equal(kind_of(state, "file/below"), HOST_MISSING);
}

static void links(void **state)
{
    AUTO_FREE char *link = path_join(*state, "link");
    AUTO_FREE char *file = path_join(*state, "file");
    AUTO_FREE char *target = NULL;
    struct err err;

    target = view->link(view, link, &err);
    assert_string_equal(target, "dir");
    assert_null(view->link(view, file, &err));
    assert_int_equal(err.code, ERR_SYSTEM);
}

static void listings_are_ordered(void **state)
{
    static const struct host_item wanted[] = {
        {(char *)"dangling", HOST_SYMLINK}, {(char *)"dir", HOST_DIR},
        {(char *)"file", HOST_FILE},        {(char *)"link", HOST_SYMLINK},
        {(char *)"pipe", HOST_OTHER},
    };
    AUTO(host_listing_done) struct host_listing listing = {0};
    struct err err;

    assert_int_equal(view->list(view, *state, &listing, &err), 0);
    assert_int_equal(listing.len, 5);
    for (size_t i = 0; i < 5; i++) {
        assert_string_equal(listing.items[i].name, wanted[i].name);
        assert_int_equal(listing.items[i].kind, wanted[i].kind);
    }
}

static void what_is_no_dir_has_no_listing(void **state)
{
    static const char *const names[] = {"nothing", "file", "link"};

    for (size_t i = 0; i < 3; i++) {
        AUTO_FREE char *path = path_join(*state, names[i]);
        AUTO(host_listing_done) struct host_listing listing = {0};
        struct err err;

        assert_int_equal(view->list(view, path, &listing, &err), -1);
        assert_int_equal(err.code, ERR_NOT_FOUND);
        assert_int_equal(listing.len, 0);
    }
}

static void texts(void **state)
{
    AUTO_FREE char *file = path_join(*state, "file");
    AUTO_FREE char *pipe = path_join(*state, "pipe");
    AUTO_FREE char *link = path_join(*state, "link");
    AUTO(buf_done) struct buf text = {0};
    struct err err;

    assert_int_equal(view->text(view, file, 10, &text, &err), 0);
    assert_string_equal(text.data, "gitdir: x\n");
    buf_done(&text);
    assert_int_equal(view->text(view, file, 9, &text, &err), -1);
    assert_int_equal(err.code, ERR_LIMIT);
    assert_int_equal(view->text(view, pipe, 10, &text, &err), -1);
    assert_int_equal(err.code, ERR_INVALID);
    assert_int_equal(view->text(view, link, 10, &text, &err), -1);
}

/* A directory without rights: as root nothing is hidden, so only an ordinary user sees these. */
static void what_is_hidden(void **state)
{
    AUTO_FREE char *dir = path_join(*state, "dir");
    AUTO(host_listing_done) struct host_listing listing = {0};
    struct err err;

    assert_int_equal(chmod(dir, 0), 0);
    if (geteuid() == 0) {
        assert_int_equal(kind_of(state, "dir/x"), HOST_MISSING);
    } else {
        assert_int_equal(kind_of(state, "dir/x"), HOST_HIDDEN);
        assert_int_equal(view->list(view, dir, &listing, &err), -1);
        assert_int_equal(err.code, ERR_FORBIDDEN);
    }
    assert_int_equal(chmod(dir, 0700), 0);
}

/* The whole way on the real host: the workspace is writable, its metadata is not. */
static void a_workspace_on_this_host(void **state)
{
    char *roots[] = {*state, NULL};
    struct resolve_context context = {.view = view, .workspace_roots = roots};
    AUTO(profile_done) struct profile profile = {0};
    AUTO(access_map_done) struct access_map map = {0};
    AUTO_FREE char *git = path_join(*state, ".git/hooks");
    AUTO_FREE char *file = path_join(*state, "file");
    struct err err;

    assert_true(profile_init_builtin(&profile, ":workspace"));
    if (profile_resolve(&profile, &context, &map, &err))
        fail_msg("%s", err.msg);
    assert_int_equal(access_map_check(&map, file), ACCESS_WRITE);
    assert_int_equal(access_map_check(&map, git), ACCESS_READ);
    assert_int_equal(access_map_check(&map, "/etc"), ACCESS_READ);
    assert_true(access_map_full_read(&map));
}

/* Asked once about each name; what fails, each time. */
static void a_memory(void **state)
{
    AUTO(host_memory_done) struct host_memory memory;
    AUTO(host_listing_done) struct host_listing listing = {0};
    AUTO_FREE char *file = path_join(*state, "file");
    AUTO_FREE char *new = path_join(*state, "new");
    AUTO_FREE char *below = path_join(*state, "dangling/x");
    AUTO_FREE char *long_name = alloc_strf("/%0300d", 0);
    enum host_kind kind = HOST_OTHER;
    struct err err;

    host_memory_begin(&memory, view);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(memory.view.kind(&memory.view, file, &kind, &err), 0);
        assert_int_equal(kind, HOST_FILE);
        assert_int_equal(memory.view.kind(&memory.view, new, &kind, &err), 0);
        assert_int_equal(kind, HOST_MISSING);
        assert_int_equal(memory.view.kind(&memory.view, below, &kind, &err), 0);
        assert_int_equal(kind, HOST_MISSING);
        assert_int_equal(memory.view.kind(&memory.view, long_name, &kind, &err), -1);
        assert_int_equal(mkdir(new, 0700), i ? -1 : 0);
    }
    assert_int_equal(memory.view.list(&memory.view, *state, &listing, &err), 0);
    assert_int_equal(listing.len, 6);
    host_memory_done(&memory);
    host_memory_begin(&memory, view);
    assert_int_equal(memory.view.kind(&memory.view, new, &kind, &err), 0);
    assert_int_equal(kind, HOST_DIR);
    assert_int_equal(rmdir(new), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds),
        cmocka_unit_test(links),
        cmocka_unit_test(listings_are_ordered),
        cmocka_unit_test(what_is_no_dir_has_no_listing),
        cmocka_unit_test(texts),
        cmocka_unit_test(what_is_hidden),
        cmocka_unit_test(a_memory),
        cmocka_unit_test(a_workspace_on_this_host),
    };

    return cmocka_run_group_tests(tests, enter, leave);
}
