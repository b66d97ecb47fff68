// Picks a token from a row of logits on the host, as the op SAMPLE is defined (kernels/cpu/sample.cpp). It is written
// independently of that kernel, so that tests can compare the two.
// Thread rule: one thread at a time. A call allocates memory only if its row is larger than all rows before.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "executor/step.h"

namespace zinc_rt::vulkan {

// Returns true if the pick is simply the largest logit. Then argmax.comp finds it, and the row's other settings do not
// matter.
bool takes_largest(const OutputRow& row);

class Sampler {
 public:
  // Picks a token. `mask` is what StepInput::mask returned. Returns kNoToken if the largest candidate is not a finite
  // number.
  std::int32_t pick(const OutputRow& row, std::span<const std::uint32_t> mask, std::span<const float> logits);

 private:
  struct Candidate {
    float value;  // first the logit, later the probability
    std::uint32_t id;
  };
  void penalize(const OutputRow& row);
  std::int32_t draw(const OutputRow& row);
  void keep_typical(float typical_p);
  float total() const;

  std::vector<float> logits_, distances_;
  std::vector<std::uint32_t> counts_, order_;
  std::vector<Candidate> candidates_;
};

}  // namespace zinc_rt::vulkan
