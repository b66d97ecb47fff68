#include "grammar/builder.h"

#include <algorithm>
#include <utility>

#include "grammar/gbnf.h"
#include "grammar/json_reader.h"
#include "grammar/regex_parser.h"
#include "grammar/schema.h"

namespace zinc_rt::grammar {

Result<JsonLexemes*> Builder::Parts::json() {
  if (json_lexemes) return &*json_lexemes;
  RegexArena& arena = rules.arena;
  ByteSet blanks;
  for (const char byte : {' ', '\t', '\n', '\r'}) blanks.add(static_cast<std::uint8_t>(byte));
  const std::uint32_t max = options.whitespace.max;
  if (max > options.limits.max_repeat) return too_complex("repeats of white space", max, options.limits.max_repeat);
  Regex space = arena.repeat(arena.bytes(blanks), 0, max);
  if (options.whitespace.pattern) {
    ZRT_TRY(const Regex wanted,
            parse_regex(arena, *options.whitespace.pattern, Spelling::kPlain, Anchoring::kWhole, options.limits));
    // The pattern may allow other text than white space, which would not be valid JSON, so that text is excluded.
    space = arena.all_of({wanted, arena.repeat(arena.bytes(blanks), 0, RegexArena::kUnbounded)});
  }
  json_lexemes.emplace(arena, space);
  return &*json_lexemes;
}

Regex Builder::Parts::free_text(std::span<const std::string> without) {
  RegexArena& arena = rules.arena;
  if (without.empty()) return RegexArena::kAll;
  const Regex any = arena.any_literal({without.begin(), without.end()});
  return arena.complement(arena.concat({RegexArena::kAll, any, RegexArena::kAll}));
}

Regex Builder::Parts::text_up_to(std::string_view end, std::span<const std::string> without) {
  RegexArena& arena = rules.arena;
  const Regex any = arena.any_literal({without.begin(), without.end()});
  const Regex more = arena.concat(arena.bytes(~ByteSet()), RegexArena::kAll);
  return arena.all_of({arena.concat(RegexArena::kAll, arena.literal(end)),
                       arena.complement(arena.concat({RegexArena::kAll, any, more}))});
}

Builder::Builder(Options options) : parts_(std::make_unique<Parts>(std::move(options))) {}
Builder::Builder(Builder&&) noexcept = default;
Builder& Builder::operator=(Builder&&) noexcept = default;
Builder::~Builder() = default;

Builder::Symbol Builder::text(std::string_view bytes) {
  return parts_->rules.terminal(parts_->rules.arena.literal(bytes));
}

Builder::Symbol Builder::token(std::int32_t id) {
  return parts_->rules.token(id);
}

Builder::Symbol Builder::marker(const Marker& marker) {
  return marker.token ? token(*marker.token) : text(marker.text);
}

Result<Builder::Symbol> Builder::regex(std::string_view pattern) {
  ZRT_TRY(const Regex made,
          parse_regex(parts_->rules.arena, pattern, Spelling::kPlain, Anchoring::kWhole, parts_->options.limits));
  return parts_->rules.terminal(made);
}

Builder::Symbol Builder::choice(std::span<const std::string> texts) {
  return parts_->rules.terminal(parts_->rules.arena.any_literal({texts.begin(), texts.end()}));
}

Result<Builder::Symbol> Builder::gbnf(std::string_view text) {
  return read_gbnf(text, parts_->rules, parts_->options.limits, parts_->work.fuel);
}

Result<Builder::Symbol> Builder::json(std::string_view schema) {
  ZRT_TRY(const Json root, read_json(schema, parts_->options.limits));
  ZRT_TRY(JsonLexemes * lexemes, parts_->json());
  return SchemaCompiler(root, parts_->rules, *lexemes, parts_->options.limits, parts_->work).run();
}

Result<Builder::Symbol> Builder::json_object() {
  return json(R"({"type": "object"})");
}

Result<Builder::Symbol> Builder::arguments(std::string_view schema, const ArgumentForm& form, double part) {
  ZRT_TRY(const Json root, read_json(schema, parts_->options.limits));
  const std::uint64_t limit = parts_->work.fuel.narrow(part);
  auto made = parts_->arguments(root, form);
  parts_->work.fuel.widen(limit);
  return made;
}

Result<Symbol> Builder::Parts::arguments(const Json& root, const ArgumentForm& form) {
  const Limits& limits = options.limits;
  RegexArena& arena = rules.arena;
  switch (form.kind) {
    case ArgumentForm::Kind::kJson: {
      ZRT_TRY(JsonLexemes * lexemes, json());
      return SchemaCompiler(root, rules, *lexemes, limits, work).run_object();
    }
    case ArgumentForm::Kind::kBare: {
      JsonLexemes lexemes(arena, RegexArena::kEpsilon,
                          {.spelling = Spelling::kPlain,
                           .quote = form.quote.text,
                           .quote_token = form.quote.token,
                           .has_quoted_names = false,
                           .not_in_texts = form.quote.text,
                           .not_in_names = " \"',:<>[]{|}"});
      return SchemaCompiler(root, rules, lexemes, limits, work).run_object();
    }
    case ArgumentForm::Kind::kKeywords: {
      ZRT_TRY(JsonLexemes * lexemes, json());
      JsonLexemes values(arena, lexemes->whitespace, {.has_python_words = true});
      JsonLexemes names(arena, RegexArena::kEpsilon,
                        {.spelling = Spelling::kPlain, .has_quoted_names = false, .not_in_names = " \"'(),<=>[\\]{}"});
      SchemaCompiler inner(root, rules, values, limits, work);
      return SchemaCompiler(root, rules, names, limits, work).run_keywords(inner);
    }
    case ArgumentForm::Kind::kTags:
    case ArgumentForm::Kind::kTypedTags: {
      ZRT_TRY(JsonLexemes * lexemes, json());
      // The parser of tags removes one line feed at each end of a value, and then searches for the rest of the closing
      // tag. The parser of typed tags searches for the whole tag, which does not begin with a line feed. So a text must
      // not contain the closing tag without its leading line feeds.
      const auto closing = form.close.substr(std::min(form.close.find_first_not_of('\n'), form.close.size()));
      JsonLexemes plain(arena, RegexArena::kEpsilon,
                        {.spelling = Spelling::kPlain,
                         .has_quoted_names = false,
                         .not_in_texts = closing.substr(0, closing.find_last_not_of('\n') + 1),
                         .not_in_names = "\"<>"});
      SchemaCompiler inner(root, rules, *lexemes, limits, work);
      SchemaCompiler outer(root, rules, plain, limits, work);
      return form.kind == ArgumentForm::Kind::kTags ? outer.run_tags(form, inner) : outer.run_typed_tags(form, inner);
    }
  }
  return fail(StatusCode::kInternal, "[grammar] a form of arguments that is none");
}

Builder::Symbol Builder::sequence(std::vector<Symbol> parts) {
  return parts_->rules.sequence(std::move(parts));
}

Builder::Symbol Builder::alternatives(std::vector<Symbol> parts) {
  return parts_->rules.alternatives(parts);
}

Builder::Symbol Builder::repeat(Symbol part, std::uint32_t min, std::optional<std::uint32_t> max,
                                std::optional<Symbol> separator) {
  return parts_->rules.repeat(part, min, max.value_or(RegexArena::kUnbounded), separator.value_or(kNoSymbol));
}

Builder::Symbol Builder::free_text(std::span<const std::string> without) {
  return parts_->rules.terminal(parts_->free_text(without));
}

Builder::Symbol Builder::text_until(const std::string& end) {
  return parts_->rules.terminal(parts_->text_up_to(end, {&end, 1}));
}

Result<Builder::Symbol> Builder::tagged_text(const TaggedText& tagged) {
  std::vector<Marker> triggers = tagged.triggers;
  if (triggers.empty()) {
    parts_->work.fuel.use(tagged.tags.size() * tagged.tags.size() / 16);
    ZRT_CHECK_OK(parts_->work.fuel.check("work on tags"));
    for (const Tag& tag : tagged.tags) {
      const auto is_same = [&](const Marker& one) {
        return one.token == tag.begin.token && one.text == tag.begin.text;
      };
      if (std::ranges::none_of(triggers, is_same)) triggers.push_back(tag.begin);
    }
  }
  std::vector<std::string> texts;
  for (const Marker& trigger : triggers) {
    if (trigger.token) continue;
    if (trigger.text.empty()) return fail(StatusCode::kInvalidArgument, "[tags] a trigger is an empty text");
    texts.push_back(trigger.text);
  }
  std::vector<std::string> not_in_text = texts;
  not_in_text.insert(not_in_text.end(), tagged.without.begin(), tagged.without.end());
  // Each trigger is compared with all tags and with all texts that must not occur, so that work is counted.
  std::size_t n_bytes = 0;
  for (const auto& text : not_in_text) n_bytes += text.size();
  parts_->work.fuel.use(triggers.size() * (1 + tagged.tags.size() + n_bytes / 4));
  ZRT_CHECK_OK(parts_->work.fuel.check("work on tags"));
  std::vector<bool> is_placed(tagged.tags.size(), false);
  std::vector<Symbol> openings;
  for (const Marker& trigger : triggers) {
    std::vector<Symbol> tags;
    for (std::size_t i = 0; i < tagged.tags.size(); ++i) {
      const Tag& tag = tagged.tags[i];
      const bool fits = trigger.token ? tag.begin.token == trigger.token
                                      : !tag.begin.token && tag.begin.text.starts_with(trigger.text);
      if (!fits) continue;
      is_placed[i] = true;
      const std::string rest = trigger.token ? "" : tag.begin.text.substr(trigger.text.size());
      tags.push_back(sequence({text(rest), tag.content, marker(tag.end)}));
    }
    if (tags.empty())
      return fail(StatusCode::kInvalidArgument, "[tags] no tag begins with the trigger \"{}\"", trigger.text);
    if (trigger.token) {
      openings.push_back(sequence({free_text(not_in_text), token(*trigger.token), alternatives(std::move(tags))}));
    } else {
      Regex up_to = parts_->text_up_to(trigger.text, texts);
      if (!tagged.without.empty()) up_to = parts_->rules.arena.all_of({up_to, parts_->free_text(tagged.without)});
      openings.push_back(sequence({parts_->rules.terminal(up_to), alternatives(std::move(tags))}));
    }
  }
  for (std::size_t i = 0; i < is_placed.size(); ++i)
    if (!is_placed[i])
      return fail(StatusCode::kInvalidArgument, "[tags] tag {} begins with no trigger: \"{}\"", i,
                  tagged.tags[i].begin.text);
  const Symbol tail = free_text(not_in_text);
  if (openings.empty()) return tail;
  const Symbol tag = alternatives(std::move(openings));
  if (!tagged.ends_after_first) return sequence({repeat(tag, tagged.at_least_one ? 1 : 0, std::nullopt), tail});
  return tagged.at_least_one ? tag : alternatives({tag, tail});
}

Result<Grammar> Builder::finish(Symbol root) {
  ZRT_TRY(const bool can_end, parts_->rules.finish(root, parts_->work));
  if (!can_end) return fail(StatusCode::kInvalidArgument, "[grammar] no text at all fits");
  return Grammar(std::exchange(parts_, nullptr)->compiled);
}

Result<Grammar> compile(const Source& source, const Options& options) {
  Builder builder(options);
  Result<Builder::Symbol> root = kNoSymbol;
  switch (source.kind) {
    case SourceKind::kJsonSchema: root = builder.json(source.text); break;
    case SourceKind::kJsonObject: root = builder.json_object(); break;
    case SourceKind::kRegex: root = builder.regex(source.text); break;
    case SourceKind::kChoice: {
      std::size_t n_bytes = 0;
      for (const std::string& text : source.choices) n_bytes += text.size();
      if (n_bytes > options.limits.max_source_bytes)
        return too_complex("bytes of choices", n_bytes, options.limits.max_source_bytes);
      root = builder.choice(source.choices);
      break;
    }
    case SourceKind::kGbnf: root = builder.gbnf(source.text); break;
  }
  if (!root) return std::unexpected(root.error());
  return builder.finish(*root);
}

}  // namespace zinc_rt::grammar
