/* See clone_child.h. */
#include "sandbox/linux/clone_child.h"

#include <errno.h>
#include <sched.h>
#include <sys/wait.h>

#if defined(__SANITIZE_ADDRESS__)
#define CORDON_ASAN
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CORDON_ASAN
#endif
#endif
#ifdef CORDON_ASAN
#include <sanitizer/asan_interface.h>
#endif

/* The second has to have room in the first, beside what called for it. */
enum { STACK_BYTES = 32 * 1024, STACK_WITHIN_BYTES = 12 * 1024 };

/* The child never returned from its frames on our stack, which AddressSanitizer still guards. */
static void forget_frames(void *stack, size_t bytes)
{
#ifdef CORDON_ASAN
    ASAN_UNPOISON_MEMORY_REGION(stack, bytes);
#endif
}

pid_t clone_child(int (*child)(void *), void *argument, unsigned flags, int *ret_pidfd)
{
    _Alignas(16) char stack[STACK_BYTES];
    pid_t pid = clone(child, stack + sizeof stack, (int)(flags | CLONE_VM | CLONE_VFORK), argument,
                      ret_pidfd);

    forget_frames(stack, sizeof stack);
    return pid;
}

ON_OWN_STACK pid_t clone_grandchild(int (*child)(void *), void *argument, unsigned flags,
                                    int *ret_pidfd)
{
    _Alignas(16) char stack[STACK_WITHIN_BYTES];
    pid_t pid = clone(child, stack + sizeof stack, (int)(flags | CLONE_VM | CLONE_VFORK), argument,
                      ret_pidfd);

    forget_frames(stack, sizeof stack);
    return pid;
}

int clone_child_beside(int (*child)(void *), void *argument, unsigned flags,
                       void (*meanwhile)(void *argument, pid_t child))
{
    _Alignas(16) char stack[STACK_BYTES];
    pid_t pid = clone(child, stack + sizeof stack, (int)(flags | CLONE_VM), argument);

    if (pid < 0)
        return -1;
    meanwhile(argument, pid);
    while (waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
        ;
    forget_frames(stack, sizeof stack);
    return 0;
}
