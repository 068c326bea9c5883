/* SHA-256 (FIPS 180-4). Of our own, 60 lines, because every library for it asks the processor for
 * its features when the program starts, which in a virtual machine costs more than all our hashes
 * (docs/decisions/0010-audit-log.md). */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { SHA256_SIZE = 32, SHA256_BLOCK = 64 };

struct sha256 {
    uint32_t state[8];
    uint64_t len;                /* bytes so far */
    uint8_t block[SHA256_BLOCK]; /* of the last, begun one: len % SHA256_BLOCK bytes */
};

void sha256_start(struct sha256 *sha);
void sha256_add(struct sha256 *sha, const void *data, size_t len);
void sha256_finish(struct sha256 *sha, uint8_t ret[SHA256_SIZE]);
