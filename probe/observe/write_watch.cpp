#include "probe/observe/write_watch.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <c10/core/GradMode.h>

#include "probe/observe/protocol_events.h"

namespace ampscope::observe {
namespace {

using Inputs = c10::ArrayRef<const c10::IValue>;

constexpr std::int64_t looked_at = 256;            ///< elements of one tensor
constexpr std::size_t looked_at_a_step = 1 << 16;  ///< elements of all parameters of one optimizer
constexpr std::int64_t looked_at_in_cast = 4096;
constexpr std::int64_t rows_looked_at = 32;
constexpr std::int64_t longest_row = std::int64_t{1} << 18;
/// What fp32 probabilities miss one by at most, over rows of any usual length.
constexpr double rounding_of_float = 1e-5;

/// One element of a readable tensor as a number; NaN for a type that is none of the usual ones.
double element(const c10::TensorImpl& tensor, std::int64_t index) noexcept {
  const void* base = address_of(tensor);
  switch (c10::typeMetaToScalarType(tensor.dtype())) {
    case c10::ScalarType::Half:
      return static_cast<double>(static_cast<float>(static_cast<const c10::Half*>(base)[index]));
    case c10::ScalarType::BFloat16:
      return static_cast<double>(static_cast<float>(static_cast<const c10::BFloat16*>(base)[index]));
    case c10::ScalarType::Float:
      return static_cast<double>(static_cast<const float*>(base)[index]);
    case c10::ScalarType::Double:
      return static_cast<const double*>(base)[index];
    case c10::ScalarType::Long:
      return static_cast<double>(static_cast<const std::int64_t*>(base)[index]);
    case c10::ScalarType::Int:
      return static_cast<const std::int32_t*>(base)[index];
    case c10::ScalarType::Short:
      return static_cast<const std::int16_t*>(base)[index];
    default:
      return std::numeric_limits<double>::quiet_NaN();
  }
}

bool is_whole_type(trace::DType type) noexcept {
  return type == trace::DType::int64 || type == trace::DType::int32 || type == trace::DType::int16;
}

/// Elements lie one behind the other, so that an index means the same in two tensors of the same shape and strides.
bool dense(const c10::TensorImpl& tensor) noexcept {
  return readable(tensor) && tensor.numel() > 0 && tensor.is_non_overlapping_and_dense();
}

bool alike(const c10::TensorImpl& a, const c10::TensorImpl& b) {
  return dense(b) && a.sizes() == b.sizes() && a.strides() == b.strides();
}

struct Picks {
  std::int64_t count = 0;
  std::int64_t stride = 1;
};
Picks picks_of(std::int64_t elements, std::int64_t most) noexcept {
  const std::int64_t stride = std::max<std::int64_t>(1, (elements + most - 1) / most);
  return {(elements + stride - 1) / stride, stride};
}

const c10::TensorImpl* tensor_at(Inputs inputs, std::size_t index) noexcept {
  if (index >= inputs.size()) return nullptr;
  const at::Tensor* tensor = tensor_of(inputs[index]);
  return tensor ? tensor->unsafeGetTensorImpl() : nullptr;
}

/// A number among the arguments, or a tensor that stands for one; NaN when it is neither.
double number_at(Inputs inputs, std::size_t index) noexcept {
  if (index >= inputs.size()) return std::numeric_limits<double>::quiet_NaN();
  if (inputs[index].isDouble()) return inputs[index].toDouble();
  if (inputs[index].isInt()) return static_cast<double>(inputs[index].toInt());
  const c10::TensorImpl* tensor = tensor_at(inputs, index);
  return tensor && (tensor->is_wrapped_number() || readable(*tensor)) ? scalar_of(*tensor)
                                                                      : std::numeric_limits<double>::quiet_NaN();
}

/// Whether a tensor outlives the step: written in an earlier one, by this same line before, or never seen to be
/// written.
bool is_kept(const ThreadState& thread, const Frame& frame, const ProducerTable::Entry& writer) {
  if (!writer.known || writer.thread != thread.slot) return true;
  return static_cast<std::int32_t>(writer.clock - thread.step_clock) <= 0 ||
         (frame.site && writer.site == frame.site->id);
}

/// Whether what is copied from is an update: made in this step, and no copy of what is older.
bool just_computed(Session& session, const ThreadState& thread, const Frame& frame, const c10::TensorImpl* source) {
  if (!source) return false;
  const ProducerTable::Entry made = session.producers.find(address_of(*source));
  return made.known && !made.external && !made.kept && !made.of_kept && !is_kept(thread, frame, made);
}

const WatchedResult* result_at(const ThreadState& thread, const void* address) noexcept {
  for (const WatchedResult& result : thread.watched_results) {
    if (result.address == address && address) return &result;
  }
  return nullptr;
}

/// Fills in what the op is to add to each of the elements that are looked at. False when that cannot be told.
bool find_contributions(WatchedWrite& write, const Frame& frame, Inputs inputs, const c10::TensorImpl& kept,
                        std::size_t other_index, const Picks& picks) {
  const c10::TensorImpl* other = tensor_at(inputs, other_index);
  const double constant = number_at(inputs, other_index);
  const bool same_shape = other && !other->is_wrapped_number() && alike(kept, *other);
  double factor = 1;
  switch (frame.op->update) {
    case Update::add:
    case Update::subtract:
      factor = number_at(inputs, 2);
      if (!std::isfinite(factor)) factor = 1;
      if (frame.op->update == Update::subtract) factor = -factor;
      break;
    case Update::lerp:
      factor = number_at(inputs, 2);
      if (!std::isfinite(factor) || factor == 0 || !same_shape) return false;
      break;
    case Update::multiply:
      if (!std::isfinite(constant) || constant == 1) return false;
      break;
    case Update::other:  // what was computed in a wider type
      if (!same_shape) return false;
      break;
    default:
      return false;
  }
  if (!same_shape && !std::isfinite(constant)) return false;
  for (std::int64_t i = 0; i < picks.count; ++i) {
    const auto before = static_cast<double>(write.before[static_cast<std::size_t>(i)]);
    const double second = same_shape ? element(*other, i * picks.stride) : constant;
    double contribution = second * factor;
    if (frame.op->update == Update::lerp) contribution = (second - before) * factor;
    if (frame.op->update == Update::multiply) contribution = (constant - 1) * before;
    if (frame.op->update == Update::other) contribution = second - before;
    write.contribution.push_back(static_cast<float>(contribution));
  }
  write.weight = frame.op->update == Update::lerp ? factor : frame.op->update == Update::multiply ? 1 - constant : 0;
  return true;
}

/// An update written by hand: what it is to do follows from the gradient.
bool find_gradient(Session& session, WatchedWrite& write, std::int64_t parameter, const c10::TensorImpl& kept,
                   const Picks& picks) {
  const std::lock_guard lock(session.protocol.mutex);
  const auto index = static_cast<std::size_t>(parameter);
  if (index >= session.protocol.variables.size()) return false;
  auto strong = session.protocol.variables[index].lock();
  if (!strong) return false;
  const at::Tensor variable(std::move(strong));
  if (!variable.defined() || !variable.grad().defined()) return false;
  const c10::TensorImpl& gradient = *variable.grad().unsafeGetTensorImpl();
  if (!alike(kept, gradient)) return false;
  for (std::int64_t i = 0; i < picks.count; ++i)
    write.contribution.push_back(static_cast<float>(element(gradient, i * picks.stride)));
  return true;
}

void compare(trace::WriteSample& sample, double before, double contribution, double after, double weight) {
  ++sample.elements;
  if (contribution == 0 || !std::isfinite(before) || !std::isfinite(contribution)) return;
  ++sample.concerned;
  const double size = std::abs(contribution);
  sample.value_sum += std::abs(before);
  sample.contribution_sum += size;
  sample.outward_sum += contribution * before < 0 ? -size : size;
  if (weight > 0) sample.distance_sum += std::abs(contribution / weight - before);
  if (before != after) ++sample.changed;
}

void finish(trace::WriteSample& sample) {
  sample.calls = 1;
  sample.idle_calls = sample.changed == 0 ? 1 : 0;
  const auto count = static_cast<double>(std::max<std::int64_t>(sample.concerned, 1));
  sample.latest_value = sample.value_sum / count;
  sample.latest_contribution = sample.contribution_sum / count;
}

/// Counts how many of the elements that are concerned have left the value they had when the parameter was first looked
/// at: what rounds at random, or is copied from wider weights, moves in the end.
void follow(ThreadState& thread, trace::WriteSample& sample, const float* before, const float* contribution,
            std::size_t count, const c10::TensorImpl& weight, std::int64_t stride) {
  FirstLook& first = thread.first_looks[sample.parameter];
  if (first.values.size() != count) {
    first.since = sample.step;
    first.values.assign(before, before + count);
  }
  sample.since = first.since;
  for (std::size_t i = 0; i < count; ++i) {
    const auto first_value = static_cast<double>(first.values[i]);
    if (contribution[i] == 0 || !std::isfinite(contribution[i])) continue;
    if (element(weight, static_cast<std::int64_t>(i) * stride) != first_value) ++sample.moved;
  }
}

/// Whether numbers look as if they counted something, from a few of them: whole and beyond what the type holds exactly,
/// or equally far apart.
bool may_count(const c10::TensorImpl& tensor, std::int64_t first, std::int64_t count, double exact) {
  bool whole = true;
  bool large = false;
  for (std::int64_t i = 0; i < 16; ++i) {
    const double value = element(tensor, first + i * (count - 1) / 15);
    whole = whole && std::nearbyint(value) == value;
    large = large || std::abs(value) > exact;
  }
  if (whole) return large;
  const double gap = element(tensor, first + 1) - element(tensor, first);
  for (std::int64_t i = 1; i < 8 && i + 1 < count; ++i) {
    const double next = element(tensor, first + i + 1) - element(tensor, first + i);
    if (!(std::abs(next - gap) <= 1e-3 * std::abs(gap))) return false;
  }
  return gap != 0;
}

void look_at_conversion(Session& session, ThreadState& thread, const Frame& frame, const c10::TensorImpl& from,
                        trace::DType to) {
  if (!dense(from) || from.numel() < 4) return;
  const trace::DType type = dtype_of(from);
  if (!is_whole_type(type) && type != trace::DType::float32 && type != trace::DType::float64) return;
  // The last elements: positions grow.
  const std::int64_t count = std::min(from.numel(), looked_at_in_cast);
  const std::int64_t first = from.numel() - count;
  const double exact = std::ldexp(1.0, trace::float_limits(to).significand_bits);
  if (!may_count(from, first, count, exact)) return;
  std::vector<float>& values = thread.write.before;
  std::vector<float>& rounded = thread.write.contribution;
  values.clear();
  rounded.clear();
  trace::WriteSample sample;
  sample.step = session.step.load(std::memory_order_relaxed);
  sample.site = frame.site->id;
  sample.kind = trace::WriteKind::cast;
  sample.dtype = to;
  sample.calls = 1;
  sample.whole = is_whole_type(type);
  sample.elements = sample.concerned = count;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto value = static_cast<float>(element(from, first + i));
    const float after =
        to == trace::DType::float16 ? static_cast<float>(c10::Half(value)) : static_cast<float>(c10::BFloat16(value));
    if (!std::isfinite(value)) return;
    if (after != value) ++sample.changed;
    values.push_back(value);
    rounded.push_back(after);
  }
  std::sort(values.begin(), values.end());
  std::sort(rounded.begin(), rounded.end());
  sample.smallest = static_cast<double>(values.front());
  sample.largest = static_cast<double>(values.back());
  const auto last = std::unique(values.begin(), values.end());
  sample.distinct = last - values.begin();
  sample.distinct_kept = std::unique(rounded.begin(), rounded.end()) - rounded.begin();
  if (sample.distinct >= 4) {
    const double gap = static_cast<double>(values[1]) - static_cast<double>(values[0]);
    const double all = sample.largest - sample.smallest;
    sample.evenly_spaced = true;
    for (auto at = values.begin(); at + 1 < last && sample.evenly_spaced; ++at) {
      const double here = static_cast<double>(*(at + 1)) - static_cast<double>(*at);
      sample.evenly_spaced = std::abs(here - gap) <= 1e-3 * gap + 1e-6 * all;
    }
  }
  session.recorder.write(*thread.lane, sample);
}

double sum_of_row(const c10::TensorImpl& tensor, std::int64_t row, std::int64_t length, bool& in_range) {
  double sum = 0;
  for (std::int64_t i = 0; i < length; ++i) {
    const double value = element(tensor, row * length + i);
    in_range = in_range && value >= 0 && value <= 1;
    sum += value;
  }
  return sum;
}

/// Rows of a narrow result that are probabilities: made by a softmax, or copied from rows that add up to one.
void look_at_rows(Session& session, ThreadState& thread, const Frame& frame, const c10::TensorImpl& result,
                  const c10::TensorImpl* from) {
  if (!dense(result) || !result.is_contiguous() || result.dim() == 0) return;
  const std::int64_t length = result.size(result.dim() - 1);
  if (length < 2 || length > longest_row) return;
  if (from && (!dense(*from) || !from->is_contiguous() || from->sizes() != result.sizes())) return;
  const Picks rows = picks_of(result.numel() / length, rows_looked_at);
  trace::WriteSample sample;
  for (std::int64_t i = 0; i < rows.count; ++i) {
    const std::int64_t row = i * rows.stride;
    bool in_range = true;
    if (from && !(std::abs(sum_of_row(*from, row, length, in_range) - 1) <= rounding_of_float)) return;
    const double missed = std::abs(sum_of_row(result, row, length, in_range) - 1);
    if (!in_range || !(missed < 0.25)) return;  // Along another dimension, or none of ours.
    ++sample.concerned;
    if (missed > rounding_of_float) ++sample.changed;
    sample.largest = std::max(sample.largest, missed);
  }
  sample.step = session.step.load(std::memory_order_relaxed);
  sample.site = frame.site->id;
  sample.kind = trace::WriteKind::distribution;
  sample.dtype = dtype_of(result);
  sample.calls = 1;
  sample.elements = rows.count;
  session.recorder.write(*thread.lane, sample);
}

}  // namespace

void watch_write(Session& session, ThreadState& thread, Frame& frame, Inputs inputs) {
  // Of an op that an exception has left: its place on the stack is used again.
  if (thread.write.function == frame.function) thread.write.function = nullptr;
  if (!frame.site || !session.looks_at_outputs()) return;
  if (frame.phase == trace::Phase::optimizer || frame.phase == trace::Phase::scaler) return;
  const bool in_place = frame.op->mutates_first;
  // What backward computes is made anew each time; only gradients are kept, and they are added to in place.
  if (frame.phase == trace::Phase::backward && !in_place) return;
  std::size_t kept_index = 0;
  const c10::TensorImpl* kept = tensor_at(inputs, 0);
  const auto stays = [&](const c10::TensorImpl& tensor) {
    return result_at(thread, address_of(tensor)) || is_kept(thread, frame, session.producers.find(address_of(tensor)));
  };
  if (!in_place && frame.op->update == Update::add) {
    const c10::TensorImpl* second = tensor_at(inputs, 1);
    const bool first_is_kept =
        kept && trace::is_half(dtype_of(*kept)) && dense(*kept) && (kept == second || stays(*kept));
    if (!first_is_kept && second && !second->is_wrapped_number()) {
      kept = second;
      kept_index = 1;
    }
  }
  if (!kept || kept->is_wrapped_number() || !trace::is_half(dtype_of(*kept)) || !dense(*kept)) return;
  const void* address = address_of(*kept);
  const ProducerTable::Entry writer = session.producers.find(address);
  const std::int64_t of_gradient = gradient_at(session, address);
  const std::int64_t parameter = of_gradient >= 0 ? trace::none : parameter_at(session, address);
  WatchedWrite& write = thread.write;
  trace::WriteSample sample;
  if (of_gradient >= 0) {
    if (!in_place || frame.op->update != Update::add) return;
    sample.parameter = of_gradient;
    sample.gradient = true;
  } else if (frame.phase == trace::Phase::backward) {
    return;
  } else if (parameter >= 0) {
    // Weights are changed by optimizers; by hand only where autograd does not look.
    if (!in_place || (c10::GradMode::is_enabled() && kept->requires_grad())) return;
    if (frame.op->update == Update::multiply) return;
    sample.parameter = parameter;
    sample.kind = trace::WriteKind::parameter;
    // Weights are loaded and swapped as well.
    if (frame.op->values == Values::casts && !just_computed(session, thread, frame, tensor_at(inputs, 1))) return;
  } else {
    if (c10::GradMode::is_enabled() && kept->requires_grad()) return;
    if (!stays(*kept)) return;
    if (frame.op->update == Update::other) {
      const c10::TensorImpl* source = frame.op->values == Values::casts ? tensor_at(inputs, 1) : nullptr;
      // Memory that no op was seen to write is that of a new tensor, which a conversion fills.
      if (!writer.known || !source || dtype_of(*source) != trace::DType::float32) return;
      if (!just_computed(session, thread, frame, source)) return;
    }
  }
  write.before.clear();
  write.contribution.clear();
  write.weight = 0;
  const Picks picks = picks_of(kept->numel(), looked_at);
  for (std::int64_t i = 0; i < picks.count; ++i)
    write.before.push_back(static_cast<float>(element(*kept, i * picks.stride)));
  if (sample.kind == trace::WriteKind::parameter) {
    if (!find_gradient(session, write, parameter, *kept, picks)) return;
  } else {
    if (!find_contributions(write, frame, inputs, *kept, 1 - kept_index, picks)) return;
    sample.kind = frame.op->update == Update::multiply ? trace::WriteKind::multiply
                  : frame.op->update == Update::lerp   ? trace::WriteKind::lerp
                                                       : trace::WriteKind::add;
    if (const c10::TensorImpl* other = tensor_at(inputs, 1 - kept_index); other && !sample.gradient) {
      sample.gradient = gradient_at(session, address_of(*other)) >= 0;
    }
  }
  // The second half of a moving average: what it adds is the weight that the first half took away, times the new value.
  const WatchedResult* half_done = result_at(thread, address);
  write.follows = frame.op->update == Update::lerp     ? write.weight
                  : half_done && half_done->weight > 0 ? half_done->weight
                                                       : 0;
  sample.dtype = dtype_of(*kept);
  sample.step = session.step.load(std::memory_order_relaxed);
  sample.site = frame.site->id;
  sample.writer = writer.known ? writer.site : trace::none;
  write.function = frame.function;
  write.sample = sample;
}

void watch_result(Session& session, ThreadState& thread, Frame& frame, c10::ArrayRef<c10::IValue> outputs) {
  if (!frame.site || !session.looks_at_outputs() || outputs.empty()) return;
  WatchedWrite& write = thread.write;
  const bool watched = write.function == frame.function && frame.op->update != Update::none;
  if (watched) write.function = nullptr;
  const at::Tensor* output = tensor_of(outputs[0]);
  if (!output) return;
  const c10::TensorImpl& result = *output->unsafeGetTensorImpl();
  if (!trace::is_half(dtype_of(result))) return;
  if (watched) {
    const Picks picks = picks_of(result.numel(), looked_at);
    if (!dense(result) || static_cast<std::size_t>(picks.count) != write.before.size() ||
        dtype_of(result) != write.sample.dtype) {
      return;
    }
    trace::WriteSample& sample = write.sample;
    const bool by_lerp = frame.op->update == Update::lerp;
    for (std::int64_t i = 0; i < picks.count; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const auto before = static_cast<double>(write.before[at]);
      const auto contribution = static_cast<double>(write.contribution[at]);
      // lerp: contribution = (source - before) * weight, so the distance needs no value.
      compare(sample, before, contribution, element(result, i * picks.stride), by_lerp ? 0 : write.follows);
      if (by_lerp && contribution != 0) sample.distance_sum += std::abs(contribution / write.follows);
    }
    thread.watched_results[thread.next_watched_result++ % thread.watched_results.size()] = {address_of(result),
                                                                                            write.weight};
    if (sample.concerned == 0) return;
    finish(sample);
    if (sample.kind == trace::WriteKind::parameter) {
      follow(thread, sample, write.before.data(), write.contribution.data(), write.before.size(), result, picks.stride);
    }
    session.recorder.write(*thread.lane, sample);
    return;
  }
  if (!session.full_numerics.load(std::memory_order_relaxed)) return;
  if (frame.phase == trace::Phase::optimizer || frame.phase == trace::Phase::backward) return;
  if (frame.op->makes_distribution) {
    look_at_rows(session, thread, frame, result, nullptr);
    return;
  }
  const bool converts = frame.op->values == Values::casts && frame.op->mutates_first;
  if (!converts && frame.op->update == Update::none) return;
  for (std::uint8_t i = 0; i < frame.input_count; ++i) {
    if (converts && frame.inputs[i].argument != 1) continue;
    auto strong = frame.inputs[i].tensor.lock();
    if (!strong) continue;
    const at::Tensor input(std::move(strong));
    const c10::TensorImpl& from = *input.unsafeGetTensorImpl();
    if (!converts && !is_whole_type(dtype_of(from))) continue;
    if (from.is_wrapped_number() || !readable(from)) continue;
    look_at_conversion(session, thread, frame, from, dtype_of(result));
    if (converts && dtype_of(from) == trace::DType::float32) look_at_rows(session, thread, frame, result, &from);
  }
}

void watch_parameters(Session& session, ThreadState& thread, std::int64_t optimizer) {
  WatchedParameters& watched = thread.watched_parameters;
  watched.entries.clear();
  watched.before.clear();
  watched.gradient.clear();
  watched.clock = thread.clock;
  if (!session.looks_at_outputs() || !session.full_numerics.load(std::memory_order_relaxed)) return;
  Protocol& p = session.protocol;
  const std::lock_guard lock(p.mutex);
  for (std::size_t id = 0; id < p.variables.size(); ++id) {
    const trace::Parameter& known = p.parameters[id];
    if (!trace::is_half(known.dtype)) continue;
    if (optimizer >= 0 && known.optimizer >= 0 && known.optimizer != optimizer) continue;
    auto strong = p.variables[id].lock();
    if (!strong) continue;
    const at::Tensor variable(std::move(strong));
    if (!variable.defined() || !variable.grad().defined()) continue;
    const c10::TensorImpl& weight = *variable.unsafeGetTensorImpl();
    const c10::TensorImpl& gradient = *variable.grad().unsafeGetTensorImpl();
    if (!dense(weight) || !alike(weight, gradient) || variable.is_inference()) continue;
    const Picks picks = picks_of(weight.numel(), looked_at);
    if (watched.before.size() + static_cast<std::size_t>(picks.count) > looked_at_a_step) break;
    WatchedParameters::Entry entry;
    entry.parameter = static_cast<std::int64_t>(id);
    entry.tensor = WeakTensor(variable.getIntrusivePtr());
    entry.version = weight.version_counter().current_version();
    entry.first = watched.before.size();
    entry.count = static_cast<std::size_t>(picks.count);
    for (std::int64_t i = 0; i < picks.count; ++i) {
      watched.before.push_back(static_cast<float>(element(weight, i * picks.stride)));
      watched.gradient.push_back(static_cast<float>(element(gradient, i * picks.stride)));
    }
    watched.entries.push_back(std::move(entry));
  }
}

void note_fused_write(ThreadState& thread, Inputs inputs) {
  if (thread.watched_parameters.entries.empty() || inputs.empty() || !inputs[0].isTensorList()) return;
  for (const c10::IValue& entry : inputs[0].toListRef()) {
    const at::Tensor* const written = tensor_of(entry);
    if (!written) continue;
    for (WatchedParameters::Entry& watched : thread.watched_parameters.entries) {
      const auto strong = watched.tensor.lock();
      watched.in_fused_kernel |= strong && strong.get() == written->unsafeGetTensorImpl();
    }
  }
}

void compare_parameters(Session& session, ThreadState& thread, const Frame& frame, bool skipped) {
  WatchedParameters& watched = thread.watched_parameters;
  for (WatchedParameters::Entry& entry : watched.entries) {
    auto strong = entry.tensor.lock();
    if (!strong || skipped || !frame.site) continue;
    const at::Tensor variable(std::move(strong));
    const c10::TensorImpl& weight = *variable.unsafeGetTensorImpl();
    const Picks picks = picks_of(weight.numel(), looked_at);
    if (!dense(weight) || static_cast<std::size_t>(picks.count) != entry.count) continue;
    // Gradients may be another optimizer's, whose own weights are copies of these: only what this one wrote counts.
    const ProducerTable::Entry writer = session.producers.find(address_of(weight));
    const bool written_here =
        writer.known && writer.thread == thread.slot && static_cast<std::int32_t>(writer.clock - watched.clock) >= 0;
    if (!written_here && !entry.in_fused_kernel && weight.version_counter().current_version() == entry.version)
      continue;
    trace::WriteSample sample;
    sample.step = session.step.load(std::memory_order_relaxed);
    sample.site = frame.site->id;
    sample.parameter = entry.parameter;
    sample.kind = trace::WriteKind::parameter;
    sample.dtype = dtype_of(weight);
    if (written_here) {
      sample.writer = writer.site;
      sample.copied = writer.of_kept;
    }
    for (std::int64_t i = 0; i < picks.count; ++i) {
      const std::size_t at = entry.first + static_cast<std::size_t>(i);
      compare(sample, static_cast<double>(watched.before[at]), static_cast<double>(watched.gradient[at]),
              element(weight, i * picks.stride), 0);
    }
    if (sample.concerned == 0) continue;
    finish(sample);
    follow(thread, sample, watched.before.data() + entry.first, watched.gradient.data() + entry.first, entry.count,
           weight, picks.stride);
    session.recorder.write(*thread.lane, sample);
  }
  watched.entries.clear();
}

}  // namespace ampscope::observe
