// What is known of an operator by its name: how its results can become non-finite and what it means for the protocol.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ampscope::observe {

/// How an operator's floating results relate to its inputs, for the question "must they be looked at?".
enum class Values : std::uint8_t {
  computes,       ///< can make a non-finite value from finite ones: looked at
  passes,         ///< moves or selects values; a non-finite one was there before
  casts,          ///< can overflow when the result's type has the smaller range
  views,          ///< shares memory with an input
  uninitialised,  ///< its memory holds anything
  constant,       ///< filled with what the program asked for; an infinity in it is meant
};

/// Operators with a meaning beyond arithmetic.
enum class Meaning : std::uint8_t {
  plain,
  unscale,            ///< aten::_amp_foreach_non_finite_check_and_unscale_
  update_scale,       ///< aten::_amp_update_scale_
  ones_like,          ///< makes the gradient that a backward pass starts with
  evaluate_function,  ///< the engine's wrapper around one autograd node
  multiply,           ///< aten::mul: of a loss with the scale
  optimizer_range,
  zero_grad_range,
  data_range,
  hidden_region,   ///< a compiled region: what happens inside is not dispatched
  scaler_range,    ///< "GradScaler.…" announced by a C++ program
  schedule_range,  ///< "LRScheduler.step#…" announced by a C++ program
  clip_range,
  divide,     ///< aten::div: of a loss by the number of micro-batches
  host_read,  ///< item(): a value becomes a number of the program's
};

/// Arithmetic of which the effect on a tensor that is kept can be looked at.
enum class Update : std::uint8_t {
  none,
  add,
  subtract,
  multiply,
  lerp,
  other,  ///< writes its first argument in another way
};

/// What every call needs comes first, in one cache line.
struct alignas(64) OpInfo {
  std::uint32_t id = 0;
  Values values = Values::computes;
  Meaning meaning = Meaning::plain;
  Update update = Update::none;
  bool has_schema = false;     ///< a dispatcher operator; otherwise a range or an autograd.Function
  bool mutates_first = false;  ///< writes its first argument (in place)
  bool mutates = false;
  bool composite = false;             ///< made of other operators alone: what they made has been looked at
  bool random = false;                ///< its result depends on a generator
  int dropout_argument = -1;          ///< index of the probability at which it drops; at 0 it draws nothing
  bool has_batch_statistics = false;  ///< batch normalisation: it updates running statistics
  bool makes_distribution = false;    ///< a softmax: its rows add up to one
  bool single_source = false;         ///< takes one tensor, and no number that may stand in its result
  bool replaces = false;              ///< may put another number where a value is not finite
  bool only_first_result = false;     ///< its other results are work space in which infinities are meant
  std::string name;
  std::string overload;
  std::vector<std::string> arguments;  ///< schema names; empty without a schema
  [[nodiscard]] bool is_range() const noexcept { return !has_schema; }
};

/// The entry for an operator or range, made at first sight. The names may be transient; they are copied. Never null.
const OpInfo* op_info(const char* name, const char* overload);

/// Table-driven parts of op_info, for tests.
[[nodiscard]] Values values_of(std::string_view name);
[[nodiscard]] Meaning meaning_of(std::string_view name);

}  // namespace ampscope::observe
