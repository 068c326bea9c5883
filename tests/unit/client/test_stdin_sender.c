/* The key that leaves a terminal. */
#include "../base/support.h"

#include "base/auto.h"
#include "base/str.h"
#include "client/client.h"

#include <stdlib.h>
#include <string.h>

static void detach_keys_are_read(void **state)
{
    static const struct {
        const char *text;
        const char *keys;
    } cases[] = {
        {"ctrl-\\", "\x1c"},
        {"ctrl-p,ctrl-q", "\x10\x11"},
        {"none", ""},
        {"~,.", "~."},
        {"ctrl-a,d", "\x01"
                     "d"},
        {"ctrl-[", "\x1b"},
        {"ctrl-_", "\x1f"},
        {"-", "-"},
    };
    static const char *const wrong[] = {
        "",        "ctrl-", "ctrl-A", "ctrl-1",           "a,", ",a", "aa",
        "ctrl-p,", " ",     "\x7f",   "a,b,c,d,e,f,g,h,i"};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct detach_key key;
        struct err err = ERR_UNTOUCHED;

        assert_int_equal(detach_key_parse(cases[i].text, &key, &err), 0);
        assert_untouched(err);
        assert_int_equal(key.len, strlen(cases[i].keys));
        assert_memory_equal(key.keys, cases[i].keys, key.len);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct detach_key key;
        struct err err;

        assert_int_equal(detach_key_parse(wrong[i], &key, &err), -1);
        assert_int_equal(err.code, ERR_INVALID);
    }
}

/* What comes through when this is typed in the pieces that "|" cuts; "!" ends it where the key was
 * pressed. */
static void check_filter(const char *text, const char *typed, const char *wanted)
{
    struct detach_key key;
    struct err err;
    char through[100];
    size_t len = 0;
    bool was_pressed = false;

    assert_int_equal(detach_key_parse(text, &key, &err), 0);
    for (const char *at = typed; *at && !was_pressed; at += at[strcspn(at, "|")] ? 1 : 0) {
        size_t piece = strcspn(at, "|");
        size_t out = 0;

        was_pressed = detach_key_filter(&key, at, piece, through + len, &out);
        len += out;
        at += piece;
    }
    if (was_pressed)
        through[len++] = '!';
    through[len] = '\0';
    assert_string_equal(through, wanted);
}

static void detach_keys_are_found(void **state)
{
    check_filter("x", "abc", "abc");
    check_filter("x", "abxc", "ab!");
    check_filter("none", "abxc", "abxc");
    check_filter("x,y", "axy", "a!");
    check_filter("x,y", "axby", "axby");
    check_filter("x,y", "ax", "a");
    check_filter("x,y", "ax|y", "a!");
    check_filter("x,y", "ax|zy", "axzy");
    check_filter("x,y", "xxy", "x!");
    check_filter("x,x", "xax|x", "xa!");
    check_filter("x,y,z", "xyxyz", "xy!");
    check_filter("x,y,z", "x|y|a|xy|z", "xya!");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(detach_keys_are_read),
        cmocka_unit_test(detach_keys_are_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
