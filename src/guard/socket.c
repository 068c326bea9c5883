/* See socket.h. */
#include "guard/socket.h"

#include <errno.h>

struct answer socket_call(const struct request *request)
{
    return answer_error(request->call->kind == CALL_SOCKET ? EPERM : EACCES);
}
