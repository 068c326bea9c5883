/* See bpf.h. */
#include "../base/support.h"

#include "bpf.h"

#include <linux/filter.h>
#include <stdbool.h>
#include <string.h>

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

uint32_t bpf_run(const struct plan_filter *code, size_t len, const struct seccomp_data *data)
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
