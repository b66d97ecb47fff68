// Lists the addresses in each kernel's arguments (kernels/cuda/op_args.h): one function per struct of arguments, which
// calls f(place) for each address, absent ones too. Launching a struct without such a function does not compile.
#pragma once

#include "kernels/cuda/args.h"

namespace zinc_rt::ring {

template <class F>
void each_place(const cuda::OpArgs& args, const F& f) {
  for (const cuda::Place& buffer : args.buffers) f(buffer);
  f(args.step), f(args.scratch);
}
template <class F>
void each_place(const cuda::LinearArgs& args, const F& f) {
  for (const cuda::LinearPart& part : args.parts) f(part.w), f(part.bias), f(part.y);
  for (const auto* place : {&args.x, &args.step, &args.residual, &args.ids, &args.items, &args.order, &args.norm_w,
                            &args.normed, &args.quantized, &args.glu})
    f(*place);
}
template <class F>
void each_place(const cuda::MixedArgs& args, const F& f) {
  for (const cuda::LinearArgs& one : args.of) each_place(one, f);
}
template <class F>
void each_place(const cuda::NormedArgs& args, const F& f) {
  each_place(args.linear, f);
  f(args.floats), f(args.q8a32), f(args.q8a256), f(args.q16a256);
}
template <class F>
void each_place(const cuda::Bf16RowsArgs& args, const F& f) {
  f(args.x), f(args.to), f(args.step), f(args.items), f(args.order);
}
template <class F>
void each_place(const cuda::WgmmaArgs& args, const F& f) {
  each_place(args.linear, f);
}
template <class F>
void each_place(const cuda::DigitRowsArgs& args, const F& f) {
  f(args.x), f(args.to), f(args.step), f(args.items), f(args.order);
}
template <class F>
void each_place(const cuda::TokenArgs& args, const F& f) {
  each_place(args.attention, f);
  const cuda::RopeArgs& rope = args.rope;
  f(rope.q), f(rope.k), f(rope.v), f(rope.q_norm), f(rope.k_norm), f(rope.table);
}

}  // namespace zinc_rt::ring
