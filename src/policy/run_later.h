/* Files that other programs run or obey by themselves, later and outside of every sandbox: build files, hooks, CI
 * jobs, instructions of agents. They are no protected names, since they are what people have commands
 * change; so whoever wants it is told which were. */
#pragma once

/* Who does, for people: "make", "git and its hooks", "agents"; NULL: nobody that is known. By the name alone, and
 * those of the directories above it. */
const char *run_later_by(const char *path);

/* The same of what a directory of that name would hold, or one below it: for links, which stand for one. */
const char *run_later_through(const char *path);
