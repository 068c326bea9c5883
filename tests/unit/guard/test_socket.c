/* What the address of a socket says, and children of the guard. What is done with them needs a
 * sandbox: tests/e2e/test_sockets.py. */
#include "../base/support.h"

#include "guard/child.h"
#include "guard/socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct address local(const char *bytes, size_t len)
{
    struct address address = {.local = {.sun_family = AF_UNIX}};

    memcpy(address.local.sun_path, bytes, len);
    address.len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
    return address;
}

static void test_a_path_is_told_from_other_names(void **state)
{
    char whole[sizeof((struct sockaddr_un *)0)->sun_path];
    struct address address = local("/run/a", 7);

    (void)state;
    assert_string_equal(address_path(&address), "/run/a");
    address = local("/run/a", 6); /* without its end, as the kernel allows */
    assert_string_equal(address_path(&address), "/run/a");
    address = local("\0name", 5);
    assert_null(address_path(&address));
    address = local("", 0);
    assert_null(address_path(&address));
    address = local("/run/a", 7);
    address.any.sa_family = AF_UNSPEC;
    assert_null(address_path(&address));
    memset(whole, 'a', sizeof whole);
    address = local(whole, sizeof whole);
    assert_int_equal(strlen(address_path(&address)), sizeof whole);
    address.len++;
    assert_null(address_path(&address));
}

static void assert_remote(int family, const char *ip, const char *expected)
{
    struct address address = {.any = {.sa_family = (sa_family_t)family}};
    char text[64] = "";

    if (family == AF_INET) {
        address.ip4.sin_port = htons(443);
        address.len = sizeof address.ip4;
        assert_int_equal(inet_pton(family, ip, &address.ip4.sin_addr), 1);
    } else {
        address.ip6.sin6_port = htons(443);
        address.len = sizeof address.ip6;
        assert_int_equal(inet_pton(family, ip, &address.ip6.sin6_addr), 1);
    }
    assert_int_equal(address_format_remote(&address, text, sizeof text), expected != NULL);
    if (expected)
        assert_string_equal(text, expected);
    address.len = 4;
    assert_false(address_format_remote(&address, text, sizeof text));
}

static void test_only_other_machines_are_remote(void **state)
{
    (void)state;
    assert_remote(AF_INET, "192.0.2.1", "192.0.2.1:443");
    assert_remote(AF_INET, "127.0.0.53", NULL);
    assert_remote(AF_INET, "0.0.0.0", NULL);
    assert_remote(AF_INET6, "2001:db8::1", "[2001:db8::1]:443");
    assert_remote(AF_INET6, "::1", NULL);
    assert_remote(AF_INET6, "::", NULL);
    assert_remote(AF_INET6, "::ffff:127.0.0.1", NULL);
    assert_remote(AF_INET6, "::ffff:192.0.2.1", "[::ffff:192.0.2.1]:443");
}

static void test_a_path_is_no_remote_address(void **state)
{
    struct address address = local("/run/a", 7);
    char text[64];

    (void)state;
    assert_false(address_format_remote(&address, text, sizeof text));
}

static void test_a_child_has_only_its_descriptors(void **state)
{
    int kept[2], other[2];
    int status;
    pid_t child;

    (void)state;
    assert_return_code(pipe2(kept, O_CLOEXEC), errno);
    assert_return_code(pipe2(other, O_CLOEXEC), errno);
    child = child_fork((int[]){kept[1], -1}, 2);
    if (child == 0)
        _exit(fcntl(kept[1], F_GETFD) < 0 || fcntl(kept[0], F_GETFD) >= 0 ||
              fcntl(other[0], F_GETFD) >= 0 || fcntl(other[1], F_GETFD) >= 0 ||
              fcntl(0, F_GETFD) >= 0);
    assert_return_code(child, errno);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    close(kept[0]);
    close(kept[1]);
    close(other[0]);
    close(other[1]);
}

static void test_what_waits_is_interrupted(void **state)
{
    int ends[2];
    char byte;
    sigset_t all;

    (void)state;
    sigfillset(&all); /* as the host starts the guard */
    assert_return_code(sigprocmask(SIG_BLOCK, &all, NULL), errno);
    assert_return_code(pipe2(ends, O_CLOEXEC), errno);
    child_interrupt_every(5);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(read(ends[0], &byte, 1), -1);
        assert_int_equal(errno, EINTR);
    }
    child_interrupt_every(0);
    close(ends[0]);
    close(ends[1]);
}

static void test_children_end_with_their_command(void **state)
{
    struct command command = {0};
    const struct request request = {.command = &command};
    pid_t child = 0;

    (void)state;
    for (int i = 0; i < CHILDREN_MAX; i++) {
        assert_true(child_has_room(&request));
        child = child_fork(NULL, 0);
        if (child == 0) {
            for (;;)
                pause();
        }
        assert_return_code(child, errno);
        assert_true(child_remember(&request, child));
    }
    assert_false(child_has_room(&request));
    children_end(&command);
    assert_int_equal(waitpid(child, NULL, 0), -1);
    assert_int_equal(errno, ECHILD);
    assert_true(child_has_room(&request));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_path_is_told_from_other_names),
        cmocka_unit_test(test_only_other_machines_are_remote),
        cmocka_unit_test(test_a_path_is_no_remote_address),
        cmocka_unit_test(test_a_child_has_only_its_descriptors),
        cmocka_unit_test(test_what_waits_is_interrupted),
        cmocka_unit_test(test_children_end_with_their_command),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
