// The scheduler's view of a request: its tokens, its limits, and its progress.
// Thread rule: the step thread.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "base/sampling.h"
#include "mem/prefix_cache.h"
#include "sched/types.h"

namespace zinc_rt::sched {

enum class Bind : std::uint8_t { kDone, kNoPages, kOverQuota };

struct RequestParams {
  TenantId tenant = 0;
  Qos qos = Qos::kStandard;
  mem::SpanList prompt;
  std::uint32_t max_tokens = 128;  // 0: it ends when its prompt is computed
  Sampling sampling;
  std::vector<TokenBias> bias;            // added to the logits for every pick
  std::vector<std::int32_t> stop_tokens;  // picking one ends the request
  std::uint32_t min_tokens = 0;           // stop tokens are banned from the first so many picks
  std::uint32_t second_text = 0;          // prompt tokens from here on are of type 1; 0: none are
  bool scores_prompt = false;             // the logits of each prompt token but the last are wanted once
  Speculation speculation = {.most = 0};  // tokens that a step may guess behind its last one (Scheduler::propose)
  // Settings for the output rows of its picks (base/output_row.h).
  bool is_masked = false, is_processed = false, wants_logits = false;
  std::string cache_salt;      // prefixes are shared only between requests of one salt
  std::uint32_t n_cached = 0;  // of the prompt's tokens, when the request was placed; for backlog_tokens() alone
  Micros deadline = kNever;
  RequestId after = 0;     // waits until this request's prompt is computed, to share its pages
  std::uint64_t user = 0;  // given back in events
};

struct Request {
  RequestId id = 0;
  RequestParams params;
  mem::SpanList tokens;  // the prompt, then what was picked; room for all that may come; its guess is the draft
  std::uint32_t n_prompt = 0;
  std::uint32_t n_limit = 0;  // tokens that it may have in the end
  std::uint64_t order = 0;    // in which it arrived
  std::uint32_t index = 0;    // its place in the scheduler's table

  // waiting
  Request* previous = nullptr;
  Request* next = nullptr;
  bool is_waiting = false;
  Micros queued_at = 0, waited = 0;  // waiting since when; and how long in all before
  std::uint64_t skipped_in = 0;      // the admission round that passed it over
  std::uint64_t failed_epoch = 0;    // when it last found no room, and why
  Bind failed_bind = Bind::kDone;
  std::uint32_t n_missing = 0;  // pages that were missing when it found no room
  std::uint32_t n_cached = 0;   // tokens that the cache is likely to give it when it gets a slot

  // in a slot
  std::uint32_t slot = kNone;
  std::uint64_t admitted_order = 0;
  std::uint64_t protected_until = 0;                       // number of a step
  Micros turn_ends = 0;                                    // from then on it may have to yield its slot
  std::uint32_t n_before_turn = 0;                         // tokens that it had when it got its slot
  std::uint32_t n_done = 0;                                // tokens whose KV (and recurrent state) is computed
  std::uint32_t n_scored = 0;                              // prompt tokens whose logits were taken, for scores_prompt
  std::uint32_t n_charged = 0;                             // pages that are charged to its tenant
  std::uint32_t n_lent = 0;                                // its last n_lent pages are for drafts and charged to nobody
  mem::PrefixCache::Node root = kNone, node = kNone;       // node: pinned; its path holds the first full pages' tokens
  bool copy_pending = false;                               // a page of the slot is filled by a copy that has not run
  std::uint32_t checkpoint = kNone, checkpoint_pages = 0;  // lent by the cache: the recurrent state after so many pages
  std::uint32_t snapshot_pages = 0;  // a copy of the state is wanted there, since others branched off
  std::uint32_t n_stalled = 0;       // steps in a row in which its full sink held it up
  std::uint64_t decoded_in = 0;      // number of the last step in which it decoded
  std::uint32_t n_drafts = 0;        // tokens of its draft that the present plan takes
  double draft_chance = 0;           // see Scheduler::propose

  std::uint32_t n_preempted = 0;    // by more urgent requests, or for pages
  std::uint32_t n_vain_turns = 0;   // turns in a row that ended before a token was picked
  std::uint32_t cached_tokens = 0;  // of the prompt, from the prefix cache at first admission
  bool was_admitted = false, prompt_done = false;
  bool has_cancel = false;
  Finish cancel = Finish::kCancelled;

  std::uint32_t n_generated() const { return tokens.size() - n_prompt; }
  // The tokens that this request adds to its replica's backlog. While it waits, a cached token counts as a sixteenth,
  // for the time that the request will hold a slot. Without that, a replica with too few slots and a long queue would
  // still attract all requests whose prefix it has cached.
  std::uint32_t n_to_compute() const {
    return n_left() - (is_waiting ? std::min(n_cached - n_cached / 16, n_left()) : 0);
  }
  std::uint32_t n_left() const { return tokens.size() - n_done; }
  bool is_scoring() const { return params.scores_prompt && n_scored + 1 < n_prompt; }
  // The length of the text whose position encoding the next logits need.
  std::uint32_t n_encoded() const { return is_scoring() ? n_scored + 1 : tokens.size(); }
  // Whether the request wants the logits after token i, beyond those from which tokens are picked.
  bool wants_score(std::uint32_t i) const { return params.scores_prompt && i >= n_scored && i + 1 < n_prompt; }
  // Whether a stop token is forbidden as the text's token at this position.
  bool bans_stops(std::uint32_t position) const { return position - n_prompt < params.min_tokens; }
  bool picks() const { return n_limit > n_prompt; }
  Micros waited_at(Micros now) const { return waited + (is_waiting ? now - queued_at : 0); }
};

}  // namespace zinc_rt::sched
