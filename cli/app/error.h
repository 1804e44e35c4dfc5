// What a person did wrong, or what their machine refuses: one or two sentences that say what, where and what to do.
#pragma once

#include <stdexcept>
#include <string>

namespace ampscope::cli {

class UserError : public std::runtime_error {
 public:
  explicit UserError(const std::string& message) : std::runtime_error(message) {}
};

}  // namespace ampscope::cli
