/* What the options of `run` say of the sandbox, in the words of our own protocol (docs/protocol.md, "The sandbox object"). Pure. */
#include "client/run.h"

#include "base/auto.h"
#include "base/json.h"
#include "policy/network_policy.h"

#include <stdlib.h>

int client_add_texts(json_t *object, const char *key, char *const *texts, struct err *err)
{
    json_t *list = json_array();

    for (; texts && *texts; texts++)
        if (json_array_append_new(list, json_string(*texts))) {
            json_decref(list);
            return err_set(err, ERR_INVALID, "--%s: only UTF-8 goes over the wire", key);
        }
    if (json_array_size(list))
        return json_object_set_new(object, key, list);
    json_decref(list);
    return 0;
}

/* As they were written, which is ASCII. */
static void add_hosts(json_t *object, const char *key, const struct network_policy *hosts,
                      enum network_verdict verdict)
{
    json_t *list = json_array();

    for (size_t i = 0; i < hosts->rules_len; i++) {
        AUTO_FREE char *text = host_pattern_format(&hosts->rules[i].pattern, hosts->rules[i].port);

        if (hosts->rules[i].verdict == verdict)
            json_array_append_new(list, json_string(text));
    }
    if (json_array_size(list))
        json_object_set(object, key, list);
    json_decref(list);
}

static void add_host_ports(json_t *object, const struct network_policy *hosts)
{
    json_t *list = hosts->host_ports_len ? json_array() : NULL;

    for (size_t i = 0; i < hosts->host_ports_len; i++)
        json_array_append_new(list, json_integer(hosts->host_ports[i]));
    if (list)
        json_object_set_new(object, "hostPorts", list);
}

/* A profile of the server's user, by its name, or the one that the configuration there says: what is in
 * it, and the rules beside it, are found there. */
int client_run_sandbox(const struct client_run *options, const char *cwd, json_t **ret,
                       struct err *err)
{
    AUTO_JSON json_t *named =
        json_pack("{s:s?, s:s, s:s*, s:s*, s:s*, s:s*, s:s*, s:s*}", "profile", options->profile,
                  "cwd", cwd, "network", options->network, "watch", options->watch, "judge",
                  options->judge, "git", options->git, "mode", options->mode, "tmp", options->tmp);

    if (!named)
        return err_set(err, ERR_INVALID, "--profile: only UTF-8 goes over the wire");
    if (client_add_texts(named, "deny", options->deny, err) ||
        client_add_texts(named, "readable", options->readable, err) ||
        client_add_texts(named, "writable", options->writable, err) ||
        client_add_texts(named, "sockets", options->sockets, err) ||
        client_add_texts(named, "with", options->presets, err) ||
        client_add_texts(named, "protect", options->protect, err))
        return -1;
    if (options->has_protect && !json_object_get(named, "protect")) /* none */
        json_object_set_new(named, "protect", json_array());
    if (options->hosts) {
        add_hosts(named, "allowHosts", options->hosts, NETWORK_ALLOW);
        add_hosts(named, "denyHosts", options->hosts, NETWORK_DENY);
        add_host_ports(named, options->hosts);
        if (options->hosts->publications.len)
            json_object_set_new(named, "publish",
                                publications_to_json(&options->hosts->publications));
        if (options->hosts->allow_local_binding)
            json_object_set_new(named, "allowLocalBinding", json_true());
    }
    *ret = json_incref(named);
    return 0;
}
