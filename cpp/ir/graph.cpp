#include "ir/graph.h"

#include <algorithm>

namespace zinc_rt::ir {

std::string_view to_string(BufferClass buffer_class) {
  switch (buffer_class) {
    case BufferClass::kWeight: return "weight";
    case BufferClass::kConstant: return "constant";
    case BufferClass::kState: return "state";
    case BufferClass::kActivation: return "activation";
    case BufferClass::kRequest: return "request";
    case BufferClass::kOutput: return "output";
  }
  return "?";
}

std::string_view name_prefix(BufferClass buffer_class) {
  switch (buffer_class) {
    case BufferClass::kWeight: return "model.";
    case BufferClass::kConstant: return "const.";
    case BufferClass::kState: return "state.";
    case BufferClass::kActivation: return "act.";
    case BufferClass::kRequest: return "request.";
    case BufferClass::kOutput: return "host_ring.";
  }
  return "?";
}

std::string_view to_string(Stage stage) {
  switch (stage) {
    case Stage::kPrefill: return "prefill";
    case Stage::kDecode: return "decode";
    case Stage::kBoth: return "both";
  }
  return "?";
}

BufferId Graph::find(std::string_view name) const {
  const auto it = index_.find(std::string(name));
  return it == index_.end() ? kNoBuffer : it->second;
}

BufferId Graph::add_buffer(Buffer buffer) {
  const auto id = static_cast<BufferId>(buffers_.size());
  const auto [it, inserted] = index_.try_emplace(buffer.name, id);
  if (!inserted) {
    const Buffer& other = buffers_[static_cast<std::size_t>(it->second)];
    if (other.tensor == buffer.tensor && other.buffer_class == buffer.buffer_class && other.dtype == buffer.dtype &&
        other.first_row == buffer.first_row && other.tensor_rows == buffer.tensor_rows &&
        std::ranges::equal(other.shape(), buffer.shape()))
      return it->second;
  }
  buffers_.push_back(std::move(buffer));
  return id;
}

}  // namespace zinc_rt::ir
