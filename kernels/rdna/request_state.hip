// Computes LOAD_REQUEST_STATE, value[r] = slots[slot[r]][field], and STORE_REQUEST_STATE, slots[slot[r]][field] =
// value[r] (defined by kernels/cpu/load_request_state.cpp and store_request_state.cpp). Each thread computes one row. If
// rows to store have the same slot, the value of the last of them stays.
#include "kernels/rdna/device.h"

ZRT_KERNEL(load_request_state, 32) {
  using namespace zinc_rt;
  using namespace zinc_rt::rdna;
  using Operand = operand::LoadRequestState;
  const uint32_t s = dim(args, symbol::RequestState::s), fields = dim(args, symbol::RequestState::fields),
                 r = group(0) * 32 + thread(), field = constants<push::RequestState>(args).field;
  if (r >= dim(args, symbol::RequestState::n)) return;
  const auto slot = (uint32_t)buffer<const int32_t>(args, Operand::slot)[r];
  const bool is_inside = slot < s && field < fields;
  buffer<uint32_t>(args, Operand::value)[r] =
      is_inside ? buffer<const uint32_t>(args, Operand::slots)[(uint64_t)slot * fields + field] : 0xFFFFFFFFu;
}

ZRT_KERNEL(store_request_state, 32) {
  using namespace zinc_rt;
  using namespace zinc_rt::rdna;
  using Operand = operand::StoreRequestState;
  const uint32_t s = dim(args, symbol::RequestState::s), fields = dim(args, symbol::RequestState::fields),
                 r = group(0) * 32 + thread(), field = constants<push::RequestState>(args).field,
                 n = dim(args, symbol::RequestState::n);
  if (r >= n) return;
  const auto* of_row = buffer<const int32_t>(args, Operand::slot);
  for (uint32_t later = r + 1; later < n; ++later)
    if (of_row[later] == of_row[r]) return;
  const auto slot = (uint32_t)of_row[r];
  if (slot < s && field < fields)
    buffer<uint32_t>(args, Operand::slots)[(uint64_t)slot * fields + field] =
        buffer<const uint32_t>(args, Operand::value)[r];
}
