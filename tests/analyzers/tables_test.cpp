#include "analyzers/core/tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analyzers/core/engine.h"
#include "tests/analyzers/fixture.h"

namespace ampscope::analyzers {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;

class TablesTest : public ::testing::Test {
 protected:
  TablesTest() {
    trace_ = testing::trace_from_json(json::parse(R"({
      "optimizers": ["AdamW", "SGD"], "scalers": ["torch.amp.GradScaler"],
      "parameters": ["fc.weight float32[8,4] optimizer=0", "fc.bias float32[8] optimizer=0"],
      "sites": [
        {"id": "fc", "op": "aten::linear", "at": "train.py:7", "module": "fc", "class": "Linear", "autocast": "float16", "absmax": 1023.5,
         "in": ["float32[2,4]", "float32[8,4] parameter=fc.weight"], "out": ["float16[2,8] grad"], "calls": 9, "bytes": 288, "time_ns": 5000},
        {"id": "node", "kind": "backward_node", "op": "AddmmBackward0", "phase": "backward", "forward": "fc"},
        {"id": "mm", "op": "aten::mm", "phase": "backward", "parent": "node", "in": ["float16[8,2]"], "out": ["float16[8,4]"]}],
      "steps": [{"times": 2, "do": ["backward scaled optimizers=0", "optimizer_skip object=0", "scaler_update found_inf"]},
                {"times": 30, "do": ["backward scaled optimizers=0", "optimizer_step object=0 through_scaler", "scaler_update"]}],
      "nonfinite": [{"step": 0, "site": "mm", "kind": "producer", "in": [{"type": "float16[8,2]", "count": 16}], "out": [{"type": "float16[8,4]", "+inf": 3, "nan": 1, "count": 32}]}],
      "nonfinite_gradients": [{"step": 0, "parameter": "fc.weight", "infinite": 3}, {"step": 0, "parameter": "fc.bias", "infinite": 8}],
      "gradients": [{"parameter": "fc.weight", "steps": [2, 2], "scale": 16384, "values": {"exponents": {"-30": 4, "-3": 20}, "zero": 8}},
                    {"parameter": "fc.weight", "steps": [3, 31], "scale": 16384, "values": {"exponents": {"-2": 32}}}],
      "series": [{"name": "loss", "steps": [0, 0], "mean": 2.5}, {"name": "loss", "steps": [1, 31], "mean": 1.5}],
      "hidden": [{"kind": "torch.compile", "name": "r", "time_ns": 250000000}],
      "status": {"elapsed_ns": 1000000000, "events_dropped": 3}
    })"));
    trace_.status.own_time_ns = 200'000'000;
    trace_.exit = trace::ExitStatus{137};
    report_ = analyze({trace_});
  }
  trace::Trace trace_;
  Report report_;
};

TEST_F(TablesTest, Run) {
  EXPECT_EQ(report_.run.steps, 32);
  EXPECT_THAT(report_.run.skipped_steps, ElementsAre(0, 1));
  EXPECT_EQ(report_.run.precision, "fp16 autocast");
  EXPECT_EQ(report_.run.device, "cpu");
  EXPECT_DOUBLE_EQ(report_.run.overhead_ratio.value(), 1.25);
  EXPECT_EQ(report_.run.events_dropped, 3);
  EXPECT_EQ(report_.run.exit_status, 137);
  EXPECT_EQ(report_.run.ended, "exit");
  EXPECT_EQ(report_.run.ops, 2);
  EXPECT_EQ(report_.run.parameters, 2);
}

TEST_F(TablesTest, Budget) {
  EXPECT_FALSE(report_.run.budget.has_value());
  trace_.run.budget_percent = 2;
  trace_.status.operator_steps = 5;
  EXPECT_FALSE(analyze({trace_}).run.budget.value().cost_percent.has_value()) << "too few steps were compared";
  trace_.status.cost = 0.015;
  trace_.status.cost_low = 0.01;
  trace_.status.cost_high = 0.02;
  const BudgetSummary budget = analyze({trace_}).run.budget.value();
  EXPECT_EQ(budget.percent, 2);
  EXPECT_EQ(budget.operator_steps, 5);
  EXPECT_DOUBLE_EQ(budget.cost_percent.value(), 1.5);
  EXPECT_DOUBLE_EQ(budget.cost_interval.first, 1);
  EXPECT_DOUBLE_EQ(budget.cost_interval.second, 2);
}

TEST_F(TablesTest, Ops) {
  ASSERT_EQ(report_.ops.size(), 2U);  // Autograd nodes are no operators.
  const OpRow& row = report_.ops[0];
  EXPECT_EQ(row.op, "aten::linear");
  EXPECT_EQ(row.source, "train.py:7");
  EXPECT_EQ(row.module, "fc");
  EXPECT_EQ(row.dtype_before, "fp32");
  EXPECT_EQ(row.dtype_after, "fp16");
  EXPECT_EQ(row.dtype_out, "fp16");
  EXPECT_EQ(row.calls, 9);
  EXPECT_EQ(row.bytes, 288);
  EXPECT_NEAR(row.headroom.value(), 6, 1e-3);  // 65504 / 1023.5 is 2^6.
  EXPECT_EQ(row.first_nonfinite_step, std::nullopt);
  EXPECT_EQ(report_.ops[1].module, "fc");  // A backward operator belongs to its forward one's module.
  EXPECT_EQ(report_.ops[1].first_nonfinite_step, 0);
}

TEST_F(TablesTest, Parameters) {
  ASSERT_EQ(report_.parameters.size(), 2U);
  const ParameterRow& row = report_.parameters[0];
  EXPECT_EQ(row.name, "fc.weight");
  EXPECT_EQ(row.optimizer, "AdamW");
  ASSERT_EQ(row.gradients.size(), 2U);
  EXPECT_DOUBLE_EQ(row.gradients[0].scale_log2, 14);
  EXPECT_DOUBLE_EQ(row.gradient_zero_share, 8.0 / 64);
  EXPECT_DOUBLE_EQ(row.gradient_subnormal_share, 4.0 / 64);  // Below 2^(-14-14).
}

TEST_F(TablesTest, ScalerTimeline) {
  ASSERT_EQ(report_.scalers.size(), 1U);
  const ScalerReport& scaler = report_.scalers[0];
  EXPECT_EQ(scaler.settings.init_scale, 65536);
  EXPECT_EQ(scaler.settings.growth_interval, 2000);
  ASSERT_EQ(scaler.timeline.size(), 3U);
  EXPECT_TRUE(scaler.timeline[0].skipped && scaler.timeline[0].by_design);
  EXPECT_THAT(scaler.timeline[0].parameters, ElementsAre("fc.bias", "fc.weight"));  // Larger share first.
  EXPECT_EQ(scaler.timeline[2].first_step, 2);
  EXPECT_EQ(scaler.timeline[2].last_step, 31);
  EXPECT_EQ(scaler.timeline[2].scale, 16384);
}

TEST_F(TablesTest, TheRest) {
  ASSERT_EQ(report_.nonfinite.size(), 1U);
  EXPECT_EQ(report_.nonfinite[0].kind, "producer");
  EXPECT_EQ(report_.nonfinite[0].nan, 1);
  EXPECT_EQ(report_.nonfinite[0].infinite, 3);
  EXPECT_EQ(report_.nonfinite[0].elements, 32);
  ASSERT_EQ(report_.series.size(), 1U);
  EXPECT_EQ(report_.series[0].points.size(), 2U);
  ASSERT_EQ(report_.hidden.size(), 1U);
  EXPECT_DOUBLE_EQ(report_.hidden[0].time_share, 0.25);
}

}  // namespace
}  // namespace ampscope::analyzers
