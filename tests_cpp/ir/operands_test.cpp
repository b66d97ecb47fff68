// Operands by name are those of the op rules, and nodes are read and made by them.
#include "ir/operands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ir/op_rules.h"

namespace zinc_rt::ir {
namespace {

// The names of an op's operands as the rule has them: "x w bias y".
std::string names_of(Op op) {
  std::string names;
  for (const auto* list : {&rule(op).inputs, &rule(op).outputs})
    for (const auto& operand : *list) names += (names.empty() ? "" : ", ") + operand.name;
  return names;
}

TEST(Operands, AreThoseOfTheRules) {
  std::size_t n_ops = 0;
#define ZRT_CHECK_OPERANDS(opcode, Name, ...)                                                                    \
  EXPECT_EQ(#__VA_ARGS__, names_of(Op::opcode)) << #opcode;                                                      \
  EXPECT_EQ(operand::Name::kCount, rule(Op::opcode).inputs.size() + rule(Op::opcode).outputs.size()) << #opcode; \
  EXPECT_EQ(kOpOf<operand::Name>, Op::opcode);                                                                   \
  ++n_ops;
  ZRT_OPERANDS(ZRT_CHECK_OPERANDS)
#undef ZRT_CHECK_OPERANDS
  EXPECT_EQ(n_ops, kOpCount - 1);  // BARRIER has none
  EXPECT_TRUE(rule(Op::BARRIER).inputs.empty() && rule(Op::BARRIER).outputs.empty());
}

TEST(Operands, PlacesAreTheOrderOfTheRule) {
  EXPECT_EQ(rule(Op::FLASH_ATTN).inputs[operand::FlashAttn::page_table].name, "page_table");
  EXPECT_EQ(rule(Op::RMS_NORM_FUSED_QKV).inputs[operand::RmsNormFusedQkv::v_b].name, "v_b");
  const std::size_t n_inputs = rule(Op::RMS_NORM_FUSED_QKV).inputs.size();
  EXPECT_EQ(rule(Op::RMS_NORM_FUSED_QKV).outputs[operand::RmsNormFusedQkv::v - n_inputs].name, "v");
}

TEST(Operands, NodesAreReadAndMadeByName) {
  Node node;
  const auto& row = rule(Op::RESIDUAL_RMS_NORM);
  set_operands<operand::ResidualRmsNorm>(node, row.inputs.size(), {.residual = 3, .x = 5, .w = 7, .y = 9, .sum = 3});
  EXPECT_EQ(node.op, Op::RESIDUAL_RMS_NORM);
  EXPECT_THAT(node.ins(), testing::ElementsAre(3, 5, 7));
  EXPECT_THAT(node.outs(), testing::ElementsAre(9, 3));
  const auto norm = operands_of<operand::ResidualRmsNorm>(node);
  EXPECT_EQ(norm.residual, 3);
  EXPECT_EQ(norm.x, 5);
  EXPECT_EQ(norm.w, 7);
  EXPECT_EQ(norm.y, 9);
  EXPECT_EQ(norm.sum, 3);
}

}  // namespace
}  // namespace zinc_rt::ir
