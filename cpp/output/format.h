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

// A text after which calls stand.
struct Opening {
  std::string_view marker;  // empty: calls may be the whole answer, from its first character on
  Syntax syntax = Syntax::kJson;
  std::string_view close = {};  // ends what the marker opened; empty: the calls end by themselves
  bool in_body = false;         // the marker is the beginning of the call itself
};

struct CallFormat {
  std::string_view name;
  std::span<const Opening> openings;
  // kBare: what encloses texts. kInvoke: what stands in each tag before its name. kNamed: what follows a name.
  std::string_view mark = {};
  // Texts between calls that are dropped.
  std::span<const std::string_view> dropped = {};
  bool has_short_ids = false;  // templates of these models refuse ids of other than 9 letters and digits
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
  std::string_view head = {};  // dropped where it follows `open`
};

std::span<const CallFormat> call_formats();
// Whether the arguments of calls are written as JSON.
bool has_json_arguments(const CallFormat& format);
std::span<const ReasoningFormat> reasoning_formats();
// `body` with a name and arguments, both JSON.
std::string call_text(const CallFormat& format, std::string_view name, std::string_view arguments);
// Null for an unknown name.
const CallFormat* find_call_format(std::string_view name);

// What the test of a chat template found.
struct TemplateTraits {
  const CallFormat* calls = nullptr;  // null: it shows no tools, or its format of calls is not known
  const ReasoningFormat* reasoning = nullptr;
  bool shows_tools = false;   // it writes another text when there are tools
  bool writes_calls = false;  // it writes the calls of an assistant's message
  bool takes_objects = true;  // false: it wants the arguments of calls as JSON text
  bool prints_texts = false;  // arguments that are JSON text stand in its text as they came
  ContentForms content{};     // in which form it takes the content of messages
};

// Tries a template: a few conversations, each rendered once.
TemplateTraits probe_template(const Render& render);

}  // namespace zinc_rt::output
