/* proc: parents and names of processes. */
#include "support.h"

#include "base/proc.h"

#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void a_parent_is_told(void **state)
{
    assert_int_equal(proc_parent(getpid()), getppid());
    assert_int_equal(proc_parent(0x7ffffff0), -1);
}

/* A program whose argv[0] is this, seen while it waits for its input to end. */
static bool is_named(const char *argv0, const char *name)
{
    int ends[2], ready[2], status;
    bool is_it;
    char byte;
    pid_t pid;

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        dup2(ends[0], 0); /* allow dup2: the program's own stdin */
        execl("/bin/cat", argv0, (char *)NULL);
        _exit(1);
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 0); /* its end is closed by the exec */
    is_it = proc_is_named(pid, name);
    close(ready[0]);
    close(ends[0]);
    close(ends[1]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return is_it;
}

static void a_name_is_the_whole_first_word(void **state)
{
    char longer[100];

    memset(longer, 'x', sizeof longer);
    longer[sizeof longer - 1] = '\0';
    assert_true(is_named("cordon-init", "cordon-init"));
    assert_false(is_named("cordon-init-not", "cordon-init"));
    assert_false(is_named("cordon", "cordon-init"));
    assert_false(is_named(longer, longer));
    assert_false(proc_is_named(0x7ffffff0, "cat"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_parent_is_told),
        cmocka_unit_test(a_name_is_the_whole_first_word),
    };

    return cmocka_run_group_tests_name("proc", tests, NULL, NULL);
}
