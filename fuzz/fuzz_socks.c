/* The first byte says whether a greeting or a request follows. What is taken names a host. */
#include "fuzz.h"

#include "proxy/socks.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct socks_request request;
    enum socks_reply reply;
    size_t used = 0;

    if (!size)
        return 0;
    if (data[0] % 2 && socks_read_greeting(data + 1, size - 1, &used) == SOCKS_WHOLE &&
        used > size - 1)
        abort();
    if (data[0] % 2 == 0 &&
        socks_read_request(data + 1, size - 1, &request, &used, &reply) == SOCKS_WHOLE &&
        (used > size - 1 || !*request.host))
        abort();
    return 0;
}
