#include "analyzers/rootcause/scene.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "analyzers/core/numbers.h"
#include "analyzers/core/protocol.h"

namespace ampscope::analyzers {

namespace {

constexpr int most_steps_to_selection = 5;

bool selects(std::string_view base) {
  static constexpr std::array names = {"where",     "masked_fill", "masked_scatter", "nan_to_num", "clamp",
                                       "clamp_min", "clamp_max",   "minimum",        "maximum",    "masked_select"};
  return std::find(names.begin(), names.end(), base) != names.end();
}

const trace::WitnessTensor* number_tensor(const trace::NonfiniteEvent& event, std::size_t position) {
  return position < event.inputs.size() ? &event.inputs[position] : nullptr;
}

}  // namespace

bool made_here(const Origin& origin) noexcept {
  return origin.site->id == origin.event->site && origin.kind == trace::OriginKind::producer &&
         !origin.from_intended_infinity;
}

bool nonfinite_when_wider(const trace::NonfiniteEvent& event) noexcept {
  return event.replay.done && !event.replay.finite;
}

bool finite_when_wider(const trace::NonfiniteEvent& event) noexcept {
  return event.replay.done && event.replay.finite;
}

std::span<const double> scalars_of(const Origin& origin) noexcept {
  return !origin.event->scalars.empty() ? origin.event->scalars : origin.site->scalars;
}

Divisor divisor_of(const Origin& origin) noexcept {
  const trace::NonfiniteEvent& event = *origin.event;
  const std::string_view base = base_name(origin.site->name);
  const std::span<const double> scalars = scalars_of(origin);
  Divisor divisor;
  const auto take = [&](const trace::WitnessTensor* tensor) {
    if (tensor == nullptr || !tensor->looked_at || tensor->stats.count == 0) return;
    divisor.known = true;
    divisor.tensor = tensor;
    divisor.zeros = tensor->stats.zero;
    divisor.count = tensor->stats.count;
  };
  const auto take_number = [&](double number) {
    divisor.known = divisor.is_number = true;
    divisor.number = number;
    divisor.zeros = number == 0 ? 1 : 0;
    divisor.count = 1;
  };
  if (base == "div" || base == "true_divide" || base == "divide" || base == "remainder" || base == "fmod" ||
      base == "floor_divide") {
    if (event.inputs.size() >= 2) {
      take(number_tensor(event, 1));
    } else if (!scalars.empty()) {
      // A number over a tensor is a division by the tensor; the number comes first then.
      const bool tensor_is_first = event.inputs.empty() || event.inputs.front().argument != "other";
      if (tensor_is_first)
        take_number(scalars.front());
      else
        take(number_tensor(event, 0));
    }
  } else if (base == "reciprocal" || base == "rsqrt") {
    take(number_tensor(event, 0));
  } else if (base == "addcdiv") {
    take(number_tensor(event, 2));
  } else if (base == "pow" || base == "float_power") {
    const bool negative = std::any_of(scalars.begin(), scalars.end(), [](double value) { return value < 0; });
    const trace::WitnessTensor* const exponent = number_tensor(event, 1);
    if (negative || (exponent != nullptr && exponent->looked_at && exponent->stats.min < 0))
      take(number_tensor(event, 0));
  }
  return divisor;
}

bool divides_by_zero(const Origin& origin) noexcept {
  const Divisor divisor = divisor_of(origin);
  if (!divisor.known || divisor.zeros == 0) return false;
  const NonfiniteCounts counts = output_counts(*origin.event);
  if (divisor.count == 0 || counts.elements == 0) return true;
  // Each zero spoils as many results as it is broadcast to. More bad results than that have another cause as well.
  const std::uint64_t times = std::max<std::uint64_t>(counts.elements / divisor.count, 1);
  return counts.total() <= divisor.zeros * times;
}

const trace::Site* accumulates_wider(const TraceView& view, const Origin& origin) {
  if (origin.op != OpKind::cast || base_name(origin.site->name) != "copy") return nullptr;
  const trace::Site* const outer = view.parent(*origin.site);
  const bool sums = outer != nullptr && outer->kind == trace::SiteKind::op && op_kind(outer->name) == OpKind::reduction;
  return sums ? outer : nullptr;
}

bool is_hook_code(const TraceView& view, const Origin& origin) {
  const trace::Site& site = *origin.site;
  return runs_in_hook(view, site) && site.source.known() && view.forward_of(site.id) == nullptr;
}

std::optional<double> mask_constant(const Origin& origin) noexcept {
  const trace::NonfiniteEvent& event = *origin.event;
  if (!made_here(origin) || output_counts(event).infinite() == 0) return std::nullopt;
  const double limit = trace::float_limits(output_dtype(event)).max;
  if (limit == 0) return std::nullopt;
  if (origin.op == OpKind::cast) {
    for (const trace::WitnessTensor& input : event.inputs) {
      const trace::TensorStats& stats = input.stats;
      // Nothing but zeros and one large negative value, and no gradient: a mask that is added.
      const bool constant = stats.exponents.counts.size() == 1 && stats.max <= 0 && !input.type.requires_grad;
      if (input.looked_at && constant && stats.min < -limit) return stats.min;
    }
    return std::nullopt;
  }
  const std::string_view base = base_name(origin.site->name);
  const std::span<const double> scalars = scalars_of(origin);
  const auto beyond =
      std::find_if(scalars.begin(), scalars.end(), [&](double value) { return std::abs(value) > limit; });
  if (beyond == scalars.end() || !std::isfinite(*beyond) || event.inputs.empty()) return std::nullopt;
  if (base == "mul") {
    // (1 - mask) * -1e9: the other factor is a mask of zeros and ones.
    const trace::WitnessTensor& mask = event.inputs.front();
    const bool binary = mask.looked_at && mask.stats.absmax <= 1 && mask.stats.exponents.counts.size() <= 1;
    return binary && !mask.type.requires_grad ? std::optional(*beyond) : std::nullopt;
  }
  const bool puts = base == "add" || base == "sub" || writes_constant(origin.site->name);
  return puts && *beyond < 0 ? std::optional(*beyond) : std::nullopt;
}

namespace {

/// The expand that made `input` of `user`, on the same line, of a tensor that `is_constant`. What was made of a tensor
/// without a producer has none itself, so that only line and shape tell it.
template <typename Predicate>
const trace::Site* expansion_before(const TraceView& view, const trace::Site& user, const trace::TensorType& input,
                                    Predicate is_constant) {
  constexpr std::int64_t most_sites_back = 16;
  const trace::SourceLine line = view.source_of(user.id);
  for (std::int64_t id = user.id - 1; id >= std::max<std::int64_t>(user.id - most_sites_back, 0); --id) {
    const trace::Site* const site = view.site(id);
    if (site == nullptr || !base_name(site->name).starts_with("expand") || site->inputs.empty()) continue;
    const trace::SourceLine here = view.source_of(id);
    if (site->outputs.empty() || here.file != line.file || here.line != line.line) continue;
    const trace::TensorType& output = site->outputs.front();
    if (output.shape == input.shape && output.dtype == input.dtype && is_constant(site->inputs.front())) return site;
  }
  return nullptr;
}

}  // namespace

const trace::Site* infinite_constant(const TraceView& view, const Origin& origin) {
  if (origin.kind != trace::OriginKind::input || origin.parameter != trace::none) return nullptr;
  const auto is_constant = [](const trace::TensorType& type) {
    const bool one = std::all_of(type.shape.begin(), type.shape.end(), [](std::int64_t extent) { return extent == 1; });
    return one && type.dtype == trace::DType::float16 && type.producer == trace::none &&
           type.parameter == trace::none && !type.requires_grad;
  };
  const trace::Site* taker = nullptr;
  std::vector<std::int64_t> open;
  std::set<std::int64_t> visited;
  for (const trace::WitnessTensor& input : origin.event->inputs) {
    if (input.stats.nonfinite() == 0 || receives_result(input)) continue;
    if (input.stats.nan != 0) return nullptr;
    if (input.type.producer == trace::none && is_constant(input.type)) {
      taker = origin.site;
    } else if (visited.insert(input.type.producer).second) {
      open.push_back(input.type.producer);
    }
  }
  while (!open.empty()) {
    const trace::Site* const site = view.site(open.back());
    open.pop_back();
    if (site == nullptr) return nullptr;
    if (view.totals(site->id).checked_calls != 0) continue;  // finite, or it would be the origin
    if (op_kind(site->name) != OpKind::move) return nullptr;
    for (const trace::TensorType& input : site->inputs) {
      if (!trace::is_floating(input.dtype)) continue;
      if (input.producer != trace::none) {
        if (visited.insert(input.producer).second) open.push_back(input.producer);
        continue;
      }
      const trace::Site* const user = is_constant(input) ? site : expansion_before(view, *site, input, is_constant);
      if (user == nullptr) return nullptr;
      if (taker == nullptr || user->id < taker->id) taker = user;
    }
  }
  return taker;
}

const trace::WitnessTensor* saturating_mask(const Origin& origin) noexcept {
  const trace::NonfiniteEvent& event = *origin.event;
  const std::string_view base = base_name(origin.site->name);
  if (!made_here(origin) || (base != "add" && base != "sub") || !inputs_finite(event)) return nullptr;
  const NonfiniteCounts counts = output_counts(event);
  if (counts.negative == 0 || counts.nan != 0 || counts.positive != 0) return nullptr;
  const double limit = trace::float_limits(output_dtype(event)).max;
  for (const trace::WitnessTensor& input : event.inputs) {
    if (!input.looked_at || input.type.requires_grad || input.stats.max > 0) continue;
    if (input.stats.exponents.counts.size() != 1) continue;
    if (input.stats.min <= -limit * 0.9) return &input;
    // Or two masks that fit one by one: what this one is added to has one in it.
    const bool meets_mask =
        std::any_of(event.inputs.begin(), event.inputs.end(), [&](const trace::WitnessTensor& other) {
          return &other != &input && other.looked_at && other.stats.min <= -limit * 0.3;
        });
    if (input.stats.min <= -limit * 0.3 && meets_mask) return &input;
  }
  return nullptr;
}

bool may_be_rounded(const TraceView& view, const trace::WitnessTensor& tensor) {
  if (trace::is_half(tensor.type.dtype)) return true;
  const trace::Site* site = view.site(tensor.type.producer);
  for (int depth = 0; site != nullptr && depth < 3; ++depth) {
    if (trace::is_half(site->compute_dtype)) return true;
    if (std::any_of(site->inputs.begin(), site->inputs.end(),
                    [](const trace::TensorType& input) { return trace::is_half(input.dtype); })) {
      return true;
    }
    const std::int64_t before = site->inputs.empty() ? trace::none : site->inputs.front().producer;
    site = before != site->id ? view.site(before) : nullptr;
  }
  return false;
}

const trace::Site* discarded_by(const TraceView& view, const trace::Site& site) {
  std::set<std::int64_t> visited{site.id};
  std::vector<std::int64_t> open{site.id};
  for (int depth = 0; depth < most_steps_to_selection && !open.empty(); ++depth) {
    std::vector<std::int64_t> next;
    for (const std::int64_t at : open) {
      for (const std::int64_t consumer : view.consumers(at)) {
        const trace::Site* const user = view.site(consumer);
        if (user == nullptr || user->phase == trace::Phase::backward || !visited.insert(consumer).second) continue;
        if (selects(base_name(user->name))) return user;
        const OpKind kind = op_kind(user->name);
        if (kind == OpKind::elementwise || kind == OpKind::cast || kind == OpKind::move) next.push_back(consumer);
      }
    }
    open = std::move(next);
  }
  return nullptr;
}

std::string_view node_of(const TraceView& view, const Origin& origin) {
  const trace::Site* const node = view.backward_node(origin.site->id);
  return node != nullptr ? std::string_view(node->name) : std::string_view();
}

std::string describe_range(const trace::TensorStats& stats) {
  if (!stats.has_finite()) return "no finite value";
  return stats.min == stats.max ? number(stats.min) : fmt::format("{} to {}", number(stats.min), number(stats.max));
}

}  // namespace ampscope::analyzers
