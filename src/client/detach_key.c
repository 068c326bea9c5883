/* See detach_key.h. Keys that may become the sequence are held back; when they do not, they go out
 * before what broke it. A sequence that fails is not looked for again inside of the held keys but
 * from the key that broke it: with eight keys at most nobody types such overlaps. */
#include "client/detach_key.h"

#include "base/str.h"

#include <string.h>

static int fail(const char *text, struct err *err)
{
    return err_set(err, ERR_INVALID,
                   "\"%.40s\" is no key: right are ctrl-\\, ctrl-p,ctrl-q or none", text);
}

/* The byte that a terminal sends for "x" or "ctrl-x"; 0 for what is neither. */
static char key_of(const char *word, size_t len)
{
    static const char prefix[] = "ctrl-";
    char letter;

    if (len == 1 && *word > ' ' && *word <= '~')
        return *word;
    if (len != sizeof prefix || strncmp(word, prefix, sizeof prefix - 1) != 0)
        return 0;
    letter = word[sizeof prefix - 1];
    if (letter >= 'a' && letter <= 'z')
        return (char)(letter - 'a' + 1);
    return strchr("[\\]^_", letter) ? (char)(letter & 0x1f) : 0;
}

int detach_key_parse(const char *text, struct detach_key *ret, struct err *err)
{
    struct detach_key key = {.len = 0};
    const char *at = text;

    while (!str_eq(text, "none")) {
        size_t len = strcspn(at, ",");
        char byte = key_of(at, len);

        if (!byte)
            return fail(text, err);
        if (key.len == DETACH_KEY_MAX)
            return err_set(err, ERR_INVALID, "has more than %d keys", DETACH_KEY_MAX);
        key.keys[key.len++] = byte;
        if (!at[len])
            break;
        at += len + 1;
    }
    *ret = key;
    return 0;
}

bool detach_key_filter(struct detach_key *key, const char *typed, size_t len, char *ret,
                       size_t *ret_len)
{
    size_t out = 0;

    for (size_t i = 0; i < len; i++) {
        if (key->held && typed[i] != key->keys[key->held]) {
            memcpy(ret + out, key->keys, key->held);
            out += key->held;
            key->held = 0;
        }
        if (!key->len || typed[i] != key->keys[key->held]) {
            ret[out++] = typed[i];
            continue;
        }
        if (++key->held == key->len) {
            key->held = 0;
            *ret_len = out;
            return true;
        }
    }
    *ret_len = out;
    return false;
}
