#include "engine/step_loop.h"

#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "base/log.h"
#include "base/platform/this_thread.h"
#include "engine/clock.h"

namespace zinc_rt {
namespace {

// At most this many threads compute log-probabilities and masks. A step has at most about 64 rows, and waking more
// threads for them costs more than they save.
constexpr int kMostRowThreads = 16;

}  // namespace

StepLoop::StepLoop(DeviceId device, std::uint32_t number, int n_threads, Shared shared)
    : device_(std::move(device)),
      number_(number),
      shared_(std::move(shared)),
      row_threads_(std::min(n_threads, kMostRowThreads)) {
  inbox_.reserve(64);
  taken_.reserve(64);
  if (shared_.drive == Drive::kPump) return;
  thread_ = std::thread([this] {
    name_thread("zrt-step");
    run();
  });
}

StepLoop::~StepLoop() {
  stop();
  join();
}

bool StepLoop::post(std::vector<Command> commands) {
  {
    const std::lock_guard lock(inbox_mutex_);
    if (stop_) return false;
    std::ranges::move(commands, std::back_inserter(inbox_));
  }
  inbox_filled_.notify_one();
  return true;
}

void StepLoop::stop() {
  {
    const std::lock_guard lock(inbox_mutex_);
    stop_ = true;
  }
  inbox_filled_.notify_all();
}

double StepLoop::step_ms() const {
  const auto began = look_began_.load(std::memory_order_relaxed);
  return began == 0 ? 0 : 1e-3 * static_cast<double>(std::max<sched::Micros>(0, now_us() - began));
}

void StepLoop::join() {
  if (thread_.joinable()) thread_.join();
  if (shared_.drive == Drive::kPump) end_all();
}

void StepLoop::take_commands() {
  {
    const std::lock_guard lock(inbox_mutex_);
    taken_.swap(inbox_);
  }
  const auto now = now_us();
  for (Command& command : taken_) apply(command, now);
  taken_.clear();
}

void StepLoop::apply(Command& command, sched::Micros now) {
  Generation& g = *command.generation;
  Replica& replica = *g.replica;
  // The model may have been removed after the request was checked or had ended.
  const bool is_loaded = replica.is_loaded();
  if (command.kind == Command::kEnd) {
    if (is_loaded) replica.runner().scheduler().cancel(g.id, command.reason);
    return;
  }
  const auto n_tokens = g.pending.prompt.size() - g.pending.n_cached;
  if (const auto leader = std::move(g.leader)) g.pending.after = leader->id;
  const auto user = g.pending.user = generations_.add(g);
  Result<sched::RequestId> id =
      is_loaded ? replica.runner().scheduler().submit(std::move(g.pending), now)
                : fail(StatusCode::kUnavailable, "[engine] model \"{}\" was removed", g.model().name());
  replica.tokens_on_their_way -= n_tokens;
  if (id) {
    g.id = *id;
    if (shared_.timeline.is_on())
      shared_.timeline.name_request(replica.runner().scheduler().options().model_id, *id, g.name());
    return;
  }
  generations_.remove(user);
  OutputEvent event;
  event.kind = OutputKind::kRefused;
  event.generation = &g;
  event.error = new Error(std::move(id.error()));
  shared_.output.push(event);
}

bool StepLoop::process(std::uint64_t user, std::span<const std::int32_t> tokens, std::span<float> logits) {
  return generations_[user].process(tokens, logits);
}

spec::Experience& StepLoop::experience_of(const Generation& g) {
  const std::uint32_t tenant = g.tenant().id;
  if (tenant >= experience_.size()) experience_.resize(tenant + 1);
  return experience_[tenant];
}

// Returns a guess of the request's next tokens. If the request has a grammar, the guess ends before the first token
// that is not allowed, because such a token cannot be picked. If that leaves no token, the guess consists of the tokens
// that the grammar forces. To know them, the mask must be computed before the device begins. So forced tokens are
// guessed only if at most kFewMasks masks must be computed for this step.
spec::Guess StepLoop::guess(std::uint64_t user) {
  constexpr std::size_t kFewMasks = 4;
  Generation& g = generations_[user];
  spec::Drafter& drafter = *g.drafter();
  const spec::Experience& experience = experience_of(g);
  spec::Guess guess = drafter.guess(experience);
  AnswerMask* mask = g.mask().get();
  if (mask == nullptr) return guess;
  if (!mask->is_quick() || mask->is_making()) return {};
  guess.tokens = mask->guess(guess.tokens);
  if (!guess.tokens.empty() || quick_masks_.size() > kFewMasks) return guess;
  return drafter.forced(mask->guess_forced(drafter.most()), experience);
}

double StepLoop::chance_of_model(std::uint64_t user) {
  Generation& g = generations_[user];
  const auto& mask = g.mask();
  const bool is_slow = mask && (!mask->is_quick() || mask->is_making());
  return is_slow ? 0 : g.drafter()->chance_of_model(experience_of(g));
}

// Returns the draft model's guess up to the first token that the request's grammar does not allow.
spec::Guess StepLoop::guess_of_model(std::uint64_t user, std::span<const std::int32_t> tokens) {
  Generation& g = generations_[user];
  if (const auto& mask = g.mask()) tokens = mask->guess(tokens);
  return g.drafter()->of_model(tokens, experience_of(g));
}

// Returns the mask of one output row. The executor calls this while the device computes. The first call of a step
// computes all quick masks on all threads.
std::optional<std::span<const std::uint32_t>> StepLoop::mask(std::uint64_t user, std::uint32_t n_guessed) {
  row_threads_.parallel_for(quick_masks_.size(), [&](std::uint64_t i, int) { quick_masks_[i]->make(); });
  quick_masks_.clear();
  return generations_[user].mask_words(n_guessed);
}

// Decides where stale masks are computed: quick masks within the step (quick_masks_), slow masks on MaskMaker's
// threads.
void StepLoop::before_step(std::span<const std::uint64_t> users) {
  details_.clear();  // not empty if the previous step failed
  quick_masks_.clear();
  for (const auto user : users) {
    const Generation& g = generations_[user];
    const auto& mask = g.mask();
    if (!mask || !mask->is_stale()) continue;
    if (mask->is_quick()) {
      quick_masks_.push_back(mask);
    } else {
      mask->begin();
      shared_.masks.post(g.tenant().name, mask);
    }
  }
}

void StepLoop::no_token_left(std::uint64_t user) {
  generations_[user].no_token_left();
}

bool StepLoop::on_embedding(std::uint64_t user, std::span<const float> row) {
  return generations_[user].take_embedding(row);
}

bool StepLoop::is_held_up(std::uint64_t user) const {
  const Generation& g = generations_[user];
  return g.is_held_up() || (g.mask() && g.mask()->is_making());
}

void StepLoop::on_logits(std::span<const LogitsRow> rows) {
  row_details_.resize(rows.size());
  const auto make = [&](std::uint64_t i, int) { row_details_[i] = generations_[rows[i].user].make_details(rows[i]); };
  if (rows[0].logprobs == nullptr)
    row_threads_.parallel_for(rows.size(), make);
  else
    for (std::size_t i = 0; i < rows.size(); ++i) make(i, 0);  // a row takes less time than to wake a thread
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].is_prompt) {
      generations_[rows[i].user].add_prompt_logprob(std::move(row_details_[i]->logprob));
      continue;
    }
    if (rows[i].row >= details_.size()) details_.resize(rows[i].row + 1);
    details_[rows[i].row] = std::move(row_details_[i]);
  }
  row_details_.clear();
}

void StepLoop::on_event(const sched::Event& e, sched::Micros now) {
  Generation& g = generations_[e.user];
  OutputEvent out;
  out.generation = &g;
  out.time_us = now;
  switch (e.kind) {
    case sched::EventKind::kAdmitted:
      out.kind = OutputKind::kAdmitted;
      out.is_first = e.is_first;
      out.cached_tokens = e.cached_tokens;
      out.waited_us = e.waited;
      if (e.is_first) --g.model().n_queued;
      g.was_admitted = true;
      break;
    case sched::EventKind::kPreempted: out.kind = OutputKind::kPreempted; break;
    case sched::EventKind::kToken:
      out.kind = OutputKind::kToken;
      out.token_id = e.token;
      out.n_in_step = static_cast<std::uint8_t>(e.n_in_step);
      out.n_drafts = static_cast<std::uint8_t>(e.n_drafts);
      out.n_right = static_cast<std::uint8_t>(e.n_right);
      if (g.mask()) g.mask()->take(e.token);
      if (spec::Drafter* drafter = g.drafter()) {
        drafter->observe(e.n_drafts, e.n_right, experience_of(g));
        drafter->append(e.token);
      }
      if (e.output_row < details_.size()) out.details = details_[e.output_row].release();
      break;
    case sched::EventKind::kFinished:
      out.kind = OutputKind::kFinished;
      out.reason = e.reason;
      generations_.remove(e.user);
      if (!g.was_admitted) --g.model().n_queued;
      break;
  }
  shared_.output.push(out);
}

// Returns the replica whose model has used the least time on this device. The used time of an idle model is raised to
// the least of the busy models, so that it cannot catch up on all the time that it missed.
Replica* StepLoop::next_replica() {
  Replica* next = nullptr;
  double least = -1;
  for (Replica* replica : replicas_) {
    if (replica->runner().scheduler().is_idle()) continue;
    if (const double busy = replica->runner().busy_us(); least < 0 || busy < least) least = busy, next = replica;
  }
  for (Replica* replica : replicas_)
    if (replica->runner().scheduler().is_idle())
      replica->runner().set_busy_us(std::max(replica->runner().busy_us(), std::max(least, 0.0)));
  return next;
}

bool StepLoop::wait_for_work(sched::Micros wake_at) {
  std::unique_lock lock(inbox_mutex_);
  const auto called = [&] { return stop_ || is_poked_ || !inbox_.empty(); };
  if (wake_at == sched::kNever)
    inbox_filled_.wait(lock, called);
  else
    inbox_filled_.wait_until(lock, std::chrono::steady_clock::time_point(std::chrono::microseconds(wake_at)), called);
  is_poked_ = false;
  return !stop_;
}

void StepLoop::poke() {
  {
    const std::lock_guard lock(inbox_mutex_);
    is_poked_ = true;
  }
  inbox_filled_.notify_one();
}

std::uint64_t StepLoop::room_epoch() const {
  const auto lock = shared_.tenants.lock();
  return shared_.tenants.room_epoch();
}

ModelRunner::Turn StepLoop::run_turn() {
  const Turn::Guard guard(turn_);
  take_commands();
  Replica* first = next_replica();
  if (first == nullptr) return {};
  // Two models take turns on the device, so no step of one may run on while the other has its turn.
  const auto is_busy = [](Replica* replica) { return !replica->runner().scheduler().is_idle(); };
  const bool is_alone = std::ranges::count_if(replicas_, is_busy) == 1;
  for (Replica* other : replicas_)
    if (other != first) other->runner().drain(*this);
  auto result = first->runner().turn(*this, is_alone);
  // If the chosen replica has nothing to run now, another replica runs at once.
  for (Replica* other : replicas_) {
    if (result.ran || other == first || other->runner().scheduler().is_idle()) continue;
    const auto again = other->runner().turn(*this, is_alone);
    result = {again.ran, std::min(result.wake_at, again.wake_at)};
  }
  return result;
}

ModelRunner::Turn StepLoop::look() {
  const auto epoch = room_epoch();
  look_began_.store(now_us(), std::memory_order_relaxed);
  const auto result = run_turn();
  look_began_.store(0, std::memory_order_relaxed);
  // Quotas count over all devices, so a request on another device may be waiting for slots or pages that this step
  // freed.
  if (room_epoch() != epoch) shared_.poke_others(*this);
  return result;
}

void StepLoop::run() {
  for (bool running = true; running;) {
    const auto result = look();
    if (result.ran) {
      const std::lock_guard lock(inbox_mutex_);
      running = !stop_;
    } else {
      running = wait_for_work(result.wake_at);
    }
  }
  end_all();
}

void StepLoop::drain() {
  for (Replica* replica : replicas_) replica->runner().drain(*this);
}

void StepLoop::end_all() {
  const Turn::Guard guard(turn_);
  take_commands();
  for (Replica* replica : replicas_) replica->runner().end_all(*this, sched::Finish::kShutdown);
}

}  // namespace zinc_rt
