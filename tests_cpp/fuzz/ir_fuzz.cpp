// Any bytes as a serialized graph and as IR text. A graph that verify accepts survives serialize and print: both ways
// back give the same graph.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string_view>

#include "ir/serialize.h"
#include "ir/text.h"
#include "ir/verify.h"

namespace {

void expect(bool holds) {
  if (!holds) std::abort();
}

void check(const zinc_rt::ir::Graph& graph) {
  const auto bytes = zinc_rt::ir::serialize(graph);
  const auto again = zinc_rt::ir::deserialize(bytes);
  if (!zinc_rt::ir::verify(graph)) return;
  expect(again && zinc_rt::ir::serialize(*again) == bytes);
  const auto text = zinc_rt::ir::print(graph);
  const auto parsed = zinc_rt::ir::parse(text);
  expect(parsed.has_value() && zinc_rt::ir::print(*parsed) == text);
  expect(zinc_rt::ir::serialize(*parsed) == bytes);
  expect(zinc_rt::ir::verify(*parsed).has_value());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (const auto graph = zinc_rt::ir::deserialize(std::as_bytes(std::span(data, size))))
    check(*graph);
  else
    expect(!graph.error().message.empty());
  if (const auto graph = zinc_rt::ir::parse({reinterpret_cast<const char*>(data), size}))
    check(*graph);
  else
    expect(graph.error().message.starts_with("[ir] line "));
  return 0;
}
