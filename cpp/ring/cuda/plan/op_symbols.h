// The symbols of each op that a kernel of the tier bakes (docs/abi.md), in the order of OpCall::symbols:
// call.symbols[op_symbols::kLinear["dim:k"]].
// Thread rule: constants.
#pragma once

#include "base/name_list.h"

namespace zinc_rt::ring::op_symbols {

inline constexpr NameList kEmbed{"dim:v", "dim:d", "dtype:table"};
inline constexpr NameList kNorm{"dim:d"};
inline constexpr NameList kRmsNormFusedQkv{"dim:d",     "dim:nq",    "dim:nk",   "dim:nv",
                                           "dtype:q_w", "dtype:k_w", "dtype:v_w"};
inline constexpr NameList kRmsNormFusedMlpGateUp{"dim:d", "dim:f", "dtype:gate_w", "dtype:up_w"};
inline constexpr NameList kRope{"dim:d", "dim:p"};
inline constexpr NameList kRmsNormFusedRopeKvWrite{"dim:nq", "dim:nk",     "dim:nv",     "dim:m",
                                                   "dim:p",  "dtype:kv_k", "pitch:kv_k", "pitch:kv_v"};
inline constexpr NameList kFlashAttn{"dim:m", "dtype:kv_k", "pitch:kv_k", "pitch:kv_v"};
inline constexpr NameList kMoeGateTopk{"dim:d", "dim:e", "dtype:gate_w", "dtype:x"};
inline constexpr NameList kMoeGateUp{"dim:d",      "dim:e",   "dim:f",        "dim:k",     "dtype:gate_w",
                                     "dtype:up_w", "dtype:x", "pitch:gate_w", "pitch:up_w"};
inline constexpr NameList kMoeDownAcc{"dim:f", "dim:e", "dim:d", "dim:k", "dtype:down_w", "dtype:x", "pitch:down_w"};
inline constexpr NameList kSharedExpert{"dim:d", "dim:f", "dtype:gate_w", "dtype:up_w", "dtype:down_w"};
inline constexpr NameList kSsmConv1d{"dim:c", "dim:n"};
inline constexpr NameList kSsmDeltaNet{"dim:n"};
inline constexpr NameList kLinear{"dim:k", "dim:m", "dtype:w", "dtype:x"};
inline constexpr NameList kLmHead{"dim:d", "dim:v", "dtype:w", "dtype:x"};
inline constexpr NameList kSample{"dim:v"};
inline constexpr NameList kKvWriteBatched{"dim:nk", "dim:nv", "dim:m", "dtype:kv_k", "pitch:kv_k", "pitch:kv_v"};
inline constexpr NameList kMatmulWmmaQ4K{"dim:k", "dim:m"};
inline constexpr NameList kStreamOut{"dim:n", "dim:entries"};
inline constexpr NameList kRequestState{"dim:s", "dim:fields"};
inline constexpr NameList kVerifyK{"dim:k", "dim:v"};
inline constexpr NameList kQuantize{"dim:k", "dtype:y"};
inline constexpr NameList kAdd{"dim:d"};
inline constexpr NameList kGlu{"dim:f"};
inline constexpr NameList kGatherRows{"dim:d", "dim:n"};
inline constexpr NameList kMoeLinear{"dim:d", "dim:e", "dim:f", "dim:k", "dtype:w", "dtype:x", "pitch:w"};
inline constexpr NameList kMoeSum{"dim:d", "dim:k", "dim:e"};
inline constexpr NameList kCopyRows{"dim:w"};
inline constexpr NameList kPoolMean{"dim:d", "dim:n"};

// LINEAR and LM_HEAD have the same: columns and rows of the matrix, and types.
static_assert(kLinear["dim:k"] == kLmHead["dim:d"] && kLinear["dim:m"] == kLmHead["dim:v"] &&
              kLinear["dtype:w"] == kLmHead["dtype:w"] && kLinear["dtype:x"] == kLmHead["dtype:x"]);

}  // namespace zinc_rt::ring::op_symbols
