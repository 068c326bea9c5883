/* See approval_policy.h: words, and what a profile comes to. */
#include "approval/approval_policy.h"

#include "base/str.h"
#include "policy/access.h"
#include "policy/profile.h"

#include <stddef.h>

static const char *const permission_names[] = {[SANDBOX_USE_DEFAULT] = "use_default",
                                               [SANDBOX_ESCALATED] = "require_escalated",
                                               [SANDBOX_WITH_ADDITIONAL] =
                                                   "with_additional_permissions",
                                               NULL};

/* The index of the word among the names; -1 when it is none. */
static int find_word(const char *const *names, const char *word)
{
    for (int i = 0; names[i]; i++)
        if (str_eq(names[i], word))
            return i;
    return -1;
}

int sandbox_permissions_parse(const char *word, enum sandbox_permissions *ret, struct err *err)
{
    int permissions = find_word(permission_names, word);

    if (permissions < 0)
        return err_set(err, ERR_INVALID,
                       "\"%s\" is no sandbox_permissions; there are use_default, "
                       "require_escalated and with_additional_permissions",
                       word);
    *ret = (enum sandbox_permissions)permissions;
    return 0;
}

const char *sandbox_permissions_name(enum sandbox_permissions permissions)
{
    return permission_names[permissions];
}

/* Temporary folders of others are no reason to keep a command in. */
static bool has_denied_reads(const struct access_map *access)
{
    for (size_t i = 0; i < access->len; i++)
        if (access->entries[i].access == ACCESS_DENY && !access->entries[i].is_others_tmp)
            return true;
    return false;
}

enum confinement confinement_of(const struct profile *profile, const struct access_map *access,
                                bool has_sandbox)
{
    if (profile->kind == PROFILE_EXTERNAL)
        return CONFINEMENT_EXTERNAL;
    if (profile->kind == PROFILE_DISABLED || !access->restricted)
        return CONFINEMENT_NONE;
    if (has_denied_reads(access))
        return has_sandbox ? CONFINEMENT_DENIED_READS : CONFINEMENT_MISSING_DENIED_READS;
    return has_sandbox ? CONFINEMENT_SANDBOX : CONFINEMENT_MISSING;
}

bool confinement_denies_reads(enum confinement confinement)
{
    return confinement == CONFINEMENT_DENIED_READS ||
           confinement == CONFINEMENT_MISSING_DENIED_READS;
}
