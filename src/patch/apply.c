/* See apply.h, and step.h for what can be done in one rename(2).
 *
 *     plan        which steps
 *     ledger      their names are written down      killed from here on: what was prepared
 *     prepare     each step, beside its file                                is removed
 *     decide      one write to the ledger           killed from here on: the rest is done
 *     do          each step
 *     discard     what is left of the old files
 *     remove      the ledger
 *
 * A step that fails is followed by "withdrawn" in the ledger, and all before it are taken back.
 * Doing and taking back check each step's state first when they continue an earlier apply, so both can
 * be interrupted and begun again as often as it takes. */
#include "patch/apply.h"

#include "base/auto.h"
#include "base/sys.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/random.h>

enum { BEGIN_TRIES = 1000 }; /* each is lost to another process that made progress */

void recovery_done(struct recovery *recovery)
{
    strv_done(&recovery->left_alone);
}

/* --- taking back --- */

static int undo_steps(const struct patch_dir *root, const struct steps *steps, struct err *err)
{
    struct err ignored;
    int status = 0;

    for (size_t i = steps->len; i-- > 0;) {
        const struct step *step = &steps->items[i];
        struct err *slot = status ? &ignored : err;
        enum step_state state;

        if (step_check(root, step, &state, slot) ||
            ((state == STEP_DONE || state == STEP_WRONG) && step_undo(root, step, slot)))
            status = -1;
    }
    return status;
}

static int discard_steps(const struct patch_dir *root, const struct steps *steps, struct err *err)
{
    struct err ignored;
    int status = 0;

    for (size_t i = 0; i < steps->len; i++)
        if (step_discard(root, &steps->items[i], status ? &ignored : err))
            status = -1;
    return status;
}

/* --- recovery --- */

/* Files that another process has changed since are named, and stay as they are. */
static int finish_step(const struct patch_dir *root, const struct step *step,
                       struct recovery *recovery, struct err *err)
{
    enum step_state state;

    if (step_check(root, step, &state, err))
        return -1;
    if (state == STEP_TODO)
        return step_do(root, step, err);
    if (state == STEP_WRONG)
        return err_set(err, ERR_INVALID, "%s was changed by another process", step->path);
    if (state == STEP_LOST)
        strv_push(&recovery->left_alone, step->path);
    return 0;
}

/* What is decided is done. If that cannot be, it is withdrawn: true. */
static bool finish_or_withdraw(const struct patch_dir *root, struct ledger *ledger,
                               const struct steps *steps, struct recovery *recovery)
{
    struct err ignored;
    size_t done = 0;

    if (ledger->state == LEDGER_OPEN)
        return false;
    while (ledger->state == LEDGER_DECIDED && done < steps->len &&
           finish_step(root, &steps->items[done], recovery, &ignored) == 0)
        done++;
    if (ledger->state == LEDGER_DECIDED && done == steps->len)
        return false;
    (void)ledger_withdraw(ledger, &ignored);
    return true;
}

/* Brings the directory of a killed patch to one side or the other; the ledger is locked. */
static int recover(const struct patch_dir *root, struct ledger *ledger, const struct steps *steps,
                   struct recovery *recovery, struct err *err)
{
    bool is_withdrawn = finish_or_withdraw(root, ledger, steps, recovery);

    if (is_withdrawn && undo_steps(root, steps, err))
        return err_wrap(err, "an earlier patch was interrupted and cannot be taken back");
    if (discard_steps(root, steps, err) || ledger_remove(root, ledger, err))
        return err_wrap(
            err, "cleaning up after an earlier patch (to give that up, remove " LEDGER_NAME ")");
    if (steps->len)
        recovery->what =
            ledger->state == LEDGER_DECIDED && !is_withdrawn ? RECOVERY_COMPLETED : RECOVERY_UNDONE;
    return 0;
}

static int recover_if_needed(const struct patch_dir *root, struct recovery *recovery,
                             struct err *err)
{
    AUTO(steps_done) struct steps steps = {.items = NULL};
    AUTO(ledger_close) struct ledger ledger = {.fd = -1};

    if (ledger_take(root, LEDGER_WRITE, &ledger, &steps, err))
        return -1;
    if (ledger.state == LEDGER_NONE)
        return 0;
    return recover(root, &ledger, &steps, recovery, err);
}

/* --- applying --- */

int apply_begin(const struct patch_dir *root, struct recovery *ret_recovery, struct apply *ret,
                struct err *err)
{
    bool is_made = false;

    *ret_recovery = (struct recovery){.what = RECOVERY_NONE};
    *ret = (struct apply){.root = root, .ledger = {.fd = -1}};
    for (int i = 0; i < BEGIN_TRIES; i++) {
        if (recover_if_needed(root, ret_recovery, err) ||
            ledger_make(root, &is_made, &ret->ledger, err))
            return -1;
        if (is_made)
            return 0;
    }
    return err_set(err, ERR_LIMIT, "too many patches are being applied in %s at once", root->path);
}

static int make_id(struct steps *steps, struct err *err)
{
    uint64_t id;

    if (sys_fault() || getrandom(&id, sizeof id, 0) != sizeof id)
        return err_sys(err, "drawing a random number");
    snprintf(steps->id, sizeof steps->id, "%016" PRIx64, id);
    return 0;
}

static int prepare_all(const struct apply *apply, const struct changes *changes,
                       struct steps *steps, struct err *err)
{
    if (ledger_write_steps(&apply->ledger, steps, err))
        return -1;
    for (size_t i = 0; i < steps->len; i++)
        if (step_prepare(apply->root, changes, &steps->items[i], err))
            return -1;
    return ledger_decide(&apply->ledger, steps, err);
}

/* Back to before apply_begin(). `err` holds why. */
static void withdraw(struct apply *apply, const struct steps *steps, struct err *err)
{
    const struct patch_dir *root = apply->root;
    struct err more;

    (void)ledger_withdraw(&apply->ledger, &more);
    if (undo_steps(root, steps, &more)) {
        err_wrap(err, "the patch failed, and not all of it could be taken back (%s)", more.msg);
        ledger_close(&apply->ledger);
    } else if (discard_steps(root, steps, &more)) {
        ledger_close(&apply->ledger); /* the next apply_begin() cleans up */
    }
}

int apply_commit(struct apply *apply, const struct changes *changes, struct err *err)
{
    AUTO(steps_done) struct steps steps = {.items = NULL};
    struct err ignored;

    if (make_id(&steps, err) || steps_plan(apply->root, changes, &steps, err))
        return -1;
    if (prepare_all(apply, changes, &steps, err)) {
        if (discard_steps(apply->root, &steps, &ignored))
            ledger_close(&apply->ledger);
        return -1;
    }
    for (size_t i = 0; i < steps.len; i++)
        if (step_do(apply->root, &steps.items[i], err)) {
            withdraw(apply, &steps, err);
            return -1;
        }
    if (discard_steps(apply->root, &steps, &ignored))
        ledger_close(&apply->ledger);
    return 0;
}

void apply_end(struct apply *apply)
{
    struct err ignored;

    if (apply->ledger.fd >= 0)
        (void)ledger_remove(apply->root, &apply->ledger, &ignored);
    ledger_close(&apply->ledger);
}

int apply_wait(const struct patch_dir *root, struct err *err)
{
    AUTO(steps_done) struct steps steps = {.items = NULL};
    AUTO(ledger_close) struct ledger ledger = {.fd = -1};

    if (ledger_take(root, LEDGER_READ, &ledger, &steps, err))
        return -1;
    if (ledger.state == LEDGER_NONE)
        return 0;
    return err_set(
        err, ERR_INVALID,
        "a patch in %s was interrupted: \"cordon patch --recover\" there puts that right",
        root->path);
}
