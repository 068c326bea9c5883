/* The attack program: finds the attack by name and runs it (attack.h says how it reports).
 *
 * Every attack is harmless where it succeeds: it touches only what the harness made for it, or
 * opens and closes, or writes back what was there. None of them cleans up; the harness does. */
#include "attack.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct attack *const tables[] = {
    file_attacks,    mount_attacks,     network_attacks, ring_attacks,     ipc_attacks,
    process_attacks, namespace_attacks, kernel_attacks,  terminal_attacks, resource_attacks,
    name_attacks,    race_attacks,      guard_attacks,
};

int won(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    printf("@won ");
    vprintf(fmt, args);
    va_end(args);
    printf("\n");
    fflush(stdout);
    return 0;
}

int lost(const char *fmt, ...)
{
    int error = errno;
    va_list args;
    va_start(args, fmt);
    printf("@lost ");
    vprintf(fmt, args);
    va_end(args);
    printf(": %s\n", strerror(error));
    fflush(stdout);
    return 1;
}

int judge(long result, const char *what)
{
    return result < 0 ? lost("%s", what) : won("%s = %ld", what, result);
}

void note(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    printf("@");
    vprintf(fmt, args);
    va_end(args);
    printf("\n");
    fflush(stdout);
}

long number(const char *text)
{
    char *end;
    long value = strtol(text, &end, 0);
    if (*text == '\0' || *end != '\0') {
        fprintf(stderr, "attacks: not a number: %s\n", text);
        exit(2);
    }
    return value;
}

static const struct attack *attack_find(const char *name)
{
    for (size_t t = 0; t < sizeof tables / sizeof tables[0]; t++)
        for (const struct attack *a = tables[t]; a->name != NULL; a++)
            if (strcmp(a->name, name) == 0)
                return a;
    return NULL;
}

int main(int argc, char **argv)
{
    const struct attack *attack = argc < 2 ? NULL : attack_find(argv[1]);
    if (attack == NULL || argc - 2 < attack->args) {
        fprintf(stderr, "attacks: no such attack, or words missing behind it\n");
        return 2;
    }
    note("start %s", attack->name);
    return attack->run(argc - 2, argv + 2);
}
