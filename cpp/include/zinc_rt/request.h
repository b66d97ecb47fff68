// Request describes a generation that a client wants. The engine returns the other types in this file for it.
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

// Changes the logits from which the next token is picked. token_ids are all tokens so far, beginning with the prompt;
// logits are the model's for the next token. An error ends the request.
using LogitsProcessor = std::function<Status(std::span<const std::int32_t> token_ids, std::span<float> logits)>;

// OutputFormat is the form that the text of an answer must have. It applies only to the text after the reasoning.
struct OutputFormat {
  enum class Kind : std::uint8_t {
    kText,        // any text is allowed
    kJsonObject,  // any JSON object is allowed
    kJsonSchema,  // text is a JSON schema
    kRegex,       // text is an expression that the whole answer must match
    kChoice,      // the answer is one of `choices`
    kGbnf,        // text is a grammar in llama.cpp's notation
    // `text` is the JSON of an xgrammar structural tag. The answer is free text, except between tags, where a grammar
    // applies.
    kStructuralTag,
  };
  Kind kind = Kind::kText;
  std::string text;
  std::vector<std::string> choices;
};

// Says whether the model may call tools (kAuto), must call some tool (kRequired), or must call one given tool (kNamed).
// With kAuto the arguments must match a tool's schema only if the tool has "strict": true. With kRequired and kNamed
// the arguments must always match the schema.
enum class ToolChoice : std::uint8_t { kAuto, kRequired, kNamed };

struct Conversation;  // messages, tools and template variables, which the server parsed; opaque to other callers

struct Request : SamplingParams {
  // The prompt. Exactly one of `prompt`, `messages`, `conversation` and `token_ids` must be given. `messages` is a JSON
  // list of {"role": ..., "content": ...}, which the model's chat template renders. `conversation` replaces messages,
  // tools and chat_template_kwargs by their parsed form.
  std::optional<std::string> prompt;
  std::optional<std::string> messages;
  std::optional<std::vector<std::int32_t>> token_ids;
  std::shared_ptr<const Conversation> conversation;

  // The following members may be given only with `messages`. With `prompt` or `token_ids` they are refused.
  std::optional<std::string> tools;                 // JSON list, which is passed to the template
  std::optional<std::string> chat_template_kwargs;  // JSON object with further variables for the template
  std::optional<bool> add_generation_prompt;        // if absent, true unless continue_final_message is set
  // If true, the prompt ends with the content of the last message, and the generation continues that text. Refused
  // together with add_generation_prompt.
  bool continue_final_message = false;

  std::string model;  // name of the model; empty for the engine's first model
  // The service class: "interactive", "standard" or "batch". If empty, the tenant's class is used. A class that is more
  // urgent than the tenant's class counts as the tenant's class.
  std::string qos;
  // Says how many tokens a step may guess (draft) for this request. "off" means none. "1" to "32" means up to that many
  // in every step. "auto" means as many as save time. A guess changes no token and no logit. If empty, the engine's
  // option is used. The engine's option is also the limit. No tokens are guessed for requests with a logits_processor.
  std::string speculate;
  // The answer will probably be like this text, for example code that the prompt asks to edit. Steps guess its tokens.
  // Only one of `prediction` and `prediction_token_ids` may be given.
  std::string prediction;
  std::vector<std::int32_t> prediction_token_ids;
  std::uint32_t n = 1;  // number of completions, each with its own seed; the prompt is computed once
  // The salt has up to 256 bytes. Requests share cached prefixes only with requests of the same salt and tenant (or
  // isolation group). Tenant::flush_prefix_cache removes the prefixes of all salts.
  std::string cache_salt;
  std::string request_id;  // up to 256 bytes; the request's name in the step timeline
  // The W3C trace context, of up to 256 bytes, that links the request to the caller's trace. The step timeline shows it
  // too.
  std::string traceparent;

  // The value of max_tokens that means: as many as context and quota allow.
  static constexpr std::uint32_t kAllThatFit = UINT32_MAX;
  std::uint32_t max_tokens = 128;  // 0 generates nothing, and is allowed only with prompt_logprobs or embed
  // Number of tokens that must be generated before a stop token or the model's end token can be picked; at most
  // max_tokens. Stop strings are searched only in the text of later tokens.
  std::uint32_t min_tokens = 0;
  // Maps a token id to a value of -100 to 100 that is added to its logit, before penalties and sampling. The reported
  // logprobs are computed from the model's logits, without the bias. Up to 1024 entries.
  std::map<std::int32_t, float> logit_bias;
  // Called before each token is picked, before logit_bias, penalties and sampling. logprobs and logits_hashes are
  // computed from the model's logits before the call. The function runs on the step thread of the request's device, so
  // all other requests on the device wait for it. The function must not call the engine. The results of other requests
  // do not change.
  LogitsProcessor logits_processor;
  std::optional<std::uint64_t> seed;         // if absent, a random seed is used and reported in Completion::seed
  std::vector<std::string> stop;             // stop strings; the text ends before the first stop string that occurs
  bool include_stop_str_in_output = false;   // the text ends after the stop string instead
  std::vector<std::int32_t> stop_token_ids;  // end the text like the model's own end tokens; up to 1024
  bool ignore_eos = false;                   // generation continues after the model's end tokens
  // False: special tokens appear in the text, except the token that ends the text.
  bool skip_special_tokens = true;
  // If true, the text is split into the answer, the reasoning and, if tools are given, the tool calls. The formats of
  // reasoning and calls are known from the model's template (ModelCard::tool_format, reasoning_format). Stop strings
  // are not searched in calls.
  bool parse_output = false;
  // The answer must have this form. An unsupported schema is refused with kInvalidArgument and the JSON pointer to the
  // unsupported part. A grammar that needs too much work in a step ends the request as processor_failed,
  // "[grammar_too_complex]". Refused together with ignore_eos or min_tokens.
  OutputFormat output_format;
  ToolChoice tool_choice = ToolChoice::kAuto;  // used with parse_output and tools
  std::string named_tool;                      // name of the tool that must be called, with kNamed
  std::uint32_t max_tool_calls = 0;  // with parse_output, the text ends after this many calls; 0 means no limit
  // N <= 128: log probabilities of the picked token and of the n most likely tokens; 0: none.
  std::uint32_t logprobs = 0;
  // If set, the completion contains the log probability of each prompt token, given the tokens before it, and of this
  // many (0 to 20) most likely tokens at the same position. A request with this member uses nothing from the prefix
  // cache, except what it computed itself before a preemption. With n > 1 the first choice holds the result.
  std::optional<std::uint32_t> prompt_logprobs;
  bool return_logits_hash = false;
  // If true, the request computes the text's embedding instead of a completion. The model must have been opened with a
  // pooling. max_tokens must be 0 and n 1, and no field about picking tokens may be given.
  bool embed = false;
  // With embed and a model of pooling rank, this is the document whose score is computed instead of an embedding;
  // `prompt` is the query. Such a model requires it, and all others refuse it.
  std::optional<std::string> text_pair;
  // Number of elements of the embedding to return, from the first on, normalized to length 1. 0: all.
  std::uint32_t dimensions = 0;
  double deadline_ms = 0;  // milliseconds from the call after which the request is cancelled; 0 means no deadline
  // Any thread may request a stop. A running submit() then returns kCancelled, within a few ms of its thread's time,
  // while the request is checked, rendered or tokenized. After submit() has returned this member is not read. Use
  // RequestHandle::cancel() then.
  std::stop_token cancel;
  // A stream buffers up to this many events for a slow reader. When the buffer is full the request pauses. If the
  // reader does not return, the request ends as client_too_slow. 0 means room for all events of the request, so that no
  // reader is too slow.
  std::uint32_t stream_capacity = 0;
};

struct TokenLogprob {
  std::int32_t token_id = 0;
  double logprob = 0;                                // natural logarithm; NaN for the first token of a prompt
  std::vector<std::pair<std::int32_t, double>> top;  // pairs of token id and log probability, most likely first
};

struct Usage {
  std::uint32_t prompt_tokens = 0;
  std::uint32_t completion_tokens = 0;
  std::uint32_t total_tokens = 0;
  std::uint32_t cached_tokens = 0;     // prompt tokens whose KV came from the prefix cache
  std::uint32_t reasoning_tokens = 0;  // the part of completion_tokens that is reasoning; set only with parse_output
  // How many guessed tokens were picked and how many were not, if the request had a prediction. The first number is
  // Timings::accepted_draft_tokens, and the sum of both is Timings::draft_tokens.
  std::uint32_t accepted_prediction_tokens = 0, rejected_prediction_tokens = 0;
};

struct Timings {
  double queue_ms = 0;    // time without a slot, including after preemptions
  double prefill_ms = 0;  // time from the call until the first token was picked
  double decode_ms = 0;   // time for all tokens after the first
  double prefill_tokens_per_s = 0;
  double decode_tokens_per_s = 0;
  // Number of tokens that the steps guessed for the request, and how many of these tokens were picked.
  std::uint32_t draft_tokens = 0, accepted_draft_tokens = 0;
  std::vector<std::string> clamps;  // which limits were lowered (such as max_tokens), and why
};

struct Completion {
  std::string text;                     // without the end token; with the stop string if include_stop_str_in_output
  std::string reasoning;                // set with parse_output; `text` is then only the answer
  std::vector<ToolCall> tool_calls;     // set with parse_output if the request has tools
  std::vector<OutputPiece> pieces;      // set with parse_output: text, reasoning and calls in the order of generation
  std::vector<std::int32_t> token_ids;  // all picked tokens, including the end token
  // The text in Request::stop that ended the generation; empty if no stop string ended it.
  std::string stop_string;
  // Says why the request ended: stop, length, cancelled, deadline, client_too_slow or sink_failed. If an error ended
  // it: bad_logits, processor_failed, device_fault, shutdown or out_of_pages. Empty while the request runs.
  std::string finish_reason;
  std::vector<TokenLogprob> logprobs;         // one per token; empty if the request has no logprobs
  std::vector<TokenLogprob> prompt_logprobs;  // one per prompt token, if requested; set before the first token's event
  std::vector<std::uint64_t> logits_hashes;   // one per token, if requested: XXH3-64 of the logits' float32 bytes
  // The embedding, normalized to Euclidean length 1. Empty if it was not requested, or if the request ended early.
  std::vector<float> embedding;
  std::optional<double> score;  // score of a pair of texts, 0 to 1: 1 / (1 + e^-x) of the model's output x
  std::uint64_t seed = 0;
  Usage usage;
  Timings timings;
  // With n > 1, `choices` holds all n completions. The members above then describe the first completion, except
  // `usage`, which is the sum over all.
  std::vector<Completion> choices;
};

struct StreamEvent {
  std::int32_t token_id = 0;
  // Contains the text that became final with this token. It never ends within a UTF-8 sequence. The end of the text may
  // come in a separate event.
  std::string text;
  bool preempted = false;     // the request lost its slot and will continue later; the event has no token
  bool is_token = true;       // false if the event has only text that was held back until the end, or if `preempted`
  std::uint32_t index = 0;    // which of the n completions the event belongs to
  std::uint64_t time_us = 0;  // when the token's step ended, on a monotonic clock
  std::optional<TokenLogprob> logprob;  // set for tokens, if requested
  // Set with parse_output: all pieces; `text` contains only the pieces of the answer.
  std::vector<OutputPiece> pieces;
  std::optional<std::uint64_t> logits_hash;  // set for tokens, if requested
};

}  // namespace zinc_rt
