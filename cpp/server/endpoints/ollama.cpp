// Handles Ollama's paths that generate nothing: /api/tags, /api/show, /api/ps, /api/version.
#include <fmt/format.h>
#include <openssl/sha.h>

#include <algorithm>

#include "base/error.h"
#include "server/answers/answer_writer.h"
#include "server/api/request_checks.h"
#include "server/core.h"
#include "zinc_rt/version.h"

namespace zinc_rt::server {
namespace {

std::string time_of(std::int64_t s) {
  return utc_time(std::chrono::system_clock::from_time_t(static_cast<std::time_t>(s)));
}

// Returns a stand-in for the digest of a model's files. It tells models apart, but the files' contents are not read.
std::string digest_of(const std::string& source) {
  unsigned char hash[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(source.data()), source.size(), hash);
  std::string out;
  for (const auto byte : hash) out += fmt::format("{:02x}", byte);
  return out;
}

std::string short_count(std::uint64_t n) {
  const auto value = static_cast<double>(n);
  return value >= 1e9 ? fmt::format("{:.1f}B", value * 1e-9) : fmt::format("{:.2f}M", value * 1e-6);
}

// Returns the format that most bytes of the weights have, in upper case.
std::string main_format(const ModelCard& card) {
  const auto& formats = card.weight_bytes_by_format;
  const auto most = std::ranges::max_element(formats, {}, &std::pair<std::string, std::uint64_t>::second);
  if (most == formats.end()) return "unknown";
  std::string out = most->first;
  std::ranges::transform(out, out.begin(), [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
  return out;
}

Json details_of(const ModelCard& card) {
  return {{"parent_model", ""},
          {"format", "gguf"},
          {"family", card.architecture},
          {"families", Json::array({card.architecture})},
          {"parameter_size", short_count(card.n_parameters)},
          {"quantization_level", main_format(card)}};
}

Json entry_of(const ServedModel& model) {
  return {{"name", model.id},
          {"model", model.id},
          {"modified_at", time_of(model.created_s)},
          {"size", model.card.file_bytes},
          {"digest", digest_of(model.source)},
          {"details", details_of(model.card)}};
}

ApiResult<std::string> tags(ServerCore& core, const Exchange&) {
  Json list = Json::array();
  for (const auto& model : core.models.list()) list.push_back(entry_of(model));
  // Of a model that is not loaded, only properties of the file are known.
  for (const auto& model : core.on_demand.not_loaded())
    list.push_back({{"name", model.id},
                    {"model", model.id},
                    {"modified_at", time_of(model.created_s)},
                    {"size", model.bytes},
                    {"digest", digest_of(fmt::format("{} {} {}", model.path, model.bytes, model.created_s))},
                    {"details", {{"format", "gguf"}}}});
  return as_text(Json{{"models", std::move(list)}});
}

ApiResult<std::string> running(ServerCore& core, const Exchange&) {
  Json list = Json::array();
  for (const auto& model : core.models.list()) {
    auto entry = entry_of(model);
    entry.erase("modified_at");
    // A model of the configuration stays loaded, so it never expires. A model that a request has loaded is unloaded
    // after it was idle for some time.
    entry["expires_at"] = "9999-12-31T23:59:59Z";
    entry["size"] = model.memory.allocated_bytes + model.memory.mapped_bytes;
    entry["size_vram"] = model.card.tier == "t_cpu" ? 0 : model.memory.allocated_bytes;
    entry["context_length"] = model.max_context;
    list.push_back(std::move(entry));
  }
  return as_text(Json{{"models", std::move(list)}});
}

ApiResult<std::string> version(ServerCore&, const Exchange&) {
  return Json{{"version", kVersion}}.dump();
}

std::string show_json(ServerCore& core, const ServedModel& model) {
  const ModelCard& card = model.card;
  const bool generates = card.pooling.empty();
  Json capabilities = Json::array({capability_of(card)});
  if (generates && !card.tool_format.empty()) capabilities.push_back("tools");
  const auto text = core.engine.chat_template(model.engine_name);
  if (generates && (text.contains("think") || text.contains("reasoning"))) capabilities.push_back("thinking");
  const auto key = [&](const char* name) { return card.architecture + "." + name; };
  return as_text(Json{{"modelfile", ""},
                      {"parameters", ""},
                      {"template", text},
                      {"details", details_of(card)},
                      {"model_info",
                       {{"general.architecture", card.architecture},
                        {"general.name", card.name},
                        {"general.parameter_count", card.n_parameters},
                        {key("context_length"), model.max_context},
                        {key("block_count"), card.n_layers},
                        {key("embedding_length"), card.model_dim},
                        {key("attention.head_count"), card.n_heads},
                        {key("attention.head_count_kv"), card.n_kv_heads},
                        {"tokenizer.ggml.model", card.tokenizer.model}}},
                      {"capabilities", std::move(capabilities)},
                      {"modified_at", time_of(model.created_s)}});
}

// Loads the model if necessary, because the answer describes the content of its file.
void show_model_card(ServerCore& core, Exchange& exchange) {
  const auto body = read_object(exchange.request);
  if (!body) return answer(core, exchange, body.error());
  Fields fields(*body);
  auto name = fields.get_string("model");
  if (const auto old = fields.get_string("name"); name && !*name && old) name = old;
  static_cast<void>(fields.get("verbose"));
  if (!name) return answer(core, exchange, name.error());
  if (const auto others = fields.expect_no_others(); !others) return answer(core, exchange, others.error());
  if (!*name || (*name)->empty()) return answer(core, exchange, fields.wrong("model", "it is missing").error());
  auto text = std::move(**name);
  if (constexpr std::string_view kLatest = ":latest"; text.ends_with(kLatest))
    text.resize(text.size() - kLatest.size());
  find_model(core, exchange, text, [&core](Exchange& held, const ApiResult<ServedModel>& model) {
    if (!model) return answer(core, held, model.error());
    answer(core, held, show_json(core, *model));
  });
}

}  // namespace

void add_ollama_routes(Router& router, ServerCore& core) {
  router.add({"GET", "/api/tags", Access::kKey, false, answering(core, tags)});
  router.add({"GET", "/api/ps", Access::kKey, false, answering(core, running)});
  router.add({"GET", "/api/version", Access::kOpen, false, answering(core, version)});
  router.add(
      {"POST", "/api/show", Access::kKey, false, [&core](Exchange& exchange) { show_model_card(core, exchange); }});
}

}  // namespace zinc_rt::server
