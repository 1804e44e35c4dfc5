#include "reporters/repro/script.h"

#include <nlohmann/json.hpp>
#include <string_view>

#include <fmt/format.h>

#include "reporters/common/place.h"
#include "reporters/common/text.h"

namespace ampscope::reporters {
namespace {

constexpr std::string_view program = R"(
import sys
from pathlib import Path

import torch

namespace_and_name, overload, positional, names, values = torch.load(
    Path(__file__).with_name(ARGUMENTS), weights_only=True
)
namespace, name = namespace_and_name.split("::")
operator = getattr(getattr(getattr(torch.ops, namespace), name), overload or "default")
named = dict(zip(names, values))


def tensors(value):
    if isinstance(value, torch.Tensor):
        return [value]
    return [tensor for item in value for tensor in tensors(item)] if isinstance(value, (tuple, list)) else []


def cast(value, dtype):
    if isinstance(value, torch.Tensor):
        # A copy: the operator may write to it.
        return value.to(dtype, copy=True) if dtype is not None and value.is_floating_point() else value.clone()
    return type(value)(cast(item, dtype) for item in value) if isinstance(value, (tuple, list)) else value


def describe(tensor):
    if not tensor.is_floating_point():
        return f"{tensor.dtype} {list(tensor.shape)}"
    finite = tensor[torch.isfinite(tensor)]
    largest = f"{finite.abs().max().item():.6g}" if finite.numel() else "none"
    nan, infinite = torch.isnan(tensor).sum().item(), torch.isinf(tensor).sum().item()
    return f"{tensor.dtype} {list(tensor.shape)}: largest {largest}, {nan} NaN, {infinite} infinite"


def compute(dtype=None):
    arguments = tuple(cast(value, dtype) for value in positional)
    keywords = {key: cast(value, dtype) for key, value in named.items()}
    # An explicit narrow result type would repeat the fault.
    if dtype is not None and keywords.get("dtype") is not None:
        keywords["dtype"] = dtype
    with torch.no_grad():
        return [t for t in tensors(operator(*arguments, **keywords)) if t.is_floating_point()]


def nonfinite(results):
    return any(not torch.isfinite(result).all() for result in results)


print(f"{namespace_and_name} of")
for value in [*positional, *named.values()]:
    for tensor in tensors(value):
        print("  ", describe(tensor))
as_trained = compute()
print("as it ran:")
for result in as_trained:
    print("  ", describe(result))
narrow = any(t.dtype in (torch.float16, torch.bfloat16) for t in [*tensors(positional), *as_trained])
wide = torch.float32 if narrow else torch.float64
in_wide = compute(wide)
print(f"in {wide}:")
for result in in_wide:
    print("  ", describe(result))

shown = nonfinite(as_trained)
cured = not nonfinite(in_wide)
given = [t for value in [*positional, *named.values()] for t in tensors(value) if t.is_floating_point()]
zeros = sum((t == 0).sum().item() for t in given)
# What a narrow type has made zero before this call stays zero in a wider one.
lost_before = shown and not cured and PRECISION_FAULT and narrow and zeros > 0
if not shown:
    print("the fault does not show here")
elif cured:
    print(f"the fault is one of the precision: in {wide} the result is finite")
elif lost_before:
    print(f"the precision was lost before this call: {zeros} elements of its arguments are zero; see the fix above")
else:
    print("the fault is not one of the precision: the result is not finite there either")
sys.exit(0 if shown and (cured == PRECISION_FAULT or lost_before) else 1)
)";

/// As a comment: whatever a module or file is called, it ends with the line.
std::string comment(std::string_view label, std::string_view text) {
  return text.empty() ? std::string() : fmt::format("# {:<7}{}\n", label, printable(text));
}

}  // namespace

std::string repro_script(const analyzers::Finding& finding, const std::string& working_directory,
                         const std::string& arguments_file) {
  std::string source = comment(finding.rule, finding.title);
  if (finding.culprit.source) source += comment("at", place(*finding.culprit.source, working_directory));
  source += comment("step", std::to_string(finding.steps.first));
  source += comment("how", finding.message);
  source += comment("fix", finding.fix);
  source += fmt::format("ARGUMENTS = {}\nPRECISION_FAULT = {}\n", nlohmann::json(arguments_file).dump(),
                        finding.precision_fault ? "True" : "False");
  return source + std::string(program);
}

}  // namespace ampscope::reporters
