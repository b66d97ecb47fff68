#include "model/mlc/spm_merges.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "model/gguf/metadata.h"

namespace zinc_rt::mlc {
namespace {

using TokenIndex = std::unordered_map<std::string_view, std::uint32_t>;

constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

bool starts_character(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
}

std::size_t n_characters(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, starts_character));
}

// Returns how often the text repeats its first character. Returns nullopt if the text contains another character.
std::optional<std::size_t> run_length(std::string_view text) {
  std::size_t n = 1;
  while (n < text.size() && !starts_character(text[n])) ++n;
  const std::string_view first = text.substr(0, n);
  if (text.empty() || text.size() % n != 0) return std::nullopt;
  for (std::size_t at = n; at < text.size(); at += n)
    if (text.substr(at, n) != first) return std::nullopt;
  return text.size() / n;
}

TokenIndex index_of(const MergeVocab& vocab) {
  TokenIndex index;
  index.reserve(vocab.tokens.size());
  for (std::uint32_t id = 0; id < vocab.tokens.size(); ++id)
    if (vocab.mergeable[id]) index.emplace(vocab.tokens[id], id);
  return index;
}

// Calls use(left, right) with the ids of the two tokens, for each way to split a token into two tokens.
template <class Use>
void for_each_split(const MergeVocab& vocab, const TokenIndex& index, std::uint32_t id, const Use& use) {
  const std::string_view text = vocab.tokens[id];
  for (std::size_t at = 1; at < text.size(); ++at) {
    if (!starts_character(text[at])) continue;
    const auto left = index.find(text.substr(0, at));
    const auto right = index.find(text.substr(at));
    if (left != index.end() && right != index.end()) use(MergePair{left->second, right->second});
  }
}

std::uint64_t key_of(MergePair pair) {
  return std::uint64_t{pair.left} << 32 | pair.right;
}

// Made holds a token and the ranks of the first and last merge that produce it.
struct Made {
  std::uint32_t token = 0;
  std::uint32_t first = kNone;
  std::uint32_t last = 0;
};

// Describes the runs of one character that are tokens of a vocabulary, by their lengths. `rank` maps the two lengths
// that a merge joins to the rank of the merge. `score` maps the length of a joined run to the rank that corresponds to
// the run's score.
struct Runs {
  std::map<std::pair<std::size_t, std::size_t>, std::uint32_t> rank;
  std::map<std::size_t, std::uint32_t> score;
  std::size_t longest = 1;
};

// Returns the lengths of the tokens into which a run of n characters is merged. The best pair is joined first, and of
// equal pairs the leftmost.
std::vector<std::size_t> join_run(const Runs& runs, std::size_t n, bool by_score) {
  std::vector<std::size_t> parts(n, 1);
  for (;;) {
    std::size_t best = n;
    std::uint32_t best_rank = kNone;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
      const auto it = runs.rank.find({parts[i], parts[i + 1]});
      if (it == runs.rank.end()) continue;
      const std::uint32_t rank = by_score ? runs.score.at(parts[i] + parts[i + 1]) : it->second;
      if (rank < best_rank) {
        best = i;
        best_rank = rank;
      }
    }
    if (best == n) return parts;
    parts[best] += parts[best + 1];
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

// Returns whether these tokens may share one score although their merges interleave. All tokens must be runs of the
// same character, and merging by score must cut every run into the same tokens as merging by rank.
bool may_share_score(const MergeVocab& vocab, std::span<const Made> cluster, std::span<const MergePair> merges) {
  constexpr std::size_t kMaxRun = 256;
  const auto bytes_of = [&](const Made& made) { return vocab.tokens[made.token].size(); };
  const std::string_view longest = vocab.tokens[std::ranges::max_element(cluster, {}, bytes_of)->token];
  const auto run_of = [&](std::string_view text) {
    return longest.starts_with(text) ? run_length(text) : std::nullopt;
  };
  Runs runs;
  for (const Made& made : cluster) {
    const auto length = run_of(vocab.tokens[made.token]);
    if (!length || *length > kMaxRun) return false;
    runs.score[*length] = cluster[0].first;
    runs.longest = std::max(runs.longest, *length);
  }
  for (std::uint32_t rank = 0; rank < merges.size(); ++rank) {
    const auto left = run_of(vocab.tokens[merges[rank].left]);
    const auto right = run_of(vocab.tokens[merges[rank].right]);
    if (!left || !right || *left + *right > runs.longest) continue;
    runs.rank.try_emplace({*left, *right}, rank);
    runs.score.try_emplace(*left + *right, rank);
  }
  for (std::size_t n = 2; n <= 2 * runs.longest + 1; ++n)
    if (join_run(runs, n, false) != join_run(runs, n, true)) return false;
  return true;
}

}  // namespace

Result<std::vector<float>> scores_of_merges(const MergeVocab& vocab, std::span<const MergePair> merges) {
  const TokenIndex index = index_of(vocab);
  std::vector<Made> made(vocab.tokens.size());
  std::unordered_map<std::uint64_t, std::uint32_t> ranks;
  ranks.reserve(merges.size());
  std::string joined;
  for (std::uint32_t rank = 0; rank < merges.size(); ++rank) {
    const MergePair pair = merges[rank];
    joined.assign(vocab.tokens[pair.left]).append(vocab.tokens[pair.right]);
    const auto it = index.find(joined);
    if (it == index.end())
      return fail(StatusCode::kCorrupt, "[mlc] merge {} of {}: makes {}, which is no token that text can become", rank,
                  merges.size(), gguf::quoted(joined));
    ranks.try_emplace(key_of(pair), rank);
    Made& token = made[it->second];
    token.token = it->second;
    token.first = std::min(token.first, rank);
    token.last = std::max(token.last, rank);
  }
  for (std::uint32_t id = 0; id < vocab.tokens.size(); ++id) {
    if (!vocab.mergeable[id]) continue;
    std::optional<MergePair> missing;
    for_each_split(vocab, index, id, [&](MergePair pair) {
      if (!ranks.contains(key_of(pair))) missing = pair;
    });
    if (missing)
      return fail(StatusCode::kUnavailable,
                  "[mlc] token {}: {} + {} is no merge; such merges are not SentencePiece's and not supported",
                  gguf::quoted(vocab.tokens[id]), gguf::quoted(vocab.tokens[missing->left]),
                  gguf::quoted(vocab.tokens[missing->right]));
  }

  std::erase_if(made, [](const Made& token) { return token.first == kNone; });
  std::ranges::sort(made, {}, &Made::first);
  std::vector<float> scores(vocab.tokens.size());
  float score = 0;
  for (std::size_t begin = 0; begin < made.size();) {
    std::size_t end = begin + 1;
    for (std::uint32_t last = made[begin].last; end < made.size() && made[end].first < last; ++end)
      last = std::max(last, made[end].last);
    const auto cluster = std::span(made).subspan(begin, end - begin);
    if (cluster.size() > 1 && !may_share_score(vocab, cluster, merges))
      return fail(StatusCode::kUnavailable,
                  "[mlc] tokens {} and {}: their merges interleave at ranks {} and {}; such merges are not "
                  "SentencePiece's and not supported",
                  gguf::quoted(vocab.tokens[cluster[0].token]), gguf::quoted(vocab.tokens[cluster[1].token]),
                  cluster[0].first, cluster[1].first);
    score -= 1;
    for (const Made& token : cluster) scores[token.token] = score;
    begin = end;
  }
  return scores;
}

Result<std::vector<MergePair>> merges_of_scores(const MergeVocab& vocab, std::span<const float> scores) {
  struct Ranked {
    MergePair pair;
    std::uint32_t token;
    std::size_t left_length, right_length;
  };
  const TokenIndex index = index_of(vocab);
  std::vector<Ranked> ranked;
  for (std::uint32_t id = 0; id < vocab.tokens.size(); ++id) {
    // If several tokens have the same text, only the first of them can result from a merge.
    if (!vocab.mergeable[id] || index.find(vocab.tokens[id])->second != id) continue;
    for_each_split(vocab, index, id, [&](MergePair pair) {
      ranked.push_back({pair, id, n_characters(vocab.tokens[pair.left]), n_characters(vocab.tokens[pair.right])});
    });
  }
  // Two tokens have equal scores only if both are runs of one character. Among the merges of equal score, the merge
  // with the longest left side comes first, so that a run grows from its left end. Joining the leftmost of equal pairs
  // first has the same result.
  std::ranges::stable_sort(ranked, [&](const Ranked& a, const Ranked& b) {
    return std::tuple(scores[b.token], b.left_length, b.right_length) <
           std::tuple(scores[a.token], a.left_length, a.right_length);
  });
  for (std::size_t i = 1; i < ranked.size(); ++i) {
    const std::uint32_t a = ranked[i - 1].token, b = ranked[i].token;
    const std::string_view left = vocab.tokens[a], right = vocab.tokens[b];
    const bool runs = run_length(left) && run_length(right) && (left.starts_with(right) || right.starts_with(left));
    if (a != b && scores[a] == scores[b] && !runs)
      return fail(StatusCode::kUnavailable,
                  "[mlc] tokens {} and {} share the score {}: no order of merges expresses that", gguf::quoted(left),
                  gguf::quoted(right), scores[a]);
  }
  std::vector<MergePair> out;
  out.reserve(ranked.size());
  for (const Ranked& entry : ranked) out.push_back(entry.pair);
  return out;
}

}  // namespace zinc_rt::mlc
