// Timeline records what the step loops did and when, for chrome://tracing and Perfetto: steps with their phases, what
// each slot ran, waits and preemptions of requests, admissions and ends per tenant. It keeps a fixed number of the
// newest records. Recording allocates nothing; while it is off, a call costs one branch. The caller passes times in
// microseconds; all must come from one clock.
// Thread rule: any thread; record() is for step threads. record() takes a lock. Only start(), stop(), name_tenant(),
// name_request() and write_json() take the same lock. write_json() holds it while it copies the records (64 bytes
// each).
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "zinc_rt/status.h"

namespace zinc_rt {

// StepSpan records one step. Its phases follow each other from begin_us on, in the order of these members.
struct StepSpan {
  std::uint64_t index = 0;
  std::uint64_t begin_us = 0;
  std::uint32_t admit_us = 0, plan_us = 0, fill_us = 0, execute_us = 0, commit_us = 0;
  std::uint32_t n_decode = 0, n_prefill = 0;  // tokens
  std::uint32_t n_waiting = 0, pages_used = 0;
  std::uint32_t thread = 0;  // the number of the step loop that ran the step
};

// RequestSpan records what a request did during a time: it ran in a slot (kPrefill, kDecode), waited for its first slot
// (kWaiting), or waited for its next slot after a preemption (kPreempted).
enum class RequestState : std::uint8_t { kWaiting, kPrefill, kDecode, kPreempted };
struct RequestSpan {
  std::uint64_t request = 0;
  std::uint64_t begin_us = 0, end_us = 0;
  std::uint32_t tenant = 0;
  std::uint32_t slot = 0;  // set for kPrefill and kDecode
  std::uint32_t n_tokens = 0;
  RequestState state = RequestState::kWaiting;
  std::uint32_t model = 0;
};

enum class RequestMark : std::uint8_t { kAdmitted, kPreempted, kFinished, kRejected };
struct RequestInstant {
  std::uint64_t request = 0;
  std::uint64_t at_us = 0;
  std::uint32_t tenant = 0;
  RequestMark mark = RequestMark::kAdmitted;
  std::uint32_t model = 0;
};

// RequestName holds the names that a client gave a request. They are displayed in place of its number.
struct RequestName {
  std::string request_id, traceparent;  // the client's values; empty if it sent none
  bool empty() const { return request_id.empty() && traceparent.empty(); }
};
struct TimelineNames {
  using RequestKey = std::pair<std::uint32_t, std::uint64_t>;  // model, request
  std::map<std::uint32_t, std::string> tenants;
  std::map<RequestKey, RequestName> requests;
};

class Timeline {
 public:
  using Record = std::variant<StepSpan, RequestSpan, RequestInstant>;
  static_assert(sizeof(Record) <= 64 && std::is_trivially_copyable_v<Record>);
  static constexpr std::uint32_t kDefaultCapacity = 1 << 16;

  // Drops all records and starts recording, with memory for `capacity` records. Error: `capacity` is 0.
  Status start(std::uint32_t capacity = kDefaultCapacity);
  void stop();  // ends recording; the records stay available to write_json()
  bool is_on() const { return on_.load(std::memory_order_relaxed); }

  // Adds a record, if recording is on. A span is recorded after it has ended.
  void record(const Record& record) {
    if (is_on()) [[unlikely]]
      add(record);
  }

  void name_tenant(std::uint32_t tenant, std::string_view name);  // a tenant without a name is shown by its number
  // Stores the names of a request, for display. Does nothing while recording is off. Only as many names are stored as
  // there may be records; the oldest are dropped.
  void name_request(std::uint32_t model, std::uint64_t request, RequestName name);
  std::uint64_t n_records() const;  // number of stored records
  std::uint64_t n_dropped() const;  // number of records since start() that newer records have overwritten

  // Writes Trace Event JSON, one event per line. If writing fails, no file appears. May be called while recording.
  Status write_json(const std::string& path) const;

 private:
  void add(const Record& record);

  std::atomic<bool> on_{false};
  mutable std::mutex mutex_;
  std::vector<Record> ring_;
  std::uint64_t n_added_ = 0;
  TimelineNames names_;
  std::deque<TimelineNames::RequestKey> named_requests_;  // in the order of the name_request() calls
};

}  // namespace zinc_rt
