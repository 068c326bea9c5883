/* What the rules of this host's user hold of session/exec: what they forbid, and what a broken
 * rules file might. Nobody is asked. */
#pragma once

struct call;
struct place;
struct model_exec;

/* Why the command is not to be started, in the words of exec/run, which is also written to the
 * audit log; NULL: nothing forbids it. Caller frees. To be asked before anything of it is run:
 * `exec` is that of the call, without a replacement. */
char *session_rules_refusal(const struct call *call, const struct model_exec *exec,
                            const struct place *place);
