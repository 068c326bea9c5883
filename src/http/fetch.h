/* One HTTP request, carried out to its end and told as JSON lines. */
#pragma once

#include "base/err.h"
#include "base/json.h"

#include <stdio.h>

/* Carries out the request of `params` (the parameters of http/request, with the values of headers
 * complete) and writes to `out`, one line each:
 *
 *     {"status": 200, "headers": [{"name": "content-type", "value": "text/plain"}, ...]}
 *     {"body": "base64"}         any number; all but the last are whole groups of three bytes
 *     {"done": true}
 *
 * Fails when there is no whole answer; what was written then is its beginning. Waits as long as it
 * takes or `timeoutMs` lets it. */
int fetch(const json_t *params, FILE *out, struct err *err);
