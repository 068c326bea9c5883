/* What resolv.conf says about names that are tried, in the forms that it is written in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "proxy/search.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char path[] = "/tmp/cordon-resolv-XXXXXX";

static struct search read_text(const char *text)
{
    struct search search;
    FILE *file = fopen(path, "we");

    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    search_read(&search, path);
    return search;
}

static void forms(void **state)
{
    struct search search =
        read_text("# search no.test\nnameserver 1.2.3.4\nsearch old.test\n"
                  "search\tA.test  b.a.test . 1.2.3.4\t\noptions rotate ndots:3\n");

    assert_int_equal(search.len, 2);
    assert_string_equal(search.domains[0], "a.test");
    assert_string_equal(search.domains[1], "b.a.test");
    assert_int_equal(search.dots, 3);
    assert_int_equal(search_prefix_len(&search, "x.y.b.a.test"), 3);
    assert_int_equal(search_prefix_len(&search, "x.a.test"), 1);
    assert_int_equal(search_prefix_len(&search, "a.test"), 0);
    assert_int_equal(search_prefix_len(&search, "xa.test"), 0);
    assert_true(search_leads_to(&search, "x.y", "x.y.b.a.test"));
    assert_true(search_leads_to(&search, "x.y.b", "x.y.b.a.test"));
    assert_false(search_leads_to(&search, "x.y.b", "x.y.a.test"));
    assert_false(search_leads_to(&search, "x", "x.y.a.test"));
    assert_false(search_leads_to(&search, "x", "xx.a.test"));
    assert_false(search_leads_to(&search, "", "a.test"));
    search = read_text("domain one.test\noptions ndots:99999999999999999999");
    assert_int_equal(search.len, 1);
    assert_int_equal(search.dots, 15);
    search = read_text("search 1.t 2.t 3.t 4.t 5.t 6.t 7.t 8.t");
    assert_int_equal(search.len, SEARCH_DOMAINS_MAX);
    search = read_text("");
    assert_int_equal(search.len, 0);
    assert_int_equal(search.dots, 1);
    unlink(path);
    search_read(&search, path);
    assert_int_equal(search.len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(forms)};
    int fd = mkstemp(path);

    if (fd < 0)
        return 1;
    close(fd);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
