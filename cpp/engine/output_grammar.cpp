#include "engine/output_grammar.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_number.h"
#include "engine/clock.h"
#include "engine/structural_tag.h"
#include "output/tool_types.h"

namespace zinc_rt {
namespace {

using Json = nlohmann::ordered_json;
using grammar::Builder;
using Symbol = Builder::Symbol;
using Kind = OutputFormat::Kind;
using Tool = BoundTool;

std::unexpected<Error> refuse_format(const char* field, const std::string& message) {
  return fail({StatusCode::kInvalidArgument, field}, "[request] {}", message);
}

class Maker {
 public:
  explicit Maker(const GrammarInput& input)
      : input_(input), format_(input.formats.calls()), builder_(grammar::Options{.cancel = input.request.cancel}) {}

  // Compiles the grammar. An error names the field of the request that cannot be fulfilled.
  Result<grammar::Grammar> make() {
    auto made = make_any();
    if (made) return made;
    const bool is_format = input_.request.output_format.kind != Kind::kText;
    return std::unexpected(about(is_format ? "output_format" : "tools", std::move(made).error()));
  }

 private:
  Result<grammar::Grammar> make_any() {
    const auto& wanted = input_.request.output_format;
    const bool must_call = input_.request.tool_choice != ToolChoice::kAuto;
    if (must_call || wanted.kind == Kind::kText) {
      if (wanted.kind != Kind::kText)
        return refuse_format(
            "output_format",
            "an output format and a tool choice that demands calls are both given, at most one allowed");
      ZRT_TRY(const auto calls, must_call ? forced_calls() : strict_calls());
      return behind_reasoning(calls);
    }
    if (wanted.kind == Kind::kGbnf) {
      if (input_.opens_reasoning)
        return refuse_format("output_format",
                             "a grammar cannot be given where the template opens the reasoning; turn thinking off");
      return grammar::compile({grammar::SourceKind::kGbnf, wanted.text, {}}, {.cancel = input_.request.cancel});
    }
    ZRT_TRY(const auto text, text_of(wanted));
    return behind_reasoning(text);
  }

  Result<Symbol> text_of(const OutputFormat& wanted) {
    switch (wanted.kind) {
      case Kind::kJsonSchema: return builder_.json(wanted.text);
      case Kind::kRegex: return builder_.regex(wanted.text);
      case Kind::kChoice:
        if (wanted.choices.empty())
          return refuse_format("output_format", "an output format of choices has none, at least 1 wanted");
        return builder_.choice(wanted.choices);
      case Kind::kStructuralTag:
        return read_structural_tag(wanted.text, builder_, [&](std::string_view text) { return marker(text); });
      default: return builder_.json_object();
    }
  }

  grammar::Marker marker(std::string_view text) const { return {std::string(text), input_.formats.token_of(text)}; }

  // Returns the symbol of a text of the format. If the vocabulary has a token for the format's marker or another of its
  // tokens, that text must be the token.
  Symbol written(std::string_view text) {
    std::vector<std::string_view> marks(format_->tokens.begin(), format_->tokens.end());
    if (!format_->mark.empty()) marks.push_back(format_->mark);
    std::erase_if(marks, [&](std::string_view mark) { return !marker(mark).token; });
    std::vector<Symbol> parts;
    for (;;) {
      const auto first = std::ranges::min_element(marks, {}, [&](std::string_view mark) { return text.find(mark); });
      const auto at = marks.empty() ? std::string_view::npos : text.find(*first);
      if (at == std::string_view::npos) break;
      if (at > 0) parts.push_back(builder_.text(text.substr(0, at)));
      parts.push_back(builder_.marker(marker(*first)));
      text.remove_prefix(at + first->size());
    }
    if (!text.empty()) parts.push_back(builder_.text(text));
    return builder_.sequence(std::move(parts));
  }

  // Returns how this format writes the arguments of a tool.
  grammar::ArgumentForm form_of(const Tool& tool) {
    using Form = grammar::ArgumentForm;
    switch (format_->openings[0].syntax) {
      case output::Syntax::kBare: return {.kind = Form::Kind::kBare, .quote = marker(format_->mark)};
      case output::Syntax::kPython: return {.kind = Form::Kind::kKeywords};
      case output::Syntax::kInvoke: {
        const auto text = output::parameter_form(*format_);
        return {.kind = Form::Kind::kTypedTags,
                .mark = marker(format_->mark),
                .open = text.open,
                .name_end = text.name_end,
                .json_name_end = text.json_name_end,
                .close = text.close};
      }
      case output::Syntax::kPairs:
      case output::Syntax::kTags: {
        const auto text = output::parameter_form(*format_);
        return {
            .kind = Form::Kind::kTags,
            .open = text.open,
            .name_end = text.name_end,
            .close = text.close,
            .read_as = [this, name = tool.bare()](const std::string* parameter) { return types_of(name, parameter); }};
      }
      default: return {};
    }
  }

  // Returns the types that the output parser may give to a value.
  std::uint8_t types_of(const std::string& tool, const std::string* parameter) const {
    using output::ToolTypes;
    static constexpr std::pair<std::uint8_t, std::uint8_t> kSame[] = {
        {ToolTypes::kText, grammar::kStringType},     {ToolTypes::kInteger, grammar::kIntegerType},
        {ToolTypes::kNumber, grammar::kIntegerType},  {ToolTypes::kNumber, grammar::kFractionType},
        {ToolTypes::kBoolean, grammar::kBooleanType}, {ToolTypes::kNull, grammar::kNullType},
        {ToolTypes::kObject, grammar::kObjectType},   {ToolTypes::kArray, grammar::kArrayType}};
    const auto types =
        input_.types.types_of(tool, parameter == nullptr ? std::nullopt : std::optional<std::string_view>(*parameter));
    if (types == 0) return grammar::kAllTypes;
    std::uint8_t bits = 0;
    for (const auto& [own, other] : kSame)
      if ((types & own) != 0) bits |= other;
    return bits;
  }

  // Returns a grammar in which free reasoning text comes before `rest`. If the reasoning's marker is a token, the model
  // may also open the reasoning itself.
  Result<grammar::Grammar> behind_reasoning(Symbol rest) {
    const auto* reasoning = input_.formats.reasoning();
    const auto open = marker(reasoning->open), close = marker(reasoning->close);
    if (input_.request.parse_output && (input_.opens_reasoning || open.token)) {
      const std::string without[] = {close.text};
      ZRT_TRY(const auto spaces, builder_.regex("[ \\n\\r\\t]{0,8}"));
      auto thought = builder_.sequence({builder_.free_text(without), builder_.marker(close), spaces});
      if (!input_.opens_reasoning) thought = builder_.optional(builder_.sequence({builder_.marker(open), thought}));
      rest = builder_.sequence({thought, rest});
    }
    return builder_.finish(rest);
  }

  struct Call {
    std::string before;
    Symbol arguments;
    std::string behind;
  };

  Result<Call> parts_of_call(const Tool& tool) {
    if (format_->body.contains("{bare}") && !can_be_bare(tool.bare()))
      return refuse_format(
          "tools", fmt::format("the name of tool {} cannot be written in this model's calls (format {})", tool.name,
                               format_->name));
    // A tool that is not strict only has to follow the supported parts of its schema. Each tool may use half of the
    // remaining work, so that work is left for the tools after it.
    constexpr double kPart = 0.5;
    const auto form = form_of(tool);
    auto arguments = builder_.arguments(tool.schema, form, tool.is_strict ? 1 : kPart);
    if (!arguments) {
      if (arguments.error().code == StatusCode::kCancelled) return std::unexpected(arguments.error());
      if (tool.is_strict) {
        auto error = about("tools", arguments.error());
        error.message = fmt::format("[request] the parameters of tool {}: {}", tool.name, error.message);
        return std::unexpected(std::move(error));
      }
      arguments = builder_.arguments(R"({"type":"object"})", form);
    }
    if (!arguments) return std::unexpected(arguments.error());
    // No name contains this character, because JSON escapes control characters.
    constexpr std::string_view kHole = "\x01";
    const auto text = output::call_text(*format_, tool.name, kHole);
    const auto at = text.find(kHole);
    return Call{text.substr(0, at), *arguments, text.substr(at + 1)};
  }

  Result<Symbol> call(const Tool& tool) {
    ZRT_TRY(const Call one, parts_of_call(tool));
    return builder_.sequence({written(one.before), one.arguments, written(one.behind)});
  }

  // Returns whether the output parser recognizes this name without escapes.
  bool can_be_bare(const std::string& name) const {
    constexpr std::string_view kSigns = " \t\r\n<>{}[]\\\"", kPythonSigns = "(),='";
    // The older of the two notations for calls writes the word "function" instead of a name.
    const auto syntax = format_->openings[0].syntax;
    const bool is_word = syntax == output::Syntax::kNamed && name == "function";
    const bool has_brackets = syntax == output::Syntax::kPython || syntax == output::Syntax::kPairs;
    return !name.empty() && name.size() <= output::kMaxNameBytes && !is_word &&
           name.find_first_of(kSigns) == std::string::npos &&
           (!has_brackets || name.find_first_of(kPythonSigns) == std::string::npos) &&
           (format_->mark.empty() || !name.contains(format_->mark));
  }

  // Returns the grammar symbol for the text between the opening and closing markers: one call, or a list of calls.
  Result<Symbol> content(const std::vector<Tool>& tools, std::optional<std::uint32_t> most) {
    std::vector<Symbol> calls;
    for (const auto& tool : tools) {
      ZRT_TRY(const auto one, call(tool));
      calls.push_back(one);
    }
    auto any = builder_.alternatives(std::move(calls));
    if (!format_->is_list) return any;
    any = builder_.repeat(any, 1, most, between());
    return builder_.sequence({builder_.text(format_->list_open), any, builder_.text(format_->list_close)});
  }

  std::optional<std::uint32_t> most_calls() const {
    const auto n = input_.request.max_tool_calls;
    return n == 0 ? std::nullopt : std::optional(n);
  }

  Result<Symbol> forced_calls() {
    std::vector<Tool> tools(input_.tools.begin(), input_.tools.end());
    if (tools.empty()) return refuse_format("tool_choice", "a tool choice demands a call, and there are no tools");
    auto most = most_calls();
    if (input_.request.tool_choice == ToolChoice::kNamed) {
      const auto name = dump_json(input_.request.named_tool);
      std::erase_if(tools, [&](const Tool& tool) { return tool.name != name; });
      if (tools.empty())
        return refuse_format("tool_choice", fmt::format("the tool choice names {}, which is none of the tools", name));
      most = 1;
    }
    if (format_ == nullptr || format_->body.empty())
      return refuse_format("tool_choice",
                           fmt::format("calls cannot be forced from this model: its format of calls is {}",
                                       format_ == nullptr ? "not known" : format_->name));
    ZRT_TRY(const auto calls, all_calls(tools, most));
    return builder_.sequence({sign(format_->first), calls, sign(format_->last)});
  }

  // Returns the symbol of a text that the format uses as a sign. If the format has no such text, the symbol is empty.
  Symbol sign(std::string_view text) {
    if (text.empty()) return builder_.sequence({});
    return marker(text).token ? builder_.marker(marker(text)) : written(text);
  }

  // Returns the symbol of the text between two calls; nullopt if the format has none.
  std::optional<Symbol> between() {
    return format_->separator.empty() ? std::nullopt : std::optional(builder_.text(format_->separator));
  }

  // Returns the symbol of one call or several, each between its opening and closing text.
  Result<Symbol> all_calls(const std::vector<Tool>& tools, std::optional<std::uint32_t> most) {
    const auto& opening = format_->openings[0];
    ZRT_TRY(auto calls, content(tools, most));
    calls = builder_.sequence({sign(opening.marker), calls, sign(opening.close)});
    return format_->is_list ? calls : builder_.repeat(calls, 1, most, between());
  }

  // Returns the grammar of free text with calls in it. The arguments of a strict tool must match its schema. The
  // arguments of any other tool may be any object.
  Result<Symbol> strict_calls() {
    const std::vector<Tool> tools(input_.tools.begin(), input_.tools.end());
    Builder::TaggedText text;
    if (!format_->first.empty()) {
      ZRT_TRY(const auto calls, all_calls(tools, most_calls()));
      text.tags.push_back({marker(format_->first), calls, marker(format_->last)});
      return builder_.tagged_text(text);
    }
    const auto& opening = format_->openings[0];
    ZRT_TRY(auto calls, content(tools, most_calls()));
    const auto mark = marker(format_->mark);
    const auto at = opening.marker.find(mark.text);
    if (mark.token && !marker(opening.marker).token && at != std::string::npos) {
      // Only a token within the opening begins a call. The text before that token is ordinary text.
      calls = builder_.sequence({written(opening.marker.substr(at + mark.text.size())), calls, sign(opening.close)});
      text.tags.push_back({mark, calls, {}});
      return builder_.tagged_text(text);
    }
    text.tags.push_back({marker(opening.marker), calls, marker(opening.close)});
    // A call may also begin with the call's own first words, without the opening. The closing text of such a call is
    // then ordinary text.
    for (const auto& other : format_->openings) {
      if (!other.in_body) continue;
      for (const auto& tool : tools) {
        ZRT_TRY(Call one, parts_of_call(tool));
        one.before.erase(0, one.before.find(other.marker));
        one.behind.erase(one.behind.find_last_not_of(output::kSpaces) + 1);
        text.tags.push_back({{one.before, {}}, builder_.sequence({one.arguments, builder_.text(one.behind)}), {}});
        if (text.triggers.empty()) text.triggers = {marker(opening.marker), {std::string(other.marker), {}}};
      }
    }
    return builder_.tagged_text(text);
  }

  const GrammarInput& input_;
  const output::CallFormat* format_;
  Builder builder_;
};

bool has_strict(const GrammarInput& input) {
  const auto* format = input.formats.calls();
  // Where the opening begins other messages, too, it cannot begin calls alone.
  const bool is_bound = format != nullptr && !format->body.empty() && !format->openings[0].marker.empty() &&
                        format->openings[0].syntax != output::Syntax::kHeader;
  return input.request.parse_output && !input.request.ignore_eos && is_bound &&
         std::ranges::any_of(input.tools, &Tool::is_strict);
}

}  // namespace

std::vector<BoundTool> bound_tools(const Request& request, const Json& tools) {
  const auto function_of = [](const Json& one) -> const Json* {
    if (!one.is_object()) return nullptr;
    const auto found = one.find("function");
    const bool is_named =
        found != one.end() && found->is_object() && found->contains("name") && (*found)["name"].is_string();
    return is_named ? &*found : nullptr;
  };
  const auto is_strict = [](const Json& function) { return function.value("strict", Json()) == true; };
  std::vector<BoundTool> out;
  const bool is_bound = request.tool_choice != ToolChoice::kAuto || std::ranges::any_of(tools, [&](const Json& one) {
                          const Json* function = function_of(one);
                          return function != nullptr && is_strict(*function);
                        });
  if (!is_bound) return out;
  for (const auto& one : tools) {
    const Json* function = function_of(one);
    if (function == nullptr) continue;
    const auto schema = function->find("parameters");
    const bool has_schema = schema != function->end() && schema->is_object();
    out.push_back({dump_json((*function)["name"]), has_schema ? dump_json(*schema) : R"({"type":"object"})",
                   is_strict(*function)});
  }
  return out;
}

bool wants_grammar(const GrammarInput& input) {
  const Request& r = input.request;
  return r.output_format.kind != Kind::kText || r.tool_choice != ToolChoice::kAuto || has_strict(input);
}

std::string grammar_key(const GrammarInput& input) {
  const auto& r = input.request;
  std::string key =
      fmt::format("{} {} {} {} {}:", static_cast<int>(r.output_format.kind), static_cast<int>(r.tool_choice),
                  r.max_tool_calls, input.opens_reasoning, r.output_format.text.size());
  key += r.output_format.text;
  for (const auto& choice : r.output_format.choices) key += fmt::format("{}:{}", choice.size(), choice);
  key += fmt::format("{}:{}", r.named_tool.size(), r.named_tool);
  for (const auto& tool : input.tools)
    key += fmt::format("{} {}:{}{}:{}", tool.is_strict, tool.name.size(), tool.name, tool.schema.size(), tool.schema);
  return key;
}

Result<grammar::Grammar> make_grammar(const GrammarInput& input) {
  return Maker(input).make();
}

std::optional<OutputGrammar> GrammarCache::find(std::uint32_t tenant, const std::string& key) {
  const Id id{std::hash<std::string_view>()(key), tenant, key};
  const std::lock_guard lock(mutex_);
  const auto it = by_id_.find(id);
  if (it == by_id_.end()) return std::nullopt;
  auto& mine = by_tenant_[tenant];
  mine.entries.splice(mine.entries.begin(), mine.entries, it->second);
  it->second->used = now_us();
  return it->second->grammar;
}

void GrammarCache::add(std::uint32_t tenant, const std::string& key, const OutputGrammar& grammar) {
  const std::size_t hash = std::hash<std::string_view>()(key);
  std::list<Entry> dropped;  // freed after the lock is released, because that takes time
  const std::lock_guard lock(mutex_);
  auto& mine = by_tenant_[tenant];
  if (by_id_.contains({hash, tenant, key})) return;  // two requests have compiled it at the same time
  mine.entries.push_front({hash, key, grammar, 0, 0});
  Entry& entry = mine.entries.front();
  by_id_.emplace(Id{hash, tenant, entry.key}, mine.entries.begin());
  entry.used = now_us();
  // A grammar's tables grow while it is used. So after the tenant has added grammars numbering 1/16 of its cached ones,
  // all of them are measured again. That keeps the cost per grammar small.
  entry.bytes = size_of(entry);
  mine.bytes += entry.bytes;
  if (++mine.n_added > mine.entries.size() / 16) {
    mine.n_added = 0;
    mine.bytes = 0;
    for (Entry& one : mine.entries) mine.bytes += one.bytes = size_of(one);
  }
  while (mine.bytes > tenant_bytes_ && mine.entries.size() > 1) drop_oldest(tenant, dropped);
  for (auto it = by_tenant_.begin(); it != by_tenant_.end();) {
    const auto next = std::next(it);
    while (!it->second.entries.empty() && entry.used - it->second.entries.back().used > kIdle)
      if (drop_oldest(it->first, dropped)) break;
    it = next;
  }
  while (n_bytes() > bytes_ && by_id_.size() > 1)
    drop_oldest(std::ranges::max_element(by_tenant_, {}, [](const auto& one) { return one.second.bytes; })->first,
                dropped);
}

std::size_t GrammarCache::n_bytes() const {
  std::size_t n = 0;
  for (const auto& [tenant, list] : by_tenant_) n += list.bytes;
  return n;
}

std::size_t GrammarCache::size_of(const Entry& entry) {
  return entry.key.size() + entry.grammar.grammar.n_bytes();
}

bool GrammarCache::drop_oldest(std::uint32_t tenant, std::list<Entry>& dropped) {
  auto& list = by_tenant_.at(tenant);
  const Entry& oldest = list.entries.back();
  by_id_.erase({oldest.hash, tenant, oldest.key});
  list.bytes -= oldest.bytes;
  dropped.splice(dropped.begin(), list.entries, std::prev(list.entries.end()));
  if (!list.entries.empty()) return false;
  by_tenant_.erase(tenant);
  return true;
}

}  // namespace zinc_rt
