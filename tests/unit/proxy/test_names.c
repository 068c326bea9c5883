/* How many names a command may have, and how fast. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "proxy/command.h"
#include "proxy/limits.h"
#include "proxy/proxy.h"

#include <stdio.h>
#include <string.h>

/* The program's: nothing is looked up here. */
void proxy_refresh_resolver(struct proxy *proxy)
{
}

static struct name *get(struct command *command, unsigned number, const char **ret_limit)
{
    struct net_host host = {.kind = NET_HOST_IS_NAME};

    snprintf(host.text, sizeof host.text, "n%u.example", number);
    return names_get(command, &host, ret_limit);
}

static void at_most_so_many(void **state)
{
    struct command command = {.asks = false};
    const char *limit = NULL;
    struct name *first = get(&command, 0, &limit);

    assert_non_null(first);
    for (unsigned i = 1; i < LIMIT_NAMES; i++) {
        struct name *name;
        unsigned char bytes[4];
        struct net_address address;

        command.names.budget = LIMIT_NAMES_AT_ONCE; /* as if time had gone by */
        name = get(&command, i, &limit);
        assert_non_null(name);
        name_address(name, bytes);
        address = net_address_v4(bytes);
        assert_ptr_equal(names_at(&command.names, &address), name);
    }
    assert_null(limit);
    command.names.budget = LIMIT_NAMES_AT_ONCE;
    assert_null(get(&command, LIMIT_NAMES, &limit));
    assert_non_null(strstr(limit, "4096 different names"));
    assert_ptr_equal(get(&command, 0, &limit), first);
    names_done(&command.names);
}

static void at_most_so_fast(void **state)
{
    struct command command = {.asks = false};
    const char *limit = NULL;

    for (unsigned i = 0; i < LIMIT_NAMES_AT_ONCE; i++)
        assert_non_null(get(&command, i, &limit));
    command.names.budget = 0; /* whatever has come since */
    assert_null(get(&command, LIMIT_NAMES_AT_ONCE, &limit));
    assert_non_null(strstr(limit, "32 different names a second"));
    command.names.budget_ns -= CLOCK_NS_PER_S;
    for (unsigned i = 0; i < LIMIT_NAMES_PER_S; i++)
        assert_non_null(get(&command, LIMIT_NAMES_AT_ONCE + i, &limit));
    names_done(&command.names);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(at_most_so_many),
                                       cmocka_unit_test(at_most_so_fast)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
