// Describes which texts may be generated, and computes which token may come next.
//
//   Grammar grammar = compile({SourceKind::kJsonSchema, text});       // once per schema; any thread
//   Matcher matcher(grammar, vocabulary);                             // once per answer
//   loop: matcher.fill(mask); token = sample(logits, mask); matcher.accept(token);
//
// A mask depends only on the grammar and the tokens accepted so far, not on time or other matchers. No token of a mask
// is a dead end: every text that the grammar allows so far can be completed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/limits.h"
#include "grammar/vocabulary.h"
#include "zinc_rt/status.h"

namespace zinc_rt::grammar {

struct CompiledGrammar;
class Parse;

// Says which white space is allowed between JSON tokens. None is allowed before or after the whole value.
struct Whitespace {
  std::uint32_t max = 8;               // most spaces, tabs and line ends in a row; 0 allows none
  std::optional<std::string> pattern;  // a regular expression that replaces `max`
};

struct Options {
  Limits limits = {};
  Whitespace whitespace = {};
  std::stop_token cancel = {};  // if a stop is requested, compiling soon ends with kCancelled
};

enum class SourceKind : std::uint8_t {
  kJsonSchema,  // `text` is the schema
  kJsonObject,  // any JSON object is allowed; `text` is unused
  kRegex,       // text is an expression that the whole answer must match (grammar/regex_parser.h)
  kChoice,      // the answer must be one of `choices`
  kGbnf,        // text is a grammar in llama.cpp's notation; its rule "root" is the start
};

struct Source {
  SourceKind kind = SourceKind::kJsonObject;
  std::string text;
  std::vector<std::string> choices;
};

// Grammar is a compiled grammar, from which Matchers are made. Copies share the rules and tables.
// Thread rule: immutable as seen from outside. The tables that matchers of one grammar fill are shared, protected by a
// lock.
class Grammar {
 public:
  // Returns how many bytes of memory the grammar holds, including the tables that matchers have filled so far.
  std::size_t n_bytes() const;
  const CompiledGrammar& compiled() const { return *compiled_; }

 private:
  friend class Builder;
  friend class Matcher;
  explicit Grammar(std::shared_ptr<CompiledGrammar> compiled) : compiled_(std::move(compiled)) {}
  std::shared_ptr<CompiledGrammar> compiled_;
};

// Compiles a source. Errors: kInvalidArgument, such as "[schema] /properties/a/not: ...", for a source that is broken,
// unsupported or allows nothing; an error with is_too_complex() beyond a limit.
Result<Grammar> compile(const Source& source, const Options& options = {});

// Marker is a fixed part of the output: a text, or one token of the vocabulary that is not text, such as <tool_call>.
struct Marker {
  std::string text;
  std::optional<std::int32_t> token;  // if this is set, `text` is unused
};

// The types of JSON values, as bits of a set. A number is either whole (kIntegerType) or not (kFractionType).
enum TypeBits : std::uint8_t {
  kNullType = 1,
  kBooleanType = 2,
  kIntegerType = 4,
  kFractionType = 8,
  kStringType = 16,
  kArrayType = 32,
  kObjectType = 64,
  kAllTypes = 127,
};

// ArgumentForm says how the arguments of a tool call, which are an object, are written.
struct ArgumentForm {
  enum class Kind : std::uint8_t {
    kJson,
    kBare,  // {name:<quote>text<quote>,other:1} without white space; names have no quotes, and texts are not escaped
    // <open>name<name_end>value<close> for each member; texts are not escaped; any other value is written as JSON.
    kTags,
    // <open>name<name_end>text<close> for a text; <open>name<json_name_end>value<close> for another value, as JSON
    kTypedTags,
    kKeywords,  // name="text", other=[1, True]: as the arguments of a call in Python
  };
  Kind kind = Kind::kJson;
  Marker quote = {};
  // Used only with kTypedTags. If the marker has a token, this token is written wherever the marker's text occurs in
  // `open` or `close`.
  Marker mark = {};
  std::string open = {}, name_end = {}, json_name_end = {}, close = {};
  // Used only with kTags. Returns the types as which the output parser may interpret the value of the member `name`. If
  // `name` is null, it stands for every member that the schema does not name. The grammar allows no text that would be
  // read as another type, and no value that would be read as a text. If text is not among the types, a value that fits
  // no type is read as a text, and blanks are read as no value.
  std::function<std::uint8_t(const std::string* name)> read_as = {};
};

// Builds a grammar out of parts, for tool calls. A Symbol identifies a part and is valid only for its builder.
class Builder {
 public:
  using Symbol = std::uint32_t;

  explicit Builder(Options options = {});
  Builder(Builder&&) noexcept;
  Builder& operator=(Builder&&) noexcept;
  ~Builder();

  Symbol text(std::string_view bytes);
  Symbol token(std::int32_t id);
  Symbol marker(const Marker& marker);
  Result<Symbol> regex(std::string_view pattern);
  Symbol choice(std::span<const std::string> texts);
  // Returns the symbol of a grammar in llama.cpp's notation, whose rule "root" is the start.
  Result<Symbol> gbnf(std::string_view text);
  // Returns the symbol of a JSON value that fits the schema, without white space before it.
  Result<Symbol> json(std::string_view schema);
  Result<Symbol> json_object();
  // Returns the symbol of an object that fits the schema, in the given notation. `part` is the fraction of the
  // remaining work that this schema may use. Errors: kInvalidArgument for a schema that allows no object and for names
  // that cannot be written.
  Result<Symbol> arguments(std::string_view schema, const ArgumentForm& form, double part = 1);
  Symbol sequence(std::vector<Symbol> parts);
  Symbol alternatives(std::vector<Symbol> parts);
  Symbol repeat(Symbol part, std::uint32_t min, std::optional<std::uint32_t> max, std::optional<Symbol> separator = {});
  Symbol optional(Symbol part) { return repeat(part, 0, 1); }
  // Returns the symbol of any bytes in which none of `without` occurs.
  Symbol free_text(std::span<const std::string> without = {});
  // Returns the symbol of any bytes up to and including the first occurrence of `end`. REQUIRES: `end` is not empty.
  Symbol text_until(const std::string& end);

  struct Tag {
    Marker begin;    // marker that opens the tag; begins with one of the triggers
    Symbol content;  // what the tag contains between `begin` and `end`
    Marker end;      // an empty text means that the tag has no end marker
  };
  struct TaggedText {
    // Texts that open a tag. After a trigger has occurred in free text, the text must continue as one of the tags. If
    // the list is empty, the `begin` markers of the tags are the triggers.
    std::vector<Marker> triggers;
    std::vector<Tag> tags;
    bool at_least_one = false;
    bool ends_after_first = false;          // whether the answer ends after the first tag
    std::vector<std::string> without = {};  // texts that must not occur in free text
  };
  // Returns the symbol of free text in which each trigger begins a tag. Free text may follow each tag.
  Result<Symbol> tagged_text(const TaggedText& tagged);

  // Returns the grammar that starts with `root`. Errors: kInvalidArgument if the grammar allows no text; those of
  // compile() beyond a limit.
  Result<Grammar> finish(Symbol root);

 private:
  friend Result<Grammar> compile(const Source& source, const Options& options);
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

// Matcher holds the state of one answer: the text so far and what may follow. A copy is independent of the original, so
// that an answer can be forked.
// Thread rule: one thread at a time; matchers of one grammar may be used on several threads and wait for each other.
class Matcher {
 public:
  Matcher(Grammar grammar, std::shared_ptr<const Vocabulary> vocabulary);
  Matcher(const Matcher&);
  Matcher(Matcher&&) noexcept;
  Matcher& operator=(const Matcher&);
  Matcher& operator=(Matcher&&) noexcept;
  ~Matcher();

  // Accepts the next token. Returns false, and changes nothing, if the token is not allowed here. An end token is
  // allowed if is_complete() is true, and nothing may follow it. Errors: too complex beyond a limit; after that the
  // matcher always fails.
  Result<bool> accept(std::int32_t token);
  // Accepts text that was not generated as tokens, such as a given beginning of the answer.
  Result<bool> accept_text(std::string_view bytes);

  // Writes the mask of allowed tokens: sets bit id % 32 of word id / 32 for each allowed token and clears all others.
  // REQUIRES: `mask` has vocabulary.n_mask_words() words.
  Status fill(std::span<std::uint32_t> mask);

  // Returns whether the answer may end here, so that an end token is allowed.
  bool is_complete() const;
  // Returns whether an end token was accepted.
  bool is_ended() const;

  // Returns up to `most` tokens that are likely to come next, because the grammar allows little else. A token is
  // returned if all other allowed tokens are beginnings of its text. The list ends before an end token. The matcher's
  // state does not change.
  Result<std::vector<std::int32_t>> forced(std::size_t most);

  // Returns the bytes of this matcher only. Shared tables are counted by Grammar::n_bytes().
  std::size_t n_bytes() const;
  const Vocabulary& vocabulary() const { return *vocabulary_; }

 private:
  Grammar grammar_;
  std::shared_ptr<const Vocabulary> vocabulary_;
  std::unique_ptr<Parse> parse_;
};

// Checks that a schema fulfills what OpenAI's strict mode requires: the root is an object; every object lists all its
// properties as required and has additionalProperties false; at most 5,000 properties, 10 levels, 1,000 enum values,
// and 120,000 characters of names and values. Errors: kInvalidArgument with the JSON pointer.
Status check_strict(std::string_view schema);

}  // namespace zinc_rt::grammar
