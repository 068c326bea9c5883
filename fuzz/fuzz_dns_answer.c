/* What a server of DNS answers by TCP. The first byte says about which kind of address. Of what is shorter no more is taken. */
#include "fuzz.h"

#include "base/auto.h"
#include "loop/dns_stream.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t addresses[DNS_STREAM_ADDRESSES_MAX * 16], fewer[DNS_STREAM_ADDRESSES_MAX * 16];
    AUTO_FREE uint8_t *message = NULL;
    enum dns_stream_type type;
    int count;

    if (size < 2)
        return 0;
    type = data[0] % 2 ? DNS_STREAM_AAAA : DNS_STREAM_A;
    message = malloc(size - 1); /* exactly, so that reading beyond shows */
    if (!message)
        abort();
    memcpy(message, data + 1, size - 1);
    count = dns_stream_read(message, size - 1, 7, type, addresses);
    if (count > DNS_STREAM_ADDRESSES_MAX ||
        dns_stream_read(message, size - 2, 7, type, fewer) > (count < 0 ? 0 : count))
        abort();
    return 0;
}
