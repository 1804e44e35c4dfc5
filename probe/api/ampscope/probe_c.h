/* The C interface of the probe: what the Python bootstrap and the preload stub call, and what any other language can.
 *
 * Every function may be called from any thread, never throws and never blocks on anything user code can hold. Strings
 * are UTF-8, NUL-terminated and copied. Functions that return int give 0 on success and -1 on failure; the sentence for
 * it is in ampscope_last_error(). */
#ifndef AMPSCOPE_PROBE_C_H
#define AMPSCOPE_PROBE_C_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define AMPSCOPE_API __attribute__((visibility("default")))

/* Version of this interface; a caller built against another one must not go on. */
#define AMPSCOPE_ABI_VERSION 1
AMPSCOPE_API int ampscope_abi_version(void);
/* "2.13": the torch minor version that this adapter was built for. */
AMPSCOPE_API const char* ampscope_torch_version(void);
AMPSCOPE_API const char* ampscope_last_error(void);

/* Starts observing this process. Options come from the environment (AMPSCOPE_*, see docs/architecture.md). A second
 * call does nothing. The trace file is made when the first backward pass runs, so a process that does not train writes
 * none. */
AMPSCOPE_API int ampscope_attach(void);
/* Stops observing and completes the trace. `how` is one of "exit", "exception", "_exit", "detach"; detail may be NULL.
 */
AMPSCOPE_API void ampscope_detach(const char* how, const char* detail);
/* 1 while observing. */
AMPSCOPE_API int ampscope_is_attached(void);
/* Ends the current step here, for programs whose steps cannot be told from optimizer calls. From the first call on,
 * steps end only here. */
AMPSCOPE_API void ampscope_mark_step(void);
/* Path of the trace, "" while none was made. */
AMPSCOPE_API const char* ampscope_trace_path(void);

/* Notes about the training protocol that no operator shows. Objects are told apart by `object` (any stable address). */
AMPSCOPE_API void ampscope_note_optimizer_step(uintptr_t object, const char* class_name, double learning_rate,
                                               int through_scaler, int begin);
AMPSCOPE_API void ampscope_note_schedule_step(uintptr_t object, const char* class_name, uintptr_t optimizer,
                                              int from_constructor);
/* `as_factor`: 1: the program multiplies or divides by what it read, then or later; 2: only in the next iteration. */
AMPSCOPE_API void ampscope_note_scale_read(uintptr_t scaler, int as_factor);
/* Around calls of a scaler that unscale gradients or update the scale: with a budget, operators may be unwatched
 * outside. */
AMPSCOPE_API void ampscope_note_scaler_region(int begin);
AMPSCOPE_API void ampscope_note_optimizer_made(void);
/* How often Python was asked for anything since this process began, for tests. */
AMPSCOPE_API int64_t ampscope_python_calls(void);
/* What one note costs before it comes here, in nanoseconds: measured by who makes them, counted by the budget. */
AMPSCOPE_API void ampscope_note_cost(double nanoseconds);
/* A scaler was made; an earlier one of the same address is gone. */
AMPSCOPE_API void ampscope_note_scaler_made(uintptr_t scaler);
/* The state of an earlier scaler or optimizer was loaded into this one. */
AMPSCOPE_API void ampscope_note_scaler_restored(uintptr_t scaler);
AMPSCOPE_API void ampscope_note_optimizer_restored(uintptr_t optimizer);
/* A call of the scaler ended in an exception: `reason` is one of the flags of refusals in trace/model.h. The optimizer
 * is 0 where the call is of none. */
AMPSCOPE_API void ampscope_note_scaler_refusal(uintptr_t optimizer, const char* class_name, uint32_t reason);
/* An autocast object was made at this line, not disabled; device "cpu", "cuda"; dtype "float16", "bfloat16". Returns a
 * number for ampscope_note_autocast_use, or -1. */
AMPSCOPE_API int64_t ampscope_note_autocast(const char* file, int line, const char* function, const char* device,
                                            const char* dtype);
/* The calling thread has entered an autocast object made there, or left one (-1). */
AMPSCOPE_API void ampscope_note_autocast_use(int64_t made);
/* Tells the dotted name of a parameter, known by the address of its TensorImpl or of its data. */
AMPSCOPE_API void ampscope_note_parameter(uintptr_t tensor, uintptr_t data, const char* name, const char* module,
                                          const char* module_class);

/* The preload stub hands over what it caught of torch::nn::Module (both are C++ objects of the user's libtorch). */
AMPSCOPE_API void ampscope_cxx_module_parameters(void* module);
AMPSCOPE_API void ampscope_cxx_register_parameter(void* module, const char* name, void* tensor_impl);

#ifdef __cplusplus
}
#endif
#endif
