// How the trace is arranged. Process 1 is the engine, with one thread for the steps and one per slot. Process 2 is the
// tenants, with one thread each. What a request does outside slots overlaps with other requests of its tenant, so it is
// written as asynchronous events. The ids of these events are texts, because viewers read numbers as doubles.
#include "engine/timeline_json.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/output_file.h"

namespace zinc_rt {
namespace {

constexpr int kEngine = 1, kTenants = 2;
// Returns the number of a step thread's track. Perfetto treats 0 as the idle thread. The tracks of further step threads
// come after those of all slots.
constexpr std::uint64_t steps_thread(std::uint32_t thread) {
  return thread == 0 ? 1 : std::uint64_t{2'000'000'000} + thread;
}
// Returns the suffix in the name of a step thread's track; empty for the first thread.
std::string number_of(std::uint32_t thread) {
  return thread == 0 ? std::string() : fmt::format(" {}", thread + 1);
}
constexpr std::uint64_t slot_thread(std::uint32_t slot) {
  return std::uint64_t{slot} + 2;
}
constexpr std::uint64_t tenant_thread(std::uint32_t tenant) {
  return std::uint64_t{tenant} + 1;
}
constexpr std::size_t kFlushBytes = 1 << 16;

constexpr const char* name_of(RequestState state) {
  switch (state) {
    case RequestState::kWaiting: return "WAITING";
    case RequestState::kPrefill: return "PREFILL";
    case RequestState::kDecode: return "DECODE";
    case RequestState::kPreempted: return "PREEMPTED";
  }
  return "?";
}

constexpr const char* name_of(RequestMark mark) {
  switch (mark) {
    case RequestMark::kAdmitted: return "admitted";
    case RequestMark::kPreempted: return "preempted";
    case RequestMark::kFinished: return "finished";
    case RequestMark::kRejected: return "rejected";
  }
  return "?";
}

constexpr bool in_slot(RequestState state) {
  return state == RequestState::kPrefill || state == RequestState::kDecode;
}

std::uint64_t begin_of(const Timeline::Record& record) {
  if (const auto* step = std::get_if<StepSpan>(&record)) return step->begin_us;
  if (const auto* span = std::get_if<RequestSpan>(&record)) return span->begin_us;
  return std::get<RequestInstant>(record).at_us;
}

// Returns how long the span lasted; 0 if the clock ran backwards.
std::uint64_t duration(const RequestSpan& span) {
  return span.end_us > span.begin_us ? span.end_us - span.begin_us : 0;
}

// Returns a name as a JSON string. Names come from clients and need not be valid UTF-8.
std::string quoted(const std::string& name) {
  return nlohmann::json(name).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

class TraceWriter {
 public:
  TraceWriter(OutputFile file, const TimelineNames& names) : file_(std::move(file)), names_(names) {}

  template <class... Args>
  Status event(fmt::format_string<Args...> format, Args&&... args) {
    text_ += std::exchange(is_first_, false) ? "\n" : ",\n";
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    return text_.size() < kFlushBytes ? Status{} : flush();
  }
  Status process(int pid, const char* name) {
    return event(R"({{"ph":"M","name":"process_name","pid":{},"args":{{"name":"{}"}}}})", pid, name);
  }
  // Declares a track (thread of a process). `name` is JSON text. Tracks are shown in the order of their thread numbers.
  Status thread(int pid, std::uint64_t tid, std::string_view name) {
    ZRT_CHECK_OK(event(R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":{}}}}})", pid, tid, name));
    return event(R"({{"ph":"M","name":"thread_sort_index","pid":{},"tid":{},"args":{{"sort_index":{}}}}})", pid, tid,
                 tid);
  }
  void raw(std::string_view text) { text_ += text; }
  Status commit() {
    ZRT_CHECK_OK(flush());
    return file_.commit();
  }

  Status operator()(const StepSpan& step);
  Status operator()(const RequestSpan& span);
  Status operator()(const RequestInstant& instant);

 private:
  // Returns members of a JSON object: the request's number and, if it has one, its name.
  std::string request(std::uint32_t model, std::uint64_t id) const {
    const auto found = names_.requests.find({model, id});
    if (found == names_.requests.end()) return fmt::format(R"("request":{})", id);
    auto text = fmt::format(R"("request":{})", id);
    const auto& [request_id, traceparent] = found->second;
    if (!request_id.empty()) text += fmt::format(R"(,"request_id":{})", quoted(request_id));
    if (!traceparent.empty()) text += fmt::format(R"(,"traceparent":{})", quoted(traceparent));
    return text;
  }
  Status flush() {
    ZRT_CHECK_OK(file_.write(text_));
    text_.clear();
    return {};
  }

  OutputFile file_;
  const TimelineNames& names_;
  std::string text_;
  bool is_first_ = true;
};

Status TraceWriter::operator()(const StepSpan& step) {
  const std::pair<const char*, std::uint32_t> phases[] = {{"admit", step.admit_us},
                                                          {"plan", step.plan_us},
                                                          {"fill", step.fill_us},
                                                          {"execute", step.execute_us},
                                                          {"commit", step.commit_us}};
  std::uint64_t whole = 0;
  for (const auto& [name, us] : phases) whole += us;
  ZRT_CHECK_OK(event(R"({{"ph":"X","name":"step","pid":{},"tid":{},"ts":{},"dur":{},"args":{{"index":{},"decode":{},)"
                     R"("prefill":{},"waiting":{},"pages":{}}}}})",
                     kEngine, steps_thread(step.thread), step.begin_us, whole, step.index, step.n_decode,
                     step.n_prefill, step.n_waiting, step.pages_used));
  std::uint64_t at = step.begin_us;
  for (const auto& [name, us] : phases) {
    if (us > 0)
      ZRT_CHECK_OK(event(R"({{"ph":"X","name":"{}","pid":{},"tid":{},"ts":{},"dur":{}}})", name, kEngine,
                         steps_thread(step.thread), at, us));
    at += us;
  }
  const std::pair<const char*, std::uint32_t> counters[] = {{"pages", step.pages_used}, {"waiting", step.n_waiting}};
  for (const auto& [name, value] : counters)
    ZRT_CHECK_OK(event(R"({{"ph":"C","name":"{}{}","pid":{},"ts":{},"args":{{"{}":{}}}}})", name,
                       number_of(step.thread), kEngine, step.begin_us, name, value));
  return {};
}

Status TraceWriter::operator()(const RequestSpan& span) {
  const char* name = name_of(span.state);
  if (in_slot(span.state))
    return event(R"({{"ph":"X","name":"{}","pid":{},"tid":{},"ts":{},"dur":{},"args":{{{},"tenant":{},)"
                 R"("tokens":{}}}}})",
                 name, kEngine, slot_thread(span.slot), span.begin_us, duration(span),
                 request(span.model, span.request), span.tenant, span.n_tokens);
  ZRT_CHECK_OK(event(R"({{"ph":"b","cat":"request","name":"{}","id":"{:#x}","pid":{},"tid":{},"ts":{}}})", name,
                     span.request, kTenants, tenant_thread(span.tenant), span.begin_us));
  return event(R"({{"ph":"e","cat":"request","name":"{}","id":"{:#x}","pid":{},"tid":{},"ts":{}}})", name, span.request,
               kTenants, tenant_thread(span.tenant), span.begin_us + duration(span));
}

Status TraceWriter::operator()(const RequestInstant& instant) {
  return event(R"({{"ph":"i","s":"t","name":"{}","pid":{},"tid":{},"ts":{},"args":{{{}}}}})", name_of(instant.mark),
               kTenants, tenant_thread(instant.tenant), instant.at_us, request(instant.model, instant.request));
}

Status write_tracks(TraceWriter& writer, const std::vector<Timeline::Record>& records,
                    const std::map<std::uint32_t, std::string>& tenant_names) {
  std::set<std::uint32_t> slots, tenants, threads{0};
  for (const auto& record : records) {
    if (const auto* span = std::get_if<RequestSpan>(&record)) {
      if (in_slot(span->state)) slots.insert(span->slot);
      tenants.insert(span->tenant);
    } else if (const auto* instant = std::get_if<RequestInstant>(&record)) {
      tenants.insert(instant->tenant);
    } else {
      threads.insert(std::get<StepSpan>(record).thread);
    }
  }
  ZRT_CHECK_OK(writer.process(kEngine, "engine"));
  for (const auto thread : threads)
    ZRT_CHECK_OK(writer.thread(kEngine, steps_thread(thread), fmt::format(R"("steps{}")", number_of(thread))));
  for (const auto slot : slots)
    ZRT_CHECK_OK(writer.thread(kEngine, slot_thread(slot), fmt::format(R"("slot {}")", slot)));
  ZRT_CHECK_OK(writer.process(kTenants, "tenants"));
  for (const auto tenant : tenants) {
    const auto found = tenant_names.find(tenant);
    const auto name = found == tenant_names.end() ? fmt::format("tenant {}", tenant) : found->second;
    ZRT_CHECK_OK(writer.thread(kTenants, tenant_thread(tenant), quoted(name)));
  }
  return {};
}

}  // namespace

Status write_timeline(const std::string& path, std::vector<Timeline::Record> records, const TimelineNames& names,
                      std::uint64_t n_added) {
  std::ranges::stable_sort(records, {}, begin_of);
  ZRT_TRY(auto file, OutputFile::create(path));
  TraceWriter writer(std::move(file), names);
  writer.raw(
      fmt::format(R"({{"displayTimeUnit":"ms","otherData":{{"records":{},"dropped_records":{}}},"traceEvents":[)",
                  records.size(), n_added - records.size()));
  ZRT_CHECK_OK(write_tracks(writer, records, names.tenants));
  for (const auto& record : records) ZRT_CHECK_OK(std::visit([&](const auto& r) { return writer(r); }, record));
  writer.raw("\n]}\n");
  return writer.commit();
}

}  // namespace zinc_rt
