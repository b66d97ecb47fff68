#include "model/mlc/tokenizer_export.h"

#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "base/utf8.h"
#include "model/mlc/json.h"
#include "model/mlc/pre_names.h"
#include "model/mlc/spm_merges.h"
#include "model/mlc/token_types.h"

namespace zinc_rt::mlc {
namespace {

class Export {
 public:
  explicit Export(const gguf::Metadata& metadata) : metadata_(metadata) {}

  Result<TokenizerTexts> run() {
    ZRT_CHECK_OK(read_tokens());
    ZRT_TRY(const std::string_view model, metadata_.get_string("tokenizer.ggml.model"));
    Json root{{"version", "1.0"}, {"truncation", nullptr}, {"padding", nullptr}, {"normalizer", nullptr}};
    root["added_tokens"] = added_tokens();
    root["model"] = {{"type", "BPE"},
                     {"dropout", nullptr},
                     {"unk_token", nullptr},
                     {"continuing_subword_prefix", nullptr},
                     {"end_of_word_suffix", nullptr},
                     {"fuse_unk", false},
                     {"byte_fallback", false},
                     {"ignore_merges", false}};
    root["model"]["vocab"] = vocab();
    bool bos_by_default = true;
    if (model == "llama") {
      ZRT_CHECK_OK(write_marked(root));
    } else if (model == "gpt2") {
      ZRT_TRY(bos_by_default, write_byte_level(root));
    } else {
      return fail(StatusCode::kUnavailable,
                  "[mlc] tokenizer.ggml.model {} has no form in tokenizer.json here; llama and gpt2 have",
                  gguf::quoted(model));
    }
    ZRT_CHECK_OK(write_config(bos_by_default));
    root["post_processor"] = post_processor();
    out_.tokenizer = root.dump();
    return std::move(out_);
  }

 private:
  Status read_tokens() {
    ZRT_TRY(tokens_, metadata_.get_strings("tokenizer.ggml.tokens"));
    types_.assign(tokens_.size(), kNormal);
    if (metadata_.contains("tokenizer.ggml.token_type")) {
      ZRT_TRY(types_, metadata_.get_ints("tokenizer.ggml.token_type"));
    }
    if (types_.size() != tokens_.size())
      return fail(StatusCode::kCorrupt, "[mlc] tokenizer.ggml.token_type: {} entries needed (one a token), {} there",
                  tokens_.size(), types_.size());
    // tokenizer.json does not list the padding rows at the end, which no token uses. When the folder is imported, the
    // rows get the same names again.
    n_ = tokens_.size();
    while (n_ > 0 && (types_[n_ - 1] == kUnused || types_[n_ - 1] == kUnknown) &&
           tokens_[n_ - 1] == fmt::format("[PAD{}]", n_ - 1))
      --n_;
    out_.n_tokens = n_;
    std::unordered_map<std::string_view, std::size_t> seen;
    for (std::size_t id = 0; id < n_; ++id) {
      if (!is_utf8(tokens_[id]))
        return fail(StatusCode::kUnavailable, "[mlc] token {}: {} is not UTF-8, which tokenizer.json needs", id,
                    gguf::quoted(tokens_[id]));
      const auto [it, is_new] = seen.emplace(tokens_[id], id);
      if (!is_new)
        return fail(StatusCode::kUnavailable, "[mlc] tokens {} and {} are both {}; tokenizer.json can hold one",
                    it->second, id, gguf::quoted(tokens_[id]));
    }
    return {};
  }

  bool is_special(std::size_t id) const { return types_[id] == kControl || types_[id] == kUnknown; }

  // Returns whether a special token also removes the spaces that follow it ("rstrip"). Phi-3's own files set this for
  // all special tokens but three, and our tokenizer does the same for this family.
  bool swallows_space(std::size_t id) const {
    const auto architecture = metadata_.get_string_or("general.architecture", "");
    const std::string& text = tokens_[id];
    return architecture && *architecture == "phi3" && text != "<unk>" && text != "<s>" && text != "<|endoftext|>";
  }

  Json added_tokens() const {
    Json out = Json::array();
    for (std::size_t id = 0; id < n_; ++id) {
      if (!is_special(id) && types_[id] != kUserDefined) continue;
      out.push_back({{"id", id},
                     {"content", tokens_[id]},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", swallows_space(id)},
                     {"normalized", false},
                     {"special", is_special(id)}});
    }
    return out;
  }

  Json vocab() const {
    Json out = Json::object();
    for (std::size_t id = 0; id < n_; ++id) out[tokens_[id]] = id;
    return out;
  }

  Result<std::optional<std::uint64_t>> role(std::string_view name) const {
    const std::string key = fmt::format("tokenizer.ggml.{}_token_id", name);
    ZRT_TRY(const std::int64_t id, metadata_.get_int_or(key, -1));
    if (id == -1 || id == 0xFFFFFFFF) return std::nullopt;
    if (id < 0 || static_cast<std::uint64_t>(id) >= n_)
      return fail(StatusCode::kCorrupt, "[mlc] {}: needs an id below {}, {} there", key, n_, id);
    return static_cast<std::uint64_t>(id);
  }

  Status write_marked(Json& root) {
    ZRT_TRY(const bool collapse, metadata_.get_bool_or("tokenizer.ggml.remove_extra_whitespaces", false));
    if (collapse)
      return fail(StatusCode::kUnavailable,
                  "[mlc] tokenizer.ggml.remove_extra_whitespaces has no form in tokenizer.json here");
    ZRT_TRY(out_.space_prefix, metadata_.get_bool_or("tokenizer.ggml.add_space_prefix", true));
    ZRT_TRY(const auto scores, metadata_.get_floats("tokenizer.ggml.scores"));
    if (scores.size() != tokens_.size())
      return fail(StatusCode::kCorrupt, "[mlc] tokenizer.ggml.scores: {} entries needed (one a token), {} there",
                  tokens_.size(), scores.size());
    std::vector<std::uint8_t> mergeable;
    for (std::size_t id = 0; id < n_; ++id)
      mergeable.push_back(types_[id] == kNormal || types_[id] == kUserDefined || types_[id] == kUndefined ||
                          types_[id] == kUnused);
    const std::vector<float> narrow(scores.begin(), scores.begin() + static_cast<std::ptrdiff_t>(n_));
    ZRT_TRY(const auto merges, merges_of_scores({tokens_.first(n_), mergeable}, narrow));
    Json& model = root["model"];
    Json lines = Json::array();
    for (const MergePair& merge : merges) lines.push_back(tokens_[merge.left] + " " + tokens_[merge.right]);
    model["merges"] = std::move(lines);
    model["byte_fallback"] = true;
    model["fuse_unk"] = true;
    ZRT_TRY(const auto unknown, role("unknown"));
    if (unknown) model["unk_token"] = tokens_[*unknown];
    Json steps = Json::array();
    if (out_.space_prefix) steps.push_back({{"type", "Prepend"}, {"prepend", kSpaceMark}});
    steps.push_back({{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", kSpaceMark}});
    root["normalizer"] = {{"type", "Sequence"}, {"normalizers", steps}};
    root["pre_tokenizer"] = nullptr;
    Json decoders = Json::array({{{"type", "Replace"}, {"pattern", {{"String", kSpaceMark}}}, {"content", " "}},
                                 {{"type", "ByteFallback"}},
                                 {{"type", "Fuse"}}});
    if (out_.space_prefix) decoders.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
    root["decoder"] = {{"type", "Sequence"}, {"decoders", decoders}};
    return {};
  }

  // Writes a byte-level vocabulary into `root`. Returns whether BOS is added if no key says so.
  Result<bool> write_byte_level(Json& root) {
    ZRT_TRY(const std::string_view name, metadata_.get_string_or("tokenizer.ggml.pre", "default"));
    ZRT_TRY(const PreRow* pre, pre_of_name(name));
    ZRT_TRY(const auto merges, metadata_.get_strings("tokenizer.ggml.merges"));
    for (const std::string& line : merges)
      if (!is_utf8(line))
        return fail(StatusCode::kUnavailable, "[mlc] tokenizer.ggml.merges: {} is not UTF-8", gguf::quoted(line));
    root["model"]["merges"] = std::vector<std::string>(merges.begin(), merges.end());
    root["model"]["ignore_merges"] = pre->whole_words;
    root["pre_tokenizer"] = json_of_pre(*pre);
    root["decoder"] = {{"type", "ByteLevel"}, {"add_prefix_space", true}, {"trim_offsets", true}, {"use_regex", true}};
    out_.byte_level = true;
    return pre->add_bos;
  }

  Status write_config(bool bos_by_default) {
    ZRT_TRY(out_.bos_id, role("bos"));
    ZRT_TRY(out_.eos_id, role("eos"));
    ZRT_TRY(out_.eot_id, role("eot"));
    ZRT_TRY(out_.pad_id, role("padding"));
    ZRT_TRY(const auto unknown, role("unknown"));
    ZRT_TRY(const bool add_bos, metadata_.get_bool_or("tokenizer.ggml.add_bos_token", bos_by_default));
    ZRT_TRY(const bool add_eos, metadata_.get_bool_or("tokenizer.ggml.add_eos_token", false));
    add_bos_ = add_bos && out_.bos_id;
    add_eos_ = add_eos && out_.eos_id;
    Json config{{"add_bos_token", add_bos_},
                {"add_eos_token", add_eos_},
                {"clean_up_tokenization_spaces", false},
                {"tokenizer_class", "PreTrainedTokenizerFast"}};
    const auto put = [&](const char* key, std::optional<std::uint64_t> id) {
      if (id) config[key] = tokens_[*id];
    };
    put("bos_token", out_.bos_id);
    put("eos_token", out_.eos_id);
    put("pad_token", out_.pad_id);
    put("unk_token", unknown);
    ZRT_TRY(const std::string_view source, metadata_.get_string_or("tokenizer.chat_template", ""));
    if (!is_utf8(source)) return fail(StatusCode::kUnavailable, "[mlc] tokenizer.chat_template is not UTF-8");
    if (!source.empty()) config["chat_template"] = source;
    out_.config = config.dump(2);
    return {};
  }

  Json post_processor() const {
    if (!add_bos_ && !add_eos_) return nullptr;
    Json single = Json::array(), tokens = Json::object();
    const auto add = [&](bool wanted, std::optional<std::uint64_t> id) {
      if (!wanted) return;
      single.push_back({{"SpecialToken", {{"id", tokens_[*id]}, {"type_id", 0}}}});
      tokens[tokens_[*id]] = {
          {"id", tokens_[*id]}, {"ids", Json::array({*id})}, {"tokens", Json::array({tokens_[*id]})}};
    };
    add(add_bos_, out_.bos_id);
    single.push_back({{"Sequence", {{"id", "A"}, {"type_id", 0}}}});
    add(add_eos_, out_.eos_id);
    Json pair = single;
    pair.push_back({{"Sequence", {{"id", "B"}, {"type_id", 1}}}});
    return {{"type", "TemplateProcessing"}, {"single", single}, {"pair", pair}, {"special_tokens", tokens}};
  }

  const gguf::Metadata& metadata_;
  std::span<const std::string> tokens_;
  std::vector<std::int64_t> types_;
  std::size_t n_ = 0;  // number of tokens without padding
  bool add_bos_ = false, add_eos_ = false;
  TokenizerTexts out_;
};

}  // namespace

Result<TokenizerTexts> export_tokenizer(const gguf::Metadata& metadata) {
  return Export(metadata).run();
}

}  // namespace zinc_rt::mlc
