#include "analyzers/core/rule.h"

namespace ampscope::analyzers {

const char* family_name(Family family) noexcept {
  switch (family) {
    case Family::autocast:
      return "autocast";
    case Family::scaler_protocol:
      return "scaler protocol";
    case Family::scaler_dynamics:
      return "scaler dynamics";
    case Family::overflow:
      return "overflow";
    case Family::lost_precision:
      return "lost precision";
    case Family::not_precision:
      return "not precision";
    case Family::performance:
      return "performance";
    case Family::processes:
      return "several processes";
    case Family::run:
      return "the run itself";
  }
  return "";
}

const char* stream_need(Stream stream) noexcept {
  switch (stream) {
    case Stream::protocol:
      return "steps: no optimizer stepped and no scaler was updated";
    case Stream::ops:
      return "operator calls: none was seen";
    case Stream::gradients:
      return "gradient statistics (--level grads or higher)";
    case Stream::sentinel:
      return "non-finite checks of operator outputs (--level auto or higher)";
    case Stream::numerics:
      return "statistics of operator outputs (--level auto or higher)";
  }
  return "";
}

}  // namespace ampscope::analyzers
