// Through a file and back.
#pragma once

#include <span>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "tests/trace/files.h"
#include "tests/trace/records.h"

namespace ampscope::trace::test {

/// Writes with `add`, reads back.
template <class Add>
Trace through_file(const Add& add) {
  const Folder folder;
  const std::string path = folder.path("run.ampscope");
  Writer writer;
  EXPECT_TRUE(writer.open(path, Writer::Existing::refuse)) << writer.error();
  add(writer);
  EXPECT_TRUE(writer.close()) << writer.error();
  auto result = read_trace(path);
  if (const auto* error = std::get_if<ReadError>(&result)) {
    ADD_FAILURE() << error->message;
    return {};
  }
  Trace trace = std::get<Trace>(std::move(result));
  EXPECT_EQ(trace.path, path);
  EXPECT_EQ(trace.major, format_major);
  EXPECT_EQ(trace.minor, format_minor);
  EXPECT_EQ(trace.damage.reason, "");
  EXPECT_FALSE(trace.damage.any());
  EXPECT_EQ(trace.damage.bytes_read, trace.damage.bytes_total);
  EXPECT_EQ(trace.damage.records_skipped, 0U);
  EXPECT_EQ(trace.damage.records_damaged, 0U);
  return trace;
}

template <class T>
std::span<const T> rows(const std::vector<T>& records) {
  return records;
}

#define EXPECT_SAME(a, b) EXPECT_EQ(difference(a, b), "")

}  // namespace ampscope::trace::test
