/* The authority that vouches for the names of hosts whose TLS Cordon ends: made in memory when the program starts, gone
 * with it, and never written anywhere. */
#pragma once

#include "base/err.h"

#include <openssl/ssl.h>

struct authority;

/* NULL on failure. */
struct authority *authority_new(struct err *err);
void authority_free(struct authority *authority);

/* The certificate, in PEM. Caller frees. */
char *authority_pem(const struct authority *authority, struct err *err);

/* What a server of this name (or address, as text) shows: a context with a certificate for it, made when it is asked
 * for the first time in a day. Borrowed until the next call; NULL on failure. */
SSL_CTX *authority_server(struct authority *authority, const char *name, struct err *err);
