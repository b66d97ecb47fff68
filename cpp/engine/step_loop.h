// Runs the steps of a device. One look takes the clients' commands for the replicas on the device, then runs the turn
// of the replica that was served least. The loop's own thread looks again and again; without threads, whoever drives
// the engine calls look(). Devices step at the same time. They share the tenant book, whose lock the schedulers take
// between steps, and the port of output events.
// Thread rule: post(), poke(), turn(), stop(), device() and step_ms() from any thread; look() and join() from the
// driver. The replicas, and the StepListener, belong to the thread that holds the turn. `inbox_mutex_` guards the inbox
// and may be taken while any other lock is held.
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
  // Shared by the loops of an engine. It must outlive them.
  struct Shared {
    OutputPort& output;
    sched::TenantBook& tenants;
    Timeline& timeline;
    MaskMaker& masks;
    Drive drive;
    // Called when something was freed that requests on other devices may wait for.
    std::function<void(const StepLoop&)> poke_others;
  };
  // number: the loop's index in the engine. n_threads: how many threads compute log-probabilities and quick masks, for
  // which the next step waits.
  StepLoop(DeviceId device, std::uint32_t number, int n_threads, Shared shared);
  ~StepLoop() override;  // stops and joins

  // Takes the commands, and runs a step if there is something to compute.
  ModelRunner::Turn look();

  const DeviceId& device() const { return device_; }
  std::uint32_t number() const { return number_; }
  Turn& turn() { return turn_; }
  // How long the running look has lasted; 0 if none is running.
  double step_ms() const;
  bool is_this_thread() const { return thread_.get_id() == std::this_thread::get_id(); }

  // REQUIRES: the turn.
  void add(Replica& replica) { replicas_.push_back(&replica); }
  void remove(Replica& replica) { std::erase(replicas_, &replica); }
  const std::vector<Replica*>& replicas() const { return replicas_; }

  // One look takes all of them. Returns false, and takes none, if the loop was stopped.
  bool post(std::vector<Command> commands);
  void poke();  // makes the step thread look again, since something became free
  void stop();  // no look follows; returns at once
  void join();  // behind stop(): ends all requests

  // StepListener
  bool process(std::uint64_t user, std::span<const std::int32_t> tokens, std::span<float> logits) override;
  std::optional<std::span<const std::uint32_t>> mask(std::uint64_t user) override;
  void before_step(std::span<const std::uint64_t> users) override;
  void no_token_left(std::uint64_t user) override;
  void on_logits(std::span<const LogitsRow> rows) override;
  bool on_embedding(std::uint64_t user, std::span<const float> row) override;
  bool is_held_up(std::uint64_t user) const override;
  void on_event(const sched::Event& event, sched::Micros now) override;

 private:
  void run();
  void end_all();
  void take_commands();
  void apply(Command& command, sched::Micros now);
  Replica* next_replica();
  ModelRunner::Turn run_turn();
  bool wait_for_work(sched::Micros wake_at);
  std::uint64_t room_epoch() const;

  const DeviceId device_;
  const std::uint32_t number_;
  Shared shared_;
  Turn turn_;
  std::vector<Replica*> replicas_;
  GenerationTable generations_;                         // that the schedulers here have
  std::vector<std::unique_ptr<TokenDetails>> details_;  // of the turn under way, by output row; null: none
  ThreadPool row_threads_;
  std::vector<std::shared_ptr<AnswerMask>> quick_masks_;
  std::vector<std::unique_ptr<TokenDetails>> row_details_;  // by row of an on_logits call

  std::mutex inbox_mutex_;
  std::condition_variable inbox_filled_;
  std::vector<Command> inbox_, taken_;
  bool stop_ = false, is_poked_ = false;
  std::atomic<sched::Micros> look_began_{0};  // 0: no look is under way
  std::thread thread_;
};

}  // namespace zinc_rt
