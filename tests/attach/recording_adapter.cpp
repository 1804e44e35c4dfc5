// Stands in for the adapter: has its interface and writes each call as a line into $AMPSCOPE_TEST_LOG, so that the ways
// in can be tested alone.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <unistd.h>

#include "ampscope/interposed.h"
#include "ampscope/probe_c.h"

namespace {

int attached = 0;
pid_t trace_owner = 0;  // a forked child that does not train has no trace

template <typename... Values>
void record(const char* format, Values... values) {
  const char* path = std::getenv("AMPSCOPE_TEST_LOG");
  std::FILE* file = path ? std::fopen(path, "a") : nullptr;
  if (!file) std::abort();
  std::fprintf(file, format, values...);
  std::fputc('\n', file);
  std::fclose(file);
}

}  // namespace

int ampscope_abi_version(void) {
  const char* other = std::getenv("AMPSCOPE_TEST_ABI");
  return other ? static_cast<int>(std::strtol(other, nullptr, 10)) : AMPSCOPE_ABI_VERSION;
}

const char* ampscope_torch_version(void) {
  return AMPSCOPE_TEST_TORCH_VERSION;
}

const char* ampscope_last_error(void) {
  return "the test wants \"attaching\" to fail";
}

int ampscope_attach(void) {
  if (std::getenv("AMPSCOPE_TEST_REFUSE")) return -1;
  if (!attached) record("attach %s", std::getenv("AMPSCOPE_OUTPUT"));
  attached = 1;
  trace_owner = getpid();
  return 0;
}

void ampscope_detach(const char* how, const char* detail) {
  record("detach %s %s", how, detail ? detail : "-");
  attached = 0;
}

int ampscope_is_attached(void) {
  return attached;
}

void ampscope_mark_step(void) {
  record("%s", "step");
}

const char* ampscope_trace_path(void) {
  return attached && trace_owner == getpid() ? "somewhere/run.ampscope" : "";
}

void ampscope_note_optimizer_step(uintptr_t object, const char* class_name, double learning_rate, int through_scaler,
                                  int begin) {
  record("optimizer %s lr=%g scaler=%d begin=%d object=%d", class_name, learning_rate, through_scaler, begin,
         object != 0);
}

void ampscope_note_schedule_step(uintptr_t object, const char* class_name, uintptr_t optimizer, int from_constructor) {
  record("schedule %s constructor=%d object=%d optimizer=%d", class_name, from_constructor, object != 0,
         optimizer != 0);
}

void ampscope_note_scale_read(uintptr_t scaler, int as_factor) {
  record("scale_read object=%d factor=%d", scaler != 0, as_factor);
}

void ampscope_note_scaler_made(uintptr_t scaler) {
  record("scaler_made object=%d", scaler != 0);
}

void ampscope_note_scaler_restored(uintptr_t scaler) {
  record("scaler_restored object=%d", scaler != 0);
}

void ampscope_note_optimizer_restored(uintptr_t optimizer) {
  record("optimizer_restored object=%d", optimizer != 0);
}

void ampscope_note_optimizer_made(void) {
  record("%s", "optimizer_made");
}

void ampscope_note_scaler_region(int begin) {
  record("scaler_region %d", begin);
}

void ampscope_note_cost(double nanoseconds) {
  record("cost %s", nanoseconds > 0 && nanoseconds < 1e6 ? "plausible" : "not plausible");
}

int64_t ampscope_python_calls(void) {
  return 0;
}

void ampscope_note_scaler_refusal(uintptr_t optimizer, const char* class_name, uint32_t reason) {
  record("refusal %s %u object=%d", class_name, reason, optimizer != 0);
}

int64_t ampscope_note_autocast(const char* file, int line, const char* function, const char* device,
                               const char* dtype) {
  const char* const name = std::strrchr(file, '/');
  record("autocast %s:%d %s %s %s", name != nullptr ? name + 1 : file, line, function, device, dtype);
  return line;
}

void ampscope_note_autocast_use(int64_t made) {
  record("autocast_use %lld", static_cast<long long>(made));
}

void ampscope_note_parameter(uintptr_t tensor, uintptr_t data, const char* name, const char* module,
                             const char* module_class) {
  record("parameter %s %s %s %d %d", name, module, module_class, tensor != 0, data != 0);
}

void ampscope_cxx_module_parameters(void* module) {
  record("cxx_parameters %p", module);
}

void ampscope_cxx_register_parameter(void* module, const char* name, void* tensor_impl) {
  record("cxx_register %p %s %p", module, name, tensor_impl);
}

ampscope::ReturnedTensor ampscope_cxx_optimizer_step(ampscope::OptimizerStep real, void* optimizer, void* closure) {
  record("%s", "optimizer_step");
  return real(optimizer, closure);
}

void ampscope_cxx_zero_grad(ampscope::ZeroGrad real, void* optimizer, bool set_to_none) {
  record("zero_grad set_to_none=%d", set_to_none);
  real(optimizer, set_to_none);
}

void ampscope_cxx_schedule_step(ampscope::ScheduleStep real, void* schedule) {
  record("%s", "schedule_step");
  real(schedule);
}

void ampscope_cxx_schedule_step_by_metric(ampscope::ScheduleStepByMetric real, void* schedule, float metric) {
  record("schedule_step metric=%g", static_cast<double>(metric));
  real(schedule, metric);
}
