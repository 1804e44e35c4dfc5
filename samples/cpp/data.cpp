#include "samples/cpp/data.h"

#include <array>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <stdexcept>
#include <vector>

#include <torch/torch.h>

namespace ampscope::samples {
namespace {

std::string read_file(const std::string& name) {
  const std::string path = std::string(AMPSCOPE_SAMPLE_DATA) + "/" + name;
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("The data of the samples cannot be read: " + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

Digits read_digits() {
  std::istringstream lines(read_file("digits.csv"));
  std::vector<std::int64_t> values;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    for (std::string field; std::getline(fields, field, ',');)
      values.push_back(std::stoll(field));
  }
  const torch::Tensor rows = torch::tensor(values).view({-1, 65});
  const torch::Tensor images = rows.slice(1, 0, 64).to(torch::kFloat) / 16;
  const torch::Tensor labels = rows.select(1, 64).contiguous();
  const torch::Tensor is_test = torch::arange(rows.size(0)).remainder(5) == 4;
  const auto part = [&](const torch::Tensor& which) { return which.nonzero().squeeze(1); };
  return {.images = images.index_select(0, part(~is_test)),
          .labels = labels.index_select(0, part(~is_test)),
          .test_images = images.index_select(0, part(is_test)),
          .test_labels = labels.index_select(0, part(is_test))};
}

Book read_book() {
  const std::string text = read_file("alice.txt");
  const std::set<char> distinct(text.begin(), text.end());
  Book book;
  book.characters.assign(distinct.begin(), distinct.end());
  std::array<std::int64_t, 256> number{};
  for (std::size_t i = 0; i < book.characters.size(); ++i) {
    number.at(static_cast<unsigned char>(book.characters[i])) = static_cast<std::int64_t>(i);
  }
  std::vector<std::int64_t> tokens;
  tokens.reserve(text.size());
  for (const char character : text)
    tokens.push_back(number.at(static_cast<unsigned char>(character)));
  const torch::Tensor all = torch::tensor(tokens);
  const std::int64_t split = all.size(0) * 9 / 10;
  book.tokens = all.slice(0, 0, split);
  book.test_tokens = all.slice(0, split);
  return book;
}

}  // namespace ampscope::samples
