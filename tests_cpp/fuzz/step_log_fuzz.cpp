// Any bytes as a log of steps: its records are found, decoded and printed, or an error says why not.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "executor/step_codec.h"
#include "executor/step_log_text.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace zinc_rt;  // NOLINT: what is tested
  const auto expect = [](bool holds) {
    if (!holds) std::abort();
  };
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto log = read_step_log(bytes);
  if (!log) {
    expect(!log.error().message.empty());
    return 0;
  }
  std::size_t n_lines = 0;
  const auto status = describe_step_log(*log, [&](std::string_view) { ++n_lines; });
  expect(status ? n_lines > log->records.size() : !status.error().message.empty());
  // What was decoded can be encoded where a step can have it, and is then the same.
  StepDecoder decoder(log->header), again(log->header);
  StepEncoder encoder(log->header.max_slots);
  RecordedStep step, second;
  for (const StepLogRecord& record : log->records) {
    if (record.kind != StepLogKind::kBegin) continue;
    if (!decoder.decode(record, step)) return 0;
    StepInput input;
    input.token_ids = step.token_ids;
    input.positions = step.positions;
    input.slots = step.slots;
    input.token_types = step.token_types;
    input.outputs = step.outputs;
    std::vector<std::uint32_t> pages(step.pages), counts(log->header.max_slots);
    // One slot alone, whose table is the whole memory.
    if (step.tables.size() != 1 || step.tables[0].slot != 0) continue;
    const std::vector<std::uint32_t> variants(1, step.tables[0].rope_variant);
    input.page_tables = {pages, static_cast<std::uint32_t>(pages.size()), counts};
    input.rope_variants = variants;
    if (!encoder.can_encode(input)) continue;
    std::vector<std::byte> encoded;
    encoder.encode(input, step.is_ahead, encoded);
    expect(again.decode({StepLogKind::kBegin, 0, encoded}, second).has_value());
    expect(second.token_ids == step.token_ids && second.positions == step.positions && second.slots == step.slots);
    expect(second.outputs.size() == step.outputs.size() && second.is_ahead == step.is_ahead);
    for (std::size_t i = 0; i < step.outputs.size(); ++i) {
      const OutputRow &a = step.outputs[i], &b = second.outputs[i];
      expect(std::ranges::equal(a.history, b.history) && std::ranges::equal(a.banned, b.banned));
      expect(a.bias.size() == b.bias.size() && a.token_index == b.token_index && a.n_logprobs == b.n_logprobs);
    }
  }
  return 0;
}
