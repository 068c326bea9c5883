/* cordon-tls: ends TLS for the proxy, where a profile wants its requests to be looked into. It is a program of its own so
 * that nothing else links OpenSSL, and so that what reads the bytes of strangers has neither the credentials that the
 * proxy puts into requests, nor the proxy the key of the authority.
 *
 *     control socket -> an order, with two sockets -> a pump -> an answer
 *
 * It ends with the control socket closed and all pumps ended. */
#include "tls/authority.h"
#include "tls/pump.h"
#include "tls/tls_format.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/pass.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

struct program {
    struct loop *loop;
    struct authority *authority;
    SSL_CTX *client; /* of connections to servers */
    struct loop_watch *control;
    size_t connections;
    bool is_over;
};

struct connection {
    struct program *program;
    uint64_t id;
};

static void answer(uint64_t id, const char *why)
{
    struct tls_answer text = {.magic = TLS_MAGIC, .is_connected = !why, .id = id};

    if (why)
        snprintf(text.why, sizeof text.why, "%s", why);
    send(TLS_CONTROL_FD, &text, sizeof text, MSG_NOSIGNAL);
}

static void look_for_end(struct program *program)
{
    program->is_over = !program->control && !program->connections;
}

static void on_answer(void *data, struct pump *pump, const char *why)
{
    const struct connection *connection = data;

    answer(connection->id, why);
}

static void on_end(void *data, struct pump *pump)
{
    struct connection *connection = data;
    struct program *program = connection->program;

    free(connection);
    program->connections--;
    look_for_end(program);
}

/* --- orders --- */

static SSL *to_client(struct program *program, const char *name, struct err *err)
{
    SSL_CTX *context = authority_server(program->authority, name, err);
    SSL *ssl = context ? SSL_new(context) : NULL;

    if (ssl)
        SSL_set_accept_state(ssl);
    return ssl;
}

static bool expects(SSL *ssl, const char *name)
{
    uint8_t bytes[sizeof(struct in6_addr)];
    X509_VERIFY_PARAM *param = SSL_get0_param(ssl);

    if (inet_pton(AF_INET, name, bytes) == 1 || inet_pton(AF_INET6, name, bytes) == 1)
        return X509_VERIFY_PARAM_set1_ip_asc(param, name) == 1;
    X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return X509_VERIFY_PARAM_set1_host(param, name, 0) == 1 &&
           SSL_set_tlsext_host_name(ssl, name) == 1;
}

static SSL *to_server(struct program *program, const char *name, struct err *err)
{
    SSL *ssl = SSL_new(program->client);

    if (ssl && expects(ssl, name)) {
        SSL_set_connect_state(ssl);
        return ssl;
    }
    SSL_free(ssl);
    err_set(err, ERR_INVALID, "no server is called %s", name);
    return NULL;
}

static int set_up(struct program *program, const struct tls_order *order, const char *read,
                  size_t read_len, const int *fds, struct err *err)
{
    struct connection *connection;
    struct pump_options options = {.loop = program->loop,
                                   .encrypted = fds[TLS_FD_ENCRYPTED],
                                   .plain = fds[TLS_FD_PLAIN],
                                   .read = read,
                                   .read_len = read_len,
                                   .on_answer = on_answer,
                                   .on_end = on_end};

    options.ssl = order->kind == TLS_ORDER_SERVE ? to_client(program, order->name, err)
                                                 : to_server(program, order->name, err);
    if (!options.ssl) {
        pass_close(fds, TLS_FDS);
        return -1;
    }
    for (int i = 0; i < TLS_FDS; i++)
        fcntl(fds[i], F_SETFL, fcntl(fds[i], F_GETFL) | O_NONBLOCK);
    connection = alloc_zero(1, sizeof *connection);
    *connection = (struct connection){.program = program, .id = order->id};
    options.data = connection;
    if (!pump_new(&options, err)) {
        free(connection);
        return -1;
    }
    program->connections++;
    return 0;
}

static void on_control(void *data, int fd, unsigned ready)
{
    struct program *program = data;
    static char packet[sizeof(struct tls_order) + TLS_READ_MAX];
    struct tls_order order;
    int fds[PASS_MAX];
    size_t count;
    ssize_t len = pass_receive(fd, packet, sizeof packet, MSG_DONTWAIT, fds, &count);
    struct err err;

    if (len < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (len <= 0) {
        loop_watch_free(program->control);
        program->control = NULL;
        look_for_end(program);
        return;
    }
    memcpy(&order, packet, sizeof order);
    if (len < (ssize_t)sizeof order || order.magic != TLS_MAGIC || order.version != TLS_VERSION ||
        count != TLS_FDS || order.kind > TLS_ORDER_DIAL ||
        !memchr(order.name, '\0', sizeof order.name)) {
        pass_close(fds, count);
        return;
    }
    if (set_up(program, &order, packet + sizeof order, (size_t)len - sizeof order, fds, &err))
        answer(order.id, err.msg);
}

/* --- the whole --- */

static int prepare(struct program *program, struct err *err)
{
    AUTO_FREE char *pem = NULL;
    static const uint8_t protocol[] = "\x08http/1.1";

    program->authority = authority_new(err);
    pem = program->authority ? authority_pem(program->authority, err) : NULL;
    if (!pem)
        return -1;
    program->client = SSL_CTX_new(TLS_client_method());
    if (!program->client || !SSL_CTX_set_default_verify_paths(program->client) ||
        !SSL_CTX_set_min_proto_version(program->client, TLS1_2_VERSION) ||
        SSL_CTX_set_alpn_protos(program->client, protocol, sizeof protocol - 1))
        return err_set(err, ERR_SYSTEM, "OpenSSL does not start");
    SSL_CTX_set_verify(program->client, SSL_VERIFY_PEER, NULL);
    if (write(TLS_CA_FD, pem, strlen(pem)) != (ssize_t)strlen(pem))
        return err_sys(err, "telling the certificate");
    close(TLS_CA_FD);
    return 0;
}

static int run(struct program *program, struct err *err)
{
    program->loop = loop_new(err);
    if (!program->loop || prepare(program, err))
        return -1;
    program->control =
        loop_watch_new(program->loop, TLS_CONTROL_FD, LOOP_READ, on_control, program, err);
    return program->control ? loop_run(program->loop, &program->is_over, err) : -1;
}

int main(void)
{
    struct program program = {0};
    struct err err;
    int status;

    signal(SIGPIPE, SIG_IGN);
    prctl(PR_SET_DUMPABLE, 0); /* the key is in our memory */
    setrlimit(RLIMIT_CORE, &(struct rlimit){0});
    status = run(&program, &err);
    if (status)
        fprintf(stderr, "cordon-tls: %s\n", err.msg);
    SSL_CTX_free(program.client);
    authority_free(program.authority);
    loop_watch_free(program.control);
    loop_free(program.loop);
    return status ? 1 : 0;
}
