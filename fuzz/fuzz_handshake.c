/* The head with which a server answers a WebSocket handshake: what is believed of it. */
#include "fuzz.h"

#include "rpc/transport/http.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t len = http_head_len((const char *)data, size);
    const struct handshake_secret none = {.token = NULL};
    struct err err;
    char *text;

    if (!len || len > HTTP_HEAD_MAX)
        return 0;
    text = malloc(len); /* no NUL behind it, so that a read beyond the end shows */
    memcpy(text, data, len);
    /* the key of RFC 6455, 1.3; corpus/fuzz_handshake/right has the answer to it */
    if (handshake_check(text, len, "dGhlIHNhbXBsZSBub25jZQ==", &none, &err) &&
        (err.code == ERR_NONE || !*err.msg))
        abort();
    free(text);
    return 0;
}
