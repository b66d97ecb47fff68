// Metrics counts and publishes metrics for Prometheus. The metrics' names begin with "zinc:", and a label names the
// tenant. Some are also published under vLLM's names, for dashboards and gateways that expect vLLM's names.
// Thread rule: any thread.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "server/transport/transport.h"
#include "zinc_rt/engine.h"

namespace zinc_rt::server {

class Metrics {
 public:
  explicit Metrics(std::string version);

  // Series holds the metrics of one tenant and model. The pointers are valid as long as the Metrics object.
  struct Series {
    prometheus::Histogram *time_to_first_token, *token_interval, *request_time, *queue_time;
    prometheus::Counter *prompt_tokens, *cached_tokens, *generated_tokens;
    std::map<std::string, prometheus::Counter*> finished;  // key: the finish reason
  };
  Series& series(const std::string& tenant, const std::string& model);
  void finished(Series& series, const std::string& reason);
  void answered(int status);             // counts an HTTP answer
  void refused(const std::string& why);  // counts a refused request; why: rate, queue, draining, invalid
  // Counts an answer whose caller asked for a latency: "ttft" (time to the first token) or "tpot" (time per token).
  void wanted_latency(const char* which, bool is_met);

  struct TenantNow {
    std::string name, qos_class;
    TenantLedger ledger;
  };
  // Copies the engine's counters. `ids` maps the engine's names of models to the ids that clients use.
  void update(const EngineStats& stats, const std::map<std::string, std::string>& ids,
              const std::vector<TenantNow>& tenants);
  // Returns the text for Prometheus. engine_age_s is the time in seconds since the engine was last seen between two
  // steps. If shows_tenants is false, metrics with a tenant's name are left out.
  std::string scrape(const TransportCounts& transport, double engine_age_s, bool shows_tenants);

 private:
  std::string label_of(const std::string& tenant);  // the tenant's name for the first 200 tenants, "other" for more
  prometheus::Gauge& gauge(const char* name, const char* help, const prometheus::Labels& labels);
  prometheus::Counter& counter(const char* name, const char* help, const prometheus::Labels& labels);
  void raise_to(const char* name, const char* help, const prometheus::Labels& labels, const std::string& source,
                double value);
  void show(const char* name, const char* help, const prometheus::Labels& labels, double value);

  std::mutex mutex_;
  prometheus::Registry registry_;
  // Key: the label of the tenant, and the model.
  std::map<std::pair<std::string, std::string>, std::unique_ptr<Series>> series_;
  // Tenants that have a label of their own. Key: the tenant's name.
  std::map<std::string, bool> labels_;
  // The families of all metrics. Key: the metric's name.
  std::map<std::string, prometheus::Family<prometheus::Gauge>*> gauges_;
  std::map<std::string, prometheus::Family<prometheus::Counter>*> counters_;
  std::map<std::string, prometheus::Family<prometheus::Histogram>*> histograms_;
  // Gauges that the last update has set.
  std::set<std::pair<prometheus::Family<prometheus::Gauge>*, prometheus::Gauge*>> shown_;
  // The key is a counter and a source. The value is the source's count at the last update.
  std::map<std::pair<std::string, std::string>, double> sources_;
};

}  // namespace zinc_rt::server
