// The layers that Gemma 4 models share with their assistants, which are draft models that read the model's KV cache.
// Thread rule: as Builder.
#pragma once

#include "arch/blocks.h"

namespace zinc_rt::arch {

class Gemma4Layers {
 public:
  // The divisors of the frequencies of global layers' RoPE.
  static constexpr std::string_view kDivisors = "rope_freqs.weight";

  // hidden: the residual stream, to which layers add. window: how many positions a sliding layer looks at.
  // REQUIRES: the config says which layers are sliding.
  Gemma4Layers(Builder& b, BufferId hidden, std::uint32_t window);

  // Adds the attention of the current layer. The last n_shared_kv_layers layers write no K and V, and read the cache of
  // the last earlier layer of their kind, or the one that use_cache() gave.
  void attention(std::uint32_t layer);
  void feed_forward(std::uint32_t layer);
  void scale();
  void use_cache(bool is_sliding, const Builder::KvCache& cache) { caches_[is_sliding] = cache; }

  // The tables of global and of sliding layers. Row p has the angles of position p + first_position.
  static std::vector<RopeTable> rope_tables(const ModelConfig& config, const Weights& weights,
                                            std::uint32_t first_position);

 private:
  float eps() const { return static_cast<float>(c_.norm_eps); }

  Builder& b_;
  const ModelConfig& c_;
  const BufferId hidden_;
  const std::uint32_t window_;
  Rope global_rope_{}, sliding_rope_{};
  Builder::KvCache caches_[2];  // of the last layer so far that writes K and V: [0] global, [1] sliding
};

}  // namespace zinc_rt::arch
