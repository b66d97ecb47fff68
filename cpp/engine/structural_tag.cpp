#include "engine/structural_tag.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json_number.h"
#include "grammar/json_reader.h"

namespace zinc_rt {
namespace {

using grammar::Builder;
using Json = nlohmann::ordered_json;
using grammar::Marker;
using Symbol = Builder::Symbol;
using Texts = std::vector<std::string>;

const Fault kFault{StatusCode::kInvalidArgument, "output_format"};
constexpr int kMostTagDepth = 64;
constexpr std::int64_t kMostRepeats = 10'000;

// TagPart is a part of the tag's JSON, with its position, which error messages name.
struct TagPart {
  const Json& value;
  std::string place;
  int depth = 0;

  TagPart at(const char* name) const { return {value[name], place.empty() ? name : place + "." + name, depth + 1}; }
  TagPart at(std::size_t i) const { return {value[i], fmt::format("{}[{}]", place, i), depth + 1}; }
  std::string name() const { return place.empty() ? "the whole" : place; }
  std::unexpected<Error> refuse(std::string_view what) const {
    return fail(kFault, "[structural_tag] {}: {}", name(), what);
  }
  // Returns `error`, an error that building the grammar of this part gave. Adds the part's position to the message,
  // unless the error already names a field.
  std::unexpected<Error> pass(Error error) const {
    if (error.field.empty()) error.message = fmt::format("[structural_tag] {}: {}", name(), error.message);
    return std::unexpected(about(kFault.field, std::move(error)));
  }
  bool has(const char* name) const { return value.contains(name) && !value[name].is_null(); }
  // Fails if the part is not an object or has fields other than `names`.
  Status expect(std::initializer_list<std::string_view> names) const {
    if (!value.is_object()) return refuse("an object is wanted");
    for (const auto& item : value.items())
      if (std::ranges::find(names, item.key()) == names.end())
        return fail(kFault, "[structural_tag] {}{}{}: no such field here", place, place.empty() ? "" : ".", item.key());
    return {};
  }
  Result<std::string> text(const char* name) const {
    if (!has(name) || !value[name].is_string()) return missing(name, "a text");
    return value[name].get<std::string>();
  }
  // Returns a member that must be a list with at least one entry.
  Result<TagPart> list(const char* name) const {
    if (!has(name) || !value[name].is_array() || value[name].empty()) return missing(name, "a list that is not empty");
    return at(name);
  }
  Result<Texts> texts(const char* name) const {
    Texts out;
    if (!has(name)) return out;
    if (!value[name].is_array()) return missing(name, "a list of texts");
    for (const Json& one : value[name]) {
      if (!one.is_string() || one.get_ref<const std::string&>().empty())
        return missing(name, "a list of texts that are not empty");
      out.push_back(one.get<std::string>());
    }
    return out;
  }
  Result<bool> flag(const char* name) const {
    if (!has(name)) return false;
    if (!value[name].is_boolean()) return missing(name, "true or false");
    return value[name].get<bool>();
  }
  Result<std::int64_t> count(const char* name, std::int64_t least) const {
    if (!has(name) || !value[name].is_number_integer() || value[name] < least || value[name] > kMostRepeats)
      return missing(name, fmt::format("a whole number from {} to {}", least, kMostRepeats));
    return value[name].get<std::int64_t>();
  }
  std::unexpected<Error> missing(const char* name, std::string_view wanted) const {
    return fail(kFault, "[structural_tag] {}{}{}: {} is wanted", place, place.empty() ? "" : ".", name, wanted);
  }
};

class TagReader {
 public:
  TagReader(Builder& builder, const MarkerOf& marker_of) : builder_(builder), marker_of_(marker_of) {}

  Result<Symbol> read(const TagPart& whole) {
    ZRT_CHECK_OK(whole.expect({"type", "format", "structures", "triggers"}));
    if (whole.has("type") && whole.value["type"] != "structural_tag")
      return whole.at("type").refuse("structural_tag is wanted");
    if (whole.has("format") == whole.has("structures"))
      return whole.refuse("one of format and structures is wanted, and not both");
    if (whole.has("format")) {
      if (whole.has("triggers")) return whole.at("triggers").refuse("it goes with structures");
      return format(whole.at("format"), {});
    }
    return structures(whole);
  }

 private:
  using Read = Result<Symbol> (TagReader::*)(const TagPart& part, const Texts& ends);
  struct Row {
    std::string_view type;
    Read read;
  };

  struct Tag {
    std::string begin;
    Symbol rest;  // matches the tag's content and closing text
  };

  // Reads a tag of the form {"structures": [{"begin", "schema", "end"}], "triggers": [..]}.
  Result<Symbol> structures(const TagPart& whole) {
    ZRT_TRY(const auto list, whole.list("structures"));
    std::vector<Tag> tags;
    for (std::size_t i = 0; i < list.value.size(); ++i) {
      const auto one = list.at(i);
      ZRT_CHECK_OK(one.expect({"begin", "schema", "end"}));
      ZRT_TRY(auto begin, one.text("begin"));
      ZRT_TRY(const auto end, one.text("end"));
      if (!one.has("schema")) return one.missing("schema", "a JSON schema");
      ZRT_TRY(const auto content, schema(one.at("schema")));
      tags.push_back({std::move(begin), builder_.sequence({content, builder_.marker(marker_of_(end))})});
    }
    if (const auto triggers = whole.list("triggers"); !triggers) return std::unexpected(triggers.error());
    return tagged(whole, tags, {});
  }

  Result<Symbol> schema(const TagPart& part) {
    if (!part.value.is_object() && !part.value.is_boolean())
      return part.refuse("a JSON schema, which is an object, is wanted");
    auto made = builder_.json(dump_json(part.value));
    if (!made) return part.pass(made.error());
    return made;
  }

  // Returns the symbol of free text in which tags may occur. `part` holds the triggers, the texts that begin a tag.
  Result<Symbol> tagged(const TagPart& part, const std::vector<Tag>& tags, const Texts& without) {
    Builder::TaggedText text;
    text.without = without;
    ZRT_TRY(const auto triggers, part.texts("triggers"));
    for (const auto& trigger : triggers) text.triggers.push_back(marker_of_(trigger));
    for (const auto& [begin, rest] : tags) {
      const auto trigger = std::ranges::find_if(triggers, [&](const auto& one) { return begin.starts_with(one); });
      const auto token = trigger == triggers.end() ? std::nullopt : marker_of_(*trigger).token;
      // If the trigger is a token, the rest of the tag's beginning is matched as text.
      if (token)
        text.tags.push_back(
            {{*trigger, token}, builder_.sequence({builder_.text(begin.substr(trigger->size())), rest}), {}});
      else
        text.tags.push_back({{begin, {}}, rest, {}});
    }
    ZRT_TRY(text.at_least_one, part.flag("at_least_one"));
    ZRT_TRY(text.ends_after_first, part.flag("stop_after_first"));
    auto made = builder_.tagged_text(text);
    if (!made) return part.pass(made.error());
    return made;
  }

  // Reads a format. `ends` are the texts that may follow it; free text at its end must not contain them.
  Result<Symbol> format(const TagPart& part, const Texts& ends) {
    static constexpr Row kRows[] = {{"const_string", &TagReader::constant},
                                    {"json_schema", &TagReader::json_schema},
                                    {"regex", &TagReader::regex},
                                    {"grammar", &TagReader::grammar},
                                    {"any_text", &TagReader::any_text},
                                    {"sequence", &TagReader::sequence},
                                    {"or", &TagReader::either},
                                    {"tag", &TagReader::tag},
                                    {"triggered_tags", &TagReader::triggered_tags},
                                    {"tags_with_separator", &TagReader::separated_tags},
                                    {"optional", &TagReader::optional},
                                    {"star", &TagReader::star},
                                    {"plus", &TagReader::plus},
                                    {"repeat", &TagReader::repeat}};
    if (part.depth > kMostTagDepth) return part.refuse(fmt::format("more than {} levels", kMostTagDepth));
    if (!part.value.is_object()) return part.refuse("an object with a type is wanted");
    ZRT_TRY(const auto type, part.text("type"));
    const auto row = std::ranges::find(kRows, type, &Row::type);
    if (row == std::end(kRows)) {
      std::string names;
      for (const auto& one : kRows) names += (names.empty() ? "" : ", ") + std::string(one.type);
      return part.at("type").refuse(fmt::format("\"{}\" is given, one of {} wanted", type.substr(0, 40), names));
    }
    auto made = (this->*row->read)(part, ends);
    if (!made) return part.pass(made.error());
    return made;
  }

  Result<Symbol> constant(const TagPart& part, const Texts&) {
    ZRT_CHECK_OK(part.expect({"type", "value"}));
    ZRT_TRY(const auto text, part.text("value"));
    return builder_.marker(marker_of_(text));
  }
  Result<Symbol> json_schema(const TagPart& part, const Texts&) {
    ZRT_CHECK_OK(part.expect({"type", "json_schema", "style"}));
    if (part.has("style") && part.value["style"] != "json") return part.at("style").refuse("json is the only one");
    if (!part.has("json_schema")) return part.missing("json_schema", "a JSON schema");
    return schema(part.at("json_schema"));
  }
  Result<Symbol> regex(const TagPart& part, const Texts&) {
    ZRT_CHECK_OK(part.expect({"type", "pattern"}));
    ZRT_TRY(const auto pattern, part.text("pattern"));
    return builder_.regex(pattern);
  }
  Result<Symbol> grammar(const TagPart& part, const Texts&) {
    ZRT_CHECK_OK(part.expect({"type", "grammar"}));
    ZRT_TRY(const auto text, part.text("grammar"));
    return builder_.gbnf(text);
  }
  Result<Symbol> any_text(const TagPart& part, const Texts& ends) {
    ZRT_CHECK_OK(part.expect({"type", "excludes"}));
    ZRT_TRY(auto without, part.texts("excludes"));
    without.insert(without.end(), ends.begin(), ends.end());
    return builder_.free_text(without);
  }

  Result<Symbol> sequence(const TagPart& part, const Texts& ends) {
    ZRT_CHECK_OK(part.expect({"type", "elements"}));
    ZRT_TRY(const auto list, part.list("elements"));
    std::vector<Symbol> parts;
    for (std::size_t i = 0; i < list.value.size(); ++i) {
      ZRT_TRY(parts.emplace_back(), format(list.at(i), i + 1 == list.value.size() ? ends : Texts()));
    }
    return builder_.sequence(std::move(parts));
  }
  Result<Symbol> either(const TagPart& part, const Texts& ends) {
    ZRT_CHECK_OK(part.expect({"type", "elements"}));
    ZRT_TRY(const auto list, part.list("elements"));
    std::vector<Symbol> parts;
    for (std::size_t i = 0; i < list.value.size(); ++i) {
      ZRT_TRY(parts.emplace_back(), format(list.at(i), ends));
    }
    return builder_.alternatives(std::move(parts));
  }

  Result<Tag> tag_of(const TagPart& part) {
    ZRT_CHECK_OK(part.expect({"type", "begin", "content", "end"}));
    if (part.has("type") && part.value["type"] != "tag") return part.at("type").refuse("tag is wanted");
    ZRT_TRY(auto begin, part.text("begin"));
    Texts ends;
    if (part.has("end") && part.value["end"].is_array()) {
      ZRT_TRY(ends, part.texts("end"));
      if (ends.empty()) return part.missing("end", "a text or a list of texts");
    } else {
      ZRT_TRY(ends.emplace_back(), part.text("end"));
    }
    std::vector<Symbol> closes;
    for (const auto& end : ends) closes.push_back(builder_.marker(marker_of_(end)));
    if (!part.has("content")) return part.missing("content", "an object with a type");
    // A token that ends the content cannot be part of the content's text.
    std::erase_if(ends, [&](const std::string& end) { return end.empty() || marker_of_(end).token.has_value(); });
    ZRT_TRY(const auto content, format(part.at("content"), ends));
    return Tag{std::move(begin), builder_.sequence({content, builder_.alternatives(std::move(closes))})};
  }
  Result<Symbol> tag(const TagPart& part, const Texts&) {
    ZRT_TRY(const auto one, tag_of(part));
    return builder_.sequence({builder_.marker(marker_of_(one.begin)), one.rest});
  }
  Result<std::vector<Tag>> tags_of(const TagPart& part) {
    ZRT_TRY(const auto list, part.list("tags"));
    std::vector<Tag> tags;
    for (std::size_t i = 0; i < list.value.size(); ++i) {
      ZRT_TRY(tags.emplace_back(), tag_of(list.at(i)));
    }
    return tags;
  }
  Result<Symbol> triggered_tags(const TagPart& part, const Texts& ends) {
    ZRT_CHECK_OK(part.expect({"type", "triggers", "tags", "at_least_one", "stop_after_first", "excludes"}));
    if (const auto triggers = part.list("triggers"); !triggers) return std::unexpected(triggers.error());
    ZRT_TRY(const auto tags, tags_of(part));
    ZRT_TRY(auto without, part.texts("excludes"));
    without.insert(without.end(), ends.begin(), ends.end());
    return tagged(part, tags, without);
  }
  Result<Symbol> separated_tags(const TagPart& part, const Texts&) {
    ZRT_CHECK_OK(part.expect({"type", "tags", "separator", "at_least_one", "stop_after_first"}));
    ZRT_TRY(const auto tags, tags_of(part));
    ZRT_TRY(const auto separator, part.text("separator"));
    ZRT_TRY(const bool at_least_one, part.flag("at_least_one"));
    ZRT_TRY(const bool stops, part.flag("stop_after_first"));
    std::vector<Symbol> any;
    for (const auto& one : tags) any.push_back(builder_.sequence({builder_.marker(marker_of_(one.begin)), one.rest}));
    const auto between = separator.empty() ? std::nullopt : std::optional(builder_.marker(marker_of_(separator)));
    const auto most = stops ? std::optional(1u) : std::nullopt;
    return builder_.repeat(builder_.alternatives(std::move(any)), at_least_one ? 1 : 0, most, between);
  }

  Result<Symbol> repeated(const TagPart& part, const Texts& ends, std::uint32_t least,
                          std::optional<std::uint32_t> most) {
    if (!part.has("content")) return part.missing("content", "an object with a type");
    ZRT_TRY(const auto content, format(part.at("content"), ends));
    return builder_.repeat(content, least, most);
  }
  Result<Symbol> optional(const TagPart& part, const Texts& ends) {
    ZRT_CHECK_OK(part.expect({"type", "content"}));
    return repeated(part, ends, 0, 1);
  }
  Result<Symbol> star(const TagPart& part, const Texts& ends) {
    ZRT_CHECK_OK(part.expect({"type", "content"}));
    return repeated(part, ends, 0, std::nullopt);
  }
  Result<Symbol> plus(const TagPart& part, const Texts& ends) {
    ZRT_CHECK_OK(part.expect({"type", "content"}));
    return repeated(part, ends, 1, std::nullopt);
  }
  Result<Symbol> repeat(const TagPart& part, const Texts& ends) {
    ZRT_CHECK_OK(part.expect({"type", "min", "max", "content"}));
    ZRT_TRY(const auto least, part.count("min", 0));
    ZRT_TRY(const auto most, part.count("max", -1));  // -1: unlimited
    if (most >= 0 && most < least) return part.refuse(fmt::format("min {} is above max {}", least, most));
    return repeated(part, ends, static_cast<std::uint32_t>(least),
                    most < 0 ? std::nullopt : std::optional(static_cast<std::uint32_t>(most)));
  }

  Builder& builder_;
  const MarkerOf& marker_of_;
};

}  // namespace

Result<grammar::Builder::Symbol> read_structural_tag(std::string_view text, grammar::Builder& builder,
                                                     const MarkerOf& marker_of) {
  grammar::Limits limits;
  limits.max_depth *= 2;  // schemas are nested inside the tag, so its JSON may be twice as deep
  const auto whole = grammar::read_json(text, limits);
  if (!whole) return TagPart{Json(), ""}.pass(whole.error());
  return TagReader(builder, marker_of).read({*whole, ""});
}

}  // namespace zinc_rt
