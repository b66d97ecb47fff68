// Which MLC parameter is which GGUF tensor, and the order of its rows. Reading and writing share this table. Thread
// rule: plain values.
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
  std::vector<Piece> pieces;  // from the top
  bool is_norm = false;       // a vector of n_columns; never quantized
  bool is_end = false;        // embedding or output matrix

  std::uint64_t n_rows() const;
};

// The names of a family's parameters. For phi3 MLC has used more than one set of names.
enum class Naming : std::uint8_t { kLlama, kPhi3, kPhi3V };
std::string_view embedding_name(Naming naming);  // of the token embedding: tells which naming a folder has
std::span<const Naming> namings_of(std::string_view architecture);  // the one that MLC writes today first

std::vector<Param> params_of(const ChatConfig& config, Naming naming);

// The row of the MLC parameter that contains row `row` of the GGUF tensor, within one piece.
inline std::uint64_t mlc_row(const Piece& piece, std::uint64_t row) {
  if (piece.rope_head == 0) return row;
  const std::uint64_t in_head = row % piece.rope_head;
  return row - in_head + in_head % 2 * (piece.rope_head / 2) + in_head / 2;
}

}  // namespace zinc_rt::mlc
