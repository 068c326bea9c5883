/* What a fuzz target defines; the signature is libFuzzer's. Returns 0; a finding is a crash, a
 * sanitizer report, or abort(). */
#pragma once

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
