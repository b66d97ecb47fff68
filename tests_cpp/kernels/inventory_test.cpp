// The opcode enum, the files of kernels/cpu, the rows of docs/ir.md and the push constants are one list.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "ir/op_rules.h"
#include "kernels/common/push.h"
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/quant/quant.h"
#include "ring/cpu/cpu_table.h"

namespace zinc_rt {
namespace {

using ir::Op;

std::string lower_case(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}
std::vector<Op> all_ops() {
  std::vector<Op> ops;
  for (std::size_t i = 0; i < ir::kOpCount; ++i) ops.push_back(static_cast<Op>(i));
  return ops;
}
std::set<std::string> kernel_ops() {
  std::set<std::string> names;
  for (const Op op : all_ops())
    if (!ir::is_host_only(op)) names.insert(lower_case(std::string(to_string(op))));
  return names;
}

TEST(Inventory, KernelFilesAreTheOpcodes) {
  std::set<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(ZRT_SOURCE_DIR "/kernels/cpu"))
    if (entry.path().extension() == ".cpp") files.insert(entry.path().stem().string());
  EXPECT_EQ(files, kernel_ops());
  std::set<std::string> compiled;
  for (const auto* kernel : cpu::cpu_kernels()) compiled.insert(lower_case(kernel->op));
  EXPECT_EQ(compiled, kernel_ops());
}

// Both are carried out by flash_attn.cpp, which reads symbols by their places in its own list.
TEST(Inventory, AttentionOfOneTokenAndOfManyHasTheSameSymbols) {
  std::vector<std::vector<std::string>> lists;
  for (const auto* kernel : cpu::cpu_kernels())
    if (std::string_view(kernel->op).starts_with("FLASH_ATTN"))
      lists.emplace_back(kernel->symbols.begin(), kernel->symbols.end());
  ASSERT_EQ(lists.size(), 2u);
  EXPECT_EQ(lists[0], lists[1]);
}

TEST(Inventory, HostOnlyOpsAreNamed) {
  for (const Op op : all_ops()) EXPECT_EQ(ir::is_host_only(op), op == Op::BARRIER);
}

// Whether a word stands in a text by itself: ADD does not stand in RMS_NORM_ADD.
bool has_word(std::string_view text, std::string_view word) {
  const auto is_part = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  for (auto at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const auto end = at + word.size();
    if ((at == 0 || !is_part(text[at - 1])) && (end == text.size() || !is_part(text[end]))) return true;
  }
  return false;
}

// What nothing emits is marked as coming in docs/ir.md, and nothing else is.
TEST(Inventory, OpsThatNothingEmitsAreMarkedAsComing) {
  std::string emitters;
  for (const char* folder : {"arch", "lower", "executor"})
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(ZRT_SOURCE_DIR "/cpp/" + std::string(folder)))
      if (entry.is_regular_file()) {
        std::ifstream source(entry.path());
        emitters.append(std::istreambuf_iterator<char>(source), {});
      }
  std::ifstream file(ZRT_SOURCE_DIR "/docs/ir.md");
  std::set<std::string> coming;
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("| `") && line.find("**coming**") != std::string::npos)
      coming.insert(line.substr(3, line.find('`', 3) - 3));
  std::set<std::string> unused;
  for (const Op op : all_ops())
    if (!has_word(emitters, to_string(op))) unused.insert(std::string(to_string(op)));
  EXPECT_EQ(unused, coming);
}

// "a  b\|c" -> "a b|c"
std::string normal(std::string_view text) {
  std::string out;
  for (const char c : text)
    if (c != '\\' && c != '`' && (c != ' ' || (!out.empty() && out.back() != ' '))) out += c;
  while (out.ends_with(' ')) out.pop_back();
  return out;
}

TEST(Inventory, DocsHaveARowAnOpcodeWithItsRule) {
  std::ifstream file(ZRT_SOURCE_DIR "/docs/ir.md");
  ASSERT_TRUE(file);
  std::map<std::string, std::vector<std::string>> rows;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("| `")) continue;
    std::vector<std::string> cells{""};
    for (std::size_t i = 1; i < line.size(); ++i) {
      if (line[i] == '|' && line[i - 1] != '\\')
        cells.emplace_back();
      else
        cells.back() += line[i];
    }
    const auto op = normal(cells[0]);
    EXPECT_FALSE(rows.contains(op)) << op << " twice";
    for (auto& cell : cells) cell = normal(cell);
    rows[op] = cells;
  }
  EXPECT_EQ(rows.size(), ir::kOpCount);
  for (const Op op : all_ops()) {
    const auto it = rows.find(std::string(to_string(op)));
    ASSERT_NE(it, rows.end()) << to_string(op) << " has no row";
    ASSERT_GE(it->second.size(), 4u);
    EXPECT_EQ(it->second[1], category(op));
    EXPECT_EQ(it->second[2], normal(ir::rule(op).text)) << to_string(op);
    EXPECT_FALSE(it->second[3].empty());
  }
}

TEST(Inventory, PushConstantsAreTheAttributes) {
  const std::map<Op, std::size_t> sizes{{Op::EMBED, sizeof(push::Embed)},
                                        {Op::RMS_NORM, sizeof(push::RmsNorm)},
                                        {Op::RMS_NORM_FUSED_QKV, sizeof(push::RmsNormFusedQkv)},
                                        {Op::RMS_NORM_FUSED_MLP_GATE_UP, sizeof(push::RmsNormFusedMlpGateUp)},
                                        {Op::ROPE, sizeof(push::Rope)},
                                        {Op::RMS_NORM_FUSED_ROPE_KV_WRITE, sizeof(push::RmsNormFusedRopeKvWrite)},
                                        {Op::FLASH_ATTN, sizeof(push::FlashAttn)},
                                        {Op::FLASH_ATTN_BATCHED, sizeof(push::FlashAttn)},
                                        {Op::MOE_GATE_TOPK, sizeof(push::MoeGateTopk)},
                                        {Op::MOE_SWIGLU, sizeof(push::MoeSwiglu)},
                                        {Op::SHARED_EXPERT, sizeof(push::SharedExpert)},
                                        {Op::SSM_CONV1D, sizeof(push::SsmConv1d)},
                                        {Op::SSM_DELTA_NET, sizeof(push::SsmDeltaNet)},
                                        {Op::SSM_GATED_NORM, sizeof(push::SsmGatedNorm)},
                                        {Op::SSM_SCAN, sizeof(push::SsmScan)},
                                        {Op::RESIDUAL_RMS_NORM, sizeof(push::ResidualRmsNorm)},
                                        {Op::KV_WRITE_BATCHED, sizeof(push::KvWriteBatched)},
                                        {Op::LOAD_REQUEST_STATE, sizeof(push::RequestState)},
                                        {Op::STORE_REQUEST_STATE, sizeof(push::RequestState)},
                                        {Op::GLU, sizeof(push::Glu)},
                                        {Op::SCALE, sizeof(push::Scale)},
                                        {Op::SOFTCAP, sizeof(push::Softcap)},
                                        {Op::SLICE, sizeof(push::Slice)},
                                        {Op::CONCAT, sizeof(push::Concat)},
                                        {Op::MOE_LINEAR, sizeof(push::MoeLinear)},
                                        {Op::LAYER_NORM, sizeof(push::LayerNorm)}};
  for (const Op op : all_ops()) {
    const auto it = sizes.find(op);
    EXPECT_EQ(it == sizes.end() ? 0 : it->second, 4 * ir::rule(op).attrs.size()) << to_string(op);
    EXPECT_LE(ir::rule(op).attrs.size(), ir::kMaxAttrs);
    EXPECT_LE(ir::rule(op).inputs.size() + ir::rule(op).outputs.size(), ir::kMaxBindings);
  }
}

TEST(Inventory, KernelSymbolsAndGridsResolve) {
  for (const auto* kernel : cpu::cpu_kernels()) {
    const auto& rule = ir::rule(*ir::parse_op(kernel->op));
    std::set<std::string> variables, attrs, operands;
    for (const auto& attr : rule.attrs) attrs.insert(attr.name);
    for (const auto* list : {&rule.inputs, &rule.outputs})
      for (const auto& operand : *list) {
        operands.insert(operand.name);
        for (const auto& dim : operand.dims)
          for (const auto& factor : dim.factors)
            if (!attrs.contains(factor)) variables.insert(factor);
      }
    for (const std::string symbol : kernel->symbols) {
      const auto kind = symbol.substr(0, symbol.find(':')), name = symbol.substr(symbol.find(':') + 1);
      const auto& names = kind == "dim" ? variables : kind == "attr" ? attrs : operands;
      EXPECT_TRUE(kind == "dim" || kind == "attr" || kind == "dtype" || kind == "pitch") << kernel->op << " " << symbol;
      EXPECT_TRUE(names.contains(name)) << kernel->op << " " << symbol;
    }
    for (const auto& axis : kernel->grid) {
      EXPECT_GE(axis.tile, 1u);
      if (axis.variable != nullptr) {
        EXPECT_TRUE(variables.contains(axis.variable) || attrs.contains(axis.variable)) << kernel->op;
      }
    }
  }
}

// Every type that a rule allows for its key operand has a kernel.
TEST(Inventory, EveryKeyTypeHasAKernel) {
  const auto table = ring::make_cpu_table();
  std::size_t wanted = 0;
  for (const Op op : all_ops()) {
    if (ir::is_host_only(op)) continue;
    const auto& rule = ir::rule(op);
    const std::uint64_t set = rule.key_input < 0 ? 1u : rule.inputs[std::size_t(rule.key_input)].dtypes;
    for (unsigned t = 0; t < static_cast<unsigned>(DType::kCount); ++t) {
      const bool allowed = set >> t & 1u;
      wanted += allowed;
      EXPECT_EQ(table.find(op, static_cast<DType>(t)) != nullptr, allowed)
          << to_string(op) << " " << to_string(static_cast<DType>(t));
    }
  }
  EXPECT_EQ(table.size(), wanted);
}

TEST(Inventory, EveryWeightTypeHasAFormat) {
  for (int t = 0; t < static_cast<int>(DType::kCount); ++t) {
    const auto dtype = static_cast<DType>(t);
    EXPECT_EQ(cpu::quant_format(dtype) != nullptr, traits(dtype).is_weight) << to_string(dtype);
    if (traits(dtype).is_weight) {
      EXPECT_EQ(cpu::quant_format(dtype)->act, act_dtype(dtype));
    }
  }
}

}  // namespace
}  // namespace zinc_rt
