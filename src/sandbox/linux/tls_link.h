/* cordon-tls (src/tls) as its host sees it: one process for all sandboxes of this one whose proxy ends TLS, with an
 * authority of its own that only commands in those sandboxes trust.
 *
 *     tls_link_open()       it runs, and there is a file with its certificate
 *     tls_link_leave()      with the last one it ends, and the file goes */
#pragma once

#include "base/err.h"
#include "base/strv.h"

#include <stdbool.h>

struct access_map;

/* Joins: the program runs, the file with its certificate is there, which `access` shows, and by `env` programs find it. `launcher`
 * is where programs are looked for. */
int tls_link_open(const char *launcher, bool dies_with_thread, struct access_map *access,
                  struct strv *env, struct err *err);
void tls_link_leave(void);

/* Between those: the control socket for proxies. */
int tls_link_control(void);
