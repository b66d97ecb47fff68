// logit_hashes MODEL.gguf...: runs each model by T-CPU, ten given tokens and three that it picks itself, and prints a
// hash of each row of logits that it picks from (FNV-1a of their bits). T-CPU computes the same bits on every system,
// so all systems print the same lines.
#include <bit>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/print.h"
#include "executor/executor.h"

namespace zinc_rt {
namespace {

std::uint64_t hash_of(std::span<const float> logits) {
  std::uint64_t hash = 0xCBF29CE484222325;
  for (const float logit : logits)
    for (int shift = 0; shift < 32; shift += 8)
      hash = (hash ^ (std::bit_cast<std::uint32_t>(logit) >> shift & 0xFF)) * 0x100000001B3;
  return hash;
}

Result<std::string> hashes(const std::string& path) {
  constexpr std::uint32_t kPages = 8;
  ExecutorOptions options;
  options.tier = "t_cpu";
  options.max_slots = 1;
  options.max_context = 128;
  options.kv_pages = kPages;
  ZRT_TRY(const auto executor, open_executor(path, options));
  std::vector<std::uint32_t> pages(kPages);
  std::iota(pages.begin(), pages.end(), 0u);
  const std::vector<std::uint32_t> counts{kPages};
  std::string line;
  StepInput input;
  StepOutput output;
  input.on_logits = [&](std::uint32_t, std::span<const float> logits) {
    line += fmt::format(" {:016x}", hash_of(logits));
  };
  std::vector<std::int32_t> tokens{5, 35, 282, 46, 14, 260, 163, 28, 284, 38};
  std::size_t at = 0;
  for (int step = 0; step < 4; ++step) {
    input.clear();
    input.page_tables = {pages, kPages, counts};
    for (; at < tokens.size(); ++at) {
      input.token_ids.push_back(tokens[at]);
      input.positions.push_back(static_cast<std::int32_t>(at));
      input.slots.push_back(0);
    }
    OutputRow row;
    row.token_index = static_cast<std::uint32_t>(input.token_ids.size() - 1);
    row.position = static_cast<std::uint32_t>(at);
    row.sampling.temperature = 0;
    input.outputs.push_back(row);
    ZRT_CHECK_OK(executor->step(input, output));
    tokens.push_back(output.tokens[0]);
  }
  return line;
}

}  // namespace
}  // namespace zinc_rt

int main(int n_arguments, char** arguments) {
  using namespace zinc_rt;
  int status = n_arguments < 2 ? 2 : 0;
  for (int i = 1; i < n_arguments; ++i) {
    const std::string path = arguments[i];
    const auto line = hashes(path);
    if (line)
      print_out("{}{}\n", path.substr(path.find_last_of('/') + 1), *line);
    else
      print_err("{}\n", line.error().message);
    if (!line) status = 1;
  }
  return output_status() ? status : 1;
}
