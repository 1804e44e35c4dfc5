#include "probe/attach/preload/python.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probe/attach/preload/libtorch.h"

namespace ampscope::attach {
namespace {

// The few functions of Python's C interface that are needed, looked up in whatever Python is there. All of them are in
// its stable part; PyRun_String has a fixed meaning for Py_file_input (257) since Python 2.
using AuditHook = int (*)(const char* event, void* arguments, void* data);
using AddAuditHook = int (*)(AuditHook, void*);

constexpr int py_file_input = 257;
bool program_set = false;
char program[2 * path_size + 512];

template <typename Function>
Function python(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
}

/// Runs `program` in a namespace of its own. An error is reported by the package itself; what is left is cleared.
void run_program() {
  auto* new_dict = python<void* (*)()>("PyDict_New");
  auto* set_item = python<int (*)(void*, const char*, void*)>("PyDict_SetItemString");
  auto* builtins = python<void* (*)()>("PyEval_GetBuiltins");
  auto* run = python<void* (*)(const char*, int, void*, void*)>("PyRun_String");
  auto* release = python<void (*)(void*)>("Py_DecRef");
  auto* clear_error = python<void (*)()>("PyErr_Clear");
  if (!new_dict || !set_item || !builtins || !run || !release || !clear_error) return;
  void* names = new_dict();
  if (names) {
    void* result =
        set_item(names, "__builtins__", builtins()) == 0 ? run(program, py_file_input, names, names) : nullptr;
    if (result) release(result);
    release(names);
  }
  clear_error();
}

/// Python calls it at every audited event, with the interpreter's lock held. A hook cannot be removed, so all it does
/// for other events and after its work is to compare a letter or two.
int on_event(const char* event, void* arguments, void*) {
  if (!program_set || event[0] != 'i' || strcmp(event, "import") != 0) return 0;
  static auto* first_of = python<void* (*)(void*, long)>("PyTuple_GetItem");
  static auto* equals = python<int (*)(void*, const char*)>("PyUnicode_CompareWithASCIIString");
  if (!first_of || !equals) return 0;
  void* module_name = first_of(arguments, 0);
  if (!module_name || equals(module_name, "torch") != 0) return 0;
  program_set = false;
  run_program();
  return 0;
}

/// Whether the Python of this command line looks at PYTHONPATH and runs sitecustomize.
bool arguments_allow_site(int count, char** arguments) {
  for (int i = 1; i < count; ++i) {
    const char* word = arguments[i];
    if (word[0] != '-' || word[1] == '\0') return true;  // the script, or standard input
    if (strcmp(word, "--check-hash-based-pycs") == 0) {
      ++i;
      continue;
    }
    if (word[1] == '-') continue;
    for (const char* letter = word + 1; *letter; ++letter) {
      if (*letter == 'I' || *letter == 'E' || *letter == 'S') return false;
      if (*letter == 'c' || *letter == 'm') return true;  // what follows belongs to the program
      if (*letter == 'W' || *letter == 'X') {
        if (letter[1] == '\0') ++i;
        break;
      }
    }
  }
  return true;
}

bool is_python_command(const char* program_path) {
  const char* slash = strrchr(program_path, '/');
  return strncmp(slash ? slash + 1 : program_path, "python", 6) == 0;
}

bool python_path_has(const char* folder) {
  const char* path = getenv("PYTHONPATH");
  return path && strstr(path, folder) != nullptr;
}

}  // namespace

void attach_to_isolated_python(int argument_count, char** arguments, const char* library_folder) {
  auto* add_hook = python<AddAuditHook>("PySys_AddAuditHook");
  if (!add_hook || argument_count < 1) return;
  char bootstrap[path_size + 32];
  snprintf(bootstrap, sizeof bootstrap, "%s/python/bootstrap", library_folder);
  if (is_python_command(arguments[0]) && python_path_has(bootstrap) &&
      arguments_allow_site(argument_count, arguments)) {
    return;
  }
  if (strpbrk(library_folder, "'\\\n")) return;  // would need quoting in the program text
  snprintf(program, sizeof program,
           "import sys\n"
           "sys.path.insert(0, '%s/python')\n"
           "try:\n"
           "    import ampscope\n"
           "finally:\n"
           "    sys.path.remove('%s/python')\n",
           library_folder, library_folder);
  program_set = true;
  add_hook(on_event, nullptr);
}

}  // namespace ampscope::attach
