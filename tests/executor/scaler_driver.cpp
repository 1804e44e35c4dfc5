// Plays scripts of GradScaler calls (JSON, see grad_scaler_against_torch.py) and prints the state after every call in
// bits.
#include <bit>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include <torch/torch.h>

#include "executor/grad_scaler.h"

namespace {

using ampscope::executor::GradScaler;
using ampscope::executor::GradScalerError;
using ampscope::executor::GradScalerOptions;
using ampscope::executor::GradScalerState;
using nlohmann::json;

const char* kind_name(GradScalerError::Kind kind) {
  using Kind = GradScalerError::Kind;
  switch (kind) {
    case Kind::bad_setting:
      return "bad_setting";
    case Kind::closure:
      return "closure";
    case Kind::not_scaled:
      return "not_scaled";
    case Kind::already_unscaled:
      return "already_unscaled";
    case Kind::unscale_after_step:
      return "unscale_after_step";
    case Kind::already_stepped:
      return "already_stepped";
    case Kind::fp16_gradients:
      return "fp16_gradients";
    case Kind::no_gradients:
      return "no_gradients";
    case Kind::nothing_checked:
      return "nothing_checked";
    case Kind::bad_scale:
      return "bad_scale";
    case Kind::empty_state:
      return "empty_state";
  }
  return "unknown";
}

torch::Dtype dtype_of(const std::string& name) {
  if (name == "float16") return torch::kHalf;
  if (name == "bfloat16") return torch::kBFloat16;
  if (name == "float64") return torch::kDouble;
  return torch::kFloat;
}

/// float32 values given as their bits.
torch::Tensor from_bits(const json& bits, const json& shape) {
  std::vector<std::int32_t> words;
  for (const auto& word : bits)
    words.push_back(std::bit_cast<std::int32_t>(word.get<std::uint32_t>()));
  return torch::tensor(words, torch::kInt).view(torch::kFloat).reshape(shape.get<std::vector<std::int64_t>>()).clone();
}

json to_bits(const torch::Tensor& tensor) {
  if (!tensor.defined()) return nullptr;
  const torch::Tensor dense = tensor.is_sparse() ? tensor._values() : tensor;
  const auto size = dense.element_size();
  const torch::Tensor flat = dense.detach().contiguous().flatten();
  const torch::Tensor words = flat.view(size == 2   ? torch::kShort
                                        : size == 4 ? torch::kInt
                                                    : torch::kLong)
                                  .to(torch::kLong);
  return std::vector<std::int64_t>(words.data_ptr<std::int64_t>(), words.data_ptr<std::int64_t>() + words.numel());
}

std::string to_bits(double value) {
  std::ostringstream text;
  text << std::hex << std::bit_cast<std::uint64_t>(value);
  return text.str();
}

GradScalerOptions options_of(const json& script) {
  return {.init_scale = script.at("init_scale"),
          .growth_factor = script.at("growth_factor"),
          .backoff_factor = script.at("backoff_factor"),
          .growth_interval = script.at("growth_interval"),
          .enabled = script.at("enabled")};
}

class Player {
 public:
  explicit Player(const json& script) : scaler_(torch::kCPU, options_of(script.at("scaler"))) {
    for (const json& description : script.at("optimizers")) {
      std::vector<torch::Tensor> parameters;
      for (const json& parameter : description.at("parameters")) {
        parameters.push_back(from_bits(parameter.at("bits"), parameter.at("shape"))
                                 .to(dtype_of(parameter.at("dtype")))
                                 .requires_grad_());
      }
      optimizers_.push_back(
          std::make_unique<torch::optim::SGD>(parameters, torch::optim::SGDOptions(description.at("lr"))
                                                              .momentum(description.at("momentum"))
                                                              .weight_decay(description.at("weight_decay"))));
    }
  }

  json play(const json& call) {
    json record;
    try {
      record["stepped"] = perform(call);
      record["error"] = nullptr;
    } catch (const GradScalerError& error) {
      record["stepped"] = false;
      record["error"] = kind_name(error.kind());
    }
    record["scale"] = to_bits(scaler_.get_scale());
    record["tracker"] = scaler_.get_growth_tracker();
    if (scaler_.is_enabled()) {
      record["settings"] = {to_bits(scaler_.get_growth_factor()), to_bits(scaler_.get_backoff_factor()),
                            scaler_.get_growth_interval()};
    }
    for (const auto& optimizer : optimizers_) {
      for (const torch::Tensor& parameter : optimizer->parameters()) {
        record["tensors"].push_back(to_bits(parameter));
        record["tensors"].push_back(to_bits(parameter.grad()));
      }
    }
    return record;
  }

 private:
  torch::optim::Optimizer& optimizer(const json& call) { return *optimizers_.at(call.at("optimizer")); }

  torch::Tensor loss_of(const json& description) {
    const auto& parameters = optimizer(description).parameters();
    torch::Tensor loss;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const json& input = description.at("inputs").at(i);
      if (input.is_null()) continue;
      torch::Tensor used = parameters[i];
      if (input.contains("rows")) {
        const auto rows = torch::tensor(input.at("rows").get<std::vector<std::int64_t>>());
        used = torch::embedding(used, rows, /*padding_idx=*/-1, /*scale_grad_by_freq=*/false, /*sparse=*/true);
      }
      const torch::Tensor factor = from_bits(input.at("bits"), used.sizes().vec()).to(used.scalar_type());
      const torch::Tensor part = (used * factor).sum();
      loss = loss.defined() ? loss + part.to(loss.scalar_type()) : part;
    }
    return loss;
  }

  void backward(const json& call) {
    std::vector<torch::Tensor> losses;
    for (const json& description : call.at("losses")) {
      const torch::Tensor loss = loss_of(description);
      if (loss.defined()) losses.push_back(loss);
    }
    if (call.at("how") == "list") {
      losses = scaler_.scale(losses);
    } else if (call.at("how") == "each") {
      for (torch::Tensor& loss : losses)
        loss = scaler_.scale(loss);
    }
    for (const torch::Tensor& loss : losses)
      loss.backward();
  }

  /// The state, through a file's format and back into a new scaler.
  void restore_in_new_scaler(const json& call) {
    std::optional<GradScalerState> state = scaler_.state_dict();
    if (state) {
      std::stringstream file;
      torch::serialize::OutputArchive out;
      state->save(out);
      out.save_to(file);
      torch::serialize::InputArchive in;
      in.load_from(file);
      *state = {};
      state->load(in);
    }
    GradScaler fresh(torch::kCPU, options_of(call.at("scaler")));
    if (call.at("scale_first")) fresh.scale(torch::ones({}));
    scaler_ = std::move(fresh);
    scaler_.load_state_dict(state);
  }

  /// Whether an optimizer stepped.
  bool perform(const json& call) {
    const std::string name = call.at("call");
    if (name == "zero_grad") {
      optimizer(call).zero_grad();
    } else if (name == "backward") {
      backward(call);
    } else if (name == "unscale_") {
      scaler_.unscale_(optimizer(call));
    } else if (name == "step") {
      return !scaler_.step(optimizer(call)).skipped;
    } else if (name == "step_closure") {
      scaler_.step(optimizer(call), [] { return torch::ones({}); });
      return true;
    } else if (name == "update") {
      scaler_.update();
    } else if (name == "update_scale") {
      scaler_.update(call.at("scale").get<double>());
    } else if (name == "update_tensor") {
      const json& values = call.at("values");
      const torch::Tensor scale = values.is_array() ? torch::tensor(values.get<std::vector<double>>(), torch::kFloat)
                                                    : torch::tensor(values.get<double>(), torch::kFloat);
      scaler_.update(scale.requires_grad_(call.at("requires_grad").get<bool>()));
    } else if (name == "set_growth_factor") {
      scaler_.set_growth_factor(call.at("value"));
    } else if (name == "set_backoff_factor") {
      scaler_.set_backoff_factor(call.at("value"));
    } else if (name == "set_growth_interval") {
      scaler_.set_growth_interval(call.at("value"));
    } else if (name == "restore") {
      restore_in_new_scaler(call);
    } else if (name == "load_empty") {
      scaler_.load_state_dict(std::nullopt);
    } else if (name == "construct") {
      const GradScaler other(torch::kCPU, options_of(call.at("scaler")));
    } else {
      throw std::invalid_argument("unknown call " + name);
    }
    return false;
  }

  GradScaler scaler_;
  std::vector<std::unique_ptr<torch::optim::SGD>> optimizers_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: scaler_driver SCRIPTS.json\n";
    return 2;
  }
  torch::set_num_threads(1);
  for (const json& script : json::parse(std::ifstream(argv[1]))) {
    Player player(script);
    json records = json::array();
    for (const json& call : script.at("calls"))
      records.push_back(player.play(call));
    std::cout << records.dump() << '\n';
  }
}
