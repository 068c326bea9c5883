/* client_session: sessions of clients, with a connection and without. */
#include "../base/support.h"

#include "base/alloc.h"
#include "loop/loop.h"
#include "server/client.h"
#include "server/client_session.h"
#include "server/process/observer.h"
#include "server/process/rpc_process.h"
#include "server/server.h"

#include <stdlib.h>
#include <string.h>

static struct server server;
static struct client client;

static int setup(void **state)
{
    struct err err;

    server = (struct server){.loop = loop_new(&err)};
    client = (struct client){.server = &server};
    return server.loop ? 0 : -1;
}

static int teardown(void **state)
{
    while (!list_is_empty(&server.sessions))
        client_session_free(list_first(&server.sessions, struct client_session, in_server));
    loop_free(server.loop);
    return 0;
}

static struct client_session *detached_new(uint64_t lifetime_ns)
{
    struct client_session *session = client_session_new(&server, lifetime_ns);

    client_session_attach(session, &client);
    client_session_detach(session);
    client.session = NULL;
    return session;
}

static size_t count(void)
{
    const struct client_session *session;
    size_t len = 0;

    list_for_each(session, &server.sessions, in_server)
        len++;
    return len;
}

static void a_session_is_found_by_its_id(void **state)
{
    struct client_session *first = client_session_new(&server, 1);
    struct client_session *second = client_session_new(&server, 1);

    assert_string_not_equal(first->id, second->id);
    assert_int_equal(strlen(first->id), CLIENT_SESSION_ID_SIZE - 1);
    assert_int_equal(first->number + 1, second->number);
    assert_ptr_equal(client_session_find(&server, first->id), first);
    assert_ptr_equal(client_session_find(&server, second->id), second);
    assert_null(client_session_find(&server, "x"));
}

static void a_session_that_ends_takes_itself_out_of_its_connection(void **state)
{
    struct client_session *session = client_session_new(&server, 1);

    client_session_attach(session, &client);
    assert_ptr_equal(client.session, session);
    assert_ptr_equal(session->client, &client);
    client_session_free(session);
    assert_null(client.session);
    assert_int_equal(count(), 0);
}

static void without_a_connection_it_ends_when_its_time_is_up(void **state)
{
    struct err err;

    detached_new(1); /* a nanosecond */
    assert_true(loop_fd(server.loop, &err) >= 0);
    while (count()) {
        assert_int_equal(loop_wait(server.loop, -1, &err), 0);
        assert_int_equal(loop_dispatch(server.loop, &err), 0);
    }
}

static void a_connection_that_comes_in_time_stops_the_clock(void **state)
{
    struct client_session *session = detached_new(1);
    struct err err;

    assert_int_not_equal(session->detached, 0);
    client_session_attach(session, &client);
    assert_int_equal(session->detached, 0);
    assert_int_equal(loop_dispatch(server.loop, &err), 0);
    assert_int_equal(count(), 1);
}

static void the_one_that_was_left_first_makes_room(void **state)
{
    struct client_session *oldest = detached_new(CLIENT_SESSION_LIFETIME_NS);
    struct client_session *with_process = detached_new(CLIENT_SESSION_LIFETIME_NS);
    struct client_session *second = detached_new(CLIENT_SESSION_LIFETIME_NS);
    char oldest_id[CLIENT_SESSION_ID_SIZE];
    char second_id[CLIENT_SESSION_ID_SIZE];

    memcpy(oldest_id, oldest->id, sizeof oldest_id);
    memcpy(second_id, second->id, sizeof second_id);
    with_process->processes.len = 1; /* as if one were in it */
    for (int i = 2; i < CLIENT_SESSIONS_DETACHED; i++)
        detached_new(CLIENT_SESSION_LIFETIME_NS);
    assert_int_equal(count(), CLIENT_SESSIONS_DETACHED + 1);
    assert_ptr_equal(client_session_find(&server, oldest_id), oldest);
    detached_new(CLIENT_SESSION_LIFETIME_NS);
    assert_null(client_session_find(&server, oldest_id));
    assert_non_null(client_session_find(&server, second_id));
    detached_new(CLIENT_SESSION_LIFETIME_NS);
    assert_null(client_session_find(&server, second_id));
    assert_int_equal(count(), CLIENT_SESSIONS_DETACHED + 1);
    with_process->processes.len = 0;
}

/* --- who may write to a process --- */

static void its_owner_s_connection_may_write(void **state)
{
    struct client other = {.server = &server};
    struct client_session owner = {.client = &client};
    struct rpc_process process = {.owner = &owner};

    assert_true(client_may_write(&client, &process));
    assert_false(client_may_write(&other, &process));
    owner.client = NULL; /* it has lost its connection */
    assert_false(client_may_write(&client, &process));
}

static void an_observer_that_took_the_write_lock_is_the_only_one(void **state)
{
    struct client other = {.server = &server};
    struct client third = {.server = &server};
    struct client_session owner = {.client = &client, .id = "S"};
    struct rpc_process process = {.owner = &owner, .id = (char *)"p"};
    struct observer *observer = observer_new(&other, &process);

    assert_true(client_may_write(&client, &process)); /* to look on takes nothing from the owner */
    process.writer = observer;
    assert_true(client_may_write(&other, &process));
    assert_false(client_may_write(&client, &process));
    assert_false(client_may_write(&third, &process));
    assert_string_equal(observer->alias, "S/p");
    assert_ptr_equal(observer_find(&other, "S/p"), observer);
    assert_null(observer_find(&client, "S/p"));
    observers_free(&other); /* its connection goes, and the lock with it */
    assert_null(process.writer);
    assert_true(list_is_empty(&process.observers));
    assert_true(client_may_write(&client, &process));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_session_is_found_by_its_id, setup, teardown),
        cmocka_unit_test_setup_teardown(a_session_that_ends_takes_itself_out_of_its_connection,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(without_a_connection_it_ends_when_its_time_is_up, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_connection_that_comes_in_time_stops_the_clock, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(the_one_that_was_left_first_makes_room, setup, teardown),
        cmocka_unit_test_setup_teardown(its_owner_s_connection_may_write, setup, teardown),
        cmocka_unit_test_setup_teardown(an_observer_that_took_the_write_lock_is_the_only_one, setup,
                                        teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
