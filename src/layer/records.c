/* See records.h. Numbers are hexadecimal; a stamp is five of them, with spaces between. */
#include "layer/records.h"

#include <string.h>

bool record_put(struct buf *text, const char *value)
{
    return buf_append(text, value, strlen(value) + 1);
}

/* By hand: there are tens of thousands of them in a large layer. Writes backwards, before `end`. */
static char *put_backwards(char *end, uint64_t value)
{
    do {
        *--end = "0123456789abcdef"[value & 15];
        value >>= 4;
    } while (value);
    return end;
}

bool record_put_number(struct buf *text, uint64_t value)
{
    char digits[24] = "";
    char *end = digits + sizeof digits - 1;
    char *begin = put_backwards(end, value);

    return buf_append(text, begin, (size_t)(end - begin) + 1);
}

bool record_put_stamp(struct buf *text, const struct change_stamp *stamp)
{
    char digits[96] = "";
    char *end = digits + sizeof digits - 1;
    char *at = end;

    at = put_backwards(at, stamp->mode);
    *--at = ' ';
    at = put_backwards(at, (uint64_t)stamp->ctime_ns);
    *--at = ' ';
    at = put_backwards(at, stamp->size);
    *--at = ' ';
    at = put_backwards(at, stamp->ino);
    *--at = ' ';
    at = put_backwards(at, stamp->dev);
    return buf_append(text, at, (size_t)(end - at) + 1);
}

const char *record_take(struct records *records)
{
    const char *text = records->next;
    const char *nul;

    if (text == records->end)
        return NULL;
    nul = memchr(text, '\0', (size_t)(records->end - text));
    if (!nul)
        return NULL;
    records->next = nul + 1;
    return text;
}

static bool take_digits(const char **text, uint64_t *ret)
{
    const char *at = *text;
    uint64_t value = 0;

    for (; at - *text < 16; at++) {
        const char c = *at;
        const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;

        if (digit < 0)
            break;
        value = value << 4 | (unsigned)digit;
    }
    if (at == *text)
        return false;
    *text = at;
    *ret = value;
    return true;
}

bool record_take_number(struct records *records, uint64_t *ret)
{
    const char *text = record_take(records);

    return text && take_digits(&text, ret) && !*text;
}

bool record_take_stamp(struct records *records, struct change_stamp *ret)
{
    const char *text = record_take(records);
    uint64_t values[5] = {0};

    for (size_t i = 0; text && i < 5; i++) {
        if ((i && *text++ != ' ') || !take_digits(&text, &values[i]))
            return false;
    }
    if (!text || *text || values[4] > UINT32_MAX)
        return false;
    *ret = (struct change_stamp){.dev = values[0],
                                 .ino = values[1],
                                 .size = values[2],
                                 .ctime_ns = (int64_t)values[3],
                                 .mode = (uint32_t)values[4]};
    return true;
}
