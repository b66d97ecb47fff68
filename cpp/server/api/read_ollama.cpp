// Reads the bodies of /api/chat and /api/generate, Ollama's API.
#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "server/api/body_reader.h"

namespace zinc_rt::server {
namespace {

// Ollama's defaults for sampling.
constexpr float kTemperature = 0.8f, kTopP = 0.9f;
constexpr std::uint32_t kTopK = 40;

// Reads durations such as "1h30m", "-1s" or "0", as Go's time.ParseDuration does. Returns seconds, or nullopt if the
// text is not a duration.
std::optional<double> duration_s(std::string_view text) {
  static constexpr std::pair<std::string_view, double> kUnits[] = {
      {"ns", 1e-9}, {"us", 1e-6}, {"µs", 1e-6}, {"μs", 1e-6}, {"ms", 1e-3}, {"s", 1}, {"m", 60}, {"h", 3600}};
  const double sign = text.starts_with('-') ? -1 : 1;
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  if (text == "0") return 0;
  if (text.empty()) return std::nullopt;
  double seconds = 0;
  while (!text.empty()) {
    const auto n = std::min(text.find_first_not_of("0123456789."), text.size());
    double number = 0;
    const auto read = std::from_chars(text.data(), text.data() + n, number);
    if (n == 0 || read.ec != std::errc() || read.ptr != text.data() + n) return std::nullopt;
    text.remove_prefix(n);
    const auto name = text.substr(0, text.find_first_of("0123456789."));
    const auto* unit = std::ranges::find(kUnits, name, &std::pair<std::string_view, double>::first);
    if (unit == std::end(kUnits)) return std::nullopt;
    seconds += number * unit->second;
    text.remove_prefix(name.size());
  }
  return sign * seconds;
}

}  // namespace

std::optional<double> read_keep_alive(BodyReader& r) {
  const Json* value = r.fields().get("keep_alive");
  if (value == nullptr) return std::nullopt;
  if (is_json_number(*value)) return number_value(*value);
  const auto seconds = value->is_string() ? duration_s(value->get_ref<const std::string&>()) : std::nullopt;
  if (!seconds) r.wrong("keep_alive", show(*value) + " is given, seconds or a duration such as \"5m\" wanted");
  return seconds;
}

void read_ollama_model(BodyReader& r, Request& q) {
  r.into(q.model, r.string("model", 4096));
  constexpr std::string_view kLatest = ":latest";  // Ollama's clients append this to names without a tag
  if (q.model.ends_with(kLatest)) q.model.resize(q.model.size() - kLatest.size());
}

void read_ollama_options(BodyReader& body, GenerationCall& call, Request& q) {
  body.object("options", RequestField::kOllamaOptions, [&](BodyReader& r) {
    read_members(r, RequestField::kOllamaOptions, q);
    // -1 and -2 mean that the answer ends when the model ends it or the context is full.
    if (const auto n = r.integer("num_predict", -2, 1 << 24); n && *n > 0)
      q.max_tokens = static_cast<std::uint32_t>(*n);
    if (const auto n = r.integer("num_ctx", 1, INT32_MAX)) call.wanted_context = static_cast<std::uint32_t>(*n);
    // The following options are accepted without an effect, because the server decides how models are loaded, and
    // penalties here cover the whole text.
    r.pass_over({"num_keep", "repeat_last_n", "num_batch", "num_gpu", "main_gpu", "num_thread", "use_mmap", "use_mlock",
                 "numa", "low_vram", "penalize_newline", "draft_num_predict", "mirostat_tau", "mirostat_eta"});
    r.refuse("mirostat", "it is not served", {0});
    r.refuse("tfs_z", "it is not served", {1});
  });
}

namespace {

// Reads the fields that both bodies share.
void read_shared(BodyReader& r, GenerationCall& call, Request& q, Conversation& chat) {
  q.parse_output = true;
  q.max_tokens = Request::kAllThatFit;
  q.temperature = kTemperature;
  q.top_k = kTopK;
  q.top_p = kTopP;
  read_ollama_model(r, q);
  call.stream = r.boolean("stream").value_or(true);
  read_ollama_options(r, call, q);
  if (const Json* think = r.fields().get("think")) {
    if (think->is_boolean())
      chat.variables["enable_thinking"] = *think;
    else if (*think == "low" || *think == "medium" || *think == "high")
      chat.variables["reasoning_effort"] = *think;
    else
      r.wrong("think", show(*think) + " is given; true, false, low, medium or high wanted");
    call.include_reasoning = *think != false;
  }
  if (const Json* format = r.fields().get("format"); format != nullptr && *format != "") {
    if (*format == "json")
      set_format(r, "format", {OutputFormat::Kind::kJsonObject, {}, {}}, q, call);
    else
      set_schema(r, "format", *format, q, call);
  }
  read_logprobs(r, call, q);
  r.refuse("truncate", "a prompt that is too long is refused, and nothing of it left out", {false});
  r.refuse("shift", "an answer ends where the context is full", {false});
  call.gives_model_back = read_keep_alive(r) == 0.0;
}

// Returns a message in the form of chats. Ollama's calls have no ids, so each call gets an id here. The results of
// calls get these ids in the order of the calls.
Json chat_message(BodyReader& r, const Json& message, const std::string& at, std::vector<std::string>& open,
                  std::uint32_t& n_calls) {
  if (!message.is_object()) {
    r.wrong(at.c_str(), show(message) + " is given, an object wanted");
    return {};
  }
  Json out = message;
  if (!out.contains("content") || out["content"].is_null()) out["content"] = "";
  if (const auto images = out.find("images"); images != out.end()) {
    if (!images->is_null() && *images != Json::array())
      r.wrong((at + ".images").c_str(), "the models here read text alone");
    out.erase("images");
  }
  if (const auto thinking = out.find("thinking"); thinking != out.end()) {
    auto text = std::move(*thinking);
    out.erase("thinking");
    if (!text.is_null() && !text.is_string())
      r.wrong((at + ".thinking").c_str(), show(text) + " is given, a text wanted");
    if (text.is_string() && !text.get_ref<const std::string&>().empty()) out["reasoning_content"] = std::move(text);
  }
  if (const auto calls = out.find("tool_calls"); calls != out.end() && calls->is_array()) {
    for (Json& call : *calls) {
      if (!call.is_object()) continue;
      if (call.contains("function") && call["function"].is_object()) call["function"].erase("index");
      if (!call.contains("id") || !call["id"].is_string()) call["id"] = fmt::format("call_{}", n_calls);
      ++n_calls;
      open.push_back(call["id"].get<std::string>());
    }
    if (calls->empty()) out.erase("tool_calls");
  }
  if (out.value("role", Json()) == "tool") {
    if (const auto name = out.find("tool_name"); name != out.end()) {
      auto text = std::move(*name);
      out.erase("tool_name");
      out["name"] = std::move(text);
    }
    if (!out.contains("tool_call_id") && !open.empty()) {
      out["tool_call_id"] = open.front();
      open.erase(open.begin());
    }
  }
  return out;
}

}  // namespace

ApiResult<GenerationCall> parse_ollama_chat(const Json& body, const Request& defaults, Ignored ignored) {
  GenerationCall call;
  call.api = Api::kOllamaChat;
  Request q = defaults;
  BodyReader r(body, ignored, RequestField::kOllamaChat);
  Conversation chat;
  read_shared(r, call, q, chat);
  if (const Json* messages = r.fields().get("messages"); messages != nullptr && messages->is_array()) {
    Json list = Json::array();
    std::vector<std::string> open;
    std::uint32_t n_calls = 0;
    for (std::size_t i = 0; i < messages->size() && r.is_good(); ++i)
      list.push_back(chat_message(r, (*messages)[i], fmt::format("messages[{}]", i), open, n_calls));
    if (r.is_good() && !list.empty()) {
      if (auto read = read_messages(list, ignored))
        chat.messages = std::move(*read);
      else
        r.wrong(read.error());
    }
  } else if (messages != nullptr) {
    r.wrong("messages", show(*messages) + " is given, a list wanted");
  }
  call.only_loads = chat.messages.is_null();  // without messages, the request only loads the model
  if (const Json* tools = r.fields().get("tools")) {
    if (const auto good = check_tools(*tools); !good)
      r.wrong(good.error());
    else if (!tools->empty())
      chat.tools = *tools;
  }
  ZRT_CHECK_OK(r.finish());
  if (!call.only_loads) q.conversation = std::make_shared<const Conversation>(std::move(chat));
  call.requests.push_back(std::move(q));
  return call;
}

ApiResult<GenerationCall> parse_ollama_generate(const Json& body, const Request& defaults, Ignored ignored) {
  GenerationCall call;
  call.api = Api::kOllamaText;
  Request q = defaults;
  BodyReader r(body, ignored, RequestField::kOllamaGenerate);
  Conversation chat;
  read_shared(r, call, q, chat);
  const auto prompt = r.string("prompt", 64u << 20).value_or("");
  const auto system = r.string("system", 64u << 20).value_or("");
  const bool is_raw = r.boolean("raw").value_or(false);
  r.refuse("images", "the models here read text alone", {Json::array()});
  r.refuse("suffix", "text cannot be filled in between", {""});
  r.refuse("template", "the model's own is used", {""});
  r.refuse("context", "it was given up for /api/chat", {Json::array()});
  ZRT_CHECK_OK(r.finish());
  call.only_loads = prompt.empty();
  if (is_raw) {
    q.prompt = prompt;
    q.parse_output = false;
  } else {
    chat.messages = Json::array();
    if (!system.empty()) chat.messages.push_back(Json{{"role", "system"}, {"content", system}});
    chat.messages.push_back(Json{{"role", "user"}, {"content", prompt}});
    q.conversation = std::make_shared<const Conversation>(std::move(chat));
  }
  call.requests.push_back(std::move(q));
  return call;
}

}  // namespace zinc_rt::server
