/* Patterns: the input is "PATTERN\nPATH". Beside memory errors: a path as an escaped pattern
 * matches itself. */
#include "fuzz.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/path.h"
#include "policy/glob.h"

#include <stdlib.h>
#include <string.h>

static void check(bool holds)
{
    if (!holds)
        abort();
}

/* Component by component, as a walk over a tree does it. */
static bool match(const struct glob *glob, const char *path)
{
    const char *at = path + strlen(glob_prefix(glob));
    glob_state state = glob_start(glob);

    if (!path_is_within(path, glob_prefix(glob)))
        return false;
    while (*(at += strspn(at, "/"))) {
        size_t len = strcspn(at, "/");
        AUTO_FREE char *name = alloc_strn(at, len);

        state = glob_step(glob, state, name);
        at += len;
    }
    return glob_is_match(glob, state);
}

static void check_escaped(const char *path)
{
    AUTO_FREE char *escaped = glob_escape(path);
    AUTO_FREE char *plain = glob_unescape(escaped);
    struct err err;
    struct glob *glob = glob_compile(escaped, &err);

    check(strcmp(plain, path) == 0);
    check(!glob_has_meta(escaped));
    if (glob)
        check(match(glob, path));
    glob_free(glob);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO_FREE char *pattern = alloc_strn((const char *)data, size);
    char *newline = strchr(pattern, '\n');
    AUTO_FREE char *path = path_clean("/", newline ? newline + 1 : "");
    struct glob *glob;
    struct err err;

    if (newline)
        *newline = '\0';
    glob = glob_compile(pattern, &err);
    if (glob) {
        check(path_is_clean(glob_prefix(glob)));
        check(!match(glob, path) || path_is_within(path, glob_prefix(glob)));
        check(!glob_is_tree(glob) || glob_wants_dir(glob));
    }
    glob_free(glob);
    check_escaped(path);
    return 0;
}
