/* See layer_audit.h. */
#include "cli/layer_audit.h"

#include "audit/audit.h"
#include "base/auto.h"
#include "base/json.h"
#include "base/str.h"
#include "cli/config_file.h"
#include "cli/console.h"
#include "cli/run.h"

json_t *layer_audit_body(const struct layer *layer, const char *action, int step,
                         const struct accept_result *result, const struct change_counts *counts)
{
    struct audit_layer record = {
        .action = action,
        .layer = layer_id(layer),
        .name = layer_own_name(layer),
        .step = step,
        .has_changes = counts,
    };

    if (result) {
        record.accept = result->accept;
        record.done = result->done.len;
        record.left = result->left_len;
    }
    if (counts) {
        record.added = counts->added;
        record.modified = counts->modified;
        record.deleted = counts->deleted;
        record.renamed = counts->renamed;
        record.other = counts->other;
        record.marked = counts->marked;
    }
    return audit_layer_body(&record);
}

void layer_audit(json_t *body)
{
    static const uint64_t wait_ns = UINT64_C(1000000000); /* 1 s, when others hold the log */
    AUTO(config_file_done) struct config_file file = {.path = NULL};
    struct audit *audit = NULL;
    char session[AUDIT_SESSION_SIZE];
    struct err err;

    if (config_file_place(&file, &err) || !run_audit_has_place(&file)) {
        json_decref(body);
        return;
    }
    audit = audit_new(file.dir);
    audit_session_id(session);
    audit_add(audit, AUDIT_LAYER, session, body);
    if (audit_flush(audit, wait_ns, &err))
        console_say("this is not in the audit log: %s", err.msg);
    audit_free(audit);
}
