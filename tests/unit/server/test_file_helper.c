/* file_helper: the program cordon-files, driven through its socket, without a sandbox. */
#include "fake_sandbox.h"
#include "run.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/json.h"
#include "server/files/file_helper.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct desk {
    struct loop *loop;
    struct file_helper *helper;
    char *folder;
    bool has_come;
    unsigned answers;
    char *text; /* of the last answer; NULL: it failed */
    size_t len;
    int fd;
    struct err failure;
};

static void on_answer(void *user, const struct file_answer *answer)
{
    struct desk *desk = user;

    desk->answers++;
    desk->has_come = true;
    free(desk->text);
    desk->len = answer->text->len;
    desk->text = answer->failure ? NULL : buf_take(answer->text);
    if (answer->failure)
        desk->failure = *answer->failure;
    desk->fd = TAKE_FD(*answer->fd);
}

static void desk_open(struct desk *desk, const char *program)
{
    const struct file_helper_options options = {
        .loop = loop_new(&desk->failure), .sandbox = fake_sandbox(), .program = program};
    struct err err;

    fake = (struct fake){0};
    *desk = (struct desk){.loop = options.loop, .folder = support_scratch_new(), .fd = -1};
    desk->helper = file_helper_start(&options, &err);
    assert_non_null(desk->helper);
}

static void desk_close(struct desk *desk)
{
    file_helper_free(desk->helper);
    loop_free(desk->loop);
    support_scratch_remove(desk->folder);
    free(desk->text);
}

/* Both are taken over. */
static void send_data_call(struct desk *desk, char *text, json_t *data)
{
    struct file_call call = {
        .text = text, .len = strlen(text), .data = data, .on_answer = on_answer, .user = desk};
    struct err err = ERR_UNTOUCHED;

    assert_int_equal(file_helper_call(desk->helper, &call, &err), 0);
    assert_untouched(err);
    assert_true(file_helper_is_busy(desk->helper));
}

static void send_call(struct desk *desk, char *text)
{
    send_data_call(desk, text, NULL);
}

static void until_answer(struct desk *desk)
{
    struct err err;

    desk->has_come = false;
    assert_int_equal(loop_run(desk->loop, &desk->has_come, &err), 0);
}

static char *path_call(const struct desk *desk, const char *method, const char *name)
{
    return alloc_strf("{\"method\":\"%s\",\"params\":{\"path\":\"file://%s/%s\"}}", method,
                      desk->folder, name);
}

static void call(struct desk *desk, const char *method, const char *name)
{
    send_call(desk, path_call(desk, method, name));
    until_answer(desk);
    assert_false(file_helper_is_busy(desk->helper));
}

/* `len` bytes, of which none is alike its neighbours. */
static void write_large(const struct desk *desk, const char *name, size_t len)
{
    AUTO_FREE char *path = alloc_strf("%s/%s", desk->folder, name);
    AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    AUTO_FREE char *data = alloc_zero(len, 1);

    for (size_t i = 0; i < len; i++)
        data[i] = (char)(i * 31 % 253);
    assert_int_equal(write(fd, data, len), len);
}

static void calls_are_answered(void **state)
{
    struct desk desk;

    desk_open(&desk, getenv("FILES_PROGRAM"));
    support_write(desk.folder, "f", "hi\n");
    call(&desk, "fs/readFile", "f");
    assert_string_equal(desk.text, "{\"dataBase64\":\"aGkK\"}");
    call(&desk, "fs/readFile", "nope");
    assert_null(desk.text);
    assert_int_equal(desk.failure.sys, ENOENT);
    call(&desk, "fs/createDirectory", "d");
    assert_string_equal(desk.text, "{}");
    assert_int_equal(desk.answers, 3);
    assert_int_equal(fake.launches, 1);
    assert_false(file_helper_is_gone(desk.helper));
    desk_close(&desk);
}

static void an_open_file_comes_over(void **state)
{
    struct desk desk;
    char text[4] = {0};

    desk_open(&desk, getenv("FILES_PROGRAM"));
    support_write(desk.folder, "f", "hi\n");
    call(&desk, "fs/open", "f");
    assert_true(desk.fd >= 0);
    assert_true(fcntl(desk.fd, F_GETFD) & FD_CLOEXEC);
    assert_int_equal(read(desk.fd, text, sizeof text), 3);
    assert_string_equal(text, "hi\n");
    close(desk.fd);
    call(&desk, "fs/readFile", "f");
    assert_int_equal(desk.fd, -1);
    desk_close(&desk);
}

static void large_files_go_both_ways(void **state)
{
    struct desk desk;
    AUTO_FREE char *first = NULL;
    AUTO_JSON json_t *answer = NULL;

    desk_open(&desk, getenv("FILES_PROGRAM"));
    write_large(&desk, "big", 3000000);
    call(&desk, "fs/readFile", "big");
    assert_non_null(desk.text);
    assert_int_equal(desk.len, strlen("{\"dataBase64\":\"\"}") + 4000000);
    first = TAKE_PTR(desk.text);
    answer = json_loads(first, 0, NULL);
    send_data_call(&desk, path_call(&desk, "fs/writeFile", "copy"),
                   json_incref(json_object_get(answer, "dataBase64")));
    until_answer(&desk);
    assert_non_null(desk.text);
    assert_string_equal(desk.text, "{}");
    call(&desk, "fs/readFile", "copy");
    assert_string_equal(desk.text, first);
    desk_close(&desk);
}

static void data_belongs_to_one_call(void **state)
{
    struct desk desk;

    desk_open(&desk, getenv("FILES_PROGRAM"));
    send_data_call(&desk, path_call(&desk, "fs/writeFile", "f"), json_string(""));
    until_answer(&desk);
    assert_string_equal(desk.text, "{}");
    call(&desk, "fs/writeFile", "f");
    assert_null(desk.text);
    assert_contains(desk.failure.msg, "dataBase64");
    desk_close(&desk);
}

/* What is larger than the socket cannot have been answered yet. */
static void one_that_is_killed_answers_with_a_failure(void **state)
{
    struct file_call again = {.len = 2, .on_answer = on_answer};
    struct desk desk;
    struct err err;

    desk_open(&desk, getenv("FILES_PROGRAM"));
    write_large(&desk, "big", 8 << 20);
    support_write(desk.folder, "f", "");
    call(&desk, "fs/getMetadata", "f"); /* it runs */
    send_call(&desk, path_call(&desk, "fs/readFile", "big"));
    assert_int_equal(kill(fake.init, SIGKILL), 0);
    until_answer(&desk);
    assert_null(desk.text);
    assert_int_not_equal(desk.failure.sys, ENOENT);
    assert_true(file_helper_is_gone(desk.helper));
    again.text = alloc_str("{}");
    assert_int_equal(file_helper_call(desk.helper, &again, &err), -1);
    assert_null(again.text);
    assert_int_equal(desk.answers, 2);
    desk_close(&desk);
}

static void one_that_cannot_start_answers_with_a_failure(void **state)
{
    struct desk desk;

    desk_open(&desk, "/does/not/exist");
    call(&desk, "fs/readFile", "f");
    assert_null(desk.text);
    assert_contains(desk.failure.msg, "helper for files");
    assert_int_equal(desk.failure.sys, 0); /* not to be taken for a missing file */
    assert_int_equal(desk.failure.code, ERR_BUG);
    assert_true(file_helper_is_gone(desk.helper));
    desk_close(&desk);
}

static void check_nonsense(const char *script)
{
    char *folder = support_scratch_new();
    AUTO_FREE char *path = alloc_strf("%s/helper", folder);
    struct desk desk;

    support_write(folder, "helper", script);
    assert_int_equal(chmod(path, 0700), 0);
    desk_open(&desk, path);
    call(&desk, "fs/readFile", "f");
    assert_null(desk.text);
    assert_int_equal(desk.failure.code, ERR_BUG);
    assert_true(file_helper_is_gone(desk.helper));
    desk_close(&desk);
    support_scratch_remove(folder);
}

static void nonsense_ends_it(void **state)
{
    check_nonsense("#!/bin/sh\nhead -c 9 >/dev/null; printf 'this is no frame' >&0; read x\n");
    check_nonsense(
        "#!/bin/sh\nhead -c 9 >/dev/null; printf '\\0\\0\\0\\0\\0\\0\\0\\0' >&0; read x\n");
    check_nonsense("#!/bin/sh\nhead -c 9 >/dev/null; "
                   "printf '\\3\\0\\0\\0\\1\\0\\0\\0x\\3\\0\\0\\0\\0\\0\\0\\0' >&0; read x\n");
}

static void one_may_be_freed_while_it_works(void **state)
{
    struct desk desk;
    unsigned fds = support_open_fds();

    desk_open(&desk, getenv("FILES_PROGRAM"));
    write_large(&desk, "big", 8 << 20);
    send_call(&desk, path_call(&desk, "fs/readFile", "big"));
    desk_close(&desk);
    assert_int_equal(desk.answers, 0);
    assert_int_equal(support_open_fds(), fds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_are_answered),
        cmocka_unit_test(an_open_file_comes_over),
        cmocka_unit_test(large_files_go_both_ways),
        cmocka_unit_test(data_belongs_to_one_call),
        cmocka_unit_test(one_that_is_killed_answers_with_a_failure),
        cmocka_unit_test(one_that_cannot_start_answers_with_a_failure),
        cmocka_unit_test(nonsense_ends_it),
        cmocka_unit_test(one_may_be_freed_while_it_works),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
