/* Restrictions that need no mount.
 *
 * Landlock and seccomp are put on in the command's process, after the fork: the init stays outside
 * of the command's Landlock domain, so that the signal scope and the ptrace rule of Landlock
 * protect it from the command. Capabilities go in the init already; it needs none to wait.
 */
#include "sandbox/launcher/restrict.h"

#include "base/auto.h"
#include "base/pass.h"
#include "guard/guard_format.h"
#include "sandbox/launcher/kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

int restrict_loopback(struct err *err)
{
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    AUTO_CLOSE int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request))
        return err_sys(err, "bringing the loopback device up");
    return 0;
}

/* A filter around us that refuses it (a container's, or another sandbox's) refuses every use of keys to
 * the command, too. */
int restrict_keyring(struct err *err)
{
    if (syscall(SYS_keyctl, K_KEYCTL_JOIN_SESSION_KEYRING, NULL, 0, 0, 0) < 0 && errno != ENOSYS &&
        errno != EPERM)
        return err_sys(err, "making a session keyring");
    return 0;
}

/* Without CAP_SETPCAP (an ordinary user without namespaces) the bounding set stays, which does not
 * matter under no_new_privs and with the other sets empty. */
static int drop_bounding(struct err *err)
{
    struct k_cap_header header = {.version = K_CAPABILITY_VERSION_3};
    struct k_cap_data now[2] = {0};

    if (syscall(SYS_capget, &header, now) || !(now[0].effective & (1u << K_CAP_SETPCAP)))
        return 0;
    for (int cap = 0; cap <= K_CAP_LAST; cap++) {
        if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) == 0)
            continue;
        if (errno == EINVAL) /* past the last capability of this kernel */
            break;
        return err_sys(err, "dropping capability %d from the bounding set", cap);
    }
    return 0;
}

int restrict_drop(struct err *err)
{
    struct k_cap_header header = {.version = K_CAPABILITY_VERSION_3};
    struct k_cap_data none[2] = {0};

    if (drop_bounding(err))
        return -1;
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0))
        return err_sys(err, "clearing the ambient capabilities");
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        return err_sys(err, "setting no_new_privs");
    if (syscall(SYS_capset, &header, none))
        return err_sys(err, "dropping the capabilities");
    return 0;
}

static int landlock_allow(int ruleset, const char *path, const struct plan_record *record,
                          struct err *err)
{
    const int only = record->flags & PLAN_FLAG_DIRECTORY ? O_DIRECTORY | O_NOFOLLOW
                     : record->flags & PLAN_FLAG_FILE    ? O_NOFOLLOW
                                                         : 0;
    struct k_landlock_path_beneath rule = {.allowed_access = record->value};
    AUTO_CLOSE int fd = open(path, O_PATH | O_CLOEXEC | only);

    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == EACCES || errno == ELOOP))
        return 0;
    rule.parent_fd = fd;
    if (fd < 0 || syscall(K_SYS_LANDLOCK_ADD_RULE, ruleset, K_LANDLOCK_RULE_PATH_BENEATH, &rule, 0))
        return err_sys(err, "adding the Landlock rule for %s", path);
    return 0;
}

/* The ruleset record and all its rules, which follow it. */
static int restrict_landlock(const struct plan_view *plan, uint32_t at, struct err *err)
{
    const struct k_landlock_ruleset_attr attr = {
        .handled_access_fs = plan->records[at].value,
        .handled_access_net = plan->records[at].other,
        .scoped = plan->records[at].flags,
    };
    /* Older kernels want the shorter struct when the fields they do not know are zero. */
    const size_t size = attr.scoped ? sizeof attr : attr.handled_access_net ? 16 : 8;
    AUTO_CLOSE int ruleset = (int)syscall(K_SYS_LANDLOCK_CREATE_RULESET, &attr, size, 0);

    if (ruleset < 0)
        return err_sys(err, "making the Landlock ruleset");
    for (at++; at < plan->header->records && plan->records[at].op == PLAN_LANDLOCK_RULE; at++) {
        const struct plan_record *rule = &plan->records[at];

        if (landlock_allow(ruleset, plan_string(plan, rule->path), rule, err))
            return -1;
    }
    if (syscall(K_SYS_LANDLOCK_RESTRICT_SELF, ruleset, 0))
        return err_sys(err, "entering the Landlock domain");
    return 0;
}

/* Lower than it is, never higher. */
static int restrict_limit(const struct plan_record *record, struct err *err)
{
    struct rlimit limit;

    if (getrlimit((int)record->other, &limit))
        return err_sys(err, "reading resource limit %u", record->other);
    if (limit.rlim_cur > record->value)
        limit.rlim_cur = record->value;
    if (limit.rlim_max > record->value) /* SIGXCPU first, a second before SIGKILL */
        limit.rlim_max = record->value + (record->other == RLIMIT_CPU);
    if (setrlimit((int)record->other, &limit))
        return err_sys(err, "setting resource limit %u", record->other);
    return 0;
}

/* Another guard may ask about our calls: that of a sandbox around this one, which neither Landlock nor filters of ours hold. It
 * gets our map, if we have one for it (the channel is that then), or does nothing more for us. */
static int tell_guard_around(int map, struct err *err)
{
    if (syscall(SYS_mkdirat, map, NULL, GUARD_NESTED_MODE) == 0 || (map < 0 && errno != EPERM))
        return 0;
    return err_sys(err, "telling the guard around this sandbox what may be written");
}

/* From the moment it is loaded nothing may be called that the filter asks about: nobody answers
 * before the guard has the listener. */
static int restrict_seccomp(const struct plan_view *plan, bool has_listener, int channel,
                            struct err *err)
{
    const struct {
        unsigned short len;
        const struct plan_filter *filter;
    } program = {(unsigned short)plan->header->filters, plan->filters};
    const unsigned flags =
        has_listener ? K_SECCOMP_FILTER_NEW_LISTENER | K_SECCOMP_FILTER_WAIT_KILLABLE_RECV : 0;
    const struct guard_order order = {.magic = GUARD_MAGIC, .kind = GUARD_ORDER_LISTENER};
    long listener;

    if (has_listener && channel < 0)
        return err_set(err, ERR_INVALID, "the plan's filter has nobody to ask");
    listener = syscall(SYS_seccomp, K_SECCOMP_SET_MODE_FILTER, flags, &program);
    if (listener < 0)
        return err_sys(err, "loading the seccomp filter");
    if (!has_listener)
        return tell_guard_around(channel, err);
    if (pass_send(channel, &order, sizeof order, &(int){(int)listener}, 1))
        return err_sys(err, "sending the filter's listener to the guard");
    close((int)listener);
    close(channel);
    return 0;
}

int restrict_command(const struct plan_view *plan, int channel, uint32_t *ret_op, struct err *err)
{
    const struct plan_record *descriptors = NULL;

    for (uint32_t i = 0; i < plan->header->records; i++) {
        const struct plan_record *record = &plan->records[i];

        *ret_op = record->op;
        if (record->op == PLAN_LIMIT && record->other == RLIMIT_NOFILE)
            descriptors = record;
        else if (record->op == PLAN_LIMIT && restrict_limit(record, err))
            return -1;
        if (record->op == PLAN_LANDLOCK && restrict_landlock(plan, i, err))
            return -1;
        if (record->op == PLAN_SECCOMP &&
            restrict_seccomp(plan, record->flags & PLAN_FLAG_LISTENER, channel, err))
            return -1;
    }
    if (!descriptors)
        return 0;
    /* Last: all that the user's processes have on its way through sockets counts against it where something
     * is sent (unix(7), ETOOMANYREFS), and the listener is. */
    *ret_op = descriptors->op;
    return restrict_limit(descriptors, err);
}
