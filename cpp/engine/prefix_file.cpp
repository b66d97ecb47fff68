// Saves the KV cache of a prompt as a file, and loads such a file into a prefix cache. If the prompt
// ends within a page, that page is not saved, because its later cells may hold another tenant's tokens.
//
// Format: one line of JSON that says what the rest was computed for:
//   {"format":"zinc_rt prefix","version":1,"model":<fingerprint>,"tier":...,"arithmetic":...,
//    "arithmetic_version":3,"activations":...,"kv_dtype":...,"page_tokens":16,"page_bytes":...,
//    "rope_variant":...,"n_tokens":...}
// then n_tokens token ids (int32), the pages (n_tokens / page_tokens * page_bytes), and the XXH3-64 of everything
// before it. Numbers are little-endian.
#include <xxhash.h>

#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/output_file.h"
#include "engine/lease.h"
#include "zinc_rt/version.h"

namespace zinc_rt {
namespace {

using Json = nlohmann::ordered_json;
constexpr std::size_t kLongestHeader = 4096;
static_assert(std::endian::native == std::endian::little);

// Returns the properties that the file and this engine must share. If they are equal, this engine would compute the
// same bits for the pages.
Json identity(const Replica& replica, std::uint32_t variant) {
  const auto& info = replica.info;
  return {{"format", "zinc_rt prefix"},
          {"version", 1},
          {"model", replica.fingerprint()},
          {"tier", info.tier},
          {"arithmetic", to_string(info.arithmetic)},
          {"arithmetic_version", kArithmeticVersion},
          {"activations", to_string(info.activations)},
          {"kv_dtype", info.kv_dtype},
          {"page_tokens", kPageTokens},
          {"page_bytes", info.page_bytes},
          {"rope_variant", variant}};
}

struct PrefixFile {
  Json header;
  std::vector<std::int32_t> tokens;
  std::span<const std::byte> pages;
};

Result<PrefixFile> parse(std::span<const std::byte> bytes, const std::string& path) {
  const auto corrupt = [&](const std::string& why) { return fail(StatusCode::kCorrupt, "[prefix] {}: {}", path, why); };
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), std::min(bytes.size(), kLongestHeader));
  const auto line_end = text.find('\n');
  PrefixFile file;
  if (line_end != text.npos) file.header = Json::parse(text.substr(0, line_end), nullptr, false);
  if (!file.header.is_object() || file.header.value("format", Json()) != "zinc_rt prefix")
    return corrupt("it is no saved prefix");
  const auto number = [&](const char* key) -> std::uint64_t {
    const auto it = file.header.find(key);
    return it != file.header.end() && it->is_number_unsigned() ? it->get<std::uint64_t>() : 0;
  };
  const std::uint64_t n_tokens = number("n_tokens"), page_bytes = number("page_bytes");
  constexpr std::uint64_t kMost = std::uint64_t{1} << 31;
  if (n_tokens == 0 || n_tokens % kPageTokens != 0 || n_tokens > kMost || page_bytes == 0 || page_bytes > kMost)
    return corrupt(fmt::format("its header says {} tokens in pages of {} bytes", n_tokens, page_bytes));
  const std::uint64_t begin = line_end + 1, ids = n_tokens * sizeof(std::int32_t),
                      pages = n_tokens / kPageTokens * page_bytes, wanted = begin + ids + pages + sizeof(std::uint64_t);
  if (bytes.size() != wanted) return corrupt(fmt::format("it has {} bytes, {} wanted", bytes.size(), wanted));
  std::uint64_t checksum = 0;
  std::memcpy(&checksum, bytes.data() + wanted - sizeof checksum, sizeof checksum);
  if (const auto found = XXH3_64bits(bytes.data(), wanted - sizeof checksum); found != checksum)
    return corrupt(fmt::format("its checksum is {:016x}, {:016x} wanted", found, checksum));
  file.tokens.resize(n_tokens);
  std::memcpy(file.tokens.data(), bytes.data() + begin, ids);
  file.pages = bytes.subspan(begin + ids, pages);
  return file;
}

Status check_can(const Model& model) {
  if (model.info().needs_whole_texts)
    return fail(StatusCode::kUnavailable,
                "[prefix] model \"{}\" computes a text in one step: no prefix of it is saved or used", model.name());
  if (model.info().state_bytes_per_slot > 0)
    return fail(StatusCode::kUnavailable,
                "[prefix] model \"{}\" has recurrent layers, whose state lies in no page: its prefixes are not saved",
                model.name());
  return {};
}

}  // namespace

Result<std::uint32_t> EngineCore::save_prefix(const TenantState& tenant, Request request, const std::string& system,
                                              const std::string& path, const StopAsked& is_stopped) {
  ZRT_TRY(const auto model, this->model(request.model));
  ZRT_CHECK_OK(check_can(*model));
  ZRT_CHECK_OK(Generation::check(request, *model));
  ZRT_TRY(auto prompt, Generation::take_prompt(*model, request, system, prompt_room(*model, tenant, false)));
  auto& ids = prompt.ids;
  ids.resize(ids.size() / kPageTokens * kPageTokens);
  if (ids.empty())
    return fail(StatusCode::kInvalidArgument, "[prefix] the prompt is shorter than a page of {} tokens", kPageTokens);
  ZRT_TRY(const auto lease, Lease::take(*this, *model, ids.size()));
  const std::uint32_t variant = variant_spans(*model, ids.size()).back().variant;
  const std::size_t step_size = model->info().chunk_cap;
  for (std::size_t at = 0; at < ids.size(); at += step_size) {
    ZRT_CHECK_OK(go_on(is_stopped, "prefix"));
    const StepLoop::Pause pause(lease.replica().loop());
    ZRT_CHECK_OK(check_loaded(*model, lease.replica()));
    ZRT_CHECK_OK(
        lease.replica().runner().run(lease.slot(), ids, at, std::min(step_size, ids.size() - at), variant, {}, {}));
  }
  Json header;
  std::vector<std::byte> pages(ids.size() / kPageTokens * model->info().page_bytes);
  {
    const StepLoop::Pause pause(lease.replica().loop());
    ZRT_CHECK_OK(check_loaded(*model, lease.replica()));
    ZRT_CHECK_OK(lease.replica().runner().read_pages(lease.slot(), pages));
    header = identity(lease.replica(), variant);
  }
  header["n_tokens"] = ids.size();
  const std::string line = header.dump() + '\n';
  XXH3_state_t* const state = XXH3_createState();
  XXH3_64bits_reset(state);
  XXH3_64bits_update(state, line.data(), line.size());
  XXH3_64bits_update(state, ids.data(), ids.size() * sizeof(std::int32_t));
  XXH3_64bits_update(state, pages.data(), pages.size());
  const std::uint64_t checksum = XXH3_64bits_digest(state);
  XXH3_freeState(state);
  ZRT_TRY(auto file, OutputFile::create(path, FileAccess::kOwnerOnly));
  ZRT_CHECK_OK(file.write(line));
  ZRT_CHECK_OK(file.write(std::as_bytes(std::span(ids))));
  ZRT_CHECK_OK(file.write(pages));
  ZRT_CHECK_OK(file.write(std::as_bytes(std::span(&checksum, 1))));
  ZRT_CHECK_OK(file.commit());
  return static_cast<std::uint32_t>(ids.size());
}

Result<std::uint32_t> EngineCore::load_prefix(const TenantState& tenant, const std::string& path,
                                              const std::string& model_name, const std::string& salt) {
  ZRT_TRY(const auto model, this->model(model_name));
  ZRT_CHECK_OK(check_can(*model));
  if (!model->options().prefix_cache)
    return fail(StatusCode::kInvalidArgument, "[prefix] the engine was opened with prefix_cache=False");
  ZRT_TRY(const auto mapped, MappedFile::open(path));
  ZRT_TRY(const auto file, parse(mapped.bytes(), path));
  // The pages go to the replica to which a prompt with this prefix would be sent.
  ZRT_TRY(const auto placed, place(*model, tenant, salt, file.tokens));
  ZRT_TRY(const auto lease, Lease::take(*this, *model, *placed.replica, file.tokens.size()));
  const StepLoop::Pause pause(lease.replica().loop());
  ZRT_CHECK_OK(check_loaded(*model, lease.replica()));
  const auto wanted = identity(lease.replica(), variant_spans(*model, file.tokens.size()).back().variant);
  for (const auto& [key, value] : wanted.items())
    if (const auto found = file.header.value(key, Json()); found != value)
      return fail(StatusCode::kInvalidArgument, "[prefix] {}: {} is {}, {} wanted", path, key, found.dump(),
                  value.dump());
  for (const std::int32_t id : file.tokens)
    if (id < 0 || static_cast<std::uint32_t>(id) >= model->config().vocab_size)
      return fail(StatusCode::kCorrupt, "[prefix] {}: token id {}, the vocabulary has {}", path, id,
                  model->config().vocab_size);
  ZRT_CHECK_OK(lease.replica().runner().write_pages(lease.slot(), file.pages));
  ZRT_CHECK_OK(mapped.is_whole());
  lease.replica().runner().scheduler().publish_lease(lease.slot(), tenant.id, salt, file.tokens);
  return static_cast<std::uint32_t>(file.tokens.size());
}

}  // namespace zinc_rt
