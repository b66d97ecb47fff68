// Names the fields of a scenario's lines, once for parsing and printing, and converts their values from and to text.
// Used by scenario_parse.cpp, scenario_print.cpp and shrink.cpp.
// Thread rule: pure functions.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "base/read_number.h"
#include "sched/sim/scenario.h"

namespace zinc_rt::sched::sim {

inline constexpr std::array<std::string_view, kQosCount> kQosNames = {"interactive", "standard", "batch"};
inline constexpr std::array<std::string_view, 10> kActNames = {
    "submit", "cancel", "fail_sink", "block", "unblock", "quota", "flush", "lease", "end_lease", "cancel_all"};
inline constexpr std::array<std::string_view, 6> kWhatNames = {"admitted", "preempted", "finish",
                                                               "tokens",   "cached",    "count"};

// Each overload of fields() calls visit(name, member) for all fields of one kind of line of a scenario.
template <class Visit>
void fields(Options& o, Visit&& visit) {
  visit("slots", o.n_slots);
  visit("pages", o.n_pages);
  visit("context", o.max_context);
  visit("chunk", o.chunk_cap);
  visit("prefill_cap", o.prefill_cap);
  visit("queue", o.queue_cap);
  visit("prefix_cache", o.prefix_cache);
  visit("recurrent", o.is_recurrent);
  visit("ahead", o.runs_ahead);
  visit("checkpoints", o.n_checkpoints);
  visit("rope", o.rope_limits);
  visit("standard_gap", o.standard_gap);
  visit("prefix_part", o.prefix_part);
  visit("starvation", o.starvation);
  visit("turn_after", o.turn_after);
  visit("turn", o.turn);
  visit("slow_sink", o.slow_sink_steps);
  visit("fail_page", o.fail_page_take);
}

template <class Visit>
void fields(StepCost& c, Visit&& visit) {
  visit("base", c.base_us);
  visit("token", c.token_us);
  visit("context", c.context_us);
  visit("jitter", c.jitter_percent);
  visit("seed", c.seed);
}

template <class Visit>
void fields(DraftLine& d, Visit&& visit) {
  visit("most", d.most);
  visit("right", d.right_percent);
  visit("fixed", d.is_fixed);
  visit("seed", d.seed);
}

template <class Visit>
void fields(Quota& q, Visit&& visit) {
  visit("slots", q.max_concurrent_slots);
  visit("pages", q.max_kv_pages);
  visit("reserved", q.reserved_kv_pages);
  visit("context", q.max_context_tokens);
  visit("decode", q.decode_tokens_per_s);
  visit("prefill", q.prefill_tokens_per_s);
  visit("weight", q.weight);
  visit("qos", q.qos);
  visit("isolation", q.isolation_group);
}

template <class Visit>
void fields(SubmitLine& s, Visit&& visit) {
  visit("qos", s.qos);
  visit("prompt", s.n_prompt);
  visit("group", s.group);
  visit("shared", s.n_shared);
  visit("seed", s.seed);
  visit("max", s.max_tokens);
  visit("stop", s.stop_after);
  visit("deadline", s.deadline_us);
  visit("after", s.after);
}

template <class Number>
inline bool read(std::string_view text, Number& out) {
  return read_number(text, out);
}
inline bool read(std::string_view text, std::uint32_t& out) {
  if (text == "none") return out = kNone, true;
  return read<std::uint32_t>(text, out);
}
inline bool read(std::string_view text, bool& out) {
  out = text == "1";
  return text == "1" || text == "0";
}
template <std::size_t N>
bool read_name(std::string_view text, const std::array<std::string_view, N>& names, auto& out) {
  const auto it = std::ranges::find(names, text);
  if (it == names.end()) return false;
  out = static_cast<std::remove_reference_t<decltype(out)>>(it - names.begin());
  return true;
}
inline bool read(std::string_view text, Qos& out) {
  return read_name(text, kQosNames, out);
}
// Lists are written as values separated by '/'.
template <class Number>
inline bool read(std::string_view text, std::vector<Number>& out) {
  out.clear();
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('/', begin), text.size());
    if (!read(text.substr(begin, end - begin), out.emplace_back())) return false;
    begin = end + 1;
  }
  return !out.empty();
}
template <class Number, std::size_t N>
inline bool read(std::string_view text, std::array<Number, N>& out) {
  std::vector<Number> numbers;
  if (!read(text, numbers) || numbers.size() != N) return false;
  std::ranges::copy(numbers, out.begin());
  return true;
}

template <class Number>
inline std::string write(const Number& value) {
  return fmt::format("{}", value);
}
inline std::string write(std::uint32_t value) {
  return value == kNone ? "none" : fmt::format("{}", value);
}
inline std::string write(bool value) {
  return value ? "1" : "0";
}
inline std::string write(Qos value) {
  return std::string(kQosNames[static_cast<std::size_t>(value)]);
}
template <class Number>
std::string write_list(const Number& values) {
  std::string out;
  for (const auto value : values) out += (out.empty() ? "" : "/") + write(value);
  return out;
}
inline std::string write(const std::vector<std::uint32_t>& values) {
  return write_list(values);
}
inline std::string write(const std::array<Micros, kQosCount>& values) {
  return write_list(values);
}

}  // namespace zinc_rt::sched::sim
