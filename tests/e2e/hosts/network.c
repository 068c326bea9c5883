/* `network [WORD VALUE]... COMMAND`: runs COMMAND with sh, under a policy of what the words say, and prints what it says,
 * where it is published, and what was refused. */
#include <cordon.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX = 8 };

static struct lists {
    const char *allow[MAX], *deny[MAX], *publish[MAX], *credentials[MAX];
    unsigned ports[MAX];
} lists;

static void add(const char **list, const char *value)
{
    while (*list)
        list++;
    *list = value;
}

static void read_word(const char *word, const char *value, struct cordon_policy *policy)
{
    if (!strcmp(word, "allow"))
        add(lists.allow, value);
    else if (!strcmp(word, "deny"))
        add(lists.deny, value);
    else if (!strcmp(word, "publish"))
        add(lists.publish, value);
    else if (!strcmp(word, "credential"))
        add(lists.credentials, value);
    else if (!strcmp(word, "port"))
        lists.ports[0] = (unsigned)atoi(value);
    else if (!strcmp(word, "local"))
        policy->allow_local_binding = 1;
    else if (!strcmp(word, "network"))
        policy->network = atoi(value);
}

int main(int argc, char **argv)
{
    struct cordon_policy policy = {.size = sizeof policy};
    struct cordon_engine_options options = {
        .size = sizeof options, .config = "", .policy = &policy};
    const char *const command[] = {"sh", "-c", argv[argc - 1], NULL};
    const struct cordon_run_options run = {.size = sizeof run, .argv = command};
    struct cordon_engine *engine = NULL;
    struct cordon_result *result = NULL;
    struct cordon_error error;

    for (int i = 1; i + 2 < argc; i += 2)
        read_word(argv[i], argv[i + 1], &policy);
    policy.allow_hosts = lists.allow;
    policy.deny_hosts = lists.deny;
    policy.publish = lists.publish;
    policy.credentials = lists.credentials;
    policy.host_ports = lists.ports;
    if (cordon_open(&options, &engine, &error) || cordon_run(engine, &run, &result, &error)) {
        printf("error: %s\n", error.message);
        cordon_close(engine);
        return 1;
    }
    printf("%s", result->output[0]);
    for (const char *const *at = result->published; *at; at++)
        printf("published %s\n", *at);
    printf("denial %s\n", result->denial ? result->denial : "none");
    cordon_result_free(result);
    cordon_close(engine);
    return 0;
}
