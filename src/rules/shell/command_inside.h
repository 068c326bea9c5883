/* Programs that run another program, given among their words: where in an argv the other one is.
 *
 *     timeout -k 5 60 make test        make test
 *     find . -exec rm -f {} +          rm -f {}
 *     bash -c "make test"              the script "make test"
 *     env -S "make test"               unreadable: runs something, but not in a way that we read
 *
 * By base name, whatever directory it is in, because this is used to find what is dangerous and to
 * refuse what is unclear, never to show that something is harmless. Programs that can run others in
 * a way of their own (git, make, awk, ssh, ...) are not followed: their own name stands for it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { COMMAND_PARTS_MAX = 8 }; /* find can have several -exec; more are unreadable */

struct command_part {
    size_t from; /* words[from] .. words[to - 1] */
    size_t to;
    enum {
        PART_ARGV,
        PART_BUILTIN, /* an argv that the shell itself runs: behind command, exec, builtin */
        PART_SCRIPT,  /* a shell script: the words joined by blanks */
    } kind;
    /* More words are put behind it or in place of a mark in it (xargs, find). */
    bool open;
    bool more;    /* they come behind it */
    size_t exact; /* so many of its words are known; fewer than all where xargs replaces a mark */
};

struct command_inside {
    struct command_part parts[COMMAND_PARTS_MAX];
    size_t len;
    const char *unreadable; /* why, static; NULL when `parts` is all that is run */
    bool is_runner;         /* the name is one of those, whether or not it runs something here */
    /* Not 0: some of the words from this one on may be a command, of a program that has other uses, too (git
     * submodule foreach, docker exec, npx). */
    size_t may_be_from;
};

/* `open`: further words follow that are not known, so a program without another one in its words is
 * unreadable. Pure. */
void command_inside_find(char *const *words, size_t len, bool open, struct command_inside *ret);
