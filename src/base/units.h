/* Sizes and durations as people write them. */
#pragma once

#include "base/err.h"

#include <stdint.h>

/* A whole number of bytes with an optional unit: B, K, M, G, T (powers of 1024; also KiB, MiB, ...
 * and KB, MB, ..., any case). ERR_INVALID names what is wrong and shows a right one. */
int units_parse_size(const char *text, uint64_t *ret_bytes, struct err *err);

/* A decimal number with an optional unit: ns, us, ms, s (the default), m or min, h, d; "1.5s",
 * "2m", "0". Finer than a nanosecond is cut off. */
int units_parse_duration(const char *text, uint64_t *ret_ns, struct err *err);

/* A whole number from 0 on. */
int units_parse_count(const char *text, uint64_t *ret_count, struct err *err);
