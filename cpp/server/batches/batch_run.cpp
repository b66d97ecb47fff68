#include "server/batches/batch_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "base/log.h"
#include "server/core.h"

namespace zinc_rt::server {
namespace {

constexpr double kWriteAgain_s = 1;  // the pause, in seconds, after output could not be written
constexpr double kLongestPause_s = 60;
constexpr std::uint64_t kTellEach_bytes = 4096;

struct EndingRow {
  BatchEnding ending;
  const char *code, *message;
};
constexpr EndingRow kEndings[] = {
    {BatchEnding::kCancelled, "batch_cancelled", "The batch was cancelled before this request was executed."},
    {BatchEnding::kExpired, "batch_expired",
     "This request could not be executed before the completion window expired."},
    {BatchEnding::kFull, "storage_limit_exceeded",
     "The files of this tenant have no room for more answers: delete some of them, and send this request in a new "
     "batch."},
};

// If the answer says that the line may succeed later, returns how many seconds to wait.
std::optional<double> pause_wanted(const HttpResponse& answer) {
  if (answer.status != 429 && answer.status != 503) return std::nullopt;
  int wait_s = 1;
  for (const auto& [name, value] : answer.headers)
    if (name == "Retry-After") std::from_chars(value.data(), value.data() + value.size(), wait_s);
  return std::clamp<double>(wait_s, 1, kLongestPause_s);
}

}  // namespace

BatchRun::BatchRun(ServerCore& core, const Router& router, Plan plan)
    : core_(core), router_(router), plan_(std::move(plan)) {}

Result<std::shared_ptr<BatchRun>> BatchRun::open(ServerCore& core, const Router& router, Plan plan) {
  std::shared_ptr<BatchRun> run(new BatchRun(core, router, std::move(plan)));
  ZRT_CHECK_OK(run->open_files());
  return run;
}

Status BatchRun::open_files() {
  const auto note = [&](const std::string& path, std::atomic<std::uint64_t>& count) {
    return [this, &path, &count](std::string_view line, std::uint64_t number) -> Status {
      const auto answered = read_answered_line(line);
      if (!answered)
        return fail(StatusCode::kInvalidArgument,
                    "[batch] {}: line {} is no line of a batch's output; name another file", path, number);
      ++count;
      usage_ += answered->usage;
      if (done_.insert(answered->custom_id).second) return {};
      return fail(StatusCode::kCorrupt, "[batch] {}: line {}: \"{}\" was there before", path, number,
                  answered->custom_id);
    };
  };
  ZRT_CHECK_OK(output_.open(plan_.output, kOutputLinesBegin, note(plan_.output, n_completed_), plan_.access));
  ZRT_CHECK_OK(errors_.open(plan_.errors, kOutputLinesBegin, note(plan_.errors, n_failed_), plan_.access));
  ZRT_CHECK_OK(check_is_ours());
  ZRT_TRY(input_, BatchReader::open(plan_.input));
  return {};
}

// Checks that all existing output belongs to this input. Errors: kInvalidArgument.
Status BatchRun::check_is_ours() {
  if (done_.empty()) return {};
  ZRT_TRY(auto reader, BatchReader::open(plan_.input));
  std::size_t n_ours = 0;
  for (std::string text; reader.next(text);)
    if (const auto line = read_batch_line(text, reader.number(), plan_.endpoint);
        line && done_.contains(line->custom_id))
      ++n_ours;
  if (n_ours == done_.size()) return {};
  return fail(
      StatusCode::kInvalidArgument,
      "[batch] {} and {} have the answers of {} requests, and {} has {} of these: they are another batch's; name "
      "other files",
      plan_.output, plan_.errors, done_.size(), plan_.input, n_ours);
}

bool BatchRun::step() {
  take_answers();
  if (ending_ != BatchEnding::kNone) {
    cancel_lines();
    return n_under_way_ == 0 && write_rest();
  }
  if (is_abandoned_) return false;  // lines whose answers were dropped must not count as done
  if (!core_.is_draining) start_lines();
  return is_read_ && waiting_.empty() && n_under_way_ == 0;
}

void BatchRun::take_answers() {
  std::vector<std::pair<BatchLine, HttpResponse>> came;
  {
    const std::lock_guard lock(mutex_);
    for (auto& [number, answer] : inbox_)
      came.emplace_back(std::move(under_way_.extract(number).mapped().line), std::move(answer));
    inbox_.clear();
  }
  for (auto& [line, answer] : came) {
    const auto wait_s = pause_wanted(answer);
    if (!drops_ && !wait_s) {
      unwritten_.emplace_back(std::move(line), std::move(answer));
      continue;
    }
    if (!drops_) {
      waiting_.push_front(std::move(line));
      pause(*wait_s);
    }
    --n_under_way_;
  }
  while (!unwritten_.empty()) {
    const auto& [line, answer] = unwritten_.front();
    const bool is_failed = answer.status >= 400;
    const auto usage = is_failed ? BatchUsage() : usage_of(Json::parse(answer.body, nullptr, false));
    if (!put(is_failed, line.custom_id, answered_line(new_id(), line.custom_id, answer), usage)) return;
    unwritten_.pop_front();
    --n_under_way_;
  }
}

BatchCounts BatchRun::counts() const {
  const std::lock_guard lock(mutex_);
  return {n_completed_, n_failed_, usage_};
}

bool BatchRun::put(bool is_failed, const std::string& custom_id, const std::string& text, const BatchUsage& usage) {
  if (const auto written = (is_failed ? errors_ : output_).append(text); !written) {
    if (!std::exchange(has_complained_, true))
      log().error("{}; it is tried again each {:g} s", written.error().message, kWriteAgain_s);
    pause(kWriteAgain_s);
    return false;
  }
  has_complained_ = false;
  done_.insert(custom_id);
  {
    const std::lock_guard lock(mutex_);
    ++(is_failed ? n_failed_ : n_completed_);
    usage_ += usage;
  }
  const auto n_bytes = output_.n_bytes() + errors_.n_bytes();
  if (plan_.has_room && n_bytes >= told_at_bytes_) {
    told_at_bytes_ = n_bytes + kTellEach_bytes;
    if (!plan_.has_room(n_bytes)) end_early(BatchEnding::kFull);
  }
  return true;
}

void BatchRun::start_lines() {
  if (!unwritten_.empty() || Clock::now() < paused_until_) return;
  const auto most = window();
  for (BatchLine line; n_under_way_ < most && next_line(line);) start(std::move(line));
}

// Returns how many lines may run or wait in the engine at the same time. The number is twice the number of slots that
// the tenant may have of the largest model, which keeps the slots busy. More lines would only delay a draining server,
// which waits for them. The number is at most half of the tenant's open requests and half of a model's queue, so that
// other requests find room.
std::uint32_t BatchRun::window() const {
  constexpr std::uint32_t kSlotsOfNone = 8;  // the number of slots to assume if no model is loaded yet
  const auto settings = plan_.tenant->settings();
  std::uint32_t n_slots = 0, most = settings.max_open_requests / 2;
  for (const auto& model : core_.models.list()) {
    n_slots = std::max(n_slots, model.memory.slots_of_all_devices());
    most = std::min(most, model.queue_cap / 2);
  }
  n_slots = std::min(n_slots == 0 ? kSlotsOfNone : n_slots, settings.quota.max_concurrent_slots);
  return std::max(1u, std::min(most, 2 * n_slots));
}

bool BatchRun::next_line(BatchLine& line) {
  if (!waiting_.empty()) {
    line = std::move(waiting_.front());
    waiting_.pop_front();
    return true;
  }
  for (std::string text; !is_read_;) {
    is_read_ = !input_.next(text);
    if (is_read_) break;
    auto read = read_batch_line(text, input_.number(), plan_.endpoint);
    if (!read) {
      log().error("[batch] {} was changed while it ran: {}", plan_.input, read.error().message);
      continue;
    }
    if (done_.contains(read->custom_id)) continue;
    line = std::move(*read);
    return true;
  }
  return false;
}

void BatchRun::start(BatchLine line) {
  HttpRequest request;
  request.method = "POST";
  request.path = line.url;
  request.headers = {{"content-type", kJson}};
  request.body = line.body;
  const auto number = n_started_++;
  ++n_under_way_;
  {
    const std::lock_guard lock(mutex_);
    under_way_[number].line = std::move(line);
  }
  auto call = InnerCall::start(core_, router_, plan_.tenant, std::move(request),
                               [self = shared_from_this(), number](HttpResponse answer) {
                                 {
                                   const std::lock_guard lock(self->mutex_);
                                   self->inbox_.push_back({number, std::move(answer)});
                                 }
                                 self->plan_.wake();
                               });
  {
    const std::lock_guard lock(mutex_);
    under_way_[number].call = call;
  }
  // abandon() may have run before this call was in the list of running lines.
  if (const auto strong = is_abandoned_ ? call.lock() : nullptr) strong->cancel();
}

void BatchRun::cancel_lines() {
  drops_ = true;
  // The calls are released while the lock is not held, because the release of the last reference sends the answer.
  std::vector<std::shared_ptr<InnerCall>> calls;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [number, one] : under_way_)
      if (auto call = one.call.lock()) calls.push_back(std::move(call));
  }
  for (const auto& call : calls) call->cancel();
}

bool BatchRun::write_rest() {
  const auto& row = *std::ranges::find(kEndings, ending_.load(), &EndingRow::ending);
  auto reader = BatchReader::open(plan_.input);
  if (!reader) {
    log().error("{}: the lines that did not run are missing in {}", reader.error().message, plan_.errors);
    return true;
  }
  for (std::string text; reader->next(text);) {
    const auto line = read_batch_line(text, reader->number(), plan_.endpoint);
    if (!line || done_.contains(line->custom_id)) continue;
    if (!put(true, line->custom_id, unanswered_line(new_id(), line->custom_id, row.code, row.message))) return false;
  }
  return true;
}

void BatchRun::end_early(BatchEnding why) {
  auto none = BatchEnding::kNone;
  ending_.compare_exchange_strong(none, why);
}

void BatchRun::abandon() {
  is_abandoned_ = true;
  cancel_lines();
}

Status BatchRun::sync() {
  ZRT_CHECK_OK(output_.sync());
  return errors_.sync();
}

void BatchRun::pause(double seconds) {
  paused_until_ =
      std::max(paused_until_,
               Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds)));
}

}  // namespace zinc_rt::server
