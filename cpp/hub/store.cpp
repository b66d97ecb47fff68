#include "hub/store.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <ctime>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/letter_case.h"
#include "base/near_name.h"
#include "base/options.h"
#include "base/output_file.h"
#include "hub/catalogue.h"
#include "hub/json_fields.h"

namespace zinc_rt::hub {
namespace {

namespace fs = std::filesystem;
using OrderedJson = nlohmann::ordered_json;

constexpr int kDeepest = 4;  // how many levels of folders below the models folder are searched
constexpr std::string_view kConfigOfMlc = "mlc-chat-config.json";

// Returns the JSON object in a small file, or an empty object if the file is missing or damaged.
OrderedJson object_in(const fs::path& file) {
  std::ifstream in(file);
  auto json = in ? OrderedJson::parse(in, nullptr, false) : OrderedJson();
  return json.is_object() ? json : OrderedJson::object();
}

// Returns the length of an ending such as -00001-of-00003, or 0 if the name has none.
std::size_t split_length(std::string_view stem) {
  constexpr std::string_view kForm = "-00000-of-00000";
  if (stem.size() <= kForm.size()) return 0;
  const auto end = stem.substr(stem.size() - kForm.size());
  for (std::size_t i = 0; i < kForm.size(); ++i)
    if (kForm[i] == '0' ? std::isdigit(static_cast<unsigned char>(end[i])) == 0 : end[i] != kForm[i]) return 0;
  return kForm.size();
}

fs::path sidecar_of(const fs::path& file) {
  auto out = file;
  return out += ".json";
}

std::string now_text() {
  char text[32];
  const auto now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  return {text, std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc)};
}

// Returns the model's name for each alias. Aliases are in lower case.
std::map<std::string, std::string> read_aliases(const fs::path& folder) {
  std::map<std::string, std::string> out;
  const auto json = object_in(folder / "aliases.json");
  for (const auto& [alias, of] : json.items())
    if (of.is_string()) out[to_lower(alias)] = of.get<std::string>();
  return out;
}

Status write_aliases(const fs::path& folder, const std::map<std::string, std::string>& aliases) {
  std::error_code why;
  fs::create_directories(folder, why);
  if (why) return fail(StatusCode::kUnavailable, "[models] {}: {}", folder.string(), why.message());
  ZRT_TRY(auto out, OutputFile::create((folder / "aliases.json").string()));
  ZRT_CHECK_OK(out.write(OrderedJson(aliases).dump(2) + "\n"));
  return out.commit();
}

std::uint64_t size_of(const fs::path& file) {
  std::error_code ignored;
  const auto n = fs::file_size(file, ignored);
  return ignored ? 0 : n;
}

StoredModel mlc_folder(const fs::path& folder) {
  StoredModel model;
  model.name = folder.filename().string();
  model.path = folder;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored))
    if (entry.is_regular_file(ignored)) model.files.push_back(entry.path()), model.bytes += size_of(entry.path());
  return model;
}

void look_into(const fs::path& folder, int depth, std::vector<StoredModel>& found) {
  // Models are collected by name, so that the files of a split model become one entry.
  std::map<std::string, StoredModel> of_folder;
  std::error_code why;
  std::vector<fs::path> entries;
  for (auto it = fs::directory_iterator(folder, why); !why && it != fs::directory_iterator(); it.increment(why))
    entries.push_back(it->path());
  std::ranges::sort(entries);
  for (const auto& path : entries) {
    if (path.filename().string().starts_with('.')) continue;
    if (fs::is_directory(path, why)) {
      if (fs::exists(path / kConfigOfMlc, why))
        found.push_back(mlc_folder(path));
      else if (depth < kDeepest)
        look_into(path, depth + 1, found);
      continue;
    }
    if (path.extension() != ".gguf" || !fs::is_regular_file(path, why)) continue;
    auto& model = of_folder[name_of_file(path)];
    if (model.files.empty()) {
      model.name = name_of_file(path);
      model.path = path;
      const auto beside = object_in(sidecar_of(path));
      model.source = text_at(beside, "source"), model.sha256 = text_at(beside, "sha256");
    }
    model.files.push_back(path);
    model.bytes += size_of(path);
  }
  for (auto& [name, model] : of_folder) found.push_back(std::move(model));
}

}  // namespace

fs::path default_folder() {
  return options::models_folder();
}

bool is_good_name(std::string_view name) {
  const auto is_good = [](unsigned char c) {
    return std::isalnum(c) != 0 || std::string_view("._-:/").find(static_cast<char>(c)) != std::string_view::npos;
  };
  return !name.empty() && name.size() <= 200 && std::ranges::all_of(name, is_good) && !name.starts_with('/') &&
         !name.ends_with('/') && !name.starts_with('.') && name.find("//") == std::string_view::npos &&
         name.find("..") == std::string_view::npos && !name.starts_with('-');
}

std::string name_of_file(const fs::path& file) {
  const auto stem = file.extension() == ".gguf" ? file.stem().string() : file.filename().string();
  return stem.substr(0, stem.size() - split_length(stem));
}

std::vector<StoredModel> Store::list() const {
  std::vector<StoredModel> found;
  if (folder_.empty()) return found;
  look_into(folder_, 0, found);
  std::map<std::string, int> n_of_name;
  for (const auto& model : found) ++n_of_name[to_lower(model.name)];
  const auto aliases = read_aliases(folder_);
  for (auto& model : found) {
    if (n_of_name[to_lower(model.name)] > 1)
      model.name = (model.path.parent_path().lexically_relative(folder_) / model.name).lexically_normal().string();
    for (const auto& [alias, of] : aliases)
      if (to_lower(of) == to_lower(model.name)) model.aliases.push_back(alias);
  }
  std::ranges::sort(found, {}, [](const StoredModel& model) { return to_lower(model.name); });
  return found;
}

Result<StoredModel> Store::find(std::string_view name) const {
  const auto wanted = to_lower(name);
  std::vector<std::string> names;
  for (auto& model : list()) {
    if (to_lower(model.name) == wanted || std::ranges::find(model.aliases, wanted) != model.aliases.end()) return model;
    names.push_back(model.name);
    names.insert(names.end(), model.aliases.begin(), model.aliases.end());
  }
  auto words = fmt::format("[models] {} has no model \"{}\"",
                           folder_.empty() ? "no folder is known, and it" : folder_.string(), name.substr(0, 200));
  if (const auto* entry = catalogue_entry(name); entry != nullptr)
    words += fmt::format("; `zinc-rt pull {}` fetches it ({})", entry->name, entry->size);
  else
    words += did_you_mean(name, names) +
             "; `zinc-rt models` lists those that are there, `zinc-rt models --catalogue` names to fetch";
  return fail(StatusCode::kNotFound, "{}", words);
}

Result<std::string> Store::path_of(const std::string& path_or_name) const {
  std::error_code ignored;
  if (path_or_name.empty() || fs::exists(path_or_name, ignored)) return path_or_name;
  auto found = find(path_or_name);
  if (found) return found->path.string();
  const bool is_path =
      path_or_name.ends_with(".gguf") || path_or_name.starts_with('/') || path_or_name.starts_with('.');
  if (is_path) return path_or_name;  // opening this path will report what is wrong
  return std::unexpected(found.error());
}

Status Store::note_source(const fs::path& file, const std::string& source, const std::string& url,
                          const std::string& sha256, std::uint64_t bytes) {
  ZRT_TRY(auto out, OutputFile::create(sidecar_of(file).string()));
  const OrderedJson words{
      {"source", source}, {"url", url}, {"sha256", sha256}, {"bytes", bytes}, {"fetched", now_text()}};
  ZRT_CHECK_OK(out.write(words.dump(2) + "\n"));
  return out.commit();
}

Status Store::add_alias(const std::string& alias, std::string_view model) const {
  if (!is_good_name(alias))
    return fail(StatusCode::kInvalidArgument,
                "[models] \"{}\" is no good name: 1 to 200 letters, digits and . _ - : / wanted", alias.substr(0, 200));
  ZRT_TRY(const auto of, find(model));
  for (const auto& other : list())
    if (to_lower(other.name) == to_lower(alias))
      return fail(StatusCode::kInvalidArgument, "[models] a model has the name {}: {}", alias, other.path.string());
  auto aliases = read_aliases(folder_);
  aliases[to_lower(alias)] = of.name;
  return write_aliases(folder_, aliases);
}

Result<StoredModel> Store::remove(std::string_view name) const {
  ZRT_TRY(auto model, find(name));
  auto aliases = read_aliases(folder_);
  const bool is_alias = to_lower(model.name) != to_lower(name);
  if (is_alias) {
    aliases.erase(to_lower(name));
    ZRT_CHECK_OK(write_aliases(folder_, aliases));
    model.files.clear();
    return model;
  }
  auto files = model.files;
  files.push_back(sidecar_of(model.path));
  if (fs::is_directory(model.path)) files.push_back(model.path);
  for (const auto& file : files) {
    std::error_code why;
    fs::remove(file, why);
    if (why) return fail(StatusCode::kUnavailable, "[models] {}: {}", file.string(), why.message());
  }
  if (std::erase_if(aliases, [&](const auto& entry) { return to_lower(entry.second) == to_lower(model.name); }) > 0)
    ZRT_CHECK_OK(write_aliases(folder_, aliases));
  return model;
}

}  // namespace zinc_rt::hub
