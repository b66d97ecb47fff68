#include "base/error.h"

#include <atomic>

namespace zinc_rt {
namespace {

std::atomic<Reword> reword_now{nullptr};

}  // namespace

void reword_messages(Reword reword) {
  reword_now = reword;
}

std::string worded(std::string message) {
  const Reword reword = reword_now;
  return reword == nullptr ? message : reword(std::move(message));
}

}  // namespace zinc_rt
