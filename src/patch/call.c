/* See call.h. This decides that a command is not run, so it takes exactly the forms that it knows
 * and leaves everything else to the shell: an option more, a redirection, a second command, a
 * comment, anything behind the end of the heredoc. What a shell would have done to an unquoted
 * heredoc (expand $ and backticks) is not done: nothing of the text is executed. */
#include "patch/call.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/path.h"
#include "base/str.h"
#include "base/strv.h"
#include "patch/lines.h"
#include "patch/patch.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

const char patch_call_advice[] =
    "this is a patch without its command: call apply_patch with the patch as its only argument, or "
    "in a shell apply_patch <<'EOF', the patch, and EOF on a line of its own";

void patch_call_done(struct patch_call *call)
{
    free(call->text);
    free(call->dir);
    *call = (struct patch_call){.kind = PATCH_CALL_NONE};
}

static const char *const names[] = {"apply_patch", "applypatch", NULL};

static bool is_one_of(const char *const *words, const char *text, size_t len)
{
    for (; *words; words++)
        if (strlen(*words) == len && memcmp(*words, text, len) == 0)
            return true;
    return false;
}

/* --- which argument is a script --- */

/* "pwsh", "C:\...\PowerShell.exe", in any case */
static bool is_windows_program(const char *program, const char *wanted)
{
    const char *name = path_name(program);
    const char *slash = strrchr(name, '\\');
    size_t len;

    name = slash ? slash + 1 : name;
    len = strlen(name);
    if (len > 4 && strcasecmp(name + len - 4, ".exe") == 0)
        len -= 4;
    return strlen(wanted) == len && strncasecmp(name, wanted, len) == 0;
}

static const char *powershell_script(char *const *argv)
{
    if (!is_windows_program(argv[0], "pwsh") && !is_windows_program(argv[0], "powershell"))
        return NULL;
    argv++;
    if (*argv && strcasecmp(*argv, "-NoProfile") == 0)
        argv++;
    if (!argv[0] || strcasecmp(argv[0], "-Command") != 0 || !argv[1] || argv[2])
        return NULL;
    return argv[1];
}

/* The script that the command line has a shell run; NULL: it is none of the known forms. */
static const char *find_script(char *const *argv)
{
    if (argv[1] && argv[2] && !argv[3]) {
        static const char *const shells[] = {"bash", "zsh", "sh", NULL};
        const char *name = path_name(argv[0]);

        if (is_one_of(shells, name, strlen(name)) &&
            (str_eq(argv[1], "-c") || str_eq(argv[1], "-lc")))
            return argv[2];
        if (is_windows_program(argv[0], "cmd") && strcasecmp(argv[1], "/c") == 0)
            return argv[2];
    }
    return powershell_script(argv);
}

/* --- reading a script --- */

static void skip(const char **at, const char *what)
{
    *at += strspn(*at, what);
}

static bool take(const char **at, const char *text)
{
    if (!str_starts(*at, text))
        return false;
    *at += strlen(text);
    return true;
}

/* Characters that a shell takes as they are. A path may hold any byte beyond ASCII. */
static size_t plain_len(const char *text, const char *more)
{
    size_t len = 0;

    while (text[len] && ((unsigned char)text[len] >= 0x80 || isalnum((unsigned char)text[len]) ||
                         strchr(more, text[len])))
        len++;
    return len;
}

/* One word without anything that a shell would expand; its text, owned, or NULL. */
static char *take_word(const char **at, const char *plain)
{
    static const char *const specials[] = {['\''] = "'\n", ['"'] = "\"\\$`!\n"};
    char quote = **at;
    size_t len;
    char *word;

    if (quote != '\'' && quote != '"') {
        len = plain_len(*at, plain);
        word = len ? alloc_strn(*at, len) : NULL;
        *at += len;
        return word;
    }
    len = strcspn(*at + 1, specials[(unsigned char)quote]);
    if (len == 0 || (*at)[len + 1] != quote)
        return NULL;
    word = alloc_strn(*at + 1, len);
    *at += len + 2;
    return word;
}

/* `cd DIR &&`. False when there is something that begins so and goes on otherwise. */
static bool take_cd(const char **at, char **ret)
{
    if (!str_starts(*at, "cd ") && !str_starts(*at, "cd\t"))
        return true;
    *at += 2;
    skip(at, " \t");
    if (**at == '-' || **at == '~')
        return false;
    *ret = take_word(at, "_./@%+,:=-~");
    skip(at, " \t");
    if (!*ret || !take(at, "&&"))
        return false;
    skip(at, " \t\n");
    return true;
}

/* From behind the line of the opener to the end of the script; false when the delimiter is missing,
 * or more than blank lines follow it. */
static bool take_body(const char *at, const char *delimiter, bool drops_tabs,
                      struct patch_call *call)
{
    const struct span last = {delimiter, strlen(delimiter)};
    char *body = alloc_zero(strlen(at) + 1, 1);
    size_t len = 0;

    while (*at) {
        const char *start = at + (drops_tabs ? strspn(at, "\t") : 0);
        struct span line = {start, strcspn(start, "\n")};
        const char *next = line.text + line.len;

        if (span_eq(line, last) && next[strspn(next, " \t\n\r")] == '\0') {
            call->text = body;
            call->text_len = len;
            return true;
        }
        if (span_eq(line, last))
            break;
        memcpy(body + len, line.text, line.len);
        len += line.len;
        at = next;
        if (*at == '\n')
            body[len++] = *at++;
    }
    free(body);
    return false;
}

static bool take_heredoc(const char *at, struct patch_call *call)
{
    bool drops_tabs;
    char *delimiter;
    bool is_taken;

    skip(&at, " \t");
    if (!take(&at, "<<"))
        return false;
    drops_tabs = take(&at, "-");
    skip(&at, " \t");
    delimiter = take_word(&at, "_");
    skip(&at, " \t\r");
    is_taken = delimiter && take(&at, "\n") && take_body(at, delimiter, drops_tabs, call);
    free(delimiter);
    return is_taken;
}

/* `cd DIR && apply_patch <<EOF`, the cd left out or not, and nothing else. */
static bool read_script(const char *script, struct patch_call *call)
{
    size_t len;

    skip(&script, " \t\n");
    if (!take_cd(&script, &call->dir))
        return false;
    len = plain_len(script, "_");
    return is_one_of(names, script, len) && take_heredoc(script + len, call);
}

/* --- the whole --- */

/* A text that no shell could run anyway. */
static bool is_bare_patch(const char *text)
{
    static const char first[] = "*** Begin Patch";
    struct span line;

    text += strspn(text, " \t\r\n");
    line = span_trim((struct span){text, strcspn(text, "\n")});
    return span_eq(line, (struct span){first, sizeof first - 1});
}

void patch_call_read(char *const *argv, struct patch_call *ret)
{
    const char *script;

    *ret = (struct patch_call){.kind = PATCH_CALL_NONE};
    if (!argv[0])
        return;
    if (argv[1] && !argv[2] && is_one_of(names, argv[0], strlen(argv[0]))) {
        *ret = (struct patch_call){
            .kind = PATCH_CALL_PATCH, .text = alloc_str(argv[1]), .text_len = strlen(argv[1])};
        return;
    }
    script = argv[1] ? find_script(argv) : argv[0];
    if (!script)
        return;
    if (is_bare_patch(script))
        ret->kind = PATCH_CALL_BARE;
    else if (argv[1] && read_script(script, ret))
        ret->kind = PATCH_CALL_PATCH;
    else
        patch_call_done(ret);
}

void patch_call_paths(const struct patch_call *call, const char *root, struct strv *ret)
{
    AUTO(strv_done) struct strv paths = {0};
    struct err ignored; /* applying it says what is wrong */
    AUTO(patch_auto) struct patch *patch = patch_parse(call->text, call->text_len, &ignored);

    if (!patch)
        return;
    patch_paths(patch, &paths);
    for (size_t i = 0; i < paths.len; i++)
        strv_push_take(ret, path_clean(root, paths.items[i]));
}
