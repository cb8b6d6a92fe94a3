/* All that the shim knows of policy/: settings, costs, decisions, rules and profiles. Nothing here touches CUDA, the
 * clock, files or the heap; the caller passes times in and gets answers out. */
#ifndef POLICY_POLICY_H
#define POLICY_POLICY_H

#include "cost.h"
#include "earn.h"
#include "options.h"
#include "profile.h"
#include "rules.h"
#include "sparse.h"

#endif
