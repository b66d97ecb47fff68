// SlotPages manages the KV pages of a replica's slots for the scheduler. A slot shares pages with the prefix cache and
// takes further pages from the pool. When its request ends, its pages stay in the cache. For models with recurrent
// layers it also saves a slot's state at the end of a page, as a checkpoint, and restores it from a checkpoint. It only
// plans these copies; the runner makes them around the step.
// Thread rule: only the thread that holds the lock of the tenant book. A function with a request as parameter REQUIRES
// that the request is in a slot, unless its comment says otherwise.
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
  // The arguments must outlive this object. `stats` counts evictions and internal errors.
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
  std::size_t n_scopes() const { return roots_.size(); }  // scopes share no prefixes with each other

  // Looks for the pages that a waiting request needs: its cached prefix, then room for its other tokens and one more.
  // If it returns kDone, the prefix is pinned until bind() or let_go(). Otherwise the request's failed_bind and
  // n_missing tell what was missing. others_run: other requests run, so the fraction Options::prefix_part of all pages
  // must remain for the prefix cache.
  Bind find_room(Request& request, bool others_run);
  void let_go() { prefixes_.unpin(found_.node); }
  // Gives the request's slot the cached prefix that find_room() found. REQUIRES: the slot has no pages yet.
  void bind(Request& request, StepPlan& plan);

  // Takes pages until the slot has room for n_tokens. If the call fails, the slot still has the pages that it got so
  // far. Returns kNoPages, or kOverQuota if the tenant's quota is the limit.
  Bind grow(Request& request, std::uint32_t n_tokens);
  // Lends pages to the slot for drafts, until it has room for n_tokens or no free page is left. No cached prefix is
  // dropped for a draft, no page that others reserved is taken, and the tenant's quota is not exceeded. Lent pages are
  // charged to nobody.
  void lend(Request& request, std::uint32_t n_tokens);
  // Ends the loan after the step, when the slot has n_tokens. Lent pages that hold some of these tokens are charged to
  // the tenant as far as its quota allows. All other lent pages are returned to the pool. Returns for how many tokens
  // the slot then has pages.
  std::uint32_t settle(Request& request, std::uint32_t n_tokens);
  // Plans to save the slot's recurrent state at the last end of a page that it reaches in the step: after the item's
  // tokens, or among the tokens that it replays. Does nothing if there is no such end, or if the cache lends no
  // checkpoint.
  void save_state(Request& request, PlanItem& item, StepPlan& plan);
  // Called after the step computed tokens [first, n_done). Puts the pages that became full into the prefix cache, so
  // that other requests share them at once.
  void publish(Request& request, std::uint32_t first);
  // Called when the plan's page copies and restores have been made. Drops the references to the copied pages.
  void finish_copies(StepPlan& plan);
  // Takes all pages from the slot. Pages that are in the cache stay in it; all other pages return to the pool. `keep`:
  // the contents are valid, so the last, partly filled page and the recurrent state may also go into the cache.
  void release(Request& request, bool keep, StepPlan& plan);
  // Releases the slot's pages, so that the slot starts the text again with another variant of the position encoding.
  void begin_again(Request& request, StepPlan& plan);

  // Evicts cached prefixes until n_pages are free, for a slot without a request (a lease). Errors: kExhausted with both
  // numbers.
  Status make_free(std::uint32_t n_pages);
  void take(std::uint32_t slot, std::uint32_t n_pages);  // REQUIRES: as many pages are free
  void give_back(std::uint32_t slot);
  // Puts the full pages of a leased slot (a slot without a request) into the cache, as the prefix `tokens` of the
  // tenant and salt.
  void publish(std::uint32_t slot, TenantId tenant, const std::string& salt, mem::SpanView tokens);

  // Returns how many tokens of the prompt the prefix cache holds for the tenant and salt. This does not count as a use.
  std::uint32_t cached_tokens(TenantId tenant, const std::string& salt, mem::SpanView prompt) const;
  // Drops the tenant's cached prefixes that no request uses, and returns how many pages were freed. Prefixes that the
  // tenant computed for its isolation group are dropped only if with_group.
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
  // The root in the prefix cache of each scope.
  std::map<Scope, Node> roots_;
  std::size_t most_roots_ = 1024;  // if more scopes exist, the scopes without prefixes are dropped
  mem::PrefixCache::Match found_;  // set by find_room(), used by bind()
  std::uint64_t n_takes_ = 0;      // number of page allocations so far
};

}  // namespace zinc_rt::sched
