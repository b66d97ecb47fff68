// StepLoop runs the steps of one device. look() takes the clients' commands for the replicas on the device, then runs
// one step of the replica that has used the least time. The loop's own thread calls look() again and again; in an
// engine without threads, the callers of pump() do. The loops of all devices run at the same time. They share the
// tenant book, whose lock the schedulers take between steps, and the port of output events.
// Thread rule: any thread may call post(), poke(), stop(), device() and step_ms(). Only the thread that drives
// the loop calls look() and join(). Only the thread that holds `turn_` (engine/turn.h), the lock of this device's
// steps, may use the replicas and call StepListener's functions. `inbox_mutex_` guards the inbox and may be taken while
// any other lock is held.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/thread_pool.h"
#include "engine/drive.h"
#include "engine/generation.h"
#include "engine/generation_table.h"
#include "engine/output_port.h"
#include "engine/replica.h"
#include "engine/turn.h"

namespace zinc_rt {

class StepLoop final : public StepListener {
 public:
  struct Command {
    enum Kind : std::uint8_t { kSubmit, kEnd } kind = kSubmit;
    std::shared_ptr<Generation> generation;
    sched::Finish reason = sched::Finish::kCancelled;
  };
  // Shared holds what all step loops of an engine share. It must outlive the loops.
  struct Shared {
    OutputPort& output;
    sched::TenantBook& tenants;
    Timeline& timeline;
    MaskMaker& masks;
    Drive drive;
    // Called after slots or pages became free, because requests on other devices may be waiting for them.
    std::function<void(const StepLoop&)> poke_others;
  };
  // number: the loop's index in the engine. n_threads: how many threads compute log-probabilities and quick masks, for
  // which the next step waits.
  StepLoop(DeviceId device, std::uint32_t number, int n_threads, Shared shared);
  ~StepLoop() override;  // stops and joins

  // Takes the commands from the inbox, then runs a step if a replica has something to compute.
  ModelRunner::Turn look();

  const DeviceId& device() const { return device_; }
  std::uint32_t number() const { return number_; }
  // Returns for how many ms the current look() has lasted, or 0 if none is running.
  double step_ms() const;
  bool is_this_thread() const { return thread_.get_id() == std::this_thread::get_id(); }

  // A Pause holds the turn (engine/turn.h) as long as the object exists. Its constructor waits for the turn, and then
  // ends the steps that were begun on the device and still run. Threads that do not drive the loop use a Pause to take
  // the turn.
  class Pause {
   public:
    explicit Pause(StepLoop& loop) : guard_(loop.turn_) { loop.drain(); }

   private:
    Turn::Guard guard_;
  };

  // The caller of add(), remove() and replicas() must hold the turn.
  void add(Replica& replica) { replicas_.push_back(&replica); }
  void remove(Replica& replica) { std::erase(replicas_, &replica); }
  const std::vector<Replica*>& replicas() const { return replicas_; }

  // Puts commands into the inbox; one call of look() takes all of them together. Returns false, and adds none, if the
  // loop was stopped.
  bool post(std::vector<Command> commands);
  void poke();  // wakes the step thread, because slots or pages became free
  void stop();  // look() does no work after this call; stop() does not wait for a look() that is running
  void join();  // call it after stop(); it waits for the thread and ends all requests

  // The members from here on implement StepListener. The runner calls them while it runs a step.
  bool process(std::uint64_t user, std::span<const std::int32_t> tokens, std::span<float> logits) override;
  std::optional<std::span<const std::uint32_t>> mask(std::uint64_t user, std::uint32_t n_guessed) override;
  spec::Guess guess(std::uint64_t user) override;
  double chance_of_model(std::uint64_t user) override;
  spec::Guess guess_of_model(std::uint64_t user, std::span<const std::int32_t> tokens) override;
  void before_step(std::span<const std::uint64_t> users) override;
  void no_token_left(std::uint64_t user) override;
  void on_logits(std::span<const LogitsRow> rows) override;
  bool on_embedding(std::uint64_t user, std::span<const float> row) override;
  bool is_held_up(std::uint64_t user) const override;
  void on_event(const sched::Event& event, sched::Micros now) override;

 private:
  void run();
  void drain();
  void end_all();
  void take_commands();
  void apply(Command& command, sched::Micros now);
  spec::Experience& experience_of(const Generation& generation);
  Replica* next_replica();
  ModelRunner::Turn run_turn();
  bool wait_for_work(sched::Micros wake_at);
  std::uint64_t room_epoch() const;

  const DeviceId device_;
  const std::uint32_t number_;
  Shared shared_;
  Turn turn_;
  std::vector<Replica*> replicas_;
  GenerationTable generations_;  // the generations that the schedulers of this device have accepted and not yet ended
  // Log-probabilities and other details of the tokens that the current step picked. Index: the step's output row.
  // on_logits() fills it after the step's logits are known, and on_event() moves each element to the event of its
  // token. An element is null if the request did not ask for details.
  std::vector<std::unique_ptr<TokenDetails>> details_;
  // Threads that compute quick masks and log-probabilities while a step runs.
  ThreadPool row_threads_;
  // Masks that must be computed in the current step. before_step() fills it, and the first call of mask() computes and
  // removes them all.
  std::vector<std::shared_ptr<AnswerMask>> quick_masks_;
  std::vector<spec::Experience> experience_;                // how often guesses were right; index: tenant's id
  std::vector<std::unique_ptr<TokenDetails>> row_details_;  // scratch memory of on_logits(); index: row of its argument

  std::mutex inbox_mutex_;
  std::condition_variable inbox_filled_;
  std::vector<Command> inbox_, taken_;
  bool stop_ = false, is_poked_ = false;
  std::atomic<sched::Micros> look_began_{0};  // the time at which look() was called, or 0 if it is not running
  std::thread thread_;
};

}  // namespace zinc_rt
