// How single values are written in fixtures.
#pragma once

#include <algorithm>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "trace/model.h"

namespace ampscope::analyzers::testing {

[[noreturn]] inline void fail(const std::string& message) {
  throw std::runtime_error(message);
}

/// "key=value flag …" split at spaces.
struct Words {
  std::vector<std::string> plain;
  std::map<std::string, std::string> named;

  explicit Words(const std::string& text) {
    std::istringstream stream(text);
    for (std::string word; stream >> word;) {
      const auto equals = word.find('=');
      if (equals == std::string::npos) {
        plain.push_back(word);
      } else {
        named[word.substr(0, equals)] = word.substr(equals + 1);
      }
    }
  }
  [[nodiscard]] bool has(const std::string& word) const {
    return std::find(plain.begin(), plain.end(), word) != plain.end();
  }
  [[nodiscard]] std::string get(const std::string& name) const {
    const auto found = named.find(name);
    return found != named.end() ? found->second : std::string();
  }
};

inline trace::DType dtype_of(const std::string& name) {
  const trace::DType dtype = trace::dtype_from_name(name.c_str());
  if (dtype == trace::DType::unknown && name != "unknown") fail("unknown dtype '" + name + "'");
  return dtype;
}

/// "train.py:48", in the run's directory.
inline trace::SourceLine source_of(const std::string& text) {
  const auto colon = text.rfind(':');
  if (colon == std::string::npos) fail("'" + text + "' is not file:line");
  trace::SourceLine source;
  source.file = "/project/run/" + text.substr(0, colon);
  source.line = std::stoi(text.substr(colon + 1));
  return source;
}

inline bool looks_like_source(const std::string& word) {
  return word.find(".py:") != std::string::npos || word.find(".cpp:") != std::string::npos;
}

template <typename Value>
Value get(const nlohmann::json& object, const char* key, Value fallback) {
  const auto found = object.find(key);
  return found != object.end() ? found->get<Value>() : fallback;
}

inline double number_of(const nlohmann::json& value) {
  if (value.is_number()) return value.get<double>();
  const auto text = value.get<std::string>();
  if (text == "inf") return std::numeric_limits<double>::infinity();
  if (text == "-inf") return -std::numeric_limits<double>::infinity();
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  fail("'" + text + "' is not a number");
}

}  // namespace ampscope::analyzers::testing
