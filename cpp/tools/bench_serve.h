// The parts of `zinc-rt bench serve` share these types and functions: the requested load, the result of each request,
// and the reports. Thread rule: one thread.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "zinc_rt/status.h"

namespace zinc_rt::tools {

struct TokenRange {
  std::uint32_t low = 1, high = 1;  // both bounds are included
};
// Reads "128" or "32-256". Errors: kInvalidArgument.
Result<TokenRange> parse_token_range(const std::string& text);

// ServeTenant is a simulated tenant: its key and the load that it sends.
struct ServeTenant {
  std::string name, key;         // if `key` is empty, no key is sent
  std::uint32_t clients = 4;     // closed loop: each client sends its next request when its answer has ended
  double rate = 0;               // if above 0, open loop: requests per second on average, at random times
  std::uint32_t n_requests = 0;  // 0: as many as fit into the duration
  double start_s = 0;            // when its load begins, in seconds
  TokenRange prompt{128, 128}, output{64, 64};
};
// Parses "NAME,key=K,clients=N,rate=R,requests=N,start=S,prompt=A-B,output=A-B". Missing parts get the values of
// `others`. Errors: kInvalidArgument that names the wrong part.
Result<ServeTenant> parse_serve_tenant(const std::string& text, const ServeTenant& others);

// ServeBenchOptions tells what is measured: which server, which tenants, and how their requests look.
struct ServeBenchOptions {
  std::string url, model, api = "chat";
  std::vector<ServeTenant> tenants;
  std::uint32_t shared_prefix = 0;  // tokens of a prefix that is put before each prompt
  // The fraction of requests that begin with the common prefix. All other requests begin with prefixes of their own.
  double shared_part = 1;
  double drop_part = 0;   // the fraction of requests that disconnect before their end
  double duration_s = 0;  // seconds in which requests may begin; 0: until each tenant has sent n_requests
  double timeout_s = 120;
  std::uint64_t seed = 1;
  bool ignore_eos = false, progress = false;
  nlohmann::ordered_json extra_body = nlohmann::ordered_json::object();  // added to each request's body
};

// ServeSample is the result of one request. Times are in seconds since the load began.
struct ServeSample {
  enum How : std::uint8_t { kOk, kDropped, kFailed };

  std::uint32_t tenant = 0;
  How how = kFailed;
  // Time at which the request was due; in an open loop the scheduled time, even if it was sent later.
  double asked_s = 0;
  double end_s = 0;
  std::vector<double> pieces_s;  // when each piece of text arrived
  // The HTTP status (200, 429, ...), or the reason why no answer arrived.
  std::string status;
  std::string words;  // the error message of a failed request
  // The server's counts. If it sends none, output_tokens is the number of pieces.
  std::uint32_t prompt_tokens = 0, cached_tokens = 0, output_tokens = 0;
};

struct ServeBenchResult {
  ServeBenchOptions options;  // `model` is filled in if the server lists one
  // The prompts' words have this many tokens on average. 0: the server does not report tokens, so lengths are counted
  // in words.
  double tokens_per_word = 0;
  double wall_s = 0;                 // when the last request ended
  bool is_cut_short = false;         // the user ended the run by Ctrl-C
  std::vector<ServeSample> samples;  // the requests, in the order in which they ended
};
// Sends the load and measures. Errors: kUnavailable with the server's message, if the server does not answer a first
// request.
Result<ServeBenchResult> measure_server(ServeBenchOptions options);

// Returns the milliseconds until the first piece of text; negative if none arrived.
double first_piece_ms(const ServeSample& sample);
nlohmann::ordered_json serve_bench_json(const ServeBenchResult& result);
std::string serve_bench_text(const ServeBenchResult& result, bool markdown);
// Returns an SVG image with four plots: times to the first token over time, their distribution, tokens per second, and
// the largest gaps between pieces.
std::string serve_bench_svg(const ServeBenchResult& result);

}  // namespace zinc_rt::tools
