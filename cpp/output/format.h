// How models write reasoning and tool calls: a table of formats, and how to tell from a chat template which row it
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

namespace zinc_rt::output {

// The syntax of a call.
enum class Syntax : std::uint8_t {
  kJson,    // {"name": "N", "arguments": {..}}, alone, one after another, or in a list
  kTags,    // <function=N><parameter=K>V</parameter></function>
  kInvoke,  // <invoke name="N"><parameter name="K" string="true">V</parameter></invoke>
  kBare,    // call:N{key:<quote>text<quote>,n:3}
  kNamed,   // N<separator>{..}
};

// A text after which calls follow.
struct Opening {
  std::string_view marker;  // empty: calls may be the whole answer, from its first character on
  Syntax syntax = Syntax::kJson;
  std::string_view close = {};  // ends what the marker opened; empty: the calls end by themselves
  bool in_body = false;         // the marker is itself the beginning of the call
};

struct CallFormat {
  std::string_view name;
  std::span<const Opening> openings;
  // kBare: the quote around texts. kInvoke: the text in each tag before the tag's name. kNamed: the separator after a
  // function's name.
  std::string_view mark = {};
  // Texts between calls that are dropped.
  std::span<const std::string_view> dropped = {};
  bool has_short_ids = false;  // the models' templates accept only ids of 9 letters and digits
  // A text that a template writes if it renders a call of kProbeName in this format.
  std::string_view in_calls = {};
  // A text by which a template of this format is known if it shows tools but does not write earlier calls.
  std::string_view in_instructions = {};
  // A call between its markers: {name} is the name as JSON, {bare} the plain name, {arguments} an object in the syntax
  // of the first opening. Empty: such calls are read, but never written or forced.
  std::string_view body = {};
  bool is_list = false;                                // the calls are the items of one list
  std::string_view list_open = "[", list_close = "]";  // around the list
  std::string_view separator = {};                     // between calls
  std::string_view first = {}, last = {};              // written around all calls
};

struct ReasoningFormat {
  std::string_view name, open, close;
  std::string_view head = {};  // dropped if it follows `open`
};

std::span<const CallFormat> call_formats();
// Returns whether the format writes the arguments of calls as JSON.
bool has_json_arguments(const CallFormat& format);
std::span<const ReasoningFormat> reasoning_formats();
// Returns a call: `body` with this name and these arguments, both JSON.
std::string call_text(const CallFormat& format, std::string_view name, std::string_view arguments);
// Null for an unknown name.
const CallFormat* find_call_format(std::string_view name);

// What rendering test conversations showed about a chat template.
struct TemplateTraits {
  const CallFormat* calls = nullptr;  // null: it shows no tools, or its call format is unknown
  const ReasoningFormat* reasoning = nullptr;
  bool shows_tools = false;   // the prompt differs if there are tools
  bool writes_calls = false;  // it renders the calls in an assistant's message
  bool takes_objects = true;  // false: it needs the arguments of calls as JSON text
  bool prints_texts = false;  // arguments given as JSON text are rendered unchanged
  ContentForms content{};     // the form of message content that it takes
};

// Tests a template by rendering a few conversations, each once.
TemplateTraits probe_template(const Render& render);

}  // namespace zinc_rt::output
