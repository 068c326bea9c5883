/* Names of layers and their states, as JSON and messages have them. */
#include "sandbox/sandbox.h"

const char *layer_name(enum layer layer)
{
    static const char *const names[LAYER_COUNT] = {
        [LAYER_USER_NAMESPACE] = "user-namespace",
        [LAYER_MOUNT_NAMESPACE] = "mount-namespace",
        [LAYER_PID_NAMESPACE] = "pid-namespace",
        [LAYER_IPC_NAMESPACE] = "ipc-namespace",
        [LAYER_NET_NAMESPACE] = "net-namespace",
        [LAYER_UTS_NAMESPACE] = "uts-namespace",
        [LAYER_CGROUP_NAMESPACE] = "cgroup-namespace",
        [LAYER_LANDLOCK] = "landlock",
        [LAYER_SECCOMP] = "seccomp",
        [LAYER_NO_NEW_PRIVS] = "no-new-privs",
        [LAYER_CAPABILITIES] = "capabilities",
    };

    return names[layer];
}

const char *layer_state_name(enum layer_state state)
{
    static const char *const names[] = {
        [LAYER_ENFORCED] = "enforced",
        [LAYER_PARTIAL] = "partial",
        [LAYER_ABSENT] = "absent",
        [LAYER_NOT_NEEDED] = "not-needed",
    };

    return names[state];
}
