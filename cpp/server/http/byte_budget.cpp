#include "server/http/byte_budget.h"

#include <utility>

namespace zinc_rt::server {
namespace {

std::size_t of(const std::map<std::string, std::size_t>& held, const std::string& who) {
  const auto found = held.find(who);
  return found == held.end() ? 0 : found->second;
}

void set(std::map<std::string, std::size_t>& held, const std::string& who, std::size_t n) {
  if (n == 0)
    held.erase(who);
  else
    held[who] = n;
}

}  // namespace

ByteBudget::Hold& ByteBudget::Hold::operator=(Hold&& other) noexcept {
  if (this == &other) return *this;
  release();
  budget_ = std::move(other.budget_);
  address_ = std::move(other.address_);
  owner_ = std::move(other.owner_);
  size_ = std::exchange(other.size_, 0);
  return *this;
}

ByteBudget::Full ByteBudget::Hold::resize(std::size_t n) {
  if (budget_ == nullptr || n == size_) return Full::kNo;
  const auto full = budget_->change(address_, owner_, size_, n);
  if (full == Full::kNo) size_ = n;
  return full;
}

void ByteBudget::Hold::release() {
  resize(0);
}

std::size_t ByteBudget::held() const {
  const std::lock_guard lock(mutex_);
  return held_;
}

ByteBudget::Full ByteBudget::change(const std::string& address, const std::string& owner, std::size_t before,
                                    std::size_t now) {
  const std::lock_guard lock(mutex_);
  const std::size_t in_all = held_ - before + now, at_address = of(by_address_, address) - before + now;
  const std::size_t at_owner = owner.empty() ? 0 : of(by_owner_, owner) - before + now;
  if (now > before) {  // a decrease is never refused
    if (at_owner > limits_.per_owner) return Full::kOwner;
    if (at_address > limits_.per_address) return Full::kAddress;
    if (in_all > limits_.in_all) return Full::kInAll;
  }
  held_ = in_all;
  set(by_address_, address, at_address);
  if (!owner.empty()) set(by_owner_, owner, at_owner);
  return Full::kNo;
}

}  // namespace zinc_rt::server
