/* finder: what may run outside is where the administrator alone can write; a look that fails makes nothing
 * settled, whatever it fails with. */
#include "../base/support.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/str.h"
#include "base/sys.h"
#include "workspace/finder.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char *folder, *script;

static int setup(void **state)
{
    FILE *file;

    folder = support_scratch_new();
    script = alloc_strf("%s/tool", folder);
    file = fopen(script, "we");
    assert_non_null(file);
    fprintf(file, "#! %s/interpreter -x\n", folder);
    fclose(file);
    assert_int_equal(chmod(script, 0755), 0);
    return 0;
}

static int teardown(void **state)
{
    sys_fault_at(0, 0);
    free(script);
    support_scratch_remove(folder);
    return 0;
}

static void only_the_administrators_places_are_settled(void **state)
{
    assert_true(host_path_is_settled("/usr/bin/env"));
    assert_false(host_path_is_settled(folder));
    assert_false(host_path_is_settled(script));
    assert_false(host_path_is_settled("/tmp"));
    assert_false(host_path_is_settled("/usr/bin/../../tmp"));
    assert_false(host_path_is_settled("/usr/src/app/node_modules/.bin/x")); /* a workspace */
    assert_false(host_path_is_settled("/opt/app/bin/x"));
    assert_false(host_path_is_settled("bin/env"));
    assert_false(host_path_is_settled(""));
}

static void a_path_has_settled_directories_only(void **state)
{
    AUTO_FREE char *path = alloc_strf("PATH=%s:.::/usr/bin:bin:/usr/../tmp:/bin", folder);
    char *const env[] = {path, NULL};
    AUTO_FREE char *kept = host_settled_path(env, NULL);
    AUTO_FREE char *more = host_settled_path(env, "/x");

    assert_string_equal(kept, "/usr/bin:/bin");
    assert_string_equal(more, "/usr/bin:/bin:/x");
}

static void a_script_has_its_interpreter(void **state)
{
    AUTO_FREE char *wanted = alloc_strf("%s/interpreter", folder);
    AUTO_FREE char *found = host_interpreter(script);
    AUTO_FREE char *none = host_interpreter("/usr/bin/env");

    assert_string_equal(found, wanted);
    assert_null(none);
}

/* Whatever cannot be seen: nothing becomes settled by it, and no interpreter is overlooked. */
static void every_errno_at_every_look(void **state)
{
    enum { LOOKS = 12, ERRORS = 133 };

    for (unsigned nth = 1; nth <= LOOKS; nth++)
        for (int error = 1; error <= ERRORS; error++) {
            AUTO_FREE char *interpreter = NULL;

            sys_fault_at(nth, error);
            assert_false(host_path_is_settled(script));
            sys_fault_at(nth, error);
            assert_false(host_path_is_settled("/tmp/tool"));
            sys_fault_at(nth, error);
            interpreter = host_interpreter(script);
            assert_true(interpreter || error == EACCES);
            assert_false(interpreter && host_path_is_settled(interpreter));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(only_the_administrators_places_are_settled, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_path_has_settled_directories_only, setup, teardown),
        cmocka_unit_test_setup_teardown(a_script_has_its_interpreter, setup, teardown),
        cmocka_unit_test_setup_teardown(every_errno_at_every_look, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
