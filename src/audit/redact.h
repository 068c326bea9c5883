/* Takes secrets out of a command line before it is written to the audit log. Pure.
 *
 * What counts as one: the value of an environment variable whose name says so; what follows a name
 * that says so ("--token=...", "API_KEY=...", "Authorization: ..."); what follows an option that is a password's
 * in the program that is named (curl -u, mysql -p, ...); a password in a URL; private keys in PEM; and
 * words that look like the keys of well-known services. A guess by its nature: it hides too much rather
 * than too little, and a secret that looks like any other word stays. */
#pragma once

struct json_t;
struct strv;

#define AUDIT_REDACTED "[redacted]"

/* Adds the variables whose values count: who redacts later keeps these. `env` may be NULL. */
void audit_secrets(char *const *env, struct strv *ret);

/* The text without secrets, owned by the caller. `env` ("NAME=VALUE", NULL-terminated) may be
 * NULL. */
char *audit_redact(const char *text, char *const *env);

/* A JSON array of the words (NULL: none), each without secrets; also what follows an option like --password is
 * taken out. Words beyond 8 KiB in all are left out, and how many they are is the last word. New reference. */
struct json_t *audit_redact_words(char *const *words, char *const *env);
