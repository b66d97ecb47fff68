// `zinc-rt --version`: prints the version. The first line is for programs; the other lines describe the build for
// people.
#include <fmt/format.h>
#include <openssl/crypto.h>
#include <sqlite3.h>

#include "executor/registry.h"
#include "tools/command.h"
#include "zinc_rt/version.h"

namespace zinc_rt::tools {

extern const char* const kCommit;  // written by cmake/commit.cmake

std::string version_text() {
#if defined(__clang__)
  const std::string compiler = fmt::format("clang {}", __clang_version__);
#else
  const std::string compiler = fmt::format("g++ {}", __VERSION__);
#endif
#if defined(__OPTIMIZE__)
  const char* how = "optimized";
#else
  const char* how = "not optimized";
#endif
  std::string text = fmt::format("zinc-rt {}\ncommit {}\n{}, {}", kVersion, kCommit, compiler, how);
  for (const auto& [executor, tier] : executor_tiers())
    text += fmt::format("\n{}: {}", tier.name, tier.built_with != nullptr ? tier.built_with() : tier.description);
  for (const ExecutorKind* kind : executor_kinds()) {
    if (kind->left_out == nullptr) continue;
    for (const LeftOutExecutorTier& tier : kind->left_out())
      text += fmt::format("\nwithout {}: {}", tier.name, tier.why);
  }
  return text + fmt::format("\nOpenSSL {} (TLS), SQLite {} (ledger)", OpenSSL_version(OPENSSL_VERSION_STRING),
                            sqlite3_libversion());
}

}  // namespace zinc_rt::tools
