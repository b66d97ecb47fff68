// Lists the formats in which models write reasoning and tool calls, and finds out from a chat template which format it
// uses.
// Thread rule: constants and pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "output/content_form.h"
#include "output/probe.h"
#include "output/role_order.h"

namespace zinc_rt::output {

// Syntax lists how a call can be written between its markers.
enum class Syntax : std::uint8_t {
  kJson,    // {"name": "N", "arguments": {..}}, alone, one after another, or in a list
  kTags,    // <function=N><parameter=K>V</parameter></function>
  kInvoke,  // <invoke name="N"><parameter name="K" string="true">V</parameter></invoke>
  kBare,    // call:N{key:<quote>text<quote>,n:3}
  kNamed,   // N<separator>{..}: the name, a separator, and the arguments as JSON
  kPairs,   // N<arg_key>K</arg_key><arg_value>V</arg_value>: the name, and pairs of tags
  kPython,  // f(k="text", n=3): Python's calls with keywords, alone, one after another, or in a list
  kLine,    // the name on a line of its own, and the arguments as JSON
  kHeader,  // the name is in the header of a message (channel_reader.h), whose body is the arguments as JSON
};

// Names a text that announces calls, and the syntax of the calls after it.
struct Opening {
  std::string_view marker;  // if empty, calls may be the whole answer, from its first character on
  Syntax syntax = Syntax::kJson;
  // Text that closes the marker; if empty, the end of the calls is known from the calls themselves.
  std::string_view close = {};
  bool in_body = false;  // whether the marker is itself the beginning of the call
};

struct CallFormat {
  std::string_view name;
  std::span<const Opening> openings;
  // The meaning of this text depends on the syntax. kBare: the quote around texts. kInvoke: the text in each tag before
  // the tag's name. kNamed: the separator after a function's name.
  std::string_view mark = {};
  std::string_view gap = {};  // kPairs: the text that the models write between two tags
  // Other texts in a call that are single tokens, where the vocabulary has them.
  std::span<const std::string_view> tokens = {};
  // Texts that may occur between calls. The parser removes them.
  std::span<const std::string_view> dropped = {};
  bool has_short_ids = false;  // whether the models' templates accept only call ids of 9 letters and digits
  // A template's output contains this text if it renders a call of kProbeName in this format.
  std::string_view in_calls = {};
  // A text by which this format is recognized in a template's instructions. It is searched for if a template shows
  // tools but does not render calls.
  std::string_view in_instructions = {};
  // The text of a call between its markers, with placeholders. {name} stands for the name as JSON, {bare} for the plain
  // name, {arguments} for an object in the syntax of the first opening. If empty, such calls are read, but never
  // written or forced.
  std::string_view body = {};
  bool is_list = false;                                // whether the calls are the items of one list
  std::string_view list_open = "[", list_close = "]";  // texts before and after the list
  std::string_view separator = {};                     // text between two calls
  std::string_view first = {}, last = {};              // texts before the first and after the last call
};

struct ReasoningFormat {
  std::string_view name, open, close;
  std::string_view head = {};  // text after `open` that belongs to the markup and is dropped
};

// Names the marks that some models write around their answers, behind the reasoning.
struct AnswerFrame {
  std::string_view open, close;
};

std::span<const CallFormat> call_formats();
// Returns whether the format writes the arguments of calls as JSON.
bool has_json_arguments(const CallFormat& format);
std::span<const ReasoningFormat> reasoning_formats();
std::span<const AnswerFrame> answer_frames();
// Holds the texts around the name and the value of a parameter, as models write them, for kTags, kPairs and kInvoke.
// json_name_end: takes the place of name_end before a value that is no text, if that differs.
struct ParameterForm {
  std::string open, name_end, json_name_end, close;
};
// REQUIRES: the format's first opening has one of these syntaxes.
ParameterForm parameter_form(const CallFormat& format);
// Returns an object in the format's own syntax.
std::string arguments_text(const CallFormat& format, const nlohmann::ordered_json& object);
// Returns the text of a call: `body` with this name, which is JSON, and these arguments in the format's syntax.
std::string call_text(const CallFormat& format, std::string_view name, std::string_view arguments);
// Returns null for an unknown name.
const CallFormat* find_call_format(std::string_view name);

// Says what probe_template() found out about a chat template.
struct TemplateTraits {
  const CallFormat* calls = nullptr;  // null if the template shows no tools, or its call format is unknown
  const ReasoningFormat* reasoning = nullptr;
  bool shows_tools = false;   // whether the prompt is different if the request has tools
  bool writes_calls = false;  // whether the template renders the calls in an assistant's message
  bool takes_objects = true;  // false if the template needs the arguments of calls as JSON text
  bool prints_texts = false;  // whether arguments given as JSON text are rendered unchanged
  bool has_channels = false;  // whether messages have headers with channels (channel_reader.h)
  bool has_one_call = false;  // whether the template renders one call per message, and drops or refuses others
  // Whether the template knows no calls, but renders a message whose "metadata" is a function's name and whose content
  // is the arguments, and results from the role "observation".
  bool has_metadata = false;
  ContentForms content{};              // form of message content that the template accepts
  RoleOrder order{};                   // order of roles that the template accepts
  const AnswerFrame* frame = nullptr;  // null if the models write no marks around answers
};

// Finds out the traits of a template by rendering a few conversations, each once.
TemplateTraits probe_template(const Render& render);

}  // namespace zinc_rt::output
