/* The calls that make a name, each by itself: what names.c tries with every spelling of a path, and
 * race.c while somebody changes that path. */
#pragma once

struct maker {
    const char *name;
    /* What `make` gets beside the path, made anew in the current scene before each call. */
    enum maker_source { SOURCE_NONE, SOURCE_FILE, SOURCE_FOLDER } source;
    int has_dir;     /* takes a directory descriptor; else only the current one */
    int is_follower; /* makes what a dangling symlink at the end leads to */
    int is_folder;   /* makes a folder: a path may end in a slash */
    long (*make)(int dir, const char *path, const char *source);
};

extern const struct maker makers[]; /* ends with one without a name */

/* Ends the program when there is none of that name. */
const struct maker *maker_find(const char *name);

/* Makes `source`, where it is missing, as the maker needs it. */
void maker_prepare(const struct maker *maker, const char *source);

/* Removes whatever is there. */
void remove_name(const char *path);
