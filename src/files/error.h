/* Failures of file calls in the words of the wire (spec/exec-server.md 2). */
#pragma once

#include "base/err.h"

enum { ERROR_TEXT_SIZE = 256, ERROR_NOT_FOUND = -32004 };

/* The JSON-RPC code: -32004 what does not exist, -32600 wrong input and no permission, -32603 every
 * other answer of the system. */
int error_code(const struct err *err);

/* "No such file or directory (os error 2)" for a failed system call; otherwise the message. */
void error_text(const struct err *err, char ret_text[ERROR_TEXT_SIZE]);
