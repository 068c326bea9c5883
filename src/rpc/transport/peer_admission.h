/* Which processes may connect, unless a token is enough. Internal to rpc.
 *
 *     admission_init(&admission, loop)
 *     admission_ask(&admission, &request, fd)    granted or refused at once, or on_decided comes
 *     admission_withdraw(&request)               before it is freed; in any state
 *     admission_done(&admission)
 */
#pragma once

#include "base/list.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct loop;
struct loop_timer;
struct socket_holders;

enum admission_state {
    ADMISSION_UNASKED,
    ADMISSION_WAITING,   /* for the next search */
    ADMISSION_SEARCHING, /* until the current one ends */
    ADMISSION_GRANTED,
    ADMISSION_REFUSED,
    ADMISSION_BLIND, /* refused: descriptors or memory were missing to look */
};

struct admission {
    struct loop_timer *timer;      /* for the next step */
    struct socket_holders *search; /* NULL: none goes on */
    struct list waiting;           /* of admission_request */
};

/* Zeroed but for the callback: not asked yet. */
struct admission_request {
    enum admission_state state;
    struct list in_waiting;
    uint32_t inode;                 /* of the other end */
    unsigned searches;              /* that were made for it */
    void (*on_decided)(void *data); /* after a wait, from the loop; must free nothing */
    void *data;
};

void admission_init(struct admission *admission, struct loop *loop);
void admission_done(struct admission *admission);

/* Asks for the process at the other end of a TCP connection; `fd` is our end. Once. */
void admission_ask(struct admission *admission, struct admission_request *request, int fd);
void admission_withdraw(struct admission_request *request);

/* Whether the process at the other end of a Unix socket is this user's or root's and not sandboxed.
 * (A peer of another pid namespace has the number 0.) `ret_name` names it for a log. */
bool admission_allows_unix(int fd, char *ret_name, size_t size);
