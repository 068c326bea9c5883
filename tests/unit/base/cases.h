/* Tests that are data: every file of a directory below tests/cases is one test, so that a bug fix
 * is a file. A case says in "why" what it is about. With CORDON_UPDATE_GOLDEN=1 the files are
 * rewritten with what comes out, where a list or an object of theirs differs: read the diff. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/json.h"

#include <jansson.h>

/* One file of the directory, as the state of its test. */
struct test_case {
    char *path;
    char *name; /* of the file */
    json_t *json;
};

/* Runs `test` for every *.json file in tests/cases/`directory`, then the tests of `more`
 * (`more_len` of them). A directory without any is a failure. Returns what main() has to. */
int cases_run(const char *dir, CMUnitTestFunction test, const struct CMUnitTest *more,
              size_t more_len);

/* --- parts of a case; each fails the test when the part is missing or of the wrong type --- */
const char *case_string(const json_t *object, const char *key);
const char *case_string_or(const json_t *object, const char *key, const char *otherwise);

/* Items of an array of strings, NULL-terminated; an absent one is empty. Free with free(). */
char **case_strings(const json_t *object, const char *key);

/* Appends a text that the case has as an array of its lines. */
void case_lines(const json_t *object, const char *key, struct buf *ret);

/* Every key of a case has to be one that the runner reads; a slip would test nothing. */
void case_check_keys(const json_t *object, const char *const *known);

/* The text of the file tests/cases/`directory`/`name`; caller frees. */
char *case_text(const char *dir, const char *name, size_t *ret_len);

/* --- assertions --- */

/* `wanted` may be a part of the case that runs, which CORDON_UPDATE_GOLDEN=1 rewrites. */
void assert_json_equal(const json_t *got, const json_t *wanted);

/* `object` has under `key` the lines of a text, as for case_lines(). */
void assert_lines_equal(const struct buf *got, const json_t *object, const char *key);
void assert_contains(const char *text, const char *part);
