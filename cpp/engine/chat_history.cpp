#include "engine/chat_history.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json_number.h"
#include "base/strict_json.h"

namespace zinc_rt {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kBrokenArguments = "text";  // the key under which arguments that are not a JSON object are kept

std::string dump(const Json& value) {
  return dump_json(value);
}

bool has_calls(const Json& message) {
  const auto calls = message.find("tool_calls");
  return calls != message.end() && calls->is_array();
}

// Returns the function of a call; null if the call does not have the API's form.
Json* function_of(Json& call) {
  if (!call.is_object()) return nullptr;
  const auto function = call.find("function");
  return function != call.end() && function->is_object() && function->contains("name") ? &*function : nullptr;
}

// Arguments holds the arguments of a tool call in the history: as an object and, if the client sent them as text, as
// the original text.
struct Arguments {
  Json object;
  std::optional<std::string> text;

  explicit Arguments(const Json& given) {
    if (given.is_object()) {
      object = given;
    } else if (given.is_null()) {
      object = Json::object();
    } else if (given.is_string()) {
      const auto& as_given = given.get_ref<const std::string&>();
      auto parsed = read_any_json(as_given);
      if (parsed && parsed->is_object()) {
        object = std::move(*parsed);
        text = as_given;
      } else if (as_given.find_first_not_of(" \t\r\n") == std::string::npos) {
        object = Json::object();
      }
    }
    if (object.is_null()) object = Json{{kBrokenArguments, given}};
  }
  // Returns the arguments as the model wrote them. If the original text is missing, returns the object's text, which
  // may differ from it in spacing.
  std::string written() const { return text ? *text : dump_json(object, kPythonLayout); }
};

std::string short_id(const std::string& id) {
  constexpr std::string_view kLetters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  if (id.size() == 9 && id.find_first_not_of(kLetters) == std::string::npos) return id;
  auto hash = XXH3_64bits(id.data(), id.size());
  std::string out(9, '0');
  for (char& c : out) c = kLetters[hash % kLetters.size()], hash /= kLetters.size();
  return out;
}

void shorten(Json& object, const char* name) {
  if (const auto id = object.find(name); id != object.end() && id->is_string()) *id = short_id(id->get<std::string>());
}

bool has_role(const Json& message, std::string_view role) {
  const auto found = message.find("role");
  return found != message.end() && found->is_string() && found->get_ref<const std::string&>() == role;
}

// Returns the text of a call as the model writes it, without the markers around it.
std::string written_call(const Json& function, const output::CallFormat& format) {
  const Arguments arguments(function.value("arguments", Json()));
  return output::call_text(
      format, dump(function["name"]),
      output::has_json_arguments(format) ? arguments.written() : output::arguments_text(format, arguments.object));
}

void append_text(Json& message, std::string text) {
  auto& own = output::content_as_text(message);
  if (!own.empty() && !text.empty()) own += "\n";
  own += text;
}

// Appends the tool calls of a message to its text, for a template that would not render them.
void write_calls(Json& message, const output::CallFormat& format) {
  const auto& opening = format.openings[0];
  std::string text, calls;
  for (Json& call : message["tool_calls"]) {
    const Json* function = function_of(call);
    if (function == nullptr) continue;
    auto one = written_call(*function, format);
    if (!format.is_list) one = std::string(opening.marker) + one + std::string(opening.close);
    calls += (calls.empty() ? "" : std::string(format.separator)) + one;
  }
  if (calls.empty()) return;
  if (format.is_list)
    text = fmt::format("{}{}{}{}{}", opening.marker, format.list_open, calls, format.list_close, opening.close);
  else
    text = std::move(calls);
  text = fmt::format("{}{}{}", format.first, text, format.last);
  append_text(message, std::move(text));
  message.erase("tool_calls");
}

// Gives each call a message of its own, followed by the results that belong to it. The first of these messages keeps the
// text and the reasoning. Results belong to a call by its id; those without an id belong to the calls in their order.
void split_calls(Json& messages) {
  Json out = Json::array();
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const Json& message = messages[i];
    if (!message.is_object() || !has_calls(message) || message["tool_calls"].size() < 2) {
      out.push_back(message);
      continue;
    }
    std::vector<const Json*> results;
    for (std::size_t next = i + 1; next < messages.size(); ++next) {
      if (!messages[next].is_object() || !has_role(messages[next], "tool")) break;
      results.push_back(&messages[next]);
    }
    i += results.size();
    const auto id_of = [](const Json& object, const char* name) {
      const auto id = object.find(name);
      return id != object.end() && id->is_string() ? id->get<std::string>() : std::string();
    };
    bool is_first = true;
    for (const Json& call : message["tool_calls"]) {
      Json one = is_first ? message : Json{{"role", message["role"]}, {"content", ""}};
      is_first = false;
      one["tool_calls"] = Json::array({call});
      out.push_back(std::move(one));
      const std::string id = call.is_object() ? id_of(call, "id") : std::string();
      const auto is_of_call = [&](const Json* result) { return !id.empty() && id_of(*result, "tool_call_id") == id; };
      const auto has_no_id = [&](const Json* result) { return id_of(*result, "tool_call_id").empty(); };
      const auto append_first = [&](auto&& is_wanted) {
        const auto found = std::ranges::find_if(results, is_wanted);
        if (found == results.end()) return false;
        out.push_back(**found);
        results.erase(found);
        return true;
      };
      bool has_result = false;
      while (append_first(is_of_call)) has_result = true;
      if (!has_result) append_first(has_no_id);
    }
    for (const Json* result : results) out.push_back(*result);
  }
  messages = std::move(out);
}

// Writes calls as messages whose metadata is the function's name, for a template that renders those instead of calls.
// The text of a message with a call becomes a message before it.
void write_metadata(Json& messages) {
  Json out = Json::array();
  for (Json& message : messages) {
    if (message.is_object() && has_role(message, "tool")) message["role"] = "observation";
    const bool is_call = message.is_object() && has_calls(message) && !message["tool_calls"].empty() &&
                         function_of(message["tool_calls"][0]) != nullptr;
    if (!is_call) {
      out.push_back(std::move(message));
      continue;
    }
    const Json* function = function_of(message["tool_calls"][0]);
    Json call{{"role", message["role"]},
              {"metadata", (*function)["name"]},
              {"content", Arguments(function->value("arguments", Json())).written()}};
    message.erase("tool_calls");
    if (!output::text_of_content(message.value("content", Json())).empty()) out.push_back(std::move(message));
    out.push_back(std::move(call));
  }
  messages = std::move(out);
}

std::string described(const Json& tools) {
  std::string text =
      "# Tools\n\nYou can call these functions. Each line between <tools> and </tools> describes one:\n<tools>\n";
  for (const Json& tool : tools) text += dump(tool) + "\n";
  return text +
         "</tools>\n\nTo call a function, write its name and its arguments as one JSON object between <tool_call> and "
         "</tool_call>:\n<tool_call>\n{\"name\": \"<name of the function>\", \"arguments\": {<its arguments>}}\n"
         "</tool_call>\nThe result comes between <tool_response> and </tool_response>.";
}

// Adds a description of the tools to the system message.
void show_tools(Json& messages, const Json& tools) {
  const bool has_system = !messages.empty() && messages[0].is_object() && has_role(messages[0], "system");
  if (!has_system) messages.insert(messages.begin(), Json{{"role", "system"}, {"content", ""}});
  auto& own = output::content_as_text(messages[0]);
  own = own.empty() ? described(tools) : own + "\n\n" + described(tools);
}

}  // namespace

Status fit_history(Json& messages, const Json* tools, const output::TemplateTraits& traits,
                   std::string_view own_tools) {
  const bool is_own = !own_tools.empty() && !traits.shows_tools;
  const auto* format = is_own ? output::find_call_format(own_tools) : traits.calls;
  ZRT_CHECK_OK(output::check_content(messages));
  if (!is_own) output::fit_role_order(messages, traits.order);
  if (!is_own && messages.is_array() && (traits.has_one_call || traits.has_metadata)) split_calls(messages);
  if (!is_own && messages.is_array() && traits.has_metadata) write_metadata(messages);
  for (Json& message : messages) {
    if (!message.is_object()) continue;
    if (format != nullptr && format->has_short_ids) shorten(message, "tool_call_id");
    // Templates with channels call the reasoning "thinking", and refuse it beside a text and calls.
    if (const auto thought = message.find("reasoning_content");
        traits.has_channels && thought != message.end() && !message.contains("thinking") &&
        !(has_calls(message) && !output::text_of_content(message.value("content", Json())).empty()))
      message["thinking"] = *thought;
    if (has_calls(message)) {
      const bool is_left_out = is_own || (traits.shows_tools && !traits.writes_calls);
      if (is_left_out && format != nullptr && !format->body.empty()) write_calls(message, *format);
    }
    if (has_calls(message)) {
      for (Json& call : message["tool_calls"]) {
        Json* function = function_of(call);
        if (function == nullptr) continue;
        Arguments arguments(function->value("arguments", Json()));
        const bool is_text = !is_own && (!traits.takes_objects || (traits.prints_texts && arguments.text));
        (*function)["arguments"] = is_text ? Json(arguments.written()) : std::move(arguments.object);
        if (format != nullptr && format->has_short_ids) shorten(call, "id");
      }
    }
    const auto content = message.find("content");
    if (is_own && has_role(message, "tool") && content != message.end() &&
        (content->is_string() || content->is_array())) {
      auto& text = output::content_as_text(message);
      text = "<tool_response>\n" + text + "\n</tool_response>";
      message["role"] = "user";
      message.erase("tool_call_id");
    }
  }
  if (is_own && tools != nullptr && tools->is_array() && !tools->empty()) show_tools(messages, *tools);
  // Results of own tools have become messages of the user.
  if (is_own) output::fit_role_order(messages, traits.order);
  output::fit_content(messages, traits.content);
  return {};
}

}  // namespace zinc_rt
