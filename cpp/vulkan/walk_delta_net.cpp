// The walk through a recurrent layer. Such a layer applies a short convolution, then the gated delta rule over a state
// of fixed size.
#include "vulkan/walk.h"

namespace zinc_rt::vulkan {
namespace {

constexpr float kNormEps = 1e-6f;  // added to the squared lengths of q and k, by which they are normalized

}  // namespace

void Forward::Walk::delta_net(std::size_t i) {
  const DeltaShape& s = model.shape.delta;
  const LayerTensors& layer = model.tensors.layers[i];
  const DeltaTensors& t = layer.delta;
  const DeltaState& state = *memory.states[i];
  const ActivationPlaces& a = memory.activations;
  const StepLocations& step = memory.step;
  const std::uint32_t width = s.n_v_heads * s.v_dim;
  // If beta and alpha are grouped by key head, value heads are grouped in the same way.
  const bool is_grouped = t.beta_alpha.weight != nullptr;
  const Source x = norm_stream(layer.attn_norm, {&t.qkv, &t.z, &t.beta, &t.alpha, &t.beta_alpha});
  barrier();
  if (is_grouped)
    products(x, {{t.qkv, a.channels}, {t.z, a.z}, {t.beta_alpha, a.beta_alpha}});
  else
    products(x, {{t.qkv, a.channels}, {t.z, a.z}, {t.beta, a.beta}, {t.alpha, a.alpha}});
  barrier();
  if (is_grouped) {
    const std::uint32_t r = s.n_v_heads / s.n_k_heads;
    slice(a.beta_alpha, a.beta, s.n_k_heads, 2 * r, 0, r);
    slice(a.beta_alpha, a.alpha, s.n_k_heads, 2 * r, r, r);
  }
  dispatch("ssm_conv1d", {}, parts(s.channels(), push::kWidth), Rows::kRuns,
           push::SsmConv1d{at(a.channels), at(t.conv), at(state.conv.location), at(a.conv), at(step.positions),
                           at(step.slots), at(step.runs), s.channels(), s.conv_width});
  barrier();
  dispatch("ssm_delta_net", {}, s.n_v_heads, Rows::kRuns,
           push::SsmDeltaNet{at(a.conv), at(a.beta), at(a.alpha), at(t.a), at(t.dt), at(state.delta.location),
                             at(a.attn), at(step.positions), at(step.slots), at(step.runs), s.n_k_heads, s.n_v_heads,
                             s.k_dim, s.v_dim, is_grouped ? 0u : 1u, kNormEps});
  barrier();
  norm(a.attn, t.norm, a.attn, width, s.v_dim);
  barrier();
  const Source gated = glu_for(t.output, a.z, a.attn, width, zinc_rt::push::kSilu);
  barrier();
  products(gated, {{t.output, a.y}});
  barrier();
  add_to_stream(a.y, layer.attn_post_norm);
}

}  // namespace zinc_rt::vulkan
