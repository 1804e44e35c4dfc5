#include "probe/observe/python_frames.h"

#include <atomic>
#include <cstddef>

#include <dlfcn.h>

namespace ampscope::observe {
namespace {

// Opaque: only pointers to these are used, and all functions below belong to Python's documented C interface.
struct PyObject;
struct PyFrame;
struct PyThread;

struct PythonApi {
  int (*is_initialized)();
  PyThread* (*this_thread_state)();
  int (*ensure)();
  void (*release)(int);
  PyFrame* (*current_frame)();
  PyFrame* (*frame_back)(PyFrame*);
  PyObject* (*frame_code)(PyFrame*);
  int (*frame_line)(PyFrame*);
  PyObject* (*frame_locals)(PyFrame*);
  void (*decref)(PyObject*);
  PyObject* (*import_module)(const char*);
  PyObject* (*get_attribute)(PyObject*, const char*);
  PyObject* (*call)(PyObject*, PyObject*);
  PyObject* (*tuple_new)(std::ptrdiff_t);
  std::ptrdiff_t (*sequence_size)(PyObject*);
  PyObject* (*sequence_item)(PyObject*, std::ptrdiff_t);
  PyObject* (*mapping_item)(PyObject*, const char*);
  const char* (*utf8)(PyObject*);
  long (*as_long)(PyObject*);
  double (*as_double)(PyObject*);
  int (*is_true)(PyObject*);
  void (*error_fetch)(PyObject**, PyObject**, PyObject**);
  void (*error_restore)(PyObject*, PyObject*, PyObject*);
  void (*error_clear)();
  // Optional.
  int (*frame_last_instruction)(PyFrame*);             // 3.11
  PyObject* (*frame_variable)(PyFrame*, const char*);  // 3.12
};

PythonApi api{};
std::atomic<bool> connected{false};
std::atomic<std::int64_t> calls{0};

// Set once the helper module is loaded; both are kept for the life of the process.
struct Helper {
  PyObject* describe = nullptr;
  PyObject* scaler_call = nullptr;
  PyObject* module_call_code = nullptr;  ///< code object of torch.nn.Module._call_impl
  bool tried = false;
};
Helper helper;  // Guarded by the interpreter's lock.

template <typename F>
bool find(F& function, const char* name) {
  function = reinterpret_cast<F>(dlsym(RTLD_DEFAULT, name));
  return function != nullptr;
}

/// Holds the interpreter's lock and keeps an exception that is on its way out of our sight.
class Interpreter {
 public:
  Interpreter() : state_(api.ensure()) {
    calls.fetch_add(1, std::memory_order_relaxed);
    api.error_fetch(&type_, &value_, &traceback_);
  }
  ~Interpreter() {
    api.error_clear();
    api.error_restore(type_, value_, traceback_);
    api.release(state_);
  }
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

 private:
  int state_;
  PyObject* type_ = nullptr;
  PyObject* value_ = nullptr;
  PyObject* traceback_ = nullptr;
};

/// Owns a reference.
class Reference {
 public:
  explicit Reference(PyObject* object = nullptr) : object_(object) {}
  ~Reference() {
    if (object_) api.decref(object_);
  }
  Reference(const Reference&) = delete;
  Reference& operator=(const Reference&) = delete;
  [[nodiscard]] PyObject* get() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  PyObject* object_;
};

PyObject* as_object(PyFrame* frame) {
  return reinterpret_cast<PyObject*>(frame);
}

/// Whether the calling thread runs Python code: a thread of C++ alone must not be made known to the interpreter.
bool thread_runs_python() {
  return connected.load(std::memory_order_acquire) && api.is_initialized() && api.this_thread_state() != nullptr;
}

void load_helper() {
  if (helper.tried) return;
  helper.tried = true;
  const Reference module(api.import_module("ampscope._frames"));
  if (!module) {
    api.error_clear();
    return;
  }
  helper.describe = api.get_attribute(module.get(), "describe");
  helper.scaler_call = api.get_attribute(module.get(), "scaler_call");
  helper.module_call_code = api.get_attribute(module.get(), "MODULE_CALL_CODE");
  api.error_clear();
}

std::string text(PyObject* object) {
  const char* utf8 = object ? api.utf8(object) : nullptr;
  if (!utf8) api.error_clear();
  return utf8 ? utf8 : "";
}

std::string text_item(PyObject* sequence, std::ptrdiff_t index) {
  const Reference item(api.sequence_item(sequence, index));
  return text(item.get());
}

long long_item(PyObject* sequence, std::ptrdiff_t index) {
  const Reference item(api.sequence_item(sequence, index));
  return item ? api.as_long(item.get()) : 0;
}

trace::SourceLine line_item(PyObject* sequence, std::ptrdiff_t index) {
  const Reference item(api.sequence_item(sequence, index));
  trace::SourceLine line;
  if (item && api.sequence_size(item.get()) == 3) {
    line.file = text_item(item.get(), 0);
    line.line = static_cast<int>(long_item(item.get(), 1));
    line.function = text_item(item.get(), 2);
  }
  return line;
}

/// Calls a helper without arguments.
PyObject* call_helper(PyObject* function) {
  if (!function) return nullptr;
  const Reference no_arguments(api.tuple_new(0));
  return api.call(function, no_arguments.get());
}

}  // namespace

bool python_connect() noexcept {
  const bool found = find(api.is_initialized, "Py_IsInitialized") &&
                     find(api.this_thread_state, "PyGILState_GetThisThreadState") &&
                     find(api.ensure, "PyGILState_Ensure") && find(api.release, "PyGILState_Release") &&
                     find(api.current_frame, "PyEval_GetFrame") && find(api.frame_back, "PyFrame_GetBack") &&
                     find(api.frame_code, "PyFrame_GetCode") && find(api.frame_line, "PyFrame_GetLineNumber") &&
                     find(api.decref, "Py_DecRef") && find(api.import_module, "PyImport_ImportModule") &&
                     find(api.get_attribute, "PyObject_GetAttrString") && find(api.call, "PyObject_CallObject") &&
                     find(api.tuple_new, "PyTuple_New") && find(api.sequence_size, "PySequence_Size") &&
                     find(api.sequence_item, "PySequence_GetItem") &&
                     find(api.mapping_item, "PyMapping_GetItemString") && find(api.utf8, "PyUnicode_AsUTF8") &&
                     find(api.as_long, "PyLong_AsLong") && find(api.as_double, "PyFloat_AsDouble") &&
                     find(api.is_true, "PyObject_IsTrue") && find(api.error_fetch, "PyErr_Fetch") &&
                     find(api.error_restore, "PyErr_Restore") && find(api.error_clear, "PyErr_Clear");
  find(api.frame_last_instruction, "PyFrame_GetLasti");
  find(api.frame_variable, "PyFrame_GetVarString");
  find(api.frame_locals, "PyFrame_GetLocals");
  if (found && api.is_initialized()) connected.store(true, std::memory_order_release);
  return connected.load(std::memory_order_acquire);
}

std::int64_t python_calls() noexcept {
  return calls.load(std::memory_order_relaxed);
}

bool python_connected() noexcept {
  return connected.load(std::memory_order_acquire);
}

std::string python_version() {
  const char* (*version)() = nullptr;
  if (!python_connected() || !find(version, "Py_GetVersion")) return "";
  const std::string text = version();
  return text.substr(0, text.find(' '));
}

std::uint64_t python_stack_hash() noexcept {
  if (!thread_runs_python()) return 0;
  const Interpreter interpreter;
  load_helper();
  PyFrame* current = api.current_frame();  // Borrowed.
  if (!current) return 0;
  std::uint64_t hash = 0x9e3779b97f4a7c15ULL;
  const auto mix = [&hash](std::uint64_t value) {
    hash = (hash ^ value) * 0xff51afd7ed558ccdULL;
    hash ^= hash >> 32;
  };
  PyFrame* frame = current;
  bool owned = false;
  for (int depth = 0; frame && depth < 200; ++depth) {
    const Reference code(api.frame_code(frame));
    mix(reinterpret_cast<std::uint64_t>(code.get()));
    mix(static_cast<std::uint64_t>(api.frame_last_instruction ? api.frame_last_instruction(frame)
                                                              : api.frame_line(frame)));
    // The same lines run for every block of a model: the module they run for tells the blocks apart.
    if (code.get() == helper.module_call_code) {
      if (api.frame_variable) {
        const Reference self(api.frame_variable(frame, "self"));
        mix(reinterpret_cast<std::uint64_t>(self.get()));
      } else if (api.frame_locals) {
        // Only for this function of torch, whose frame ends at once: a frame's dictionary of locals keeps values alive.
        const Reference locals(api.frame_locals(frame));
        const Reference self(locals ? api.mapping_item(locals.get(), "self") : nullptr);
        mix(reinterpret_cast<std::uint64_t>(self.get()));
      }
      api.error_clear();
    }
    PyFrame* back = api.frame_back(frame);
    if (owned) api.decref(as_object(frame));
    frame = back;
    owned = true;
  }
  if (frame && owned) api.decref(as_object(frame));
  return hash | 1;
}

PythonPlace python_place() noexcept {
  PythonPlace place;
  if (!thread_runs_python()) return place;
  try {
    const Interpreter interpreter;
    load_helper();
    const Reference result(call_helper(helper.describe));
    if (!result || api.sequence_size(result.get()) != 7) return place;
    place.source = line_item(result.get(), 0);
    const Reference stack(api.sequence_item(result.get(), 1));
    for (std::ptrdiff_t i = 0, n = stack ? api.sequence_size(stack.get()) : 0; i < n; ++i) {
      place.stack.push_back(line_item(stack.get(), i));
    }
    const Reference has_module(api.sequence_item(result.get(), 2));
    place.has_module = has_module && api.is_true(has_module.get()) == 1;
    place.module = text_item(result.get(), 3);
    place.module_class = text_item(result.get(), 4);
    place.api = text_item(result.get(), 5);
    const Reference arguments(api.sequence_item(result.get(), 6));
    for (std::ptrdiff_t i = 0, n = arguments ? api.sequence_size(arguments.get()) : 0; i < n; ++i) {
      const Reference pair(api.sequence_item(arguments.get(), i));
      const Reference value(api.sequence_item(pair.get(), 1));
      if (value) place.api_arguments[text_item(pair.get(), 0)] = api.as_double(value.get());
    }
  } catch (...) {  // Out of memory: a place without a line.
  }
  return place;
}

ScalerCall python_scaler_call() noexcept {
  ScalerCall call;
  if (!thread_runs_python()) return call;
  try {
    const Interpreter interpreter;
    load_helper();
    const Reference result(call_helper(helper.scaler_call));
    if (!result || api.sequence_size(result.get()) != 4) return call;
    call.scaler = static_cast<std::uintptr_t>(long_item(result.get(), 0));
    call.optimizer = static_cast<std::uintptr_t>(long_item(result.get(), 1));
    call.scaler_class = text_item(result.get(), 2);
    call.optimizer_class = text_item(result.get(), 3);
  } catch (...) {
  }
  return call;
}

}  // namespace ampscope::observe
