/* JSON Web Tokens (RFC 7519) signed with HMAC-SHA-256 (RFC 7518, 3.2). Internal to rpc. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct jwt_rules {
    const void *secret;
    size_t secret_len;
    const char *issuer;   /* NULL: any */
    const char *audience; /* NULL: any */
    uint64_t skew_s;      /* how far clocks may differ */
    uint64_t now_s;       /* since 1970 */
};

/* Whether the token is well-formed, signed with the secret by HS256, has an "exp" that is not over,
 * an "nbf" (if any) that is, and names issuer and audience where asked. */
bool jwt_is_valid(const char *token, const struct jwt_rules *rules);
