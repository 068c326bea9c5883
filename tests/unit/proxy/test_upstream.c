/* Which proxy of the host's own is used for what, as curl and others read their variables. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/err.h"
#include "proxy/upstream.h"

#include <stdlib.h>
#include <string.h>

static struct upstreams upstreams;
static struct network_policy policy;

static void set(const char *http, const char *https, const char *all, const char *without)
{
    const struct {
        const char *name, *value;
    } variables[] = {{"http_proxy", http},  {"HTTPS_PROXY", https}, {"all_proxy", all},
                     {"NO_PROXY", without}, {"HTTP_PROXY", NULL},   {"https_proxy", ""},
                     {"ALL_PROXY", NULL},   {"no_proxy", NULL}};

    upstreams_done(&upstreams);
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        unsetenv(variables[i].name);
        if (variables[i].value)
            setenv(variables[i].name, variables[i].value, 1);
    }
    upstreams_read(&upstreams);
}

static const struct upstream *find(const char *host, uint16_t port, enum network_protocol protocol)
{
    struct net_host parsed;
    struct err err;

    assert_int_equal(net_host_parse(host, strlen(host), &parsed, &err), 0);
    return upstream_for(&upstreams, &policy, &parsed, port, protocol);
}

static bool is_direct(const char *host, uint16_t port)
{
    return !find(host, port, network_protocol_of_port(port));
}

static void which_one(void **state)
{
    set(NULL, NULL, NULL, NULL);
    assert_true(is_direct("a.example", 443) && is_direct("a.example", 80));
    set("http://one.example:8080/", "two.example", NULL, NULL);
    assert_string_equal(find("a.example", 80, NETWORK_HTTP)->host.text, "one.example");
    assert_int_equal(find("a.example", 80, NETWORK_HTTP)->port, 8080);
    assert_string_equal(find("a.example", 443, NETWORK_HTTPS)->host.text, "two.example");
    assert_int_equal(find("a.example", 22, NETWORK_SOCKS5_TCP)->port, 80);
    set(NULL, NULL, "http://[2001:db8::1]:3128", NULL);
    assert_string_equal(find("a.example", 80, NETWORK_HTTP)->host.text, "2001:db8::1");
    assert_string_equal(find("a.example", 443, NETWORK_HTTPS)->host.text, "2001:db8::1");
    set("http://one.example", NULL, NULL, NULL);
    assert_true(is_direct("a.example", 443));
    assert_non_null(find("a.example", 0, NETWORK_HTTPS)); /* a look-up, for any port */
    set("socks5://one.example:1080", "https://one.example", NULL, NULL); /* not spoken */
    assert_true(is_direct("a.example", 443) && is_direct("a.example", 80));
    set("http://one.example:0x50", "http://", NULL, NULL);
    assert_true(is_direct("a.example", 443) && is_direct("a.example", 80));
}

static void authorizations(void **state)
{
    set(NULL, "http://me:p%40ss@one.example:1", NULL, NULL);
    assert_string_equal(find("a.example", 443, NETWORK_HTTPS)->authorization, "Basic bWU6cEBzcw==");
    set(NULL, "http://a@b:c@one.example:1", NULL, NULL); /* the last one ends it */
    assert_string_equal(find("a.example", 443, NETWORK_HTTPS)->host.text, "one.example");
}

static void without_one(void **state)
{
    set(NULL, NULL, "http://one.example:1",
        "b.example, .c.example,*.d.example  93.184.216.34,e.example:444,");
    assert_true(is_direct("b.example", 443) && is_direct("x.b.example", 443));
    assert_true(is_direct("c.example", 443) && is_direct("x.c.example", 443));
    assert_true(is_direct("x.d.example", 443) && is_direct("93.184.216.34", 443));
    assert_true(is_direct("e.example", 444) && !is_direct("e.example", 443));
    assert_true(!is_direct("bb.example", 443) && !is_direct("93.184.216.35", 443));
    assert_true(is_direct("localhost", 443) && is_direct("10.0.0.1", 443)); /* never through one */
    set(NULL, NULL, "http://one.example:1", "*");
    assert_true(is_direct("a.example", 443));
    set(NULL, NULL, "http://one.example:1", NULL);
    policy.no_upstream_proxy = true;
    assert_true(is_direct("a.example", 443));
    policy.no_upstream_proxy = false;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(which_one),
        cmocka_unit_test(authorizations),
        cmocka_unit_test(without_one),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);

    upstreams_done(&upstreams);
    return failed;
}
