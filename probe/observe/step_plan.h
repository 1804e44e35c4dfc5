// How closely a step is looked at: decided when the one before it ends.
#pragma once

#include <cstdint>

#include "probe/observe/session.h"

namespace ampscope::observe {

/// Sets what the session looks at in `step`, which begins. Without a budget, values are looked at in full in the first
/// steps and then in ever rarer ones, so that ten times the steps cost only a few more looks; with one, the planner
/// draws. The caller holds the protocol's lock.
void plan_step(Session& session, std::int64_t step);

}  // namespace ampscope::observe
