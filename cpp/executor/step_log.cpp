#include "executor/step_log.h"

#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/strict_json.h"

#define XXH_INLINE_ALL  // without the library, because builds for other processors have only headers
#include <xxhash.h>

namespace zinc_rt {
namespace {

static_assert(std::endian::native == std::endian::little);
constexpr std::uint32_t kStepLogVersion = 1;
// Limits of a header. A log that says more is corrupt, because no executor has as much.
constexpr std::uint32_t kMostLogSlots = 1 << 16, kMostLogContext = 1 << 28;
constexpr std::size_t kMostLogHeader = std::size_t{1} << 16;

using LogJson = nlohmann::ordered_json;

// Calls use(key, member) for each member of a header.
template <class Header, class Use>
void for_members(Header& h, const Use& use) {
  use("model", h.model);
  use("model_name", h.model_name);
  use("fingerprint", h.fingerprint);
  use("model_bytes", h.model_bytes);
  use("build", h.build);
  use("arithmetic_version", h.arithmetic_version);
  use("tier", h.tier);
  use("device", h.device);
  use("kv_dtype", h.kv_dtype);
  use("pooling", h.pooling);
  use("activations", h.activations);
  use("arithmetic", h.arithmetic);
  use("fusion", h.fusion);
  use("max_slots", h.max_slots);
  use("max_context", h.max_context);
  use("n_pages", h.n_pages);
  use("chunk_cap", h.chunk_cap);
  use("state_checkpoints", h.state_checkpoints);
  use("state_guesses", h.state_guesses);
  use("vocab_size", h.vocab_size);
  use("has_all_logits", h.has_all_logits);
}

// Each sets a member from its JSON value. Returns false if the value has another type or is too large.
bool take(const LogJson& value, std::string& to) {
  if (!value.is_string()) return false;
  to = value.get<std::string>();
  return true;
}
bool take(const LogJson& value, std::uint64_t& to) {
  if (!value.is_number_unsigned()) return false;
  to = value.get<std::uint64_t>();
  return true;
}
bool take(const LogJson& value, std::uint32_t& to) {
  std::uint64_t number = 0;
  if (!take(value, number) || number > UINT32_MAX) return false;
  to = static_cast<std::uint32_t>(number);
  return true;
}
bool take(const LogJson& value, bool& to) {
  if (!value.is_boolean()) return false;
  to = value.get<bool>();
  return true;
}

Result<StepLogHeader> read_log_header(std::span<const std::byte> bytes) {
  if (bytes.size() > kMostLogHeader)
    return fail(StatusCode::kCorrupt, "[step_log] a header of {} bytes, {} allowed", bytes.size(), kMostLogHeader);
  const auto json = read_strict_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, 1);
  if (!json || !json->is_object())
    return fail(StatusCode::kCorrupt, "[step_log] the header of {} bytes is no JSON object", bytes.size());
  std::uint32_t version = 0;
  const auto found = json->find("version");
  if (found == json->end() || !take(*found, version))
    return fail(StatusCode::kCorrupt, "[step_log] the header has no version");
  if (version != kStepLogVersion)
    return fail(StatusCode::kUnavailable, "[step_log] the log has version {}, this program reads {}", version,
                kStepLogVersion);
  StepLogHeader header;
  std::string wrong;
  for_members(header, [&](const char* key, auto& member) {
    if (const auto it = json->find(key); it != json->end() && !take(*it, member)) wrong = key;
  });
  if (!wrong.empty())
    return fail(StatusCode::kCorrupt, "[step_log] the header's {} is {}", wrong, (*json)[wrong].dump());
  if (header.max_slots == 0 || header.max_slots > kMostLogSlots)
    return fail(StatusCode::kCorrupt, "[step_log] the header says {} slots, 1 to {} allowed", header.max_slots,
                kMostLogSlots);
  if (header.max_context > kMostLogContext)
    return fail(StatusCode::kCorrupt, "[step_log] the header says a context of {} tokens, {} allowed",
                header.max_context, kMostLogContext);
  return header;
}

}  // namespace

std::string_view to_string(StepLogKind kind) {
  constexpr std::string_view kNames[] = {"header",     "begin",       "finish", "copy_state",
                                         "copy_pages", "write_pages", "refused"};
  return kNames[static_cast<std::size_t>(kind)];
}

bool is_step_log(std::span<const std::byte> bytes) {
  return bytes.size() >= kStepLogMagic.size() &&
         std::memcmp(bytes.data(), kStepLogMagic.data(), kStepLogMagic.size()) == 0;
}

Result<StepLog> read_step_log(std::span<const std::byte> bytes) {
  if (!is_step_log(bytes))
    return fail(StatusCode::kCorrupt, "[step_log] this is no step log: it does not begin with {}", kStepLogMagic);
  StepLog log;
  log.n_bytes = bytes.size();
  bool has_header = false;
  std::uint64_t at = kStepLogMagic.size();
  while (bytes.size() - at >= sizeof(StepLogHead)) {
    StepLogHead head;
    std::memcpy(&head, bytes.data() + at, sizeof head);
    if (head.kind >= kStepLogKinds || head.zero != 0)
      return fail(StatusCode::kCorrupt, "[step_log] the record at byte {} has kind {}, {} are known", at, head.kind,
                  kStepLogKinds);
    if (head.n_bytes > bytes.size() - at - sizeof head) break;
    const StepLogRecord record{static_cast<StepLogKind>(head.kind), at + sizeof head,
                               bytes.subspan(at + sizeof head, head.n_bytes)};
    if ((record.kind == StepLogKind::kHeader) == has_header)
      return fail(StatusCode::kCorrupt, "[step_log] the record at byte {} is a {}; the header comes first, and once",
                  at, to_string(record.kind));
    if (has_header) {
      log.records.push_back(record);
    } else {
      ZRT_TRY(log.header, read_log_header(record.bytes));
      has_header = true;
    }
    at += sizeof head + head.n_bytes;
  }
  if (!has_header)
    return fail(StatusCode::kCorrupt, "[step_log] the log has no whole header in {} bytes", bytes.size());
  log.n_cut_bytes = bytes.size() - at;
  return log;
}

std::string to_json(const StepLogHeader& header) {
  LogJson json{{"version", kStepLogVersion}};
  for_members(header, [&](const char* key, const auto& member) { json[key] = member; });
  return json.dump(-1, ' ', false, LogJson::error_handler_t::replace);
}

std::uint64_t hash_of_row(std::span<const float> row) {
  return XXH3_64bits(row.data(), row.size_bytes());
}

}  // namespace zinc_rt
