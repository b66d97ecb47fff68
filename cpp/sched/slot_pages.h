// The KV pages of slots: a slot shares pages with the prefix cache, takes others from the pool, and leaves pages to the
// cache. With recurrent layers it also saves a slot's state where pages end and restores it from there. Copies are only
// planned here; the code that runs the step makes them.
// Thread rule: whoever holds the lock of the tenant book. The calls about a request need it to be in a slot, unless
// they say otherwise.
#pragma once

#include <map>
#include <string>

#include "mem/prefix_cache.h"
#include "sched/options.h"
#include "sched/plan.h"
#include "sched/request.h"
#include "sched/slot_table.h"
#include "sched/stats.h"
#include "sched/tenant_book.h"
#include "zinc_rt/status.h"

namespace zinc_rt::sched {

class SlotPages {
 public:
  // The arguments must outlive it. `stats` counts evictions and internal errors.
  SlotPages(const Options& options, TenantBook& tenants, SlotTable& slots, Stats& stats)
      : options_(options),
        tenants_(tenants),
        slots_(slots),
        stats_(stats),
        pool_(options.n_pages),
        prefixes_(pool_, options.hash_key, options.n_checkpoints) {}
  SlotPages(const SlotPages&) = delete;

  const mem::PagePool& pool() const { return pool_; }
  const mem::PrefixCache& prefixes() const { return prefixes_; }
  std::size_t n_scopes() const { return roots_.size(); }  // of prefixes that are not shared

  // Looks for the pages that a waiting request needs: its cached prefix, then room for its other tokens and one more.
  // kDone: the prefix is pinned until bind() or let_go(). Otherwise the request's failed_bind and n_missing say what is
  // missing. others_run: leaves Options::prefix_part of the pages alone.
  Bind find_room(Request& request, bool others_run);
  void let_go() { prefixes_.unpin(found_.node); }
  // Gives a request without pages what find_room() found for it.
  void bind(Request& request, StepPlan& plan);

  // Takes pages until the slot has room for n_tokens. On an error the slot keeps the pages that it got. Errors:
  // kNoPages; kOverQuota, if the tenant's quota is the limit.
  Bind grow(Request& request, std::uint32_t n_tokens);
  // Lends the slot pages for drafts until it has room for n_tokens. Only free pages are lent: no cached prefix is dropped,
  // no page that others reserved is taken, and the tenant's quota is not exceeded. Lent pages are charged to nobody.
  void lend(Request& request, std::uint32_t n_tokens);
  // Ends the loan after the step: the slot has n_tokens now. Pages that hold some of them are charged to the tenant as
  // far as its quota allows; the others are given back. Returns the number of tokens for which the slot then has pages.
  std::uint32_t settle(Request& request, std::uint32_t n_tokens);
  // Plans a copy of the recurrent state after `at` tokens, if a page ends there and the cache lends a checkpoint.
  void save_state(Request& request, std::uint32_t at, StepPlan& plan);
  // After tokens [first, n_done) were computed: puts full pages into the cache, so that others share them at once.
  void publish(Request& request, std::uint32_t first);
  // Notes that the copies before the step are done.
  void finish_copies(StepPlan& plan);
  // Takes all pages from the slot. Those in the cache stay there; the others go back to the pool. keep: the pages are
  // valid, so the cache may keep more of them.
  void release(Request& request, bool keep, StepPlan& plan);
  // Also releases the pages, and the slot begins the text again with another variant of the position encoding.
  void begin_again(Request& request, StepPlan& plan);

  // Frees pages for slots without a request. Errors: kExhausted with both numbers.
  Status make_free(std::uint32_t n_pages);
  void take(std::uint32_t slot, std::uint32_t n_pages);  // REQUIRES: as many are free
  void give_back(std::uint32_t slot);
  // Scheduler::publish_lease
  void publish(std::uint32_t slot, TenantId tenant, const std::string& salt, mem::SpanView tokens);

  // Scheduler::cached_tokens
  std::uint32_t cached_tokens(TenantId tenant, const std::string& salt, mem::SpanView prompt) const;
  // As Scheduler::flush_prefixes. with_group: also drops what the tenant brought into its isolation group's scopes.
  std::uint32_t flush(TenantId tenant, bool with_group);

 private:
  using Node = mem::PrefixCache::Node;
  struct Scope {
    std::uint64_t owner = 0;
    std::uint32_t variant = 0;
    std::string salt;
    auto operator<=>(const Scope&) const = default;
  };
  std::uint64_t owner_of(TenantId tenant) const;
  std::uint32_t variant_of(const Request& request) const { return options_.variant_of(request.n_encoded()); }
  Node root_of(const Request& request);
  Node root_of(TenantId tenant, std::uint32_t variant, const std::string& salt);
  void drop_unused_roots();
  std::uint64_t available(TenantId tenant) const;
  std::uint32_t take_page(const Request& request);
  mem::PrefixCache::Match usable(mem::PrefixCache::Match match, Node root) const;
  void replace_page(Request& request, std::uint32_t index, std::uint32_t page);
  void publish_tail(Request& request);
  void drop_moves(Request& request, StepPlan& plan);
  void expect(const Status& status) { stats_.internal_errors += status ? 0 : 1; }

  const Options& options_;
  TenantBook& tenants_;
  SlotTable& slots_;
  Stats& stats_;
  mem::PagePool pool_;
  mem::PrefixCache prefixes_;
  std::map<Scope, Node> roots_;
  std::size_t most_roots_ = 1024;  // beyond so many, unused roots are looked for
  mem::PrefixCache::Match found_;  // by find_room(), for bind()
  std::uint64_t n_takes_ = 0;      // pages that were asked for
};

}  // namespace zinc_rt::sched
