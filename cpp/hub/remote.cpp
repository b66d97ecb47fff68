#include "hub/remote.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/letter_case.h"
#include "base/options.h"
#include "hub/json_fields.h"
#include "hub/store.h"

namespace zinc_rt::hub {
namespace {

using Json = nlohmann::json;

// Quants are preferred in this order. If a repository has several files and the user names no quant, the first of these
// that exists is used.
constexpr std::string_view kPreferred[] = {"Q4_K_M", "Q8_0", "Q4_0", "Q5_K_M", "Q6_K", "BF16", "F16", "F32"};

std::string without_slash(std::string text) {
  while (text.ends_with('/')) text.pop_back();
  return text;
}

std::string last_part(std::string_view path) {
  path = path.substr(0, path.find_first_of("?#"));
  return std::string(path.substr(path.rfind('/') + 1));
}

Result<Json> fetch_json(const std::string& url, const client::Headers& headers) {
  ZRT_TRY(const auto text, fetch_text(url, headers));
  auto json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return fail(StatusCode::kUnavailable, "[pull] {} answers without JSON", url);
  return json;
}

struct Candidate {
  std::string path, sha256;
  std::uint64_t bytes = 0;
};

// Returns whether a file's name contains the quant as a separate word.
bool has_quant(std::string_view path, std::string_view quant) {
  const auto name = to_lower(last_part(path)), wanted = to_lower(quant);
  const auto is_edge = [](char c) { return c == '-' || c == '.' || c == '_'; };
  for (auto at = name.find(wanted); at != std::string::npos; at = name.find(wanted, at + 1)) {
    const auto end = at + wanted.size();
    // "_" does not end a word, because "Q4_K" must not match "Q4_K_M".
    const bool ends = end < name.size() && (name[end] == '.' || name[end] == '-');
    if (at > 0 && is_edge(name[at - 1]) && ends) return true;
  }
  return false;
}

// Returns the files of the model that the reference names. Their names differ only in the number of the split.
Result<std::vector<Candidate>> chosen(const Reference& reference, const std::vector<Candidate>& all) {
  std::vector<std::string> names;
  for (const auto& file : all) names.push_back(file.path);
  const auto with = [&](const auto& fits) {
    std::vector<Candidate> out;
    for (const auto& file : all)
      if (fits(file.path)) out.push_back(file);
    return out;
  };
  std::vector<Candidate> found;
  if (reference.tag.ends_with(".gguf")) {
    const auto name = name_of_file(reference.tag);
    found = with([&](const std::string& path) { return path == reference.tag || name_of_file(path) == name; });
  } else if (!reference.tag.empty() && reference.tag != "latest") {
    found = with([&](const std::string& path) { return has_quant(path, reference.tag); });
  } else if (all.size() == 1) {
    found = all;
  } else {
    for (const auto quant : kPreferred)
      if (found.empty()) found = with([&](const std::string& path) { return has_quant(path, quant); });
  }
  if (found.empty())
    return fail(StatusCode::kNotFound, "[pull] {} has no GGUF file{}{}; it has: {}", reference.repository,
                reference.tag.empty() ? "" : " for ", reference.tag, fmt::join(names, ", "));
  std::ranges::sort(found, {}, &Candidate::path);
  const auto first = name_of_file(found.front().path);
  std::erase_if(found, [&](const Candidate& file) { return name_of_file(file.path) != first; });
  return found;
}

Result<std::vector<NamedFile>> of_hugging_face(const Reference& reference) {
  const auto site = without_slash(options::get("HF_ENDPOINT")), token = options::get("HF_TOKEN");
  client::Headers headers;
  if (!token.empty()) headers.emplace_back("Authorization", "Bearer " + token);
  const auto url = fmt::format("{}/api/models/{}/tree/main?recursive=true", site, reference.repository);
  ZRT_TRY(const auto list, fetch_json(url, headers));
  if (!list.is_array()) return fail(StatusCode::kUnavailable, "[pull] {} answers without a list of files", url);
  std::vector<Candidate> all;
  for (const auto& entry : list) {
    Candidate file;
    file.path = text_at(entry, "path");
    file.bytes = number_at(entry, "size");
    const auto name = to_lower(last_part(file.path));
    // Image projectors (mmproj*) are skipped, which repositories keep beside models.
    if (text_at(entry, "type") != "file" || !name.ends_with(".gguf") || name.starts_with("mmproj")) continue;
    if (!is_good_name(file.path)) continue;
    if (const auto lfs = entry.find("lfs"); lfs != entry.end()) {
      file.sha256 = text_at(*lfs, "oid");
      if (const auto bytes = number_at(*lfs, "size"); bytes > 0) file.bytes = bytes;
    }
    if (file.sha256.size() != 64) file.sha256.clear();
    all.push_back(std::move(file));
  }
  if (all.empty())
    return fail(StatusCode::kNotFound, "[pull] {} has no GGUF file; repositories whose names end with -GGUF do",
                reference.repository);
  ZRT_TRY(const auto files, chosen(reference, all));
  std::vector<NamedFile> out;
  for (const auto& file : files)
    out.push_back({last_part(file.path),
                   {fmt::format("{}/{}/resolve/main/{}", site, reference.repository, file.path), file.sha256,
                    file.bytes, token}});
  return out;
}

Result<std::vector<NamedFile>> of_ollama(const Reference& reference) {
  const auto site = without_slash(options::get("ZINC_RT_OLLAMA_REGISTRY"));
  const auto url = fmt::format("{}/v2/{}/manifests/{}", site, reference.repository, reference.tag);
  ZRT_TRY(const auto manifest, fetch_json(url, {{"Accept", "application/vnd.docker.distribution.manifest.v2+json"}}));
  const auto layers = manifest.is_object() ? manifest.find("layers") : manifest.end();
  if (!manifest.is_object() || layers == manifest.end() || !layers->is_array())
    return fail(StatusCode::kUnavailable, "[pull] {} answers without layers", url);
  std::string name = reference.repository.substr(reference.repository.rfind('/') + 1) + "-" + reference.tag + ".gguf";
  std::vector<NamedFile> out;
  for (const auto& layer : *layers) {
    if (text_at(layer, "mediaType") != "application/vnd.ollama.image.model") continue;
    const auto digest = text_at(layer, "digest");
    if (!digest.starts_with("sha256:") || digest.size() != 71)
      return fail(StatusCode::kUnavailable, "[pull] {}: a layer has no sha256", url);
    out.push_back({name,
                   {fmt::format("{}/v2/{}/blobs/{}", site, reference.repository, digest), digest.substr(7),
                    number_at(layer, "size"), ""}});
  }
  if (out.size() != 1)
    return fail(StatusCode::kNotFound, "[pull] {} has {} files of weights, 1 wanted", reference.text(), out.size());
  return out;
}

}  // namespace

Result<std::vector<NamedFile>> files_of(const Reference& reference) {
  if (reference.kind == Reference::kHuggingFace) return of_hugging_face(reference);
  if (reference.kind == Reference::kOllama) return of_ollama(reference);
  auto name = last_part(reference.repository);
  if (!is_good_name(name) || !name.ends_with(".gguf"))
    return fail(StatusCode::kInvalidArgument, "[pull] {}: a URL that ends with a name like model.gguf wanted",
                reference.repository);
  return std::vector<NamedFile>{{std::move(name), {.url = reference.repository}}};
}

}  // namespace zinc_rt::hub
