/* Whatever a client says first: the name in it, if there is one, is visible ASCII; and what is whole stays the same when more
 * comes. */
#include "fuzz.h"

#include "proxy/tls_hello.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tls_hello hello, shorter;

    if (tls_hello_read(data, size, &hello) != TLS_WHOLE)
        return 0;
    for (const char *c = hello.name; *c; c++)
        if (*c <= ' ' || *c >= 0x7f)
            abort();
    if (tls_hello_read(data, size - 1, &shorter) == TLS_WHOLE &&
        strcmp(shorter.name, hello.name) != 0)
        abort();
    return 0;
}
