/* Arguments out of memory that may be anything. */
#include "../base/support.h"

#include "guard/argv.h"

#include <stdlib.h>
#include <string.h>

enum { PAGES = 40, START = 0x400000 };

static char image[PAGES][ARGV_PAGE];
static bool is_there[PAGES];
static unsigned reads;

static bool read_page(void *data, uint64_t address, char ret[ARGV_PAGE])
{
    uint64_t page = (address - START) / ARGV_PAGE;

    reads++;
    if (address < START || page >= PAGES || !is_there[page])
        return false;
    memcpy(ret, image[page], ARGV_PAGE);
    return true;
}

static const struct memory memory = {.read = read_page};

static uint64_t put(size_t at, const void *bytes, size_t len)
{
    memcpy((char *)image + at, bytes, len);
    for (size_t i = at / ARGV_PAGE; i <= (at + len - 1) / ARGV_PAGE; i++)
        is_there[i] = true;
    return START + at;
}

static int setup(void **state)
{
    memset(image, 0, sizeof image);
    memset(is_there, 0, sizeof is_there);
    reads = 0;
    return 0;
}

/* The strings lie in one page, the pointers in another: each is read once. */
static void test_the_usual(void **state)
{
    uint64_t words[] = {put(100, "ls", 3), put(103, "", 1), put(104, "-l", 3), 0};
    uint64_t array = put(ARGV_PAGE + 8, words, sizeof words);
    char text[64];
    struct argv argv = argv_read(&memory, array, text, sizeof text);

    assert_int_equal(argv.count, 3);
    assert_int_equal(argv.len, 7);
    assert_memory_equal(text, "ls\0\0-l\0", 7);
    assert_false(argv.is_truncated);
    assert_int_equal(reads, 2);
}

static void test_no_array(void **state)
{
    char text[8];
    struct argv argv = argv_read(&memory, 0, text, sizeof text);

    assert_int_equal(argv.count, 0);
    assert_false(argv.is_truncated);
    argv = argv_read(&memory, 12, text, sizeof text);
    assert_int_equal(argv.count, 0);
    assert_true(argv.is_truncated);
}

static void test_across_pages(void **state)
{
    uint64_t words[] = {put(2 * ARGV_PAGE - 2, "abcd", 5), 0};
    uint64_t array = put(6 * ARGV_PAGE - 4, words, sizeof words);
    char text[8];
    struct argv argv = argv_read(&memory, array, text, sizeof text);

    assert_int_equal(argv.count, 1);
    assert_string_equal(text, "abcd");
    assert_false(argv.is_truncated);
}

static void test_what_is_not_there(void **state)
{
    uint64_t words[] = {put(0, "sh", 3), 77, 0};
    uint64_t array = put(ARGV_PAGE, words, sizeof words);
    char text[8];
    struct argv argv = argv_read(&memory, array, text, sizeof text);

    assert_int_equal(argv.count, 1);
    assert_true(argv.is_truncated);
    words[1] = put(3 * ARGV_PAGE - 2, "ab", 2); /* and its end is not */
    put(ARGV_PAGE, words, sizeof words);
    argv = argv_read(&memory, array, text, sizeof text);
    assert_int_equal(argv.count, 2);
    assert_memory_equal(text, "sh\0ab\0", 6);
    assert_true(argv.is_truncated);
}

static void test_no_room(void **state)
{
    uint64_t word = put(0, "abcdef", 7);
    uint64_t words[20];
    uint64_t array;
    char text[16];
    struct argv argv;

    for (int i = 0; i < 20; i++)
        words[i] = word;
    array = put(ARGV_PAGE, words, sizeof words);
    argv = argv_read(&memory, array, text, sizeof text);
    assert_true(argv.is_truncated);
    assert_int_equal(argv.count, 3);
    assert_int_equal(argv.len, sizeof text);
    assert_string_equal(text + 14, "a");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_the_usual, setup),
        cmocka_unit_test_setup(test_no_array, setup),
        cmocka_unit_test_setup(test_across_pages, setup),
        cmocka_unit_test_setup(test_what_is_not_there, setup),
        cmocka_unit_test_setup(test_no_room, setup),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
