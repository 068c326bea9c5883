/* Both ways have a buffer of one TLS record, and nothing is read for a way whose buffer is not empty: who does not read
 * is not sent more. A way ends with its end of file, which is handed on as such; an encrypted one without the
 * goodbye of TLS ends everything, since what was cut off there was perhaps not whole. */
#include "tls/pump.h"

#include "base/alloc.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BUFFER_BYTES = 16384, WHY_BYTES = 200 };
static const uint64_t HANDSHAKE_NS = 10000000000u;

struct way {
    char bytes[BUFFER_BYTES];
    size_t at, len;
    bool has_ended; /* nothing more comes */
    bool is_shut;   /* and the other side knows */
};

struct pump {
    struct pump_options options;
    struct loop_watch *encrypted, *plain;
    struct loop_timer *deadline;
    struct way in, out; /* decrypted, to be encrypted */
    bool is_connected;  /* the hands have been shaken */
    bool wants_write;   /* OpenSSL, before it can go on */
    bool is_broken;
    BIO *before; /* what was read by somebody else; NULL: OpenSSL has taken all of it */
};

void pump_free(struct pump *pump)
{
    if (!pump)
        return;
    loop_watch_free(pump->encrypted);
    loop_watch_free(pump->plain);
    loop_timer_free(pump->deadline);
    SSL_free(pump->options.ssl);
    close(pump->options.encrypted);
    close(pump->options.plain);
    free(pump);
}

/* --- the TLS side --- */

/* What to do after a call that did not succeed: wait, or give up. True: nothing comes any more, in good order. */
static bool was_goodbye(struct pump *pump, int result)
{
    int error = SSL_get_error(pump->options.ssl, result);

    pump->wants_write |= error == SSL_ERROR_WANT_WRITE;
    if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE &&
        error != SSL_ERROR_ZERO_RETURN)
        pump->is_broken = true;
    return error == SSL_ERROR_ZERO_RETURN;
}

static void decrypt(struct pump *pump)
{
    int got = SSL_read(pump->options.ssl, pump->in.bytes, sizeof pump->in.bytes);

    pump->in.at = 0;
    pump->in.len = got > 0 ? (size_t)got : 0;
    if (got <= 0)
        pump->in.has_ended = was_goodbye(pump, got);
}

static void encrypt(struct pump *pump)
{
    int sent = SSL_write(pump->options.ssl, pump->out.bytes + pump->out.at,
                         (int)(pump->out.len - pump->out.at));

    if (sent > 0)
        pump->out.at += (size_t)sent;
    else
        was_goodbye(pump, sent);
}

static void why_not(const struct pump *pump, char ret[WHY_BYTES])
{
    long verified = SSL_get_verify_result(pump->options.ssl);
    const unsigned long error = ERR_peek_error();
    const char *reason = ERR_reason_error_string(error);

    if (!SSL_is_server(pump->options.ssl) && verified != X509_V_OK)
        snprintf(ret, WHY_BYTES, "the server's certificate is not trusted: %s",
                 X509_verify_cert_error_string(verified));
    else if (SSL_is_server(pump->options.ssl) &&
             ERR_GET_REASON(error) == SSL_R_NO_APPLICATION_PROTOCOL)
        snprintf(ret, WHY_BYTES,
                 "the client wants HTTP/2, or another protocol, alone: where TLS is ended it is "
                 "HTTP/1.1 that is spoken");
    else if (SSL_is_server(pump->options.ssl))
        snprintf(ret, WHY_BYTES,
                 "the client ended TLS: %s (its program has to trust the certificates of "
                 "SSL_CERT_FILE)",
                 reason ? reason : "it hung up");
    else
        snprintf(ret, WHY_BYTES, "the server does not speak TLS as it should: %s",
                 reason ? reason : "it hung up");
}

static void shake_hands(struct pump *pump)
{
    int result = SSL_do_handshake(pump->options.ssl);
    char why[WHY_BYTES];

    if (result == 1) {
        pump->is_connected = true;
        loop_timer_stop(pump->deadline);
        pump->options.on_answer(pump->options.data, pump, NULL);
        return;
    }
    was_goodbye(pump, result);
    if (!pump->is_broken)
        return;
    why_not(pump, why);
    pump->options.on_answer(pump->options.data, pump, why);
}

/* --- the plain side --- */

static bool must_wait(void)
{
    return errno == EAGAIN || errno == EINTR;
}

static void take_plain(struct pump *pump)
{
    ssize_t got = read(pump->options.plain, pump->out.bytes, sizeof pump->out.bytes);

    pump->out.at = 0;
    pump->out.len = got > 0 ? (size_t)got : 0;
    pump->out.has_ended = got == 0;
    pump->is_broken |= got < 0 && !must_wait();
}

static void give_plain(struct pump *pump)
{
    ssize_t sent = send(pump->options.plain, pump->in.bytes + pump->in.at,
                        pump->in.len - pump->in.at, MSG_NOSIGNAL);

    if (sent > 0)
        pump->in.at += (size_t)sent;
    else
        pump->is_broken |= !must_wait();
}

/* The other end is closed, and not only shut down. */
static bool is_hung_up(int fd)
{
    struct pollfd poller = {.fd = fd};

    return poll(&poller, 1, 0) > 0 && (poller.revents & (POLLHUP | POLLERR));
}

/* --- both --- */

static bool is_empty(const struct way *way)
{
    return way->at == way->len;
}

static bool hand_on(struct way *way)
{
    bool is_due = way->has_ended && is_empty(way) && !way->is_shut;

    way->is_shut |= is_due;
    return is_due;
}

/* OpenSSL reads what was read before, then the socket. */
static void read_on(struct pump *pump)
{
    BIO *socket;

    if (!pump->before || BIO_pending(pump->before))
        return;
    socket = BIO_new_socket(pump->options.encrypted, BIO_NOCLOSE);
    pump->before = NULL;
    if (socket)
        SSL_set0_rbio(pump->options.ssl, socket);
    else
        pump->is_broken = true;
}

static bool read_before(struct pump *pump)
{
    const struct pump_options *options = &pump->options;

    if (!options->read_len)
        return true;
    pump->before = BIO_new(BIO_s_mem());
    if (!pump->before ||
        BIO_write(pump->before, options->read, (int)options->read_len) != (int)options->read_len) {
        BIO_free(pump->before);
        return false;
    }
    BIO_set_mem_eof_return(pump->before, -1);
    SSL_set0_rbio(options->ssl, pump->before);
    pump->options.read = NULL;
    return true;
}

/* Moves what can be moved at once. */
static void work(struct pump *pump)
{
    read_on(pump);
    pump->wants_write = false;
    if (!pump->is_connected)
        shake_hands(pump);
    if (!pump->is_connected || pump->is_broken)
        return;
    if (is_empty(&pump->in) && !pump->in.has_ended)
        decrypt(pump);
    if (!is_empty(&pump->in))
        give_plain(pump);
    if (hand_on(&pump->in))
        shutdown(pump->options.plain, SHUT_WR);
    if (is_empty(&pump->out) && !pump->out.has_ended)
        take_plain(pump);
    if (!is_empty(&pump->out))
        encrypt(pump);
    if (hand_on(&pump->out)) {
        SSL_shutdown(pump->options.ssl);
        pump->is_broken |= is_hung_up(pump->options.plain);
    }
}

static void wait_for_more(struct pump *pump)
{
    bool reads = !pump->is_connected || (is_empty(&pump->in) && !pump->in.has_ended);
    bool writes = pump->wants_write || (pump->is_connected && !is_empty(&pump->out));

    loop_watch_set(pump->encrypted, (reads ? LOOP_READ : 0u) | (writes ? LOOP_WRITE : 0u));
    loop_watch_set(
        pump->plain,
        (pump->is_connected && is_empty(&pump->out) && !pump->out.has_ended ? LOOP_READ : 0u) |
            (!is_empty(&pump->in) ? LOOP_WRITE : 0u));
}

static void end(struct pump *pump)
{
    pump->options.on_end(pump->options.data, pump);
    pump_free(pump);
}

static void on_ready(void *data, int fd, unsigned ready)
{
    struct pump *pump = data;

    ERR_clear_error();
    /* what OpenSSL has decrypted already does not make the socket readable */
    do
        work(pump);
    while (!pump->is_broken && pump->is_connected && is_empty(&pump->in) &&
           SSL_pending(pump->options.ssl) > 0);
    if (pump->is_broken || (pump->in.is_shut && pump->out.is_shut))
        end(pump);
    else
        wait_for_more(pump);
}

static void on_deadline(void *data)
{
    struct pump *pump = data;

    pump->options.on_answer(pump->options.data, pump, "TLS was not agreed on within 10 s");
    end(pump);
}

struct pump *pump_new(const struct pump_options *options, struct err *err)
{
    struct pump *pump = alloc_zero(1, sizeof *pump);

    pump->options = *options;
    pump->deadline = loop_timer_new(options->loop, on_deadline, pump);
    pump->encrypted = loop_watch_new(options->loop, options->encrypted, LOOP_READ | LOOP_WRITE,
                                     on_ready, pump, err);
    pump->plain = pump->encrypted ? loop_watch_new(options->loop, options->plain, LOOP_NOTHING,
                                                   on_ready, pump, err)
                                  : NULL;
    if (!pump->plain || SSL_set_fd(options->ssl, options->encrypted) != 1 || !read_before(pump)) {
        if (pump->plain)
            err_set(err, ERR_SYSTEM, "OpenSSL does not take the socket");
        pump_free(pump);
        return NULL;
    }
    SSL_set_mode(options->ssl, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                   SSL_MODE_RELEASE_BUFFERS);
    SSL_set_options(options->ssl, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    loop_timer_start(pump->deadline, HANDSHAKE_NS);
    return pump;
}
