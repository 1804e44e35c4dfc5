#include "executor/grad_scaler.h"

#include <algorithm>

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <ATen/record_function.h>
#include <c10/util/Exception.h>
#include <torch/optim/optimizer.h>
#include <torch/serialize/input-archive.h>
#include <torch/serialize/output-archive.h>

#include "executor/announced_calls.h"

namespace ampscope::executor {
namespace {

using Kind = GradScalerError::Kind;

/// The name of a refusal in its range; nullptr for what is wrong with a setting and not with a call.
const char* refusal_range(Kind kind) noexcept {
  switch (kind) {
    case Kind::closure:
      return "GradScaler.refused#closure";
    case Kind::not_scaled:
      return "GradScaler.refused#not_scaled";
    case Kind::already_unscaled:
      return "GradScaler.refused#already_unscaled";
    case Kind::unscale_after_step:
      return "GradScaler.refused#unscale_after_step";
    case Kind::already_stepped:
      return "GradScaler.refused#already_stepped";
    case Kind::fp16_gradients:
      return "GradScaler.refused#fp16_gradients";
    case Kind::no_gradients:
      return "GradScaler.refused#no_gradients";
    case Kind::nothing_checked:
      return "GradScaler.refused#nothing_checked";
    default:
      return nullptr;
  }
}

/// An empty range tells observers what an exception does not: why the scaler would not go on, and about the optimizer
/// of which parameter.
[[noreturn]] void refuse(Kind kind, const std::string& what, torch::optim::Optimizer* optimizer = nullptr) {
  if (const char* const name = refusal_range(kind)) {
    at::RecordFunction range(at::RecordScope::USER_SCOPE);
    std::vector<c10::IValue> inputs;
    if (range.isActive() && optimizer != nullptr) {
      for (const auto& group : optimizer->param_groups()) {
        if (inputs.empty() && !group.params().empty()) inputs.emplace_back(group.params().front());
      }
    }
    range.before(name, c10::ArrayRef<const c10::IValue>(inputs.data(), inputs.size()));
  }
  throw GradScalerError(kind, what);
}

/// Copies of one tensor on other devices, made when first asked for.
class Replicas {
 public:
  explicit Replicas(at::Tensor original) : original_(std::move(original)) {}

  at::Tensor on(c10::Device device) {
    const auto found =
        std::find_if(copies_.begin(), copies_.end(), [&](const auto& copy) { return copy.first == device; });
    if (found != copies_.end()) return found->second;
    copies_.emplace_back(device,
                         original_.to(original_.options().device(device), /*non_blocking=*/true, /*copy=*/true));
    return copies_.back().second;
  }

  std::vector<std::pair<c10::Device, at::Tensor>> take() { return std::move(copies_); }

 private:
  at::Tensor original_;
  std::vector<std::pair<c10::Device, at::Tensor>> copies_;
};

/// Gradients that one operator call can take: one device, one dtype.
struct GradientGroup {
  c10::Device device;
  c10::ScalarType dtype;
  std::vector<at::Tensor> gradients;
};

void add_to_group(std::vector<GradientGroup>& groups, const at::Tensor& gradient) {
  const auto found = std::find_if(groups.begin(), groups.end(), [&](const GradientGroup& group) {
    return group.device == gradient.device() && group.dtype == gradient.scalar_type();
  });
  if (found != groups.end()) {
    found->gradients.push_back(gradient);
  } else {
    groups.push_back({gradient.device(), gradient.scalar_type(), {gradient}});
  }
}

/// What the operator works on: the gradient itself, or the values of a sparse one. Duplicate indices need no coalescing
/// here: their sum may overflow in fp16 only, and fp16 gradients are refused.
at::Tensor values_to_unscale(const at::Tensor& parameter) {
  const at::Tensor& gradient = parameter.grad();
  return gradient.is_sparse() ? gradient._values() : gradient;
}

at::Tensor to_device(const at::Tensor& tensor, c10::Device device) {
  return tensor.to(tensor.options().device(device), /*non_blocking=*/true);
}

}  // namespace

GradScaler::GradScaler(c10::DeviceType device_type, const GradScalerOptions& options)
    : device_type_(device_type), options_(options) {
  if (device_type == c10::DeviceType::CUDA && options_.enabled && !at::hasCUDA()) {
    TORCH_WARN("The gradient scaler is disabled: it was made for CUDA, and there is no CUDA device in this process.");
    options_.enabled = false;
  }
  if (!options_.enabled) return;
  if (options_.growth_factor <= 1.0) throw GradScalerError(Kind::bad_setting, "growth_factor must be above 1.");
  if (options_.backoff_factor >= 1.0) throw GradScalerError(Kind::bad_setting, "backoff_factor must be below 1.");
}

GradScaler::OptimizerState& GradScaler::state_of(const torch::optim::Optimizer& optimizer) {
  const auto found = std::find_if(optimizers_.begin(), optimizers_.end(),
                                  [&](const OptimizerState& state) { return state.optimizer == &optimizer; });
  if (found != optimizers_.end()) return *found;
  return optimizers_.emplace_back(OptimizerState{.optimizer = &optimizer, .found_inf = {}});
}

void GradScaler::make_tensors(c10::Device device) {
  RECORD_USER_SCOPE("GradScaler.make_scale");
  scale_ = at::full({}, options_.init_scale, at::TensorOptions(device).dtype(at::kFloat));
  growth_tracker_ = at::full({}, init_growth_tracker_, at::TensorOptions(device).dtype(at::kInt));
}

void GradScaler::require_scale(const char* call) const {
  if (scale_.defined()) return;
  refuse(Kind::not_scaled, std::string(call) +
                               "() was called before any scale(): the loss of this iteration was "
                               "probably not passed through scaler.scale(loss).");
}

at::Tensor GradScaler::scale(const at::Tensor& output) {
  if (!options_.enabled) return output;
  RECORD_USER_SCOPE("GradScaler.scale");
  if (!scale_.defined()) make_tensors(output.device());
  return output * to_device(scale_, output.device());
}

std::vector<at::Tensor> GradScaler::scale(const std::vector<at::Tensor>& outputs) {
  if (!options_.enabled || outputs.empty()) return outputs;
  RECORD_USER_SCOPE("GradScaler.scale");
  if (!scale_.defined()) make_tensors(outputs.front().device());
  Replicas scales(scale_);
  std::vector<at::Tensor> scaled;
  scaled.reserve(outputs.size());
  for (const at::Tensor& output : outputs)
    scaled.push_back(output * scales.on(output.device()));
  return scaled;
}

GradScaler::FoundInf GradScaler::unscale_gradients(torch::optim::Optimizer& optimizer) const {
  // In double: a float reciprocal may be off in the last bit, depending on compiler flags. MPS has no double.
  const bool has_double = scale_.device().type() != c10::DeviceType::MPS;
  const at::Tensor inverse = has_double ? scale_.to(at::kDouble).reciprocal().to(at::kFloat) : scale_.reciprocal();
  Replicas inverse_scales(inverse);
  Replicas found_infs(at::full({}, 0.0, at::TensorOptions(scale_.device()).dtype(at::kFloat)));

  const at::NoGradGuard no_grad;
  std::vector<GradientGroup> groups;
  for (const auto& parameter_group : optimizer.param_groups()) {
    for (const at::Tensor& parameter : parameter_group.params()) {
      const at::Tensor& gradient = parameter.grad();
      if (!gradient.defined()) continue;
      if (gradient.scalar_type() == at::kHalf) {
        refuse(Kind::fp16_gradients,
               "A parameter of " + class_name(optimizer) +
                   " has its gradient in fp16, where unscaled values may not fit. Keep trainable "
                   "parameters in fp32; autocast casts them where it helps.",
               &optimizer);
      }
      add_to_group(groups, values_to_unscale(parameter));
    }
  }
  // Order of the calls as in PyTorch: by device in order of appearance, and in it by dtype.
  for (auto first = groups.begin(); first != groups.end();) {
    const c10::Device device = first->device;
    const auto next =
        std::stable_partition(first, groups.end(), [&](const GradientGroup& group) { return group.device == device; });
    for (; first != next; ++first) {
      at::Tensor found_inf = found_infs.on(device);
      at::_amp_foreach_non_finite_check_and_unscale_(first->gradients, found_inf, inverse_scales.on(device));
    }
  }
  return found_infs.take();
}

void GradScaler::unscale_(torch::optim::Optimizer& optimizer) {
  if (!options_.enabled) return;
  RECORD_USER_SCOPE("GradScaler.unscale_");
  require_scale("unscale_");
  OptimizerState& state = state_of(optimizer);
  if (state.stage == Stage::unscaled) {
    refuse(Kind::already_unscaled,
           "unscale_() was called twice for the same optimizer (" + class_name(optimizer) +
               ") without update() between: the gradients would be divided by "
               "the scale twice.",
           &optimizer);
  }
  if (state.stage == Stage::stepped) {
    refuse(Kind::unscale_after_step,
           "unscale_() was called after step() of the same optimizer (" + class_name(optimizer) +
               "). Call it between backward and step.",
           &optimizer);
  }
  state.found_inf = unscale_gradients(optimizer);
  state.stage = Stage::unscaled;
}

StepResult GradScaler::step(torch::optim::Optimizer& optimizer, const Closure& closure) {
  if (!options_.enabled) return {.skipped = false, .value = optimizer_step(optimizer, closure)};
  RECORD_USER_SCOPE("GradScaler.step");
  if (closure) {
    refuse(Kind::closure,
           "step() takes no closure while scaling is enabled: gradients made inside the closure could "
           "not be unscaled and checked.",
           &optimizer);
  }
  require_scale("step");
  if (state_of(optimizer).stage == Stage::stepped) {
    refuse(Kind::already_stepped,
           "step() was called twice for the same optimizer (" + class_name(optimizer) + ") without update() between.",
           &optimizer);
  }
  if (state_of(optimizer).stage == Stage::ready) unscale_(optimizer);
  if (state_of(optimizer).found_inf.empty()) {
    refuse(Kind::no_gradients,
           "step() found no gradient in " + class_name(optimizer) +
               ": none of its parameters took part in the backward pass.",
           &optimizer);
  }

  double found_inf = 0.0;
  for (const auto& [device, flag] : state_of(optimizer).found_inf)
    found_inf += flag.item<double>();
  StepResult result{.skipped = found_inf != 0.0, .value = {}};
  if (!result.skipped) result.value = optimizer_step(optimizer);
  state_of(optimizer).stage = Stage::stepped;
  return result;
}

void GradScaler::update() {
  if (!options_.enabled) return;
  RECORD_USER_SCOPE("GradScaler.update");
  require_scale("update");
  at::Tensor found_inf;
  for (const OptimizerState& state : optimizers_) {
    for (const auto& [device, flag] : state.found_inf) {
      const at::Tensor here = to_device(flag, scale_.device());
      if (found_inf.defined()) {
        found_inf += here;
      } else {
        found_inf = here;
      }
    }
  }
  if (!found_inf.defined()) {
    refuse(Kind::nothing_checked,
           "update() was called, but no gradients were checked since the last one: call step() or "
           "unscale_() of at least one optimizer first.");
  }
  at::_amp_update_scale_(scale_, growth_tracker_, found_inf, options_.growth_factor, options_.backoff_factor,
                         options_.growth_interval);
  optimizers_.clear();
}

void GradScaler::update(double new_scale) {
  if (!options_.enabled) return;
  RECORD_USER_SCOPE("GradScaler.update");
  require_scale("update");
  scale_.fill_(new_scale);
  optimizers_.clear();
}

void GradScaler::update(const at::Tensor& new_scale) {
  if (!options_.enabled) return;
  RECORD_USER_SCOPE("GradScaler.update");
  require_scale("update");
  if (new_scale.device().type() != device_type_ || new_scale.numel() != 1 || new_scale.requires_grad()) {
    throw GradScalerError(Kind::bad_scale, std::string("update() takes a new scale of one element on ") +
                                               c10::DeviceTypeName(device_type_, /*lower_case=*/true) +
                                               " that does not require grad.");
  }
  scale_.copy_(new_scale);
  optimizers_.clear();
}

void GradScaler::abandon_iteration() {
  optimizers_.clear();
}

double GradScaler::get_scale() const {
  if (!options_.enabled) return 1.0;
  return scale_.defined() ? scale_.item<double>() : options_.init_scale;
}

std::int64_t GradScaler::get_growth_tracker() const {
  if (!options_.enabled) return 0;
  return growth_tracker_.defined() ? growth_tracker_.item<std::int64_t>() : init_growth_tracker_;
}

std::optional<GradScalerState> GradScaler::state_dict() const {
  if (!options_.enabled) return std::nullopt;
  return GradScalerState{.scale = get_scale(),
                         .growth_factor = options_.growth_factor,
                         .backoff_factor = options_.backoff_factor,
                         .growth_interval = options_.growth_interval,
                         .growth_tracker = get_growth_tracker()};
}

void GradScaler::load_state_dict(const std::optional<GradScalerState>& state) {
  if (!options_.enabled) return;
  if (!state) {
    throw GradScalerError(Kind::empty_state,
                          "The state to load is empty: it was probably saved by a disabled gradient scaler.");
  }
  RECORD_USER_SCOPE("GradScaler.load_state_dict");
  options_.init_scale = state->scale;
  options_.growth_factor = state->growth_factor;
  options_.backoff_factor = state->backoff_factor;
  options_.growth_interval = state->growth_interval;
  init_growth_tracker_ = state->growth_tracker;
  if (scale_.defined()) {
    scale_.fill_(state->scale);
    growth_tracker_.fill_(state->growth_tracker);
  }
}

void GradScalerState::save(torch::serialize::OutputArchive& archive) const {
  archive.write("scale", c10::IValue(scale));
  archive.write("growth_factor", c10::IValue(growth_factor));
  archive.write("backoff_factor", c10::IValue(backoff_factor));
  archive.write("growth_interval", c10::IValue(growth_interval));
  archive.write("growth_tracker", c10::IValue(growth_tracker));
}

void GradScalerState::load(torch::serialize::InputArchive& archive) {
  const auto read = [&](const char* key) {
    c10::IValue value;
    archive.read(key, value);
    return value;
  };
  // Into a copy first: a key that is missing throws.
  const GradScalerState loaded{.scale = read("scale").toDouble(),
                               .growth_factor = read("growth_factor").toDouble(),
                               .backoff_factor = read("backoff_factor").toDouble(),
                               .growth_interval = read("growth_interval").toInt(),
                               .growth_tracker = read("growth_tracker").toInt()};
  *this = loaded;
}

}  // namespace ampscope::executor
