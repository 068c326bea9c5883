/* The signature is looked at first, and by the one algorithm there is, so that nothing a stranger
 * wrote is ever parsed. Only then the header has to say HS256, too: a token that was made for
 * another algorithm was made for another program. */
#include "rpc/transport/jwt.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/base64.h"
#include "base/json.h"
#include "base/str.h"

#include <nettle/hmac.h>
#include <nettle/memops.h>
#include <string.h>

enum { TOKEN_MAX = 16 * 1024 };

/* Base64 with the URL alphabet and without padding (RFC 7515, 2). NUL-terminated; NULL when it is
 * not well-formed. */
static char *url64_decode(const char *text, size_t len, size_t *ret_len)
{
    AUTO_FREE char *standard = alloc_zero(len + 4, 1);
    AUTO_FREE char *data = alloc_zero(len + 4, 1);
    struct err err;

    for (size_t i = 0; i < len; i++) {
        if (strchr("+/=", text[i]))
            return NULL;
        standard[i] = (char)(text[i] == '-' ? '+' : text[i] == '_' ? '/' : text[i]);
    }
    for (; len % 4; len++)
        standard[len] = '=';
    if (base64_decode(standard, len, data, &err))
        return NULL;
    *ret_len = base64_decoded_len(standard, len);
    data[*ret_len] = '\0';
    return TAKE_PTR(data);
}

static json_t *jwt_part(const char *text, size_t len)
{
    size_t size = 0;
    AUTO_FREE char *data = url64_decode(text, len, &size);
    struct err err;

    return data ? json_parse(data, size, &err) : NULL;
}

static bool jwt_is_signed(const char *token, const char *signature, const struct jwt_rules *rules)
{
    size_t len = 0;
    AUTO_FREE char *given = url64_decode(signature, strlen(signature), &len);
    uint8_t digest[SHA256_DIGEST_SIZE];
    struct hmac_sha256_ctx hmac;

    hmac_sha256_set_key(&hmac, rules->secret_len, rules->secret);
    hmac_sha256_update(&hmac, (size_t)(signature - 1 - token), (const uint8_t *)token);
    hmac_sha256_digest(&hmac, sizeof digest, digest);
    explicit_bzero(&hmac, sizeof hmac);
    return given && len == sizeof digest && memeql_sec(given, digest, sizeof digest);
}

/* "crit" (RFC 7515, 4.1.11) names extensions that have to be understood; none are. */
static bool jwt_header_is_ours(const json_t *header)
{
    const char *algorithm = json_string_value(json_object_get(header, "alg"));

    return algorithm && str_eq(algorithm, "HS256") && !json_object_get(header, "crit");
}

static bool jwt_is_in_time(const json_t *claims, const struct jwt_rules *rules)
{
    const json_t *expires = json_object_get(claims, "exp");
    const json_t *begins = json_object_get(claims, "nbf");
    double now = (double)rules->now_s;
    double skew = (double)rules->skew_s;

    if (!json_is_number(expires) || json_number_value(expires) + skew < now)
        return false;
    return !begins || (json_is_number(begins) && json_number_value(begins) <= now + skew);
}

/* A string, or an array with that string in it. */
static bool jwt_names(const json_t *value, const char *wanted)
{
    if (json_is_string(value))
        return str_eq(json_string_value(value), wanted);
    for (size_t i = 0; i < json_array_size(value); i++) {
        const json_t *item = json_array_get(value, i);

        if (json_is_string(item) && str_eq(json_string_value(item), wanted))
            return true;
    }
    return false;
}

static bool jwt_claims_hold(const json_t *claims, const struct jwt_rules *rules)
{
    const json_t *issuer = json_object_get(claims, "iss");

    if (!jwt_is_in_time(claims, rules))
        return false;
    if (rules->issuer && !(json_is_string(issuer) && jwt_names(issuer, rules->issuer)))
        return false;
    return !rules->audience || jwt_names(json_object_get(claims, "aud"), rules->audience);
}

bool jwt_is_valid(const char *token, const struct jwt_rules *rules)
{
    const char *payload = strchr(token, '.');
    const char *signature = payload ? strchr(payload + 1, '.') : NULL;
    AUTO_JSON json_t *header = NULL;
    AUTO_JSON json_t *claims = NULL;

    if (!signature || strlen(token) > TOKEN_MAX)
        return false;
    payload++;
    signature++;
    if (!jwt_is_signed(token, signature, rules))
        return false;
    header = jwt_part(token, (size_t)(payload - 1 - token));
    claims = jwt_part(payload, (size_t)(signature - 1 - payload));
    return jwt_header_is_ours(header) && jwt_claims_hold(claims, rules);
}
