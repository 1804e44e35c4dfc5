#include "probe/observe/self_test.h"

#include <cstring>

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/record_function.h>

namespace ampscope::observe {
namespace {

struct SelfTest {
  bool called = false;
  bool name_ok = false;
  bool inputs_ok = false;
  bool outputs_ok = false;
};
thread_local SelfTest* self_test_result = nullptr;

std::unique_ptr<at::ObserverContext> test_start(const at::RecordFunction& function) {
  if (self_test_result && std::strcmp(function.name(), "aten::empty") == 0) {
    self_test_result->called = self_test_result->name_ok = true;
    self_test_result->inputs_ok = function.inputs().size() == 6 && function.inputs()[0].isIntList();
  }
  return nullptr;
}

void test_end(const at::RecordFunction& function, at::ObserverContext*) {
  if (self_test_result && std::strcmp(function.name(), "aten::empty") == 0) {
    self_test_result->outputs_ok = function.outputs().size() == 1 && function.outputs()[0].isTensor();
  }
}

}  // namespace

const char* self_test() {
  SelfTest result;
  self_test_result = &result;
  const auto handle = at::addThreadLocalCallback(at::RecordFunctionCallback(test_start, test_end)
                                                     .needsInputs(true)
                                                     .needsOutputs(true)
                                                     .scopes({at::RecordScope::FUNCTION}));
  static_cast<void>(at::empty({0}));
  at::removeCallback(handle);
  self_test_result = nullptr;
  if (!result.called) return "torch does not announce its operators to this build";
  if (!result.name_ok || !result.inputs_ok || !result.outputs_ok) {
    return "torch's records of operators have another layout than this build expects";
  }
  return "";
}

}  // namespace ampscope::observe
