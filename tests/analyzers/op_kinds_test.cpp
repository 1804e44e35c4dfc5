#include "analyzers/core/op_kinds.h"

#include <gtest/gtest.h>

namespace ampscope::analyzers {
namespace {

TEST(OpKinds, LooksThroughNamespacesInPlaceMarksAndUnderscores) {
  EXPECT_EQ(base_name("aten::addmm_"), "addmm");
  EXPECT_EQ(base_name("aten::_softmax"), "softmax");
  EXPECT_EQ(base_name("mm"), "mm");
  EXPECT_EQ(base_name(""), "");
}

TEST(OpKinds, KnowsOperatorsAndTheirDerivatives) {
  EXPECT_EQ(op_kind("aten::addmm"), OpKind::matmul);
  EXPECT_EQ(op_kind("aten::convolution_backward"), OpKind::matmul);
  EXPECT_EQ(op_kind("aten::_scaled_dot_product_flash_attention_for_cpu"), OpKind::matmul);
  EXPECT_EQ(op_kind("aten::_foreach_norm"), OpKind::reduction);
  EXPECT_EQ(op_kind("aten::cumsum"), OpKind::reduction);
  EXPECT_EQ(op_kind("aten::nll_loss_backward"), OpKind::loss);
  EXPECT_EQ(op_kind("aten::_log_softmax"), OpKind::softmax);
  EXPECT_EQ(op_kind("aten::native_layer_norm"), OpKind::normalise);
  EXPECT_EQ(op_kind("aten::mul_"), OpKind::elementwise);
  EXPECT_EQ(op_kind("aten::_to_copy"), OpKind::cast);
  EXPECT_EQ(op_kind("aten::masked_fill_"), OpKind::create);
  EXPECT_EQ(op_kind("aten::view"), OpKind::move);
  EXPECT_EQ(op_kind("aten::_amp_update_scale_"), OpKind::scaler);
  EXPECT_EQ(op_kind("aten::_fused_adamw_"), OpKind::optimizer);
  EXPECT_EQ(op_kind("mylib::anything"), OpKind::other);
}

TEST(OpKinds, TellsConstantsAndNorms) {
  EXPECT_TRUE(writes_constant("aten::full"));
  EXPECT_TRUE(writes_constant("aten::where"));
  EXPECT_FALSE(writes_constant("aten::exp"));
  EXPECT_TRUE(is_norm("aten::linalg_vector_norm"));
  EXPECT_TRUE(is_norm("aten::_foreach_norm"));
  EXPECT_FALSE(is_norm("aten::layer_norm"));
}

}  // namespace
}  // namespace ampscope::analyzers
