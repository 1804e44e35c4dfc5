// The training protocol: which optimizer stepped, where a step ends, what the scaler did.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "probe/observe/thread_state.h"

namespace ampscope::observe {

/// Id of the parameter that a leaf tensor is, made at first sight.
[[nodiscard]] std::int64_t parameter_of(Session& session, const c10::TensorImpl& leaf);
/// Id of the parameter that this leaf is, where the program has given it a name; none otherwise.
[[nodiscard]] std::int64_t named_parameter(Session& session, const at::Tensor& tensor);
/// Id of the parameter whose memory this is, none if it is no living parameter's.
[[nodiscard]] std::int64_t parameter_at(Session& session, const void* address);
/// Id of the parameter whose gradient stands at this address now, none if that is no gradient (any more).
[[nodiscard]] std::int64_t gradient_at(Session& session, const void* address);

/// Optimizer that is known to own a parameter, none if none is.
[[nodiscard]] std::int64_t owner_of(Session& session, std::int64_t parameter);
/// Optimizer known under an identity of Python, none if it is new.
[[nodiscard]] std::int64_t optimizer_of_object(Session& session, std::uintptr_t object);
void assign_owner(Session& session, std::int64_t parameter, std::int64_t optimizer);
/// Id of the parameter that a leaf is which the program updates, though no backward pass has left a gradient with it.
std::int64_t learn_parameter(Session& session, const at::Tensor& leaf);
/// A parameter's gradient has just been accumulated.
void note_gradient(Session& session, std::int64_t parameter, const at::Tensor& variable);
/// A backward pass of several processes has ended: gradients may lie in the buffers of their exchange now.
void gradients_were_exchanged(Session& session);
/// Whether the latest backward pass left this parameter's gradient at `address`.
[[nodiscard]] bool has_arrived_at(Session& session, std::int64_t parameter, const void* address);
/// Gradients by parameter id.
using Gradients = std::vector<std::pair<std::int64_t, at::Tensor>>;
/// Takes the gradients that nobody has looked at since they arrived, of one optimizer's parameters or (none) of all.
/// `taken` is the caller's so that its memory is used again.
void take_fresh_gradients(Session& session, std::int64_t optimizer, Gradients& taken);
/// Whether a parameter has another gradient now than the latest backward pass has left with it.
[[nodiscard]] bool gradients_replaced(Session& session, std::int64_t optimizer);
/// The site that made quotients of gradients and the loss scale since they arrived, none if none has.
[[nodiscard]] std::int64_t gradients_divided_at(Session& session, std::int64_t optimizer);
[[nodiscard]] std::size_t optimizer_count(Session& session);
/// Of several optimizers: one parameter of each that has a gradient now, as (optimizer, parameter).
void hold_gradients(Session& session, std::vector<std::pair<std::int64_t, std::size_t>>& held);
/// The first of these optimizers whose gradient has been taken away, none if all are there.
[[nodiscard]] std::int64_t optimizer_cleared(Session& session,
                                             const std::vector<std::pair<std::int64_t, std::size_t>>& held);
/// Parameters of an optimizer that have a gradient now. For steps whose backward passes are not seen.
void known_gradients(Session& session, std::int64_t optimizer, Gradients& found);
[[nodiscard]] bool unscaled_in_this_step(Session& session, std::int64_t optimizer);
/// Whether an optimizer's kernel is known to look at found_inf itself.
[[nodiscard]] bool is_fused(Session& session, std::int64_t optimizer);
/// These parameters' gradients have been looked at.
void forget_fresh_gradient(Session& session, std::int64_t parameter);
/// Whether a value is the scale tensor of a scaler that was seen.
[[nodiscard]] bool is_scale_tensor(Session& session, const c10::IValue& value);
[[nodiscard]] double current_scale(Session& session);
/// The loss scale that gradients of an optimizer (none: not known which) still carry at this point of the step: 1 when
/// the backward pass was not of a scaled loss, or the gradients have been unscaled or changed by the program since.
[[nodiscard]] double pending_scale(Session& session, std::int64_t optimizer);
/// Adds one gradient's sum of squares to the norm of the running step.
void add_gradient_norm(Session& session, double sum_squares);

/// `scale_tensor`: address of the scale that the loss was multiplied with, null if it cannot be told. `scale`: its
/// value, NaN where it cannot be read without waiting for a device.
void loss_scaled(Session& session, ThreadState& thread, std::int64_t site, const void* scale_tensor, double scale);
void backward_begins(Session& session, ThreadState& thread, std::int64_t root_site, bool autocast,
                     trace::DType autocast_dtype, bool create_graph);
void backward_ends(Session& session, ThreadState& thread);
/// Returns the optimizer that owns these gradients. `object` is its identity in Python, 0 if unknown.
[[nodiscard]] std::int64_t optimizer_owning(Session& session, std::int64_t parameter, std::uintptr_t object,
                                            const std::string& class_name);
void gradients_unscaled(Session& session, ThreadState& thread, std::int64_t optimizer, std::int64_t site, double scale,
                        bool found_inf, bool replaced);
/// Returns the scaler. A `scale_after` of NaN: its numbers are on a device and come later.
std::int64_t scale_updated(Session& session, ThreadState& thread, trace::ScalerUpdate update, const void* scale_tensor,
                           std::int64_t site, std::uintptr_t object, const std::string& implementation);
/// On a device: the scale that an update has left, when it is known.
void scale_has_arrived(Session& session, double scale);
/// The program has read that the latest unscale found a non-finite gradient.
void found_inf_read(Session& session);
/// `factor`: what the program multiplied them by, NaN if by no number or not at all.
void gradients_touched(Session& session, ThreadState& thread, std::int64_t site, std::int64_t optimizer, bool written,
                       double factor);
void gradients_cleared(Session& session, ThreadState& thread, std::int64_t site, std::int64_t optimizer);
/// The program read a loss that is multiplied by the scale, and perhaps multiplied it by `factor`.
void loss_read(Session& session, ThreadState& thread, std::int64_t site, bool to_number, double factor);
/// An Optimizer.step range has ended (or Python's hook said so).
void optimizer_stepped(Session& session, ThreadState& thread, std::int64_t optimizer, std::int64_t site,
                       bool through_scaler, bool fused, bool fused_found_inf, double learning_rate);
void schedule_stepped(Session& session, ThreadState& thread, std::uintptr_t object, const std::string& class_name,
                      std::uintptr_t optimizer_object, bool from_constructor);
void scale_read(Session& session, std::uintptr_t scaler, bool as_factor, bool next_iteration);
void scaler_made(Session& session, std::uintptr_t scaler);
void scaler_restored(Session& session, std::uintptr_t scaler);
void optimizer_restored(Session& session, std::uintptr_t optimizer);
/// The scaler threw; `reason` is one of the flags of refusals.
void scaler_refused(Session& session, ThreadState& thread, std::int64_t optimizer, std::int64_t site,
                    std::uint32_t reason);
void parameters_written(Session& session, ThreadState& thread, std::int64_t site);
/// Outermost op of a forward pass: ends the running step when parameters were updated by hand before it.
void forward_continues(Session& session, ThreadState& thread);
void mark_step(Session& session, ThreadState& thread);
void loss_seen(Session& session, ThreadState& thread, double loss);
void step_is_bad(Session& session);
/// The number of the running step and micro-batch.
[[nodiscard]] std::int64_t current_micro_batch(Session& session);
/// Writes out what the ledger still holds, at the end of the run.
void finish_ledger(Session& session, ThreadState* thread);

}  // namespace ampscope::observe
