/* Base64 with the standard alphabet and padding (RFC 4648 section 4). Sizes are known before
 * anything is converted, so a caller checks them against its limit first. */
#pragma once

#include "base/err.h"

#include <stddef.h>

/* Characters that `len` bytes become, without a NUL. `len` is at most SIZE_MAX / 2. */
size_t base64_encoded_len(size_t len);

/* Writes base64_encoded_len(len) characters and a NUL. */
void base64_encode(const void *data, size_t len, char *ret_text);

/* Bytes that `text` becomes when it is well-formed; base64_decode() never writes more. */
size_t base64_decoded_len(const char *text, size_t len);

/* Writes base64_decoded_len(text, len) bytes. Strict: no white space, no missing or misplaced
 * padding, unused bits zero. Otherwise ERR_INVALID naming the byte offset that is wrong; what
 * `ret_data` holds then is unspecified. */
int base64_decode(const char *text, size_t len, void *ret_data, struct err *err);
