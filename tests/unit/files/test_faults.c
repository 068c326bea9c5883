/* "Fail the n-th system call": every file call is made again and again, each time with another one
 * of its system calls failing. Whatever fails, the call fails with that errno or does its work, no
 * descriptor stays open, and nothing outside of what the call is about is touched.
 *
 * The sources are compiled into this program once more, with CORDON_FAULTS. */
#include "calls.h"

#include "base/auto.h"
#include "base/sys.h"
#include "files/call.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef CORDON_FAULTS
#error "has to be compiled with -DCORDON_FAULTS, like the sources of files that it links"
#endif

enum { CALLS_MAX = 500 };

struct scene {
    const char *method;
    const char *params;
};

static const struct scene scenes[] = {
    {"fs/readFile", "{\"path\":\"~/d/f\"}"},
    {"fs/readFile", "{\"path\":\"~/d/f\",\"followSymlinks\":false}"},
    {"fs/open", "{\"path\":\"~/d/f\"}"},
    {"fs/open", "{\"path\":\"~/d/new\",\"mode\":\"replace\"}"},
    {"fs/writeFile", "{\"path\":\"~/d/f\",\"dataBase64\":\"aGkK\"}"},
    {"fs/createDirectory", "{\"path\":\"~/d/x/y\"}"},
    {"fs/createDirectory", "{\"path\":\"~/d/x/y\",\"followSymlinks\":false}"},
    {"fs/getMetadata", "{\"path\":\"~/d/f\"}"},
    {"fs/canonicalize", "{\"path\":\"~/d/f\"}"},
    {"fs/readDirectory", "{\"path\":\"~/d\"}"},
    {"fs/walk", "{\"path\":\"~/d\",\"options\":{\"maxDepth\":3,\"maxDirectories\":9,"
                "\"maxEntries\":9,\"followDirectorySymlinks\":true}}"},
    {"fs/copy", "{\"sourcePath\":\"~/d\",\"destinationPath\":\"~/c\",\"recursive\":true}"},
    {"fs/remove", "{\"path\":\"~/d\"}"},
    {"capabilityRoots/discover", "{\"path\":\"~/d\"}"},
    {"capabilities/discover", "{\"codexHome\":\"~/d\",\"userHome\":\"~\",\"system\":\"~/d/sub\"}"},
};

/* As it is before each call. */
static void set_scene(struct calls *calls)
{
    calls_do(calls, "fs/remove", "{\"path\":\"~/d\"}");
    calls_do(calls, "fs/remove", "{\"path\":\"~/c\"}");
    assert_int_equal(mkdir(calls_path(calls, "d"), 0700), 0);
    assert_int_equal(mkdir(calls_path(calls, "d/sub"), 0700), 0);
    support_write(calls->dir, "d/f", "hi\n");
    support_write(calls->dir, "d/sub/g", "hi\n");
    assert_int_equal(symlink("sub", calls_path(calls, "d/l")), 0);
    support_write(calls->dir, "beside", "untouched");
}

/* true when no call was left to fail. */
static bool play(struct calls *calls, const struct scene *scene, unsigned nth)
{
    unsigned fds;
    const char *answer;
    bool is_over;

    set_scene(calls);
    reply_done(&calls->reply);
    fds = support_open_fds();
    sys_fault_at(nth, EIO);
    answer = calls_do(calls, scene->method, scene->params);
    is_over = sys_fault_count() < nth;
    sys_fault_at(0, 0);
    if (!answer && calls->err.sys != EIO)
        fail_msg("%s, call %u: %s", scene->method, nth, calls->err.msg);
    if (is_over && !answer)
        fail_msg("%s: %s", scene->method, calls->err.msg);
    reply_done(&calls->reply);
    assert_int_equal(support_open_fds(), fds);
    assert_answer(calls, "fs/readFile", "{\"path\":\"~/beside\"}",
                  "{\"dataBase64\":\"dW50b3VjaGVk\"}");
    return is_over;
}

static void every_call_fails_well(void **state)
{
    for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++) {
        unsigned nth = 1;

        while (!play(*state, &scenes[i], nth) && nth < CALLS_MAX)
            nth++;
        if (nth < 2 || nth == CALLS_MAX)
            fail_msg("%s ended with call %u", scenes[i].method, nth);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_call_fails_well, calls_setup, calls_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
