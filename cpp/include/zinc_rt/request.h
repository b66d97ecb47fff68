// A request for a generation, and what the engine returns for it.
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

// Changes the logits from which the next token is picked. token_ids are all tokens so far, those of the prompt first;
// logits are the model's for the next token. An error ends the request.
using LogitsProcessor = std::function<Status(std::span<const std::int32_t> token_ids, std::span<float> logits)>;

// The form that the text of an answer must have. It binds only the text that follows the reasoning.
struct OutputFormat {
  enum class Kind : std::uint8_t {
    kText,        // anything
    kJsonObject,  // any JSON object
    kJsonSchema,  // text: a JSON schema
    kRegex,       // text: an expression that the whole answer matches
    kChoice,      // choices: one of these texts
    kGbnf,        // text: a grammar in llama.cpp's notation
    // text: JSON of an xgrammar structural tag: the answer is free text, except between tags, where a grammar applies
    kStructuralTag,
  };
  Kind kind = Kind::kText;
  std::string text;
  std::vector<std::string> choices;
};

// Whether the model may call tools (kAuto), must call some tool (kRequired), or must call one given tool (kNamed). With
// kAuto, the arguments must match a tool's schema only if the tool has "strict": true; with the others they must match
// always.
enum class ToolChoice : std::uint8_t { kAuto, kRequired, kNamed };

struct Conversation;  // messages, tools and template variables, parsed by the server; opaque to other callers

struct Request : SamplingParams {
  // Exactly one of these four is given. messages is a JSON list of {"role": ..., "content": ...}, which the model's
  // chat template renders. conversation replaces messages, tools and chat_template_kwargs by their parsed form.
  std::optional<std::string> prompt;
  std::optional<std::string> messages;
  std::optional<std::vector<std::int32_t>> token_ids;
  std::shared_ptr<const Conversation> conversation;

  // These are used with messages only. With prompt or token_ids they are refused.
  std::optional<std::string> tools;                 // a JSON list, passed to the template
  std::optional<std::string> chat_template_kwargs;  // a JSON object with further variables for the template
  std::optional<bool> add_generation_prompt;        // absent: true, unless continue_final_message
  // The prompt ends with the content of the last message, and the generation continues that text. Refused together with
  // add_generation_prompt.
  bool continue_final_message = false;

  std::string model;  // its name; empty: the engine's first model
  // interactive, standard or batch. Empty: the tenant's class. It cannot be more urgent than the tenant's class.
  std::string qos;
  // How many tokens a step may guess for this request: off; 1 to 32, so many wherever there is a guess; or auto, as many
  // as save time. A guess changes no token and no logit. Empty: the engine's option, which is also the limit. Requests
  // with a logits_processor and models with recurrent state take no guesses.
  std::string speculate;
  // A text that the answer is expected to be like, such as the code that the prompt asks to edit. Steps guess its
  // tokens. At most one of the two is given.
  std::string prediction;
  std::vector<std::int32_t> prediction_token_ids;
  std::uint32_t n = 1;  // number of completions, each with its own seed; the prompt is computed once
  // Up to 256 bytes. Requests share cached prefixes only with requests that have the same salt and tenant (or isolation
  // group). Tenant::flush_prefix_cache drops the prefixes of all salts.
  std::string cache_salt;
  std::string request_id;  // up to 256 bytes: the request's name in the step timeline
  // Up to 256 bytes, also shown in the step timeline: the W3C trace context that links the request to the caller's
  // trace.
  std::string traceparent;

  static constexpr std::uint32_t kAllThatFit = UINT32_MAX;  // a value of max_tokens: as many as context and quota allow
  std::uint32_t max_tokens = 128;                           // 0 only with prompt_logprobs or embed: generates nothing
  // The number of tokens that are generated before a stop token or the model's end token can be picked. Stop strings
  // are searched only in the text of later tokens. At most max_tokens.
  std::uint32_t min_tokens = 0;
  // Maps a token id to a value of -100 to 100 that is added to its logit, before penalties and sampling. Logprobs are
  // those of the model, without the bias. Up to 1024 entries.
  std::map<std::int32_t, float> logit_bias;
  // Called before each token is picked, before logit_bias, penalties and sampling. logprobs and logits_hashes are those
  // of the model, before the call. It runs on the step thread of the request's device, so the other requests there wait.
  // It must not call the engine. The results of other requests do not change.
  LogitsProcessor logits_processor;
  std::optional<std::uint64_t> seed;         // absent: a random one, reported in Completion::seed
  std::vector<std::string> stop;             // stop strings; the text ends before the first that occurs
  bool include_stop_str_in_output = false;   // the text ends after the stop string instead
  std::vector<std::int32_t> stop_token_ids;  // besides the model's own end tokens; up to 1024
  bool ignore_eos = false;                   // go on past the model's end tokens
  bool skip_special_tokens = true;           // false: special tokens appear in the text, except the one that ends it
  // The text is split into the answer, the reasoning and, if tools are given, the tool calls. The formats are those of
  // the model's template (ModelCard::tool_format, reasoning_format). Stop strings are not searched in calls.
  bool parse_output = false;
  // An unsupported schema is refused with kInvalidArgument and the JSON pointer to the unsupported part. A grammar that
  // needs too much work in a step ends the request as processor_failed, "[grammar_too_complex]". Refused together with
  // ignore_eos or min_tokens.
  OutputFormat output_format;
  ToolChoice tool_choice = ToolChoice::kAuto;  // with parse_output and tools
  std::string named_tool;                      // with kNamed
  std::uint32_t max_tool_calls = 0;            // with parse_output: the text ends after this many calls; 0: no limit
  std::uint32_t logprobs = 0;                  // 0: none; n <= 128: those of the picked token and of the n most likely
  // Returns the log-probability of each prompt token given those before it, and of this many (0 to 20) most likely
  // tokens at its position. Absent: none. Such a request uses nothing from the prefix cache, except what it computed
  // itself before a preemption. With n > 1 the first choice holds the result.
  std::optional<std::uint32_t> prompt_logprobs;
  bool return_logits_hash = false;
  // Returns the text's embedding instead of a completion. The model must have been opened with a pooling. max_tokens
  // must be 0 and n 1, and no field about picking tokens may be given.
  bool embed = false;
  // With embed and a model of pooling rank: the document whose score is computed, instead of an embedding; `prompt` is
  // the query. Required by such a model, refused by all others.
  std::optional<std::string> text_pair;
  std::uint32_t dimensions = 0;  // keep only the first so many of the embedding and normalize them to length 1; 0: all
  double deadline_ms = 0;        // 0: none; counted from the call
  // Any thread may request a stop. A running submit() then returns kCancelled, within a few ms of its thread's time,
  // while the request is checked, rendered or tokenized. After submit() has returned the token is not read; use
  // RequestHandle::cancel() then.
  std::stop_token cancel;
  // The number of events that a stream buffers for a slow reader. When the buffer is full the request pauses; if the
  // reader does not return, the request ends as client_too_slow. 0: room for all events of the request, so that no
  // reader is too slow.
  std::uint32_t stream_capacity = 0;
};

struct TokenLogprob {
  std::int32_t token_id = 0;
  double logprob = 0;                                // natural logarithm; NaN for the first token of a prompt
  std::vector<std::pair<std::int32_t, double>> top;  // most likely first
};

struct Usage {
  std::uint32_t prompt_tokens = 0;
  std::uint32_t completion_tokens = 0;
  std::uint32_t total_tokens = 0;
  std::uint32_t cached_tokens = 0;     // prompt tokens whose KV came from the prefix cache
  std::uint32_t reasoning_tokens = 0;  // the part of completion_tokens that is reasoning; with parse_output
  // For requests with a prediction: Timings::accepted_draft_tokens, and the rest of draft_tokens.
  std::uint32_t accepted_prediction_tokens = 0, rejected_prediction_tokens = 0;
};

struct Timings {
  double queue_ms = 0;    // waiting for a slot, also after preemptions
  double prefill_ms = 0;  // from the call until the first token was picked
  double decode_ms = 0;   // all later tokens
  double prefill_tokens_per_s = 0;
  double decode_tokens_per_s = 0;
  // Tokens that steps guessed, and those of them that were picked.
  std::uint32_t draft_tokens = 0, accepted_draft_tokens = 0;
  std::vector<std::string> clamps;  // which limits were lowered (such as max_tokens), and why
};

struct Completion {
  std::string text;                     // without the end token; with the stop string if include_stop_str_in_output
  std::string reasoning;                // with parse_output; `text` is then only the answer
  std::vector<ToolCall> tool_calls;     // with parse_output and tools
  std::vector<OutputPiece> pieces;      // with parse_output: text, reasoning and calls in the order of generation
  std::vector<std::int32_t> token_ids;  // all picked tokens, including the end token
  std::string stop_string;              // the entry of Request::stop that ended the text; empty: none did
  // stop, length, cancelled, deadline, client_too_slow or sink_failed. If an error ended the request: bad_logits,
  // processor_failed, device_fault, shutdown or out_of_pages. Empty while the request runs.
  std::string finish_reason;
  std::vector<TokenLogprob> logprobs;         // one per token, if requested
  std::vector<TokenLogprob> prompt_logprobs;  // one per prompt token, if requested; set before the first token's event
  std::vector<std::uint64_t> logits_hashes;   // one per token, if requested: XXH3-64 of the logits' float32 bytes
  std::vector<float> embedding;               // of length 1; only if requested and not cut short
  std::optional<double> score;                // of a pair of texts, 0 to 1: 1 / (1 + e^-x) of the model's output x
  std::uint64_t seed = 0;
  Usage usage;
  Timings timings;
  // With n > 1: all n completions. The fields above are then those of the first one, except usage, which covers all.
  std::vector<Completion> choices;
};

struct StreamEvent {
  std::int32_t token_id = 0;
  // The text that became final with this token. It never ends within a UTF-8 sequence. The end of the text may follow
  // in a separate event.
  std::string text;
  bool preempted = false;                    // no token: the request lost its slot and will continue later
  bool is_token = true;                      // false: only text that was held back until the end, or `preempted`
  std::uint32_t index = 0;                   // which of n completions
  std::uint64_t time_us = 0;                 // of tokens: when their step ended, on a monotonic clock
  std::optional<TokenLogprob> logprob;       // of tokens, if requested
  std::vector<OutputPiece> pieces;           // with parse_output: all pieces; `text` is those of the answer
  std::optional<std::uint64_t> logits_hash;  // of tokens, if requested
};

}  // namespace zinc_rt
