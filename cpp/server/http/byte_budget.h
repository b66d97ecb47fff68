// ByteBudget limits the bytes that unanswered requests hold in memory: in total, per peer and per owner.
// Thread rule: any thread; a Hold may be used by one thread at a time.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace zinc_rt::server {

class ByteBudget {
 public:
  struct Limits {
    std::size_t in_all = 0;
    std::size_t per_address = 0;  // limit per IP address of the peer
    std::size_t per_owner = 0;    // limit per owner; bytes without an owner count only for their address
  };
  enum class Full : unsigned char { kNo, kInAll, kAddress, kOwner };

  // Hold counts the bytes that one request or connection holds. Its destructor gives them back to the budget.
  class Hold {
   public:
    Hold() = default;
    Hold(std::shared_ptr<ByteBudget> budget, std::string address, std::string owner)
        : budget_(std::move(budget)), address_(std::move(address)), owner_(std::move(owner)) {}
    ~Hold() { release(); }
    Hold(Hold&& other) noexcept { *this = std::move(other); }
    Hold& operator=(Hold&& other) noexcept;

    // Changes the number of held bytes to n. If a limit prevents this, returns which limit and leaves the number
    // unchanged; otherwise returns kNo.
    Full resize(std::size_t n);
    void release();
    std::size_t size() const { return size_; }

   private:
    std::shared_ptr<ByteBudget> budget_;
    std::string address_, owner_;
    std::size_t size_ = 0;
  };

  explicit ByteBudget(const Limits& limits) : limits_(limits) {}
  const Limits& limits() const { return limits_; }
  std::size_t held() const;

 private:
  Full change(const std::string& address, const std::string& owner, std::size_t before, std::size_t now);

  const Limits limits_;
  mutable std::mutex mutex_;
  std::size_t held_ = 0;
  std::map<std::string, std::size_t> by_address_, by_owner_;  // held bytes; only addresses and owners that hold any
};

}  // namespace zinc_rt::server
