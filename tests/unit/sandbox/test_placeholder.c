/* Placeholders, with several processes at once: whichever of them holds one, nothing is lost that
 * is not ours, and nothing of ours is left.
 *
 * The module keeps one table per process and cleans up after the dead once per process; so every
 * use of it here is in a worker, a forked process that does what it is told over a socket. */
#include "../base/support.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "sandbox/linux/placeholder.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ITEMS_MAX = 4, USES_MAX = 1000, OTHER_USER = 64999 };

static char *scratch;   /* canonical */
static char *registry;  /* scratch/run/cordon, by XDG_RUNTIME_DIR */
static char *workspace; /* scratch/ws, of each test */

/* -- workers */

enum order { ACQUIRE = 'a', RELEASE = 'r', VALIDATE = 'v', REGISTRY = 'g' };

struct request {
    enum order order;
    struct plan_placeholder items[ITEMS_MAX]; /* pointers mean the same in a forked process */
    size_t len;
};

struct answer {
    int status;
    bool is_absent; /* the first item */
    bool is_valid;
    unsigned fds;
    struct err err;
    char registry[256];
};

struct worker {
    pid_t pid;
    int socket;
};

static void worker_acquire(const struct request *request, struct placeholders **held, size_t *len,
                           struct answer *answer)
{
    struct placeholders *more;

    answer->status = placeholders_acquire(request->items, request->len, &more, &answer->err);
    if (answer->status)
        return;
    held[(*len)++] = more;
    answer->is_absent = placeholders_absent(more) && placeholders_absent(more)[0];
}

static void worker_main(int socket)
{
    static struct placeholders *held[USES_MAX + 1];
    size_t len = 0;
    struct request request;

    while (recv(socket, &request, sizeof request, 0) == (ssize_t)sizeof request) {
        struct answer answer = {0};
        const char *where;

        if (request.order == ACQUIRE)
            worker_acquire(&request, held, &len, &answer);
        if (request.order == RELEASE && len)
            placeholders_release(held[--len]);
        if (request.order == VALIDATE && len)
            answer.is_valid = placeholders_are_valid(held[len - 1]);
        if (request.order == REGISTRY && (where = placeholders_registry(&answer.err)))
            snprintf(answer.registry, sizeof answer.registry, "%s", where);
        answer.fds = support_open_fds();
        send(socket, &answer, sizeof answer, 0);
    }
    _exit(0);
}

/* With `uid` other than 0, as that user. */
static struct worker worker_start_as(uid_t uid)
{
    struct worker worker;
    int pair[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    worker.pid = fork();
    assert_true(worker.pid >= 0);
    if (worker.pid == 0) {
        close(pair[0]);
        if (uid && (setresgid(uid, uid, uid) || setresuid(uid, uid, uid)))
            _exit(1);
        worker_main(pair[1]);
    }
    close(pair[1]);
    worker.socket = pair[0];
    return worker;
}

static struct worker worker_start(void)
{
    return worker_start_as(0);
}

static struct answer worker_ask(const struct worker *worker, const struct request *request)
{
    struct answer answer;

    assert_int_equal(send(worker->socket, request, sizeof *request, MSG_NOSIGNAL), sizeof *request);
    assert_int_equal(recv(worker->socket, &answer, sizeof answer, 0), sizeof answer);
    return answer;
}

static struct answer worker_order(const struct worker *worker, enum order order)
{
    struct request request = {.order = order};

    return worker_ask(worker, &request);
}

static struct answer worker_try(const struct worker *worker, const char *path, bool is_file)
{
    struct request request = {
        .order = ACQUIRE,
        .items = {{.path = (char *)path,
                   .kind = is_file ? PLAN_PLACEHOLDER_FILE : PLAN_PLACEHOLDER_DIR}},
        .len = 1};

    return worker_ask(worker, &request);
}

static void worker_acquires(const struct worker *worker, const char *path, bool is_file)
{
    struct answer answer = worker_try(worker, path, is_file);

    if (answer.status)
        fail_msg("acquiring %s: %s", path, answer.err.msg);
}

static void worker_stop(const struct worker *worker)
{
    int status;

    shutdown(worker->socket, SHUT_RDWR); /* later workers have a copy of the descriptor */
    close(worker->socket);
    assert_int_equal(waitpid(worker->pid, &status, 0), worker->pid);
    assert_int_equal(status, 0);
}

static void worker_kill(const struct worker *worker)
{
    assert_int_equal(kill(worker->pid, SIGKILL), 0);
    assert_int_equal(waitpid(worker->pid, NULL, 0), worker->pid);
    close(worker->socket);
}

/* -- looking */

static bool exists(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0;
}

static unsigned count_names(const char *dir)
{
    DIR *stream = opendir(dir);
    unsigned count = 0;

    if (!stream)
        return 0;
    for (const struct dirent *entry; (entry = readdir(stream));)
        count += !str_eq(entry->d_name, ".") && !str_eq(entry->d_name, "..");
    closedir(stream);
    return count;
}

/* Journals in which something stands, and whatever else is in the registry: only the file "0" is
 * allowed to stay, empty. */
static unsigned count_journals(void)
{
    AUTO_FREE char *lasting = path_join(registry, "0");
    struct stat st;

    return count_names(registry) - (lstat(lasting, &st) == 0 && st.st_size == 0);
}

static void assert_nothing_left(void)
{
    assert_int_equal(count_names(workspace), 0);
    assert_int_equal(count_journals(), 0);
}

/* -- tests; each starts with an empty workspace */

static void test_made_and_removed(void **state)
{
    AUTO_FREE char *git = path_join(workspace, ".git");
    AUTO_FREE char *codex = path_join(workspace, ".codex");
    struct request request = {.order = ACQUIRE, .items = {{git, false}, {codex, true}}, .len = 2};
    struct worker worker = worker_start();
    struct stat st;

    assert_int_equal(worker_ask(&worker, &request).status, 0);
    assert_int_equal(lstat(git, &st), 0);
    assert_true(S_ISDIR(st.st_mode));
    assert_int_equal(st.st_mode & 0222, 0);
    assert_int_equal(lstat(codex, &st), 0);
    assert_true(S_ISREG(st.st_mode));
    assert_int_equal(st.st_mode & 0222, 0);
    assert_int_equal(st.st_size, 0);
    assert_int_equal(count_journals(), 1);
    assert_true(worker_order(&worker, VALIDATE).is_valid);
    worker_order(&worker, RELEASE);
    assert_nothing_left();
    worker_stop(&worker);
}

/* What looks like nothing of value is still not ours. */
static void test_real_things_are_left_alone(void **state)
{
    AUTO_FREE char *git = path_join(workspace, ".git");
    AUTO_FREE char *empty = path_join(workspace, "empty");
    AUTO_FREE char *file = path_join(workspace, "file");
    AUTO_FREE char *link = path_join(workspace, "link");
    struct request request = {.order = ACQUIRE,
                              .items = {{git, false}, {empty, false}, {file, true}, {link, true}},
                              .len = 4};
    struct worker worker = worker_start();

    assert_int_equal(mkdir(git, 0755), 0);
    support_write(git, "config", "[core]\n");
    assert_int_equal(mkdir(empty, 0755), 0);
    support_write(workspace, "file", "");
    assert_int_equal(symlink("/nowhere", link), 0);
    assert_int_equal(worker_ask(&worker, &request).status, 0);
    worker_order(&worker, RELEASE);
    worker_stop(&worker);
    assert_int_equal(count_names(workspace), 4);
    assert_int_equal(count_names(git), 1);
}

static void test_shared_by_two_processes(void **state)
{
    AUTO_FREE char *git = path_join(workspace, ".git");
    struct worker one = worker_start();
    struct worker two = worker_start();

    worker_acquires(&one, git, false);
    worker_acquires(&two, git, false);
    worker_order(&one, RELEASE);
    assert_true(exists(git));
    assert_true(worker_order(&two, VALIDATE).is_valid);
    worker_order(&two, RELEASE);
    assert_nothing_left();
    worker_stop(&one);
    worker_stop(&two);
}

static void test_found_again_after_a_kill(void **state)
{
    AUTO_FREE char *git = path_join(workspace, ".git");
    AUTO_FREE char *codex = path_join(workspace, ".codex");
    AUTO_FREE char *other = path_join(workspace, "other");
    struct request request = {.order = ACQUIRE, .items = {{git, false}, {codex, true}}, .len = 2};
    struct worker dead = worker_start();
    struct worker next = worker_start();

    assert_int_equal(worker_ask(&dead, &request).status, 0);
    worker_kill(&dead);
    assert_true(exists(git) && exists(codex));
    worker_acquires(&next, other, true);
    assert_false(exists(git) || exists(codex));
    assert_int_equal(count_journals(), 1); /* that of `next` */
    worker_order(&next, RELEASE);
    assert_nothing_left();
    worker_stop(&next);
}

/* The dead one's journal names a placeholder that another process holds by now. */
static void test_a_kill_takes_nothing_from_others(void **state)
{
    AUTO_FREE char *git = path_join(workspace, ".git");
    AUTO_FREE char *other = path_join(workspace, "other");
    struct worker dead = worker_start();
    struct worker alive = worker_start();
    struct worker next = worker_start();

    worker_acquires(&dead, git, false);
    worker_acquires(&alive, git, false);
    worker_kill(&dead);
    worker_acquires(&next, other, true);
    assert_true(exists(git));
    assert_true(worker_order(&alive, VALIDATE).is_valid);
    worker_order(&next, RELEASE);
    worker_order(&alive, RELEASE);
    assert_nothing_left();
    worker_stop(&alive);
    worker_stop(&next);
}

/* The same name once more after a kill: the new one takes it over and takes it away. */
static void test_taken_over_after_a_kill(void **state)
{
    AUTO_FREE char *git = path_join(workspace, ".git");
    struct worker dead = worker_start();
    struct worker next = worker_start();

    worker_acquires(&dead, git, false);
    worker_kill(&dead);
    worker_acquires(&next, git, false);
    assert_true(exists(git));
    worker_order(&next, RELEASE);
    assert_nothing_left();
    worker_stop(&next);
}

/* Where this user can make nothing, its command cannot either. Nobody can in sysfs. */
static void test_a_folder_that_refuses(void **state)
{
    struct worker worker = worker_start();
    struct answer answer;

    if (!exists("/sys/kernel")) {
        print_message("skipped: /sys is not mounted here\n");
        assert_null(getenv("CORDON_MUST_WORK"));
        skip();
    }
    answer = worker_try(&worker, "/sys/kernel/.git", false);
    assert_int_equal(answer.status, 0);
    assert_true(answer.is_absent);
    worker_order(&worker, RELEASE);
    worker_stop(&worker);
    assert_int_equal(count_journals(), 0);
}

static void test_a_link_on_the_way_is_refused(void **state)
{
    AUTO_FREE char *outside = path_join(workspace, "outside");
    AUTO_FREE char *link = path_join(workspace, "link");
    AUTO_FREE char *git = path_join(link, ".git");
    AUTO_FREE char *fine = path_join(workspace, "fine");
    struct request request = {.order = ACQUIRE, .items = {{fine, true}, {git, false}}, .len = 2};
    struct worker worker = worker_start();
    struct answer answer;

    assert_int_equal(mkdir(outside, 0755), 0);
    assert_int_equal(symlink("outside", link), 0);
    answer = worker_ask(&worker, &request);
    assert_int_equal(answer.status, -1);
    assert_contains(answer.err.msg, link);
    assert_int_equal(count_names(outside), 0);
    assert_false(exists(fine)); /* made before the failure */
    assert_int_equal(count_journals(), 0);
    worker_stop(&worker);
}

static void test_a_thousand_uses_hold_one(void **state)
{
    AUTO_FREE char *git = path_join(workspace, ".git");
    struct worker worker = worker_start();
    unsigned with_one;

    worker_acquires(&worker, git, false);
    with_one = worker_order(&worker, VALIDATE).fds;
    for (int i = 1; i < USES_MAX; i++)
        worker_acquires(&worker, git, false);
    assert_int_equal(worker_order(&worker, VALIDATE).fds, with_one);
    for (int i = 1; i < USES_MAX; i++)
        worker_order(&worker, RELEASE);
    assert_true(exists(git));
    worker_order(&worker, RELEASE);
    assert_false(exists(git));
    worker_order(&worker, RELEASE);
    assert_nothing_left();
    assert_true(worker_order(&worker, VALIDATE).fds < with_one);
    worker_stop(&worker);
}

/* Another program removes a placeholder while it is needed: the next command gets a new one, and
 * what the older command still holds takes nothing away from it. */
static void test_removed_from_outside(void **state)
{
    AUTO_FREE char *git = path_join(workspace, ".git");
    struct worker worker = worker_start();

    worker_acquires(&worker, git, false);
    assert_int_equal(rmdir(git), 0);
    assert_false(worker_order(&worker, VALIDATE).is_valid);
    worker_acquires(&worker, git, false);
    assert_true(exists(git));
    worker_order(&worker, RELEASE);
    assert_false(exists(git));
    worker_order(&worker, RELEASE);
    assert_nothing_left();
    worker_stop(&worker);
}

/* Somebody outside puts something into it, or something else into its place. */
static void test_what_others_put_there_stays(void **state)
{
    AUTO_FREE char *git = path_join(workspace, ".git");
    AUTO_FREE char *codex = path_join(workspace, ".codex");
    struct request request = {.order = ACQUIRE, .items = {{git, false}, {codex, true}}, .len = 2};
    struct worker worker = worker_start();

    assert_int_equal(worker_ask(&worker, &request).status, 0);
    assert_int_equal(chmod(git, 0755), 0);
    support_write(git, "HEAD", "ref: refs/heads/main\n");
    assert_int_equal(unlink(codex), 0);
    support_write(workspace, ".codex", "mine");
    worker_order(&worker, RELEASE);
    worker_stop(&worker);
    assert_int_equal(count_names(git), 1);
    assert_true(exists(codex));
}

/* -- the registry */

static void plant(const char *name, const void *data, size_t len)
{
    AUTO_FREE char *path = path_join(registry, name);
    AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    struct err err;

    assert_true(fd >= 0);
    assert_int_equal(fd_write_all(fd, data, len, &err), 0);
}

/* Whatever stands in the registry, only placeholders are removed. */
static void test_garbage_in_the_registry(void **state)
{
    AUTO_FREE char *other = path_join(workspace, "other");
    AUTO_FREE char *file = path_join(workspace, "precious");
    AUTO_FREE char *empty = path_join(workspace, "empty");
    AUTO_FREE char *fifo = path_join(registry, "fifo");
    AUTO_FREE char *dir = path_join(registry, "dir");
    AUTO_FREE char *link = path_join(registry, "link");
    AUTO_FREE char *junk = alloc_zero(1 << 20, 1);
    struct worker worker = worker_start();

    support_write(workspace, "precious", "");
    assert_int_equal(mkdir(empty, 0755), 0);
    memset(junk, '/', 1 << 20);
    plant("real-things", file, strlen(file) + 1);
    plant("real-directory", empty, strlen(empty) + 1);
    plant("no-end", empty, strlen(empty));
    plant("relative", "precious\0../ws/precious\0", 24);
    plant("not-clean", "//\0/..\0/./x\0\0\0", 14);
    plant("empty", "", 0);
    plant("slashes", junk, 1 << 20);
    plant("noise", "\xff\xfe\x01\n\0\x7f", 6);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_int_equal(mkdir(dir, 0700), 0);
    assert_int_equal(symlink(file, link), 0);
    worker_acquires(&worker, other, true);
    worker_order(&worker, RELEASE);
    worker_stop(&worker);
    assert_true(exists(file));
    assert_true(exists(empty));
    assert_false(exists(other));
    assert_int_equal(count_names(workspace), 2);
    unlink(fifo);
    unlink(link);
    rmdir(dir);
    assert_int_equal(count_journals(), 0);
}

/* A journal whose last entry was cut off: the first is acted on, the second was never made. */
static void test_a_journal_cut_short(void **state)
{
    AUTO_FREE char *left = path_join(workspace, "left");
    AUTO_FREE char *other = path_join(workspace, "other");
    AUTO_FREE char *text = alloc_strf("%s%c%s", left, '|', left);
    struct worker worker = worker_start();

    assert_int_equal(mkdir(left, 0555), 0);
    assert_int_equal(chmod(left, 01555), 0); /* as a placeholder is marked */
    text[strlen(left)] = '\0';
    plant("cut", text, 2 * strlen(left) + 1);
    worker_acquires(&worker, other, true);
    assert_false(exists(left));
    worker_order(&worker, RELEASE);
    worker_stop(&worker);
    assert_nothing_left();
}

static void test_the_registry_is_ours_alone(void **state)
{
    struct worker worker = worker_start();
    struct answer answer;

    assert_string_equal(worker_order(&worker, REGISTRY).registry, registry);
    worker_stop(&worker);
    assert_int_equal(chmod(registry, 0777), 0);
    worker = worker_start();
    answer = worker_order(&worker, REGISTRY);
    worker_stop(&worker);
    assert_int_equal(chmod(registry, 0700), 0);
    assert_string_not_equal(answer.registry, registry);
    assert_string_not_equal(answer.registry, "");
    rmdir(answer.registry); /* stays when it is in use */
}

/* Only root can be two users. In a directory like /tmp a user cannot remove what another one made:
 * its maker has to, even when the other one let go last. */
static void test_two_users_in_a_sticky_directory(void **state)
{
    AUTO_FREE char *git = path_join(workspace, ".git");
    AUTO_FREE char *other = path_join(workspace, "other");
    struct worker one;
    struct worker two;
    struct worker next;

    assert_int_equal(chmod(scratch, 0755), 0);
    assert_int_equal(chmod(workspace, 01777), 0);
    one = worker_start();
    worker_acquires(&one, git, false);
    assert_int_equal(setenv("XDG_RUNTIME_DIR", workspace, 1), 0);
    two = worker_start_as(OTHER_USER);
    worker_acquires(&two, git, false);
    worker_order(&one, RELEASE);
    assert_true(exists(git));
    worker_order(&two, RELEASE);
    worker_stop(&two);
    worker_stop(&one);
    AUTO_FREE char *run = path_join(scratch, "run");
    assert_int_equal(setenv("XDG_RUNTIME_DIR", run, 1), 0);
    next = worker_start();
    worker_acquires(&next, other, true);
    assert_false(exists(git));
    worker_order(&next, RELEASE);
    worker_stop(&next);
}

/* -- */

static int setup(void **state)
{
    AUTO_FREE char *run = NULL;

    scratch = support_scratch_new();
    run = path_join(scratch, "run");
    registry = path_join(run, "cordon");
    workspace = path_join(scratch, "ws");
    return mkdir(run, 0700) || mkdir(registry, 0700) || mkdir(workspace, 0755) ||
           setenv("XDG_RUNTIME_DIR", run, 1);
}

static int teardown(void **state)
{
    support_scratch_remove(scratch);
    free(registry);
    free(workspace);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_made_and_removed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_real_things_are_left_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(test_shared_by_two_processes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_found_again_after_a_kill, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_kill_takes_nothing_from_others, setup, teardown),
        cmocka_unit_test_setup_teardown(test_taken_over_after_a_kill, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_folder_that_refuses, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_link_on_the_way_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_thousand_uses_hold_one, setup, teardown),
        cmocka_unit_test_setup_teardown(test_removed_from_outside, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_others_put_there_stays, setup, teardown),
        cmocka_unit_test_setup_teardown(test_garbage_in_the_registry, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_journal_cut_short, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_registry_is_ours_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(test_two_users_in_a_sticky_directory, setup, teardown),
    };
    size_t len = sizeof tests / sizeof *tests;

    if (geteuid() != 0)
        len--; /* the last one is root's */
    return _cmocka_run_group_tests("placeholder", tests, len, NULL, NULL);
}
