// One generation: what is asked, what comes back.
// Thread rule: plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "zinc_rt/output.h"
#include "zinc_rt/sampling.h"
#include "zinc_rt/status.h"

namespace zinc_rt {

// Changes the logits of a pick: the tokens so far, prompt first, and the model's logits after them. An error ends the
// request.
using LogitsProcessor = std::function<Status(std::span<const std::int32_t> token_ids, std::span<float> logits)>;

// What an answer must look like. A grammar bounds its text behind the reasoning.
struct OutputFormat {
  enum class Kind : std::uint8_t {
    kText,           // anything
    kJsonObject,     // any JSON object
    kJsonSchema,     // text: a JSON schema
    kRegex,          // text: an expression that the whole answer matches
    kChoice,         // choices: one of these texts
    kGbnf,           // text: a grammar in llama.cpp's notation
    kStructuralTag,  // text: JSON, as xgrammar has it: free text in which tags bind what stands between them
  };
  Kind kind = Kind::kText;
  std::string text;
  std::vector<std::string> choices;
};

// Whether the model may call tools, must, or must call just one of them. Where it may, calls of tools that say
// "strict": true are bound to the tool's schema; where it must, all are.
enum class ToolChoice : std::uint8_t { kAuto, kRequired, kNamed };

struct Conversation;  // messages, tools and variables of a template as the server reads them; opaque to other callers

struct Request : SamplingParams {
  // Just one of the four. messages is a JSON list of {"role": ..., "content": ...}, rendered by the model's chat
  // template. conversation stands for messages, tools and chat_template_kwargs, and has been read already.
  std::optional<std::string> prompt;
  std::optional<std::string> messages;
  std::optional<std::vector<std::int32_t>> token_ids;
  std::shared_ptr<const Conversation> conversation;

  // Of messages alone; with prompt or token_ids they are refused.
  std::optional<std::string> tools;                 // a JSON list, for the template
  std::optional<std::string> chat_template_kwargs;  // a JSON object: further variables of the template
  std::optional<bool> add_generation_prompt;        // absent: yes, unless continue_final_message
  // The prompt ends with the last message's content, a text, which the generation goes on. Refused with
  // add_generation_prompt.
  bool continue_final_message = false;

  std::string model;    // by name; empty: the engine's first
  std::string qos;      // interactive, standard or batch; empty: the tenant's. No class more urgent than the tenant's.
  std::uint32_t n = 1;  // completions of the prompt, which is computed once; seeds differ
  // Up to 256 bytes. Requests share cached prefixes only with those of the same salt, within their tenant (or its
  // isolation group). Tenant::flush_prefix_cache drops those of all salts.
  std::string cache_salt;
  std::string request_id;   // up to 256 bytes: the request's name in the step timeline
  std::string traceparent;  // up to 256 bytes, beside it there: where the request lies in the caller's own trace

  static constexpr std::uint32_t kAllThatFit = UINT32_MAX;  // max_tokens: what context and quota leave
  std::uint32_t max_tokens = 128;                           // 0, with prompt_logprobs alone: nothing is generated
  // So many tokens come before a stop token or the model's end token can be picked; stop strings are looked for in the
  // text of later tokens. Up to max_tokens.
  std::uint32_t min_tokens = 0;
  // By token id, -100 to 100: added to the model's logits before all else that this request asks for. Logprobs are
  // those of the model, without it. Up to 1024 entries.
  std::map<std::int32_t, float> logit_bias;
  // Called before each pick, ahead of logit_bias, penalties and all else that this request asks for; logprobs and
  // logits_hashes are those of the model, without it. It runs on the thread of the steps, so that every request of the
  // engine waits for it: it must not call the engine. The others keep their bits.
  LogitsProcessor logits_processor;
  std::optional<std::uint64_t> seed;         // absent: drawn at random and reported in Completion::seed
  std::vector<std::string> stop;             // the text ends before the first of them
  bool include_stop_str_in_output = false;   // the text ends behind it instead
  std::vector<std::int32_t> stop_token_ids;  // besides the model's own end tokens; up to 1024
  bool ignore_eos = false;                   // go on past the model's end tokens
  bool skip_special_tokens = true;           // false: special tokens are text too, but not the one that ends it
  // The text is taken apart into the answer, the reasoning and, where tools are given, their calls, as the model's
  // template writes them (ModelCard::tool_format, reasoning_format). Stop strings are not looked for in calls.
  bool parse_output = false;
  // What is not supported is kInvalidArgument, with the JSON pointer of the schema's part. A grammar that takes too much
  // work for a step ends the request as processor_failed, "[grammar_too_complex]". Not with ignore_eos or min_tokens.
  OutputFormat output_format;
  ToolChoice tool_choice = ToolChoice::kAuto;  // with parse_output and tools
  std::string named_tool;                      // with kNamed
  std::uint32_t max_tool_calls = 0;            // with parse_output: the text ends behind so many calls; 0: no limit
  std::uint32_t logprobs = 0;                  // 0: none; n: of the token and of the n most likely, at most 128
  // The log-probability of each prompt token given those before it, and of this many most likely tokens in its place (0
  // to 20). Absent: none. Such a request takes nothing from the prefix cache but what it scored before a preemption. Of
  // several choices the first one has them.
  std::optional<std::uint32_t> prompt_logprobs;
  bool return_logits_hash = false;
  // The text's embedding instead of a completion, from a model that was opened with a pooling. max_tokens is 0 then, n
  // is 1, and no field that speaks of tokens to be picked is given.
  bool embed = false;
  // With embed, of a model with pooling rank: the score of prompt, the query, and this text, the document, instead of
  // an embedding. Such a model wants it, no other takes it.
  std::optional<std::string> text_pair;
  std::uint32_t dimensions = 0;  // of the embedding: its first so many, of length 1 again; 0: all
  double deadline_ms = 0;        // 0: none; counted from the call
  // Requested from any thread, it ends a submit() under way with kCancelled, within a few ms of its thread's time,
  // while the request is checked, rendered or tokenized. It is not looked at after submit() has returned;
  // RequestHandle::cancel() ends what runs.
  std::stop_token cancel;
  // Events that a stream holds for a reader who is behind; past that the request is held up, and ends as
  // client_too_slow when the reader stays away. 0: all that the request can make, so that no reader is too slow.
  std::uint32_t stream_capacity = 0;
};

struct TokenLogprob {
  std::int32_t token_id = 0;
  double logprob = 0;  // natural; NaN for a prompt's first token, which has nothing before it
  std::vector<std::pair<std::int32_t, double>> top;  // most likely first
};

struct Usage {
  std::uint32_t prompt_tokens = 0;
  std::uint32_t completion_tokens = 0;
  std::uint32_t total_tokens = 0;
  std::uint32_t cached_tokens = 0;     // of the prompt, taken from a cache
  std::uint32_t reasoning_tokens = 0;  // of the completion, where the output is parsed
};

struct Timings {
  double queue_ms = 0;    // until it got a slot, and waiting again when preempted
  double prefill_ms = 0;  // until the first token was picked, from the call
  double decode_ms = 0;   // all later tokens
  double prefill_tokens_per_s = 0;
  double decode_tokens_per_s = 0;
  std::vector<std::string> clamps;  // what was shortened; empty unless something was
};

struct Completion {
  std::string text;                     // without the end token; of the stop string: include_stop_str_in_output
  std::string reasoning;                // with parse_output; text is then the answer alone
  std::vector<ToolCall> tool_calls;     // with parse_output and tools
  std::vector<OutputPiece> pieces;      // with parse_output: the same in the order in which it was written
  std::vector<std::int32_t> token_ids;  // all that were picked, the end token too
  std::string stop_string;              // of Request::stop, the one that ended the text; empty: none did
  // stop, length, cancelled, deadline, client_too_slow or sink_failed; with an error bad_logits, processor_failed,
  // device_fault, shutdown or out_of_pages; empty while it runs
  std::string finish_reason;
  std::vector<TokenLogprob> logprobs;         // one a token when asked for
  std::vector<TokenLogprob> prompt_logprobs;  // one a prompt token when asked for; there with the first token's event
  std::vector<std::uint64_t> logits_hashes;   // one a token when asked for: XXH3-64 of the logit row's float32 bytes
  std::vector<float> embedding;               // of length 1, where one was asked for and the request ended by itself
  std::optional<double> score;  // 0 to 1, of a pair of texts: 1 / (1 + e^-logit) of what the model's head gives
  std::uint64_t seed = 0;
  Usage usage;
  Timings timings;
  std::vector<Completion> choices;  // with n > 1: all n; the fields above are the first one's, usage is of all
};

struct StreamEvent {
  std::int32_t token_id = 0;
  std::string text;  // what became sure with this token; never half a UTF-8 sequence; the end of a text may follow in
                     // an event of its own
  bool preempted = false;     // the request gave way to another and will go on; no token
  bool is_token = true;       // false: text alone, held back until the end, or preempted
  std::uint32_t index = 0;    // which of n completions
  std::uint64_t time_us = 0;  // of tokens: when the step that made it ended, on a clock that only runs forward
  std::optional<TokenLogprob> logprob;       // of tokens, when logprobs are asked for
  std::vector<OutputPiece> pieces;           // with parse_output: all parts, of which text has those of the answer
  std::optional<std::uint64_t> logits_hash;  // of tokens, when hashes are asked for
};

}  // namespace zinc_rt
