#include "analyzers/rootcause/vanished.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>

#include "analyzers/core/rounding.h"
#include "analyzers/core/scalars.h"
#include "analyzers/rootcause/scene.h"

namespace ampscope::analyzers {

namespace {

using trace::DType;
using trace::NonfiniteEvent;
using trace::Site;
using trace::WitnessTensor;

constexpr int most_steps_back = 10;
/// The largest logit whose sigmoid or softmax fp32 still tells from one.
constexpr double largest_fp32_logit = 16;

template <std::size_t size>
bool among(std::string_view name, const std::array<std::string_view, size>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Operations that make infinity or NaN of a zero (or, the last ones, of a one).
bool divides(std::string_view base) {
  static constexpr std::array<std::string_view, 6> names = {"div",         "true_divide", "divide",
                                                            "foreach_div", "addcdiv",     "floor_divide"};
  return among(base, names);
}

bool cannot_bear(std::string_view base) {
  static constexpr std::array<std::string_view, 16> names = {
      "log",   "log2",  "log10", "log1p", "reciprocal", "rsqrt", "pow",     "sqrt",
      "logit", "atanh", "acos",  "asin",  "xlogy",      "acosh", "digamma", "lgamma"};
  return divides(base) || among(base, names);
}

bool breaks_at_one(std::string_view base) {
  return base == "acos" || base == "asin" || base == "atanh" || base == "logit";
}

DType result_dtype(const Site& site) {
  for (const trace::TensorType& output : site.outputs) {
    if (trace::is_floating(output.dtype)) return output.dtype;
  }
  return site.outputs.empty() ? site.compute_dtype : DType::unknown;
}

/// Statistics of a site's result in `step`, or in the latest step before it that was looked at; null when there are
/// none.
const trace::SiteNumerics* numbers_of(const TraceView& view, std::int64_t site, std::int64_t step) {
  const trace::SiteNumerics* best = nullptr;
  for (const trace::SiteNumerics* row : view.numerics(site)) {
    if (row->step <= step) best = row;
  }
  return best;
}

/// Constants of an operation that a program adds, or limits to, to stay away from zero or one.
std::vector<double> guards(const Site& site) {
  static constexpr std::array<std::string_view, 14> guarding = {
      "add",  "sub",       "rsub",     "clamp", "clamp_min", "clamp_max",   "clip",
      "full", "full_like", "new_full", "fill",  "threshold", "masked_fill", "logit"};
  static constexpr std::array<std::string_view, 4> others = {"hardtanh", "where", "scalar_tensor", "foreach_add"};
  const std::string_view base = base_name(site.name);
  if (!among(base, guarding) && !among(base, others) && base != "maximum" && base != "minimum") return {};
  std::vector<double> constants;
  const double factor = scalar_named(site, "alpha").value_or(1);
  for (std::size_t i = 0; i < site.scalars.size(); ++i) {
    const std::string_view name = i < site.scalar_names.size() ? std::string_view(site.scalar_names[i]) : "";
    if (name == "alpha" || name == "dim" || name == "keepdim") continue;
    if (std::isfinite(site.scalars[i])) constants.push_back(site.scalars[i] * factor);
  }
  return constants;
}

/// A constant that is meant to be small but not nothing.
bool is_guard(double constant) {
  return constant != 0 && std::abs(constant) < 1e-2;
}

/// Operations through which a zero (or a one) comes out as it went in, or decides what comes out.
bool carries(const Site& site) {
  static constexpr std::array<std::string_view, 10> selecting = {"amax", "amin",     "max",  "min",  "median",
                                                                 "sort", "kthvalue", "topk", "mode", "max_pool1d"};
  if (among(base_name(site.name), selecting)) return true;
  const OpKind kind = op_kind(site.name);
  return kind == OpKind::move || kind == OpKind::cast || kind == OpKind::elementwise || kind == OpKind::reduction ||
         kind == OpKind::create;
}

bool adds(std::string_view base) {
  return base == "add" || base == "sub" || base == "rsub" || base == "subtract";
}

class Search {
 public:
  Search(const TraceView& view, const NonfiniteEvent& event, const Site& op) : view_(view), event_(event), op_(op) {}

  Loss run() {
    collect_roots();
    Loss best;
    for (std::size_t at = 0; at < open_.size(); ++at) {
      const Visit visit = open_[at];
      const Site& site = *view_.site(visit.site);
      for (const std::int64_t level : levels(site)) {
        const Loss found = judge(*view_.site(level), visit);
        if (better(found, best)) best = found;
      }
      if (best.what == Vanished::guard || best.what == Vanished::one) return best;
      if (visit.depth >= most_steps_back || !carries(site)) continue;
      const bool summed = visit.summed || adds(base_name(site.name));
      for (const std::int64_t producer : view_.producers(site.id))
        open(producer, visit.depth + 1, summed);
    }
    return best;
  }

 private:
  struct Visit {
    std::int64_t site = trace::none;
    int depth = 0;
    bool summed = false;  ///< a sum or difference lies between here and the operation that failed
  };

  static bool better(const Loss& found, const Loss& best) {
    if (found.what == Vanished::nothing) return false;
    if (best.what == Vanished::nothing) return true;
    if ((found.what == Vanished::value) != (best.what == Vanished::value)) return found.what != Vanished::value;
    return found.claim > best.claim;
  }

  void open(std::int64_t site, int depth, bool summed) {
    if (view_.site(site) == nullptr || view_.site(site)->kind != trace::SiteKind::op) return;
    if (visited_.insert(site).second) open_.push_back({site, depth, summed});
  }

  /// A site and the operators inside it: a composite one (cosine_similarity) has its guard there.
  std::vector<std::int64_t> levels(const Site& site) const {
    std::vector<std::int64_t> found{site.id};
    for (std::size_t i = 0; i < found.size() && found.size() < 64; ++i) {
      for (const std::int64_t child : view_.children(found[i]))
        found.push_back(child);
    }
    return found;
  }

  void collect_roots() {
    const Site* forward = view_.forward_of(op_.id);
    const std::string_view base = base_name(op_.name);
    const bool backward = op_.phase == trace::Phase::backward && !op_.in_recompute;
    if (backward) {
      if (forward == nullptr) return;
      const Site* const outer = view_.outermost_op(forward->id);
      const std::string_view name = base_name(forward->name);
      // The derivative of a norm or a division divides by the forward value.
      if (!cannot_bear(name) && !is_norm(forward->name)) return;
      at_one_ = breaks_at_one(name);
      open(forward->id, 0, false);
      if (outer != nullptr) open(outer->id, 0, false);
      return;
    }
    if (!cannot_bear(base)) return;
    at_one_ = breaks_at_one(base);
    // Its own constants only (logit has one): what comes before it is found from the input that it could not bear.
    if (at_one_) open(op_.id, most_steps_back, false);
    if (op_.id != event_.site) {
      for (const std::int64_t producer : view_.producers(op_.id))
        open(producer, 1, false);
      return;
    }
    const WitnessTensor* denominator = nullptr;
    for (const WitnessTensor& input : event_.inputs) {
      if (!trace::is_floating(input.type.dtype)) continue;
      if (divides(base) || denominator == nullptr) denominator = &input;
    }
    if (denominator == nullptr || (denominator->looked_at && !suspicious(denominator->stats))) {
      open_.clear();
      return;
    }
    denominator_ = denominator;
    zero_seen_ = !denominator->looked_at || denominator->stats.zero != 0;
    const Site* const producer = view_.site(denominator->type.producer);
    if (producer == nullptr) {
      for (const std::int64_t known : view_.producers(op_.id))
        open(known, 1, false);
      return;
    }
    open(producer->id, 1, false);
    for (const Site* at = view_.parent(*producer); at != nullptr && at->kind == trace::SiteKind::op;
         at = view_.parent(*at)) {
      open(at->id, 1, false);
    }
  }

  bool suspicious(const trace::TensorStats& stats) const {
    return stats.zero != 0 || (at_one_ && std::max(std::abs(stats.min), std::abs(stats.max)) >= 1);
  }

  Loss judge(const Site& site, const Visit& visit) const {
    if (site.id == op_.id && !breaks_at_one(base_name(site.name))) return {};
    const DType dtype = result_dtype(site);
    if (!trace::is_floating(dtype)) return {};
    const Loss constant = judge_constants(site, visit, dtype);
    return constant.what != Vanished::nothing ? constant : judge_values(site, visit, dtype);
  }

  Loss judge_constants(const Site& site, const Visit& visit, DType dtype) const {
    Loss loss;
    loss.site = &site;
    loss.dtype = dtype;
    loss.claim = Claim::proven;
    const trace::SiteNumerics* const numbers = numbers_of(view_, site.id, event_.step);
    const bool same_step = numbers != nullptr && numbers->step == event_.step;
    for (const double constant : guards(site)) {
      loss.constant = constant;
      if (is_guard(constant) && rounds_to_zero(dtype, constant)) {
        // It keeps the result from zero only where there is a zero.
        if (same_step && numbers->stats.zero == 0) continue;
        loss.what = Vanished::guard;
        loss.in_fp32 = rounds_to_zero(DType::float32, constant);
        return loss;
      }
      if (rounds_to_one(dtype, constant)) {
        loss.what = Vanished::one;
        loss.in_fp32 = rounds_to_one(DType::float32, constant);
        return loss;
      }
      // 1e-8 that is added first: lost beside a number near one, and gone when that is subtracted again.
      const double largest = same_step ? numbers->stats.absmax : view_.totals(site.id).absmax;
      const std::string_view base = base_name(site.name);
      if (visit.summed && adds(base) && is_guard(constant) && largest >= 0.25 &&
          round_to(dtype, largest + std::abs(constant)) == round_to(dtype, largest)) {
        loss.what = Vanished::one;
        loss.absorbed = true;
        loss.in_fp32 = round_to(DType::float32, largest + std::abs(constant)) == round_to(DType::float32, largest);
        loss.claim = Claim::supported;
        return loss;
      }
    }
    return {};
  }

  /// Statistics of what an operand of `site` held, and whether all of them are known.
  struct Operands {
    bool known = false;
    bool current = true;  ///< all of them are of the step in which the operation failed
    std::uint64_t zeros = 0;
    double absmax = 0;
    bool nonfinite = false;
    std::uint64_t flushed = 0;  ///< too small for fp16
  };
  Operands operands(const Site& site) const {
    Operands result;
    result.known = true;
    bool any = false;
    for (const std::int64_t producer : view_.producers(site.id)) {
      const trace::SiteNumerics* numbers = numbers_of(view_, producer, event_.step);
      // Views have no numbers of their own.
      std::int64_t at = producer;
      for (int i = 0; numbers == nullptr && i < most_steps_back; ++i) {
        std::vector<std::int64_t> before = view_.producers(at);
        // Where a gather takes its elements from says nothing of their values.
        std::erase_if(before, [&](std::int64_t id) { return !trace::is_floating(result_dtype(*view_.site(id))); });
        if (before.size() != 1 || op_kind(view_.site(at)->name) != OpKind::move) break;
        at = before.front();
        numbers = numbers_of(view_, at, event_.step);
      }
      if (numbers == nullptr) {
        result.known = false;
        continue;
      }
      any = true;
      result.current = result.current && numbers->step == event_.step;
      result.zeros += numbers->stats.zero;
      result.absmax = std::max(result.absmax, numbers->stats.absmax);
      result.nonfinite = result.nonfinite || numbers->stats.nonfinite() != 0;
      result.flushed += numbers->stats.exponents.below(trace::float_limits(DType::float16).smallest_subnormal - 1);
    }
    result.known = result.known && any;
    return result;
  }

  /// Whether what went into an exponential in any step was large enough for a result that fp16 rounds to zero. Bounds
  /// of all checked calls, so that it does not matter which steps were sampled.
  bool reaches_zero(const Site& site, std::string_view base) const {
    double enough = 16.6;  // exp(-16.6) is the smallest subnormal
    if (base == "exp2") enough = 24;
    if (base.starts_with("softmax")) enough = 8.3;  // the difference of two values
    std::vector<std::int64_t> open = view_.producers(site.id);
    if (open.empty()) return true;
    constexpr std::size_t most_looked_at = 16;
    for (std::size_t i = 0; i < open.size(); ++i) {
      if (i == most_looked_at) return true;  // Not to be told.
      const trace::SiteTotals& totals = view_.totals(open[i]);
      if (totals.checked_calls != 0) {
        if (totals.absmax == 0 || totals.absmax >= enough) return true;  // 0: not measured
        continue;
      }
      const Site* const made = view_.site(open[i]);
      const std::vector<std::int64_t> before = view_.producers(open[i]);
      const OpKind kind = made != nullptr ? op_kind(made->name) : OpKind::other;
      if ((kind != OpKind::move && kind != OpKind::cast) || before.empty()) return true;
      open.insert(open.end(), before.begin(), before.end());
    }
    return false;
  }

  /// Whether -inf was put into what `site` takes: then its zeros are meant. Such writes are not looked at.
  bool masked_by_infinity(const Site& site) const {
    const std::vector<std::int64_t> before = view_.producers(site.id);
    return std::any_of(before.begin(), before.end(), [&](std::int64_t id) {
      const Site& made = *view_.site(id);
      return writes_constant(made.name) &&
             std::any_of(made.scalars.begin(), made.scalars.end(), [](double value) { return !std::isfinite(value); });
    });
  }

  Loss judge_values(const Site& site, const Visit& visit, DType dtype) const {
    // What a sum or difference makes of a zero is no zero.
    if (!trace::is_half(dtype) || visit.summed) return {};
    if (denominator_ != nullptr && !zero_seen_) return {};
    const trace::SiteNumerics* const numbers = numbers_of(view_, site.id, event_.step);
    if (numbers != nullptr && numbers->step == event_.step && numbers->stats.zero == 0) return {};
    Loss loss{.what = Vanished::value, .site = &site, .dtype = dtype};
    const std::string_view base = base_name(site.name);
    const bool direct = visit.depth <= 1;
    static constexpr std::array<std::string_view, 6> positive = {"exp",  "softmax",  "sigmoid",
                                                                 "exp2", "softplus", "softmax_data"};
    static constexpr std::array<std::string_view, 10> products = {
        "mul", "square", "pow", "prod", "cumprod", "div", "divide", "true_divide", "multiply", "reciprocal"};
    static constexpr std::array<std::string_view, 6> draws = {"exponential", "uniform", "rand",
                                                              "rand_like",   "normal",  "randn"};
    if (op_kind(site.name) == OpKind::cast) {
      const Operands from = operands(site);
      if (dtype != DType::float16 || from.flushed == 0) return {};
      loss.claim = Claim::proven;
      loss.because = "they were not zero before the cast";
      return loss;
    }
    if (among(base, positive)) {
      if (masked_by_infinity(site)) return {};
      const Operands from = operands(site);
      if (from.nonfinite || view_.totals(site.id).nonfinite_calls != 0) return {};
      if (base != "softplus" && !reaches_zero(site, base)) return {};
      if (from.absmax > 80 && base != "sigmoid") loss.in_fp32 = from.absmax > 100;
      loss.claim = loss.in_fp32 ? Claim::none : direct ? Claim::proven : Claim::supported;
      loss.because = "it is never zero in exact arithmetic";
      return loss.in_fp32 ? Loss{} : loss;
    }
    if (dtype == DType::float16 && among(base, products)) {
      const Operands from = operands(site);
      if (!from.known || from.zeros != 0) return {};
      const bool made_zeros = numbers != nullptr && numbers->stats.zero != 0;
      if (from.current) {
        loss.claim = made_zeros || direct ? Claim::proven : Claim::supported;
        loss.because = "none of its operands is zero";
      } else {
        // In that step one of them may have been zero already; whoever made it is found further back.
        loss.claim = Claim::plausible;
        loss.because = "none of its operands was zero when they were last looked at";
      }
      return loss;
    }
    if (dtype == DType::float16 && among(base, draws)) {
      loss.claim = Claim::proven;
      loss.because = "the random numbers are drawn in fp16";
      return loss;
    }
    if (base == "rsub" || base == "sub") return judge_complement(site, loss);
    if (base == "log") return judge_logarithm(site, loss);
    return {};
  }

  /// log(u) of uniform numbers that a cast has rounded to one: zero, where it was a small negative number.
  Loss judge_logarithm(const Site& site, Loss loss) const {
    for (const std::int64_t producer : view_.producers(site.id)) {
      const Site& cast = *view_.site(producer);
      if (op_kind(cast.name) != OpKind::cast || !trace::is_half(result_dtype(cast))) continue;
      const Operands from = operands(cast);
      const std::vector<std::int64_t> before = view_.producers(producer);
      const bool uniform = std::any_of(before.begin(), before.end(), [&](std::int64_t id) {
        static constexpr std::array<std::string_view, 3> names = {"rand", "rand_like", "uniform"};
        return among(base_name(view_.site(id)->name), names);
      });
      if (!uniform && !(from.known && from.absmax < 1)) continue;
      loss.site = &cast;
      loss.at_one = true;
      loss.claim = Claim::proven;
      loss.because = "numbers below one are rounded to one by the cast, and their logarithm is zero";
      return loss;
    }
    return {};
  }

  /// The cast into a narrow type that values come from, through views and gathers, where all of them were below one
  /// and some are rounded to it. Null where there is none.
  const Site* rounded_to_one(std::int64_t made) const {
    for (int i = 0; i < most_steps_back; ++i) {
      const Site& site = *view_.site(made);
      std::vector<std::int64_t> before = view_.producers(made);
      std::erase_if(before, [&](std::int64_t id) { return !trace::is_floating(result_dtype(*view_.site(id))); });
      if (before.size() != 1) return nullptr;
      const DType to = result_dtype(site);
      if (op_kind(site.name) == OpKind::cast && trace::is_half(to) &&
          !trace::is_half(result_dtype(*view_.site(before.front())))) {
        const double largest = view_.totals(before.front()).absmax;
        return largest > 0 && largest < 1 && round_to(to, largest) == 1 ? &site : nullptr;
      }
      if (op_kind(site.name) != OpKind::move && op_kind(site.name) != OpKind::cast) return nullptr;
      made = before.front();
    }
    return nullptr;
  }

  /// 1 - p where p has become one in a narrow type.
  Loss judge_complement(const Site& site, Loss loss) const {
    if (std::none_of(site.scalars.begin(), site.scalars.end(), [](double constant) { return constant == 1; }) &&
        base_name(site.name) == "rsub") {
      return {};
    }
    for (const std::int64_t producer : view_.producers(site.id)) {
      if (const Site* const cast = rounded_to_one(producer); cast != nullptr) {
        loss.site = cast;
        loss.at_one = true;
        loss.claim = Claim::proven;
        loss.because = "numbers below one are rounded to one by the cast";
        return loss;
      }
      const Site& p = *view_.site(producer);
      const std::string_view base = base_name(p.name);
      if (base != "sigmoid" && base != "softmax" && base != "exp" && base != "tanh" && base != "erf") continue;
      if (!trace::is_half(result_dtype(p))) continue;
      const Operands from = operands(p);
      if (!from.known || from.absmax > largest_fp32_logit) continue;
      loss.claim = Claim::proven;
      loss.because = "fp32 tells these values from one";
      return loss;
    }
    return {};
  }

  const TraceView& view_;
  const NonfiniteEvent& event_;
  const Site& op_;
  bool at_one_ = false;
  bool zero_seen_ = false;
  const WitnessTensor* denominator_ = nullptr;
  std::vector<Visit> open_;
  std::set<std::int64_t> visited_;
};

}  // namespace

Loss find_loss(const TraceView& view, const NonfiniteEvent& event, const Site& op) {
  return Search(view, event, op).run();
}

std::string zero_meets(const TraceView& view, const Site& op) {
  const Site* site = &op;
  const bool backward = op.phase == trace::Phase::backward && !op.in_recompute;
  if (backward && view.forward_of(op.id) != nullptr) site = view.forward_of(op.id);
  const std::string_view base = base_name(site->name);
  const std::string name = divides(base) ? "a division" : std::string(base);
  return backward ? "the derivative of " + name : name;
}

std::vector<Unreached> unreached_losses(const RuleContext& context, Vanished what) {
  std::vector<Unreached> found;
  for (const NonfiniteEvent* event : context.root_cause().unreached) {
    const Site* const op = context.view().site(event->site);
    if (op == nullptr || event->kind != trace::OriginKind::producer) continue;
    // Where a program selects among the results, or limits them, zeros are what it expects. A constant that is lost is
    // not.
    if (what == Vanished::value && discarded_by(context.view(), *op) != nullptr) continue;
    const Loss loss = find_loss(context.view(), *event, *op);
    if (loss.what != what || loss.claim < Claim::supported) continue;
    const bool known =
        std::any_of(found.begin(), found.end(), [&](const Unreached& other) { return other.loss.site == loss.site; });
    if (!known) found.push_back({event, op, loss});
  }
  return found;
}

}  // namespace ampscope::analyzers
