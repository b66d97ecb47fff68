// Where tests write models: a folder of this process, since tests run side by side; removed at its end.
// Thread rule: any thread.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace zinc_rt {

inline const std::string& model_folder() {
  struct Folder {
    std::string path = ::testing::TempDir() + "zrt_models_XXXXXX";
    Folder() { path = ::mkdtemp(path.data()); }
    ~Folder() {
      std::error_code ignored;
      std::filesystem::remove_all(path, ignored);
    }
  };
  static const Folder folder;
  return folder.path;
}

}  // namespace zinc_rt
