/* Counting '\n', fast enough to do it with every byte of output. */
#pragma once

#include <stddef.h>

size_t newlines_count(const char *bytes, size_t len);
