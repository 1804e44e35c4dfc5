#include "probe/observe/op_info.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <unordered_map>

#include <ATen/core/dispatch/Dispatcher.h>

namespace ampscope::observe {
namespace {

using std::string_view;

// Sorted, so that a binary search finds them. In-place and out variants are reduced to the plain name first.
constexpr auto passing = std::to_array<string_view>({
    "_conj_physical",
    "_copy_from",
    "_pin_memory",
    "_reshape_copy",
    "_unsafe_index",
    "_unsafe_masked_index",
    "abs",
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "adaptive_max_pool3d",
    "alias_copy",
    "amax",
    "amin",
    "aminmax",
    "argmax",
    "argmin",
    "broadcast_tensors",
    "cat",
    "ceil",
    "channel_shuffle",
    "clamp",
    "clamp_max",
    "clamp_min",
    "clip",
    "clone",
    "concat",
    "concatenate",
    "constant_pad_nd",
    "contiguous",
    "copysign",
    "cummax",
    "cummin",
    "diag_embed",
    "diagonal_copy",
    "dropout",
    "embedding",
    "expand_copy",
    "fix",
    "flip",
    "floor",
    "fmax",
    "fmin",
    "frac",
    "fractional_max_pool2d",
    "gather",
    "hardtanh",
    "hardtanh_backward",
    "hstack",
    "im2col",
    "index",
    "index_copy",
    "index_select",
    "kthvalue",
    "masked_fill",
    "masked_scatter",
    "masked_select",
    "max",
    "max_pool1d",
    "max_pool1d_with_indices",
    "max_pool2d",
    "max_pool2d_with_indices",
    "max_pool3d",
    "max_pool3d_with_indices",
    "maximum",
    "median",
    "min",
    "minimum",
    "mode",
    "msort",
    "nan_to_num",
    "nanmedian",
    "narrow_copy",
    "neg",
    "negative",
    "one_hot",
    "pad",
    "permute_copy",
    "pixel_shuffle",
    "pixel_unshuffle",
    "positive",
    "reflection_pad1d",
    "reflection_pad2d",
    "reflection_pad3d",
    "relu",
    "relu6",
    "repeat",
    "repeat_interleave",
    "replication_pad1d",
    "replication_pad2d",
    "replication_pad3d",
    "reshape_copy",
    "roll",
    "rot90",
    "round",
    "scatter",
    "select_copy",
    "select_scatter",
    "sgn",
    "sign",
    "slice_copy",
    "slice_scatter",
    "sort",
    "split_copy",
    "split_with_sizes_copy",
    "stack",
    "take",
    "take_along_dim",
    "threshold",
    "threshold_backward",
    "tile",
    "topk",
    "tril",
    "triu",
    "trunc",
    "unfold_copy",
    "upsample_nearest1d",
    "upsample_nearest2d",
    "upsample_nearest3d",
    "view_copy",
    "vstack",
    "where",
});

constexpr auto viewing = std::to_array<string_view>({
    "_reshape_alias",
    "_unsafe_view",
    "alias",
    "as_strided",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "chunk",
    "conj",
    "detach",
    "diagonal",
    "expand",
    "expand_as",
    "flatten",
    "imag",
    "lift",
    "lift_fresh",
    "movedim",
    "narrow",
    "numpy_T",
    "permute",
    "ravel",
    "real",
    "reshape",
    "reshape_as",
    "resolve_conj",
    "resolve_neg",
    "select",
    "slice",
    "split",
    "split_with_sizes",
    "squeeze",
    "swapaxes",
    "swapdims",
    "t",
    "tensor_split",
    "transpose",
    "unbind",
    "unflatten",
    "unfold",
    "unsafe_chunk",
    "unsafe_split",
    "unsafe_split_with_sizes",
    "unsqueeze",
    "view",
    "view_as",
    "view_as_complex",
    "view_as_real",
});

constexpr auto uninitialised = std::to_array<string_view>({
    "_efficientzerotensor",
    "empty",
    "empty_like",
    "empty_permuted",
    "empty_strided",
    "new_empty",
    "new_empty_strided",
    "resize",
    "resize_as",
    "set",
    "set_data",
});

constexpr auto constants = std::to_array<string_view>({
    "_foreach_zero",
    "arange",
    "eye",
    "fill",
    "full",
    "full_like",
    "linspace",
    "new_full",
    "new_ones",
    "new_zeros",
    "ones",
    "ones_like",
    "scalar_tensor",
    "zero",
    "zeros",
    "zeros_like",
});

constexpr auto casting = std::to_array<string_view>({"_to_copy", "copy", "to", "type_as"});

constexpr auto random_ops = std::to_array<string_view>({
    "bernoulli",
    "cauchy",
    "exponential",
    "geometric",
    "log_normal",
    "multinomial",
    "native_dropout",
    "normal",
    "rand",
    "rand_like",
    "randint",
    "randint_like",
    "randn",
    "randn_like",
    "random",
    "randperm",
    "rrelu",
    "uniform",
});

constexpr auto replacing = std::to_array<string_view>({
    "_index_put_impl",
    "clamp",
    "clamp_max",
    "clamp_min",
    "clip",
    "index_put",
    "masked_fill",
    "masked_scatter",
    "nan_to_num",
    "where",
});

static_assert(std::ranges::is_sorted(replacing) && std::ranges::is_sorted(passing) && std::ranges::is_sorted(viewing) &&
              std::ranges::is_sorted(casting));
static_assert(std::ranges::is_sorted(uninitialised) && std::ranges::is_sorted(constants) &&
              std::ranges::is_sorted(random_ops));

template <std::size_t N>
bool contains(const std::array<string_view, N>& sorted, string_view name) {
  return std::binary_search(sorted.begin(), sorted.end(), name);
}

/// "aten::add_" → "add".
string_view plain_name(string_view name) {
  if (const auto colon = name.rfind("::"); colon != string_view::npos) name.remove_prefix(colon + 2);
  if (name.size() > 1 && name.back() == '_' && name[name.size() - 2] != '_') name.remove_suffix(1);
  return name;
}

bool starts_with(string_view text, string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

Update update_of(const OpInfo& info) {
  if (!starts_with(info.name, "aten::")) return Update::none;
  const string_view plain = plain_name(info.name);
  if (plain == "add") return Update::add;
  if (plain == "sub") return Update::subtract;
  if (plain == "mul") return Update::multiply;
  if (plain == "lerp") return Update::lerp;
  const bool writes = info.mutates_first && (info.values == Values::computes || info.values == Values::casts);
  return writes ? Update::other : Update::none;
}

bool is_tensor(const c10::TypePtr& type) {
  return type->kind() == c10::TypeKind::TensorType;
}

/// A list of tensors, or one that may be absent.
bool holds_tensors(const c10::TypePtr& type) {
  if (const auto* list = type->castRaw<c10::ListType>()) {
    return is_tensor(list->getElementType()) || holds_tensors(list->getElementType());
  }
  const auto* optional = type->castRaw<c10::OptionalType>();
  return optional && (is_tensor(optional->getElementType()) || holds_tensors(optional->getElementType()));
}

OpInfo make(const char* name, const char* overload, std::uint32_t id) {
  OpInfo info;
  info.id = id;
  info.name = name;
  info.overload = overload ? overload : "";
  info.values = values_of(info.name);
  info.meaning = meaning_of(info.name);
  info.only_first_result = info.name.find("ctc_loss") != std::string::npos;
  info.random = contains(random_ops, plain_name(info.name));
  info.replaces = contains(replacing, plain_name(info.name));
  if (info.name.find("::") == std::string::npos || info.meaning == Meaning::evaluate_function) return info;
  const auto handle = c10::Dispatcher::singleton().findSchema({info.name, info.overload});
  if (!handle) return info;
  info.has_schema = true;
  info.random |= handle->hasTag(at::Tag::nondeterministic_seeded);
  info.composite = handle->hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd);
  const c10::FunctionSchema& schema = handle->schema();
  bool first = true;
  bool others = false;
  int tensors = 0;
  for (const c10::Argument& argument : schema.arguments()) {
    if (argument.name() == "dropout_p") info.dropout_argument = static_cast<int>(info.arguments.size());
    info.arguments.push_back(argument.name());
    info.has_batch_statistics |= argument.name() == "running_mean";
    if (argument.alias_info() && argument.alias_info()->isWrite()) {
      info.mutates = true;
      info.mutates_first |= first;
    }
    first = false;
    tensors += is_tensor(argument.type()) ? 1 : 0;
    others = others || holds_tensors(argument.type()) || argument.name() == "value";
  }
  info.single_source = tensors == 1 && !others;
  info.update = update_of(info);
  info.makes_distribution = info.name == "aten::_softmax";
  return info;
}

struct Key {
  std::string name;
  std::string overload;
  bool operator==(const Key&) const = default;
};
struct KeyHash {
  std::size_t operator()(const Key& key) const {
    return std::hash<std::string>{}(key.name) * 31 + std::hash<std::string>{}(key.overload);
  }
};

struct Registry {
  std::mutex mutex;
  std::unordered_map<Key, std::unique_ptr<OpInfo>, KeyHash> entries;
};

// Leaked: callbacks may run after static destructors have begun.
Registry& registry() {
  static auto* instance = new Registry;
  return *instance;
}

const OpInfo* look_up(const char* name, const char* overload) {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  auto& entry = r.entries[Key{name, overload ? overload : ""}];
  if (!entry) entry = std::make_unique<OpInfo>(make(name, overload, static_cast<std::uint32_t>(r.entries.size())));
  return entry.get();
}

/// An operator by the addresses of the dispatcher's own names, which stay where they are. Written once, by the thread
/// that took it; the others are valid when `info` is there.
struct alignas(32) Stable {
  std::atomic<bool> taken{false};
  const char* name = nullptr;
  const char* overload = nullptr;
  std::atomic<const OpInfo*> info{nullptr};
};

// Of all threads: finding a thread's own table costs more than looking into it.
std::array<Stable, 4096> stable_names{};

// What has no schema has no overload either, and torch gives one and the same empty string for it. So what comes with
// another one comes from a schema.
std::atomic<const char*> no_overload{nullptr};

/// The same without a lock and an allocation, for names that are built anew for every event, often in the same memory:
/// those of the engine's nodes.
const OpInfo* by_contents(const char* name, const char* overload) {
  struct Line {
    std::size_t hash = 0;
    const OpInfo* info = nullptr;
  };
  thread_local std::array<Line, 512> cache;
  const string_view with = overload ? overload : "";
  const std::size_t hash = std::hash<string_view>{}(name) * 31 + std::hash<string_view>{}(with);
  Line& line = cache[hash & (cache.size() - 1)];
  if (!line.info || line.hash != hash || line.info->name != name || line.info->overload != with) {
    line = {hash, look_up(name, overload)};
  }
  return line.info;
}

}  // namespace

Values values_of(string_view name) {
  const string_view plain = plain_name(name);
  if (contains(viewing, plain)) return Values::views;
  if (contains(passing, plain)) return Values::passes;
  if (contains(casting, plain)) return Values::casts;
  if (contains(uninitialised, plain)) return Values::uninitialised;
  if (contains(constants, plain)) return Values::constant;
  return Values::computes;
}

Meaning meaning_of(string_view name) {
  if (name == "aten::_amp_foreach_non_finite_check_and_unscale_") return Meaning::unscale;
  if (name == "aten::_amp_update_scale_") return Meaning::update_scale;
  if (name == "aten::ones_like") return Meaning::ones_like;
  if (name == "aten::mul" || name == "aten::mul_") return Meaning::multiply;
  if (name == "aten::div" || name == "aten::div_") return Meaning::divide;
  if (name == "aten::item" || name == "aten::_local_scalar_dense") return Meaning::host_read;
  if (starts_with(name, "autograd::engine::evaluate_function")) return Meaning::evaluate_function;
  if (starts_with(name, "Optimizer.step#")) return Meaning::optimizer_range;
  if (starts_with(name, "Optimizer.zero_grad#")) return Meaning::zero_grad_range;
  if (starts_with(name, "enumerate(DataLoader)")) return Meaning::data_range;
  if (starts_with(name, "Torch-Compiled Region") || name == "CompiledFunction" || name == "CompiledFunctionBackward") {
    return Meaning::hidden_region;
  }
  if (starts_with(name, "GradScaler.")) return Meaning::scaler_range;
  if (starts_with(name, "LRScheduler.step#")) return Meaning::schedule_range;
  if (name == "clip_grad_norm_" || name == "clip_grad_value_") return Meaning::clip_range;
  return Meaning::plain;
}

const OpInfo* op_info(const char* name, const char* overload) {
  // Names of dispatcher operators are stable pointers, so most look-ups end here. All others are compared: transient
  // names (ranges) are built at the same address again.
  const auto mixed =
      ((reinterpret_cast<std::uintptr_t>(name) >> 3) ^ (reinterpret_cast<std::uintptr_t>(overload) >> 5));
  Stable& slot = stable_names[mixed & (stable_names.size() - 1)];
  const OpInfo* const found = slot.info.load(std::memory_order_acquire);
  if (found && slot.name == name && slot.overload == overload) return found;
  const OpInfo* const info = by_contents(name, overload);
  if (!info->has_schema) no_overload.store(overload, std::memory_order_relaxed);
  const char* const none = no_overload.load(std::memory_order_relaxed);
  if (!found && info->has_schema && none && overload && overload != none &&
      !slot.taken.exchange(true, std::memory_order_relaxed)) {
    slot.name = name;
    slot.overload = overload;
    slot.info.store(info, std::memory_order_release);
  }
  return info;
}

}  // namespace ampscope::observe
