/* Layers of the real store whose steps are written by hand, as overlayfs would have left them: for what takes from them and
 * needs no mount. As text, a line for a path:
 *
 *     f a/b TEXT      a file, 0644; with its directories
 *     x a/b TEXT      the same, 0755
 *     d a             a directory
 *     l a TARGET      a link
 *     p a             a pipe
 *     m a             what is there is 0777 from then on
 *     r a             what is there is 0555 from then on
 *     w a             a whiteout        (of a step)
 *     o a             opaque            (of a step)
 *     c a/b TEXT      a file that was copied from below      (of a step) */
#pragma once

#include "base/buf.h"
#include "layer/accept.h"
#include "layer/change.h"
#include "layer/layer.h"

#include <stdbool.h>

struct hand {
    char *dir;  /* scratch; state/ and real/ in it */
    char *real; /* the root */
    char *id;   /* of the layer */
    struct layer *layer;
    bool
        is_hasty; /* steps begin in the future, so that nothing conflicts and nothing is waited for */
    bool is_far;
};

/* `real` is what is real, old enough for the step that is made next. `far`: as if the layer were on another file system. */
void hand_init(struct hand *hand, const char *real, bool is_far);
void hand_done(struct hand *hand);

/* A step that has begun now, after all that there is, and has ended. Returns its number. */
int hand_step(struct hand *hand, const char *text);

void hand_add(struct hand *hand, int step, const char *text); /* writes more into one */

void hand_write(const char *dir, const char *text); /* makes what the lines say */

void hand_live(struct hand *hand, bool does); /* as if commands lived in it */
void hand_close(struct hand *hand);
void hand_open(struct hand *hand);                /* recovers */
void hand_lend(struct hand *hand, bool is_alive); /* as a server, which has it, does to a helper */

/* All that is real, a line for each: type, permissions, mtime where `with_times`, path, contents. */
void hand_snapshot(const char *dir, bool with_times, struct buf *ret);

/* Fails the test unless what is real is so (without times), or what would change is ("M a/b\n"). */
void assert_real(const struct hand *hand, const char *wanted);
void assert_listed(const struct hand *hand, const char *wanted);

size_t hand_list(const struct hand *hand); /* how many there are */

/* Accepts, drops, undoes all (`paths` NULL) or some (relative, NULL-terminated); "" or what was left: "b: conflict\n". The
 * caller frees. */
char *hand_accept(struct hand *hand, unsigned flags, const char *const *paths);
char *hand_drop(struct hand *hand, const char *const *paths);
char *hand_undo(struct hand *hand, int accept, const char *const *paths);
