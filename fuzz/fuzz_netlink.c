/* The launcher's reader of netlink answers: whatever comes, a verdict, with an errno exactly when it failed. The first four
 * bytes are the number of the last message. */
#include "fuzz.h"

#include "sandbox/launcher/netlink.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint32_t last;
    enum netlink_state state;
    int error = -1;

    if (size < sizeof last)
        return 0;
    memcpy(&last, data, sizeof last);
    state = netlink_read(data + sizeof last, size - sizeof last, last, &error);
    if ((state == NETLINK_FAILED) != (error != 0) || error < 0)
        abort();
    return 0;
}
