/* Two ways to be let in: a token that is known by its SHA-256, so that comparing takes the same
 * time for every wrong one, and a signed one: a JSON Web Token (RFC 7519) with HMAC-SHA-256 (RFC
 * 7518, 3.2). Secrets are read from files, when they are asked to be, and wiped as soon as they
 * count no longer. Which flags go together is a table.
 *
 * The user's token lets in both ways: as it is, by a client that knows no better, and by what it
 * signed. Cordon's own clients never send it: whoever has taken the port of a server would have it
 * then. What they send is good for one address, so that it cannot be passed on to the server, and
 * for a short time; and they want to see a proof that the server knows the token, which is only
 * given to who was let in.
 *
 * The signature is looked at first, and by the one algorithm there is, so that nothing a stranger
 * wrote is ever parsed. Only then the header has to say HS256, too: a token that was made for
 * another algorithm was made for another program. */
#include "rpc/transport/auth.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/base64.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/str.h"
#include "base/units.h"
#include "base/user_token.h"

#include <nettle/hmac.h>
#include <nettle/memops.h>
#include <nettle/sha2.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    SECRET_FILE_MAX = 64 * 1024,
    TOKEN_MAX = 16 * 1024,
    SIGNED_S = 30, /* how long what a client signs is good */
};

struct rpc_auth {
    enum rpc_auth_mode mode;
    uint8_t token[SHA256_DIGEST_SIZE]; /* of the capability or the user's token */
    struct buf secret;                 /* also the user's token */
    char *issuer;                      /* NULL: any */
    char *audience;                    /* NULL: any */
    uint64_t skew_s;                   /* how far clocks may differ */
};

/* --- signed tokens --- */

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

struct span {
    const char *text;
    size_t len;
};

static void sign(struct span secret, struct span text, uint8_t ret[SHA256_DIGEST_SIZE])
{
    struct hmac_sha256_ctx hmac;

    hmac_sha256_set_key(&hmac, secret.len, (const uint8_t *)secret.text);
    hmac_sha256_update(&hmac, text.len, (const uint8_t *)text.text);
    hmac_sha256_digest(&hmac, SHA256_DIGEST_SIZE, ret);
    explicit_bzero(&hmac, sizeof hmac);
}

static struct span secret_of(const struct rpc_auth *auth)
{
    return (struct span){auth->secret.data, auth->secret.len};
}

static bool jwt_is_signed(const char *token, const char *signature, const struct rpc_auth *auth)
{
    size_t len = 0;
    AUTO_FREE char *given = url64_decode(signature, strlen(signature), &len);
    uint8_t digest[SHA256_DIGEST_SIZE];

    sign(secret_of(auth), (struct span){token, (size_t)(signature - 1 - token)}, digest);
    return given && len == sizeof digest && memeql_sec(given, digest, sizeof digest);
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

static bool jwt_claims_hold(const json_t *claims, const struct rpc_auth *auth, const char *audience)
{
    const json_t *expires = json_object_get(claims, "exp");
    const json_t *begins = json_object_get(claims, "nbf");
    const json_t *issuer = json_object_get(claims, "iss");
    double now = (double)(clock_wall_ns() / CLOCK_NS_PER_S);
    double skew = (double)auth->skew_s;

    if (!json_is_number(expires) || json_number_value(expires) + skew < now)
        return false;
    if (begins && !(json_is_number(begins) && json_number_value(begins) <= now + skew))
        return false;
    if (auth->issuer && !(json_is_string(issuer) && jwt_names(issuer, auth->issuer)))
        return false;
    return !audience || jwt_names(json_object_get(claims, "aud"), audience);
}

/* Whether the token is well-formed, signed with the secret by HS256, has an "exp" that is not over,
 * an "nbf" (if any) that is, and names issuer and audience where asked. */
static bool jwt_is_valid(const char *token, const struct rpc_auth *auth, const char *audience)
{
    const char *payload = strchr(token, '.');
    const char *signature = payload ? strchr(payload + 1, '.') : NULL;
    AUTO_JSON json_t *header = NULL;
    AUTO_JSON json_t *claims = NULL;
    const char *algorithm;

    if (!signature || strlen(token) > TOKEN_MAX)
        return false;
    payload++;
    signature++;
    if (!jwt_is_signed(token, signature, auth))
        return false;
    header = jwt_part(token, (size_t)(payload - 1 - token));
    claims = jwt_part(payload, (size_t)(signature - 1 - payload));
    algorithm = json_string_value(json_object_get(header, "alg"));
    /* "crit" (RFC 7515, 4.1.11) names extensions that have to be understood; none are */
    return algorithm && str_eq(algorithm, "HS256") && !json_object_get(header, "crit") &&
           jwt_claims_hold(claims, auth, audience);
}

/* --- the options --- */

static const char *const mode_words[] = {
    [RPC_AUTH_USER_TOKEN] = "user-token",
    [RPC_AUTH_CAPABILITY_TOKEN] = "capability-token",
    [RPC_AUTH_SIGNED_BEARER_TOKEN] = "signed-bearer-token",
    [RPC_AUTH_OWN_PROCESSES] = "own-processes",
    [RPC_AUTH_ANYBODY] = "anybody",
};

int rpc_auth_mode_parse(const char *word, enum rpc_auth_mode *ret, struct err *err)
{
    for (size_t i = RPC_AUTH_USER_TOKEN; i < sizeof mode_words / sizeof *mode_words; i++) {
        if (str_eq(word, mode_words[i])) {
            *ret = (enum rpc_auth_mode)i;
            return 0;
        }
    }
    return err_set(err, ERR_INVALID,
                   "--ws-auth: \"%.40s\" is none of user-token, capability-token, "
                   "signed-bearer-token, own-processes, anybody",
                   word);
}

const char *rpc_auth_mode_word(enum rpc_auth_mode mode)
{
    return mode_words[mode];
}

/* Every flag belongs to one mode. */
static int auth_check_flags(const struct rpc_auth_options *options, struct err *err)
{
    const struct {
        const char *value;
        const char *flag;
        enum rpc_auth_mode mode;
    } flags[] = {
        {options->token_file, "--ws-token-file", RPC_AUTH_CAPABILITY_TOKEN},
        {options->token_sha256, "--ws-token-sha256", RPC_AUTH_CAPABILITY_TOKEN},
        {options->shared_secret_file, "--ws-shared-secret-file", RPC_AUTH_SIGNED_BEARER_TOKEN},
        {options->issuer, "--ws-issuer", RPC_AUTH_SIGNED_BEARER_TOKEN},
        {options->audience, "--ws-audience", RPC_AUTH_SIGNED_BEARER_TOKEN},
        {options->max_clock_skew_s, "--ws-max-clock-skew-seconds", RPC_AUTH_SIGNED_BEARER_TOKEN},
    };

    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (flags[i].value && flags[i].mode != options->mode)
            return err_set(err, ERR_INVALID, "%s needs --ws-auth %s", flags[i].flag,
                           mode_words[flags[i].mode]);
    if (options->mode == RPC_AUTH_CAPABILITY_TOKEN &&
        !options->token_file == !options->token_sha256)
        return err_set(err, ERR_INVALID,
                       "--ws-auth capability-token needs either --ws-token-file or "
                       "--ws-token-sha256");
    if (options->mode == RPC_AUTH_SIGNED_BEARER_TOKEN && !options->shared_secret_file)
        return err_set(err, ERR_INVALID,
                       "--ws-auth signed-bearer-token needs --ws-shared-secret-file");
    return 0;
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* The text without white space around it. */
static const char *trim(const char *text, size_t *len)
{
    while (*len && is_space(text[*len - 1]))
        (*len)--;
    while (*len && is_space(*text)) {
        text++;
        (*len)--;
    }
    return text;
}

static void secret_done(struct buf *secret)
{
    if (secret->data)
        explicit_bzero(secret->data, secret->cap);
    buf_done(secret);
}

/* What is in the file, without white space around it. */
static int secret_read(const char *path, struct buf *ret, struct err *err)
{
    AUTO(secret_done) struct buf file;
    const char *text;
    size_t len;

    buf_init(&file, SECRET_FILE_MAX);
    if (fd_read_given(path, SECRET_FILE_MAX, &file, err))
        return -1;
    len = file.len;
    text = trim(file.data ? file.data : "", &len);
    buf_append(ret, text, len);
    return 0;
}

static void token_digest(const char *text, size_t len, uint8_t ret[SHA256_DIGEST_SIZE])
{
    struct sha256_ctx sha256;

    sha256_init(&sha256);
    sha256_update(&sha256, len, (const uint8_t *)text);
    sha256_digest(&sha256, SHA256_DIGEST_SIZE, ret);
    explicit_bzero(&sha256, sizeof sha256);
}

/* 64 hex digits. */
static int digest_parse(const char *text, uint8_t ret[SHA256_DIGEST_SIZE], struct err *err)
{
    static const char digits[] = "0123456789abcdefABCDEF";

    if (strlen(text) != 2 * SHA256_DIGEST_SIZE || strspn(text, digits) != strlen(text))
        return err_set(err, ERR_INVALID,
                       "--ws-token-sha256 has to be %d hex digits: the SHA-256 of the token",
                       2 * SHA256_DIGEST_SIZE);
    for (size_t i = 0; i < SHA256_DIGEST_SIZE; i++) {
        const char byte[] = {text[2 * i], text[2 * i + 1], '\0'};

        ret[i] = (uint8_t)strtoul(byte, NULL, 16);
    }
    return 0;
}

static int auth_load_token(struct rpc_auth *auth, const struct rpc_auth_options *options,
                           struct err *err)
{
    AUTO(secret_done) struct buf token;

    buf_init(&token, SECRET_FILE_MAX);
    if (options->token_sha256)
        return digest_parse(options->token_sha256, auth->token, err);
    if (secret_read(options->token_file, &token, err))
        return err_wrap(err, "--ws-token-file");
    if (!token.len)
        return err_set(err, ERR_INVALID, "--ws-token-file %s: there is no token in it",
                       options->token_file);
    token_digest(token.data, token.len, auth->token);
    return 0;
}

static int auth_load_user_token(struct rpc_auth *auth, const struct rpc_auth_options *options,
                                struct err *err)
{
    char *token;

    if (!options->user_dir)
        return err_set(err, ERR_INVALID,
                       "there is no home directory to keep the token of --ws-auth user-token in: "
                       "HOME or CORDON_HOME has to be set, or --ws-auth own-processes given");
    if (user_token_make(options->user_dir, &token, err)) {
        const struct err cause = *err;

        if (cause.code == ERR_FORBIDDEN || cause.code == ERR_INVALID) /* says what to do */
            return err_wrap(err, "--ws-auth user-token");
        return err_set(err, cause.code,
                       "--ws-auth user-token: %s; where no token can be kept, --ws-auth "
                       "own-processes needs none",
                       cause.msg);
    }
    token_digest(token, strlen(token), auth->token);
    buf_append_str(&auth->secret, token); /* the clock is that of the clients: no skew */
    user_token_free(token);
    return 0;
}

static int auth_load_secret(struct rpc_auth *auth, const struct rpc_auth_options *options,
                            struct err *err)
{
    const char *skew = options->max_clock_skew_s;

    if (secret_read(options->shared_secret_file, &auth->secret, err))
        return err_wrap(err, "--ws-shared-secret-file");
    if (auth->secret.len < RPC_AUTH_SECRET_MIN)
        return err_set(err, ERR_INVALID, "--ws-shared-secret-file %s: fewer than %d bytes",
                       options->shared_secret_file, RPC_AUTH_SECRET_MIN);
    auth->skew_s = RPC_AUTH_SKEW_DEFAULT_S;
    if (skew && units_parse_count(skew, &auth->skew_s, err))
        return err_wrap(err, "--ws-max-clock-skew-seconds");
    auth->issuer = alloc_str(options->issuer);
    auth->audience = alloc_str(options->audience);
    return 0;
}

static void auth_auto(struct rpc_auth **auth)
{
    rpc_auth_free(*auth);
}

int rpc_auth_new(const struct rpc_auth_options *options, struct rpc_auth **ret, struct err *err)
{
    AUTO(auth_auto) struct rpc_auth *auth = NULL;

    if (auth_check_flags(options, err))
        return -1;
    if (options->mode != RPC_AUTH_NONE && options->mode != RPC_AUTH_OWN_PROCESSES) {
        auth = alloc_zero(1, sizeof *auth);
        auth->mode = options->mode;
        buf_init(&auth->secret, SECRET_FILE_MAX);
        if (options->mode == RPC_AUTH_USER_TOKEN && auth_load_user_token(auth, options, err))
            return -1;
        if (options->mode == RPC_AUTH_CAPABILITY_TOKEN && auth_load_token(auth, options, err))
            return -1;
        if (options->mode == RPC_AUTH_SIGNED_BEARER_TOKEN && auth_load_secret(auth, options, err))
            return -1;
    }
    *ret = TAKE_PTR(auth);
    return 0;
}

void rpc_auth_free(struct rpc_auth *auth)
{
    if (!auth)
        return;
    secret_done(&auth->secret);
    free(auth->issuer);
    free(auth->audience);
    explicit_bzero(auth, sizeof *auth);
    free(auth);
}

int rpc_auth_reload(struct rpc_auth *auth, const struct rpc_auth_options *options,
                    bool *ret_changed, struct err *err)
{
    AUTO(auth_auto) struct rpc_auth *fresh = NULL;
    struct rpc_auth old = *auth;

    if (rpc_auth_new(options, &fresh, err))
        return -1;
    *ret_changed =
        !memeql_sec(auth->token, fresh->token, sizeof auth->token) ||
        auth->secret.len != fresh->secret.len ||
        (auth->secret.len && !memeql_sec(auth->secret.data, fresh->secret.data, auth->secret.len));
    *auth = *fresh;
    *fresh = old;
    explicit_bzero(&old, sizeof old);
    return 0;
}

bool rpc_auth_is_open(const struct rpc_auth *auth)
{
    return auth->mode == RPC_AUTH_ANYBODY;
}

bool rpc_auth_is_for_own_processes(const struct rpc_auth *auth)
{
    return auth->mode == RPC_AUTH_USER_TOKEN;
}

const char *rpc_auth_refusal(const struct rpc_auth *auth)
{
    return auth->mode == RPC_AUTH_USER_TOKEN
               ? "unauthorized: this server is for who knows its user's token, which Cordon's own "
                 "clients find by themselves; others have to send Authorization: Bearer with what "
                 "is in ~/.config/cordon/private/ws-token, or the server is started with --ws-auth "
                 "own-processes"
               : "unauthorized";
}

bool rpc_auth_allows(const struct rpc_auth *auth, const char *header, const char *address)
{
    const char *audience = auth->mode == RPC_AUTH_USER_TOKEN ? address : auth->audience;
    static const char scheme[] = "bearer";
    const size_t scheme_len = sizeof scheme - 1;
    uint8_t digest[SHA256_DIGEST_SIZE];
    const char *token;
    size_t len;

    if (rpc_auth_is_open(auth))
        return true;
    if (!header || strncasecmp(header, scheme, scheme_len) != 0 || !is_space(header[scheme_len]))
        return false;
    len = strlen(header) - scheme_len;
    token = trim(header + scheme_len, &len);
    if (!len)
        return false;
    token_digest(token, len, digest);
    if (auth->mode != RPC_AUTH_SIGNED_BEARER_TOKEN &&
        memeql_sec(digest, auth->token, sizeof digest))
        return true;
    if (auth->mode != RPC_AUTH_CAPABILITY_TOKEN) {
        AUTO_FREE char *text = alloc_strn(token, len);

        return jwt_is_valid(text, auth, audience);
    }
    return false;
}

/* --- the user's token, shown to be known --- */

/* No signed token is a text like this, with a space in it. */
static void prove(struct span secret, const char *key, char ret[RPC_AUTH_PROOF_SIZE])
{
    AUTO_FREE char *text = alloc_strf("cordon-proof %s", key);
    uint8_t digest[SHA256_DIGEST_SIZE];

    sign(secret, (struct span){text, strlen(text)}, digest);
    base64_encode(digest, sizeof digest, ret);
}

bool rpc_auth_prove(const struct rpc_auth *auth, const char *key, char ret[RPC_AUTH_PROOF_SIZE])
{
    if (!auth || auth->mode != RPC_AUTH_USER_TOKEN)
        return false;
    prove(secret_of(auth), key, ret);
    return true;
}

bool rpc_auth_is_proof(const char *token, const char *key, const char *proof)
{
    char right[RPC_AUTH_PROOF_SIZE];

    prove((struct span){token, strlen(token)}, key, right);
    return proof && strlen(proof) == strlen(right) && memeql_sec(proof, right, strlen(right));
}

/* As url64_decode() reads it. */
static char *url64_encode(const void *data, size_t len)
{
    char *text = alloc_zero(base64_encoded_len(len) + 1, 1);

    base64_encode(data, len, text);
    for (char *at = text; *at; at++)
        *at = (char)(*at == '+' ? '-' : *at == '/' ? '_' : *at == '=' ? '\0' : *at);
    return text;
}

char *rpc_auth_sign(const char *token, const char *address)
{
    static const char header[] = "{\"alg\":\"HS256\",\"typ\":\"JWT\"}";
    AUTO_FREE char *claims =
        alloc_strf("{\"aud\":\"%s\",\"exp\":%llu}", address,
                   (unsigned long long)(clock_wall_ns() / CLOCK_NS_PER_S + SIGNED_S));
    AUTO_FREE char *first = url64_encode(header, strlen(header));
    AUTO_FREE char *second = url64_encode(claims, strlen(claims));
    AUTO_FREE char *text = alloc_strf("%s.%s", first, second);
    AUTO_FREE char *third = NULL;
    uint8_t digest[SHA256_DIGEST_SIZE];

    sign((struct span){token, strlen(token)}, (struct span){text, strlen(text)}, digest);
    third = url64_encode(digest, sizeof digest);
    return alloc_strf("%s.%s", text, third);
}
