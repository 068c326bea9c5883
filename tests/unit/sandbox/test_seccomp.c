/* The filters of every architecture and every spec, run by a small interpreter of classic BPF
 * (bpf.c), against a reference that is written from the requirement (seccomp_reference.c). */
#include "../base/sanitized.h"
#include "../base/support.h"
#include "bpf.h"
#include "seccomp_reference.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

enum { SPECS = 128 * 32 };

#define HIGH 0xdeadbeef00000000ull /* what a 64-bit register may hold above a 32-bit argument */

/* -- specs */

/* The variant of a command with all namespaces and a restricted network. */
enum { SANDBOXED = 16 * SECCOMP_SOCKETS_INTERNET + 4 + 2 + 1 };

static struct seccomp_spec spec_make(enum seccomp_arch arch, unsigned variant)
{
    return (struct seccomp_spec){
        .arch = arch,
        .sockets = (enum seccomp_sockets)(variant / 16 % 4),
        .is_root = variant / 64 % 2,
        .has_pid_namespace = variant & 1,
        .has_mount_namespace = variant & 2,
        .has_ipc_namespace = variant & 4,
        .allow_nested_namespaces = variant & 8,
        .asks_names = variant / 128 & 1,
        .asks_facts = variant / 128 & 2,
        .asks_signals = (variant / 128 & 2) && !(variant & 1),
        .asks_reads = (variant / 128 & 18) == 18,
        .asks_descriptors = (variant / 128 & 10) == 10,
        .performs = (variant / 128 & 11) == 11 && !(variant & 2),
        .asks_exec = variant / 128 & 8,
        .asks_sockets = (variant / 128 & 4) && (variant / 16 % 4 == SECCOMP_SOCKETS_INTERNET ||
                                                variant / 16 % 4 == SECCOMP_SOCKETS_SHARED),
        .asks_datagrams = (variant / 128 & 6) == 6 && variant / 16 % 4 == SECCOMP_SOCKETS_INTERNET,
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
        for (unsigned variant = 0; variant < SPECS && reference_has((enum seccomp_arch)arch);
             variant++) {
            struct filter filter;

            if (variant >= (SANITIZED ? 16 : 128) && variant % 37) /* some of each kind */
                continue;
            filter_init(&filter, (enum seccomp_arch)arch, variant);
            check(&filter);
        }
    }
}

static void check_call(const struct filter *filter, const struct seccomp_data *data)
{
    uint32_t verdict = bpf_run(filter->code, filter->len, data);
    uint32_t wanted = reference_verdict(&filter->spec, data);

    if (verdict == wanted)
        return;
    fail_msg("%s, root %d, sockets %d, pid namespace %d, mount namespace %d, ipc namespace %d, "
             "nesting %d, asks about names %d, facts %d, sockets %d: "
             "call %d %s(%#llx, "
             "%#llx, %#llx) of %#x: verdict %#x, not %#x",
             reference_arch_names[filter->spec.arch], filter->spec.is_root, filter->spec.sockets,
             filter->spec.has_pid_namespace, filter->spec.has_mount_namespace,
             filter->spec.has_ipc_namespace, filter->spec.allow_nested_namespaces,
             filter->spec.asks_names, filter->spec.asks_facts, filter->spec.asks_sockets, data->nr,
             reference_name(filter->spec.arch, data->nr), (unsigned long long)data->args[0],
             (unsigned long long)data->args[1], (unsigned long long)data->args[2], data->arch,
             verdict, wanted);
}

/* -- tests */

/* Arguments that some call looks at, in every position; each is tried as it is and with garbage in
 * the upper half. */
static const uint32_t words[] = {
    0,
    1,
    2,
    3,
    4, /* NETLINK_SOCK_DIAG */
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
    F_SETLEASE,
    F_SETLEASE + 1,
    1040, /* F_SETDELEG */
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
    for (int nr = 0; nr <= REFERENCE_LAST; nr++) {
        for (size_t i = 0; i < WORDS; i++) {
            for (int high = 0; high < 2; high++) {
                uint64_t word = words[i] | (high ? HIGH : 0);
                struct seccomp_data data = {.nr = nr,
                                            .arch = reference_audit_arch[filter->spec.arch],
                                            .args = {word, word, word}};

                check_call(filter, &data);
            }
        }
    }
}

static void test_every_number(void **state)
{
    each_filter(check_every_number);
}

static const uint32_t requests[] = {
    0x50009401, /* btrfs */
    0x5000940e, 0x5000940f, 0x50009417, 0x50009418, 0x5000943f, 0x4008941a,
    0x40049409,             /* FICLONE is its */
    0x4020bc10,             /* bcachefs */
    0x4020bc11, 0x40186f04, /* ocfs2 */
    0x40087602, 0x40086604, 0x6609,     0x40806685, 0x800c6613, 0x40047211,
};

static void check_ioctl_requests(const struct filter *filter)
{
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        for (int step = -1; step <= 1; step++) {
            struct seccomp_data data = {.nr = reference_number(filter->spec.arch, "ioctl"),
                                        .arch = reference_audit_arch[filter->spec.arch],
                                        .args = {0, HIGH | (requests[i] + (uint32_t)step)}};

            check_call(filter, &data);
        }
    }
}

static void test_ioctl_requests(void **state)
{
    each_filter(check_ioctl_requests);
}

static void check_socket_arguments(const struct filter *filter)
{
    int nr = reference_number(filter->spec.arch, "socket");

    for (unsigned family = 0; family < 48; family++) {
        for (unsigned protocol = 0; protocol < 32; protocol++) {
            for (int high = 0; high < 2; high++) {
                uint64_t garbage = high ? HIGH : 0;
                unsigned type = (protocol % 11) | (protocol % 2 ? SOCK_CLOEXEC : 0);
                struct seccomp_data data = {
                    .nr = nr,
                    .arch = reference_audit_arch[filter->spec.arch],
                    .args = {family | garbage, type | garbage, protocol | garbage}};

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
            struct seccomp_data data = {.nr = reference_number(filter->spec.arch, "socketpair"),
                                        .arch = reference_audit_arch[filter->spec.arch],
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
                .nr = reference_number(filter->spec.arch, is_clone ? "clone" : "unshare"),
                .arch = reference_audit_arch[filter->spec.arch],
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
        for (int nr = -1; nr <= REFERENCE_LAST; nr++) {
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
    static const uint32_t edges[] = {REFERENCE_X32_BIT - 1,
                                     REFERENCE_X32_BIT,
                                     REFERENCE_X32_BIT + 1,
                                     0x7fffffff,
                                     0x80000000,
                                     0xfffffffe,
                                     0xffffffff};
    struct seccomp_data data = {.arch = reference_audit_arch[filter->spec.arch]};

    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++) {
        data.nr = (int)edges[i];
        check_call(filter, &data);
    }
    for (uint32_t nr = 0; nr <= REFERENCE_LAST; nr++) {
        data.nr = (int)(REFERENCE_X32_BIT | nr);
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

        assert_int_equal(bpf_run(filter.code, filter.len, &data), cases[i].wanted);
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
    assert_true(reference_has(seccomp_native()));
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
        const int nr = reference_number(filter->spec.arch, names[i]);

        for (size_t j = 0; nr >= 0 && j < count * count * count; j++) {
            struct seccomp_data data = {
                .nr = nr,
                .arch = reference_audit_arch[filter->spec.arch],
                .args = {HIGH, HIGH | values[j % count], HIGH | values[j / count % count],
                         HIGH | values[j / count / count]},
            };

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
        cmocka_unit_test(test_ioctl_requests),
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
