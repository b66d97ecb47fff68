// A client's text does not become control tokens, wherever the chat template puts it.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "engine/generation.h"
#include "tests_cpp/base/fixtures.h"
#include "tests_cpp/engine/engine_fixture.h"

namespace zinc_rt {
namespace {

using Ordered = nlohmann::ordered_json;

// One of each family and each kind of vocabulary.
std::vector<std::string> chat_models() {
  return own_and({"llama_k-Q8_0", "qwen2-f32", "qwen3-Q8_0", "qwen35-f32", "qwen3next-f16", "phi3-f32", "gemma3-f16",
                  "gemma4_dense-f16", "mistral-f32"});
}

class Chat {
 public:
  explicit Chat(const std::string& name, const EngineOptions& options = {})
      : engine_(start_engine(name, small_options(), options)), model_(engine_.core->find_model({})) {}

  bool has_template() const { return !model_->template_text().empty(); }
  const Tokenizer& tokenizer() const { return model_->tokenizer(); }
  const Model& model() const { return *model_; }

  Result<std::vector<std::int32_t>> ids(Request request, const std::string& system = {}) const {
    auto prompt = Generation::take_prompt(*model_, request, system, {1'000'000, "the test"});
    if (!prompt) return std::unexpected(prompt.error());
    return std::move(prompt->ids);
  }
  std::vector<std::int32_t> ids_or_none(const Request& request, const std::string& system = {}) const {
    return ids(request, system).value_or(std::vector<std::int32_t>());
  }
  // Control tokens of a prompt; -1: the template refuses it.
  int n_control(const Request& request, const std::string& system = {}) const {
    const auto found = ids(request, system);
    if (!found) return -1;
    return static_cast<int>(std::ranges::count_if(*found, [&](std::int32_t id) { return tokenizer().is_special(id); }));
  }
  // All that a client could try, but for what the model's own answers are written with.
  std::vector<std::string> control_texts() const {
    const auto markers = model_->formats().token_ids();
    std::vector<std::string> out;
    for (std::int32_t id = 0; static_cast<std::size_t>(id) < tokenizer().n_vocab(); ++id)
      if (tokenizer().is_special(id) && !std::ranges::binary_search(markers, id))
        out.emplace_back(tokenizer().token_text(id));
    return out;
  }

 private:
  TestEngine engine_;
  std::shared_ptr<Model> model_;
};

// Each place of a request that a client writes, with `text` in it.
struct Place {
  const char* name;
  void (*put)(Request& request, std::string& system, const std::string& text);
};

Ordered said(const char* role, const std::string& text) {
  return {{"role", role}, {"content", text}};
}
Ordered tool(const std::string& name, const std::string& description, const std::string& argument) {
  return {{"type", "function"},
          {"function",
           {{"name", name},
            {"description", description},
            {"parameters",
             {{"type", "object"}, {"properties", {{argument, {{"type", "string"}, {"description", description}}}}}}}}}};
}
Ordered called(const std::string& name, const std::string& argument, const std::string& value,
               const std::string& result) {
  return Ordered::array({said("user", "Hi"),
                         {{"role", "assistant"},
                          {"content", ""},
                          {"tool_calls",
                           {{{"id", "call12345"},
                             {"type", "function"},
                             {"function", {{"name", name}, {"arguments", Ordered{{argument, value}}.dump()}}}}}}},
                         {{"role", "tool"}, {"name", name}, {"tool_call_id", "call12345"}, {"content", result}}});
}

constexpr Place kPlaces[] = {
    {"user",
     [](Request& r, std::string&, const std::string& t) { r.messages = Ordered::array({said("user", t)}).dump(); }},
    {"parts",
     [](Request& r, std::string&, const std::string& t) {
       r.messages = Ordered::array({{{"role", "user"},
                                     {"content", {{{"type", "text"}, {"text", t}}, {{"type", "text"}, {"text", t}}}}}})
                        .dump();
     }},
    {"system message",
     [](Request& r, std::string&, const std::string& t) {
       r.messages = Ordered::array({said("system", t), said("user", "Hi")}).dump();
     }},
    {"system of a session",
     [](Request& r, std::string& system, const std::string& t) {
       system = t;
       r.messages = Ordered::array({said("user", "Hi")}).dump();
     }},
    {"assistant",
     [](Request& r, std::string&, const std::string& t) {
       r.messages = Ordered::array({said("user", "Hi"), said("assistant", t), said("user", "Go on")}).dump();
     }},
    {"reasoning",
     [](Request& r, std::string&, const std::string& t) {
       auto answer = said("assistant", "A");
       answer["reasoning_content"] = t;
       r.messages = Ordered::array({said("user", "Hi"), answer}).dump();
     }},
    {"text to go on with",
     [](Request& r, std::string&, const std::string& t) {
       r.messages = Ordered::array({said("user", "Hi"), said("assistant", t)}).dump();
       r.continue_final_message = true;
     }},
    {"role",
     [](Request& r, std::string&, const std::string& t) {
       r.messages = Ordered::array({said("user", "Hi"), said(t.c_str(), "x"), said("user", "Hi")}).dump();
     }},
    {"tool's result",
     [](Request& r, std::string&, const std::string& t) {
       r.messages = called("f", "a", "1", t).dump();
       r.tools = Ordered::array({tool("f", "d", "a")}).dump();
     }},
    {"tool's name",
     [](Request& r, std::string&, const std::string& t) {
       r.messages = called(t, "a", "1", "2").dump();
       r.tools = Ordered::array({tool(t, "d", "a")}).dump();
     }},
    {"arguments",
     [](Request& r, std::string&, const std::string& t) {
       r.messages = called("f", t, t, "2").dump();
       r.tools = Ordered::array({tool("f", "d", "a")}).dump();
     }},
    {"tool's description",
     [](Request& r, std::string&, const std::string& t) {
       r.messages = Ordered::array({said("user", "Hi")}).dump();
       r.tools = Ordered::array({tool("f", t, t)}).dump();
     }},
    {"chat_template_kwargs",
     [](Request& r, std::string&, const std::string& t) {
       r.messages = Ordered::array({said("user", "Hi")}).dump();
       Ordered kwargs;
       for (const char* name : {"bos_token", "eos_token", "date_string", "model_identity", "custom_tools", "documents"})
         kwargs[name] = t;
       r.chat_template_kwargs = kwargs.dump();
     }},
};

void expect_as_harmless(const Chat& chat, const std::string& text, const std::string& harmless = "x") {
  for (const Place& place : kPlaces) {
    const auto n = [&](const std::string& put) {
      Request request;
      std::string system;
      place.put(request, system, put);
      return chat.n_control(request, system);
    };
    EXPECT_EQ(n(text), n(harmless)) << place.name << ": " << text;
  }
}

TEST(ControlTokens, NoPlaceOfARequestMakesThem) {
  ZRT_NEED_SHARED_FIXTURES();
  int n_chats = 0;
  for (const auto& name : chat_models()) {
    SCOPED_TRACE(name);
    const Chat chat(name);
    if (!chat.has_template()) continue;
    ++n_chats;
    std::string all = "x";
    for (const auto& text : chat.control_texts()) {
      expect_as_harmless(chat, "x" + text + "y");
      all += text;
    }
    expect_as_harmless(chat, all);
  }
  EXPECT_GT(n_chats, 3);
}

// The whole of a turn's end and another's beginning, in pieces that may come together over the edges of what the
// template writes.
TEST(ControlTokens, NoMessagesOfPiecesMakeThem) {
  std::mt19937 random(11);
  for (const auto& name : chat_models()) {
    SCOPED_TRACE(name);
    const Chat chat(name);
    if (!chat.has_template()) continue;
    std::vector<std::string> pieces = {"\n", " ", "system", "user", "|>", "<|", ">", "<", "]", "[", "x", "/"};
    for (const auto& text : chat.control_texts()) {
      pieces.push_back(text);
      const auto cut = random() % (text.size() + 1);
      pieces.push_back(text.substr(0, cut));
      pieces.push_back(text.substr(cut));
    }
    for (int round = 0; round < 60; ++round) {
      auto messages = Ordered::array(), harmless = Ordered::array();
      for (int turn = 0; turn < 4; ++turn) {
        std::string text = "x";  // a template may trim it
        for (std::size_t n = random() % 8; n > 0; --n) text += pieces[random() % pieces.size()];
        const char* role = turn % 2 == 0 ? "user" : "assistant";
        messages.push_back(said(role, text + "x"));
        harmless.push_back(said(role, "xx"));
      }
      Request request, other;
      request.messages = messages.dump();
      other.messages = harmless.dump();
      EXPECT_EQ(chat.n_control(request), chat.n_control(other)) << *request.messages;
    }
  }
}

TEST(ControlTokens, AnOptionLetsThemThrough) {
  EngineOptions options;
  options.control_tokens_in_text = true;
  for (const auto& name : models_in(own_models())) {
    SCOPED_TRACE(name);
    const Chat safe(name), open(name, options);
    if (!safe.has_template()) continue;
    const auto texts = safe.control_texts();
    ASSERT_FALSE(texts.empty());
    Request request;
    request.messages = Ordered::array({said("user", "a " + texts.back() + " b")}).dump();
    EXPECT_EQ(open.n_control(request), safe.n_control(request) + 1);
    // What has none is the same either way, in all places.
    for (const Place& place : kPlaces) {
      Request plain;
      std::string system;
      place.put(plain, system, "Grüße, <b>you</b> & {\"a\": [1, 2]} <|x|> [y]");
      EXPECT_EQ(safe.ids_or_none(plain, system), open.ids_or_none(plain, system)) << place.name;
    }
    // Prompts are the client's own business.
    Request prompt;
    prompt.prompt = texts.back();
    EXPECT_GE(safe.n_control(prompt), 1);
    EXPECT_EQ(safe.ids_or_none(prompt), open.ids_or_none(prompt));
  }
}

}  // namespace
}  // namespace zinc_rt
