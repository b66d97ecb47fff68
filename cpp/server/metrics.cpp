#include "server/metrics.h"

#include <prometheus/text_serializer.h>

#include <algorithm>

namespace zinc_rt::server {
namespace {

constexpr std::size_t kMaxTenantLabels = 200;
const prometheus::Histogram::BucketBoundaries kFirstToken{0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5,
                                                          0.75,  1,     2.5,  5,    7.5,  10,   20,   40,  80,   160};
const prometheus::Histogram::BucketBoundaries kInterval{0.001, 0.0025, 0.005, 0.01,  0.015, 0.02, 0.025,
                                                        0.03,  0.04,   0.05,  0.075, 0.1,   0.15, 0.2,
                                                        0.3,   0.4,    0.5,   0.75,  1,     2.5,  5};
const prometheus::Histogram::BucketBoundaries kWhole{0.01, 0.05, 0.1, 0.3, 0.5, 0.8, 1,   1.5, 2,   2.5,
                                                     5,    10,   15,  20,  30,  60,  120, 240, 480, 960};

}  // namespace

Metrics::Metrics(std::string version) {
  gauge("zinc:build_info", "the version that runs", {{"version", std::move(version)}}).Set(1);
}

std::string Metrics::label_of(const std::string& tenant) {
  if (labels_.contains(tenant)) return tenant;
  if (labels_.size() >= kMaxTenantLabels) return "other";
  labels_[tenant] = true;
  return tenant;
}

prometheus::Gauge& Metrics::gauge(const char* name, const char* help, const prometheus::Labels& labels) {
  auto& family = gauges_[name];
  if (family == nullptr) family = &prometheus::BuildGauge().Name(name).Help(help).Register(registry_);
  return family->Add(labels);
}

prometheus::Counter& Metrics::counter(const char* name, const char* help, const prometheus::Labels& labels) {
  auto& family = counters_[name];
  if (family == nullptr) family = &prometheus::BuildCounter().Name(name).Help(help).Register(registry_);
  return family->Add(labels);
}

// Raises a counter by as much as the count of one of its sources has grown since the last call. A counter may have
// several sources. If the count is smaller than before, the source has restarted at 0.
void Metrics::raise_to(const char* name, const char* help, const prometheus::Labels& labels, const std::string& source,
                       double value) {
  auto& c = counter(name, help, labels);
  auto& last = sources_[{name, source}];
  if (value < last) last = 0;
  c.Increment(value - last);
  last = value;
}

// Adds a value to a gauge; values with equal labels are summed. The next update removes the gauge before it shows new
// values, because the tenant or model may not exist any longer.
void Metrics::show(const char* name, const char* help, const prometheus::Labels& labels, double value) {
  auto& g = gauge(name, help, labels);
  g.Increment(value);
  shown_.emplace(gauges_[name], &g);
}

Metrics::Series& Metrics::series(const std::string& tenant, const std::string& model) {
  const std::lock_guard lock(mutex_);
  const auto label = label_of(tenant);
  auto& series = series_[{label, model}];
  if (series) return *series;
  series = std::make_unique<Series>();
  const prometheus::Labels labels{{"tenant", label}, {"model_name", model}};
  const auto histogram = [&](const char* name, const char* help,
                             const prometheus::Histogram::BucketBoundaries& bounds) {
    auto& family = histograms_[name];
    if (family == nullptr) family = &prometheus::BuildHistogram().Name(name).Help(help).Register(registry_);
    return &family->Add(labels, bounds);
  };
  series->time_to_first_token =
      histogram("zinc:time_to_first_token_seconds", "from the request to its first token", kFirstToken);
  series->token_interval =
      histogram("zinc:inter_token_latency_seconds", "from one token of a choice to the next", kInterval);
  series->request_time = histogram("zinc:e2e_request_latency_seconds", "from the request to its end", kWhole);
  series->queue_time = histogram("zinc:request_queue_time_seconds", "waiting for a slot", kWhole);
  series->prompt_tokens = &counter("zinc:prompt_tokens_total", "tokens of prompts", labels);
  series->cached_tokens = &counter("zinc:prompt_tokens_cached_total", "of those, taken from the prefix cache", labels);
  series->generated_tokens = &counter("zinc:generation_tokens_total", "tokens that were generated", labels);
  return *series;
}

void Metrics::finished(Series& series, const std::string& reason) {
  const std::lock_guard lock(mutex_);
  auto& c = series.finished[reason];
  if (c == nullptr) {
    prometheus::Labels labels{{"finished_reason", reason}};
    for (const auto& [key, one] : series_)
      if (one.get() == &series) labels["tenant"] = key.first, labels["model_name"] = key.second;
    c = &counter("zinc:request_success_total", "requests that ended, by how", labels);
  }
  c->Increment();
}

void Metrics::answered(int status) {
  const std::lock_guard lock(mutex_);
  counter("zinc:http_responses_total", "HTTP answers by status", {{"status", std::to_string(status)}}).Increment();
}

void Metrics::refused(const std::string& why) {
  const std::lock_guard lock(mutex_);
  counter("zinc:admission_rejections_total", "requests that were not taken, by why", {{"reason", why}}).Increment();
}

void Metrics::wanted_latency(const char* which, bool is_met) {
  const std::lock_guard lock(mutex_);
  counter("zinc:wanted_latencies_total", "answers whose caller named a latency (x-slo-ttft-ms, x-slo-tpot-ms)",
          {{"latency", which}, {"met", is_met ? "true" : "false"}})
      .Increment();
}

void Metrics::update(const EngineStats& stats, const std::map<std::string, std::string>& ids,
                     const std::vector<TenantNow>& tenants) {
  const std::lock_guard lock(mutex_);
  for (const auto& [family, gauge] : shown_) family->Remove(gauge);
  shown_.clear();
  for (const ModelStats& m : stats.models) {
    const auto& name = m.name;
    const auto known = ids.find(name);
    const std::string id = known == ids.end() ? name : known->second;
    const prometheus::Labels labels{{"model_name", id}, {"engine", "0"}};
    const auto number = [](std::uint64_t n) { return static_cast<double>(n); };
    const double used = m.pages > 0 ? 1 - number(m.pages_free) / number(m.pages) : 0;
    show("vllm:num_requests_running", "requests with a slot", labels, number(m.running));
    show("vllm:num_requests_waiting", "requests that wait for a slot", labels, number(m.waiting));
    show("vllm:kv_cache_usage_perc", "share of the KV pages that is in use, 0 to 1", labels, used);
    raise_to("vllm:num_preemptions_total", "requests that gave way to others", labels, name, number(m.preemptions));
    raise_to("vllm:prompt_tokens_total", "tokens of prompts", labels, name, number(m.prompt_tokens));
    raise_to("vllm:generation_tokens_total", "tokens that were generated", labels, name, number(m.generated_tokens));
    raise_to("vllm:spec_decode_num_drafts_total", "steps of a request that had guesses", labels, name,
             number(m.drafts));
    raise_to("vllm:spec_decode_num_draft_tokens_total", "tokens that were guessed", labels, name,
             number(m.draft_tokens));
    raise_to("vllm:spec_decode_num_accepted_tokens_total", "guessed tokens that were picked", labels, name,
             number(m.accepted_draft_tokens));
    raise_to("vllm:prefix_cache_queries_total", "tokens looked for in the prefix cache", labels, name,
             number(m.prompt_tokens));
    raise_to("vllm:prefix_cache_hits_total", "tokens found in the prefix cache", labels, name, number(m.cached_tokens));
    // Names of earlier versions of vLLM, which some routers still read.
    show("vllm:gpu_cache_usage_perc", "as vllm:kv_cache_usage_perc", labels, used);
    raise_to("vllm:gpu_prefix_cache_queries_total", "as vllm:prefix_cache_queries_total", labels, name,
             number(m.prompt_tokens));
    raise_to("vllm:gpu_prefix_cache_hits_total", "as vllm:prefix_cache_hits_total", labels, name,
             number(m.cached_tokens));
    show("vllm:gpu_prefix_cache_hit_rate", "tokens found in the prefix cache, of those looked for, 0 to 1", labels,
         m.prompt_tokens > 0 ? number(m.cached_tokens) / number(m.prompt_tokens) : 0);
    auto info = labels;
    info["block_size"] = "16";
    info["num_gpu_blocks"] = std::to_string(m.pages);
    show("vllm:cache_config_info", "the KV cache", info, 1);
    const prometheus::Labels ours{{"model_name", id}};
    show("zinc:kv_pages_free", "KV pages that nobody uses", ours, number(m.pages_free));
    show("zinc:kv_pages_cached", "KV pages that hold prefixes alone", ours, number(m.pages_cached));
    show("zinc:slots_free", "slots that nobody uses", ours, number(m.slots_free));
    raise_to("zinc:engine_steps_total", "steps of the engine", ours, name, number(m.steps));
    raise_to("zinc:page_evictions_total", "cached pages that were given up", ours, name, number(m.page_evictions));
    show("zinc:allocated_bytes", "memory that the model has asked for", ours, number(m.allocated_bytes));
    for (const auto& device : m.devices) {
      const auto& d = device.stats;
      const prometheus::Labels there{{"model_name", id}, {"device", std::to_string(device.index)}};
      show("zinc:device_requests_running", "requests with a slot on the device", there, number(d.running));
      show("zinc:device_requests_waiting", "requests that wait for a slot of the device", there, number(d.waiting));
      show("zinc:device_backlog_tokens", "tokens of these that are not computed yet", there, number(d.backlog_tokens));
      show("zinc:device_kv_pages_free", "KV pages of the device that nobody uses", there, number(d.pages_free));
      show("zinc:device_allocated_bytes", "memory that the model has asked for there", there,
           number(d.allocated_bytes));
    }
  }
  for (const auto& t : tenants) {
    const prometheus::Labels labels{{"tenant", label_of(t.name)}, {"qos", t.qos_class}};
    show("zinc:tenant_slots", "slots of the tenant", labels, t.ledger.slots_now);
    show("zinc:tenant_waiting", "its requests without a slot", labels, t.ledger.waiting_now);
    show("zinc:tenant_kv_pages", "its KV pages", labels, t.ledger.kv_pages_now);
    show("zinc:tenant_service", "what it was charged for fair sharing", labels, t.ledger.service);
    raise_to("zinc:tenant_preemptions_total", "slots that were taken from it", labels, t.name,
             static_cast<double>(t.ledger.slots_preempted));
  }
}

std::string Metrics::scrape(const TransportCounts& transport, double engine_age_s, bool shows_tenants) {
  const std::lock_guard lock(mutex_);
  gauge("zinc:engine_last_seen_seconds", "since a step of the engine was last seen to end", {}).Set(engine_age_s);
  gauge("zinc:http_connections", "connections that are open", {}).Set(transport.open);
  raise_to("zinc:http_connections_total", "connections that were taken", {}, "",
           static_cast<double>(transport.accepted));
  raise_to("zinc:http_connections_refused_total", "connections past a limit", {}, "",
           static_cast<double>(transport.refused));
  raise_to("zinc:http_bad_requests_total", "messages that broke HTTP", {}, "",
           static_cast<double>(transport.bad_requests));
  raise_to("zinc:http_timeouts_total", "connections that took too long", {}, "",
           static_cast<double>(transport.timed_out));
  auto families = registry_.Collect();
  // Some histograms are also published under vLLM's names and labels, summed over all tenants. Key: our name; value:
  // vLLM's name.
  const std::map<std::string, std::string> kAlias{
      {"zinc:time_to_first_token_seconds", "vllm:time_to_first_token_seconds"},
      {"zinc:inter_token_latency_seconds", "vllm:inter_token_latency_seconds"},
      {"zinc:e2e_request_latency_seconds", "vllm:e2e_request_latency_seconds"},
      {"zinc:request_queue_time_seconds", "vllm:request_queue_time_seconds"},
      {"zinc:request_success_total", "vllm:request_success_total"}};
  const std::size_t n = families.size();
  for (std::size_t i = 0; i < n; ++i) {
    const auto alias = kAlias.find(families[i].name);
    if (alias == kAlias.end()) continue;
    prometheus::MetricFamily sum{alias->second, families[i].help, families[i].type, {}};
    std::map<std::string, prometheus::ClientMetric> by_labels;
    for (const auto& metric : families[i].metric) {
      prometheus::ClientMetric like;
      std::string key;
      for (const auto& label : metric.label)
        if (label.name != "tenant") like.label.push_back(label), key += label.value + '\0';
      like.label.push_back({"engine", "0"});
      auto [it, is_new] = by_labels.try_emplace(key, like);
      auto& into = it->second;
      into.counter.value += metric.counter.value;
      into.histogram.sample_count += metric.histogram.sample_count;
      into.histogram.sample_sum += metric.histogram.sample_sum;
      if (into.histogram.bucket.empty()) {
        into.histogram.bucket = metric.histogram.bucket;
        continue;
      }
      for (std::size_t b = 0; b < metric.histogram.bucket.size(); ++b)
        into.histogram.bucket[b].cumulative_count += metric.histogram.bucket[b].cumulative_count;
    }
    for (auto& [key, metric] : by_labels) sum.metric.push_back(std::move(metric));
    families.push_back(std::move(sum));
  }
  const auto names_tenant = [](const prometheus::ClientMetric& metric) {
    return std::ranges::any_of(metric.label, [](const auto& label) { return label.name == "tenant"; });
  };
  if (!shows_tenants)
    for (auto& family : families) std::erase_if(family.metric, names_tenant);
  std::erase_if(families, [](const auto& family) { return family.metric.empty(); });
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace zinc_rt::server
