/* [permissions.NAME.network] for config_profile.c. */
#pragma once

#include "base/err.h"
#include "policy/access.h"
#include "policy/config/config.h"

struct config_chain;

void network_settings_done(struct network_settings *settings);

/* Reads the merged table. `*ret_access` is what it says about the network as a whole. `ret` is for
 * the caller to clear, also on failure. ERR_UNSUPPORTED for rules on the content of connections
 * (`mitm`), which nothing here would enforce. */
int config_network(const struct config_chain *chain, struct network_settings *ret,
                   enum network_access *ret_access, struct err *err);
