/* See rpc_path.h. Which refusal has which code follows the original. */
#include "server/rpc_path.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/file_uri.h"
#include "base/path.h"

#include <ctype.h>
#include <jansson.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

/* Bytes of "SCHEME:" at the beginning; 0 when there is none (RFC 3986 3.1). */
static size_t scheme_len(const char *uri)
{
    size_t len = 0;

    if (!isalpha((unsigned char)*uri))
        return 0;
    while (isalnum((unsigned char)uri[len]) || (uri[len] && strchr("+-.", uri[len])))
        len++;
    return uri[len] == ':' ? len + 1 : 0;
}

/* "file://HOST/..." with a host that is not this one. */
static bool has_foreign_host(const char *rest)
{
    size_t len;

    if (strncmp(rest, "//", 2) != 0)
        return false;
    len = strcspn(rest + 2, "/?#");
    return len > 0 && !(len == strlen("localhost") && strncasecmp(rest + 2, "localhost", len) == 0);
}

/* "/C:/..." means a drive, whatever system this is. */
static bool has_drive(const char *path)
{
    return path[0] == '/' && isalpha((unsigned char)path[1]) && path[2] == ':' &&
           (path[3] == '/' || !path[3]);
}

static char *refuse(const char *uri, enum rpc_code code, enum rpc_code *ret_code, struct err *err)
{
    *ret_code = code;
    err_set(err, ERR_INVALID, "'%.150s' is invalid on 'linux'", uri);
    return NULL;
}

/* A URL's "file:etc" is "file:///etc", too (WHATWG URL, file state). */
static char *with_root(const char *rest)
{
    return alloc_strf("file://%s%s", rest[0] == '/' ? "" : "/", rest);
}

char *rpc_path_parse(const char *uri, enum rpc_code *ret_code, struct err *err)
{
    size_t scheme = scheme_len(uri);
    const char *rest = uri + scheme;
    AUTO_FREE char *whole = NULL;
    AUTO_FREE char *path = NULL;
    AUTO_FREE char *clean = NULL;

    *ret_code = RPC_INVALID_PARAMS;
    if (!scheme)
        err_set(err, ERR_INVALID, "invalid URI: relative URL without a base");
    else if (scheme != strlen("file:") || strncasecmp(uri, "file:", scheme) != 0)
        err_set(err, ERR_INVALID, "unsupported path URI scheme `%.*s`", (int)scheme - 1, uri);
    else if (strchr(rest, '?'))
        err_set(err, ERR_INVALID, "query parameters are not allowed in path URIs");
    else if (strchr(rest, '#'))
        err_set(err, ERR_INVALID, "fragments are not allowed in path URIs");
    else if (has_foreign_host(rest))
        return refuse(uri, RPC_INVALID_REQUEST, ret_code, err);
    else
        whole = strncmp(rest, "//", 2) == 0 ? alloc_strf("file:%s", rest) : with_root(rest);
    if (!whole)
        return NULL;
    path = file_uri_parse(whole, err);
    if (!path)
        return refuse(uri, RPC_INVALID_PARAMS, ret_code, err);
    clean = path_clean("/", path);
    if (has_drive(clean))
        return refuse(uri, RPC_INVALID_REQUEST, ret_code, err);
    return TAKE_PTR(clean);
}

json_t *rpc_path_to_json(const char *path)
{
    AUTO_FREE char *uri = file_uri_format(path);

    return json_string(uri);
}
