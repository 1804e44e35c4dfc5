// A trace as rules want to ask it: lookups by id, steps with their events, who made which tensor, what ran in which
// precision. Read-only; holds indices into a trace that must outlive it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trace/trace.h"

namespace ampscope::analyzers {

/// How much of the work of one phase was computed in one dtype.
struct PrecisionUse {
  trace::DType dtype = trace::DType::unknown;
  bool autocast = false;  ///< chosen by autocast
  std::string device;     ///< device type: "cpu", "cuda"
  std::int64_t sites = 0;
  std::int64_t calls = 0;
};

/// What the program did with one optimizer step or skip, seen from outside.
struct StepOutcome {
  bool skipped = false;              ///< an optimizer did not step because the scaler kept it from doing so
  bool stepped = false;              ///< an optimizer changed parameters
  bool loss_nonfinite = false;       ///< the value backward started from was NaN or infinite
  bool cut_short = false;            ///< … or would have been: the program ended before it came to it
  bool gradients_nonfinite = false;  ///< a parameter's gradient was
  bool applied_nonfinite = false;    ///< such gradients went into an optimizer step, or an update by hand
  [[nodiscard]] bool bad() const noexcept {
    return skipped || loss_nonfinite || gradients_nonfinite || applied_nonfinite;
  }
};

/// Whether a call wrote non-finite values over a parameter.
[[nodiscard]] bool overwrites_parameter(const trace::NonfiniteEvent& event) noexcept;

/// Whether a call inside a node of the backward pass has a line of its own, as a hook's has. The line of the node is
/// the one that called backward().
[[nodiscard]] bool has_line_beside(const trace::Site& call, const trace::Site* node) noexcept;

class TraceView {
 public:
  explicit TraceView(const trace::Trace& trace);

  [[nodiscard]] const trace::Trace& trace() const noexcept { return *trace_; }
  [[nodiscard]] const trace::RunInfo& run() const noexcept { return trace_->run; }

  // Lookups by id: null for `none` and for an id that the trace does not hold.
  [[nodiscard]] const trace::Site* site(std::int64_t id) const noexcept;
  [[nodiscard]] const trace::SiteTotals& totals(std::int64_t site) const noexcept;  ///< all zero when unknown
  [[nodiscard]] const trace::Parameter* parameter(std::int64_t id) const noexcept;
  [[nodiscard]] const trace::Optimizer* optimizer(std::int64_t id) const noexcept;
  [[nodiscard]] const trace::Scaler* scaler(std::int64_t id) const noexcept;
  [[nodiscard]] const trace::Schedule* schedule(std::int64_t id) const noexcept;

  // Steps.
  [[nodiscard]] std::int64_t steps() const noexcept { return steps_; }
  [[nodiscard]] std::span<const trace::ProtocolEvent> events(std::int64_t step) const noexcept;
  [[nodiscard]] std::span<const trace::ProtocolEvent> pattern_events(const trace::StepRun& run) const noexcept;
  /// Steps in which the scaler kept an optimizer from stepping (also one whose fused kernel skips itself); ascending.
  [[nodiscard]] const std::vector<std::int64_t>& skipped_steps() const noexcept { return skipped_steps_; }
  [[nodiscard]] bool skipped(std::int64_t step) const noexcept;
  /// Of every step in which something went wrong or was skipped; a step that is absent was fine.
  [[nodiscard]] const std::map<std::int64_t, StepOutcome>& outcomes() const noexcept { return outcomes_; }
  [[nodiscard]] StepOutcome outcome(std::int64_t step) const noexcept;
  [[nodiscard]] std::int64_t count_events(trace::EventKind kind) const noexcept;
  [[nodiscard]] bool any_event(trace::EventKind kind) const noexcept { return count_events(kind) != 0; }

  // Sites.
  /// The site around one; null at the top, and where a circle of parents was broken.
  [[nodiscard]] const trace::Site* parent(const trace::Site& site) const noexcept;
  [[nodiscard]] std::span<const std::int64_t> children(std::int64_t site) const noexcept;
  /// The outermost operator around a site: what the user's line called. The site itself when nothing encloses it.
  [[nodiscard]] const trace::Site* outermost_op(std::int64_t site) const noexcept;
  /// The autograd node a site ran in, or the site itself when it is one; null outside backward.
  [[nodiscard]] const trace::Site* backward_node(std::int64_t site) const noexcept;
  /// The forward site whose derivative `site` computes; null when unknown or outside backward.
  [[nodiscard]] const trace::Site* forward_of(std::int64_t site) const noexcept;
  /// Autograd nodes of a forward site.
  [[nodiscard]] std::span<const std::int64_t> backward_nodes(std::int64_t forward_site) const noexcept;
  /// Sites that made the inputs of `site`, of the operators around it and of those inside it; without duplicates.
  [[nodiscard]] std::vector<std::int64_t> producers(std::int64_t site) const;
  /// Sites that used what `site` (or an operator around it) made.
  [[nodiscard]] std::vector<std::int64_t> consumers(std::int64_t site) const;
  /// Every site that `site` depends on, itself included; as a flag by site id.
  [[nodiscard]] std::vector<bool> ancestors(std::int64_t site) const;
  /// Whether any tensor of the trace knows its producer: without, only the order of events tells what came first.
  [[nodiscard]] bool has_producers() const noexcept { return has_producers_; }
  /// Sites that backward passes start from: the loss, or the scaled loss; ascending, without duplicates.
  [[nodiscard]] const std::vector<std::int64_t>& loss_sites() const noexcept { return loss_sites_; }
  [[nodiscard]] bool is_loss_site(std::int64_t site) const noexcept;
  /// Whether the site multiplies a loss by the loss scale: what overflows there is the scaler's affair, not the loss's.
  [[nodiscard]] bool is_scaling_site(std::int64_t site) const noexcept;

  // Precision.
  /// What operators that compute (matrix products, convolutions and the like) ran in, most calls first.
  [[nodiscard]] const std::vector<PrecisionUse>& forward_precision() const noexcept { return forward_precision_; }
  [[nodiscard]] const std::vector<PrecisionUse>& backward_precision() const noexcept { return backward_precision_; }
  /// Whether an operator was really computed in `dtype` because of autocast, in forward.
  [[nodiscard]] bool autocast_used(trace::DType dtype) const noexcept;
  /// Whether trainable parameters have this dtype.
  [[nodiscard]] bool weights_of(trace::DType dtype) const noexcept;
  /// "fp16 autocast on cpu", "bf16 autocast on cuda", "fp16 weights", "fp32": what was observed, not what was asked
  /// for.
  [[nodiscard]] std::string precision() const;

  // Scaler.
  [[nodiscard]] std::span<const trace::ScalerUpdate* const> updates(std::int64_t scaler) const noexcept;
  /// Loss scale used in a step: by `scaler`, or by the one that was updated in or next after it. Empty without a
  /// scaler.
  [[nodiscard]] std::optional<double> scale_at(std::int64_t step, std::int64_t scaler = trace::none) const noexcept;
  /// Whether a scaler that is enabled multiplied a loss.
  [[nodiscard]] bool scaled() const noexcept { return scaled_; }

  // Gradients.
  [[nodiscard]] std::span<const trace::GradientWindow* const> gradients(std::int64_t parameter) const noexcept;
  /// Parameters whose gradient was non-finite in a step, save those whose gradient was cleared before any use.
  [[nodiscard]] std::span<const trace::NonfiniteGradient* const> nonfinite_gradients(std::int64_t step) const noexcept;
  /// Euclidean norm of the unscaled gradients of an optimizer's parameters (or of all) in a step that was looked at
  /// alone; empty when it was not, or when it is not finite.
  [[nodiscard]] std::optional<double> gradient_norm(std::int64_t step, std::int64_t optimizer = trace::none) const;

  // Numbers.
  /// Statistics of a site's outputs in sampled steps, by step.
  [[nodiscard]] std::span<const trace::SiteNumerics* const> numerics(std::int64_t site) const noexcept;
  /// Calls with a non-finite output in a step, in order.
  [[nodiscard]] std::span<const trace::NonfiniteEvent* const> nonfinite_events(std::int64_t step) const noexcept;
  /// The latest call of a site with a non-finite output in or before a step; null when none was kept. A site that did
  /// no harm several times is not looked at any closer, so what it does when it first does harm stands in an earlier
  /// step.
  [[nodiscard]] const trace::NonfiniteEvent* latest_harmless(std::int64_t site, std::int64_t step) const noexcept;
  /// Calls that made finite results of a non-finite input, in order; steps with such a value only.
  [[nodiscard]] std::span<const trace::NonfiniteEvent* const> absorbers() const noexcept { return absorbers_; }
  [[nodiscard]] std::vector<const trace::SeriesPoint*> series(const std::string& name) const;

  // Words.
  /// The file relative to where the program was started, if it lies there.
  [[nodiscard]] std::string path(const std::string& file) const;
  /// "train.py:48"; "" for an unknown line.
  [[nodiscard]] std::string place(const trace::SourceLine& source) const;
  /// "train.py:48 model.layers.3.fc1 aten::addmm": what is known of it.
  [[nodiscard]] std::string describe(std::int64_t site) const;
  /// The line of user code that best names a site: its own, or that of the nearest enclosing or forward site.
  [[nodiscard]] trace::SourceLine source_of(std::int64_t site) const;
  /// The module of a site, its backward node's or its forward site's; empty optional when none is known.
  [[nodiscard]] std::optional<std::string> module_of(std::int64_t site) const;

 private:
  void index_parents();
  void index_sites();
  void index_precision();
  void index_steps();
  void index_values();
  void index_outcomes();
  /// Sites whose non-finite result makes the loss non-finite, by site id.
  [[nodiscard]] std::vector<bool> loss_makers() const;
  void attribute_loss(const trace::SeriesPoint& window);
  /// A site, the operators around it and those inside it: they make and take the same tensors.
  template <typename Visit>
  void for_each_level(std::int64_t site, Visit visit) const;

  const trace::Trace* trace_;
  std::int64_t steps_ = 0;
  std::vector<std::int64_t> skipped_steps_;
  std::map<std::int64_t, StepOutcome> outcomes_;
  std::vector<std::int64_t> event_counts_;
  std::vector<std::int64_t> parents_;
  std::vector<std::vector<std::int64_t>> children_;
  std::vector<std::vector<std::int64_t>> consumers_;
  std::vector<std::vector<std::int64_t>> backward_nodes_;
  std::vector<std::int64_t> loss_sites_;
  std::vector<std::int64_t> scaling_sites_;
  bool has_producers_ = false;
  std::vector<PrecisionUse> forward_precision_;
  std::vector<PrecisionUse> backward_precision_;
  std::vector<std::vector<const trace::ScalerUpdate*>> updates_;
  bool scaled_ = false;
  std::vector<std::vector<const trace::GradientWindow*>> gradients_;
  std::vector<const trace::NonfiniteGradient*> nonfinite_gradients_;
  std::map<std::int64_t, std::vector<const trace::SiteNumerics*>> numerics_;
  std::vector<const trace::NonfiniteEvent*> nonfinite_events_;
  std::vector<const trace::NonfiniteEvent*> absorbers_;
  std::map<std::int64_t, std::vector<const trace::NonfiniteEvent*>> nonfinite_by_site_;
};

}  // namespace ampscope::analyzers
