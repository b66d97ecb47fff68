#include <bit>

#include "grammar/grammar.h"
#include "grammar/parse.h"

namespace zinc_rt::grammar {

std::shared_ptr<MatcherCache> CompiledGrammar::cache_for(std::shared_ptr<const Vocabulary> vocabulary) {
  const std::scoped_lock lock(lock_);
  std::shared_ptr<MatcherCache>* least = nullptr;
  std::shared_ptr<MatcherCache>* free = nullptr;
  long n_least = 0;
  for (auto& cache : caches_) {
    if (!is_fit(cache, vocabulary.get())) {
      if (free == nullptr) free = &cache;
      continue;
    }
    const long n_matchers = cache.use_count() - 1;
    if (least == nullptr || n_matchers < n_least) least = &cache, n_least = n_matchers;
  }
  if (least != nullptr && (n_least < kFewMatchers || free == nullptr)) return *least;
  *free = std::make_shared<MatcherCache>(rules, limits, std::move(vocabulary));
  return *free;
}

bool CompiledGrammar::is_fit(const std::shared_ptr<MatcherCache>& cache, const Vocabulary* vocabulary) const {
  return cache != nullptr && cache->vocabulary.get() == vocabulary &&
         cache->n_bytes.load(std::memory_order_relaxed) <= limits.max_lexer_bytes / 2;
}

std::size_t Grammar::n_bytes() const {
  std::size_t n = sizeof(CompiledGrammar) + compiled_->rules.n_bytes();
  const std::scoped_lock lock(compiled_->lock_);
  for (const auto& cache : compiled_->caches_)
    if (cache != nullptr) n += cache->n_bytes.load(std::memory_order_relaxed);
  return n;
}

Matcher::Matcher(Grammar grammar, std::shared_ptr<const Vocabulary> vocabulary)
    : grammar_(std::move(grammar)), vocabulary_(std::move(vocabulary)) {
  auto cache = grammar_.compiled_->cache_for(vocabulary_);
  const std::scoped_lock lock(cache->lock);
  parse_ = std::make_unique<Parse>(grammar_.compiled_, cache);
  cache->measure();
}

Matcher::Matcher(const Matcher& other)
    : grammar_(other.grammar_), vocabulary_(other.vocabulary_), parse_(std::make_unique<Parse>(*other.parse_)) {}
Matcher& Matcher::operator=(const Matcher& other) {
  if (this != &other) *this = Matcher(other);
  return *this;
}
Matcher::Matcher(Matcher&&) noexcept = default;
Matcher& Matcher::operator=(Matcher&&) noexcept = default;
Matcher::~Matcher() = default;

Result<bool> Matcher::accept(std::int32_t token) {
  const std::scoped_lock lock(parse_->cache().lock);
  auto is_allowed = parse_->accept(token);
  parse_->cache().measure();
  return is_allowed;
}

Result<bool> Matcher::accept_text(std::string_view bytes) {
  const std::scoped_lock lock(parse_->cache().lock);
  return parse_->accept_bytes(bytes);
}

Status Matcher::fill(std::span<std::uint32_t> mask) {
  const std::scoped_lock lock(parse_->cache().lock);
  auto made = parse_->fill(mask);
  parse_->cache().measure();
  return made;
}

bool Matcher::is_complete() const {
  return parse_->is_complete();
}

std::size_t Matcher::n_bytes() const {
  return parse_->n_bytes();
}

bool Matcher::is_ended() const {
  return parse_->is_ended();
}

namespace {

// Returns the longest of the allowed tokens if all other allowed tokens are beginnings of its text. Returns -1 if the
// text may continue in more than one way.
std::int32_t only_way(const Vocabulary& vocabulary, std::span<const std::uint32_t> mask) {
  std::int32_t longest = -1;
  for (std::size_t i = 0; i < mask.size(); ++i)
    for (std::uint32_t word = mask[i]; word != 0; word &= word - 1) {
      const auto token = static_cast<std::int32_t>(i * 32) + std::countr_zero(word);
      std::string_view one = vocabulary.bytes(token), other = longest < 0 ? one : vocabulary.bytes(longest);
      // An empty text means a control token, which is never the beginning of another token's text.
      if (longest >= 0 && (one.empty() || other.empty())) return -1;
      if (one.size() >= other.size()) longest = token;
      if (one.size() > other.size()) std::swap(one, other);
      if (!other.starts_with(one)) return -1;
    }
  return longest;
}

}  // namespace

Result<std::vector<std::int32_t>> Matcher::forced(std::size_t most) {
  const std::scoped_lock lock(parse_->cache().lock);
  Parse ahead = *parse_;
  std::vector<std::int32_t> tokens;
  std::vector<std::uint32_t> mask(vocabulary_->n_mask_words());
  while (tokens.size() < most && !ahead.is_ended()) {
    ZRT_CHECK_OK(ahead.fill(mask));
    const std::int32_t token = only_way(*vocabulary_, mask);
    if (token < 0 || vocabulary_->is_end(token)) break;
    ZRT_TRY(const bool is_allowed, ahead.accept(token));
    if (!is_allowed) break;
    tokens.push_back(token);
  }
  return tokens;
}

}  // namespace zinc_rt::grammar
