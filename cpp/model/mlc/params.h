// Maps the parameters of an MLC folder to GGUF tensors, and the order of their rows. The reader and the writer of MLC
// folders share this table.
// Thread rule: plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/mlc/chat_config.h"

namespace zinc_rt::mlc {

// Names a GGUF tensor that consists of consecutive rows of an MLC parameter. For example, MLC's fused qkv_proj has the
// rows of attn_q, attn_k and attn_v.
struct Piece {
  std::string tensor;
  std::uint64_t n_rows = 0;
  // If not 0, the rows are heads of this many rows that RoPE rotates, and their order differs between the formats.
  // GGUF's llama stores the two values of a rotation side by side. MLC stores all first values, then all second values.
  std::uint64_t rope_head = 0;
};

struct Param {
  std::string name;  // without the suffix ".weight", ".q_weight" or ".q_scale"
  std::uint64_t n_columns = 0;
  // The tensors, or parts of tensors, whose rows make up the rows of the parameter, in order.
  std::vector<Piece> pieces;
  bool is_norm = false;  // a norm is one vector of n_columns and is never quantized
  bool is_end = false;   // the embedding or the output matrix

  std::uint64_t n_rows() const;
};

// Naming lists the sets of parameter names that MLC has used. phi3 has several.
enum class Naming : std::uint8_t { kLlama, kPhi3, kPhi3V };
// Returns the parameter name of the token embedding, by which a folder's naming is recognized.
std::string_view embedding_name(Naming naming);
std::span<const Naming> namings_of(std::string_view architecture);  // the first is the naming that MLC writes today

std::vector<Param> params_of(const ChatConfig& config, Naming naming);

// Returns the row of the MLC parameter that stores row `row` of the GGUF tensor. Both count from the piece's first row.
inline std::uint64_t mlc_row(const Piece& piece, std::uint64_t row) {
  if (piece.rope_head == 0) return row;
  const std::uint64_t in_head = row % piece.rope_head;
  return row - in_head + in_head % 2 * (piece.rope_head / 2) + in_head / 2;
}

}  // namespace zinc_rt::mlc
