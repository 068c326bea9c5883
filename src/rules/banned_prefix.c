/* See banned_prefix.h: programs that run whatever they are given, by themselves or with the option
 * that takes a program as text. The program is compared by its base name, so that a path to it is
 * no way around. */
#include "rules/banned_prefix.h"

#include "base/path.h"
#include "base/str.h"

#include <stddef.h>
#include <string.h>

struct banned {
    const char *programs; /* with blanks between */
    const char *options;  /* banned as the only other word; NULL: none */
};

static const struct banned banned[] = {
    {"bash sh zsh dash ksh fish", "-c -lc -ic -l -i"},
    {"pwsh powershell pwsh.exe powershell.exe",
     "-Command -command -c -EncodedCommand -File -NoProfile"},
    {"cmd cmd.exe", "/c /C /k"},
    {"python python2 python3 pypy pypy3 uv", "-c -m -"},
    {"node nodejs deno bun ts-node tsx", "-e --eval -p --print eval run x"},
    {"perl ruby lua luajit julia R Rscript osascript", "-e -E -"},
    {"php", "-r -"},
    {"npm pnpm yarn npx bunx", "run exec dlx"},
    {"git env sudo doas su rm xargs eval nohup nice timeout command", NULL},
};

static bool has_word(const char *words, const char *word)
{
    size_t len = strlen(word);

    if (!len || strchr(word, ' '))
        return false;
    for (const char *at = words; (at = strstr(at, word)); at++)
        if ((at == words || at[-1] == ' ') && (at[len] == ' ' || !at[len]))
            return true;
    return false;
}

bool prefix_is_banned(char *const *prefix)
{
    const char *program = prefix[0] ? path_name(prefix[0]) : "";
    size_t len = 0;

    while (prefix[len])
        len++;
    for (size_t i = 0; i < sizeof banned / sizeof *banned; i++) {
        if (!has_word(banned[i].programs, program))
            continue;
        if (len == 1 || (len == 2 && banned[i].options && has_word(banned[i].options, prefix[1])))
            return true;
    }
    return false;
}
