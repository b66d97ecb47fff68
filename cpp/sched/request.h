// A request as the scheduler sees it: its tokens, its limits, and how far it is computed. It knows nothing of text,
// sinks or devices.
// Thread rule: the step thread.
#pragma once

#include <algorithm>
#include <optional>
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
  std::uint32_t max_tokens = 128;  // 0: the request ends when its prompt is computed
  Sampling sampling;
  std::vector<TokenBias> bias;            // added to the logits for every pick
  std::vector<std::int32_t> stop_tokens;  // the request ends when one of them is picked
  std::uint32_t min_tokens = 0;           // stop tokens are banned from the first min_tokens picks
  std::uint32_t second_text = 0;          // BERT models: prompt tokens from here on are of type 1; 0: none are
  bool scores_prompt = false;             // the client wants logprobs of each prompt token except the first
  std::uint32_t n_prompt_logprobs = 0;    // how many of the most likely tokens these list
  Speculation speculation = {.most = 0};  // limits of the guessed tokens per step (Scheduler::propose)
  // Copied into the output rows of the request's picks (base/output_row.h).
  bool is_masked = false, is_processed = false, wants_logits = false;
  std::optional<std::uint32_t> n_logprobs;
  std::string cache_salt;  // requests share cached prefixes only if their salts are equal
  // Prompt tokens that were cached when the request was placed; only backlog_tokens() uses it.
  std::uint32_t n_cached = 0;
  Micros deadline = kNever;
  // A request that computes the same prompt; this request waits until that prompt is computed, to share its pages.
  RequestId after = 0;
  std::uint64_t user = 0;  // the engine's handle of the request, returned in events
};

struct Request {
  RequestId id = 0;
  RequestParams params;
  // The prompt, then the picked tokens, with memory reserved for all tokens that may follow. The list's guess holds the
  // draft.
  mem::SpanList tokens;
  std::uint32_t n_prompt = 0;
  std::uint32_t n_limit = 0;  // the most tokens of prompt and answer together
  std::uint64_t order = 0;    // rises with each arriving request
  std::uint32_t index = 0;    // index in the scheduler's table of requests

  // The next members are used while the request waits for a slot.
  Request* previous = nullptr;
  Request* next = nullptr;
  bool is_waiting = false;
  Micros queued_at = 0, waited = 0;  // when the present wait began; total of all earlier waits
  std::uint64_t skipped_in = 0;      // the last admission round that skipped the request
  // TenantBook::room_epoch() when the request last found no room; failed_bind tells why.
  std::uint64_t failed_epoch = 0;
  Bind failed_bind = Bind::kDone;
  std::uint32_t n_missing = 0;  // number of pages that were missing when the request last found no room
  std::uint32_t n_cached = 0;   // tokens that the prefix cache will probably supply when the request gets a slot

  // The next members are used while the request is in a slot.
  std::uint32_t slot = kNone;
  std::uint64_t admitted_order = 0;
  std::uint64_t protected_until = 0;  // number of the step until which no more urgent request may preempt this one
  Micros turn_ends = 0;               // time from which on the request may have to yield its slot (turns.cpp)
  std::uint32_t n_before_turn = 0;    // length of the text, in tokens, when the request got its slot
  std::uint32_t n_done = 0;           // tokens whose KV is computed
  std::uint32_t n_unapplied = 0;      // how many of these the slot's recurrent state does not include: right guesses
  std::uint32_t n_scored = 0;         // if scores_prompt: prompt tokens after which logprobs were computed
  std::uint32_t n_charged = 0;        // pages of the slot that are charged to its tenant
  std::uint32_t n_lent = 0;           // the slot's last n_lent pages are lent for drafts and charged to nobody
  // `root` is the prefix cache's node where the request's scope begins. `node` is the pinned node whose path holds the
  // tokens of the slot's first full pages.
  mem::PrefixCache::Node root = kNone, node = kNone;
  bool copy_pending = false;  // true from planning a copy into one of the slot's pages until the copy has run
  // If the cache lent a checkpoint: the recurrent state after the first checkpoint_pages pages is kept in it.
  std::uint32_t checkpoint = kNone, checkpoint_pages = 0;
  // Number of pages after which other requests continued with different tokens, so that the recurrent state there is
  // worth a checkpoint. 0: there is no such place.
  std::uint32_t snapshot_pages = 0;
  std::uint32_t n_stalled = 0;   // consecutive steps that the request missed because its sink was full
  std::uint64_t decoded_in = 0;  // number of the last step in which the request decoded
  // Number of the last step in which a guessed token of the request was picked, counted from 1; 0: there was none.
  std::uint64_t guessed_in = 0;
  std::uint32_t n_drafts = 0;  // guessed tokens that the present plan computes for the request
  double draft_chance = 0;     // the argument `chance` of Scheduler::propose
  bool is_trial = false;       // the argument `is_trial` of Scheduler::propose

  // Preemptions by more urgent requests or for pages; slots yielded at the end of a turn do not count.
  std::uint32_t n_preempted = 0;
  std::uint32_t n_vain_turns = 0;   // consecutive turns (turns.cpp) that ended before a token was picked
  std::uint32_t cached_tokens = 0;  // prompt tokens that the prefix cache supplied at the first admission
  bool was_admitted = false, prompt_done = false;
  bool has_cancel = false;
  Finish cancel = Finish::kCancelled;

  std::uint32_t n_generated() const { return tokens.size() - n_prompt; }
  // Returns the tokens that this request adds to its replica's backlog, by which new requests choose a replica. While
  // it waits, a cached token counts as a sixteenth of a token, because the request will hold a slot for some time.
  // Otherwise a replica with a long queue and too few slots would attract all further requests whose prefix it has
  // cached.
  std::uint32_t n_to_compute() const {
    return n_left() - (is_waiting ? std::min(n_cached - n_cached / 16, n_left()) : 0);
  }
  std::uint32_t n_left() const { return tokens.size() - n_done; }
  bool is_scoring() const { return params.scores_prompt && n_scored + 1 < n_prompt; }
  // The length of the text for which the next logits are computed. The length decides which variant of the position
  // encoding these logits need.
  std::uint32_t n_encoded() const { return is_scoring() ? n_scored + 1 : tokens.size(); }
  // Returns whether the client wants the logprobs after token i although no token is picked there (scores_prompt).
  bool wants_score(std::uint32_t i) const { return params.scores_prompt && i >= n_scored && i + 1 < n_prompt; }
  // Returns whether min_tokens forbids a stop token at this position of the text.
  bool bans_stops(std::uint32_t position) const { return position - n_prompt < params.min_tokens; }
  bool picks() const { return n_limit > n_prompt; }
  Micros waited_at(Micros now) const { return waited + (is_waiting ? now - queued_at : 0); }
};

}  // namespace zinc_rt::sched
