// A draft model guesses tokens: answers come in fewer steps, and no bit of them changes. What each request gives is
// compared with the same request in an engine without guesses.
#include "engine/draft_model.h"

#include <gmock/gmock.h>

#include "engine_fixture.h"

namespace zinc_rt {
namespace {

constexpr const char* kModel = "llama_spm-f32";
// The same vocabulary, other weights.
const char* const kOther = has_shared_fixtures() ? "mistral-f32" : "tiny_smollm3-f16";

ExecutorOptions options_of(std::uint32_t slots, const char* kv_dtype = "f16") {
  auto options = small_options();
  options.max_slots = slots;
  options.kv_type = find_kv_type(kv_dtype);
  return options;
}

TestEngine start_with_draft(const std::string& model, const TestDraft& draft, const ExecutorOptions& options,
                            const EngineOptions& engine_options = {}, std::shared_ptr<Probe> probe = {}) {
  return start_engine(model, options, engine_options, std::move(probe), open_on_ring, Drive::kThreads, draft);
}

Completion answer_of(const TestEngine& engine, const Request& request) {
  auto answer = engine.session().generate(request);
  EXPECT_TRUE(answer) << (answer ? "" : answer.error().message);
  return answer ? std::move(*answer) : Completion{};
}

void expect_same(const Completion& got, const Completion& wanted) {
  EXPECT_EQ(got.token_ids, wanted.token_ids);
  EXPECT_EQ(got.logits_hashes, wanted.logits_hashes);
  EXPECT_EQ(got.text, wanted.text);
  EXPECT_EQ(got.finish_reason, wanted.finish_reason);
}

// Every kind of request whose picks need more than logits.
std::vector<Request> kinds_of_requests() {
  std::vector<Request> requests;
  for (const char* kind : {"greedy", "warm", "penalties", "grammar", "stop"}) {
    Request r = token_request(prompt(9 + 7 * requests.size(), unsigned(requests.size())), 40);
    const std::string_view name = kind;
    if (name == "warm") r.temperature = 1, r.seed = 11;
    if (name == "penalties") r.repetition_penalty = 1.2f, r.presence_penalty = 0.3f;
    if (name == "grammar") {
      r.output_format = {OutputFormat::Kind::kRegex, R"((\{"name": "[a-z ]{1,4}", "n": [0-9]{1,3}\}, ){40})", {}};
      r.ignore_eos = false;
      r.temperature = 1;
      r.seed = 3;
    }
    if (name == "stop") r.stop_token_ids = {7, 30, 40, 50, 60, 70, 80, 90};
    requests.push_back(std::move(r));
  }
  return requests;
}

struct DraftCase {
  std::string model, draft;
  const char* kv_dtype;
};
void PrintTo(const DraftCase& c, std::ostream* out) {
  *out << c.draft << " for " << c.model << ", " << c.kv_dtype;
}

class DraftSameness : public ::testing::TestWithParam<DraftCase> {};

TEST_P(DraftSameness, OfEveryKindOfRequestAloneAndTogether) {
  const DraftCase& c = GetParam();
  EngineOptions off;
  off.speculate = "off";
  const auto plain = start_engine(c.model, options_of(3, c.kv_dtype), off);
  // Few pages, so that requests preempt each other.
  auto options = options_of(3, c.kv_dtype);
  options.kv_pages = 10;
  // Each step waits until all requests are there, so that they meet however slowly they are made.
  Gate gate;
  gate.open();
  const auto probe = std::make_shared<Probe>();
  probe->before = [&](const StepInput&, std::uint64_t) {
    gate.pass();
    return Status{};
  };
  auto of_draft = options_of(3);
  of_draft.run_ahead = true;
  const auto engine = start_with_draft(c.model, {c.draft, of_draft}, options, {}, probe);
  const std::shared_ptr<void> opens_at_the_end(nullptr, [&](void*) { gate.open(); });
  std::vector<Request> requests = kinds_of_requests();
  std::vector<Completion> wanted;
  for (const Request& request : requests) wanted.push_back(answer_of(plain, request));
  for (const char* speculate : {"auto", "1", "5", "32"}) {
    SCOPED_TRACE(speculate);
    std::vector<Stream> streams;
    gate.close();
    for (Request& request : requests) {
      request.speculate = speculate;
      auto stream = engine.session().stream(request);
      ASSERT_TRUE(stream) << stream.error().message;
      streams.push_back(std::move(*stream));
    }
    gate.open();
    for (std::size_t i = 0; i < streams.size(); ++i) {
      for (auto event = streams[i].next(); event && *event; event = streams[i].next()) {
      }
      expect_same(streams[i].completion(), wanted[i]);
    }
    expect_same(answer_of(engine, requests[0]), wanted[0]);
  }
  EXPECT_GT(engine.stat("draft_model_steps"), 0u);
  EXPECT_EQ(engine.stat("failed_draft_model_steps"), 0u);
  EXPECT_GT(engine.stat("accepted_draft_tokens"), 0u);
  EXPECT_GT(engine.stat("preemptions"), 0u);
  expect_all_free(engine);
}

INSTANTIATE_TEST_SUITE_P(Models, DraftSameness,
                         ::testing::Values(DraftCase{kModel, kModel, "f16"}, DraftCase{kModel, kOther, "f16"},
                                           DraftCase{"llama_k-Q4_K_M", "llama_k-Q4_K_M", "i16"},
                                           DraftCase{"llama_k-Q4_K_M", "llama3_tied_rope-f16", "k8v4"},
                                           DraftCase{"qwen3moe-Q4_K_M", "qwen3-Q4_0", "i16"}),
                         [](const auto& info) {
                           auto name = info.param.model + "_draft_" + info.param.draft + "_kv_" + info.param.kv_dtype;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

constexpr const char* kWithBlock = "tiny_qwen35_mtp-f16";

// Options of a model, and of a block that reads its features.
std::pair<ExecutorOptions, ExecutorOptions> options_with_block(std::uint32_t slots, const char* kv_dtype,
                                                               const char* model = kWithBlock,
                                                               const char* block = kWithBlock) {
  auto of_model = options_of(slots, kv_dtype), of_block = of_model;
  of_model.state_checkpoints = 6;
  use_draft_block(block, model, of_block, of_model);
  return {of_model, of_block};
}

// The block of random weights is mostly wrong, so guesses of all lengths are accepted and rejected.
class DraftBlock : public ::testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(DraftBlock, GuessesChangeNoAnswer) {
  const auto [model, block] = GetParam();
  EngineOptions off;
  off.speculate = "off";
  // i16 wants heads of 16 values or more.
  for (const char* kv_dtype : {"f16", model == std::string_view("tiny_smollm3-f16") ? "f32" : "i16"}) {
    SCOPED_TRACE(kv_dtype);
    const auto plain = start_engine(model, options_of(3, kv_dtype), off);
    auto [options, of_block] = options_with_block(3, kv_dtype, model, block);
    options.kv_pages = 10;  // few, so that requests preempt each other
    const auto engine = start_with_draft(model, {block, of_block}, options);
    std::vector<Request> requests = kinds_of_requests();
    for (const char* speculate : {"auto", "1", "5", "8"}) {
      SCOPED_TRACE(speculate);
      std::vector<Stream> streams;
      for (Request& request : requests) {
        request.speculate = speculate;
        auto stream = engine.session().stream(request);
        ASSERT_TRUE(stream) << stream.error().message;
        streams.push_back(std::move(*stream));
      }
      for (std::size_t i = 0; i < streams.size(); ++i) {
        for (auto event = streams[i].next(); event && *event; event = streams[i].next()) {
        }
        auto same = requests[i];
        same.speculate = "off";
        expect_same(streams[i].completion(), answer_of(plain, same));
      }
    }
    EXPECT_GT(engine.stat("draft_model_steps"), 0u);
    EXPECT_EQ(engine.stat("failed_draft_model_steps"), 0u);
    EXPECT_GT(engine.stat("draft_tokens"), engine.stat("accepted_draft_tokens"));
    expect_all_free(engine);
  }
}

INSTANTIATE_TEST_SUITE_P(Blocks, DraftBlock,
                         ::testing::Values(std::pair{kWithBlock, kWithBlock},
                                           std::pair{"tiny_smollm3-f16", "eagle3-shared"},
                                           std::pair{"tiny_smollm3-f16", "eagle3-whole"},
                                           std::pair{"tiny_gemma4-f16", "assistant-tiny_gemma4"}),
                         [](const auto& info) {
                           std::string name = info.param.second;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

// What the block computes, step by step: the tokens behind those whose features are known, then its own guesses. Each
// cell is computed from the model's features in the end, so the next guess begins with all tokens since the last one.
TEST(MtpBlock, ComputesItsOwnGuessesAgain) {
  auto [options, of_block] = options_with_block(1, "f16");
  options.max_context = of_block.max_context = 256;
  TestDraft draft{kWithBlock, of_block};
  std::vector<std::pair<std::int32_t, std::size_t>> seen;  // first position and number of tokens
  draft.probe->before = [&](const StepInput& input, std::uint64_t) -> Status {
    seen.emplace_back(input.positions.front(), input.positions.size());
    EXPECT_EQ(input.features.size(), input.token_ids.size() * 48);
    return {};
  };
  const auto engine = start_with_draft(kWithBlock, draft, options);
  Request request = token_request(prompt(150), 1);
  request.speculate = "3";
  request.max_tokens = 12;
  const auto answer = answer_of(engine, request);
  ASSERT_FALSE(seen.empty());
  // The cache begins where features are kept. A prompt of 150 tokens is far, so it is computed in parts.
  EXPECT_EQ(seen.front().first, 0);
  std::int32_t next = 0;
  for (const auto& [first, n] : seen) {
    EXPECT_LE(first, next);
    next = first + static_cast<std::int32_t>(n);
  }
  EXPECT_GE(next, 127);
  EXPECT_LT(next, 128 + 16);
  EXPECT_GT(answer.timings.draft_tokens, 0u);
}

// An assistant computes a row for each guess and none for the text. All rows of a text have the position before its last
// token's, and read the model's pages.
TEST(Assistant, ComputesARowForEachGuess) {
  constexpr const char* kAssistant = "assistant-tiny_gemma4";
  constexpr const char* kOf = "tiny_gemma4-f16";
  const auto [options, of_block] = options_with_block(2, "i16", kOf, kAssistant);
  TestDraft draft{kAssistant, of_block};
  std::vector<std::int32_t> positions;
  draft.probe->before = [&](const StepInput& input, std::uint64_t) -> Status {
    EXPECT_EQ(input.token_ids.size(), 1u);
    EXPECT_EQ(input.page_tables.counts.size(), 2u);
    positions.push_back(input.positions.front());
    return {};
  };
  const auto engine = start_with_draft(kOf, draft, options);
  Request request = token_request(prompt(20), 12);
  request.speculate = "3";
  const auto answer = answer_of(engine, request);
  ASSERT_FALSE(positions.empty());
  EXPECT_EQ(positions.front(), 19);  // behind the prompt and the first token of the answer
  EXPECT_TRUE(std::ranges::is_sorted(positions));
  EXPECT_EQ(positions.size(), engine.stat("draft_model_steps"));
  EXPECT_GT(answer.timings.draft_tokens, 0u);
}

TEST(MtpBlock, OfAModelThatGivesNoFeaturesIsRefused) {
  const auto [options, of_block] = options_with_block(1, "f16");
  const auto error_of = [&] {
    try {
      start_with_draft(kWithBlock, {kWithBlock, of_block}, options_of(1));
    } catch (const std::runtime_error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(error_of(), ::testing::HasSubstr("reads 48 features a token"));
}

// Without and with steps of the draft model that begin while the one before them runs.
class DraftChain : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(RunAhead, DraftChain, ::testing::Bool());

TEST_P(DraftChain, OfTheModelItselfIsAlwaysRight) {
  TestDraft draft{kModel, options_of(2)};
  draft.options.run_ahead = GetParam();
  std::size_t n_unknown = 0;  // tokens that the host had not read when their step began
  draft.probe->before = [&](const StepInput& input, std::uint64_t) -> Status {
    n_unknown += static_cast<std::size_t>(std::ranges::count(input.token_ids, kLastPick));
    return {};
  };
  const auto engine = start_with_draft(kModel, draft, options_of(2));
  for (const std::uint32_t depth : {1u, 4u, 12u}) {
    Request request = token_request(prompt(20, depth), 60);
    request.speculate = std::to_string(depth);
    const auto before = engine.stats();
    const auto answer = answer_of(engine, request);
    const auto after = engine.stats();
    EXPECT_EQ(answer.timings.accepted_draft_tokens, answer.timings.draft_tokens);
    const auto n_steps = after["steps"].get<int>() - before["steps"].get<int>();
    // The prompt's step gives one token, each other step 1 + depth.
    EXPECT_EQ(n_steps, 1 + int((59 + depth) / (1 + depth))) << depth;
    // A step of the draft model for each guessed token.
    EXPECT_LE(after["draft_model_steps"].get<int>() - before["draft_model_steps"].get<int>(), 60);
  }
  EXPECT_GT(draft.probe->n_steps, 0u);
  EXPECT_EQ(n_unknown > 0, GetParam());
}

TEST(DraftModel, OfOtherWeightsIsOftenWrongAndTheAnswerTheSame) {
  EngineOptions off;
  off.speculate = "off";
  const auto plain = start_engine(kModel, options_of(1), off);
  const auto engine = start_with_draft(kModel, {kOther, options_of(1)}, options_of(1));
  Request request = token_request(prompt(20), 60);
  const auto wanted = answer_of(plain, request);
  request.speculate = "8";
  const auto answer = answer_of(engine, request);
  expect_same(answer, wanted);
  EXPECT_GT(answer.timings.draft_tokens, answer.timings.accepted_draft_tokens);
  EXPECT_GT(engine.stat("draft_model_steps"), 0u);
}

// Each slot's texts and what the draft model computed of them, step by step.
TEST_P(DraftChain, AfterAWrongGuessComputesOnlyItsTailAgain) {
  TestDraft draft{kOther, options_of(1)};
  draft.options.run_ahead = GetParam();
  std::vector<std::pair<std::int32_t, std::size_t>> seen;  // first position and number of tokens
  draft.probe->before = [&](const StepInput& input, std::uint64_t) {
    seen.emplace_back(input.positions[0], input.positions.size());
    return Status{};
  };
  const auto engine = start_with_draft(kModel, draft, options_of(1));
  Request request = token_request(prompt(20), 30);
  request.speculate = "3";
  answer_of(engine, request);
  ASSERT_GT(seen.size(), 3u);
  EXPECT_EQ(seen[0], (std::pair<std::int32_t, std::size_t>(0, 21)));  // the prompt and the first token
  for (std::size_t i = 1; i < seen.size(); ++i) EXPECT_LE(seen[i].second, 2u) << i;
}

TEST(DraftModel, ALongPromptIsComputedInPartsWhileAnswersGoOn) {
  auto options = options_of(1);
  options.max_context = 512;
  TestDraft draft{kModel, options};
  draft.options.chunk_cap = 24;
  std::size_t most = 0;
  draft.probe->before = [&](const StepInput& input, std::uint64_t) {
    most = std::max(most, input.positions.size());
    return Status{};
  };
  const auto engine = start_with_draft(kModel, draft, options);
  Request request = token_request(prompt(300), 100);
  request.speculate = "4";
  const auto answer = answer_of(engine, request);
  EXPECT_LE(most, 24u);
  EXPECT_GT(answer.timings.accepted_draft_tokens, 20u);
  // Some guesses come from the text, and those may be wrong.
  EXPECT_GE(10 * answer.timings.accepted_draft_tokens, 9 * answer.timings.draft_tokens);
}

TEST(DraftModel, NothingIsKeptForAnotherRequest) {
  TestDraft draft{kModel, options_of(1)};
  std::vector<std::size_t> n_at_begin;  // tokens of the steps that begin a text
  draft.probe->before = [&](const StepInput& input, std::uint64_t) {
    if (input.positions[0] == 0) n_at_begin.push_back(input.positions.size());
    return Status{};
  };
  const auto engine = start_with_draft(kModel, draft, options_of(1));
  Request request = token_request(prompt(20), 10);
  request.speculate = "3";
  answer_of(engine, request);
  answer_of(engine, request);
  EXPECT_EQ(n_at_begin, (std::vector<std::size_t>{21, 21}));
}

TEST(DraftModel, BehindItsContextNothingIsGuessed) {
  TestDraft draft{kModel, options_of(1)};
  draft.options.max_context = 32;
  std::int32_t last = 0;
  draft.probe->before = [&](const StepInput& input, std::uint64_t) {
    last = std::max(last, input.positions.back());
    return Status{};
  };
  const auto engine = start_with_draft(kModel, draft, options_of(1));
  Request request = token_request(prompt(20), 60);
  request.speculate = "5";
  const auto answer = answer_of(engine, request);
  EXPECT_EQ(answer.token_ids.size(), 60u);
  EXPECT_LE(last, 31);
  EXPECT_GE(last, 28);  // a step gives at most six tokens
}

TEST(DraftModel, AFailedStepOfItEndsItsGuessesAndNoAnswer) {
  EngineOptions off;
  off.speculate = "off";
  const auto plain = start_engine(kModel, options_of(2), off);
  TestDraft draft{kModel, options_of(2)};
  draft.probe->before = [](const StepInput&, std::uint64_t n) -> Status {
    if (n < 6) return {};
    return std::unexpected(Error{StatusCode::kInternal, "[test] a fault was asked for", 0});
  };
  const auto engine = start_with_draft(kModel, draft, options_of(2));
  Request request = token_request(prompt(20), 60);
  const auto wanted = answer_of(plain, request);
  request.speculate = "3";
  for (int i = 0; i < 2; ++i) expect_same(answer_of(engine, request), wanted);
  EXPECT_EQ(engine.stat("draft_model_steps"), 6u);
  EXPECT_EQ(engine.stat("failed_draft_model_steps"), 1u);
  EXPECT_EQ(engine.stat("failed_steps"), 0u);
  EXPECT_GT(engine.stat("accepted_draft_tokens"), 0u);
}

TEST(DraftModel, RunsForNobodyWhoWantsNoGuesses) {
  const auto engine = start_with_draft(kModel, {kModel, options_of(1)}, options_of(1));
  Request request = token_request(prompt(20), 20);
  request.speculate = "off";
  answer_of(engine, request);
  EXPECT_EQ(engine.stat("draft_model_steps"), 0u);
}

// Makes each step take `ms` milliseconds longer. A difference between two models that is far larger than what a busy
// machine adds decides which of them is slower.
void slow_down(Probe& probe, int ms) {
  probe.before = [ms](const StepInput&, std::uint64_t) {
    std::this_thread::sleep_for(std::chrono::milliseconds(ms));
    return Status{};
  };
}

// The draft model is slower than the model, so it cannot pay.
TEST(DraftModel, ThatDoesNotPayIsTriedRarely) {
  TestDraft draft{kOther, options_of(1)};
  slow_down(*draft.probe, 30);
  auto probe = std::make_shared<Probe>();
  slow_down(*probe, 3);
  const auto engine = start_with_draft(kModel, draft, options_of(1), {}, probe);
  Request request = token_request(prompt(20), 100);
  request.speculate = "auto";
  answer_of(engine, request);
  EXPECT_GT(engine.stat("draft_model_steps"), 0u);  // else nobody would know what it costs
  EXPECT_LT(engine.stat("draft_model_steps"), 20u);
}

TEST(DraftModel, ThatPaysRunsByItself) {
  TestDraft draft{kModel, options_of(1)};
  auto probe = std::make_shared<Probe>();
  slow_down(*probe, 50);
  const auto engine = start_with_draft(kModel, draft, options_of(1), {}, probe);
  Request request = token_request(prompt(20), 100);
  request.speculate = "auto";
  const auto answer = answer_of(engine, request);
  EXPECT_GT(answer.timings.accepted_draft_tokens, 60u);
  EXPECT_LT(engine.stat("steps"), 40u);
}

class DraftRefusal : public ::testing::Test {
 protected:
  static Error refuse(const std::string& model, const std::string& draft) {
    EngineOptions options;
    options.tier = "t_cpu";
    options.max_slots = 2;
    options.draft_model = model_path(draft);
    const auto core = EngineCore::open(model_path(model), options);
    EXPECT_FALSE(core) << draft << " for " << model;
    return core ? Error{} : core.error();
  }
};

TEST_F(DraftRefusal, OfAnotherVocabularyNamesBothFilesAndTheFirstTokenThatDiffers) {
  ZRT_NEED_SHARED_FIXTURES();
  const Error error = refuse("llama_spm-f32", "phi3-f32");
  EXPECT_EQ(error.code, StatusCode::kInvalidArgument);
  EXPECT_EQ(error.field, "draft_model");
  for (const char* part : {"[draft_model] token ", "llama_spm-f32.gguf (448 tokens)", "phi3-f32.gguf (448 tokens)"})
    EXPECT_TRUE(error.message.contains(part)) << error.message;
  const Error other = refuse("llama_spm-f32", "llama_k-Q4_K_M");
  for (const char* part : {"(448 tokens)", "(384 tokens)"}) EXPECT_TRUE(other.message.contains(part)) << other.message;
}

TEST_F(DraftRefusal, OfRecurrentStateNamesTheModel) {
  const Error error = refuse("qwen3-f16", "qwen35-f32");
  EXPECT_EQ(error.code, StatusCode::kUnavailable);
  EXPECT_TRUE(error.message.contains("(qwen35) has recurrent state, ")) << error.message;
}

TEST_F(DraftRefusal, OfAFileThatIsNotThereNamesIt) {
  EngineOptions options;
  options.tier = "t_cpu";
  options.draft_model = "/nowhere.gguf";
  const auto core = EngineCore::open(model_path(kModel), options);
  ASSERT_FALSE(core);
  EXPECT_TRUE(core.error().message.contains("/nowhere.gguf")) << core.error().message;
}

TEST(DraftModel, IsInTheCardAndInTheMemory) {
  EngineOptions options;
  options.tier = "t_cpu";
  options.max_slots = 2;
  options.max_context = 128;
  const auto plain = EngineCore::open(model_path(kModel), options);
  ASSERT_TRUE(plain) << plain.error().message;
  EXPECT_FALSE((*plain)->find_model({})->card().draft_model);
  options.draft_model = model_path(kOther);
  const auto core = EngineCore::open(model_path(kModel), options);
  ASSERT_TRUE(core) << core.error().message;
  const auto model = (*core)->find_model({});
  const auto& draft = model->card().draft_model;
  ASSERT_TRUE(draft);
  EXPECT_EQ(draft->file, model_path(kOther));
  EXPECT_EQ(draft->kv_pages, 16u);  // two slots of 128 tokens
  EXPECT_EQ(draft->max_context, 128u);
  EXPECT_GT(draft->allocated_bytes, 0u);
  EXPECT_EQ(model->memory().allocated_bytes,
            (*plain)->find_model({})->memory().allocated_bytes + draft->allocated_bytes);
  EXPECT_EQ(model->memory().devices[0].allocated_bytes, model->memory().allocated_bytes);
  std::uint64_t sum = 0;
  for (const auto& region : model->memory().regions) sum += region.mapped ? 0 : region.bytes;
  EXPECT_EQ(sum, model->memory().allocated_bytes);
  EXPECT_EQ((*core)->stats().total.allocated_bytes, model->memory().allocated_bytes);
  options.speculate = "off";
  const auto off = EngineCore::open(model_path(kModel), options);
  ASSERT_TRUE(off) << off.error().message;
  EXPECT_FALSE((*off)->find_model({})->card().draft_model);
}

}  // namespace
}  // namespace zinc_rt
