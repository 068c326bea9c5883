/* Requests of the kernel, as bytes, against what the guard makes of them: each line of
 * tests/cases/fuse/requests.txt is
 *
 *     OPCODE [BODY] -> RESULT [NAME]
 *
 * BODY is hex or "text" (with a NUL behind it); RESULT is nothing, access, interrupt, broken, ok or
 * the name of an errno. */
#include "../base/support.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/fd.h"
#include "guard/fuse.h"
#include "guard/kernel.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { CASES_MAX = 64 << 10, UNIQUE = 0x1234, THREAD = 77 };

static const struct fuse_root folder = {.mode = S_IFDIR | 0700, .uid = 1000, .gid = 1001};

static size_t write_request(uint32_t opcode, const void *body, size_t len, unsigned char *ret)
{
    const struct k_fuse_in_header header = {.len = (uint32_t)(sizeof header + len),
                                            .opcode = opcode,
                                            .unique = UNIQUE,
                                            .node = 1,
                                            .pid = THREAD};

    memcpy(ret, &header, sizeof header);
    memcpy(ret + sizeof header, body, len);
    return header.len;
}

static size_t read_body(const char *text, unsigned char *ret)
{
    size_t len = strlen(text);

    if (*text == '"') {
        memcpy(ret, text + 1, len - 2);
        ret[len - 2] = '\0';
        return len - 1;
    }
    for (size_t i = 0; i < len / 2; i++) {
        unsigned byte = 0;

        assert_int_equal(sscanf(text + 2 * i, "%2x", &byte), 1);
        ret[i] = (unsigned char)byte;
    }
    return len / 2;
}

static const char *result_of(const struct fuse_request *request)
{
    static const char *const words[] = {[FUSE_NOTHING] = "nothing",
                                        [FUSE_ACCESS] = "access",
                                        [FUSE_INTERRUPT] = "interrupt",
                                        [FUSE_BROKEN] = "broken"};
    struct k_fuse_out_header header;

    if (request->kind != FUSE_REPLY)
        return words[request->kind];
    memcpy(&header, request->reply, sizeof header);
    assert_int_equal(header.len, request->reply_len);
    assert_int_equal(header.unique, UNIQUE);
    assert_true(header.error <= 0 && (!header.error || header.len == sizeof header));
    return header.error ? strerrorname_np(-header.error) : "ok";
}

static void check_line(const char *line)
{
    static unsigned char body[FUSE_REQUEST_MAX], bytes[2 * FUSE_REQUEST_MAX];
    char text[1024] = "", result[32] = "", name[300] = "";
    struct fuse_request request;
    uint32_t opcode = 0;
    size_t len = 0;

    if (sscanf(line, "%u -> %31s %299s", &opcode, result, name) < 2) {
        assert_true(sscanf(line, "%u %1023s -> %31s %299s", &opcode, text, result, name) >= 3);
        len = read_body(text, body);
    }
    fuse_read(bytes, write_request(opcode, body, len, bytes), &folder, &request);
    if (strcmp(result_of(&request), result) != 0)
        fail_msg("%s: %s", line, result_of(&request));
    assert_string_equal(request.name, name);
    assert_int_equal(request.thread, THREAD);
}

static void test_cases(void **state)
{
    AUTO(buf_done) struct buf text = {0};
    struct err err;
    unsigned count = 0;

    assert_int_equal(fd_read_file(*state, CASES_MAX, &text, &err), 0);
    for (char *line = strtok(text.data, "\n"); line; line = strtok(NULL, "\n")) {
        if (*line == '#')
            continue;
        check_line(line);
        count++;
    }
    assert_true(count > 20);
}

/* A header of its own length, or none that is whole. */
static void test_broken_headers(void **state)
{
    unsigned char bytes[256] = {0};
    size_t len = write_request(K_FUSE_GETATTR, "", 0, bytes);
    struct fuse_request request;

    for (size_t i = 0; i < sizeof bytes; i++) {
        fuse_read(bytes, i, &folder, &request);
        assert_int_equal(request.kind, i == len ? FUSE_REPLY : FUSE_BROKEN);
    }
}

static void test_longest_name(void **state)
{
    unsigned char bytes[1024], name[NAME_MAX + 2];
    struct fuse_request request;

    memset(name, 'x', sizeof name);
    name[NAME_MAX] = name[NAME_MAX + 1] = '\0';
    fuse_read(bytes, write_request(K_FUSE_LOOKUP, name, NAME_MAX + 1, bytes), &folder, &request);
    assert_int_equal(request.kind, FUSE_ACCESS);
    assert_int_equal(strlen(request.name), NAME_MAX);
    name[NAME_MAX] = 'x';
    fuse_read(bytes, write_request(K_FUSE_LOOKUP, name, NAME_MAX + 2, bytes), &folder, &request);
    assert_int_equal(request.kind, FUSE_BROKEN);
}

static void test_what_is_said_of_the_place(void **state)
{
    struct k_fuse_attr_out attributes;
    unsigned char bytes[256];
    struct fuse_request request;

    fuse_read(bytes, write_request(K_FUSE_GETATTR, "", 0, bytes), &folder, &request);
    assert_int_equal(request.reply_len, 16 + sizeof attributes);
    memcpy(&attributes, request.reply + 16, sizeof attributes);
    assert_int_equal(attributes.mode, S_IFDIR | 0700);
    assert_int_equal(attributes.uid, 1000);
    assert_int_equal(attributes.gid, 1001);
    assert_int_equal(attributes.size, 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        {.name = "cases", .test_func = test_cases, .initial_state = argc == 2 ? argv[1] : NULL},
        cmocka_unit_test(test_broken_headers),
        cmocka_unit_test(test_longest_name),
        cmocka_unit_test(test_what_is_said_of_the_place),
    };

    if (argc != 2) {
        fprintf(stderr, "usage: test_fuse FILE (with cases)\n");
        return 2;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
