/* The audit log's line and what is taken out of command lines: whatever a line is, reading and
 * writing it gives the same bytes, and a secret of the environment never stays. */
#include "fuzz.h"

#include "audit/record.h"
#include "audit/redact.h"
#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"

#include <stdlib.h>
#include <string.h>

static void line(const char *text, size_t len)
{
    AUTO(buf_done) struct buf again = {0};
    struct audit_record record;
    struct err err;

    if (audit_record_parse(text, len, &record, &err))
        return;
    buf_init(&again, AUDIT_LINE_MAX);
    if (!audit_record_format(&record, &again) || again.len != len + 1 ||
        memcmp(again.data, text, len) != 0)
        abort();
}

static void redact(const char *text)
{
    static char secret[] = "A_TOKEN=swordfish";
    char *const env[] = {secret, NULL};
    AUTO_FREE char *out = audit_redact(text, env);

    if (strstr(out, "swordfish"))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO_FREE char *text = alloc_strn((const char *)data, size);

    line(text, size);
    redact(text);
    return 0;
}
