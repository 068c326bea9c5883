/* Reads a place in the output of a process: "0", "4096", "64K", "-8K", "start", "end". */
#include "base/str.h"
#include "base/units.h"
#include "client/client.h"

int client_from_parse(const char *text, struct client_from *ret, struct err *err)
{
    struct client_from from = {.kind = CLIENT_FROM_BYTE};

    if (str_eq(text, "end")) {
        from.kind = CLIENT_FROM_END;
    } else if (*text == '-') {
        from.kind = CLIENT_FROM_LAST;
        if (units_parse_size(text + 1, &from.bytes, err))
            return -1;
    } else if (!str_eq(text, "start") && units_parse_size(text, &from.bytes, err)) {
        return -1;
    }
    *ret = from;
    return 0;
}
