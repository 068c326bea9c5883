/* The filters of every architecture and every spec, run by a small interpreter of classic BPF,
 * against a reference that is written from the requirement (by name, with the kernel headers'
 * numbers) and shares nothing with seccomp.c. */
#include "../base/support.h"
#include "call_numbers.h"

#include "base/str.h"
#include "sandbox/linux/seccomp.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

enum { LAST_NUMBER = 600, SPECS = 96, X32_BIT = 0x40000000 };

#define ALLOWED SECCOMP_RET_ALLOW
#define REFUSED (SECCOMP_RET_ERRNO | EPERM)
#define UNKNOWN (SECCOMP_RET_ERRNO | ENOSYS)
#define KILLED SECCOMP_RET_KILL_PROCESS

#define HIGH 0xdeadbeef00000000ull /* what a 64-bit register may hold above a 32-bit argument */

static const uint32_t audit_arch[SECCOMP_ARCH_COUNT] = {
    [SECCOMP_X86_64] = AUDIT_ARCH_X86_64,
    [SECCOMP_AARCH64] = AUDIT_ARCH_AARCH64,
};

static const char *const arch_names[] = {
    [SECCOMP_X86_64] = "x86_64", [SECCOMP_AARCH64] = "aarch64"};

/* -- running a filter */

static uint32_t load_word(const struct seccomp_data *data, uint32_t offset)
{
    uint32_t word;

    assert_true(offset % 4 == 0 && offset + 4 <= sizeof *data);
    memcpy(&word, (const char *)data + offset, sizeof word);
    return word;
}

static bool jump_is_taken(uint16_t code, uint32_t accumulator, uint32_t k)
{
    switch (code) {
    case BPF_JMP | BPF_JEQ | BPF_K:
        return accumulator == k;
    case BPF_JMP | BPF_JGT | BPF_K:
        return accumulator > k;
    case BPF_JMP | BPF_JGE | BPF_K:
        return accumulator >= k;
    case BPF_JMP | BPF_JSET | BPF_K:
        return accumulator & k;
    default:
        fail_msg("instruction %#x is unknown", code);
        return false;
    }
}

static uint32_t filter_run(const struct plan_filter *code, size_t len,
                           const struct seccomp_data *data)
{
    uint32_t accumulator = 0;

    for (size_t at = 0; at < len; at++) {
        const struct plan_filter *step = &code[at];

        if (step->code == (BPF_RET | BPF_K))
            return step->k;
        if (step->code == (BPF_LD | BPF_W | BPF_ABS))
            accumulator = load_word(data, step->k);
        else if (step->code == (BPF_ALU | BPF_AND | BPF_K))
            accumulator &= step->k;
        else
            at += jump_is_taken(step->code, accumulator, step->k) ? step->jt : step->jf;
    }
    fail_msg("the filter of %zu instructions ends without a verdict", len);
    return 0;
}

/* -- the reference */

static const struct call_number *numbers_of(enum seccomp_arch arch)
{
    return arch == SECCOMP_X86_64 ? call_numbers_x86_64 : call_numbers_aarch64;
}

static const char *call_name(enum seccomp_arch arch, int nr)
{
    for (const struct call_number *number = numbers_of(arch); number->name; number++)
        if (number->nr == nr)
            return number->name;
    return "";
}

static bool has_call(enum seccomp_arch arch, const char *name)
{
    for (const struct call_number *number = numbers_of(arch); number->name; number++)
        if (str_eq(number->name, name))
            return true;
    return false;
}

static int call_nr(enum seccomp_arch arch, const char *name)
{
    for (const struct call_number *number = numbers_of(arch); number->name; number++)
        if (str_eq(number->name, name))
            return number->nr;
    fail_msg("%s has no %s", arch_names[arch], name);
    return -1;
}

static bool is_among(const char *name, const char *const *names)
{
    while (*names && !str_eq(*names, name))
        names++;
    return *names;
}

/* What no command may ask for. */
static const char *const never[] = {
    "acct",
    "add_key",
    "bpf",
    "delete_module",
    "finit_module",
    "init_module",
    "io_uring_enter",
    "io_uring_register",
    "io_uring_setup",
    "keyctl",
    "kexec_file_load",
    "kexec_load",
    "perf_event_open",
    "open_by_handle_at",
    "quotactl",
    "quotactl_fd",
    "reboot",
    "request_key",
    "swapoff",
    "swapon",
    "userfaultfd",
    NULL,
};

/* What namespaces of the command's own are made of. */
static const char *const nesting[] = {
    "fsconfig",   "fsmount",        "fsopen",    "fspick",     "mount", "mount_setattr",
    "move_mount", "open_tree_attr", "open_tree", "pivot_root", "setns", "umount2",
    NULL,
};

/* What reaches into other processes, which are the host's when there is no pid namespace. */
static const char *const reaching[] = {
    "ioprio_set",        "kcmp",
    "migrate_pages",     "move_pages",
    "pidfd_getfd",       "process_madvise",
    "process_mrelease",  "process_vm_readv",
    "process_vm_writev", "ptrace",
    "sched_setaffinity", "sched_setattr",
    "sched_setparam",    "sched_setscheduler",
    "setpriority",       NULL,
};

/* IPC by numbers and names that are the host's when there is no ipc namespace. */
static const char *const ipc[] = {
    "mq_open", "mq_unlink", "msgctl",     "msgget", "msgrcv", "msgsnd", "semctl",
    "semget",  "semop",     "semtimedop", "shmat",  "shmctl", "shmget", NULL,
};

/* What Landlock has no right for, so that only a read-only mount refuses it. */
static const char *const attributes[] = {
    "chmod",         "chown",    "fchmod",       "fchmodat",     "fchmodat2",
    "fchown",        "fchownat", "file_setattr", "fremovexattr", "fsetxattr",
    "futimesat",     "lchown",   "lremovexattr", "lsetxattr",    "removexattr",
    "removexattrat", "setxattr", "setxattrat",   "utime",        "utimensat",
    "utimes",        NULL,
};

static uint32_t refuse_if(bool condition)
{
    return condition ? REFUSED : ALLOWED;
}

static bool has_namespace_flag(uint32_t flags, bool has_exit_signal)
{
    const uint32_t namespaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |
                                CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;

    return flags & (has_exit_signal ? namespaces : namespaces | CLONE_NEWTIME);
}

static bool is_refused_ioctl(const struct seccomp_spec *spec, uint32_t request)
{
    if (request == TIOCSTI || request == TIOCLINUX)
        return true;
    return !spec->has_mount_namespace &&
           (request == 0x40086602 || request == 0x40046602 || request == 0x401c5820);
}

static bool is_allowed_socket(const struct seccomp_spec *spec, uint32_t family, uint32_t protocol)
{
    if (spec->sockets == SECCOMP_SOCKETS_NONE)
        return false;
    if (family == AF_UNIX)
        return spec->sockets == SECCOMP_SOCKETS_UNIX;
    return family == AF_INET || family == AF_INET6 ||
           (family == AF_NETLINK && protocol == NETLINK_ROUTE);
}

/* Every end of a pair but those of streams can be pointed at a socket that has a path; SOCK_RAW is
 * another word for SOCK_DGRAM there (unix_create() of net/unix/af_unix.c). */
static bool is_allowed_pair(const struct seccomp_spec *spec, uint32_t family, uint32_t type)
{
    type &= 0xf;
    if (family != AF_UNIX)
        return false;
    return spec->sockets == SECCOMP_SOCKETS_UNIX || type == SOCK_STREAM || type == SOCK_SEQPACKET;
}

/* A set-user-id file; for root a set-group-id one, too. */
static bool makes_set_id(const struct seccomp_spec *spec, const char *name, const uint32_t *args)
{
    static const struct {
        const char *name;
        int flags; /* argument, -1: a file is always made or changed */
        int mode;
    } calls[] = {
        {"chmod", -1, 1},     {"fchmod", -1, 1},  {"creat", -1, 1},
        {"mknod", -1, 1},     {"mknodat", -1, 2}, {"fchmodat", -1, 2},
        {"fchmodat2", -1, 2}, {"open", 1, 2},     {"openat", 2, 3},
    };

    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (str_eq(name, calls[i].name))
            return (calls[i].flags < 0 || (args[calls[i].flags] & (O_CREAT | 020000000))) &&
                   (args[calls[i].mode] & (spec->is_root ? 06000 : 04000));
    return false;
}

static uint32_t expected(const struct seccomp_spec *spec, const struct seccomp_data *data)
{
    const char *name = call_name(spec->arch, data->nr);
    uint32_t args[4] = {(uint32_t)data->args[0], (uint32_t)data->args[1], (uint32_t)data->args[2],
                        (uint32_t)data->args[3]};

    if (data->arch != audit_arch[spec->arch])
        return KILLED;
    if (spec->arch == SECCOMP_X86_64 && (uint32_t)data->nr >= X32_BIT && data->nr != -1)
        return KILLED; /* -1 is what a tracer writes to have a call skipped */
    if (is_among(name, never))
        return REFUSED;
    if (is_among(name, nesting))
        return refuse_if(!spec->allow_nested_namespaces);
    if (is_among(name, reaching))
        return refuse_if(!spec->has_pid_namespace);
    if (makes_set_id(spec, name, args))
        return REFUSED;
    if (is_among(name, attributes))
        return refuse_if(!spec->has_mount_namespace);
    if (is_among(name, ipc))
        return refuse_if(!spec->has_ipc_namespace);
    if (str_eq(name, "openat2"))
        return UNKNOWN; /* its mode is behind a pointer */
    if (str_eq(name, "clone3"))
        return spec->allow_nested_namespaces ? ALLOWED : UNKNOWN;
    if (str_eq(name, "clone") || str_eq(name, "unshare"))
        return refuse_if(!spec->allow_nested_namespaces &&
                         has_namespace_flag(args[0], str_eq(name, "clone")));
    if (str_eq(name, "prlimit64"))
        return refuse_if(!spec->has_pid_namespace && args[0] != 0);
    if (str_eq(name, "ioctl"))
        return refuse_if(is_refused_ioctl(spec, args[1]));
    if (str_eq(name, "socket"))
        return refuse_if(!is_allowed_socket(spec, args[0], args[2]));
    if (str_eq(name, "socketpair"))
        return refuse_if(!is_allowed_pair(spec, args[0], args[1]));
    return ALLOWED;
}

/* -- specs */

/* The variant of a command with all namespaces and a restricted network. */
enum { SANDBOXED = 16 * SECCOMP_SOCKETS_INTERNET + 4 + 2 + 1 };

static struct seccomp_spec spec_make(enum seccomp_arch arch, unsigned variant)
{
    return (struct seccomp_spec){
        .arch = arch,
        .sockets = (enum seccomp_sockets)(variant / 16 % 3),
        .is_root = variant / 48,
        .has_pid_namespace = variant & 1,
        .has_mount_namespace = variant & 2,
        .has_ipc_namespace = variant & 4,
        .allow_nested_namespaces = variant & 8,
    };
}

struct filter {
    struct seccomp_spec spec;
    struct plan_filter code[SECCOMP_MAX];
    size_t len;
};

static void filter_init(struct filter *ret, enum seccomp_arch arch, unsigned variant)
{
    ret->spec = spec_make(arch, variant);
    ret->len = seccomp_compile(&ret->spec, ret->code);
    assert_in_range(ret->len, 1, SECCOMP_MAX);
}

/* Calls `check` for every architecture whose numbers are known here, and every spec. */
static void each_filter(void (*check)(const struct filter *))
{
    for (int arch = 0; arch < SECCOMP_ARCH_COUNT; arch++) {
        for (unsigned variant = 0; variant < SPECS && numbers_of(arch)->name; variant++) {
            struct filter filter;

            filter_init(&filter, (enum seccomp_arch)arch, variant);
            check(&filter);
        }
    }
}

static void check_call(const struct filter *filter, const struct seccomp_data *data)
{
    uint32_t verdict = filter_run(filter->code, filter->len, data);
    uint32_t wanted = expected(&filter->spec, data);

    if (verdict == wanted)
        return;
    fail_msg("%s, sockets %d, pid namespace %d, mount namespace %d, ipc namespace %d, nesting %d: "
             "call %d %s(%#llx, "
             "%#llx, %#llx) of %#x: verdict %#x, not %#x",
             arch_names[filter->spec.arch], filter->spec.sockets, filter->spec.has_pid_namespace,
             filter->spec.has_mount_namespace, filter->spec.has_ipc_namespace,
             filter->spec.allow_nested_namespaces, data->nr, call_name(filter->spec.arch, data->nr),
             (unsigned long long)data->args[0], (unsigned long long)data->args[1],
             (unsigned long long)data->args[2], data->arch, verdict, wanted);
}

/* -- tests */

/* Arguments that some call looks at, in every position; each is tried as it is and with garbage in
 * the upper half. */
static const uint32_t words[] = {
    0,
    1,
    2,
    3,
    5,
    AF_INET6,
    AF_PACKET,
    AF_NETLINK,
    AF_VSOCK,
    AF_ALG,
    SOCK_STREAM | SOCK_CLOEXEC,
    SIGCHLD,
    SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
    SOCK_RAW | SOCK_CLOEXEC,
    0x7fffffff,
    SOCK_SEQPACKET | SOCK_NONBLOCK,
    TIOCSTI,
    TIOCLINUX,
    TIOCGWINSZ,
    TIOCSTI - 1,
    TIOCSTI + 1,
    TIOCLINUX - 1,
    TIOCLINUX + 1,
    0x40086602,
    0x40046602,
    0x401c5820,
    0x80086601,
    CLONE_NEWNS,
    CLONE_NEWCGROUP,
    CLONE_NEWUTS,
    CLONE_NEWIPC,
    CLONE_NEWUSER,
    CLONE_NEWPID,
    CLONE_NEWNET,
    CLONE_NEWTIME,
    CLONE_NEWUSER | SIGCHLD,
    0xffffffff,
    CLONE_VM | CLONE_VFORK | SIGCHLD,
    0x003d0f00 /* flags of pthread_create(3) */,
};

enum { WORDS = sizeof words / sizeof *words };

static void check_every_number(const struct filter *filter)
{
    for (int nr = 0; nr <= LAST_NUMBER; nr++) {
        for (size_t i = 0; i < WORDS; i++) {
            for (int high = 0; high < 2; high++) {
                uint64_t word = words[i] | (high ? HIGH : 0);
                struct seccomp_data data = {
                    .nr = nr, .arch = audit_arch[filter->spec.arch], .args = {word, word, word}};

                check_call(filter, &data);
            }
        }
    }
}

static void test_every_number(void **state)
{
    each_filter(check_every_number);
}

static void check_socket_arguments(const struct filter *filter)
{
    int nr = call_nr(filter->spec.arch, "socket");

    for (unsigned family = 0; family < 48; family++) {
        for (unsigned protocol = 0; protocol < 32; protocol++) {
            for (int high = 0; high < 2; high++) {
                uint64_t garbage = high ? HIGH : 0;
                struct seccomp_data data = {
                    .nr = nr,
                    .arch = audit_arch[filter->spec.arch],
                    .args = {family | garbage, SOCK_STREAM | garbage, protocol | garbage}};

                check_call(filter, &data);
            }
        }
    }
}

static void test_socket_families(void **state)
{
    each_filter(check_socket_arguments);
}

static void check_pair_arguments(const struct filter *filter)
{
    for (unsigned family = 0; family < 48; family++) {
        for (unsigned type = 0; type < 16; type++) {
            struct seccomp_data data = {.nr = call_nr(filter->spec.arch, "socketpair"),
                                        .arch = audit_arch[filter->spec.arch],
                                        .args = {family | HIGH, type | SOCK_CLOEXEC | HIGH, HIGH}};

            check_call(filter, &data);
            data.args[1] = type;
            check_call(filter, &data);
        }
    }
}

static void test_socket_pairs(void **state)
{
    each_filter(check_pair_arguments);
}

static void check_flag_bits(const struct filter *filter)
{
    for (int bit = 0; bit < 64; bit++) {
        for (int is_clone = 0; is_clone < 2; is_clone++) {
            struct seccomp_data data = {
                .nr = call_nr(filter->spec.arch, is_clone ? "clone" : "unshare"),
                .arch = audit_arch[filter->spec.arch],
                .args = {1ull << bit}};

            check_call(filter, &data);
        }
    }
}

static void test_every_clone_flag(void **state)
{
    each_filter(check_flag_bits);
}

static void check_foreign(const struct filter *filter)
{
    static const uint32_t foreign[] = {AUDIT_ARCH_I386,   AUDIT_ARCH_ARM,     AUDIT_ARCH_ARMEB,
                                       AUDIT_ARCH_X86_64, AUDIT_ARCH_AARCH64, 0,
                                       0xffffffff};

    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
        for (int nr = -1; nr <= LAST_NUMBER; nr++) {
            struct seccomp_data data = {.nr = nr, .arch = foreign[i]};

            check_call(filter, &data);
        }
    }
}

static void test_foreign_architectures_are_killed(void **state)
{
    each_filter(check_foreign);
}

static void check_x32(const struct filter *filter)
{
    static const uint32_t edges[] = {X32_BIT - 1, X32_BIT,    X32_BIT + 1, 0x7fffffff,
                                     0x80000000,  0xfffffffe, 0xffffffff};
    struct seccomp_data data = {.arch = audit_arch[filter->spec.arch]};

    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++) {
        data.nr = (int)edges[i];
        check_call(filter, &data);
    }
    for (uint32_t nr = 0; nr <= LAST_NUMBER; nr++) {
        data.nr = (int)(X32_BIT | nr);
        check_call(filter, &data);
    }
}

static void test_x32_is_killed(void **state)
{
    each_filter(check_x32);
}

/* The reference itself: the calls next to a refused one are another matter. Found by hand in the
 * kernel's tables, so that a slip in the lists above does not go unseen. */
static void test_neighbours(void **state)
{
    static const struct {
        int nr;
        uint32_t wanted;
    } cases[] = {
        {100, ALLOWED}, {101, ALLOWED}, {102, ALLOWED},                 /* times, ptrace, getuid */
        {164, ALLOWED}, {165, REFUSED}, {166, REFUSED}, {167, REFUSED}, /* settimeofday, mount */
        {170, ALLOWED},                                                 /* sethostname */
        {247, ALLOWED}, {248, REFUSED}, {250, REFUSED}, {251, ALLOWED}, /* waitid, add_key */
        {297, ALLOWED}, {298, REFUSED}, {299, ALLOWED}, /* perf_event_open, recvmmsg */
        {303, ALLOWED}, {304, REFUSED}, {305, ALLOWED}, /* name_to_handle_at, clock_adjtime */
        {307, ALLOWED}, {308, REFUSED}, {309, ALLOWED}, /* sendmmsg, setns, getcpu */
        {424, ALLOWED}, {425, REFUSED}, {427, REFUSED}, /* pidfd_send_signal, io_uring */
        {428, REFUSED}, {433, REFUSED}, {434, ALLOWED}, /* open_tree, fspick, pidfd_open */
        {435, UNKNOWN}, {436, ALLOWED}, {437, UNKNOWN}, /* clone3, close_range, openat2 */
        {441, ALLOWED}, {442, REFUSED}, {443, REFUSED}, {444, ALLOWED}, /* mount_setattr */
    };
    struct filter filter;

    filter_init(&filter, SECCOMP_X86_64, SANDBOXED);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct seccomp_data data = {.nr = cases[i].nr, .arch = AUDIT_ARCH_X86_64};

        assert_int_equal(filter_run(filter.code, filter.len, &data), cases[i].wanted);
    }
}

/* What the kernel checks when it loads a filter (bpf_check_classic()), and that no target is ever
 * behind the end. */
static void check_shape(const struct filter *filter)
{
    for (size_t at = 0; at < filter->len; at++) {
        const struct plan_filter *step = &filter->code[at];
        bool is_jump = BPF_CLASS(step->code) == BPF_JMP;

        if (is_jump) {
            assert_true(at + 1 + step->jt < filter->len);
            assert_true(at + 1 + step->jf < filter->len);
        } else {
            assert_int_equal(step->jt, 0);
            assert_int_equal(step->jf, 0);
        }
    }
    assert_int_equal(filter->code[filter->len - 1].code, BPF_RET | BPF_K);
    assert_int_equal(filter->code[0].code, BPF_LD | BPF_W | BPF_ABS);
    assert_int_equal(filter->code[0].k, offsetof(struct seccomp_data, arch));
}

static void test_shape(void **state)
{
    each_filter(check_shape);
}

static void test_native_architecture(void **state)
{
#if defined(__x86_64__)
    assert_int_equal(seccomp_native(), SECCOMP_X86_64);
#elif defined(__aarch64__)
    assert_int_equal(seccomp_native(), SECCOMP_AARCH64);
#endif
    assert_non_null(numbers_of(seccomp_native())->name);
}

/* The same input gives the same program: sandboxes of one profile share it. */
static void check_repeatable(const struct filter *filter)
{
    struct plan_filter again[SECCOMP_MAX];

    assert_int_equal(seccomp_compile(&filter->spec, again), filter->len);
    assert_memory_equal(again, filter->code, filter->len * sizeof *again);
}

static void test_repeatable(void **state)
{
    each_filter(check_repeatable);
}

static void check_set_id(const struct filter *filter)
{
    static const uint64_t values[] = {
        0, 0644, 01777, 02755, 04755, 06755, O_CREAT, O_CREAT | 1, O_CREAT | O_RDWR, 0x401000};
    static const char *const names[] = {"chmod",    "fchmod",    "creat", "mknod",  "mknodat",
                                        "fchmodat", "fchmodat2", "open",  "openat", "openat2"};
    const size_t count = sizeof values / sizeof *values;

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        for (size_t j = 0; j < count * count * count; j++) {
            struct seccomp_data data = {
                .arch = audit_arch[filter->spec.arch],
                .args = {HIGH, HIGH | values[j % count], HIGH | values[j / count % count],
                         HIGH | values[j / count / count]},
            };

            if (!has_call(filter->spec.arch, names[i]))
                continue;
            data.nr = call_nr(filter->spec.arch, names[i]);
            check_call(filter, &data);
        }
    }
}

static void test_set_id_files(void **state)
{
    each_filter(check_set_id);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_native_architecture),
        cmocka_unit_test(test_shape),
        cmocka_unit_test(test_repeatable),
        cmocka_unit_test(test_every_number),
        cmocka_unit_test(test_set_id_files),
        cmocka_unit_test(test_socket_families),
        cmocka_unit_test(test_socket_pairs),
        cmocka_unit_test(test_every_clone_flag),
        cmocka_unit_test(test_foreign_architectures_are_killed),
        cmocka_unit_test(test_x32_is_killed),
        cmocka_unit_test(test_neighbours),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
