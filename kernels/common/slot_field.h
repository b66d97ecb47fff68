// The fields of the slot table, which the device keeps between steps: a row of words per slot. Ops that read or write
// the table (EMBED, STORE_REQUEST_STATE) name a field by its number. Shared by host and device (C++17, POD).
#pragma once

#include <stdint.h>

namespace zinc_rt {

enum SlotField : uint32_t {
  kLastToken,  // the token that was picked for the slot last
  kSlotFields
};

// Returns the token id by which EMBED reads a field of the token's slot.
constexpr int32_t id_of_field(SlotField field) {
  return -1 - static_cast<int32_t>(field);
}

}  // namespace zinc_rt
