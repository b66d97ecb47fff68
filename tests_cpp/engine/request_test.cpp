// What a request may ask for, field by field: what it changes, what it leaves alone, and how it is refused.
#include <unistd.h>

#include <gmock/gmock.h>
#include <bit>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "base/conversation.h"
#include "engine/logprobs.h"
#include "engine_fixture.h"

namespace zinc_rt {
namespace {

using ::testing::HasSubstr;

class RequestTest : public ::testing::Test {
 protected:
  static TestEngine make(const std::string& model = "llama_spm-f32", std::uint32_t chunk_cap = 0,
                         const EngineOptions& engine_options = {}, std::uint32_t max_context = 128) {
    auto options = small_options();
    options.chunk_cap = chunk_cap;
    options.max_context = max_context;
    return start_engine(model, options, engine_options);
  }
  static Completion generate(const TestEngine& engine, const Request& request, const std::string& tenant = "alice") {
    auto result = engine.session(tenant).generate(request);
    EXPECT_TRUE(result) << result.error().message;
    return result ? *result : Completion{};
  }
  static std::vector<TokenLogprob> scores(const Completion& completion) { return completion.prompt_logprobs; }
};

// By the bits.
bool same(const std::vector<TokenLogprob>& a, const std::vector<TokenLogprob>& b) {
  const auto bits = [](double value) { return std::bit_cast<std::uint64_t>(value); };
  return std::ranges::equal(a, b, [&](const TokenLogprob& x, const TokenLogprob& y) {
    return x.token_id == y.token_id && bits(x.logprob) == bits(y.logprob) && x.top == y.top;
  });
}

// From the engine's own logits of the text.
std::vector<TokenLogprob> expected_scores(const TestEngine& engine, const std::vector<std::int32_t>& ids,
                                          std::uint32_t n_top) {
  const auto model = engine.core->find_model({});
  const auto logits = engine.core->logits(*model, ids, LogitsRows::kAll, 0);
  EXPECT_TRUE(logits);
  std::vector<TokenLogprob> out{{ids[0], std::numeric_limits<double>::quiet_NaN(), {}}};
  const std::size_t width = model->config().vocab_size;
  for (std::size_t i = 0; i + 1 < ids.size(); ++i)
    out.push_back(logprob_of(std::span(*logits).subspan(i * width, width), ids[i + 1], n_top));
  return out;
}

TEST_F(RequestTest, PromptLogprobsHaveTheBitsOfTheLogitsInAnyChunks) {
  struct Case {
    const char* model;
    std::uint32_t max_context;
    std::size_t n;
  };
  // The last one's position encoding changes at 256 tokens.
  for (const Case& c :
       {Case{"llama_spm-f32", 128, 75}, Case{"qwen35-f32", 128, 75}, Case{"phi3_longrope-f16", 320, 300}})
    for (const std::uint32_t chunk : {1u, 5u, 16u, 128u}) {
      if (chunk == 1 && c.max_context > 128) continue;
      const auto engine = make(c.model, chunk, {}, c.max_context);
      const auto ids = prompt(c.n);
      generate(engine, token_request(ids, 3));  // its pages are cached now, its logits are not
      for (const std::uint32_t max_tokens : {1u, 0u}) {
        auto request = token_request(ids, max_tokens);
        request.prompt_logprobs = 4;
        const auto got = generate(engine, request);
        EXPECT_TRUE(same(scores(got), expected_scores(engine, ids, 4))) << c.model << " in chunks of " << chunk;
        EXPECT_EQ(got.usage.cached_tokens, 0u);
        EXPECT_EQ(got.token_ids.size(), max_tokens);
        EXPECT_EQ(got.finish_reason, "length");
        EXPECT_TRUE(got.timings.clamps.empty());
      }
      expect_all_free(engine);
    }
}

// Logits that nobody reads stay on the device.
TEST_F(RequestTest, OnlyRequestsThatNeedThemHaveTheirLogitsBroughtToTheHost) {
  auto probe = std::make_shared<Probe>();
  std::size_t n_rows = 0, n_wanted = 0;  // n_wanted: whose logits the host reads
  probe->before = [&](const StepInput& input, std::uint64_t) -> Status {
    n_rows += input.outputs.size();
    n_wanted += static_cast<std::size_t>(std::ranges::count_if(input.outputs, &OutputRow::wants_logits));
    return {};
  };
  const auto engine = start_engine("llama_spm-f32", small_options(), {}, probe);
  const auto rows_of = [&](const std::function<void(Request&)>& change) {
    auto request = token_request(prompt(9), 5);
    request.return_logits_hash = false;
    change(request);
    n_rows = n_wanted = 0;
    generate(engine, request);
    return std::pair(n_rows, n_wanted);
  };
  EXPECT_EQ(rows_of([](Request&) {}), std::pair(5uz, 0uz));
  EXPECT_EQ(rows_of([](Request& r) { r.return_logits_hash = true; }), std::pair(5uz, 5uz));
  // Executors that compute logprobs do not need the host to read logits for them.
  const std::size_t once = engine.core->find_model({})->info().has_logprobs ? 0 : 1;
  EXPECT_EQ(rows_of([](Request& r) { r.logprobs = 1; }), std::pair(5uz, once * 5));
  EXPECT_EQ(rows_of([](Request& r) { r.prompt_logprobs = 0; }), std::pair(5uz + 8uz, once * 8));
  EXPECT_EQ(rows_of([](Request& r) { r.logprobs = 1, r.return_logits_hash = true; }), std::pair(5uz, 5uz));
  EXPECT_EQ(rows_of([](Request& r) {
              r.logprobs = 1;
              r.logits_processor = [](std::span<const std::int32_t>, std::span<float>) { return Status{}; };
            }),
            std::pair(5uz, 5uz));
}

TEST_F(RequestTest, ScoringLeavesTheTokensAndTheCacheAsTheyAre) {
  const auto engine = make();
  auto request = token_request(prompt(40), 6);
  request.temperature = 1;
  request.seed = 5;
  const auto plain = generate(engine, request);
  EXPECT_TRUE(plain.prompt_logprobs.empty());
  request.prompt_logprobs = 0;
  const auto scored = generate(engine, request);
  EXPECT_EQ(scored.token_ids, plain.token_ids);
  EXPECT_EQ(scored.logits_hashes, plain.logits_hashes);
  ASSERT_EQ(scored.prompt_logprobs.size(), 40u);
  for (const auto& entry : scored.prompt_logprobs) EXPECT_TRUE(entry.top.empty());
  request.prompt_logprobs.reset();
  EXPECT_EQ(generate(engine, request).usage.cached_tokens, 39u);
  request.n = 3;
  request.prompt_logprobs = 1;
  const auto three = generate(engine, request);
  ASSERT_EQ(three.choices.size(), 3u);
  EXPECT_EQ(three.choices[0].prompt_logprobs.size(), 40u);
  EXPECT_TRUE(three.choices[1].prompt_logprobs.empty());
  EXPECT_EQ(three.choices[0].token_ids, plain.token_ids);
}

TEST_F(RequestTest, APromptMayFillTheContextWhenNothingIsGenerated) {
  const auto engine = make();
  auto request = token_request(prompt(128), 0);
  request.prompt_logprobs = 0;
  EXPECT_EQ(generate(engine, request).prompt_logprobs.size(), 128u);
  request.token_ids = prompt(129);
  const auto refused = engine.session().generate(request);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("a prompt of 129 tokens, the context has 128"));
  request.token_ids = prompt(1);
  EXPECT_EQ(generate(engine, request).prompt_logprobs.size(), 1u);
  request.n = 2;
  EXPECT_EQ(generate(engine, request).choices.size(), 2u);
  expect_all_free(engine);
}

TEST_F(RequestTest, ScoresAreThereWithTheFirstEventAndEventsHaveLogprobs) {
  const auto engine = make();
  auto request = token_request(prompt(20), 4);
  request.prompt_logprobs = 2;
  request.logprobs = 3;
  auto stream = engine.session().stream(request);
  ASSERT_TRUE(stream);
  std::vector<TokenLogprob> of_events;
  for (auto event = stream->next(); event && *event; event = stream->next()) {
    EXPECT_EQ(stream->completion().prompt_logprobs.size(), 20u);
    if ((*event)->logprob) of_events.push_back(*(*event)->logprob);
  }
  EXPECT_EQ(of_events.size(), 4u);
  EXPECT_TRUE(same(of_events, stream->completion().logprobs));
}

TEST_F(RequestTest, LogitBiasForcesAndForbids) {
  const auto engine = make();
  auto request = token_request(prompt(20), 5);
  const auto plain = generate(engine, request);
  request.logit_bias = {{77, 100.0f}};
  const auto forced = generate(engine, request);
  EXPECT_EQ(forced.token_ids, std::vector<std::int32_t>(5, 77));
  EXPECT_EQ(forced.logits_hashes[0], plain.logits_hashes[0]);  // the model's own
  request.logit_bias.clear();
  for (const auto id : plain.token_ids) request.logit_bias[id] = -100;
  for (const auto id : generate(engine, request).token_ids) EXPECT_FALSE(request.logit_bias.contains(id));
  request.logit_bias = {{77, 0.0f}};
  EXPECT_EQ(generate(engine, request).token_ids, plain.token_ids);
}

TEST_F(RequestTest, MinTokensBansWhatWouldEndTheText) {
  const auto engine = make();
  auto request = token_request(prompt(20), 12);
  request.ignore_eos = false;
  const auto end = engine.core->find_model({})->end_tokens().at(0);
  request.stop_token_ids = {40};
  request.logit_bias = {{end, 90.0f}, {40, 100.0f}, {41, 80.0f}};
  EXPECT_EQ(generate(engine, request).token_ids, std::vector<std::int32_t>{40});
  request.min_tokens = 5;
  const auto got = generate(engine, request);
  EXPECT_EQ(got.token_ids, (std::vector<std::int32_t>{41, 41, 41, 41, 41, 40}));
  EXPECT_EQ(got.finish_reason, "stop");
  request.stop_token_ids.clear();
  EXPECT_EQ(generate(engine, request).token_ids.back(), 40);
  request.logit_bias.erase(40);
  EXPECT_EQ(generate(engine, request).token_ids, (std::vector<std::int32_t>{41, 41, 41, 41, 41, end}));
  request.ignore_eos = true;  // then it is a token like any other
  EXPECT_EQ(generate(engine, request).token_ids, std::vector<std::int32_t>(12, end));
}

TEST_F(RequestTest, StopStringsCountBehindMinTokensAndMayBeIncluded) {
  const auto engine = make();
  const auto model = engine.core->find_model({});
  // A token of printable text, again and again.
  std::int32_t id = 0;
  std::string piece;
  for (; id < 300; ++id) {
    piece = model->tokenizer().token_bytes(id);
    if (!piece.empty() && !model->tokenizer().is_special(id) &&
        std::ranges::all_of(piece, [](char c) { return c > 0x20 && c < 0x7F; }))
      break;
  }
  ASSERT_LT(id, 300);
  auto request = token_request(prompt(20), 8);
  request.logit_bias = {{id, 100.0f}};
  const auto whole = generate(engine, request).text;
  ASSERT_EQ(whole, piece + piece + piece + piece + piece + piece + piece + piece);
  request.stop = {piece};
  EXPECT_EQ(generate(engine, request).text, "");
  request.include_stop_str_in_output = true;
  EXPECT_EQ(generate(engine, request).text, piece);
  request.min_tokens = 3;
  const auto got = generate(engine, request);
  EXPECT_EQ(got.text, piece + piece + piece + piece);
  EXPECT_EQ(got.finish_reason, "stop");
  request.include_stop_str_in_output = false;
  EXPECT_EQ(generate(engine, request).text, piece + piece + piece);
  request.stop = {piece + piece.substr(0, 1), piece};  // at one place the shorter one is found first
  request.include_stop_str_in_output = true;
  EXPECT_EQ(generate(engine, request).text, piece + piece + piece + piece);
}

TEST_F(RequestTest, SpecialTokensAreTextWhenTheyAreNotSkipped) {
  const auto engine = make("qwen3-Q5_K_M");
  const auto model = engine.core->find_model({});
  const auto& tokenizer = model->tokenizer();
  std::int32_t id = static_cast<std::int32_t>(model->config().vocab_size) - 1;
  while (id > 0 && !(tokenizer.contains(id) && tokenizer.is_special(id) && !tokenizer.is_end_of_generation(id))) --id;
  ASSERT_GT(id, 0);
  auto request = token_request(prompt(20), 2);
  request.logit_bias = {{id, 100.0f}};
  EXPECT_EQ(generate(engine, request).text, "");
  request.skip_special_tokens = false;
  const std::string text(tokenizer.token_bytes(id));
  EXPECT_EQ(generate(engine, request).text, text + text);
}

TEST_F(RequestTest, SaltsDivideTheCacheOfATenant) {
  const auto engine = make();
  const auto cached = [&](const std::string& salt, const std::string& tenant = "alice") {
    auto request = token_request(prompt(40), 2);
    request.cache_salt = salt;
    return generate(engine, request, tenant).usage.cached_tokens;
  };
  EXPECT_EQ(cached(""), 0u);
  EXPECT_EQ(cached("a"), 0u);
  EXPECT_EQ(cached("b"), 0u);
  EXPECT_EQ(cached(""), 39u);
  EXPECT_EQ(cached("a"), 39u);
  EXPECT_EQ(cached("a", "bob"), 0u);
  EXPECT_GT(*engine.tenant("alice").flush_prefix_cache(), 0u);
  EXPECT_EQ(cached("a"), 0u);
  EXPECT_EQ(cached(""), 0u);
  EXPECT_EQ(cached("a", "bob"), 39u);
}

TEST_F(RequestTest, ManySaltsLeaveNothingBehind) {
  const auto engine = make();
  for (int i = 0; i < 3000; ++i) {
    auto request = token_request(prompt(1), 1);
    request.cache_salt = std::to_string(i);
    ASSERT_EQ(generate(engine, request).usage.cached_tokens, 0u);
  }
  auto request = token_request(prompt(20), 1);
  for (const char* salt : {"1", "2", "1"}) {
    request.cache_salt = salt;
    static_cast<void>(generate(engine, request));
  }
  EXPECT_EQ(generate(engine, request).usage.cached_tokens, 19u);
  const auto& scheduler = engine.core->find_model({})->replicas()[0]->runner().scheduler();
  EXPECT_LT(scheduler.n_scopes(), 1500u);
  EXPECT_EQ(scheduler.prefixes().check(), "");
  expect_all_free(engine);
}

TEST_F(RequestTest, TheTimelineNamesIt) {
  const auto engine = make();
  ASSERT_TRUE(engine.core->timeline().start());
  auto request = token_request(prompt(5), 2);
  request.request_id = "req-1234";
  static_cast<void>(generate(engine, request));
  const std::string path = ::testing::TempDir() + "zrt_request_" + std::to_string(::getpid()) + ".json";
  ASSERT_TRUE(eventually([&] { return engine.stat("running") == 0; }));
  ASSERT_TRUE(engine.core->timeline().write_json(path));
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  std::filesystem::remove(path);
  std::set<std::string> named;
  const auto trace = nlohmann::json::parse(text.str());
  for (const auto& event : trace["traceEvents"])
    if (event.contains("args") && event["args"].value("request_id", "") == "req-1234") named.insert(event["name"]);
  EXPECT_EQ(named, (std::set<std::string>{"admitted", "PREFILL", "DECODE", "finished"}));
}

TEST_F(RequestTest, MessagesTakeWhatTheTemplateTakes) {
  ZRT_NEED_SHARED_FIXTURES();
  const auto engine = make("qwen3-Q5_K_M");
  const auto model = engine.core->find_model({});
  Request request;
  const auto text = [&](const std::string& system = {}) {
    Request taken = request;
    const auto prompt = Generation::take_prompt(*model, taken, system, {1000, "the test"});
    EXPECT_TRUE(prompt) << prompt.error().message;
    const auto out = prompt ? model->tokenizer().decode(prompt->ids, false) : Result<std::string>("");
    return out ? *out : std::string();
  };
  request.messages = R"([{"role": "system", "content": "S"}, {"role": "user", "content": "U"}])";
  const std::string head = "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nU<|im_end|>\n";
  EXPECT_EQ(text(), head + "<|im_start|>assistant\n");
  request.add_generation_prompt = false;
  EXPECT_EQ(text(), head);
  request.messages = R"([{"role": "user", "content": "U"}, {"role": "assistant", "content": "so far  "}])";
  request.continue_final_message = true;
  const std::string so_far = "<|im_start|>user\nU<|im_end|>\n<|im_start|>assistant\nso far  ";
  EXPECT_EQ(text("S"), "<|im_start|>system\nS<|im_end|>\n" + so_far);
  request.add_generation_prompt.reset();
  EXPECT_EQ(text("S"), "<|im_start|>system\nS<|im_end|>\n" + so_far);

  const auto error = [&] {
    Request taken = request;
    const auto ids = Generation::take_prompt(*model, taken, {}, {1000, "the test"});
    return ids ? std::string("taken") : ids.error().message;
  };
  request.messages =
      R"([{"role": "user", "content": "U"}, {"role": "assistant", "content": [{"type": "text", "text": "so far  "}]}])";
  EXPECT_EQ(text("S"), "<|im_start|>system\nS<|im_end|>\n" + so_far);
  request.messages = R"([{"role": "assistant", "content": 5}])";
  EXPECT_THAT(error(), HasSubstr("continue_final_message wants a last message whose content is a text"));
  request.continue_final_message = false;
  request.messages = R"([{"role": 5, "content": "x"}])";
  EXPECT_THAT(error(), HasSubstr("chat_template"));
  request.messages = "[]";
  request.tools = "{}";
  EXPECT_THAT(error(), HasSubstr("tools is not a JSON list"));
  request.tools.reset();
  request.chat_template_kwargs = "[]";
  EXPECT_THAT(error(), HasSubstr("chat_template_kwargs is not a JSON object"));
  request.chat_template_kwargs = R"({"messages": []})";
  EXPECT_THAT(error(), HasSubstr("chat_template_kwargs has \"messages\""));
}

// A chat that was read already is the prompt that its texts are, for as many requests as share it.
TEST_F(RequestTest, AConversationIsWhatItsTextsAre) {
  ZRT_NEED_SHARED_FIXTURES();
  const auto engine = make("qwen3-Q5_K_M");
  const auto model = engine.core->find_model({});
  Request texts;
  texts.messages =
      R"([{"role": "user", "content": "U"},
          {"role": "assistant", "content": "",
           "tool_calls": [{"function": {"name": "f", "arguments": {"x": 0.10, "y": 1E400}}}]},
          {"role": "user", "content": "U"}])";
  texts.tools =
      R"([{"type": "function", "function": {"name": "f", "strict": true, "parameters": {"properties": {"x": {"type": "string"}}}}}])";
  texts.chat_template_kwargs = R"({"enable_thinking": false})";
  texts.parse_output = true;
  Request shared;
  shared.parse_output = true;
  auto read = read_conversation(*texts.messages, *texts.tools, *texts.chat_template_kwargs);
  ASSERT_TRUE(read);
  shared.conversation = std::make_shared<const Conversation>(*std::move(read));
  ASSERT_TRUE(Generation::check(texts, *model) && Generation::check(shared, *model));
  const auto take = [&](Request request) {
    auto prompt = Generation::take_prompt(*model, request, "", {1000, "the test"});
    EXPECT_TRUE(prompt) << prompt.error().message;
    EXPECT_FALSE(request.conversation || request.messages || request.tools || request.chat_template_kwargs);
    return prompt ? *std::move(prompt) : Prompt();
  };
  const Prompt wanted = take(texts);
  for (int i = 0; i < 2; ++i) {
    const Prompt prompt = take(shared);
    EXPECT_EQ(prompt.ids, wanted.ids);
    ASSERT_TRUE(prompt.tools);
    EXPECT_TRUE(prompt.tools->is_text("f", "x"));
    EXPECT_EQ(prompt.bound_tools.size(), 1u);
  }
  shared.tools = texts.tools;
  EXPECT_THAT(Generation::check(shared, *model).error().message, HasSubstr("tools is given beside a conversation"));
  shared.tools.reset();
  shared.prompt = "and a text";
  EXPECT_THAT(Generation::take_prompt(*model, shared, "", {1000, "the test"}).error().message,
              HasSubstr("2 of prompt, messages and token_ids are given"));
}

TEST_F(RequestTest, ATextThatCannotFitIsRefusedByItsLength) {
  ZRT_NEED_SHARED_FIXTURES();
  const auto engine = make("qwen3-Q5_K_M");
  const auto model = engine.core->find_model({});
  const auto refusal = [&](const Session& session, const Request& request) -> Error {
    const auto handle = session.stream(request);
    return handle ? Error{} : handle.error();
  };
  Request text, chat;
  text.prompt = std::string(4'000'000, ' ');
  chat.messages = nlohmann::json::array({{{"role", "user"}, {"content", *text.prompt}}}).dump();
  for (const Request* request : {&text, &chat}) {
    const auto error = refusal(engine.session(), *request);
    EXPECT_EQ(error.code, StatusCode::kInvalidArgument);
    EXPECT_THAT(error.message, HasSubstr("[prompt] 4000"));
    EXPECT_THAT(error.message, HasSubstr(std::to_string(model->info().max_context - 1) + " allowed (context of model"));
  }
  TenantQuota quota;
  quota.max_context_tokens = 20;
  const auto small = engine.session("small", quota);
  EXPECT_THAT(refusal(small, text).message, HasSubstr("19 allowed (the tenant's max_context_tokens)"));
  // Nearly short enough: the exact number, as the scheduler says it.
  text.prompt = std::string(30, '7');
  EXPECT_THAT(refusal(small, text).message, HasSubstr("a prompt of 30 tokens"));
  // No bound by length alone, but too many as they come: two letters a token at most.
  text.prompt.emplace();
  for (int i = 0; i < 100'000; ++i) *text.prompt += "7x";
  EXPECT_THAT(refusal(engine.session(), text).message, HasSubstr("allowed (context of model"));
  expect_all_free(engine);
}

TEST_F(RequestTest, ASubmitUnderWayIsTakenBack) {
  const auto engine = make("qwen3-Q5_K_M");
  std::stop_source source;
  auto request = token_request(prompt(5), 4);
  request.cancel = source.get_token();
  auto before = engine.session().stream(request);
  ASSERT_TRUE(before) << before.error().message;
  source.request_stop();
  const auto after = engine.session().stream(request);
  ASSERT_FALSE(after);
  EXPECT_EQ(after.error().code, StatusCode::kCancelled);
  while (before->next().value()) {
  }
  EXPECT_EQ(before->completion().token_ids.size(), 4u);
  // A text of a room that no model has, so that only the cancellation ends it.
  request.token_ids.reset();
  request.prompt = std::string(1 << 20, '7');
  const auto ids = Generation::take_prompt(*engine.core->find_model({}), request, {}, {1u << 30, "the test"});
  ASSERT_FALSE(ids);
  EXPECT_EQ(ids.error().code, StatusCode::kCancelled);
}

TEST_F(RequestTest, RefusalsNameTheFieldTheValueAndTheRange) {
  const auto engine = make();
  const auto error = [&](const std::function<void(Request&)>& change) {
    Request request = token_request(prompt(5), 4);
    change(request);
    const auto result = engine.session().generate(request);
    if (result) return std::string("taken");
    EXPECT_EQ(result.error().code, StatusCode::kInvalidArgument);
    return result.error().message;
  };
  EXPECT_THAT(error([](Request& r) { r.max_tokens = 0; }), HasSubstr("max_tokens is 0, at least 1"));
  EXPECT_THAT(error([](Request& r) { r.min_tokens = 5; }), HasSubstr("min_tokens is 5, 0 to 4 (max_tokens)"));
  EXPECT_THAT(error([](Request& r) { r.typical_p = 1.5f; }), HasSubstr("typical_p is 1.5, 0 to 1"));
  EXPECT_THAT(error([](Request& r) { r.typical_p = NAN; }), HasSubstr("typical_p is nan, 0 to 1"));
  EXPECT_THAT(error([](Request& r) { r.logit_bias[3] = 100.5f; }), HasSubstr("logit_bias is 100.5, -100 to 100"));
  EXPECT_THAT(error([](Request& r) { r.logit_bias[3] = NAN; }), HasSubstr("logit_bias is nan, -100 to 100"));
  EXPECT_THAT(error([](Request& r) { r.logit_bias[-1] = 1; }), HasSubstr("logit_bias of token id -1, the vocabulary"));
  EXPECT_THAT(error([](Request& r) {
                for (int i = 0; i < 1025; ++i) r.logit_bias[i] = 1;
              }),
              HasSubstr("logit_bias has 1025 entries, 0 to 1024"));
  EXPECT_THAT(error([](Request& r) { r.stop_token_ids.assign(1025, 1); }),
              HasSubstr("stop_token_ids has 1025 entries, 0 to 1024"));
  EXPECT_THAT(error([](Request& r) { r.prompt_logprobs = 21; }), HasSubstr("prompt_logprobs is 21, 0 to 20"));
  EXPECT_THAT(error([](Request& r) { r.cache_salt.assign(257, 'x'); }),
              HasSubstr("cache_salt has 257 bytes, 0 to 256"));
  EXPECT_THAT(error([](Request& r) { r.request_id.assign(257, 'x'); }),
              HasSubstr("request_id has 257 bytes, 0 to 256"));
  EXPECT_THAT(error([](Request& r) { r.tools = "[]"; }), HasSubstr("tools is given without messages"));
  EXPECT_THAT(error([](Request& r) { r.chat_template_kwargs = "{}"; }),
              HasSubstr("chat_template_kwargs is given without"));
  EXPECT_THAT(error([](Request& r) { r.continue_final_message = true; }), HasSubstr("continue_final_message is given"));
  EXPECT_THAT(error([](Request& r) { r.add_generation_prompt = r.continue_final_message = true; }),
              HasSubstr("add_generation_prompt and continue_final_message are both given"));
}

// As many entries as a request may have: they must fit a step, in every slot at once.
TEST_F(RequestTest, AllSlotsMayBiasAndBanAsMuchAsIsAllowed) {
  const auto engine = make("qwen3-Q5_K_M");
  const auto n_vocab = static_cast<std::int32_t>(engine.core->find_model({})->config().vocab_size);
  auto request = token_request(prompt(5), 4);
  request.ignore_eos = true;
  request.stop_token_ids.resize(1024);
  for (int i = 0; i < 1024; ++i) {
    request.logit_bias[i % n_vocab] = float(i % 7);
    request.stop_token_ids[static_cast<std::size_t>(i)] = i % (n_vocab / 2);
  }
  request.min_tokens = 4;
  const auto session = engine.session();
  std::vector<Stream> streams;
  for (int i = 0; i < 3; ++i) streams.push_back(*session.stream(request));
  for (Stream& stream : streams) {
    for (auto event = stream.next(); event && *event;) event = stream.next();
    EXPECT_EQ(stream.completion().finish_reason, "length");
    EXPECT_EQ(stream.completion().token_ids, streams[0].completion().token_ids);
    for (const auto id : stream.completion().token_ids) EXPECT_GE(id, n_vocab / 2);
  }
}

}  // namespace
}  // namespace zinc_rt
