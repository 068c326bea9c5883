/* What a server lets its clients have. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define SERVER_PROCESSES_MAX 4096 /* live ones, of all sessions, unless asked otherwise */
#define SERVER_PROCESSES_LIMIT 1000000

#define SERVER_APPROVAL_NS UINT64_C(3600000000000) /* an hour: the person may be at lunch */

struct server_limits {
    uint64_t connections; /* 0: the default of rpc.h */
    size_t processes;     /* 0: SERVER_PROCESSES_MAX */
    uint64_t lifetime_ns; /* of a session without a connection; 0: until nothing runs in it */
    uint64_t drain_ns;    /* how long commands may go on after SIGTERM; 0: not at all */
    uint64_t spool_quota; /* bytes on disk that one process may ask for */
    uint64_t approval_ns; /* how long a question may stay open; 0: SERVER_APPROVAL_NS */
};
