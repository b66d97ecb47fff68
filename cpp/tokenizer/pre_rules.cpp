#include "tokenizer/pre_rules.h"

#include "base/error.h"

namespace zinc_rt {
namespace {

// The time of every pattern is linear in the text. If the time of a model's own pattern is not linear, this file has an
// equivalent pattern whose time is linear.
//
// In all patterns \s and \S stand for Unicode's White_Space property (see pretokenize.cpp), as in the regex engines
// with which the vocabularies were trained.
#define CONTRACTION "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define LINES_AND_SPACES "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

// The pattern of GPT-2. A word may begin with one space.
constexpr std::string_view kGpt2 = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)";
constexpr std::string_view kOneDigit = "\\p{N}";
constexpr std::string_view kThreeAsciiDigits = "[0-9][0-9][0-9]";

// The patterns of Llama 3 and Qwen. A word may begin with one character that is not a letter, digit or line end. The
// patterns differ in their handling of digits and marks.
constexpr std::string_view kLlama3 =
    CONTRACTION "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" LINES_AND_SPACES;
constexpr std::string_view kQwen2 =
    CONTRACTION "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" LINES_AND_SPACES;
constexpr std::string_view kQwen35 =
    CONTRACTION "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|" LINES_AND_SPACES;
constexpr std::string_view kMinicpm5 =
    CONTRACTION "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}+| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" LINES_AND_SPACES;
constexpr std::string_view kBailing =
    "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}| "
    "?[^\\s\\p{L}\\p{N}]++[\\r\\n]*|\\s*[\\r\\n]|\\s+(?!\\S)|"
    "\\s+";
constexpr std::string_view kSeedCoder =
    CONTRACTION "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}\\r\\n]+|" LINES_AND_SPACES;
constexpr std::string_view kExaoneMoe = CONTRACTION
    "|[^\\r\\n\\p{L}\\p{N}]?(?:\\p{L}\\p{M}*+(?: \\p{L}\\p{M}*+)*+)++|\\p{N}| "
    "?[^\\s\\p{L}\\p{N}]+[\\r\\n/]?|\\s*[\\r\\n]|"
    "\\s+(?!\\S)|\\s+";
// The patterns of GPT-4o. A word also ends where an upper-case letter follows a lower-case letter.
#define UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define CASED(suffix) \
  "[^\\r\\n\\p{L}\\p{N}]?" UPPER "*" LOWER "+" suffix "|[^\\r\\n\\p{L}\\p{N}]?" UPPER "+" LOWER "*" suffix
constexpr std::string_view kGpt4o =
    CASED(CONTRACTION "?") "|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|" LINES_AND_SPACES;
constexpr std::string_view kTekken = CASED("") "|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|" LINES_AND_SPACES;
constexpr std::string_view kYoutuWords =
    CASED(CONTRACTION "?") "|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|" LINES_AND_SPACES;
constexpr std::string_view kYoutuScripts =
    "[\\x{AC00}-\\x{D7A3}\\x{3131}-\\x{318E}]+|"
    "[\\x{FF01}\\x{2026}\\x{201C}\\x{201D}\\x{2018}\\x{2019}\\x{2014}\\x{FF1A}\\x{FF1B}\\x{FF0C}\\x{3001}-\\x{303F}"
    "\\x{FE30}-\\x{FE4F}]+|[\\x{3105}-\\x{312F}]+|[\\x{4E00}-\\x{9FA5}\\x{3040}-\\x{309F}\\x{30A0}-\\x{30FF}]+";
// Kimi's pattern is like GPT-4o's, but Chinese characters are a class of their own. UPPER and LOWER must exclude Han,
// so each is written as the complement of all that it does not match.
#define KIMI_UPPER "[^\\p{sc:Han}\\p{Ll}\\p{N}\\p{P}\\p{S}\\p{Z}\\p{C}]"
#define KIMI_LOWER "[^\\p{sc:Han}\\p{Lu}\\p{Lt}\\p{N}\\p{P}\\p{S}\\p{Z}\\p{C}]"
constexpr std::string_view kKimi = "\\p{sc:Han}+|[^\\r\\n\\p{L}\\p{N}]?" KIMI_UPPER "*" KIMI_LOWER "+" CONTRACTION
                                   "?|[^\\r\\n\\p{L}\\p{N}]?" KIMI_UPPER "+" KIMI_LOWER "*" CONTRACTION
                                   "?|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" LINES_AND_SPACES;

constexpr std::string_view kPunctuation = "[\\p{P}$+<=>^~|]+";
constexpr std::string_view kPunctuationFalcon = "[\\p{P}$+<=>^~|`]+";

// The patterns of DeepSeek. They match letters of the cased scripts by an explicit list, then punctuation, trailing
// space, CJK and digits.
constexpr std::string_view kDeepseekLetters =
    "\\s?[A-Za-z\u00B5\u00C0-\u00D6\u00D8-\u00F6\u00F8-\u01BA\u01BC-\u01BF\u01C4-\u0293\u0295-\u02AF\u0370-\u0373"
    "\u0376\u0377\u037B-\u037D\u037F\u0386\u0388-\u038A\u038C\u038E-\u03A1\u03A3-\u03F5\u03F7-\u0481\u048A-\u052F"
    "\u0531-\u0556\u10A0-\u10C5\u13A0-\u13F5\u13F8-\u13FD\u1C90-\u1CBA\u1CBD-\u1CBF\u1D00-\u1D2B\u1D6B-\u1D77"
    "\u1D79-\u1D9A\u1E00-\u1F15\u1F18-\u1F1D\u1F20-\u1F45\u1F48-\u1F4D\u1F50-\u1F57\u1F59\u1F5B\u1F5D\u1F5F-\u1F7D"
    "\u1F80-\u1FB4\u1FB6-\u1FBC\u1FBE\u1FC2-\u1FC4\u1FC6-\u1FCC\u1FD0-\u1FD3\u1FD6-\u1FDB\u1FE0-\u1FEC\u1FF2-\u1FF4"
    "\u1FF6-\u1FFC\u2102\u2107\u210A-\u2113\u2115\u2119-\u211D\u2124\u2126\u2128\u212A-\u212D\u212F-\u2134\u2139"
    "\u213C-\u213F\u2145-\u2149\u214E\u2183\u2184\u2C00-\u2C7B\u2C7E-\u2CE4\u2CEB-\u2CEE\u2CF2\u2CF3\uA640-\uA66D"
    "\uA680-\uA69B\uA722-\uA76F\uA771-\uA787\uA78B-\uA78E\uAB70-\uABBF\uFB00-\uFB06\uFB13-\uFB17\uFF21-\uFF3A"
    "\uFF41-\uFF5A\U00010400-\U0001044F\U000104B0-\U000104D3\U000104D8-\U000104FB\U00010C80-\U00010CB2"
    "\U00010CC0-\U00010CF2\U000118A0-\U000118DF\U0001E900-\U0001E943]+";
constexpr std::string_view kDeepseekPunctuation = "\\s?[!-/:-~\uFF01-\uFF0F\uFF1A-\uFF5E\u2018-\u201F\u3000-\u3002]+";
constexpr std::string_view kDeepseekCjk = "[\u4E00-\u9FA5\u0800-\u4E00\uAC00-\uD7FF]+";
constexpr std::string_view kDeepseekV3Cjk = "[\u4E00-\u9FA5\u3040-\u309F\u30A0-\u30FF]+";
constexpr std::string_view kDeepseekV3Words =
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+|"
    " ?[\\p{P}\\p{S}]+[\\r\\n]*|" LINES_AND_SPACES;

constexpr std::string_view kBloom = " ?[^(\\s|.,!?\u2026\u3002\uFF0C\u3001\u0964\u06D4\u060C)]+";
// Splits digits into groups of three, counted from the right end of a number. The usual \d{1,3}(?=(?:\d{3})*\b) would
// scan the rest of the number for each group. In this pattern only the first group does. The other groups begin where
// the previous match ended (\G).
constexpr std::string_view kDigitTriplesFromRight = "(?<!\\d)\\d{1,3}(?=(?:\\d{3})*+\\b)|(?<=\\d)\\G\\d{3}";
// Equivalent to \s+$, but tried only where a run of spaces begins, so that the time is linear.
constexpr std::string_view kTrailingSpace = "(?<!\\s)\\s++$";

// Returns the rule with normalization to form C. It is for vocabularies whose own tokenizers normalize text first:
// GPT-NeoX's, Cohere's, Qwen's and tokenizers derived from these. As far as is known, all other tokenizers use the text
// unchanged.
constexpr PreRule with_nfc(PreRule rule) {
  rule.nfc = true;
  return rule;
}

constexpr PreRule kRules[] = {
    {"default", {kPunctuation, kGpt2, "\\p{N}+", kThreeAsciiDigits}},
    // The following rules split only as GPT-2 does.
    {"gpt-2", {kGpt2}},
    {"phi-2", {kGpt2}},
    with_nfc({"mpt", {kGpt2}}),
    with_nfc({"olmo", {kGpt2}}),
    {"jais", {kGpt2}},
    {"trillion", {kGpt2}},
    {"granite-docling", {kGpt2}},
    {"exaone4", {kGpt2}},
    {"gigachat", {kGpt2}},
    {"a.x-4.0", {kGpt2}},
    {"mellum", {kGpt2}},
    with_nfc({"modern-bert", {kGpt2}}),
    {"jina-es", {kGpt2}},
    {"jina-de", {kGpt2}},
    {"jina-v2-es", {kGpt2}},
    {"jina-v2-de", {kGpt2}},
    {"jina-v2-code", {kGpt2}},
    {"jina-v1-en", {kGpt2}},
    // The following rules make every digit a piece of its own, and then split as GPT-2 does.
    {"smollm", {kOneDigit, kGpt2}},
    {"starcoder", {kOneDigit, kGpt2}},
    {"refact", {kOneDigit, kGpt2}},
    with_nfc({"command-r", {kOneDigit, kGpt2}}),
    {"codeshell", {kOneDigit, kGpt2}},
    {"exaone", {kOneDigit, kGpt2}},
    {"minerva-7b", {kOneDigit, kGpt2}},
    {"mellum2", {kOneDigit, kGpt2}},
    {"falcon", {kPunctuationFalcon, kGpt2, kThreeAsciiDigits}},
    // The following rules split as Llama 3 does, with pieces of up to three digits, or with small differences.
    {"llama-bpe", {kLlama3}, true, true},
    {"llama3", {kLlama3}, true, true},
    {"llama-v3", {kLlama3}, true, true},
    {"falcon3", {kLlama3}, true, true},
    {"falcon-h1", {kLlama3}, true, true},
    {"pixtral", {kLlama3}, true, true},
    {"midm-2.0", {kLlama3}, true, true},
    {"lfm2", {kLlama3}, true, true},
    {"jina-v5-nano", {kLlama3}, true, true},
    {"dbrx", {kLlama3}},
    {"smaug-bpe", {kLlama3}},
    {"glm4", {kLlama3}},
    {"chatglm-bpe", {kLlama3}},
    {"minicpm5", {"\\p{N}{1,3}", kMinicpm5}, true},
    // The following rules split as Qwen 2 does, with each digit a piece of its own, or with small differences.
    with_nfc({"qwen2", {kQwen2}}),
    {"deepseek-r1-qwen", {kQwen2}},
    {"kormo", {kQwen2}},
    with_nfc({"f2llmv2", {kQwen2}}),
    {"megrez", {kQwen2}},
    with_nfc({"stablelm2", {kQwen2}}),
    with_nfc({"hunyuan", {kQwen2}}),
    {"solar-open", {kQwen2}},
    {"grok-2", {kQwen2}},
    with_nfc({"qwen35", {kQwen35}}),
    {"bailingmoe", {kBailing}},
    {"bailingmoe2", {kBailing}},
    {"llada-moe", {kBailing}},
    {"seed-coder", {kSeedCoder}},
    {"exaone-moe", {kExaoneMoe}},
    {"deepseek-llm", {"[\\r\\n]", kDeepseekLetters, kDeepseekPunctuation, kTrailingSpace, kDeepseekCjk, "\\p{N}+"}},
    {"deepseek-coder", {"[\\r\\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", kDeepseekCjk, kOneDigit}},
    {"deepseek-v3", {"\\p{N}{1,3}", kDeepseekV3Cjk, kDeepseekV3Words}},
    {"hunyuan-dense", {"\\p{N}{1,3}", kDeepseekV3Cjk, kDeepseekV3Words}},
    {"joyai-llm", {"\\p{N}{1,3}", kDeepseekV3Cjk, kDeepseekV3Words}},
    // The following rules also split words where an upper-case letter follows a lower-case letter.
    {"tekken", {kTekken}, true, true},
    {"gpt-4o", {kGpt4o}},
    {"llama4", {kGpt4o}},
    {"kanana2", {kGpt4o}},
    {"talkie", {kGpt4o}},
    {"minimax-m2", {kGpt4o}},
    {"granite-embed-multi-97m", {kGpt4o}, true},
    with_nfc({"tiny_aya", {kDigitTriplesFromRight, kGpt4o}}),
    with_nfc({"cohere2moe", {kDigitTriplesFromRight, kGpt4o}}),
    {"youtu", {kYoutuScripts, kYoutuWords}, true},
    {"kimi-k2", {kKimi}},
    {"poro-chat", {kBloom}},
    {"bloom", {kBloom}},
    {"gpt3-finnish", {kBloom}},
    {"viking", {kBloom, kOneDigit}},
    {"chameleon",
     {"<sentinel:[0-9]+>", "(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z", "([\\t\\n]|    |  )", kOneDigit,
      "[\\p{P}!-/:-@\\[-`{-~]", kGpt2},
     false,
     true},
};

}  // namespace

std::span<const PreRule> pre_rules() {
  return kRules;
}

Result<const PreRule*> find_pre_rule(std::string_view name) {
  for (const PreRule& rule : kRules) {
    if (rule.name == name) return &rule;
  }
  std::string known;
  for (const PreRule& rule : kRules) {
    if (!known.empty()) known += ", ";
    known += rule.name;
  }
  return fail(StatusCode::kInvalidArgument, "[tokenizer] tokenizer.ggml.pre \"{}\" is not supported; known: {}", name,
              known);
}

}  // namespace zinc_rt
