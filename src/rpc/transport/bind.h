/* Making listening sockets. Internal to rpc. */
#pragma once

#include "base/err.h"
#include "rpc/transport/address.h"

#include <stdbool.h>
#include <sys/types.h>

/* A socket file that we made, so that only that one is removed. */
struct socket_file {
    char path[RPC_ADDRESS_TEXT_SIZE]; /* empty: none */
    dev_t dev;
    ino_t ino;
};

/* A listening socket of RPC_WS or RPC_UNIX. */
int bind_open(const struct rpc_address *address, struct socket_file *ret_file, struct err *err);

/* What a listening socket that came from outside is bound to. ERR_INVALID for other things. */
int bind_identify(int fd, struct rpc_address *ret, struct err *err);

/* Removes the file when it is still the one that was made. */
void socket_file_remove(const struct socket_file *file);
