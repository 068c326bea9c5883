/* See sandbox_request.h. Two generations of the object are told apart by `permissions`, which only
 * the newer one has (that of Codex 0.169.0); the older is SandboxLaunchConfig of Codex before that. Each
 * gets its answer in its own spelling: "linuxSeccomp" or "linux-seccomp".
 *
 * Unknown fields are ignored, but never inside a profile's older closed forms: what is not
 * understood there could narrow it. */
#include "server/sandbox_request.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/json.h"
#include "base/log.h"
#include "base/path.h"
#include "base/program.h"
#include "base/str.h"
#include "layer/layer.h"
#include "policy/narrow.h"
#include "policy/profile_json.h"
#include "server/rpc_path.h"
#include "timeline/timeline.h"
#include "workspace/workspace.h"

#include <string.h>

void sandbox_request_done(struct sandbox_request *request)
{
    profile_done(&request->profile);
    strv_done(&request->roots);
}

/* A URI, or the plain path of the older generation. Caller frees. */
static char *read_path(const struct json_at *at, enum rpc_code *ret_code, struct err *err)
{
    const char *text;
    char *path;

    if (json_at_string(at, &text, err))
        return NULL;
    if (text[0] == '/')
        return path_clean("/", text);
    path = rpc_path_parse(text, ret_code, err);
    if (!path) {
        AUTO_FREE char *where = json_at_path(at);

        err_wrap(err, "%s", where);
    }
    return path;
}

/* An array of such, or nothing. */
static int read_paths(const struct json_at *list, struct strv *ret, enum rpc_code *ret_code,
                      struct err *err)
{
    size_t len = 0;

    if (json_at_is_given(list) && json_at_array(list, &len, err))
        return -1;
    for (size_t i = 0; i < len; i++) {
        struct json_at item = json_at_item(list, i);
        char *path = read_path(&item, ret_code, err);

        if (!path)
            return -1;
        strv_push_take(ret, path);
    }
    return 0;
}

/* --- 0.169.0 --- */

/* Whether entries count from the workspace: then the call has to say where that is. */
static bool needs_dir(const struct profile *profile)
{
    for (size_t i = 0; i < profile->entries.len; i++) {
        const struct profile_entry *entry = &profile->entries.items[i];

        if (entry->path_kind == PROFILE_PATH_PROJECT_ROOTS ||
            (entry->path_kind == PROFILE_PATH_GLOB && entry->path[0] != '/'))
            return true;
    }
    return false;
}

/* The nested spelling is the newer one and comes first. */
static struct json_at field_of_context(const struct json_at *root, struct json_at *context,
                                       const char *name)
{
    struct json_at field;

    *context = json_at_field(root, "policyContext");
    field = json_at_field(context, name);
    return json_at_is_given(&field) ? field : json_at_field(root, name);
}

static int read_roots(const struct json_at *root, struct sandbox_request *ret,
                      enum rpc_code *ret_code, struct err *err)
{
    struct json_at context;
    struct json_at list = field_of_context(root, &context, "workspaceRoots");

    return read_paths(&list, &ret->roots, ret_code, err);
}

static int check_cwd(const struct json_at *root, const char *cwd, struct sandbox_request *ret,
                     enum rpc_code *ret_code, struct err *err)
{
    struct json_at context;
    struct json_at dir = field_of_context(root, &context, "cwd");
    AUTO_FREE char *path = NULL;

    if (json_at_is_given(&dir)) {
        path = read_path(&dir, ret_code, err);
        return path ? 0 : -1;
    }
    if (!cwd && needs_dir(&ret->profile))
        return json_at_fail(&dir, err, "is needed by entries that count from the workspace");
    return 0;
}

static int read_released(const struct json_at *root, const char *cwd, struct sandbox_request *ret,
                         enum rpc_code *ret_code, struct err *err)
{
    static const char *const levels[] = {"disabled", "restricted-token", "elevated", "mxc", NULL};
    AUTO(strv_done) struct strv ignored = {0};
    struct json_at permissions = json_at_field(root, "permissions");
    struct json_at level = json_at_field(root, "windowsSandboxLevel");
    struct json_at context = json_at_field(root, "policyContext");
    struct json_at legacy = json_at_field(root, "useLegacyLandlock");
    bool ignored_flag;
    size_t word;

    if (!level.value)
        return err_set(err, ERR_INVALID, "missing field `windowsSandboxLevel`");
    if (json_at_word(&level, levels, &word, err) ||
        (json_at_is_given(&context) && json_at_object(&context, err)) ||
        (json_at_is_given(&legacy) && json_at_bool(&legacy, &ignored_flag, err)) ||
        profile_from_json(permissions.value, &ignored, &ret->profile, err) ||
        read_roots(root, ret, ret_code, err) || check_cwd(root, cwd, ret, ret_code, err))
        return -1;
    ret->mode = ret->profile.kind == PROFILE_DISABLED ? SANDBOX_DISABLED : SANDBOX_AUTO;
    ret->type = "linuxSeccomp";
    return 0;
}

/* --- before 0.169.0 --- */

/* {kind, entries} and a network word (may be NULL) become the tagged profile. NULL on failure. */
static json_t *tagged_profile(const struct json_at *files, json_t *network, struct err *err)
{
    static const char *const kinds[] = {"restricted", "unrestricted", "external-sandbox", NULL};
    static const char *const parts[] = {"entries", "glob_scan_max_depth"};
    struct json_at kind = json_at_field(files, "kind");
    json_t *tagged;
    json_t *inner;
    size_t which;

    if (json_at_object(files, err) || json_at_word(&kind, kinds, &which, err))
        return NULL;
    tagged = json_pack("{s:s}", "type", which == 2 ? "external" : "managed");
    json_object_set_new(tagged, "network",
                        network ? json_incref(network) : json_string("restricted"));
    if (which == 2)
        return tagged;
    inner = json_pack("{s:s}", "type", kinds[which]);
    for (int i = 0; which == 0 && i < 2; i++)
        json_object_set(inner, parts[i], json_object_get(files->value, parts[i]));
    json_object_set_new(tagged, "file_system", inner);
    return tagged;
}

static int read_older_profile(const struct json_at *root, struct sandbox_request *ret,
                              struct err *err)
{
    struct json_at files = json_at_field(root, "fileSystemPolicy");
    struct json_at policy = json_at_field(root, "policy");
    AUTO_JSON json_t *tagged = NULL;

    if (!json_at_is_given(&files)) {
        if (!policy.value)
            return err_set(err, ERR_INVALID, "missing field `permissions`");
        return profile_from_json(policy.value, NULL, &ret->profile, err);
    }
    tagged = tagged_profile(&files, json_object_get(root->value, "networkPolicy"), err);
    return tagged ? profile_from_json(tagged, NULL, &ret->profile, err) : -1;
}

/* The directory of the command is no stand-in for the policy's: a model chooses it. */
static int read_older(const struct json_at *root, struct sandbox_request *ret,
                      enum rpc_code *ret_code, struct err *err)
{
    static const char *const words[] = {"disabled", "auto", "require", NULL};
    static const enum sandbox_mode modes[] = {SANDBOX_DISABLED, SANDBOX_AUTO, SANDBOX_REQUIRE};
    struct json_at mode = json_at_field(root, "mode");
    struct json_at dir = json_at_field(root, "sandboxPolicyCwd");
    size_t word;
    char *path;

    if (json_at_word(&mode, words, &word, err) || read_older_profile(root, ret, err))
        return -1;
    if (!dir.value)
        return err_set(err, ERR_INVALID, "missing field `sandboxPolicyCwd`");
    path = read_path(&dir, ret_code, err);
    if (!path)
        return -1;
    strv_push_take(&ret->roots, path);
    ret->mode = ret->profile.kind == PROFILE_DISABLED ? SANDBOX_DISABLED : modes[word];
    ret->type = ret->mode == SANDBOX_DISABLED ? "none" : "linux-seccomp";
    return 0;
}

int sandbox_request_read(const json_t *object, const char *cwd, struct sandbox_request *ret,
                         enum rpc_code *ret_code, struct err *err)
{
    struct json_at root = json_at_root(object);
    AUTO(sandbox_request_done) struct sandbox_request request = {0};
    int status;

    *ret_code = RPC_INVALID_PARAMS;
    if (json_at_object(&root, err))
        return err_wrap(err, "sandbox");
    if (json_object_get(object, "mode") && !json_object_get(object, "permissions"))
        status = read_older(&root, &request, ret_code, err);
    else if (json_object_get(object, "permissions"))
        status = read_released(&root, cwd, &request, ret_code, err);
    else
        status = err_set(err, ERR_INVALID, "missing field `permissions`");
    if (status)
        return err_wrap(err, "sandbox");
    *ret = request;
    request = (struct sandbox_request){0};
    return 0;
}

/* --- by the name of a profile --- */

/* What is laid over a profile of this host, in the words of `cordon run`. */
struct named {
    const char *profile; /* borrowed; NULL: that of the configuration */
    char *cwd;
    enum workspace_network network;
    struct network_policy hosts;
    enum workspace_watch watch;
    enum workspace_judge judge;
    enum workspace_tmp tmp;
    enum workspace_git git;
    enum sandbox_mode mode;
    struct protect_choice protect;   /* not made: what the configuration says */
    struct workspace_entry *entries; /* their texts are borrowed */
    size_t entries_len;
    struct strv sockets;
    struct strv presets;
    struct strv roots;     /* in place of cwd */
    char *within;          /* what is in them is no wider than in this; NULL: it may be */
    struct profile narrow; /* if it is */
    bool is_narrowed;
};

static void named_done(struct named *named)
{
    free(named->cwd);
    free(named->entries);
    protect_choice_done(&named->protect);
    network_policy_done(&named->hosts);
    strv_done(&named->sockets);
    strv_done(&named->presets);
    strv_done(&named->roots);
    free(named->within);
    profile_done(&named->narrow);
}

bool sandbox_is_by_name(const json_t *sandbox)
{
    return json_is_string(sandbox) ? !str_eq(json_string_value(sandbox), SANDBOX_NONE)
                                   : json_object_get(sandbox, "profile") != NULL;
}

static int read_word(const struct json_at *root, const char *key, const char *const *words,
                     int *ret_number, struct err *err)
{
    struct json_at field = json_at_field(root, key);
    size_t word = 0;

    if (!json_at_is_given(&field))
        return 0;
    if (json_at_word(&field, words, &word, err))
        return -1;
    *ret_number = 1 + (int)word; /* 0 is what the profile says */
    return 0;
}

/* The texts live as long as the JSON. */
static int read_entries(const struct json_at *root, struct named *ret, struct err *err)
{
    static const char *const keys[] = {"deny", "readable", "writable"}; /* in the order of access */
    size_t cap = 0;

    for (int access = ACCESS_DENY; access <= ACCESS_WRITE; access++) {
        struct json_at list = json_at_field(root, keys[access]);
        size_t len = 0;

        if (json_at_is_given(&list) && json_at_array(&list, &len, err))
            return -1;
        for (size_t i = 0; i < len; i++) {
            struct json_at item = json_at_item(&list, i);
            const char *text;

            if (json_at_string(&item, &text, err))
                return -1;
            ret->entries = alloc_grow(ret->entries, ret->entries_len, &cap, sizeof *ret->entries);
            ret->entries[ret->entries_len++] =
                (struct workspace_entry){.access = (enum access)access, .text = text};
        }
    }
    return 0;
}

/* Sets and ./NAMEs; an empty list: only what is Cordon's. */
static int read_protect(const struct json_at *root, struct protect_choice *ret, struct err *err)
{
    AUTO(strv_done) struct strv words = {0};
    struct json_at list = json_at_field(root, "protect");

    if (!json_at_is_given(&list))
        return 0;
    if (json_at_strings(root, "protect", &words, err))
        return -1;
    ret->is_made = true;
    for (size_t i = 0; i < words.len; i++)
        if (protect_choice_add(ret, words.items[i], err))
            return err_wrap(err, "protect");
    return 0;
}

static int read_host_list(const struct json_at *root, const char *key, enum network_verdict verdict,
                          struct network_policy *ret, struct err *err)
{
    struct json_at list = json_at_field(root, key);
    size_t len = 0;

    if (json_at_is_given(&list) && json_at_array(&list, &len, err))
        return -1;
    for (size_t i = 0; i < len; i++) {
        struct json_at item = json_at_item(&list, i);
        const char *text;
        struct err why;
        AUTO_FREE char *origin = NULL;

        if (json_at_string(&item, &text, err))
            return -1;
        origin = alloc_strf("sandbox.%s %s", key, text);
        if (network_policy_add_text(ret, text, verdict, origin, &why))
            return json_at_fail(&item, err, "%s", why.msg);
    }
    return 0;
}

static int read_hosts(const struct json_at *root, struct network_policy *ret, struct err *err)
{
    struct json_at binding = json_at_field(root, "allowLocalBinding");
    struct json_at ports = json_at_field(root, "hostPorts");
    struct json_at publish = json_at_field(root, "publish");

    if (network_policy_read_host_ports(&ports, ret, err) ||
        publications_read(&publish, &ret->publications, err) ||
        read_host_list(root, "allowHosts", NETWORK_ALLOW, ret, err) ||
        read_host_list(root, "denyHosts", NETWORK_DENY, ret, err))
        return -1;
    return json_at_is_given(&binding) ? json_at_bool(&binding, &ret->allow_local_binding, err) : 0;
}

/* What of it is not known is left out: so it narrows less, and never widens. */
static int read_narrow(const struct json_at *root, struct named *ret, struct err *err)
{
    AUTO(strv_done) struct strv ignored = {0};
    struct json_at narrow = json_at_field(root, "narrow");

    ret->is_narrowed = json_at_is_given(&narrow);
    if (!ret->is_narrowed)
        return 0;
    if (profile_from_json(narrow.value, &ignored, &ret->narrow, err))
        return err_wrap(err, "narrow");
    for (size_t i = 0; i < ret->narrow.entries.len; i++) {
        char **origin = &ret->narrow.entries.items[i].origin;
        AUTO_FREE char *place = *origin;

        *origin = alloc_strf(PROFILE_OF_CLIENT ", %s", place);
    }
    return 0;
}

static int read_chosen_roots(const struct json_at *root, struct named *ret, enum rpc_code *ret_code,
                             struct err *err)
{
    struct json_at roots = json_at_field(root, "roots");
    struct json_at within = json_at_field(root, "within");

    if (read_paths(&roots, &ret->roots, ret_code, err))
        return -1;
    if (json_at_is_given(&within))
        ret->within = read_path(&within, ret_code, err);
    return json_at_is_given(&within) && !ret->within ? -1 : 0;
}

static int named_read(const json_t *object, struct named *ret, enum rpc_code *ret_code,
                      struct err *err)
{
    static const char *const keys[] = {
        "profile",  "cwd",     "network",    "watch",     "deny",      "readable",
        "writable", "sockets", "judge",      "mode",      "protect",   "with",
        "tmp",      "git",     "allowHosts", "denyHosts", "hostPorts", "allowLocalBinding",
        "publish",  "roots",   "within",     "narrow",    NULL};
    static const char *const judges[] = {"command", "every-exec", NULL};
    static const char *const gits[] = {"read", "commit", NULL};
    static const char *const modes[] = {"auto", "require", "disabled", "landlock", NULL};
    static const char *const watches[] = {"facts", "off", "ask", "learn", NULL};
    struct json_at root = json_at_root(object);
    struct json_at profile = json_at_field(&root, "profile");
    struct json_at cwd = json_at_field(&root, "cwd");
    int network = 0;
    int watch = 0;
    int judge = 0;
    int git = 0;
    int mode = 0;
    int tmp = 0;

    *ret_code = RPC_INVALID_PARAMS;
    if (json_at_check_keys(&root, keys, NULL, err) ||
        (json_at_is_given(&profile) && json_at_string(&profile, &ret->profile, err)) ||
        read_word(&root, "network", network_access_words, &network, err) ||
        read_word(&root, "watch", watches, &watch, err) ||
        read_word(&root, "judge", judges, &judge, err) ||
        read_word(&root, "git", gits, &git, err) ||
        read_word(&root, "tmp", profile_tmp_words, &tmp, err) ||
        read_word(&root, "mode", modes, &mode, err) || read_protect(&root, &ret->protect, err) ||
        read_hosts(&root, &ret->hosts, err) || read_entries(&root, ret, err) ||
        json_at_strings(&root, "sockets", &ret->sockets, err) ||
        json_at_strings(&root, "with", &ret->presets, err) || read_narrow(&root, ret, err) ||
        read_chosen_roots(&root, ret, ret_code, err))
        return -1;
    ret->network = (enum workspace_network)network;
    ret->watch = (enum workspace_watch)watch;
    ret->judge = (enum workspace_judge)judge;
    ret->tmp = (enum workspace_tmp)tmp;
    ret->git = (enum workspace_git)git;
    if (mode)
        ret->mode = (enum sandbox_mode)(SANDBOX_AUTO + mode - 1);
    if (json_at_is_given(&cwd))
        ret->cwd = read_path(&cwd, ret_code, err);
    return json_at_is_given(&cwd) && !ret->cwd ? -1 : 0;
}

/* --- workspaces --- */

struct workspaces *sandbox_workspaces_new(struct loop *loop, char *const *own_paths,
                                          char *const *secrets)
{
    struct err ignored; /* the first call that needs it says it */
    AUTO_FREE char *files = program_find("cordon-files", &ignored);
    AUTO_FREE char *patch = program_find("cordon", &ignored);
    const struct workspaces_options options = {
        .loop = loop,
        .config_path = "the server's configuration",
        .own_paths = own_paths,
        .secrets = secrets,
        .programs = {[SANDBOX_PROGRAM_FILES] = {files, "Cordon's helper for files"},
                     [SANDBOX_PROGRAM_PATCH] = {patch, "Cordon's helper for patches"}},
        .dies_with_thread = true,
    };

    return workspaces_new(&options);
}

unsigned sandbox_topics(const json_t *words)
{
    unsigned topics = 0;

    for (size_t i = 0; i < json_array_size(words); i++) {
        unsigned topic;
        struct err ignored; /* no other word comes here */

        if (timeline_parse_topics(json_string_value(json_array_get(words, i)), &topic, &ignored) ==
            0)
            topics |= topic;
    }
    return topics;
}

static bool is_given(const struct sandbox_call *call)
{
    return call->sandbox && !json_is_null(call->sandbox);
}

/* The name of a profile, or one of our words; NULL: the call has an object. */
static const char *name_of(const struct sandbox_call *call)
{
    if (is_given(call))
        return json_string_value(call->sandbox);
    return call->otherwise ? call->otherwise : SANDBOX_NONE;
}

/* Caller frees. */
static char *key_of(const struct sandbox_call *call)
{
    const char *name = name_of(call);
    AUTO_FREE char *object =
        name ? alloc_str(name) : json_dumps(call->sandbox, JSON_COMPACT | JSON_SORT_KEYS);
    AUTO_JSON json_t *policy = call->hosts ? network_policy_to_json(call->hosts) : NULL;
    AUTO_FREE char *hosts = policy ? json_dumps(policy, JSON_COMPACT) : NULL;

    if (name && str_eq(name, SANDBOX_NONE) && !hosts && !call->layer)
        return alloc_str("");
    return alloc_strf("%s\n%s\n%u %u\n%s\n%s\n%s", call->cwd ? call->cwd : "",
                      call->tmpdir ? call->tmpdir : "", call->topics, call->audit_topics, object,
                      hosts ? hosts : "", call->layer ? layer_id(call->layer) : "");
}

static const struct workspace_words words_of_named = {
    .profile = "sandbox.profile",
    .sandbox = "sandbox",
    .network = "sandbox.network",
    .allow_host = "sandbox.allowHosts",
    .host_port = "sandbox.hostPorts",
    .publish = "sandbox.publish",
    .allow_local_binding = "sandbox.allowLocalBinding",
    .socket = "sandbox.sockets",
    .with = "sandbox.with",
    .narrow = PROFILE_OF_CLIENT,
    .layer = "layer",
    .layer_git = "`git` of layer/create",
    .paths = {"sandbox.deny", "sandbox.readable", "sandbox.writable"},
};

/* As `cordon run` makes it of the same words, but that nobody is warned of what matches nothing. */
static struct workspace *make_named(struct workspaces *workspaces, const char *key,
                                    const struct sandbox_call *call, enum rpc_code *ret_code,
                                    struct err *err)
{
    AUTO(named_done) struct named named = {.profile = name_of(call)};
    struct workspace_request asked = {
        .words = &words_of_named,
        .tmpdir = call->tmpdir,
        .has_no_env = true,
        .is_strict = true,
        .topics = call->topics,
        .audit_topics = call->audit_topics,
        .layer = call->layer,
    };
    struct workspace *workspace;

    if (!named.profile && named_read(call->sandbox, &named, ret_code, err)) {
        err_wrap(err, "sandbox");
        return NULL;
    }
    asked.dir = named.cwd ? named.cwd : call->cwd;
    asked.root = named.roots.len ? NULL : asked.dir;
    asked.roots = strv_view(&named.roots);
    asked.canonical_roots = named.roots.len;
    asked.within = named.roots.len ? named.within : NULL;
    asked.narrow = named.is_narrowed ? &named.narrow : NULL;
    if (named.profile && !str_eq(named.profile, SANDBOX_DEFAULT))
        asked.profile_name = named.profile;
    asked.network = named.network;
    asked.hosts = &named.hosts;
    asked.watch = named.watch;
    asked.judge = named.judge;
    asked.tmp = named.tmp;
    asked.git = named.git;
    asked.mode = named.mode;
    asked.protect = named.protect.is_made ? &named.protect : NULL;
    asked.entries = named.entries;
    asked.entries_len = named.entries_len;
    asked.unix_sockets = strv_view(&named.sockets);
    asked.presets = strv_view(&named.presets);
    *ret_code = RPC_INVALID_PARAMS;
    workspace = workspace_make(workspaces, key, &asked, err);
    *ret_code = RPC_INTERNAL;
    if (workspace)
        workspace->type = workspace->mode == SANDBOX_DISABLED ? "none" : "linuxSeccomp";
    return workspace;
}

/* A sandbox that holds nothing else holds the network all the same. */
static int lead_to_hosts(const struct network_policy *hosts, struct sandbox_request *request,
                         struct err *err)
{
    struct profile *profile = &request->profile;

    if (!hosts)
        return 0;
    if (profile->kind == PROFILE_EXTERNAL)
        return err_set(
            err, ERR_UNSUPPORTED,
            "a managed network wants a sandbox of this server, and permissions.type is external");
    if (profile->kind == PROFILE_DISABLED) {
        profile->kind = PROFILE_MANAGED;
        profile->files = PROFILE_FILES_UNRESTRICTED;
        request->mode = SANDBOX_AUTO;
    }
    profile->network = NETWORK_PROXIED;
    network_policy_done(&profile->network_policy);
    network_policy_copy(hosts, &profile->network_policy);
    return 0;
}

static struct workspace *make(struct workspaces *workspaces, const char *key,
                              const struct sandbox_call *call, enum rpc_code *ret_code,
                              struct err *err)
{
    AUTO(sandbox_request_done) struct sandbox_request request = {.type = "none"};
    struct workspace_request asked = {
        .tmpdir = call->tmpdir,
        .has_no_env = true,
        .audit_topics = call->audit_topics,
        .tells_connects = call->hosts != NULL,
        .layer = call->layer,
    };
    const char *name = name_of(call);

    if (name ? !str_eq(name, SANDBOX_NONE) : json_object_get(call->sandbox, "profile") != NULL) {
        if (!call->hosts)
            return make_named(workspaces, key, call, ret_code, err);
        *ret_code = RPC_INVALID_PARAMS;
        err_set(err, ERR_INVALID,
                "a managed network and a profile of this host do not go together: say "
                "allowHosts and denyHosts in the sandbox");
        return NULL;
    }
    if (name)
        profile_init_danger_full_access(&request.profile);
    else if (sandbox_request_read(call->sandbox, call->cwd, &request, ret_code, err))
        return NULL;
    else
        asked.topics = call->topics;
    if (lead_to_hosts(call->hosts, &request, err)) {
        *ret_code = RPC_INVALID_PARAMS;
        return NULL;
    }
    if (asked.topics && request.profile.watch == PROFILE_WATCH_OFF) {
        err_set(err, ERR_INVALID, "`trace` wants a profile whose watch is not off");
        return NULL;
    }
    asked.profile = &request.profile;
    asked.roots = strv_view(&request.roots);
    asked.mode = request.mode;
    asked.type = request.type;
    *ret_code = RPC_INTERNAL;
    return workspace_make(workspaces, key, &asked, err);
}

struct workspace *workspace_for_call(struct workspaces *workspaces, const struct sandbox_call *call,
                                     enum rpc_code *ret_code, struct err *err)
{
    AUTO_FREE char *key = key_of(call);
    struct workspace *workspace;

    *ret_code = RPC_INTERNAL;
    if (workspace_find(workspaces, key, &workspace, err))
        return NULL;
    if (workspace)
        return workspace;
    workspace = make(workspaces, key, call, ret_code, err);
    if (!workspace && call->layer && err->code == ERR_INVALID)
        *ret_code = RPC_INVALID_PARAMS; /* its sandbox does not go with a layer */
    if (!workspace || workspace_open(workspace, err))
        return NULL;
    if (sandbox_is_degraded(workspace->sandbox))
        log_event(LOG_LEVEL_WARN, "sandbox-degraded",
                  log_text("why", sandbox_degradation(workspace->sandbox)));
    return workspace;
}
