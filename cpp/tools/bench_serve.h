// Shared by the parts of zinc-rt bench serve: the requested load, the result of each request, and the reports. Thread
// rule: one thread.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "zinc_rt/status.h"

namespace zinc_rt::tools {

struct TokenRange {
  std::uint32_t low = 1, high = 1;  // both may be taken
};
// Reads "128" or "32-256". Errors: kInvalidArgument.
Result<TokenRange> parse_token_range(const std::string& text);

// Who sends requests, and how.
struct ServeTenant {
  std::string name, key;         // no key: none is sent
  std::uint32_t clients = 4;     // closed loop: each asks again when its answer has ended
  double rate = 0;               // open loop where above 0: requests a second on average, at random moments
  std::uint32_t n_requests = 0;  // 0: as many as the duration has room for
  double start_s = 0;            // when its load begins
  TokenRange prompt{128, 128}, output{64, 64};
};
// "NAME,key=K,clients=N,rate=R,requests=N,start=S,prompt=A-B,output=A-B". Missing parts are taken from `others`.
// Errors: kInvalidArgument naming what is wrong.
Result<ServeTenant> parse_serve_tenant(const std::string& text, const ServeTenant& others);

struct ServeBenchOptions {
  std::string url, model, api = "chat";
  std::vector<ServeTenant> tenants;
  std::uint32_t shared_prefix = 0;  // tokens before a prompt's own
  double shared_part = 1;           // of the requests, whose prefix is the same; the others' are their own
  double drop_part = 0;             // of the requests, which hang up somewhere
  double duration_s = 0;            // in which requests begin; 0: until all have asked n_requests
  double timeout_s = 120;
  std::uint64_t seed = 1;
  bool ignore_eos = false, progress = false;
  nlohmann::ordered_json extra_body = nlohmann::ordered_json::object();  // further fields of each request
};

// The result of a request. Times are in seconds since the load began.
struct ServeSample {
  enum How : std::uint8_t { kOk, kDropped, kFailed };

  std::uint32_t tenant = 0;
  How how = kFailed;
  double asked_s = 0;  // open loop: when it was to be sent, whether or not the program managed to
  double end_s = 0;
  std::vector<double> pieces_s;                                           // when pieces of text came
  std::string status;                                                     // 200, 429, ..., or why there is none
  std::string words;                                                      // of a failure
  std::uint32_t prompt_tokens = 0, cached_tokens = 0, output_tokens = 0;  // as the server counts, else pieces
};

struct ServeBenchResult {
  ServeBenchOptions options;  // with the model's name, if the server gave one
  double tokens_per_word =
      0;                      // of the words that prompts are made of; 0: the server does not say, so lengths are words
  double wall_s = 0;          // to the end of the last request
  bool is_cut_short = false;  // by Ctrl-C
  std::vector<ServeSample> samples;  // in the order of their ends
};
// Errors: kUnavailable, in the server's words, if it does not answer a first request.
Result<ServeBenchResult> measure_server(ServeBenchOptions options);

// Milliseconds to the first piece of text; negative if none came.
double first_piece_ms(const ServeSample& sample);
nlohmann::ordered_json serve_bench_json(const ServeBenchResult& result);
std::string serve_bench_text(const ServeBenchResult& result, bool markdown);
// An SVG picture: times to the first token over time, their distribution, tokens per second, worst gaps.
std::string serve_bench_svg(const ServeBenchResult& result);

}  // namespace zinc_rt::tools
