#include "probe/observe/autocast_objects.h"

#include <ATen/autocast_mode.h>

namespace ampscope::observe {

std::int64_t autocast_made(Session& session, ThreadState& thread, trace::SourceLine source, const std::string& device,
                           const std::string& dtype) {
  SiteState* site = make_site(session, op_info(autocast_object, ""), nullptr, 0);
  if (!site) return trace::none;
  trace::Site definition;
  definition.id = site->id;
  definition.kind = trace::SiteKind::range;
  definition.name = autocast_object;
  definition.source = std::move(source);
  definition.thread = thread.slot;
  definition.autocast_device = device;
  definition.autocast_dtype = trace::dtype_from_name(dtype.c_str());
  site->definition.reset();
  session.recorder.define(std::move(definition));
  return site->id;
}

void autocast_used(Session& session, ThreadState& thread, std::int64_t made) {
  bool on = made >= 0;
  if (SiteState* site = on ? site_by_id(session, made) : nullptr) {
    site->counters->count_call(session.step.load(std::memory_order_relaxed), 0, 0);
  }
  for (const auto device : {c10::DeviceType::CPU, c10::DeviceType::CUDA})
    on = on || at::autocast::is_autocast_enabled(device);
  autocast_is(session, thread, on);
}

}  // namespace ampscope::observe
