// The grammar engine alone: as a partner for a comparison, and timed.
//
//   bench_grammar vocabulary FILE.gguf     the tokens, one a line in hexadecimal; "end" behind those that end an answer
//   bench_grammar partner FILE.gguf        answers lines on the standard input:
//     schema|regex|gbnf N MAX_WHITESPACE   and N bytes: "ok" or "error ...", a line
//     mask                                 the words of the mask as bytes, behind a line with their number; or "error ..."
//     token ID                             "1", "0" or "error ..."
//     text N                               and N bytes, whole, from the beginning: "1" it fits, "0", or "error ..."
//   bench_grammar time FILE.gguf SCHEMAS   one schema a line: percentiles of compiling, and of masks along random answers
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "grammar/grammar.h"
#include "model/gguf/reader.h"
#include "tokenizer/tokenizer.h"

namespace {

using namespace zinc_rt;
using grammar::Grammar;
using grammar::Matcher;
using grammar::SourceKind;
using grammar::Vocabulary;

constexpr int kSteps = 50;

[[noreturn]] void stop(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  std::exit(1);
}

std::shared_ptr<const Vocabulary> open_vocabulary(const char* path) {
  const auto file = gguf::GgufFile::open(path);
  if (!file) stop(file.error().message);
  const auto tokenizer = Tokenizer::from_metadata(file->metadata());
  if (!tokenizer) stop(tokenizer.error().message);
  const auto made = Vocabulary::make(*tokenizer);
  if (!made) stop(made.error().message);
  return *made;
}

void show_vocabulary(const Vocabulary& vocabulary) {
  for (std::int32_t id = 0; vocabulary.contains(id); ++id) {
    for (const char byte : vocabulary.bytes(id)) fmt::print("{:02x}", static_cast<unsigned char>(byte));
    fmt::print("{}\n", vocabulary.is_end(id) ? "end" : "");
  }
}

std::string read_bytes(std::size_t n) {
  std::string bytes(n, '\0');
  std::cin.read(bytes.data(), static_cast<std::streamsize>(n));
  return bytes;
}

void answer(const Result<bool>& result) {
  std::cout << (result ? (*result ? "1" : "0") : "error " + result.error().message) << std::endl;
}

void be_partner(const std::shared_ptr<const Vocabulary>& vocabulary) {
  std::unique_ptr<Grammar> made;
  std::unique_ptr<Matcher> matcher;
  std::vector<std::uint32_t> mask(vocabulary->n_mask_words());
  std::string command;
  while (std::cin >> command) {
    if (command == "mask" && matcher) {
      if (const auto ok = matcher->fill(mask); !ok) {
        std::cout << "error " << ok.error().message << std::endl;
        continue;
      }
      std::cout << mask.size() * 4 << '\n';
      std::cout.write(reinterpret_cast<const char*>(mask.data()), static_cast<std::streamsize>(mask.size() * 4))
          .flush();
    } else if (command == "token" && matcher) {
      std::int32_t id = 0;
      std::cin >> id;
      answer(matcher->accept(id));
    } else if (command == "text" && made) {
      std::size_t n = 0;
      std::cin >> n;
      std::cin.ignore(1);
      Matcher fresh(*made, vocabulary);
      auto fits = fresh.accept_text(read_bytes(n));
      if (fits && *fits) fits = fresh.is_complete();
      answer(fits);
    } else if (command == "schema" || command == "regex" || command == "gbnf") {
      std::size_t n = 0;
      grammar::Options options;
      std::cin >> n >> options.whitespace.max;
      std::cin.ignore(1);
      const SourceKind kind = command == "schema"  ? SourceKind::kJsonSchema
                              : command == "regex" ? SourceKind::kRegex
                                                   : SourceKind::kGbnf;
      auto compiled = grammar::compile({kind, read_bytes(n), {}}, options);
      matcher.reset();
      made.reset();
      if (compiled) {
        made = std::make_unique<Grammar>(*compiled);
        matcher = std::make_unique<Matcher>(*compiled, vocabulary);
      }
      std::cout << (compiled ? "ok" : "error " + compiled.error().message) << std::endl;
    } else {
      stop("not a command: " + command);
    }
  }
}

// Of this thread's processor time, so that a busy machine shows the same.
double now_us() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

class Times {
 public:
  void add(double since) { us_.push_back(now_us() - since); }
  void show(const char* what) {
    std::ranges::sort(us_);
    if (us_.empty()) return;
    const auto at = [&](double share) {
      return us_[std::min(us_.size() - 1, static_cast<std::size_t>(share * us_.size()))];
    };
    fmt::print("{}: {} times, us: p50 {:.1f}, p90 {:.1f}, p99 {:.1f}, p99.9 {:.1f}, most {:.1f}\n", what, us_.size(),
               at(0.5), at(0.9), at(0.99), at(0.999), us_.back());
  }

 private:
  std::vector<double> us_;
};

std::size_t n_tokens_of(const std::vector<std::uint32_t>& mask) {
  std::size_t n = 0;
  for (const std::uint32_t word : mask) n += static_cast<std::size_t>(std::popcount(word));
  return n;
}

// A token of the mask, each with the same chance; -1: none but ends.
std::int32_t pick(const std::vector<std::uint32_t>& mask, const Vocabulary& vocabulary, std::mt19937& random) {
  const std::size_t n = n_tokens_of(mask);
  if (n == 0) return -1;
  std::size_t left = random() % n;
  for (std::size_t i = 0; i < mask.size(); ++i) {
    for (std::uint32_t word = mask[i]; word != 0; word &= word - 1) {
      const auto id = static_cast<std::int32_t>(i * 32) + std::countr_zero(word);
      if (left-- == 0) return vocabulary.is_end(id) ? -1 : id;
    }
  }
  return -1;
}

void time_schemas(const std::shared_ptr<const Vocabulary>& vocabulary, const char* path) {
  std::ifstream file(path);
  Times compiling, first, masks, accepting;
  std::size_t n_refused = 0, n_failed = 0, n_forced = 0, most_bytes = 0;
  std::mt19937 random(1);
  for (std::string schema; std::getline(file, schema);) {
    double since = now_us();
    const auto made = grammar::compile({SourceKind::kJsonSchema, schema, {}});
    compiling.add(since);
    if (!made) {
      ++n_refused;
      continue;
    }
    Matcher matcher(*made, vocabulary);
    std::vector<std::uint32_t> mask(vocabulary->n_mask_words());
    for (int step = 0; step < kSteps; ++step) {
      since = now_us();
      const auto ok = matcher.fill(mask);
      (step == 0 ? first : masks).add(since);
      const std::int32_t id = ok ? pick(mask, *vocabulary, random) : -1;
      n_failed += ok ? 0 : 1;
      n_forced += ok && n_tokens_of(mask) == 1 ? 1 : 0;
      if (id < 0) break;
      since = now_us();
      const auto fits = matcher.accept(id);
      accepting.add(since);
      if (!fits || !*fits) stop("a token of the mask is refused: " + schema);
    }
    most_bytes = std::max(most_bytes, made->n_bytes() + matcher.n_bytes());
  }
  compiling.show("compile");
  first.show("first mask");
  masks.show("mask");
  accepting.show("accept");
  fmt::print(
      "{} tokens; {} schemas refused; {} masks too complex, {} of one token; {} bytes at most of a grammar and its "
      "matcher\n",
      vocabulary->size(), n_refused, n_failed, n_forced, most_bytes);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 2 ? argv[1] : "";
  if (what == "vocabulary") {
    show_vocabulary(*open_vocabulary(argv[2]));
  } else if (what == "partner") {
    std::ios::sync_with_stdio(false);
    be_partner(open_vocabulary(argv[2]));
  } else if (what == "time" && argc > 3) {
    time_schemas(open_vocabulary(argv[2]), argv[3]);
  } else {
    stop("usage: bench_grammar vocabulary|partner FILE.gguf, or time FILE.gguf SCHEMAS");
  }
}
