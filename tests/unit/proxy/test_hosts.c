/* The host's /etc/hosts, as it is and as it becomes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/err.h"
#include "proxy/hosts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char path[] = "/tmp/cordon-hosts-XXXXXX";

static void write_file(const char *text)
{
    FILE *file = fopen(path, "we");

    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static struct net_address address(const char *text)
{
    struct net_host host;
    struct err err;

    assert_int_equal(net_host_parse(text, strlen(text), &host, &err), 0);
    return host.address;
}

static void both_ways(void **state)
{
    struct net_address found[4], wanted = address("10.0.0.5");
    struct net_host name;
    struct hosts hosts;

    write_file("127.0.0.1 localhost\n# 10.0.0.5 no\n10.0.0.5\tInner.Example  inner # tail\r\n"
               "2001:db8::1 inner\nnonsense here\n0177.0.0.1 octal\n10.0.0.6 last.example");
    hosts_init(&hosts, path);
    assert_int_equal(hosts_find(&hosts, "inner", found, 4), 2);
    assert_true(net_address_equal(&found[0], &wanted));
    assert_int_equal(hosts_find(&hosts, "inner", found, 1), 1);
    assert_int_equal(hosts_find(&hosts, "inner.example", found, 4), 1);
    assert_int_equal(hosts_find(&hosts, "last.example", found, 4), 1);
    assert_int_equal(hosts_find(&hosts, "no", found, 4), 0);
    assert_int_equal(hosts_find(&hosts, "tail", found, 4), 0);
    assert_int_equal(hosts_find(&hosts, "octal", found, 4), 0);
    assert_int_equal(hosts_find(&hosts, "here", found, 4), 0);
    assert_true(hosts_name_of(&hosts, &wanted, 0, &name));
    assert_string_equal(name.text, "inner.example");
    assert_true(hosts_name_of(&hosts, &wanted, 1, &name));
    assert_string_equal(name.text, "inner");
    assert_false(hosts_name_of(&hosts, &wanted, 2, &name));
    hosts_done(&hosts);
}

static void it_changes(void **state)
{
    struct net_address found[4];
    struct hosts hosts;

    write_file("10.0.0.5 before\n");
    hosts_init(&hosts, path);
    assert_int_equal(hosts_find(&hosts, "before", found, 4), 1);
    write_file("10.0.0.5 afterwards\n");
    assert_int_equal(hosts_find(&hosts, "before", found, 4), 0);
    assert_int_equal(hosts_find(&hosts, "afterwards", found, 4), 1);
    unlink(path);
    assert_int_equal(hosts_find(&hosts, "afterwards", found, 4), 0);
    hosts_done(&hosts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_ways),
        cmocka_unit_test(it_changes),
    };
    int fd = mkstemp(path);

    if (fd < 0)
        return 1;
    close(fd);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
