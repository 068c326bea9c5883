/* Keys are P-256; certificates have what the strictest verifiers want (key identifiers, key usage, names in the
 * alternative names alone). All leaves share one key: whoever has it can be any of them anyway. */
#include "tls/authority.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/str.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    DAY = 24 * 60 * 60,
    AUTHORITY_DAYS = 365,
    LEAF_DAYS = 7,
    LEAVES_MAX = 256, /* that are kept; the oldest one goes */
    SERIAL_BYTES = 16,
};

struct leaf {
    char *name;
    SSL_CTX *context;
    time_t made;
};

struct authority {
    EVP_PKEY *key;
    X509 *certificate;
    EVP_PKEY *leaf_key;
    struct leaf leaves[LEAVES_MAX];
    size_t next; /* to be replaced */
};

static int fail(struct err *err, const char *what)
{
    char why[200];

    ERR_error_string_n(ERR_get_error(), why, sizeof why);
    ERR_clear_error();
    return err_set(err, ERR_SYSTEM, "%s: %s", what, why);
}

static bool add_extension(X509 *certificate, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX context;
    X509_EXTENSION *extension;
    bool is_added;

    X509V3_set_ctx(&context, issuer, certificate, NULL, NULL, 0);
    extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
    is_added = extension && X509_add_ext(certificate, extension, -1);
    X509_EXTENSION_free(extension);
    return is_added;
}

/* Everything but the extensions and the signature. */
static X509 *blank(EVP_PKEY *key, const X509_NAME *issuer, const char *name, int days)
{
    X509 *certificate = X509_new();
    BIGNUM *serial = BN_new();
    uint8_t bytes[SERIAL_BYTES];
    X509_NAME *subject = certificate ? X509_get_subject_name(certificate) : NULL;
    bool is_made = subject && serial && RAND_bytes(bytes, sizeof bytes) == 1;

    bytes[0] = (bytes[0] & 0x3f) | 0x40; /* positive, and of full length */
    is_made =
        is_made && BN_bin2bn(bytes, sizeof bytes, serial) &&
        BN_to_ASN1_INTEGER(serial, X509_get_serialNumber(certificate)) &&
        X509_set_version(certificate, X509_VERSION_3) &&
        X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const uint8_t *)name, -1, -1, 0) &&
        X509_set_issuer_name(certificate, issuer ? issuer : subject) &&
        X509_gmtime_adj(X509_getm_notBefore(certificate), -DAY) &&
        X509_gmtime_adj(X509_getm_notAfter(certificate), (long)days * DAY) &&
        X509_set_pubkey(certificate, key);
    BN_free(serial);
    if (is_made)
        return certificate;
    X509_free(certificate);
    return NULL;
}

/* --- the authority --- */

static X509 *self_signed(EVP_PKEY *key)
{
    X509 *certificate = blank(key, NULL, "Cordon, for the commands of one run", AUTHORITY_DAYS);

    if (certificate &&
        add_extension(certificate, certificate, NID_basic_constraints,
                      "critical,CA:TRUE,pathlen:0") &&
        add_extension(certificate, certificate, NID_key_usage, "critical,keyCertSign,cRLSign") &&
        add_extension(certificate, certificate, NID_subject_key_identifier, "hash") &&
        X509_sign(certificate, key, EVP_sha256()))
        return certificate;
    X509_free(certificate);
    return NULL;
}

struct authority *authority_new(struct err *err)
{
    struct authority *authority = alloc_zero(1, sizeof *authority);

    authority->key = EVP_EC_gen("P-256");
    authority->leaf_key = EVP_EC_gen("P-256");
    authority->certificate = authority->key ? self_signed(authority->key) : NULL;
    if (authority->certificate && authority->leaf_key)
        return authority;
    fail(err, "making a certificate authority");
    authority_free(authority);
    return NULL;
}

static void leaf_done(struct leaf *leaf)
{
    free(leaf->name);
    SSL_CTX_free(leaf->context);
    *leaf = (struct leaf){.name = NULL};
}

void authority_free(struct authority *authority)
{
    if (!authority)
        return;
    for (size_t i = 0; i < LEAVES_MAX; i++)
        leaf_done(&authority->leaves[i]);
    X509_free(authority->certificate);
    EVP_PKEY_free(authority->key);
    EVP_PKEY_free(authority->leaf_key);
    free(authority);
}

char *authority_pem(const struct authority *authority, struct err *err)
{
    BIO *memory = BIO_new(BIO_s_mem());
    char *data, *text = NULL;

    if (memory && PEM_write_bio_X509(memory, authority->certificate)) {
        long len = BIO_get_mem_data(memory, &data);

        text = alloc_strn(data, (size_t)len);
    } else {
        fail(err, "writing the certificate");
    }
    BIO_free(memory);
    return text;
}

/* --- one host --- */

static bool is_address(const char *name)
{
    uint8_t bytes[sizeof(struct in6_addr)];

    return inet_pton(AF_INET, name, bytes) == 1 || inet_pton(AF_INET6, name, bytes) == 1;
}

static X509 *certificate_for(const struct authority *authority, const char *name)
{
    AUTO_FREE char *names = alloc_strf("%s:%s", is_address(name) ? "IP" : "DNS", name);
    X509 *issuer = authority->certificate;
    X509 *certificate = blank(authority->leaf_key, X509_get_subject_name(issuer),
                              "a host, as Cordon shows it", LEAF_DAYS);

    if (certificate &&
        add_extension(certificate, issuer, NID_basic_constraints, "critical,CA:FALSE") &&
        add_extension(certificate, issuer, NID_key_usage, "critical,digitalSignature") &&
        add_extension(certificate, issuer, NID_ext_key_usage, "serverAuth") &&
        add_extension(certificate, issuer, NID_subject_key_identifier, "hash") &&
        add_extension(certificate, issuer, NID_authority_key_identifier, "keyid:always") &&
        add_extension(certificate, issuer, NID_subject_alt_name, names) &&
        X509_sign(certificate, authority->key, EVP_sha256()))
        return certificate;
    X509_free(certificate);
    return NULL;
}

/* HTTP/1.1 is what the proxy can look into. A client that wants nothing else than another protocol is told so. */
static int choose_protocol(SSL *ssl, const uint8_t **ret, uint8_t *ret_len, const uint8_t *offered,
                           unsigned offered_len, void *data)
{
    static const uint8_t ours[] = "\x08http/1.1\x08http/1.0";

    return SSL_select_next_proto((uint8_t **)(uintptr_t)ret, ret_len, ours, sizeof ours - 1,
                                 offered, offered_len) == OPENSSL_NPN_NEGOTIATED
               ? SSL_TLSEXT_ERR_OK
               : SSL_TLSEXT_ERR_ALERT_FATAL;
}

static SSL_CTX *context_for(const struct authority *authority, const char *name, struct err *err)
{
    X509 *certificate = certificate_for(authority, name);
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());
    bool is_made = certificate && context &&
                   SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) &&
                   SSL_CTX_use_certificate(context, certificate) &&
                   SSL_CTX_use_PrivateKey(context, authority->leaf_key) &&
                   SSL_CTX_add1_chain_cert(context, authority->certificate);

    X509_free(certificate);
    if (!is_made) {
        SSL_CTX_free(context);
        fail(err, "making a certificate");
        return NULL;
    }
    SSL_CTX_set_alpn_select_cb(context, choose_protocol, NULL);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    return context;
}

SSL_CTX *authority_server(struct authority *authority, const char *name, struct err *err)
{
    time_t now = time(NULL);
    struct leaf *leaf = NULL;

    for (size_t i = 0; i < LEAVES_MAX && !leaf; i++)
        if (authority->leaves[i].name && str_eq(authority->leaves[i].name, name))
            leaf = &authority->leaves[i];
    if (leaf && now - leaf->made < DAY)
        return leaf->context;
    if (!leaf) {
        leaf = &authority->leaves[authority->next];
        authority->next = (authority->next + 1) % LEAVES_MAX;
    }
    leaf_done(leaf);
    *leaf = (struct leaf){.context = context_for(authority, name, err), .made = now};
    if (leaf->context)
        leaf->name = alloc_str(name);
    return leaf->context;
}
