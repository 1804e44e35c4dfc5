// The data of the samples, see samples/data/README.md.
#pragma once

#include <string>

#include <ATen/core/Tensor.h>

namespace ampscope::samples {

/// Handwritten digits: images of 64 grey values from 0 to 1 in float32, and the digit that each shows in int64.
struct Digits {
  at::Tensor images;
  at::Tensor labels;
  at::Tensor test_images;
  at::Tensor test_labels;
};
Digits read_digits();

/// A book as numbers of characters, int64.
struct Book {
  std::string characters;  ///< those of the book in ascending order; a number is a place here
  at::Tensor tokens;
  at::Tensor test_tokens;
};
Book read_book();

}  // namespace ampscope::samples
