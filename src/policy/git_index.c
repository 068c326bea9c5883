/* See git_index.h; base/git_index.h reads. Of a split index the extension "link" names the other file by its
 * hash. */
#include "policy/git_index.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/git_index.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { NAME_MAX_BYTES = 128 };

struct found {
    struct strv paths;
    size_t hash;
    const unsigned char *link; /* NULL: it is not split */
};

static void found_done(struct found *found)
{
    strv_done(&found->paths);
}

static bool take_entry(void *data, const char *path, uint32_t mode)
{
    struct found *found = data;

    if ((mode & GIT_MODE_TYPE) == GIT_MODE_GITLINK)
        strv_push(&found->paths, path);
    return true;
}

static bool take_extension(void *data, const char name[static 4], const unsigned char *bytes,
                           size_t size)
{
    struct found *found = data;

    if (memcmp(name, "link", 4) == 0 && size >= found->hash)
        found->link = bytes;
    return true;
}

/* NULL when the hash of the extension is zero: then there is no other file. */
static char *shared_name(const unsigned char *hash, size_t len)
{
    static const char digits[] = "0123456789abcdef";
    AUTO(buf_done) struct buf name = {.max = NAME_MAX_BYTES};
    unsigned any = 0;

    buf_append_str(&name, "sharedindex.");
    for (size_t i = 0; i < len; i++) {
        buf_append(&name, &digits[hash[i] >> 4], 1);
        buf_append(&name, &digits[hash[i] & 15], 1);
        any |= hash[i];
    }
    return any ? alloc_str(name.data) : NULL;
}

int git_index_submodules(const char *bytes, size_t len, struct strv *ret, char **ret_shared,
                         struct err *err)
{
    static const size_t hashes[] = {GIT_HASH_BYTES, GIT_HASH_BYTES_SHA256};

    /* The index does not say which hash it uses. */
    for (size_t i = 0; i < sizeof hashes / sizeof *hashes; i++) {
        AUTO(found_done) struct found found = {.hash = hashes[i]};
        const struct git_index_visitor visitor = {
            .entry = take_entry, .extension = take_extension, .data = &found};

        if (!git_index_read(bytes, len, hashes[i], &visitor))
            continue;
        if (strv_has(&found.paths, ""))
            return err_set(err, ERR_INVALID,
                           "the split index replaces a submodule; `git update-index "
                           "--no-split-index` makes it a whole one");
        *ret_shared = found.link ? shared_name(found.link, hashes[i]) : NULL;
        strv_push_all(ret, strv_view(&found.paths));
        return 0;
    }
    return err_set(err, ERR_INVALID, "the git index is malformed, or not of version 2 to 4");
}
