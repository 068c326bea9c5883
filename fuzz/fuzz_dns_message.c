/* What a program sends to its resolver. What can be answered has an answer of which the question is the same. */
#include "fuzz.h"

#include "proxy/dns_message.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct dns_record record = {.type = DNS_PTR};
    unsigned char answer[DNS_ANSWER_MAX], address[4];
    struct dns_query query, again;
    enum dns_code code;
    enum dns_verdict verdict = dns_query_parse(data, size, &query, &code);
    size_t len;

    if (verdict == DNS_SILENT)
        return 0;
    record.name = query.name;
    len = dns_answer_format(&query, code, verdict == DNS_ANSWERABLE ? &record : NULL, answer);
    if (len > sizeof answer || strlen(query.name) >= sizeof query.name)
        abort();
    dns_reverse_parse(query.name, address);
    if (verdict != DNS_ANSWERABLE || query.has_edns)
        return 0;
    answer[2] &= 0x7f; /* as if it were a question */
    len = 12 + query.raw_len;
    answer[7] = 0;
    if (dns_query_parse(answer, len, &again, &code) != DNS_ANSWERABLE ||
        strcmp(again.name, query.name) != 0 || again.type != query.type)
        abort();
    return 0;
}
