/* The network that leads to the proxy: the messages, byte for byte; the kernel's answers; and what
 * connections come to in such a network, with this program as launcher, command and proxy.
 *
 *     test_network FOLDER        with CORDON_UPDATE_GOLDEN=1 the messages are written anew */
#include "launching.h"

#include "base/auto.h"
#include "base/pass.h"
#include "proxy/proxy_format.h"
#include "sandbox/launcher/netlink.h"
#include "sandbox/launcher/network.h"
#include "sandbox/launcher/restrict.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATIENCE_MS = 20000, HEX_MAX = 128 << 10, LINE = 32 };

static const char *cases;
static struct netlink_messages messages;

/* -- the bytes */

static void hex(char *ret)
{
    *ret = '\0';
    for (size_t i = 0; i < messages.len; i++)
        ret += sprintf(ret, "%02x%s", messages.bytes[i], (i + 1) % LINE ? "" : "\n");
    strcpy(ret, "\n");
}

static void assert_golden(const char *name)
{
    static char got[HEX_MAX], wanted[HEX_MAX];
    char path[4096];
    AUTO_CLOSE int fd = -1;

    snprintf(path, sizeof path, "%s/%s.hex", cases, name);
    hex(got);
    if (getenv("CORDON_UPDATE_GOLDEN")) {
        fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
        assert_int_equal(write(fd, got, strlen(got)), strlen(got));
        return;
    }
    fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    memset(wanted, 0, sizeof wanted);
    assert_true(read(fd, wanted, sizeof wanted - 1) > 0);
    assert_string_equal(got, wanted);
}

static void test_messages(void **state)
{
    const uint16_t ports[] = {5432, 6379};

    netlink_routes(true, &messages);
    assert_int_equal(messages.last, 2);
    assert_golden("routes");
    netlink_routes(false, &messages);
    assert_int_equal(messages.last, 1);
    netlink_redirect(NULL, 0, &messages);
    assert_golden("redirect");
    netlink_redirect(ports, 2, &messages);
    assert_golden("redirect-ports");
}

/* Messages lie one behind the other to the very end, numbered from 1 on. */
static void test_most_ports(void **state)
{
    uint16_t ports[NETLINK_PORTS_MAX + 1];
    uint32_t count = 0, head[3];

    memset(ports, 1, sizeof ports);
    netlink_redirect(ports, NETLINK_PORTS_MAX + 1, &messages);
    for (size_t at = 0; at < messages.len; at += head[0]) {
        memcpy(head, messages.bytes + at, sizeof head);
        assert_true(head[0] >= 16 && head[0] <= messages.len - at);
        assert_int_equal(head[2], ++count);
    }
    assert_int_equal(count, messages.last + 1);
    assert_int_equal(count, 4 + NETLINK_PORTS_MAX + 5);
}

/* -- answers */

struct answer {
    uint32_t len;
    uint16_t type, flags;
    uint32_t number, port;
    int32_t error;
    uint32_t asked[4];
};

static struct answer answer_to(uint32_t number, int error)
{
    return (struct answer){
        .len = sizeof(struct answer), .type = 2, .error = -error, .asked = {[2] = number}};
}

static void test_answers(void **state)
{
    struct answer both[2] = {answer_to(1, 0), answer_to(2, 0)};
    int error = -1;

    assert_int_equal(netlink_read(both, sizeof both, 2, &error), NETLINK_DONE);
    assert_int_equal(error, 0);
    assert_int_equal(netlink_read(both, sizeof *both, 2, &error), NETLINK_MORE);
    assert_int_equal(netlink_read(both, 0, 2, &error), NETLINK_MORE);
    both[0] = answer_to(1, EOPNOTSUPP);
    assert_int_equal(netlink_read(both, sizeof both, 2, &error), NETLINK_FAILED);
    assert_int_equal(error, EOPNOTSUPP);
    for (size_t len = 1; len < sizeof *both; len++) { /* cut off */
        assert_int_equal(netlink_read(both, len, 2, &error), NETLINK_FAILED);
        assert_int_equal(error, EBADMSG);
    }
    both[0].type = 3; /* NLMSG_DONE */
    assert_int_equal(netlink_read(both, sizeof both, 2, &error), NETLINK_FAILED);
    both[0] = answer_to(1, -5); /* no errno */
    assert_int_equal(netlink_read(both, sizeof both, 2, &error), NETLINK_FAILED);
    both[0] = answer_to(2, 0);
    both[0].len = 15;
    assert_int_equal(netlink_read(both, sizeof both, 2, &error), NETLINK_FAILED);
}

/* -- the network */

static void write_file(const char *path, const char *text)
{
    AUTO_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC);

    if (fd < 0 || write(fd, text, strlen(text)) < 0)
        _exit(4);
}

/* In a child of ours: the launcher, until what it has set up is sent. Exits with 3 when there are no namespaces. */
static void lead(int channel, const char *ports)
{
    uint32_t op;
    char map[64];
    struct err err;
    const uid_t uid = geteuid();
    const gid_t gid = getegid();

    if (unshare(CLONE_NEWUSER | CLONE_NEWNET))
        _exit(3);
    write_file("/proc/self/setgroups", "deny");
    snprintf(map, sizeof map, "%u %u 1\n", uid, uid);
    write_file("/proc/self/uid_map", map);
    snprintf(map, sizeof map, "%u %u 1\n", gid, gid);
    write_file("/proc/self/gid_map", map);
    if (restrict_loopback(&err) || network_lead(ports, &op, &err) ||
        network_hand_over(channel, &err)) {
        fprintf(stderr, "%s\n", err.msg);
        _exit(5);
    }
}

/* A TCP connection, or a UDP socket that has sent a byte: a descriptor, -1 with errno. */
static int reach(const char *host, uint16_t port, int type)
{
    struct sockaddr_in6 ip6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    struct sockaddr_in ip4 = {.sin_family = AF_INET, .sin_port = htons(port)};
    const bool is_ip6 = inet_pton(AF_INET6, host, &ip6.sin6_addr) == 1;
    int fd = socket(is_ip6 ? AF_INET6 : AF_INET, type | SOCK_CLOEXEC, 0);

    inet_pton(AF_INET, host, &ip4.sin_addr);
    if (connect(fd, is_ip6 ? (struct sockaddr *)&ip6 : (struct sockaddr *)&ip4,
                is_ip6 ? sizeof ip6 : sizeof ip4) == 0 &&
        (type == SOCK_STREAM || send(fd, "?", 1, 0) == 1))
        return fd;
    close(fd);
    return -1;
}

struct inside {
    int listeners[PROXY_LISTENERS];
    size_t count;
    int orders; /* to the command: "t8.8.8.8 443" or "u8.8.8.8 53"; it answers with 'y' or 'n' */
    pid_t pid;
};

static void obey(int orders)
{
    char order[128], host[64];
    unsigned port;
    ssize_t len;

    while ((len = recv(orders, order, sizeof order - 1, 0)) > 0) {
        int fd;

        order[len] = '\0';
        if (sscanf(order + 1, "%63s %u", host, &port) != 2)
            _exit(6);
        fd = reach(host, (uint16_t)port, *order == 't' ? SOCK_STREAM : SOCK_DGRAM);
        /* What nobody listens for is refused by the answer to the first byte. */
        if (fd >= 0 && *order == 'u' && port != 53) {
            struct pollfd end = {.fd = fd, .events = POLLIN};

            if (poll(&end, 1, PATIENCE_MS) == 1 && recv(fd, host, 1, 0) < 0 &&
                errno == ECONNREFUSED) {
                close(fd);
                fd = -1;
            }
        }
        send(orders, fd >= 0 ? "y" : "n", 1, 0);
    }
    _exit(0);
}

static struct inside inside_start(const char *ports)
{
    struct inside inside = {.count = 0};
    struct proxy_order order = {0};
    int fds[PASS_MAX];
    int channel[2], orders[2], status;

    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, channel), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, orders), 0);
    inside.pid = fork();
    if (inside.pid == 0) {
        close(channel[0]);
        close(orders[0]);
        lead(channel[1], ports);
        obey(orders[1]);
    }
    close(channel[1]);
    close(orders[1]);
    inside.orders = orders[0];
    if (pass_receive(channel[0], &order, sizeof order, 0, fds, &inside.count) != sizeof order) {
        waitpid(inside.pid, &status, 0);
        close(channel[0]);
        close(orders[0]);
        if (WEXITSTATUS(status) == 3)
            skip_because("no user namespaces here");
        fail_msg("status %#x", status);
    }
    close(channel[0]);
    assert_int_equal(order.magic, PROXY_MAGIC);
    assert_int_equal(order.kind, PROXY_ORDER_LISTENERS);
    assert_int_equal(inside.count, PROXY_LISTENERS);
    memcpy(inside.listeners, fds, sizeof inside.listeners);
    return inside;
}

static void inside_end(struct inside *inside)
{
    int status;

    pass_close(inside->listeners, inside->count);
    close(inside->orders);
    assert_int_equal(waitpid(inside->pid, &status, 0), inside->pid);
    assert_int_equal(status, 0);
}

static bool inside_reaches(const struct inside *inside, const char *order)
{
    char answer = '?';

    assert_int_equal(send(inside->orders, order, strlen(order), 0), strlen(order));
    assert_int_equal(recv(inside->orders, &answer, 1, 0), 1);
    return answer == 'y';
}

/* The connection that has come, and where it was meant to go. */
static void assert_came(const struct inside *inside, const char *host, uint16_t port)
{
    struct pollfd ready = {.fd = inside->listeners[PROXY_LISTENER_TCP], .events = POLLIN};
    struct sockaddr_in ip4 = {0};
    struct sockaddr_in6 ip6 = {0};
    socklen_t len = sizeof ip4;
    char text[INET6_ADDRSTRLEN];
    int fd;

    assert_int_equal(poll(&ready, 1, PATIENCE_MS), 1);
    fd = accept4(ready.fd, NULL, NULL, SOCK_CLOEXEC);
    assert_true(fd >= 0);
    if (strchr(host, ':')) {
        len = sizeof ip6;
        assert_int_equal(getsockopt(fd, IPPROTO_IPV6, 80 /* SO_ORIGINAL_DST */, &ip6, &len), 0);
        inet_ntop(AF_INET6, &ip6.sin6_addr, text, sizeof text);
        assert_int_equal(ntohs(ip6.sin6_port), port);
    } else {
        assert_int_equal(getsockopt(fd, IPPROTO_IP, 80, &ip4, &len), 0);
        inet_ntop(AF_INET, &ip4.sin_addr, text, sizeof text);
        assert_int_equal(ntohs(ip4.sin_port), port);
    }
    assert_string_equal(text, host);
    close(fd);
}

static void test_all_tcp_comes(void **state)
{
    struct inside inside = inside_start("");

    assert_true(inside_reaches(&inside, "t8.8.8.8 443"));
    assert_came(&inside, "8.8.8.8", 443);
    assert_true(inside_reaches(&inside, "t198.18.0.1 22"));
    assert_came(&inside, "198.18.0.1", 22);
    assert_true(inside_reaches(&inside, "t169.254.169.254 80"));
    assert_came(&inside, "169.254.169.254", 80);
    assert_true(inside_reaches(&inside, "t2001:db8::7 8443"));
    assert_came(&inside, "2001:db8::7", 8443);
    assert_true(inside_reaches(&inside, "t127.0.0.53 53")); /* also on loopback */
    assert_came(&inside, "127.0.0.53", 53);
    assert_true(inside_reaches(&inside, "t::1 53"));
    assert_came(&inside, "::1", 53);
    inside_end(&inside);
}

static void test_loopback_is_its_own(void **state)
{
    struct inside inside = inside_start("5432,6379");

    assert_false(inside_reaches(&inside, "t127.0.0.1 443"));
    assert_false(inside_reaches(&inside, "t127.9.9.9 80"));
    assert_false(inside_reaches(&inside, "t::1 80"));
    assert_false(inside_reaches(&inside, "t0.0.0.0 80"));
    assert_true(inside_reaches(&inside, "t127.0.0.1 1008")); /* an explicit client */
    assert_came(&inside, "127.0.0.1", 1008);
    assert_true(inside_reaches(&inside, "t127.0.0.1 5432"));
    assert_came(&inside, "127.0.0.1", 5432);
    assert_true(inside_reaches(&inside, "t::1 6379"));
    assert_came(&inside, "::1", 6379);
    inside_end(&inside);
}

static void test_udp(void **state)
{
    struct inside inside = inside_start("");
    struct pollfd ready = {.fd = inside.listeners[PROXY_LISTENER_DNS4], .events = POLLIN};

    assert_true(inside_reaches(&inside, "u8.8.8.8 53"));
    assert_int_equal(poll(&ready, 1, PATIENCE_MS), 1);
    ready.fd = inside.listeners[PROXY_LISTENER_DNS6];
    assert_true(inside_reaches(&inside, "u2001:db8::1 53"));
    assert_int_equal(poll(&ready, 1, PATIENCE_MS), 1);
    assert_false(inside_reaches(&inside, "u8.8.8.8 443"));
    assert_false(inside_reaches(&inside, "u2001:db8::1 443"));
    inside_end(&inside);
}

/* With its listeners gone nothing is left that anything could come to. */
static void test_dead_proxy(void **state)
{
    struct inside inside = inside_start("");

    pass_close(inside.listeners, inside.count);
    inside.count = 0;
    assert_false(inside_reaches(&inside, "t8.8.8.8 443"));
    assert_false(inside_reaches(&inside, "t127.0.0.1 1008"));
    inside_end(&inside);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_messages),   cmocka_unit_test(test_most_ports),
        cmocka_unit_test(test_answers),    cmocka_unit_test(test_all_tcp_comes),
        cmocka_unit_test(test_udp),        cmocka_unit_test(test_loopback_is_its_own),
        cmocka_unit_test(test_dead_proxy),
    };

    cases = argc > 1 ? argv[1] : "tests/cases/netlink";
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
