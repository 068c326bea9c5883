/* See held.h. Each question of the guard is one of these:
 *
 *     FACT_ASKED --known answer--> answered
 *          \--> asked --answer--> answered --FACT_DONE (after a yes)--> over
 *                  \-- FACT_WITHDRAWN, or the end of the command --------^
 *
 * What is never to be opened in passing is refused without a question: what belongs to Cordon, what
 * other programs run or believe, and what an entry was written to deny, unless it says that it
 * may be asked about.
 *
 * Of hosts the proxy asks (src/proxy/question.c): once for each host, port and protocol, and only about what no rule is
 * about. It remembers the answer for the command, so that nothing more is heard of a question that was answered. */
#include "approval/held.h"

#include "approval/approvals.h"
#include "approval/requirement.h"
#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/path.h"
#include "base/str.h"
#include "base/strv.h"
#include "policy/access.h"
#include "policy/believed.h"
#include "rules/rules_disk.h"

#include <stdlib.h>
#include <string.h>

#define GRACE_NS UINT64_C(2000000000) /* between SIGTERM and SIGKILL, after "abort" */

struct held {
    struct job_asker asker; /* first */
    struct held_options options;
    struct strv argv;
    struct strv own_paths;
    char *home;
    char *cwd;
    char *profile;
    char *rules_file;
    struct list items;
    size_t open; /* of them: those that somebody is asked */
};

struct held_item {
    struct list link;
    struct held *held;
    uint64_t id; /* the guard's */
    struct approval_request question;
    struct approval_wait *wait; /* while it is asked */
    struct approval_answer answer;
    bool is_answered;
    bool is_exec; /* a program that is judged: */
    char *path, *program;
    pid_t pid;
    int call;
    bool goes_outside; /* it does after a yes */
    uint64_t since_ns;
    uint64_t held_ns; /* once it is answered */
};

bool held_may_ask(const struct approval_policy *policy)
{
    if (policy->mode == APPROVAL_NEVER)
        return false;
    return policy->mode != APPROVAL_GRANULAR || policy->questions & APPROVAL_QUESTION_SANDBOX;
}

bool held_is_wanted(const struct access_map *access, const struct profile *profile,
                    const struct approval_policy *policy)
{
    return access && held_may_ask(policy) &&
           (profile->watch == PROFILE_WATCH_ASK || network_policy_asks(&access->network_policy));
}

/* --- what is asked --- */

static const char *verb(enum fact_operation operation)
{
    static const char *const verbs[] = {
        [FACT_WRITE] = "write",        [FACT_CREATE] = "make",    [FACT_EXECUTE] = "execute",
        [FACT_CONNECT] = "connect to", [FACT_BIND] = "listen on", [FACT_SIGNAL] = "signal",
        [FACT_READ] = "read",
    };

    return verbs[operation];
}

/* "git (pid 12) wants to write /x/y, which the profile workspace-write does not allow (ENTRY)". */
static char *reason_of(const struct held *held, const struct launch_fact *fact)
{
    const char *origin = fact->entry ? fact->entry->origin : NULL;
    AUTO_FREE char *program = approval_word_text(fact->program);
    AUTO_FREE char *path = approval_word_text(fact->path);
    AUTO_FREE char *other = fact->other_path ? approval_word_text(fact->other_path) : NULL;

    return alloc_strf("%s (pid %d) wants to %s %s%s%s, which the profile%s%s does not allow%s%s%s",
                      program, (int)fact->pid, verb(fact->operation), path, other ? " as " : "",
                      other ? other : "", held->profile ? " " : "",
                      held->profile ? held->profile : "", origin ? " (" : "", origin ? origin : "",
                      origin ? ")" : "");
}

/* What a yes opens: pairs of words, "in" or "at", and a path. `covers` ends with "/" for a folder. */
static void add_place(struct strv *places, const char *covers)
{
    size_t len = strlen(covers);
    bool is_folder = len > 1 && covers[len - 1] == '/';
    AUTO_FREE char *place = alloc_str(covers);

    if (is_folder)
        place[len - 1] = '\0';
    strv_push(places, is_folder ? "in" : "at");
    strv_push_take(places, TAKE_PTR(place));
}

static void find_places(const struct launch_fact *fact, struct strv *ret)
{
    add_place(ret, fact->covers ? fact->covers : fact->path);
    if (fact->other_covers)
        add_place(ret, fact->other_covers);
}

static char *covers_of(const struct launch_fact *fact, const struct strv *places)
{
    static const char *const words[] = {
        [FACT_WRITE] = "writing",     [FACT_CREATE] = "writing",
        [FACT_EXECUTE] = "executing", [FACT_CONNECT] = "connecting to",
        [FACT_BIND] = "listening on", [FACT_SIGNAL] = "signals to",
        [FACT_READ] = "reading",
    };
    AUTO(buf_done) struct buf text;

    buf_init(&text, SIZE_MAX / 2);
    buf_append_str(&text, words[fact->operation]);
    for (size_t i = 0; i < places->len; i += 2) {
        AUTO_FREE char *place = approval_word_text(places->items[i + 1]);

        buf_appendf(&text, "%s %s%s", i ? " and" : "",
                    fact->is_socket                  ? "the socket "
                    : str_eq(places->items[i], "in") ? "everything in "
                                                     : "",
                    place);
    }
    buf_append_str(&text, " until the command ends");
    return buf_take(&text);
}

static void question_init(const struct held *held, const struct launch_fact *fact,
                          struct approval_request *ret)
{
    /* whoever asks, and in whatever way it is written to: what a yes covers is the same */
    enum fact_operation class = fact->operation == FACT_CREATE ? FACT_WRITE : fact->operation;
    AUTO(strv_done) struct strv places = {0};

    find_places(fact, &places);
    *ret = (struct approval_request){
        .kind = APPROVAL_KIND_HELD,
        .cwd = alloc_str(held->cwd),
        .reason = reason_of(held, fact),
        .covers = covers_of(fact, &places),
        .offers = 1u << APPROVAL_APPROVED | 1u << APPROVAL_DENIED | 1u << APPROVAL_ABORT |
                  (held->options.is_last ? 0 : 1u << APPROVAL_FOR_SESSION),
        .number = held->options.number,
    };
    strv_push_all(&ret->argv, strv_view(&held->argv));
    strv_push_take(&ret->keys, approval_held_key(verb(class), strv_view(&places)));
}

/* --- hosts --- */

/* The form in which hosts are compared has no letters but those of ASCII: a name that is written in others is shown by its
 * code (xn--...), and cannot look like another one, nor hold words of ours. */
static bool is_plain_host(const struct launch_connect *connect)
{
    struct net_host host;
    struct err ignored;

    return connect->port &&
           net_host_parse(connect->host, strlen(connect->host), &host, &ignored) == 0 &&
           str_eq(host.text, connect->host);
}

static bool has_other_letters(const char *host)
{
    return str_starts(host, "xn--") || strstr(host, ".xn--");
}

/* "curl (pid 12) wants to connect to example.com:443 (https), which ...". */
static char *host_reason(const struct held *held, const struct launch_fact *fact)
{
    const struct launch_connect *connect = fact->connect;
    AUTO_FREE char *program = *fact->program ? approval_word_text(fact->program) : NULL;
    AUTO_FREE char *who = program ? alloc_strf("%s (pid %d)", program, (int)fact->pid)
                                  : alloc_str("a program of the command");

    return alloc_strf(
        "%s wants to connect to %s (%s), which no rule of the profile%s%s allows%s", who,
        fact->path, network_protocol_words[connect->protocol], held->profile ? " " : "",
        held->profile ? held->profile : "",
        has_other_letters(connect->host)
            ? "; the name has letters that are not those of English, so look at it twice"
            : "");
}

/* A rule is about a name or address at every port, and so cannot be offered where there is none to write it to. */
static unsigned host_offers(const struct held *held)
{
    return 1u << APPROVAL_APPROVED | 1u << APPROVAL_DENIED | 1u << APPROVAL_ABORT |
           (held->options.is_last ? 0 : 1u << APPROVAL_FOR_SESSION) |
           (held->rules_file ? 1u << APPROVAL_WITH_RULE | 1u << APPROVAL_NO_BY_RULE : 0);
}

static void host_question_init(const struct held *held, const struct launch_fact *fact,
                               struct approval_request *ret)
{
    const struct launch_connect *connect = fact->connect;
    const char *protocol = network_protocol_words[connect->protocol];
    AUTO(strv_done) struct strv what = {0};

    *ret = (struct approval_request){
        .kind = APPROVAL_KIND_HELD,
        .cwd = alloc_str(held->cwd),
        .reason = host_reason(held, fact),
        .covers = alloc_strf("connecting to %s (%s) until the command ends", fact->path, protocol),
        .offers = host_offers(held),
        .number = held->options.number,
        .host = {alloc_str(connect->host), connect->port, connect->protocol},
    };
    strv_push_all(&ret->argv, strv_view(&held->argv));
    strv_push(&what, protocol);
    strv_push(&what, fact->path);
    strv_push_take(&ret->keys, approval_held_key("host", strv_view(&what)));
}

/* Caller frees; NULL when none was written, `*ret_warning` (caller frees, too) says why then. */
static char *write_host_rule(const struct held *held, const struct approval_host *host,
                             enum approval_decision decision, char **ret_warning)
{
    static const enum rule_protocol protocols[] = {
        [NETWORK_HTTP] = RULE_PROTOCOL_HTTP,
        [NETWORK_HTTPS] = RULE_PROTOCOL_HTTPS,
        [NETWORK_SOCKS5_TCP] = RULE_PROTOCOL_SOCKS5_TCP,
        [NETWORK_SOCKS5_UDP] = RULE_PROTOCOL_SOCKS5_UDP,
    };
    struct err err;
    AUTO_FREE char *line = NULL;

    if (!host->name || !held->rules_file ||
        (decision != APPROVAL_WITH_RULE && decision != APPROVAL_NO_BY_RULE))
        return NULL;
    line =
        rule_line_for_host(host->name, protocols[host->protocol],
                           decision == APPROVAL_WITH_RULE ? RULE_KEEP : RULE_FORBIDDEN, NULL, &err);
    if (line && rules_append_made(held->rules_file, held->home, line, &err) == 0)
        return TAKE_PTR(line);
    *ret_warning = alloc_strf("the rule could not be written: %s", err.msg);
    return NULL;
}

/* --- what is not --- */

static bool is_own(const struct held *held, const char *path)
{
    for (size_t i = 0; i < held->own_paths.len; i++)
        if (path && path_is_within(path, held->own_paths.items[i]))
            return true;
    return false;
}

/* By an entry that asks about nothing, or not about this. */
static bool is_denied(const struct launch_fact *fact)
{
    return fact->entry && fact->entry->access == ACCESS_DENY &&
           !(fact->entry->asks && fact->operation == FACT_READ);
}

/* To change what other programs run or believe is no matter of a yes in passing. */
static bool is_guarded(const struct held *held, const struct launch_fact *fact)
{
    const char *paths[] = {fact->path, fact->other_path, fact->covers, fact->other_covers};

    if (fact->operation != FACT_WRITE && fact->operation != FACT_CREATE)
        return false;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        AUTO_FREE char *path = paths[i] ? path_clean("/", paths[i]) : NULL;

        if (path && !place_may_be_opened(path, held->home))
            return true;
    }
    return false;
}

static bool is_out_of_bounds(const struct held *held, const struct launch_fact *fact)
{
    if (fact->connect)
        return !held->options.approvals || held->open >= HELD_OPEN_MAX ||
               !is_plain_host(fact->connect);
    return !held->options.approvals || held->open >= HELD_OPEN_MAX || is_own(held, fact->path) ||
           is_own(held, fact->other_path) || is_denied(fact) || is_guarded(held, fact);
}

/* --- its way --- */

static void emit(const struct held_item *item, const struct held_event *event)
{
    const struct held_options *options = &item->held->options;

    if (options->on_event)
        options->on_event(options->data, event);
}

static void item_leave(struct held_item *item)
{
    struct held *held = item->held;

    if (!item->wait)
        return;
    approvals_leave(TAKE_PTR(item->wait));
    item->held_ns = clock_now_ns() - item->since_ns;
    held->open--;
}

static void item_free(struct held_item *item)
{
    item_leave(item);
    list_remove(&item->link);
    approval_request_done(&item->question);
    approval_answer_done(&item->answer);
    free(item->path);
    free(item->program);
    free(item);
}

/* Nothing more is heard of it. */
static void item_finish(struct held_item *item, bool is_done)
{
    item_leave(item);
    emit(item, &(struct held_event){.step = HELD_OVER,
                                    .question = &item->question,
                                    .answer = item->is_answered ? &item->answer : NULL,
                                    .held_ns = item->held_ns,
                                    .is_done = is_done});
    item_free(item);
}

static void refuse_exec(const struct held_item *item, const struct approval_answer *answer)
{
    AUTO_FREE char *why = alloc_strf("an answer (by %s)", answer->by);
    const struct launch_fact fact = {
        .id = item->id,
        .operation = FACT_EXECUTE,
        .path = item->path,
        .program = item->program,
        .pid = item->pid,
        .call = item->call,
        .time_ns = item->since_ns,
    };

    job_refuse_exec(item->held->asker.job, &fact, why);
}

/* Tells the guard; after a yes it says when it is done. */
static void item_answer(struct held_item *item, const struct approval_answer *answer)
{
    struct job *job = item->held->asker.job;
    bool is_yes = approval_decision_is_yes(answer->decision);
    AUTO_FREE char *warning = NULL;
    AUTO_FREE char *rule =
        write_host_rule(item->held, &item->question.host, answer->decision, &warning);
    bool is_outside =
        item->is_exec && (item->goes_outside || answer->decision == APPROVAL_UNCONFINED);
    struct err ignored; /* it has ended by itself */

    item->is_answered = true;
    item->answer = (struct approval_answer){
        .decision = answer->decision, .by = answer->by, .reason = alloc_str(answer->reason)};
    /* before the no: job_answer() */
    if (answer->decision == APPROVAL_ABORT && job_terminate(job, GRACE_NS, &ignored))
        job_terminate(job, 0, &ignored);
    if (item->is_exec && !is_yes)
        refuse_exec(item, answer);
    else
        job_answer(job, item->id, !is_yes ? LAUNCH_NO : is_outside ? LAUNCH_OUTSIDE : LAUNCH_YES);
    emit(item, &(struct held_event){.step = HELD_ANSWERED,
                                    .question = &item->question,
                                    .answer = &item->answer,
                                    .rule = rule,
                                    .warning = warning});
    if (is_yes && (item->is_exec ||
                   item->question.host.name)) { /* nothing more is heard of it as a question */
        item_finish(item, true);
        return;
    }
    if (!is_yes)
        item_finish(item, false);
}

static void on_answer(void *data, const struct approval_answer *answer)
{
    struct held_item *item = data;
    struct held *held = item->held;

    item->wait = NULL;
    item->held_ns = clock_now_ns() - item->since_ns;
    held->open--;
    item_answer(item, answer);
    job_set_held(held->asker.job, held->open);
}

static void item_ask(struct held_item *item)
{
    struct held *held = item->held;
    struct approvals *approvals = held->options.approvals;
    struct approval_request question;

    approvals_name(approvals, &item->question);
    emit(item, &(struct held_event){.step = HELD_ASKED, .question = &item->question});
    approval_request_copy(&item->question, &question);
    item->wait = approvals_ask(approvals, &question, on_answer, item);
    held->open++;
    job_set_held(held->asker.job, true);
}

static struct held_item *item_new(struct held *held, const struct launch_fact *fact)
{
    struct held_item *item = alloc_zero(1, sizeof *item);

    item->held = held;
    item->id = fact->id;
    item->since_ns = clock_now_ns();
    list_append(&held->items, &item->link);
    return item;
}

/* Unless an answer for the session is there. */
static void item_begin(struct held_item *item)
{
    static const struct approval_answer yes = {.decision = APPROVAL_FOR_SESSION, .by = "session"};
    static const struct approval_answer no = {.decision = APPROVAL_DENIED, .by = "session"};
    const struct approvals *approvals = item->held->options.approvals;

    if (approvals_denies_host(approvals, &item->question.host))
        item_answer(item, &no);
    else if (approvals_has(approvals, &item->question.keys) ||
             approvals_allows_host(approvals, &item->question.host))
        item_answer(item, &yes);
    else
        item_ask(item);
}

/* --- programs --- */

/* A yes is for these words in this directory, and for how they run: out of the sandbox only what a rule lets
 * out, unless the user wants it as in Codex. */
static void exec_question_init(const struct held *held, const struct launch_fact *fact,
                               const struct requirement *requirement, struct approval_request *ret)
{
    bool is_outside = requirement->where == RUN_UNCONFINED;
    bool may_leave = held->options.offers_unconfined && !is_outside && !fact->is_truncated;
    AUTO(strv_done) struct strv keys = {0};
    const struct approval_call call = {.argv = (char *const *)fact->argv, .cwd = fact->cwd};

    *ret = (struct approval_request){
        .kind = APPROVAL_KIND_HELD,
        .cwd = alloc_str(fact->cwd),
        .reason =
            alloc_strf("%s (pid %d) wants to execute %s%s: %s", fact->program, (int)fact->pid,
                       fact->path, fact->is_truncated ? ", with more words than are shown" : "",
                       requirement->reason ? requirement->reason : "it has to be asked about"),
        .covers =
            alloc_str(is_outside  ? "this program, outside of the sandbox, with what hooks and "
                                    "configuration of the directory make it run"
                      : may_leave ? "this program, in the sandbox; without a sandbox also what "
                                    "hooks and configuration of the directory make it run"
                                  : "this program, in the sandbox"),
        .offers = 1u << APPROVAL_APPROVED | 1u << APPROVAL_DENIED | 1u << APPROVAL_ABORT |
                  (may_leave ? 1u << APPROVAL_UNCONFINED : 0) |
                  (held->options.is_last || fact->is_truncated ? 0 : 1u << APPROVAL_FOR_SESSION),
        .number = held->options.number,
    };
    strv_push_all(&ret->argv, (char *const *)fact->argv);
    approval_keys(&call, &keys);
    for (size_t i = 0; i < keys.len; i++)
        strv_pushf(&ret->keys, "exec%s %s: %s", is_outside ? " outside" : "", fact->path,
                   keys.items[i]);
}

static void ask_exec(struct held *held, const struct launch_fact *fact,
                     const struct requirement *requirement)
{
    struct held_item *item = item_new(held, fact);

    item->is_exec = true;
    item->goes_outside = requirement->where == RUN_UNCONFINED;
    item->path = alloc_str(fact->path);
    item->program = alloc_str(fact->program);
    item->pid = fact->pid;
    item->call = fact->call;
    exec_question_init(held, fact, requirement, &item->question);
    item_begin(item);
}

static void on_exec(struct held *held, const struct launch_fact *fact)
{
    struct job *job = held->asker.job;
    AUTO(requirement_done) struct requirement requirement = {.where = RUN_SANDBOXED};

    if (held->options.execs)
        held->options.execs->judge(held->options.execs, fact, &requirement);
    if (requirement.outcome == REQUIREMENT_SKIP)
        job_answer(job, fact->id,
                   requirement.where == RUN_UNCONFINED ? LAUNCH_OUTSIDE : LAUNCH_YES);
    else if (requirement.outcome == REQUIREMENT_FORBID)
        job_refuse_exec(job, fact, requirement.reason);
    else if (!held->options.approvals)
        job_refuse_exec(job, fact, "the lack of anybody to ask");
    else if (held->open >= HELD_OPEN_MAX)
        job_refuse_exec(job, fact, "the number of open questions");
    else
        ask_exec(held, fact, &requirement);
}

static void on_asked(struct held *held, const struct launch_fact *fact)
{
    struct held_item *item;

    if (fact->operation == FACT_EXECUTE) {
        on_exec(held, fact);
        return;
    }
    if (is_out_of_bounds(held, fact)) {
        job_answer(held->asker.job, fact->id, LAUNCH_NO);
        return;
    }
    item = item_new(held, fact);
    if (fact->connect)
        host_question_init(held, fact, &item->question);
    else
        question_init(held, fact, &item->question);
    item_begin(item);
}

/* --- the asker of the job --- */

static void held_on_fact(struct job_asker *asker, const struct launch_fact *fact)
{
    struct held *held = (struct held *)asker;
    struct held_item *item;
    struct held_item *next;

    if (fact->kind == FACT_ASKED) {
        on_asked(held, fact);
        return;
    }
    if (fact->kind == FACT_DENIED)
        return;
    if (fact->kind == FACT_OUTSIDE || fact->kind == FACT_OUTSIDE_SIGNAL) {
        if (held->options.execs)
            held->options.execs->on_outside(held->options.execs, asker->job, fact);
        return;
    }
    list_for_each_safe(item, next, &held->items, link)
        if (item->id == fact->id)
            item_finish(item, fact->kind == FACT_DONE && item->is_answered);
    job_set_held(asker->job, held->open);
}

static void free_execs(struct held *held)
{
    struct held_execs *execs = TAKE_PTR(held->options.execs);

    if (execs)
        execs->free(execs);
}

static void held_on_end(struct job_asker *asker)
{
    struct held *held = (struct held *)asker;

    free_execs(held);

    while (!list_is_empty(&held->items))
        item_finish(list_first(&held->items, struct held_item, link), false);
    job_set_held(asker->job, false);
}

static void held_free(struct job_asker *asker)
{
    struct held *held = (struct held *)asker;

    free_execs(held);
    while (!list_is_empty(&held->items))
        item_free(list_first(&held->items, struct held_item, link));
    strv_done(&held->argv);
    strv_done(&held->own_paths);
    free(held->home);
    free(held->cwd);
    free(held->profile);
    free(held->rules_file);
    free(held);
}

struct job_asker *held_new(const struct held_options *options)
{
    struct held *held = alloc_zero(1, sizeof *held);

    held->asker =
        (struct job_asker){.on_fact = held_on_fact, .on_end = held_on_end, .free = held_free};
    held->options = *options;
    strv_push_all(&held->argv, options->argv);
    strv_push_all(&held->own_paths, options->own_paths);
    held->home = alloc_str(options->home);
    held->cwd = alloc_str(options->cwd);
    held->profile = alloc_str(options->profile);
    held->rules_file = alloc_str(options->rules_file);
    return &held->asker;
}
