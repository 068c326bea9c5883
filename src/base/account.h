/* The account of the user who runs us, in the local user database. */
#pragma once

/* What /etc/passwd says; NULL when there is no account, or it says nothing. */
struct account {
    char *home; /* absolute and clean */
    char *shell;
};

void account_find(struct account *ret);

void account_done(struct account *account);
