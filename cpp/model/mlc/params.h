// Maps MLC parameters to GGUF tensors, with the order of rows. The reader and the writer share this table. Thread rule:
// plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/mlc/chat_config.h"

namespace zinc_rt::mlc {

// A GGUF tensor that consists of some rows of a parameter.
struct Piece {
  std::string tensor;
  std::uint64_t n_rows = 0;
  // If not 0: the rows are heads of this many rows, rotated by RoPE. GGUF's llama stores the two values of a rotation
  // side by side; MLC stores all first halves, then all second halves.
  std::uint64_t rope_head = 0;
};

struct Param {
  std::string name;  // without ".weight", ".q_weight", ".q_scale"
  std::uint64_t n_columns = 0;
  std::vector<Piece> pieces;  // the rows of the parameter, from the first on
  bool is_norm = false;       // a vector of n_columns; never quantized
  bool is_end = false;        // embedding or output matrix

  std::uint64_t n_rows() const;
};

// The sets of parameter names. MLC has used more than one set for phi3.
enum class Naming : std::uint8_t { kLlama, kPhi3, kPhi3V };
std::string_view embedding_name(Naming naming);  // of the token embedding; identifies the naming that a folder uses
std::span<const Naming> namings_of(std::string_view architecture);  // first the one that MLC writes today

std::vector<Param> params_of(const ChatConfig& config, Naming naming);

// The row of the MLC parameter that contains row `row` of the GGUF tensor, within one piece.
inline std::uint64_t mlc_row(const Piece& piece, std::uint64_t row) {
  if (piece.rope_head == 0) return row;
  const std::uint64_t in_head = row % piece.rope_head;
  return row - in_head + in_head % 2 * (piece.rope_head / 2) + in_head / 2;
}

}  // namespace zinc_rt::mlc
