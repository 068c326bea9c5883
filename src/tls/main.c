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
#include "base/buf.h"
#include "base/confine.h"
#include "base/fd.h"
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
#include <sys/syscall.h>
#include <unistd.h>

struct program {
    struct loop *loop;
    struct buf answers; /* that the proxy has no room for yet */
    struct authority *authority;
    SSL_CTX *client; /* of connections to servers; NULL before the first */
    struct loop_watch *control;
    size_t connections;
    bool is_over;
};

struct connection {
    struct program *program;
    uint64_t id;
};

/* Never waits: the proxy does, for room for its orders, and reads no answers meanwhile. */
static void send_answers(struct program *program)
{
    struct buf *answers = &program->answers;

    while (program->control && answers->len) {
        if (send(TLS_CONTROL_FD, answers->data, sizeof(struct tls_answer),
                 MSG_DONTWAIT | MSG_NOSIGNAL) < 0 &&
            (errno == EAGAIN || errno == EINTR))
            break;
        buf_consume(answers, sizeof(struct tls_answer));
    }
    if (program->control)
        loop_watch_set(program->control, LOOP_READ | (answers->len ? LOOP_WRITE : 0u));
}

static void answer(struct program *program, uint64_t id, const char *why)
{
    struct tls_answer text = {.magic = TLS_MAGIC, .is_connected = !why, .id = id};

    if (why)
        snprintf(text.why, sizeof text.why, "%s", why);
    if (program->control && buf_append(&program->answers, &text, sizeof text))
        send_answers(program);
}

static void look_for_end(struct program *program)
{
    program->is_over = !program->control && !program->connections;
}

static void on_answer(void *data, struct pump *pump, const char *why)
{
    const struct connection *connection = data;

    answer(connection->program, connection->id, why);
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

/* OpenSSL looks where the distribution that it was built on keeps certificates, or where it is told; we may run on another one. */
static bool trust(SSL_CTX *client)
{
    static const char *const places[] = {TLS_ROOTS};
    const bool is_told =
        getenv(X509_get_default_cert_file_env()) || getenv(X509_get_default_cert_dir_env());
    AUTO_CLOSE int folder = open(X509_get_default_cert_dir(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    for (size_t i = 0; i < sizeof places / sizeof *places && !is_told && folder < 0; i++)
        if (SSL_CTX_load_verify_file(client, places[i]) == 1)
            return true;
    ERR_clear_error();
    return SSL_CTX_set_default_verify_paths(client) == 1;
}

/* For the first server: to read what is trusted takes 20 ms, and most commands are over without one. */
static int open_client(struct program *program, struct err *err)
{
    static const uint8_t protocol[] = "\x08http/1.1";
    SSL_CTX *client = program->client ? NULL : SSL_CTX_new(TLS_client_method());

    if (program->client)
        return 0;
    if (!client || !trust(client) || !SSL_CTX_set_min_proto_version(client, TLS1_2_VERSION) ||
        SSL_CTX_set_alpn_protos(client, protocol, sizeof protocol - 1)) {
        SSL_CTX_free(client);
        return err_set(err, ERR_SYSTEM, "OpenSSL does not start");
    }
    SSL_CTX_set_verify(client, SSL_VERIFY_PEER, NULL);
    program->client = client;
    return 0;
}

static SSL *to_server(struct program *program, const char *name, struct err *err)
{
    SSL *ssl;

    if (open_client(program, err))
        return NULL;
    ssl = SSL_new(program->client);
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
    ssize_t len;
    struct err err;

    if (ready & LOOP_WRITE)
        send_answers(program);
    len = pass_receive(fd, packet, sizeof packet, MSG_DONTWAIT, fds, &count);
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
        order.kind > TLS_ORDER_DIAL || !memchr(order.name, '\0', sizeof order.name)) {
        pass_close(fds, count);
        return;
    }
    if (count != TLS_FDS) {
        pass_close(fds, count);
        answer(program, order.id, "cordon-tls has as many connections open as it may");
        return;
    }
    if (set_up(program, &order, packet + sizeof order, (size_t)len - sizeof order, fds, &err))
        answer(program, order.id, err.msg);
}

/* --- the whole --- */

static int prepare(struct program *program, struct err *err)
{
    AUTO_FREE char *pem = NULL;

    program->authority = authority_new(err);
    pem = program->authority ? authority_pem(program->authority, err) : NULL;
    if (!pem)
        return -1;
    if (write(TLS_CA_FD, pem, strlen(pem)) != (ssize_t)strlen(pem))
        return err_sys(err, "telling the certificate");
    close(TLS_CA_FD);
    return 0;
}

static const long calls[] = {
    SYS_read,
    SYS_write,
    SYS_readv,
    SYS_writev,
    SYS_close,
    SYS_lseek,
    SYS_sendto,
    SYS_recvfrom,
    SYS_sendmsg,
    SYS_recvmsg,
    SYS_shutdown,
    SYS_getsockname,
    SYS_getpeername,
    SYS_setsockopt,
    SYS_getsockopt,
    SYS_fcntl,
    SYS_ioctl,
    SYS_openat,
    SYS_fstat,
    SYS_newfstatat,
    SYS_statx,
    SYS_readlinkat,
    SYS_epoll_ctl,
    SYS_epoll_pwait,
    SYS_ppoll,
    SYS_mmap,
    SYS_munmap,
    SYS_mremap,
    SYS_mprotect,
    SYS_madvise,
    SYS_brk,
    SYS_futex,
    SYS_getrandom,
    SYS_clock_gettime,
    SYS_gettimeofday,
    SYS_nanosleep,
    SYS_clock_nanosleep,
    SYS_getpid,
    SYS_gettid,
    SYS_tgkill,
    SYS_rt_sigaction,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
    SYS_restart_syscall,
    SYS_exit,
    SYS_exit_group,
#ifdef SYS_epoll_wait /* older ones, of x86 alone */
    SYS_epoll_wait,
    SYS_stat,
    SYS_lstat,
    SYS_open,
    SYS_readlink,
    SYS_poll,
    SYS_time,
#endif
};

/* Certificates may also lie one by one in folders, where OpenSSL looks when it wants one. */
static int confine_tls(struct err *err)
{
    static const char *const folders[] = {"/etc", "/usr/lib/ssl", "/usr/share/ca-certificates",
                                          "/usr/local/share/ca-certificates", NULL};
    const struct confine_options options = {
        .folders = folders, .calls = calls, .calls_len = sizeof calls / sizeof *calls};

    return confine(&options, err);
}

static int run(struct program *program, struct err *err)
{
    program->loop = loop_new(err);
    if (!program->loop || prepare(program, err) || confine_tls(err))
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
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0});
    fd_raise_limit();
    buf_init(&program.answers, SIZE_MAX / 2);
    status = run(&program, &err);
    if (status)
        fprintf(stderr, "cordon-tls: %s\n", err.msg);
    SSL_CTX_free(program.client);
    authority_free(program.authority);
    loop_watch_free(program.control);
    loop_free(program.loop);
    buf_done(&program.answers);
    return status ? 1 : 0;
}
