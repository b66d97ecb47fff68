// Shares divides slots fairly between tenants over time, for one replica or for all replicas of a model. A tenant's
// share is how many of the used slots it should have by its weight, but at most as many as it has requests. Its
// arrears, in slots x seconds, tell how far it has been below its share. Shares and arrears are computed per level.
// Level q counts only requests of class q and of less urgent classes, and divides only the slots of these requests. So
// slots of a more urgent class count against nobody.
// Thread rule: only the thread that holds the lock of the tenant book may call it. It allocates only for a new tenant.
#pragma once

#include <array>
#include <vector>

#include "sched/tenant_book.h"

namespace zinc_rt::sched {

class Shares {
 public:
  // Arrears are limited to plus or minus one slot during most_arrears. So a tenant that ran alone for a day is not held
  // back for long afterwards.
  explicit Shares(Micros most_arrears) : most_arrears_(1e-6 * static_cast<double>(most_arrears)) {}

  void note_waiting(TenantId tenant, Qos qos, int more) {
    of(tenant).lines[index(qos)].waiting += more;
    n_waiting_ += more;
  }
  void note_running(TenantId tenant, Qos qos, int more) { of(tenant).lines[index(qos)].running += more; }
  void note_admitted(TenantId tenant, Qos qos, Micros now) { of(tenant).lines[index(qos)].admitted_at = now; }
  // Returns when a request of the tenant and class last got a slot.
  Micros admitted_at(TenantId tenant, Qos qos) const { return at(tenant).lines[index(qos)].admitted_at; }

  // Adds to the arrears what happened since the last call, by the shares that held during that time.
  void settle(Micros now);
  // Computes the shares that hold from now on. If a tenant's quota allows no further slot, its share is at most the
  // slots that it has.
  void share_out(const TenantBook& tenants, Micros now);
  void forget(TenantId tenant) { of(tenant) = {}; }
  // Ends the contention for slots if no request waits, because then nobody is owed a slot.
  void rest_if_nobody_waits() { is_contended_ = is_contended_ && n_waiting_ > 0; }

  double share(TenantId tenant, Qos level) const { return at(tenant).share[index(level)]; }
  double arrears(TenantId tenant, Qos level) const { return at(tenant).arrears[index(level)]; }
  std::uint32_t running(TenantId tenant, Qos level) const;
  std::uint32_t waiting(TenantId tenant, Qos level) const;
  bool is_contended() const { return is_contended_; }
  // is_owed() returns whether the tenant has less than its share, both now and over time. has_too_much() returns
  // whether it has more than its share, both now and over time.
  bool is_owed(TenantId tenant, Qos level) const;
  bool has_too_much(TenantId tenant, Qos level) const;

 private:
  // Line counts the requests of one tenant and class.
  struct Line {
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
  // Returns the account of a tenant; an empty account if the tenant never had a request.
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
  std::vector<Claim> claims_;   // scratch of share_out_level()
  std::int64_t n_waiting_ = 0;  // waiting requests of all tenants and classes
  Micros settled_at_ = 0;
  bool is_contended_ = false;
};

}  // namespace zinc_rt::sched
