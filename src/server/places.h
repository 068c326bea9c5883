/* The places of a server; place.h says what one is. */
#pragma once

struct loop;
struct places;

/* `own_paths`: clean paths of Cordon's own, read-only to every command; `secrets`: canonical files
 * that no sandbox shows. Both NULL-terminated. */
struct places *places_new(struct loop *loop, char *const *own_paths, char *const *secrets);
void places_free(struct places *places); /* nobody holds one any more */

/* These files are hidden, too, in every place that is made from now on. */
void places_hide(struct places *places, char *const *secrets);

/* Every place is made anew when it is asked for again. */
void places_forget(struct places *places);
