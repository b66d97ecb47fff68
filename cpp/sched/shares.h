// Divides slots between tenants over time, for one replica or for all replicas of a model. A tenant's share is the
// number of the used slots that it should have, by its weight and up to what it asks for. Its arrears, in slots x
// seconds, are how far it has been behind its share. Both exist per level. Level q counts only requests of class q and
// less urgent ones, and divides the slots that those have. So slots of a more urgent class count against nobody.
// Thread rule: whoever holds the lock of the tenant book. Allocates only when a tenant is new.
#pragma once

#include <array>
#include <vector>

#include "sched/tenant_book.h"

namespace zinc_rt::sched {

class Shares {
 public:
  // most_arrears: arrears stay within plus or minus one slot for this long, so a tenant that ran alone does not pay for
  // it for long.
  explicit Shares(Micros most_arrears) : most_arrears_(1e-6 * static_cast<double>(most_arrears)) {}

  void note_waiting(TenantId tenant, Qos qos, int more) {
    of(tenant).lines[index(qos)].waiting += more;
    n_waiting_ += more;
  }
  void note_running(TenantId tenant, Qos qos, int more) { of(tenant).lines[index(qos)].running += more; }
  void note_admitted(TenantId tenant, Qos qos, Micros now) { of(tenant).lines[index(qos)].admitted_at = now; }
  // When the tenant's requests of this class last got a slot.
  Micros admitted_at(TenantId tenant, Qos qos) const { return at(tenant).lines[index(qos)].admitted_at; }

  // Adds the time since the last call, with the shares that held during it.
  void settle(Micros now);
  // Computes the shares that hold from now on. A tenant whose quota allows no further request asks only for what it
  // has.
  void share_out(const TenantBook& tenants, Micros now);
  void forget(TenantId tenant) { of(tenant) = {}; }
  // If nobody waits, nobody is owed anything.
  void rest_if_nobody_waits() { is_contended_ = is_contended_ && n_waiting_ > 0; }

  double share(TenantId tenant, Qos level) const { return at(tenant).share[index(level)]; }
  double arrears(TenantId tenant, Qos level) const { return at(tenant).arrears[index(level)]; }
  std::uint32_t running(TenantId tenant, Qos level) const;
  std::uint32_t waiting(TenantId tenant, Qos level) const;
  bool is_contended() const { return is_contended_; }
  // Whether the tenant has less, or more, than its share, both now and over time.
  bool is_owed(TenantId tenant, Qos level) const;
  bool has_too_much(TenantId tenant, Qos level) const;

 private:
  struct Line {  // of a tenant and class
    std::int64_t running = 0, waiting = 0;
    Micros admitted_at = INT64_MIN / 2;
  };
  struct Account {
    std::array<Line, kQosCount> lines;
    std::array<double, kQosCount> share{}, arrears{};
  };
  struct Claim {
    TenantId tenant = 0;
    double weight = 0, wanted = 0;
  };
  static std::size_t index(Qos qos) { return static_cast<std::size_t>(qos); }
  // The account of a tenant; null if it never asked for anything.
  const Account& at(TenantId tenant) const {
    static const Account none{};
    return tenant < accounts_.size() ? accounts_[tenant] : none;
  }
  Account& of(TenantId tenant) {
    if (tenant >= accounts_.size()) accounts_.resize(tenant + 1), claims_.reserve(accounts_.capacity());
    return accounts_[tenant];
  }
  void share_out_level(Qos level, const TenantBook& tenants, Micros now);

  double most_arrears_;
  std::vector<Account> accounts_;
  std::vector<Claim> claims_;   // scratch
  std::int64_t n_waiting_ = 0;  // of all tenants and classes
  Micros settled_at_ = 0;
  bool is_contended_ = false;
};

}  // namespace zinc_rt::sched
