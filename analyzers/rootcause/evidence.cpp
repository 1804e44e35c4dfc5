#include "analyzers/rootcause/evidence.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "analyzers/core/numbers.h"
#include "analyzers/core/scalars.h"

namespace ampscope::analyzers {

namespace {

std::int64_t elements_of(const std::vector<std::int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

std::int64_t elements_of(const trace::WitnessTensor& tensor) {
  return tensor.stats.count != 0 ? static_cast<std::int64_t>(tensor.stats.count) : elements_of(tensor.type.shape);
}

/// Floating inputs with at least two dimensions: the factors of a product, without a bias.
std::vector<const trace::WitnessTensor*> factors_of(const trace::NonfiniteEvent& event) {
  std::vector<const trace::WitnessTensor*> factors;
  for (const trace::WitnessTensor& input : event.inputs) {
    if (trace::is_floating(input.type.dtype) && input.type.shape.size() >= 2 && !receives_result(input))
      factors.push_back(&input);
  }
  return factors;
}

}  // namespace

Claim judge_overflow(const trace::NonfiniteEvent& event, trace::DType dtype, std::optional<double> bound) {
  const double limit = trace::float_limits(dtype).max;
  if (kind_of(event) == trace::OriginKind::unknown) return Claim::plausible;
  if (!inputs_finite(event)) return Claim::none;
  if (event.replay.done) {
    return event.replay.finite && event.replay.absmax > limit ? Claim::proven : Claim::none;
  }
  if (!bound) return Claim::plausible;
  return *bound >= limit ? Claim::supported : Claim::none;
}

std::optional<std::int64_t> inner_dimension(const trace::Site& site, const trace::NonfiniteEvent& event) {
  const std::vector<const trace::WitnessTensor*> factors = factors_of(event);
  if (factors.empty()) return std::nullopt;
  const std::string_view base = base_name(site.name);
  if (base.find("attention") != std::string_view::npos) return factors.front()->type.shape.back();
  if (base.find("conv") != std::string_view::npos) {
    // Each output value sums over the weights of one output channel; weights are [out, in / groups, …].
    if (factors.size() < 2 || base.find("backward") != std::string_view::npos ||
        base.find("transpose") != std::string_view::npos) {
      return std::nullopt;
    }
    const std::vector<std::int64_t>& weight = factors[1]->type.shape;
    return weight.front() > 0 ? std::optional(elements_of(weight) / weight.front()) : std::nullopt;
  }
  // [… , m, k] × [k, n], also with a bias of two dimensions before them (addmm with a full matrix).
  const bool added = base.starts_with("add") || base.starts_with("badd");
  const std::size_t first = added && factors.size() >= 3 ? 1 : 0;
  return factors[first]->type.shape.back();
}

std::optional<double> largest_product(const Origin& origin) {
  const auto terms = inner_dimension(*origin.site, *origin.event);
  if (!terms) return std::nullopt;
  double product = static_cast<double>(*terms);
  double added = 0;
  int factors = 0;
  for (const trace::WitnessTensor& input : origin.event->inputs) {
    if (!trace::is_floating(input.type.dtype) || receives_result(input)) continue;
    if (!input.looked_at) return std::nullopt;
    if (input.type.shape.size() >= 2) {
      product *= input.stats.absmax;
      ++factors;
    } else {
      added += input.stats.absmax;
    }
  }
  return factors == 2 ? std::optional(product + added) : std::nullopt;
}

namespace {

/// Elements along a dimension, counted from the end where it is negative.
std::optional<std::int64_t> extent(const trace::WitnessTensor& tensor, double dimension) {
  const std::vector<std::int64_t>& shape = tensor.type.shape;
  const auto rank = static_cast<double>(shape.size());
  const double index = dimension < 0 ? dimension + rank : dimension;
  return index >= 0 && index < rank ? std::optional(shape[static_cast<std::size_t>(index)]) : std::nullopt;
}

}  // namespace

std::optional<std::int64_t> reduction_terms(const trace::Site& site, const trace::NonfiniteEvent& event) {
  const std::string_view base = base_name(site.name);
  const auto floating = [](const trace::WitnessTensor& tensor) { return trace::is_floating(tensor.type.dtype); };
  auto input = std::find_if(event.inputs.begin(), event.inputs.end(), floating);
  // The first argument is what they add to, the terms come last, and all of them may go to one place.
  if (base.starts_with("index_add") || base.starts_with("scatter")) {
    for (auto at = input; at != event.inputs.end(); ++at) {
      if (floating(*at)) input = at;
    }
    if (input == event.inputs.end() || input->type.shape.empty()) return std::nullopt;
    const std::optional<double> dimension = scalar_named(event, "dim");
    return dimension ? extent(*input, *dimension) : std::nullopt;
  }
  if (input == event.inputs.end() || event.outputs.empty()) return std::nullopt;
  const std::int64_t in = elements_of(*input);
  const std::int64_t out = elements_of(event.outputs.front());
  if (base.find("cum") != std::string_view::npos) {
    // The last element of a running sum holds as many terms as the dimension it runs along.
    return event.scalars.empty() ? std::nullopt : extent(*input, event.scalars.front());
  }
  if (in <= 0 || out <= 0) return std::nullopt;
  return std::max<std::int64_t>(in / out, 1);
}

trace::DType output_dtype(const trace::NonfiniteEvent& event) noexcept {
  trace::DType narrowest = trace::DType::unknown;
  for (const trace::WitnessTensor& output : event.outputs) {
    if (!trace::is_floating(output.type.dtype)) continue;
    if (narrowest == trace::DType::unknown ||
        trace::float_limits(output.type.dtype).max < trace::float_limits(narrowest).max) {
      narrowest = output.type.dtype;
    }
  }
  return narrowest;
}

std::string describe_tensor(const trace::WitnessTensor& tensor) {
  std::string text =
      fmt::format("{} [{}]", trace::short_dtype_name(tensor.type.dtype), fmt::join(tensor.type.shape, ", "));
  if (!tensor.looked_at) return text + ", not looked at";
  const trace::TensorStats& stats = tensor.stats;
  if (stats.nan != 0)
    text += fmt::format(", {} NaN of {}", count_of(static_cast<std::int64_t>(stats.nan)),
                        count_of(static_cast<std::int64_t>(stats.count)));
  if (stats.infinite() != 0) {
    text += fmt::format(", {} infinite of {}", count_of(static_cast<std::int64_t>(stats.infinite())),
                        count_of(static_cast<std::int64_t>(stats.count)));
  }
  if (stats.count != 0 && stats.zero == stats.count) return text + ", all zero";
  if (stats.zero != 0) text += fmt::format(", {} zeros", count_of(static_cast<std::int64_t>(stats.zero)));
  if (stats.has_finite()) text += fmt::format(", largest {}", number(stats.absmax));
  return text;
}

std::string describe_tensors(const std::vector<trace::WitnessTensor>& tensors) {
  std::string text;
  for (const trace::WitnessTensor& tensor : tensors) {
    if (!trace::is_floating(tensor.type.dtype)) continue;
    text += (text.empty() ? "" : "; ") + describe_tensor(tensor);
  }
  return text.empty() ? "no floating tensor" : text;
}

std::string describe_bad(const NonfiniteCounts& counts) {
  const auto say = [&](std::uint64_t count, const char* what) {
    return count == counts.elements && count > 1
               ? fmt::format("all {} {}", count_of(static_cast<std::int64_t>(count)), what)
               : fmt::format("{} {}", count_of(static_cast<std::int64_t>(count)), what);
  };
  std::string text;
  if (counts.nan != 0) text = say(counts.nan, "NaN");
  if (counts.infinite() != 0) text += (text.empty() ? "" : " and ") + say(counts.infinite(), "infinite");
  return text.empty() ? "non-finite" : text;
}

void add_scene(const Origin& origin, Finding& finding) {
  const trace::NonfiniteEvent& event = *origin.event;
  const NonfiniteCounts counts = output_counts(event);
  Evidence& evidence = finding.evidence;
  evidence.emplace_back("dtype", trace::dtype_name(compute_dtype(event, *origin.site)));
  if (const auto largest = input_absmax(event)) evidence.emplace_back("largest_input", *largest);
  evidence.emplace_back("inputs", describe_tensors(event.inputs));
  evidence.emplace_back("outputs", describe_tensors(event.outputs));
  evidence.emplace_back("nan", static_cast<double>(counts.nan));
  evidence.emplace_back("infinite", static_cast<double>(counts.infinite()));
  evidence.emplace_back("micro_batch", static_cast<double>(event.micro_batch));
  if (event.replay.done) {
    evidence.emplace_back("replay", event.replay.precision);
    evidence.emplace_back("replay_finite", event.replay.finite ? "yes" : "no");
    evidence.emplace_back("replay_largest", event.replay.absmax);
  } else if (!event.replay.not_done_because.empty()) {
    evidence.emplace_back("replay", "not done: " + event.replay.not_done_because);
  }
  evidence.emplace_back("victims", static_cast<double>(origin.victims));
}

std::string describe_outcome(const Origin& origin) {
  std::string text;
  if (origin.outcome.cut_short) {
    return " The program ended over it, in the same step.";
  }
  if (origin.outcome.loss_nonfinite) {
    text = " It reached the loss";
  } else if (origin.outcome.gradients_nonfinite) {
    text = " It reached the gradients";
  } else {
    return text;
  }
  if (origin.outcome.skipped) {
    text += origin.steps.count > 1 ? fmt::format("; {} were skipped or lost", plural(origin.steps.count, "step"))
                                   : "; the step was skipped";
  } else if (origin.outcome.applied_nonfinite || (origin.outcome.stepped && origin.outcome.gradients_nonfinite)) {
    text += " and from there the weights";
  }
  return text + ".";
}

}  // namespace ampscope::analyzers
