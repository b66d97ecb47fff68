// Store is the models folder, in which models are found by name. A model is a GGUF file (or all files of a split model)
// or an MLC folder. It lies in the models folder or in a folder below it; hidden files and folders are not searched.
// Its name is the file's name without the ending; letter case does not count. If two files would have the same name,
// their names are their paths below the folder. The file aliases.json holds more names of models. NAME.gguf.json beside
// a downloaded file records from where the file was downloaded.
// Thread rule: any thread; each call reads the folder from the disk.
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
  std::filesystem::path path;  // path to open: the file, the first file of a split model, or the folder
  std::vector<std::filesystem::path> files;
  std::uint64_t bytes = 0;           // sum of the sizes of all files
  std::vector<std::string> aliases;  // other names of the model, in ascending order
  // If this program downloaded the model, these are the reference that was used and the file's hash. Otherwise both are
  // empty.
  std::string source, sha256;
};

// Returns ZINC_RT_MODELS, or else zinc_rt/models in XDG_DATA_HOME or ~/.local/share. Returns an empty path if the user
// has none of these.
std::filesystem::path default_folder();

class Store {
 public:
  // Uses the models in `folder`, which need not exist.
  explicit Store(std::filesystem::path folder = default_folder()) : folder_(std::move(folder)) {}

  const std::filesystem::path& folder() const { return folder_; }
  std::vector<StoredModel> list() const;  // sorted by name; folders that cannot be read are left out
  // Finds a model by name or alias. Errors: kNotFound. The message has the folder, a similar name, and how to download
  // the model if the catalogue has it.
  Result<StoredModel> find(std::string_view name) const;
  // Returns the path of a model that the user gave as a path or as a name. A path that exists takes precedence over a
  // name. A text that names no model but has a slash or ends in .gguf is returned as a path. Errors: those of find().
  Result<std::string> path_of(const std::string& path_or_name) const;

  // Records where a downloaded model's file came from, in a .json file beside it that list() reads. Errors:
  // kUnavailable.
  static Status note_source(const std::filesystem::path& file, const std::string& source, const std::string& url,
                            const std::string& sha256, std::uint64_t bytes);
  // Adds `alias` as another name of `model`. Errors: kInvalidArgument if a model has the name `alias` already or
  // is_good_name(alias) is false; those of find() for `model`.
  Status add_alias(const std::string& alias, std::string_view model) const;
  // Removes an alias. If `name` is a model's own name, removes its files, the .json files beside them, and its aliases.
  // Errors: those of find(); kUnavailable if a file cannot be removed.
  Result<StoredModel> remove(std::string_view name) const;

 private:
  std::filesystem::path folder_;
};

// Returns whether the name has 1 to 200 letters, digits, '.', '_', '-', ':', and single '/' between them.
bool is_good_name(std::string_view name);
// Returns the name of the model in a file: the file's name without the ending and without the number of a split file.
std::string name_of_file(const std::filesystem::path& file);

}  // namespace zinc_rt::hub
