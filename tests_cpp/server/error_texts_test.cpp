// No answer depends on the words of an error: the same requests, refused once more while every message is reworded, get
// the same status, type, code, field and headers.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <sstream>

#include "base/error.h"
#include "server/batches/inner_call.h"
#include "server/core.h"
#include "tests_cpp/base/fixtures.h"

namespace zinc_rt::server {
namespace {

constexpr const char* kWords = "<other words>";

// Writes a copy of a model that has a chat template. The key comes first, and is as long as a multiple of the alignment.
void write_with_template(const std::string& from, const std::string& to, std::string text) {
  std::ifstream in(from, std::ios::binary);
  std::stringstream all;
  all << in.rdbuf();
  std::string bytes = all.str();
  const auto number = [](std::uint64_t value, std::size_t n) {
    return std::string(reinterpret_cast<const char*>(&value), n);
  };
  constexpr std::size_t kAlignment = 32, kCountAt = 16, kKeysAt = 24;
  constexpr std::uint32_t kString = 8;
  const std::string name = "tokenizer.chat_template";
  while ((8 + name.size() + 4 + 8 + text.size()) % kAlignment != 0) text += ' ';
  std::uint64_t n_keys = 0;
  std::memcpy(&n_keys, bytes.data() + kCountAt, sizeof n_keys);
  bytes.replace(kCountAt, 8, number(n_keys + 1, 8));
  bytes.insert(kKeysAt, number(name.size(), 8) + name + number(kString, 4) + number(text.size(), 8) + text);
  std::ofstream(to, std::ios::binary) << bytes;
}

struct Case {
  const char *method, *path;
  std::string body;
};

// What is asked, and which status answers it.
struct WantedCase {
  int status;
  Case ask;
};

std::string chat(const std::string& fields) {
  return fmt::format(R"({{"model":"m","messages":[{{"role":"user","content":"hi"}}],"max_tokens":4,{}}})", fields);
}
std::string tool(const std::string& fields) {
  return fmt::format(R"("tools":[{{"type":"function","function":{{"name":"f",{}}}}}])", fields);
}
std::string long_text(const char* word, int n) {
  std::string text;
  for (int i = 0; i < n; ++i) text += word;
  return text;
}

constexpr const char *kChat = "/v1/chat/completions", *kText = "/v1/completions", *kEmbed = "/v1/embeddings";

std::vector<WantedCase> cases() {
  const auto many = long_text("word ", 300), more = long_text("word ", 50000);
  const auto post = [](int status, const char* path, std::string body) {
    return WantedCase{status, {"POST", path, std::move(body)}};
  };
  std::vector<WantedCase> all{
      {404, {"GET", "/nothing", ""}},
      {405, {"GET", kChat, ""}},
      post(501, "/v1/moderations", "{}"),
      post(400, kChat, "{"),
      post(400, kChat, R"({"model":"m"})"),
      post(404, kChat, R"({"model":"other","messages":[{"role":"user","content":"hi"}]})"),
      post(400, kChat, chat(R"("frobnicate":1)")),
      post(400, kChat, chat(R"("temperature":-1)")),
      post(400, kChat, chat(R"("n":1000)")),
      // The engine's checks of a request.
      post(400, kChat, chat(R"("logit_bias":{"99999999":1})")),
      post(400, kChat, chat(R"("stop_token_ids":[99999999])")),
      post(400, kChat, chat(R"("min_tokens":9)")),
      post(400, kChat, chat(R"("min_tokens":1,"guided_regex":"a")")),
      post(400, kChat, chat(R"("ignore_eos":true,"guided_regex":"a")")),
      post(400, kChat, chat(R"("chat_template_kwargs":{"tools":[]})")),
      post(400, kChat, chat(R"("add_generation_prompt":true,"continue_final_message":true)")),
      // What the answer must look like.
      post(400, kChat, chat(R"("guided_regex":"(")")),
      post(400, kChat, chat(R"("guided_regex":"a{99999999}")")),
      post(400, kChat, chat(R"("guided_json":{"not":{"type":"null"}})")),
      post(400, kChat, chat(R"("grammar":"root := x")")),
      post(400, kChat,
           chat(R"("response_format":{"type":"json_schema","json_schema":{"name":"a","schema":{"type":"shape"}}})")),
      post(400, kChat,
           chat(R"("response_format":{"type":"structural_tag","structures":[{"begin":"a","end":"b",)"
                R"("schema":{"not":{"type":"null"}}}],"triggers":["a"]})")),
      post(400, kChat,
           chat(R"("response_format":{"type":"structural_tag","format":{"type":"sequence","elements":)"
                R"([{"type":"regex","pattern":"("}]}})")),
      post(400, kChat, chat(R"("guided_regex":"a","tool_choice":"required",)" + tool(R"("parameters":{})"))),
      post(400, kChat,
           chat(tool(R"("strict":true,"parameters":{"type":"object","properties":{"a":{"not":{"type":"null"}}}})"))),
      post(400, kChat,
           chat(R"("tool_choice":{"type":"function","function":{"name":"fly"}},)" + tool(R"("parameters":{})"))),
      post(400, kChat, chat(R"("tool_choice":"required")")),
      // Too long, by its tokens and by its bytes alone.
      post(400, kText, fmt::format(R"({{"model":"m","max_tokens":1,"prompt":"{}"}})", many)),
      post(400, kText, fmt::format(R"({{"model":"m","max_tokens":1,"prompt":["a","{}"]}})", more)),
      post(400, kText, R"({"model":"m","prompt":[99999999]})"),
      post(400, "/generate", R"({"model":"m","token_ids":[99999999]})"),
      post(400, "/v1/prefix", R"({"model":"m","prompt":[99999999]})"),
      post(400, "/apply-template", R"({"model":"none","messages":[{"role":"user","content":"hi"}]})"),
      post(400, "/tokenize", R"({"model":"none","messages":[{"role":"user","content":"hi"}]})"),
      post(400, kChat, R"({"model":"none","messages":[{"role":"user","content":"hi"}]})"),
      // Embeddings.
      post(400, kEmbed, R"({"model":"m","input":"a"})"),
      post(400, kText, R"({"model":"e","prompt":"a"})"),
      post(400, kEmbed, R"({"model":"e","input":"a","dimensions":100000})"),
      post(400, kEmbed, fmt::format(R"({{"model":"e","input":["a","{}"]}})", more)),
      post(400, "/v1/rerank", fmt::format(R"({{"model":"e","query":"a","documents":["b","{}"]}})", more)),
      // Tenants and models.
      {400, {"PATCH", "/v1/tenants/t", R"({"weight":-1})"}},
      {400, {"PATCH", "/v1/tenants/t", R"({"reserved_kv_pages":1000000})"}},
      {400, {"PATCH", "/v1/tenants/t", R"({"reserved_kv_pages":9,"max_kv_pages":8})"}},
      {404, {"PATCH", "/v1/tenants/nobody", R"({"weight":1})"}},
      post(400, "/v1/tenants", R"({"id":"a b"})"),
      post(403, "/v1/models/load", R"({"path":"/nowhere.gguf"})"),
      post(404, "/v1/models/unload", R"({"id":"other"})"),
      post(501, "/v1/batches", R"({"input_file_id":"file-1"})"),
      {501, {"GET", "/v1/files/file-1", ""}},
      {404, {"GET", "/v1/responses/resp_1", ""}},
  };
  // The same in the forms of other APIs.
  for (const auto& prompt : {many, more}) {
    all.push_back(
        post(400, "/v1/messages",
             fmt::format(R"({{"model":"m","max_tokens":1,"messages":[{{"role":"user","content":"{}"}}]}})", prompt)));
    all.push_back(post(400, "/v1/responses", fmt::format(R"({{"model":"m","input":"{}"}})", prompt)));
    all.push_back(post(400, "/api/chat",
                       fmt::format(R"({{"model":"m","messages":[{{"role":"user","content":"{}"}}]}})", prompt)));
    all.push_back(post(400, "/api/embed", fmt::format(R"({{"model":"e","input":"{}"}})", more)));
  }
  all.push_back(
      post(400, "/api/chat", R"({"model":"m","messages":[{"role":"user","content":"hi"}],"format":{"not":{}}})"));
  all.push_back(post(400, "/v1/responses",
                     R"({"model":"m","input":"hi","text":{"format":{"type":"json_schema","name":"a",)"
                     R"("schema":{"type":"shape"}}}})"));
  all.push_back(post(400, "/v1/messages",
                     R"({"model":"m","max_tokens":4,"messages":[{"role":"user","content":"hi"}],)"
                     R"("tools":[{"name":"f","strict":true,"input_schema":{"type":"object","properties":)"
                     R"({"a":{"not":{"type":"null"}}}}}]})"));
  return all;
}

class ErrorTexts : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    std::string pattern = (std::filesystem::temp_directory_path() / "zrt_texts_XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    const auto plain = model_path("tiny_qwen3-f16"), chats = (folder_ / "chats.gguf").string();
    write_with_template(plain, chats, "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}<assistant>");
    auto engine = Engine::start();
    auto store = StateStore::open("");
    ASSERT_TRUE(engine && store);
    core_ = new ServerCore(std::move(*engine), std::move(*store), "0");
    core_->max_answer_bytes = 64 << 20;
    core_->max_body_bytes = 64 << 20;
    router_ = new Router;
    for (const auto add :
         {add_generation_routes, add_messages_routes, add_responses_routes, add_ollama_routes, add_embedding_routes,
          add_rerank_routes, add_file_routes, add_batch_routes, add_model_routes, add_prefix_routes, add_tenant_routes})
      add(*router_, *core_);
    ASSERT_TRUE(core_->tenants.configure({{"own", TenantSettings::unlimited(), {std::string(64, 'a')}}},
                                         {std::string(64, 'b')}));
    core_->model_folders.set({});
    EngineOptions options;
    options.max_slots = 2;
    options.max_context = 128;
    options.kv_pages = 64;
    const auto load = [&](const std::string& path, const char* id, auto change) {
      auto own = options;
      change(own);
      const auto done = core_->models.load_at_start({path, id, {}, own});
      ASSERT_TRUE(done) << done.error().message;
    };
    load(chats, "m", [](EngineOptions& o) { o.tools = "hermes"; });
    load(plain, "none", [](EngineOptions&) {});
    load(plain, "e", [](EngineOptions& o) { o.pooling = "mean"; });
    const auto made = core_->tenants.create("t", Json::object());
    ASSERT_TRUE(made) << made.error().message;
  }
  static void TearDownTestSuite() {
    EXPECT_TRUE(core_->close());
    delete router_;
    delete core_;
    std::filesystem::remove_all(folder_);
  }
  ~ErrorTexts() override { reword_messages(nullptr); }

  static HttpResponse ask(const Case& ask) {
    core_->last_alive_ms = steady_ms();
    auto exchange = std::make_shared<Exchange>();
    exchange->request.method = ask.method;
    exchange->request.path = ask.path;
    exchange->request.body = ask.body;
    exchange->id = "request";
    exchange->caller = {core_->tenants.find("own"), true};
    const auto answer = std::make_shared<std::promise<HttpResponse>>();
    exchange->connection =
        std::make_shared<InnerCall>([answer](HttpResponse response) { answer->set_value(std::move(response)); });
    const auto route = router_->find(exchange->request, exchange->params);
    if (route)
      post_to_handler(*core_, **route, exchange);
    else
      exchange->connection->respond(refusal(*core_, ask.path, exchange->id, route.error()));
    exchange.reset();
    return answer->get_future().get();
  }

  static inline std::filesystem::path folder_;
  static inline ServerCore* core_ = nullptr;
  static inline Router* router_ = nullptr;
};

// Where an answer has its message: "error" itself, or a field of it.
Json& message_of(Json& body) {
  return body["error"].is_string() ? body["error"] : body["error"]["message"];
}

TEST_F(ErrorTexts, NoAnswerDependsOnThem) {
  for (const auto& [status, one] : cases()) {
    SCOPED_TRACE(fmt::format("{} {} {}", one.method, one.path, one.body.substr(0, 300)));
    reword_messages(nullptr);
    const auto first = ask(one);
    reword_messages([](std::string) { return std::string(kWords); });
    const auto second = ask(one);
    EXPECT_EQ(first.status, status) << first.body;
    if (first.status < 400 || second.status < 400) continue;
    EXPECT_EQ(first.status, second.status) << first.body << second.body;
    EXPECT_EQ(first.content_type, second.content_type);
    EXPECT_EQ(first.headers, second.headers);
    auto a = Json::parse(first.body), b = Json::parse(second.body);
    // All of them go through the place that rewords.
    EXPECT_TRUE(message_of(b).get<std::string>().contains(kWords)) << second.body;
    message_of(a) = message_of(b) = "";
    EXPECT_EQ(a, b);
  }
}

}  // namespace
}  // namespace zinc_rt::server
