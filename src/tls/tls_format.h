/* What goes between cordon-tls, a program of its own that alone links a TLS library for connections of commands, the
 * proxy that has it end TLS, and the host that starts it. They are built together, so there is no versioning
 * beyond a number that has to match.
 *
 *     cordon-tls -> host    over TLS_CA_FD, a pipe: the certificate of the authority, in PEM; then it is closed
 *     proxy -> cordon-tls   over TLS_CONTROL_FD (SOCK_SEQPACKET): struct tls_order, with the descriptors of
 *                           enum tls_descriptor, which are its own from then on
 *                           behind it what has been read of the encrypted socket already, TLS_READ_MAX at most
 *     cordon-tls -> proxy   over the same socket: one struct tls_answer to each order
 *
 * It ends when the control socket and all connections have ended. It is started with these descriptors and
 * /dev/null as 0, 1 and 2, and with the same restrictions as the proxy.
 */
#pragma once

#include <stdint.h>

#define TLS_PROGRAM "cordon-tls"

/* Where distributions keep the certificates that are trusted, in one file: Debian, Red Hat, Alpine, SUSE. */
#define TLS_ROOTS                                                                                  \
    "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem", \
        "/etc/ssl/ca-bundle.pem"

enum {
    TLS_MAGIC = 0x534c5443,
    TLS_VERSION = 1,
    TLS_CONTROL_FD = 3,
    TLS_CA_FD = 4,
};

enum tls_order_kind {
    TLS_ORDER_SERVE, /* a client is at the other end, for which `name` is the server */
    TLS_ORDER_DIAL,  /* the server `name` is, whose certificate has to say so */
};

enum tls_descriptor {
    TLS_FD_ENCRYPTED, /* connected */
    TLS_FD_PLAIN,     /* a stream socket: what comes there is encrypted, and the other way round */
    TLS_FDS
};

enum { TLS_ORDER_NAME = 256, TLS_ANSWER_WHY = 256, TLS_READ_MAX = 20 << 10 };

struct tls_order {
    uint32_t magic;
    uint32_t version;
    uint64_t id; /* chosen by the proxy */
    uint32_t kind;
    char name[TLS_ORDER_NAME]; /* a name, or an address as text; NUL-terminated */
    uint32_t reserved;
};

/* When the hands have been shaken, or it is known that they will not be. */
struct tls_answer {
    uint32_t magic;
    uint32_t is_connected;
    uint64_t id;
    char why
        [TLS_ANSWER_WHY]; /* when not: "the server's certificate is not trusted: ...", NUL-terminated */
};
