/* io_uring: work that is handed to the kernel by shared memory passes no filter on system calls.
 * A minimal ring, one request at a time. */
#include "attack.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

struct ring {
    int fd;
    unsigned char *sq;
    unsigned char *cq;
    struct io_uring_sqe *entries;
    struct io_uring_params params;
};

static int ring_init(struct ring *ring)
{
    memset(ring, 0, sizeof *ring);
    struct io_uring_params *p = &ring->params;
    ring->fd = (int)syscall(SYS_io_uring_setup, 4, p);
    if (ring->fd < 0)
        return -1;
    const int prot = PROT_READ | PROT_WRITE;
    size_t sq_size = p->sq_off.array + p->sq_entries * sizeof(unsigned);
    size_t cq_size = p->cq_off.cqes + p->cq_entries * sizeof(struct io_uring_cqe);
    ring->sq = mmap(NULL, sq_size, prot, MAP_SHARED, ring->fd, IORING_OFF_SQ_RING);
    ring->cq = mmap(NULL, cq_size, prot, MAP_SHARED, ring->fd, IORING_OFF_CQ_RING);
    ring->entries = mmap(NULL, p->sq_entries * sizeof(struct io_uring_sqe), prot, MAP_SHARED,
                         ring->fd, IORING_OFF_SQES);
    return ring->sq == MAP_FAILED || ring->cq == MAP_FAILED || ring->entries == MAP_FAILED ? -1 : 0;
}

/* Result of one request, with errno set when it is negative. */
static int ring_do(struct ring *ring, const struct io_uring_sqe *entry)
{
    unsigned *tail = (unsigned *)(void *)(ring->sq + ring->params.sq_off.tail);
    unsigned mask = *(unsigned *)(void *)(ring->sq + ring->params.sq_off.ring_mask);
    unsigned slot = *tail & mask;
    ring->entries[slot] = *entry;
    ((unsigned *)(void *)(ring->sq + ring->params.sq_off.array))[slot] = slot;
    __atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
    if (syscall(SYS_io_uring_enter, ring->fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) < 0)
        return -1;
    unsigned *head = (unsigned *)(void *)(ring->cq + ring->params.cq_off.head);
    unsigned cq_mask = *(unsigned *)(void *)(ring->cq + ring->params.cq_off.ring_mask);
    struct io_uring_cqe *done =
        (struct io_uring_cqe *)(void *)(ring->cq + ring->params.cq_off.cqes);
    int result = done[*head & cq_mask].res;
    __atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
    if (result < 0)
        errno = -result;
    return result;
}

static int run_ring_write(int argc, char **argv)
{
    (void)argc;
    struct ring ring;
    if (ring_init(&ring) < 0)
        return lost("io_uring_setup");
    int fd = ring_do(&ring, &(struct io_uring_sqe){.opcode = IORING_OP_OPENAT,
                                                   .fd = AT_FDCWD,
                                                   .addr = (uintptr_t)argv[0],
                                                   .open_flags = O_WRONLY | O_TRUNC});
    return fd < 0 ? lost("open by io_uring") : judge(write(fd, "owned", 5), "write");
}

static int run_ring_unix(int argc, char **argv)
{
    (void)argc;
    struct ring ring;
    if (ring_init(&ring) < 0)
        return lost("io_uring_setup");
    int fd = ring_do(&ring, &(struct io_uring_sqe){
                                .opcode = IORING_OP_SOCKET, .fd = AF_UNIX, .off = SOCK_STREAM});
    if (fd < 0)
        return lost("socket by io_uring");
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    snprintf(to.sun_path, sizeof to.sun_path, "%s", argv[0]);
    if (ring_do(&ring, &(struct io_uring_sqe){.opcode = IORING_OP_CONNECT,
                                              .fd = fd,
                                              .addr = (uintptr_t)&to,
                                              .off = sizeof to}) < 0)
        return lost("connect by io_uring");
    return judge(write(fd, "attack", 6), "write");
}

static int run_ring_setup(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    struct ring ring;
    return judge(ring_init(&ring), "io_uring_setup");
}

const struct attack ring_attacks[] = {
    {"ring-write", 1, run_ring_write},
    {"ring-unix", 1, run_ring_unix},
    {"ring-setup", 0, run_ring_setup},
    {NULL, 0, NULL},
};
