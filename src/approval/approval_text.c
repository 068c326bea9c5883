/* See approval_text.h. */
#include "approval/approval_text.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/utf8.h"

#include <stdint.h>
#include <string.h>

static bool is_plain_word(const char *word)
{
    return *word && !word[strcspn(word, " \t\n\"'\\$`;&|<>()*?[]#~!{}")];
}

static void add_word(struct buf *text, const char *word)
{
    if (is_plain_word(word)) {
        buf_append_str(text, word);
        return;
    }
    buf_append_str(text, "'");
    for (size_t len; *word; word += len) {
        len = strcspn(word, "'");
        buf_append(text, word, len);
        if (word[len] == '\'') {
            buf_append_str(text, "'\\''");
            len++;
        }
    }
    buf_append_str(text, "'");
}

char *approval_plain_text(const char *text)
{
    return utf8_plain(text ? text : "");
}

char *approval_command_text(char *const *argv)
{
    AUTO(buf_done) struct buf words = {0};

    buf_init(&words, SIZE_MAX / 2);
    for (; *argv; argv++) {
        buf_append_str(&words, words.len ? " " : "");
        add_word(&words, *argv);
    }
    return approval_plain_text(words.data);
}

/* "; for the session: also every later patch of /w/a, /w/b"; "" for none. Caller frees. */
static char *later_patches(char *const *files)
{
    enum { SHOWN_MAX = 10 };
    AUTO(buf_done) struct buf text = {0};
    size_t len = 0;

    buf_init(&text, SIZE_MAX / 2);
    for (; files && files[len]; len++)
        if (len < SHOWN_MAX)
            buf_appendf(&text, "%s%s", len ? ", " : "; for the session: also every later patch of ",
                        files[len]);
    if (len > SHOWN_MAX)
        buf_appendf(&text, " and %zu more files", len - SHOWN_MAX);
    return alloc_str(text.data ? text.data : "");
}

static char *covers_once(const struct approval_scope *scope)
{
    static const char retry[] = "; and once more without a sandbox, should it refuse something";
    const char *and_retry = scope->covers_retry ? retry : "";

    if (scope->place == REQUIREMENT_UNCONFINED)
        return alloc_str("this command without a sandbox: it may do whatever you may, files and "
                         "network");
    if (scope->widened)
        return alloc_strf("this command in its sandbox (profile %s), and beyond that %s%s",
                          scope->profile, scope->widened, and_retry);
    return alloc_strf("this command in its sandbox (profile %s)%s", scope->profile, and_retry);
}

char *approval_covers(const struct approval_scope *scope)
{
    AUTO_FREE char *once = covers_once(scope);
    AUTO_FREE char *later = later_patches(scope->patched);

    return alloc_strf("%s%s", once, later);
}
