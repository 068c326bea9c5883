/* One tree and one step in which there is every kind of change: for tests of what fails midway. */
#pragma once

#define TREE_REAL_TEXT                                                                             \
    "f mod old\nf gone g\nl link here\nf type file\nf dir/a a\nf dir/b b\nf tree/one 1\n"          \
    "f swap/x x\nf flat f\n"                                                                       \
    "f shut/a a\nf shut/b b\nr shut\n"
#define TREE_STEP_TEXT                                                                             \
    "c mod new\nw gone\nl type there\nf new/file n\no dir\nf dir/c c\nf dir/b b\nw tree\nf swap "  \
    "s\n"                                                                                          \
    "f flat/in i\nc shut/a 1\nw shut/b\nr shut\nf tight/in i\nr tight\n"
#define TREE_REAL_LINES                                                                            \
    "d 755 .\nd 755 dir\nf 644 dir/a a\nf 644 dir/b b\nf 644 flat f\nf 644 gone g\n"               \
    "l 777 link here\nf 644 mod old\nd 555 shut\nf 644 shut/a a\nf 644 shut/b b\nd 755 swap\nf "   \
    "644 swap/x x\nd 755 tree\n"                                                                   \
    "f 644 tree/one 1\nf 644 type file\n"
#define TREE_NEW_LINES                                                                             \
    "d 755 .\nd 755 dir\nf 644 dir/b b\nf 644 dir/c c\nd 755 flat\nf 644 flat/in i\n"              \
    "l 777 link here\nf 644 mod new\nd 755 new\nf 644 new/file n\nd 555 shut\nf 644 shut/a 1\n"    \
    "f 644 swap s\nd 555 tight\nf 644 tight/in i\nl 777 type there\n"
#define TREE_LISTED                                                                                \
    "D dir/a\nA dir/c\nD flat\nA flat\nA flat/in\nD gone\nM mod\nA new\nA new/file\n"              \
    "M shut/a\nD shut/b\nD swap\nA swap\nD swap/x\nA tight\nA tight/in\nD tree\nD tree/one\nT "    \
    "type\n"
