// What vector ALU instructions make of one lane, by name.
#pragma once

#include "amd_sim/machine.h"

namespace amd_sim {

struct ValuOp {
  // Of the result and the sources, as in source(); o: a bit of a mask.
  const char* types;
  // d: the destination before.
  std::uint64_t (*fn)(std::uint64_t a, std::uint64_t b, std::uint64_t c, std::uint64_t d);
  Class cls = kValu;
  bool approximate = false;
  bool saturates = false;  // an integer op that is to clamp its result; its row is named so
};
const ValuOp* find_valu_op(const std::string& name);  // null: not of this kind

// v_div_scale; post: whether the quotient is to be scaled back.
float div_scale32(float a, float b, float c, bool& post);
double div_scale64(double a, double b, double c, bool& post);

}  // namespace amd_sim
