// The training protocol replayed: what state each optimizer's gradients are in when an event happens.
//
// Where a step ends does not matter here, because what follows an optimizer step (update, schedule, zero_grad) may be
// recorded as the end of one step or as the beginning of the next.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "analyzers/core/finding.h"
#include "analyzers/core/trace_view.h"

namespace ampscope::analyzers {

/// Of the gradients of one optimizer's parameters.
struct GradientState {
  bool present = false;  ///< a backward pass reached them since they were cleared
  bool certain = false;  ///< that pass is known to have reached them: until an optimizer's parameters are known, in the
                         ///< first step, every optimizer may have been reached
  bool scaled = false;   ///< the last such pass started from a scaled loss
  bool unscaled = false;                    ///< GradScaler divided them since
  bool scale_read = false;                  ///< the program read the scale since: it may divide by itself
  bool norm_read = false;                   ///< their norm was taken since
  bool written = false;                     ///< they were changed in place since
  bool found_inf = false;                   ///< unscaling found non-finite values in them
  bool divided = false;                     ///< the program multiplied them by 1 / scale since, and not by scale again
  bool updated = false;                     ///< the scaler was updated since
  bool mixed = false;                       ///< some were unscaled, or divided by the program, before others were added
  bool plain = false;                       ///< some came from a loss that is not multiplied by the scale
  bool any_scaled = false;                  ///< some came from one that is
  bool across_update = false;               ///< some were added after an update to others from before it
  bool used = false;                        ///< an optimizer step was taken or skipped with them
  bool inside_step = false;                 ///< the last pass was run by the optimizer's step itself
  std::uint8_t passes = 0;                  ///< backward passes added up in them, at most 255
  std::int64_t scaler = trace::none;        ///< that scaled the loss of the last pass, where it is known
  std::int64_t unscale_site = trace::none;  ///< of the last unscaling, also when a pass has been added since
  std::int64_t divide_site = trace::none;   ///< of the last division by the program
  std::int64_t mixed_site = trace::none;    ///< of the program's own division before others were added
  friend bool operator==(const GradientState&, const GradientState&) = default;
};

struct ScheduleState {
  bool stepped = false;  ///< an optimizer it belongs to stepped since the schedule last advanced
  bool skipped = false;  ///< … was kept from stepping …
  friend bool operator==(const ScheduleState&, const ScheduleState&) = default;
};

/// State before an event.
struct ProtocolState {
  std::array<GradientState, 64> optimizers{};  ///< by optimizer id; a trace names at most 64 in a backward event
  std::vector<ScheduleState> schedules;        ///< by schedule id
  std::map<std::int64_t, std::int64_t> scaler_of_loss;  ///< by site of the scaled loss
  friend bool operator==(const ProtocolState&, const ProtocolState&) = default;

  [[nodiscard]] const GradientState& of(std::int64_t optimizer) const noexcept;
};

/// Whether a call in the backward pass is one of a hook: it has a line of its own, or it runs where a gradient is
/// accumulated, which neither multiplies nor selects by itself.
[[nodiscard]] bool runs_in_hook(const TraceView& view, const trace::Site& site);

/// Whether a division by the scale can be meant as one: a batch may as well have as many tokens as the scale is large.
[[nodiscard]] bool may_know_scale(const TraceView& view);

/// Whether a call multiplies by the loss scale, which takes back a division by it.
[[nodiscard]] bool multiplies_by_scale(const TraceView& view, std::int64_t site);

/// The call with which a hook of the program divides gradients by the loss scale, or without a scaler by a large
/// number, in the backward pass: they are unscaled when the pass ends, though no event says so. Null where there is
/// none.
[[nodiscard]] const trace::Site* unscaling_hook(const TraceView& view);

/// The number by which a program without a scaler multiplies its loss itself: a loss scale of its own. 0 where there is
/// none, or where it is no constant.
[[nodiscard]] double own_loss_scale(const TraceView& view);

/// Class of an optimizer, or "the optimizer".
[[nodiscard]] std::string optimizer_name(const TraceView& view, std::int64_t optimizer);

/// Adds the steps of `more` to `span`, in the order in which walk_protocol gives them; an empty span (count 0) becomes
/// `more`.
void extend(StepSpan& span, const StepSpan& more) noexcept;

using ProtocolVisitor =
    std::function<void(const StepSpan& steps, const trace::ProtocolEvent& event, const ProtocolState& before)>;

/// Calls `visit` for every event in order. Equal steps in equal state are visited once, with the span of all of them.
void walk_protocol(const TraceView& view, const ProtocolVisitor& visit);

/// Optimizers that an event concerns: its object where it names one, else all whose gradients are present.
[[nodiscard]] std::vector<std::int64_t> concerned(const trace::ProtocolEvent& event, const ProtocolState& before);

/// Whether a call of clip_grad_norm_ or the like has an infinite limit: it measures gradients and changes nothing.
[[nodiscard]] bool clips_nothing(const trace::Site& site);

}  // namespace ampscope::analyzers
