/* The filter asks about no call that the guard knows nothing of, and about each that it knows. */
#include "../base/support.h"

#include "../sandbox/bpf.h"
#include "guard/calls.h"
#include "sandbox/linux/seccomp.h"

#include <linux/audit.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdint.h>

enum { LAST = 600, SPECS = 128 };

static const uint32_t native[] = {AUDIT_ARCH_X86_64, AUDIT_ARCH_AARCH64};

static struct seccomp_spec spec_make(unsigned variant)
{
    return (struct seccomp_spec){
        .arch = seccomp_native(),
        .sockets = variant & 1 ? SECCOMP_SOCKETS_INTERNET : SECCOMP_SOCKETS_UNIX,
        .has_pid_namespace = variant & 2,
        .has_ipc_namespace = variant & 2,
        .has_mount_namespace = variant & 4,
        .asks_names = variant & 8,
        .asks_facts = variant & 16,
        .asks_descriptors = variant & 16 && variant & 32,
        .asks_signals = variant & 16 && !(variant & 2),
        .asks_exec = variant & 64,
        .asks_sockets = (variant & 32) && (variant & 1),
        .asks_datagrams = (variant & 49) == 49,
        .is_root = variant & 64,
    };
}

/* With some arguments. */
static bool is_asked(const struct plan_filter *code, size_t len, int nr)
{
    static const uint64_t words[] = {0, 1, 2, 0101, 01000, 02000, 020000002, 1ull << 40};

    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        struct seccomp_data data = {.nr = nr,
                                    .arch = native[seccomp_native()],
                                    .args = {1, words[i], words[i], words[i], words[i]}};

        if (bpf_run(code, len, &data) == SECCOMP_RET_USER_NOTIF)
            return true;
    }
    return false;
}

static void test_what_is_asked_is_known(void **state)
{
    static bool was_asked[LAST + 1];
    struct plan_filter code[SECCOMP_MAX];

    for (unsigned variant = 0; variant < SPECS; variant++) {
        struct seccomp_spec spec = spec_make(variant);
        size_t len = seccomp_compile(&spec, code);

        for (int nr = 0; nr <= LAST; nr++) {
            if (!is_asked(code, len, nr))
                continue;
            was_asked[nr] = true;
            if (!call_find(nr))
                fail_msg("the guard is asked about call %d, and does not know it", nr);
        }
    }
    for (int nr = 0; nr <= LAST; nr++)
        if (call_find(nr) && !was_asked[nr])
            fail_msg("the guard knows call %d, and is never asked about it", nr);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_asked_is_known),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
