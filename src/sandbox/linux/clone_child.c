/* See clone_child.h. */
#include "sandbox/linux/clone_child.h"

#include <sched.h>

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

enum { STACK_BYTES = 32 * 1024 };

pid_t clone_child(int (*child)(void *), void *argument, unsigned flags, int *ret_pidfd)
{
    _Alignas(16) char stack[STACK_BYTES];
    pid_t pid = clone(child, stack + sizeof stack, (int)(flags | CLONE_VM | CLONE_VFORK), argument,
                      ret_pidfd);

    /* The child never returned from its frames on our stack, which AddressSanitizer still guards. */
#ifdef CORDON_ASAN
    ASAN_UNPOISON_MEMORY_REGION(stack, sizeof stack);
#endif
    return pid;
}
