#include "model/mlc/tokenizer_import.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/error.h"
#include "model/gguf/values.h"
#include "model/mlc/json.h"
#include "model/mlc/pre_names.h"
#include "model/mlc/spm_merges.h"
#include "model/mlc/token_types.h"

namespace zinc_rt::mlc {
namespace {

// At most this many embedding rows may follow the last token. Models round the number of rows up to multiples of some
// hundred.
constexpr std::uint64_t kMaxPadding = 1U << 16;

bool is_byte_token(std::string_view text) {
  constexpr std::string_view kHex = "0123456789ABCDEFabcdef";
  return text.size() == 6 && text.starts_with("<0x") && text[5] == '>' && kHex.contains(text[3]) &&
         kHex.contains(text[4]);
}

class Import {
 public:
  Import(Fields tokenizer, Fields model, Fields config, const ChatConfig& chat)
      : root_(std::move(tokenizer)), model_(std::move(model)), config_(std::move(config)), chat_(chat) {}

  Status run(gguf::Metadata& out) {
    ZRT_TRY(const std::string type, model_.string("type"));
    if (type != "BPE")
      return fail(StatusCode::kUnavailable, "[mlc] {}: needs \"BPE\", {} there", model_.at("type"), gguf::quoted(type));
    ZRT_CHECK_OK(read_tokens());
    ZRT_CHECK_OK(read_added());
    ZRT_CHECK_OK(pad());
    ZRT_TRY(const bool bytes_as_tokens, model_.flag_or("byte_fallback", false));
    if (bytes_as_tokens) {
      ZRT_CHECK_OK(add_marked(out));
    } else {
      ZRT_CHECK_OK(add_byte_level(out));
    }
    ZRT_CHECK_OK(add_roles(out));
    return add_template(out);
  }

 private:
  Status put(std::uint64_t id, std::string_view text, const std::string& where) {
    if (id >= chat_.vocab_size)
      return fail(StatusCode::kCorrupt, "[mlc] {}: token {} has the id {}, the model has {} rows", where,
                  gguf::quoted(text), id, chat_.vocab_size);
    if (id >= tokens_.size()) {
      tokens_.resize(id + 1);
      there_.resize(id + 1);
    }
    if (there_[id] != 0 && tokens_[id] != text)
      return fail(StatusCode::kCorrupt, "[mlc] {}: id {} is {} and {}", where, id, gguf::quoted(tokens_[id]),
                  gguf::quoted(text));
    const auto [it, is_new] = ids_.try_emplace(std::string(text), id);
    if (!is_new && it->second != id)
      return fail(StatusCode::kCorrupt, "[mlc] {}: token {} has the ids {} and {}", where, gguf::quoted(text),
                  it->second, id);
    tokens_[id] = text;
    there_[id] = 1;
    return {};
  }

  Status read_tokens() {
    ZRT_TRY(const Fields vocab, model_.object("vocab"));
    const Json& object = *model_.find("vocab");
    // Ids are limited because one very large id would cost memory for all ids below it.
    const std::uint64_t most = std::min<std::uint64_t>(chat_.vocab_size, object.size() + kMaxPadding);
    for (const auto& [text, id] : object.items()) {
      if (!id.is_number_unsigned() || id.get<std::uint64_t>() >= most)
        return fail(StatusCode::kCorrupt, "[mlc] {}: token {} needs an id below {}, {} there", vocab.place(),
                    gguf::quoted(text), most, describe(id));
      ZRT_CHECK_OK(put(id.get<std::uint64_t>(), text, vocab.place()));
    }
    n_model_tokens_ = tokens_.size();
    return {};
  }

  Status read_added() {
    types_.assign(tokens_.size(), kNormal);
    if (!root_.contains("added_tokens")) return {};
    ZRT_TRY(const Json* added, root_.array("added_tokens"));
    for (std::size_t i = 0; i < added->size(); ++i) {
      ZRT_TRY(const Fields token, Fields::of((*added)[i], fmt::format("{}[{}]", root_.at("added_tokens"), i)));
      ZRT_TRY(const std::string text, token.string("content"));
      ZRT_TRY(const std::uint64_t id, token.count("id", 0, std::max<std::uint64_t>(tokens_.size(), 1) + kMaxPadding));
      ZRT_CHECK_OK(put(id, text, token.place()));
      ZRT_TRY(const bool special, token.flag_or("special", false));
      types_.resize(tokens_.size(), kUnused);
      types_[id] = special ? kControl : kUserDefined;
    }
    return {};
  }

  // Adds tokens with made-up names until each row of the model's embedding matrix has a token.
  Status pad() {
    if (chat_.vocab_size > tokens_.size() + kMaxPadding)
      return fail(StatusCode::kCorrupt, "[mlc] {}: {} tokens, the model has {} rows", root_.place(), tokens_.size(),
                  chat_.vocab_size);
    tokens_.resize(chat_.vocab_size);
    there_.resize(chat_.vocab_size);
    types_.resize(chat_.vocab_size, kUnused);
    for (std::size_t id = 0; id < tokens_.size(); ++id) {
      if (there_[id] != 0) continue;
      tokens_[id] = fmt::format("[PAD{}]", id);
      types_[id] = kUnused;
    }
    return {};
  }

  // Returns the merges as pairs of texts. Each is a string "left right", or an array ["left", "right"] in newer files.
  Result<std::vector<std::pair<std::string, std::string>>> read_merges() const {
    ZRT_TRY(const Json* merges, model_.array("merges"));
    std::vector<std::pair<std::string, std::string>> out;
    out.reserve(merges->size());
    for (std::size_t i = 0; i < merges->size(); ++i) {
      const Json& merge = (*merges)[i];
      std::pair<std::string, std::string> pair;
      if (merge.is_string()) {
        const auto& text = merge.get_ref<const std::string&>();
        const std::size_t space = text.find(' ');
        if (space != std::string::npos) pair = {text.substr(0, space), text.substr(space + 1)};
      } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
        pair = {merge[0].get<std::string>(), merge[1].get<std::string>()};
      }
      if (pair.first.empty() || pair.second.empty() || pair.first.contains(' ') || pair.second.contains(' '))
        return fail(StatusCode::kCorrupt, "[mlc] {}[{}]: needs two texts, {} there", model_.at("merges"), i,
                    describe(merge));
      out.push_back(std::move(pair));
    }
    return out;
  }

  std::optional<std::uint64_t> find(std::string_view text) const {
    const auto it = ids_.find(std::string(text));
    return it == ids_.end() ? std::nullopt : std::optional(it->second);
  }

  // Adds the effect of one step of a normalizer or pre-tokenizer to `prefix` and `marked`. Refuses every step that does
  // more than replace spaces by U+2581.
  static Status read_mark_step(const Json& value, const std::string& place, bool& prefix, bool& marked) {
    ZRT_TRY(const Fields step, Fields::of(value, place));
    ZRT_TRY(const std::string type, step.string("type"));
    bool known = false;
    if (type == "Sequence") {
      ZRT_TRY(const Json* inner, step.array(step.contains("normalizers") ? "normalizers" : "pretokenizers"));
      for (const Json& one : *inner) ZRT_CHECK_OK(read_mark_step(one, place, prefix, marked));
      return {};
    }
    if (type == "Prepend") {
      ZRT_TRY(const std::string text, step.string("prepend"));
      known = prefix = text == kSpaceMark;
    } else if (type == "Replace") {
      ZRT_TRY(const Fields pattern, step.object("pattern"));
      ZRT_TRY(const std::string from, pattern.string_or("String", ""));
      ZRT_TRY(const std::string to, step.string("content"));
      known = marked = from == " " && to == kSpaceMark;
    } else if (type == "Metaspace") {
      ZRT_TRY(const std::string mark, step.string_or("replacement", kSpaceMark));
      ZRT_TRY(const bool old_prefix, step.flag_or("add_prefix_space", true));
      ZRT_TRY(const std::string scheme, step.string_or("prepend_scheme", old_prefix ? "always" : "never"));
      known = marked = mark == kSpaceMark && (scheme == "always" || scheme == "first" || scheme == "never");
      prefix = scheme != "never";
    }
    if (known) return {};
    return fail(StatusCode::kUnavailable, "[mlc] {}: the step {} is not supported: {}", place, gguf::quoted(type),
                gguf::quoted(value.dump(-1, ' ', true)));
  }

  // Returns whether U+2581 is put before each text. Errors: kUnavailable if no step replaces spaces by U+2581.
  Result<bool> read_space_mark() const {
    bool prefix = false, marked = false;
    for (const char* key : {"normalizer", "pre_tokenizer"})
      if (const Json* steps = root_.find(key)) ZRT_CHECK_OK(read_mark_step(*steps, root_.at(key), prefix, marked));
    if (!marked)
      return fail(StatusCode::kUnavailable, "[mlc] {}: needs a step that writes spaces as U+2581, none there",
                  root_.at("normalizer"));
    return prefix;
  }

  Status add_marked(gguf::Metadata& out) {
    for (std::size_t id = 0; id < n_model_tokens_; ++id)
      if (types_[id] == kNormal && is_byte_token(tokens_[id])) types_[id] = kByte;
    ZRT_TRY(const std::string unknown, model_.string_or("unk_token", ""));
    if (const auto id = find(unknown); !unknown.empty() && id) types_[*id] = kUnknown;
    ZRT_TRY(const bool prefix, read_space_mark());
    std::vector<std::uint8_t> mergeable;
    for (const std::int64_t type : types_) mergeable.push_back(type == kNormal || type == kUserDefined ? 1 : 0);
    ZRT_TRY(const auto texts, read_merges());
    std::vector<MergePair> merges;
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const auto& [left, right] = texts[i];
      const auto l = find(left), r = find(right);
      if (!l || !r)
        return fail(StatusCode::kCorrupt, "[mlc] {}[{}]: {} is no token", model_.at("merges"), i,
                    gguf::quoted(l ? right : left));
      // Special tokens are cut out of a text before anything is joined. So merges that would produce special tokens,
      // which converters write, never happen and are skipped.
      const auto joined = find(left + right);
      if (joined && mergeable[*joined] == 0) continue;
      merges.push_back({static_cast<std::uint32_t>(*l), static_cast<std::uint32_t>(*r)});
    }
    ZRT_TRY(const auto scores, scores_of_merges({tokens_, mergeable}, merges));
    ZRT_CHECK_OK(out.add("tokenizer.ggml.model", gguf::string("llama")));
    ZRT_CHECK_OK(out.add("tokenizer.ggml.pre", gguf::string("default")));
    ZRT_CHECK_OK(out.add("tokenizer.ggml.tokens", gguf::strings(tokens_)));
    ZRT_CHECK_OK(out.add("tokenizer.ggml.scores", gguf::f32s({scores.begin(), scores.end()})));
    ZRT_CHECK_OK(out.add("tokenizer.ggml.token_type", gguf::i32s(types_)));
    return out.add("tokenizer.ggml.add_space_prefix", gguf::boolean(prefix));
  }

  Status add_byte_level(gguf::Metadata& out) {
    if (const Json* normalizer = root_.find("normalizer"))
      return fail(StatusCode::kUnavailable, "[mlc] {}: needs none for byte-level BPE, {} there", root_.at("normalizer"),
                  gguf::quoted(normalizer->dump(-1, ' ', true)));
    ZRT_TRY(const PreRow* pre, pre_of_json(root_.find("pre_tokenizer"), root_.place()));
    ZRT_TRY(const auto texts, read_merges());
    std::vector<std::string> merges;
    merges.reserve(texts.size());
    for (const auto& [left, right] : texts) merges.push_back(fmt::format("{} {}", left, right));
    ZRT_CHECK_OK(out.add("tokenizer.ggml.model", gguf::string("gpt2")));
    ZRT_CHECK_OK(out.add("tokenizer.ggml.pre", gguf::string(std::string(pre->name))));
    ZRT_CHECK_OK(out.add("tokenizer.ggml.tokens", gguf::strings(tokens_)));
    ZRT_CHECK_OK(out.add("tokenizer.ggml.token_type", gguf::i32s(types_)));
    return out.add("tokenizer.ggml.merges", gguf::strings(std::move(merges)));
  }

  // Returns the id of a special token that tokenizer_config.json names, such as "bos_token". The value is the token's
  // text, or an object with the text in "content".
  Result<std::optional<std::uint64_t>> role(std::string_view key) const {
    const Json* value = config_.find(key);
    if (value == nullptr) return std::nullopt;
    std::string text;
    if (value->is_object()) {
      ZRT_TRY(const Fields token, config_.object(key));
      ZRT_TRY(text, token.string("content"));
    } else {
      ZRT_TRY(text, config_.string(key));
    }
    const auto id = find(text);
    if (!id) return fail(StatusCode::kCorrupt, "[mlc] {}: {} is no token", config_.at(key), gguf::quoted(text));
    return id;
  }

  // Returns whether the post-processor puts the token with this text before every text, as it does with BOS.
  static bool begins_with(const Json& processor, const std::string& text) {
    if (!processor.is_object()) return false;
    const auto member = [](const Json& object, const char* key) -> const Json* {
      const auto it = object.find(key);
      return it == object.end() ? nullptr : &*it;
    };
    if (const Json* inner = member(processor, "processors"); inner != nullptr && inner->is_array())
      return std::ranges::any_of(*inner, [&](const Json& one) { return begins_with(one, text); });
    const Json* single = member(processor, "single");
    if (single == nullptr || !single->is_array() || single->empty() || !single->front().is_object()) return false;
    const Json* special = member(single->front(), "SpecialToken");
    if (special == nullptr || !special->is_object()) return false;
    const Json* id = member(*special, "id");
    return id != nullptr && id->is_string() && id->get_ref<const std::string&>() == text;
  }
  bool template_begins_with(std::uint64_t id) const {
    const Json* processor = root_.find("post_processor");
    return processor != nullptr && begins_with(*processor, tokens_[id]);
  }

  Status check_id(std::uint64_t id, std::string_view what) const {
    if (id < tokens_.size()) return {};
    return fail(StatusCode::kCorrupt, "[mlc] {}: {}_token_id {}, the model has {} rows", root_.place(), what, id,
                tokens_.size());
  }

  Status add_roles(gguf::Metadata& out) const {
    ZRT_TRY(auto bos, role("bos_token"));
    ZRT_TRY(auto eos, role("eos_token"));
    ZRT_TRY(const auto unknown, role("unk_token"));
    ZRT_TRY(const auto padding, role("pad_token"));
    if (!bos && !config_.contains("eos_token")) bos = chat_.bos_id;  // the folder has no tokenizer_config.json
    if (bos) ZRT_CHECK_OK(check_id(*bos, "bos"));
    for (const std::uint64_t id : chat_.eos_ids) ZRT_CHECK_OK(check_id(id, "eos"));
    if (!eos && !chat_.eos_ids.empty()) eos = chat_.eos_ids[0];
    const auto add_id = [&](const char* name, std::optional<std::uint64_t> id) -> Status {
      return id ? out.add(fmt::format("tokenizer.ggml.{}_token_id", name), gguf::u32(*id)) : Status{};
    };
    ZRT_CHECK_OK(add_id("bos", bos));
    ZRT_CHECK_OK(add_id("eos", eos));
    // If the folder names exactly one end token besides EOS, this token ends a message of the chat (end of turn). If
    // the folder names several, the tokenizer finds the end-of-turn token by its name. All of them end a generation.
    const auto is_other = [&](std::uint64_t id) { return id != eos; };
    if (std::ranges::count_if(chat_.eos_ids, is_other) == 1)
      ZRT_CHECK_OK(add_id("eot", *std::ranges::find_if(chat_.eos_ids, is_other)));
    if (chat_.eos_ids.size() > 1)
      ZRT_CHECK_OK(out.add("tokenizer.ggml.eos_token_ids", gguf::i32s({chat_.eos_ids.begin(), chat_.eos_ids.end()})));
    ZRT_CHECK_OK(add_id("unknown", unknown));
    ZRT_CHECK_OK(add_id("padding", padding));
    ZRT_TRY(const bool add_bos, config_.flag_or("add_bos_token", bos && template_begins_with(*bos)));
    ZRT_TRY(const bool add_eos, config_.flag_or("add_eos_token", false));
    ZRT_CHECK_OK(out.add("tokenizer.ggml.add_bos_token", gguf::boolean(add_bos && bos)));
    return out.add("tokenizer.ggml.add_eos_token", gguf::boolean(add_eos && eos));
  }

  // Adds the chat template. The value is one text, or a list of named templates in which the main template is called
  // "default".
  Status add_template(gguf::Metadata& out) const {
    const Json* value = config_.find("chat_template");
    if (value == nullptr) return {};
    std::string text;
    if (value->is_array()) {
      for (const Json& entry : *value) {
        ZRT_TRY(const Fields named, Fields::of(entry, config_.at("chat_template")));
        ZRT_TRY(const std::string name, named.string("name"));
        ZRT_TRY(std::string one, named.string("template"));
        if (name == "default")
          text = std::move(one);
        else
          ZRT_CHECK_OK(out.add("tokenizer.chat_template." + name, gguf::string(std::move(one))));
      }
    } else {
      ZRT_TRY(text, config_.string("chat_template"));
    }
    return text.empty() ? Status{} : out.add("tokenizer.chat_template", gguf::string(std::move(text)));
  }

  Fields root_, model_, config_;
  const ChatConfig& chat_;
  std::vector<std::string> tokens_;
  std::vector<std::uint8_t> there_;
  std::vector<std::int64_t> types_;
  std::unordered_map<std::string, std::uint64_t> ids_;
  std::size_t n_model_tokens_ = 0;
};

}  // namespace

Status add_tokenizer(const TokenizerFiles& files, const ChatConfig& config, gguf::Metadata& out) {
  const std::string place = files.folder + "/tokenizer.json";
  const std::string config_place = files.folder + "/tokenizer_config.json";
  ZRT_TRY(const Json document, parse_json(files.tokenizer, place));
  ZRT_TRY(const Json config_document, parse_json(files.config.empty() ? "{}" : files.config, config_place));
  ZRT_TRY(Fields root, Fields::of(document, place));
  ZRT_TRY(Fields model, root.object("model"));
  ZRT_TRY(Fields config_fields, Fields::of(config_document, config_place));
  return Import(std::move(root), std::move(model), std::move(config_fields), config).run(out);
}

}  // namespace zinc_rt::mlc
