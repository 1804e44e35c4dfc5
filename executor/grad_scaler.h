// Dynamic loss scaling for fp16 training in C++; LibTorch has none of its own.
//
// Behaves like torch.amp.GradScaler: the same ATen operators in the same order, so that scale, growth tracker,
// gradients and parameters agree bit for bit with a Python program that makes the same calls, and the same calls are
// refused.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

namespace torch::optim {
class Optimizer;
}
namespace torch::serialize {
class InputArchive;
class OutputArchive;
}  // namespace torch::serialize

namespace ampscope::executor {

/// A call that GradScaler refuses. It has changed nothing.
class GradScalerError : public std::runtime_error {
 public:
  enum class Kind : std::uint8_t {
    bad_setting,         ///< growth_factor not above 1 or backoff_factor not below 1
    closure,             ///< step() with a closure: the gradients a closure makes would not be checked
    not_scaled,          ///< unscale_(), step() or update() before the first scale()
    already_unscaled,    ///< second unscale_() of an optimizer since the last update()
    unscale_after_step,  ///< unscale_() of an optimizer that has stepped since the last update()
    already_stepped,     ///< second step() of an optimizer since the last update()
    fp16_gradients,      ///< unscaling gradients held in fp16, which the unscaled values may not fit
    no_gradients,        ///< step() of an optimizer none of whose parameters has a gradient
    nothing_checked,     ///< update() with no gradients checked since the last one
    bad_scale,           ///< update(tensor): wrong device, more than one element, or it requires grad
    empty_state,         ///< load_state_dict() with the state of a disabled scaler
  };

  GradScalerError(Kind kind, const std::string& what) : std::runtime_error(what), kind_(kind) {}
  [[nodiscard]] Kind kind() const noexcept { return kind_; }

 private:
  Kind kind_;
};

struct GradScalerOptions {
  double init_scale = 65536.0;
  double growth_factor = 2.0;           ///< above 1
  double backoff_factor = 0.5;          ///< below 1
  std::int64_t growth_interval = 2000;  ///< iterations without a non-finite gradient before the scale grows
  bool enabled = true;  ///< false: scale() returns its argument, step() only steps, the rest does nothing
};

/// What a checkpoint needs of a scaler. Take it after update(), not in the middle of an iteration.
struct GradScalerState {
  double scale = 0;
  double growth_factor = 0;
  double backoff_factor = 0;
  std::int64_t growth_interval = 0;
  std::int64_t growth_tracker = 0;  ///< iterations without a non-finite gradient since the scale last changed

  void save(torch::serialize::OutputArchive& archive) const;
  void load(torch::serialize::InputArchive& archive);
  friend bool operator==(const GradScalerState&, const GradScalerState&) = default;
};

struct StepResult {
  bool skipped = false;  ///< a gradient was not finite, so the parameters were left alone
  at::Tensor value;      ///< what optimizer.step() returned; undefined when skipped or when it returns nothing
};

/// Not thread-safe; use one scaler for one training loop. Optimizers are told apart by address and must live until the
/// next update().
class GradScaler {
 public:
  using Closure = std::function<at::Tensor()>;

  /// `device_type` is where new_scale tensors of update() must be. CUDA without a CUDA device gives a warning and a
  /// disabled scaler.
  /// @throws GradScalerError bad_setting
  explicit GradScaler(c10::DeviceType device_type = c10::DeviceType::CUDA, const GradScalerOptions& options = {});

  /// Returns output * scale, on the output's device and in its dtype. The first call makes the scale tensor there.
  at::Tensor scale(const at::Tensor& output);
  /// The same for outputs that may lie on several devices, whose first one gets the scale tensor.
  std::vector<at::Tensor> scale(const std::vector<at::Tensor>& outputs);

  /// Divides the optimizer's gradients by the scale in place and notes whether one of them is not finite. Without this
  /// call step() does it. Gradients in fp16 are refused; a sparse gradient is unscaled through its values.
  /// @throws GradScalerError not_scaled, already_unscaled, unscale_after_step, fp16_gradients
  void unscale_(torch::optim::Optimizer& optimizer);

  /// Unscales unless unscale_() did, then steps the optimizer if its gradients are all finite. Reads the result on the
  /// host (waits for the device). A closure is accepted by a disabled scaler only.
  /// @throws GradScalerError closure, not_scaled, already_stepped, no_gradients and those of unscale_()
  StepResult step(torch::optim::Optimizer& optimizer, const Closure& closure = nullptr);

  /// Ends the iteration: shrinks the scale when a gradient of any optimizer was not finite, else counts, and grows it
  /// after growth_interval such iterations. Does not wait for the device.
  /// @throws GradScalerError not_scaled, nothing_checked
  void update();
  /// Ends the iteration by setting the scale. Counts nothing.
  /// @throws GradScalerError not_scaled, bad_scale
  void update(double new_scale);
  void update(const at::Tensor& new_scale);

  /// Forgets what was unscaled and stepped since the last update() and leaves the scale alone: for an iteration that an
  /// exception ended. torch.amp.GradScaler has no counterpart and stays unusable there.
  void abandon_iteration();

  /// The current scale, 1 when disabled. Waits for the device.
  [[nodiscard]] double get_scale() const;
  [[nodiscard]] double get_growth_factor() const noexcept { return options_.growth_factor; }
  [[nodiscard]] double get_backoff_factor() const noexcept { return options_.backoff_factor; }
  [[nodiscard]] std::int64_t get_growth_interval() const noexcept { return options_.growth_interval; }
  /// Iterations without a non-finite gradient since the scale last changed, 0 when disabled. Waits for the device.
  [[nodiscard]] std::int64_t get_growth_tracker() const;
  /// The setters check nothing, as PyTorch's; they hold from the next update() on.
  void set_growth_factor(double factor) noexcept { options_.growth_factor = factor; }
  void set_backoff_factor(double factor) noexcept { options_.backoff_factor = factor; }
  void set_growth_interval(std::int64_t interval) noexcept { options_.growth_interval = interval; }
  [[nodiscard]] bool is_enabled() const noexcept { return options_.enabled; }

  /// Empty when disabled.
  [[nodiscard]] std::optional<GradScalerState> state_dict() const;
  /// Does nothing when disabled.
  /// @throws GradScalerError empty_state
  void load_state_dict(const std::optional<GradScalerState>& state);

 private:
  enum class Stage : std::uint8_t { ready, unscaled, stepped };
  /// float32, 0-dim, non-zero when a gradient on that device was not finite. In the order in which devices appeared.
  using FoundInf = std::vector<std::pair<c10::Device, at::Tensor>>;
  struct OptimizerState {
    const torch::optim::Optimizer* optimizer;
    Stage stage = Stage::ready;
    FoundInf found_inf;
  };

  OptimizerState& state_of(const torch::optim::Optimizer& optimizer);
  void make_tensors(c10::Device device);
  void require_scale(const char* call) const;
  FoundInf unscale_gradients(torch::optim::Optimizer& optimizer) const;

  c10::DeviceType device_type_;
  GradScalerOptions options_;
  std::int64_t init_growth_tracker_ = 0;
  at::Tensor scale_;                        // float32, 0-dim; undefined until the first scale()
  at::Tensor growth_tracker_;               // int32, 0-dim; undefined until the first scale()
  std::vector<OptimizerState> optimizers_;  // those seen since the last update()
};

}  // namespace ampscope::executor
