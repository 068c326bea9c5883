/* From computed changes to steps: which there are, and everything that can be made before the first
 * of them is done. */
#pragma once

#include "base/err.h"
#include "patch/changes.h"
#include "patch/folder.h"
#include "patch/step.h"

/* The steps for the changes, in the order of their paths; steps.id is set by the caller. Looks
 * which folders are missing, and makes nothing. */
int prepare_plan(const struct patch_folder *folder, const struct changes *changes,
                 struct steps *steps, struct err *err);

/* Makes what the step needs under its name of ours, with the content and permissions that it is to
 * have, and sets the stamps. Fails when a file is not as it was read. */
int prepare_step(const struct patch_folder *folder, const struct changes *changes,
                 struct step *step, struct err *err);
