// Builds a Trace from the contents of its frames.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "trace/decode.h"
#include "trace/limits.h"
#include "trace/trace.h"

namespace ampscope::trace {

class TraceBuilder {
 public:
  TraceBuilder(Trace& trace, Budget& memory, const ReadLimits& limits) noexcept
      : trace_(trace), memory_(memory), limits_(limits) {}

  /// Takes the records of one frame.
  void add_frame(std::string_view content);

  /// Puts the trace in the order and the shape that trace/trace.h promises.
  void finish();

 private:
  using Handler = bool (TraceBuilder::*)(std::string_view fields, DecodeContext& context, std::uint64_t& rows);

  static Handler handler(std::string_view kind) noexcept;
  void add_record(std::string_view record);
  void count(std::string_view kind, std::uint64_t rows, std::size_t bytes);
  void damaged(std::string_view what, std::string_view kind = {});
  void order_step_runs();

  template <auto Member>
  bool replace(std::string_view fields, DecodeContext& context, std::uint64_t& rows);
  template <auto Member>
  bool place(std::string_view fields, DecodeContext& context, std::uint64_t& rows);
  template <auto Member>
  bool append(std::string_view fields, DecodeContext& context, std::uint64_t& rows);
  template <auto Member>
  bool append_rows(std::string_view fields, DecodeContext& context, std::uint64_t& rows);
  bool add_totals(std::string_view fields, DecodeContext& context, std::uint64_t& rows);
  bool add_scaler_updates(std::string_view fields, DecodeContext& context, std::uint64_t& rows);
  bool add_hidden_region(std::string_view fields, DecodeContext& context, std::uint64_t& rows);

  Trace& trace_;
  Budget& memory_;
  const ReadLimits& limits_;
};

}  // namespace ampscope::trace
