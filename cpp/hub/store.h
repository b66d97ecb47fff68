// The models folder: models found by name. A model is a GGUF file (all files of a split one) or an MLC folder, in this
// folder or below it, except hidden ones. Its name is the file's name without the ending, letter case aside; if two
// files share a name, it is the path below the folder. aliases.json gives models further names. NAME.gguf.json beside a
// downloaded file says where it came from.
// Thread rule: any thread; each call reads the folder anew.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "zinc_rt/status.h"

namespace zinc_rt::hub {

struct StoredModel {
  std::string name;
  std::filesystem::path path;  // what an engine opens: the file, the first file of a split one, or the folder
  std::vector<std::filesystem::path> files;
  std::uint64_t bytes = 0;           // of all files
  std::vector<std::string> aliases;  // sorted
  std::string source, sha256;        // what it was fetched as; empty: not fetched by this program
};

// ZINC_RT_MODELS, else zinc_rt/models in XDG_DATA_HOME or ~/.local/share. Empty if the user has none of these.
std::filesystem::path default_folder();

class Store {
 public:
  // The folder need not exist.
  explicit Store(std::filesystem::path folder = default_folder()) : folder_(std::move(folder)) {}

  const std::filesystem::path& folder() const { return folder_; }
  std::vector<StoredModel> list() const;  // sorted by name; folders that cannot be read are left out
  // Finds a model by name or alias. Errors: kNotFound, naming the folder, a near name, and how to fetch the model if
  // the catalogue has it.
  Result<StoredModel> find(std::string_view name) const;
  // The path of a model given as a path or as a name. An existing path wins. A text with a slash or ending in .gguf
  // that names no model counts as a path. Errors: those of find().
  Result<std::string> path_of(const std::string& path_or_name) const;

  // Writes the origin of a model's file beside the file, for list(). Errors: kUnavailable.
  static Status note_source(const std::filesystem::path& file, const std::string& source, const std::string& url,
                            const std::string& sha256, std::uint64_t bytes);
  // Errors: kInvalidArgument for a name that a model has or that is not valid; those of find() for `model`.
  Status add_alias(const std::string& alias, std::string_view model) const;
  // Removes an alias, or a model with its files, the notes beside them and its aliases. Errors: those of find();
  // kUnavailable if a file cannot be removed.
  Result<StoredModel> remove(std::string_view name) const;

 private:
  std::filesystem::path folder_;
};

// 1 to 200 letters, digits, '.', '_', '-', ':' and single '/' between them.
bool is_good_name(std::string_view name);
// The model's name for a file name: without the ending and without a split's number.
std::string name_of_file(const std::filesystem::path& file);

}  // namespace zinc_rt::hub
