// The recurrent ops against float64; token by token gives the bits of the whole; the state is carried across steps and
// starts anew at position 0.
#include <numeric>
#include <span>
#include <tuple>

#include "harness.h"
#include "kernels/common/push.h"
#include "kernels/common/state_run.h"

namespace zinc_rt::kernel_test {
namespace {

struct Tokens {
  std::vector<std::int32_t> pos, slot;
};

// Tokens [first, first + n) of a case whose state lies in input `state`, which is output 1.
std::vector<Bytes> run_part(const Case& c, std::size_t first, std::size_t n, std::size_t state_input,
                            const Bytes& state) {
  Case part = c;
  for (Tensor& t : part.inputs) {
    if (t.absent || t.dims[0] != kTokens) continue;
    const std::size_t row = t.bytes.size() / c.dims.n_tokens;
    t.bytes = Bytes(t.bytes.begin() + std::ptrdiff_t(first * row), t.bytes.begin() + std::ptrdiff_t((first + n) * row));
  }
  part.inputs[state_input].bytes = state;
  part.dims.n_tokens = std::uint32_t(n);
  return run(part);
}

void expect_parts_give_the_whole(const Case& c, std::size_t state_input) {
  const auto whole = run(c);
  for (const std::size_t chunk : {1, 3}) {
    Bytes y, state = c.inputs[state_input].bytes;
    for (std::size_t at = 0; at < c.dims.n_tokens; at += chunk) {
      const auto part = run_part(c, at, std::min<std::size_t>(chunk, c.dims.n_tokens - at), state_input, state);
      y.insert(y.end(), part[0].begin(), part[0].end());
      state = part[1];
    }
    EXPECT_EQ(y, whole[0]) << "chunks of " << chunk;
    EXPECT_EQ(state, whole[1]) << "chunks of " << chunk;
  }
}

constexpr std::uint32_t kSlots = 3, kSaved = 4;  // kSaved: saved rows per slot, or per half of a slot

// Runs in which no row is a guess.
std::vector<StateRun> all_certain() {
  return std::vector(kSlots,
                     StateRun{.n_replayed = 0, .n_certain = kAllCertain, .half = 0, .save_at = 0, .save_to = 0});
}
Bytes bytes_of(const std::vector<StateRun>& runs) {
  const auto bytes = std::as_bytes(std::span(runs));
  return {bytes.begin(), bytes.end()};
}
Tensor runs_tensor() {
  Tensor t = u32({kSlots, kStateRunWords}, std::vector<std::uint32_t>(kSlots * kStateRunWords));
  t.bytes = bytes_of(all_certain());
  return t;
}

// Slot 0 goes on from position 5, slot 2 starts; slot 1 has no tokens.
const Tokens kTwoSlots{{5, 6, 7, 8, 0, 1, 2}, {0, 0, 0, 0, 2, 2, 2}};

Case conv(std::uint32_t channels, std::uint32_t width, const Tokens& tokens, Random& random, bool has_bias = false,
          std::uint32_t act = push::kConvSilu) {
  const auto n = std::uint32_t(tokens.pos.size());
  return {
      Op::SSM_CONV1D,
      {f32({kTokens, channels}, random.normal(n * channels)), f32({channels, width}, random.normal(channels * width)),
       has_bias ? f32({channels}, random.normal(channels)) : absent(), i32({kTokens}, tokens.pos),
       i32({kTokens}, tokens.slot), f32({4, width - 1, channels}, random.normal(4 * (width - 1) * channels)),
       runs_tensor(), f32({kSlots, kSaved, channels}, random.normal(kSlots * kSaved * channels))},
      {{DType::kF32, {kTokens, channels}}, update(5), update(7)},
      {{"width", width}, {"taps", width - 1}, {"act", act}},
      {n, 0}};
}

TEST(SsmConv1d, MatchesFloat64) {
  for (const std::uint32_t channels : {1u, 255u, 256u, 257u})
    for (const auto& [width, has_bias, act] : {std::tuple{2u, false, push::kConvSilu},
                                               {4u, false, push::kConvSilu},
                                               {4u, true, push::kConvSilu},
                                               {3u, false, push::kConvNone},
                                               {3u, true, push::kConvNone}}) {
      Random random(channels + width);
      const auto c = conv(channels, width, kTwoSlots, random, has_bias, act);
      const auto x = as<float>(c.inputs[0].bytes), w = as<float>(c.inputs[1].bytes),
                 bias = as<float>(c.inputs[2].bytes), state = as<float>(c.inputs[5].bytes);
      std::vector<std::vector<std::vector<double>>> line(3,
                                                         std::vector<std::vector<double>>(channels));  // inputs so far
      for (std::size_t s = 0; s < 3; ++s)
        for (std::size_t ch = 0; ch < channels; ++ch)
          for (std::size_t i = 0; i + 1 < width; ++i)
            line[s][ch].push_back(state[(s * (width - 1) + i) * channels + ch]);
      std::vector<double> expected;
      for (std::size_t t = 0; t < 7; ++t)
        for (std::size_t ch = 0; ch < channels; ++ch) {
          auto& history = line[std::size_t(kTwoSlots.slot[t])][ch];
          if (kTwoSlots.pos[t] == 0) history.assign(width - 1, 0.0);
          history.push_back(x[t * channels + ch]);
          double acc = has_bias ? bias[ch] : 0;
          for (std::size_t i = 0; i < width; ++i) acc += w[ch * width + i] * history[history.size() - width + i];
          expected.push_back(act == push::kConvSilu ? silu(acc) : acc);
        }
      const auto got = run(c);
      expect_near(got[0], expected, 2e-6, 2e-6, "conv");
      const auto next = as<float>(got[1]);
      for (std::size_t s = 0; s < 3; ++s)
        for (std::size_t i = 0; i + 1 < width; ++i)
          for (std::size_t ch = 0; ch < channels; ++ch)
            EXPECT_EQ(next[(s * (width - 1) + i) * channels + ch],
                      float(line[s][ch][line[s][ch].size() - (width - 1) + i]));
      expect_parts_give_the_whole(c, 5);
    }
}

TEST(PoolMean, IsTheMeanUpToEachTokenAndGoesOnInTheNextStep) {
  for (const std::uint32_t d : {1u, 255u, 256u, 257u}) {
    Random random(d);
    const Case c{Op::POOL_MEAN,
                 {f32({kTokens, d}, random.normal(7 * d)), i32({kTokens}, kTwoSlots.pos),
                  i32({kTokens}, kTwoSlots.slot), f32({3, d}, random.normal(3 * d))},
                 {{DType::kF32, {kTokens, d}}, update(3)},
                 {},
                 {7, 0}};
    const auto x = as<float>(c.inputs[0].bytes), state = as<float>(c.inputs[3].bytes);
    std::vector<float> sums(state);
    std::vector<double> exact(state.begin(), state.end()), expected;
    for (std::size_t t = 0; t < 7; ++t)
      for (std::size_t i = 0; i < d; ++i) {
        const std::size_t at = std::size_t(kTwoSlots.slot[t]) * d + i;
        const bool is_first = kTwoSlots.pos[t] == 0;
        sums[at] = is_first ? x[t * d + i] : sums[at] + x[t * d + i];
        exact[at] = is_first ? double{x[t * d + i]} : exact[at] + x[t * d + i];
        expected.push_back(exact[at] / (kTwoSlots.pos[t] + 1));
      }
    const auto got = run(c);
    expect_near(got[0], expected, 2e-6, 2e-6, "mean");
    EXPECT_EQ(as<float>(got[1]), sums) << "one add a row, in the order of the rows";
    expect_parts_give_the_whole(c, 3);
  }
}

struct Shape {
  std::uint32_t n_k = 2, n_v = 4, k_dim = 16, v_dim = 8;
  int tiled = 0;
  std::uint32_t columns() const { return 2 * n_k * k_dim + n_v * v_dim; }
};

Case delta_net(const Shape& s, const Tokens& tokens, Random& random) {
  const auto n = std::uint32_t(tokens.pos.size());
  std::vector<float> a = random.normal(s.n_v);
  for (float& v : a) v = -std::abs(v);
  return {Op::SSM_DELTA_NET,
          {f32({kTokens, s.columns()}, random.normal(n * s.columns())), f32({kTokens, s.n_v}, random.normal(n * s.n_v)),
           f32({kTokens, s.n_v}, random.normal(n * s.n_v)), f32({s.n_v}, a), f32({s.n_v}, random.normal(s.n_v)),
           i32({kTokens}, tokens.pos), i32({kTokens}, tokens.slot),
           f32({4, s.n_v, s.k_dim, s.v_dim}, random.normal(4 * s.n_v * s.k_dim * s.v_dim)), runs_tensor(),
           f32({kSlots, 2, kSaved, s.columns() + 2 * s.n_v},
               random.normal(kSlots * 2 * kSaved * (s.columns() + 2 * s.n_v)))},
          {{DType::kF32, {kTokens, s.n_v * s.v_dim}}, update(7), update(9)},
          {{"n_k_heads", s.n_k},
           {"n_v_heads", s.n_v},
           {"k_dim", s.k_dim},
           {"v_dim", s.v_dim},
           {"tiled", s.tiled},
           {"eps", 1e-6f}},
          {n, 0}};
}

std::vector<double> delta_net_in_double(const Case& c, const Shape& s, const Tokens& tokens,
                                        std::vector<double>& state) {
  const auto x = as<float>(c.inputs[0].bytes), beta = as<float>(c.inputs[1].bytes),
             alpha = as<float>(c.inputs[2].bytes), a = as<float>(c.inputs[3].bytes), dt = as<float>(c.inputs[4].bytes),
             initial = as<float>(c.inputs[7].bytes);
  state.assign(initial.begin(), initial.end());
  std::vector<double> y;
  for (std::size_t t = 0; t < tokens.pos.size(); ++t)
    for (std::size_t h = 0; h < s.n_v; ++h) {
      const std::size_t kh = s.tiled ? h % s.n_k : h / (s.n_v / s.n_k);
      const float* xq = &x[t * s.columns() + kh * s.k_dim];
      const float* xk = xq + s.n_k * s.k_dim;
      const float* v = &x[t * s.columns() + 2 * s.n_k * s.k_dim + h * s.v_dim];
      double* S = &state[(std::size_t(tokens.slot[t]) * s.n_v + h) * s.k_dim * s.v_dim];
      if (tokens.pos[t] == 0) std::fill_n(S, s.k_dim * s.v_dim, 0.0);
      double qq = 1e-6f, kk = 1e-6f;
      for (std::size_t i = 0; i < s.k_dim; ++i) qq += double(xq[i]) * xq[i], kk += double(xk[i]) * xk[i];
      const double g = std::exp(a[h] * std::log1p(std::exp(double(alpha[t * s.n_v + h]) + dt[h])));
      const double b = 1 / (1 + std::exp(-double(beta[t * s.n_v + h])));
      for (std::size_t j = 0; j < s.v_dim; ++j) {
        double u = 0;
        for (std::size_t i = 0; i < s.k_dim; ++i)
          S[i * s.v_dim + j] *= g, u += xk[i] / std::sqrt(kk) * S[i * s.v_dim + j];
        u = (v[j] - u) * b;
        double out = 0;
        for (std::size_t i = 0; i < s.k_dim; ++i) {
          S[i * s.v_dim + j] += xk[i] / std::sqrt(kk) * u;
          out += xq[i] / std::sqrt(qq) / std::sqrt(double(s.k_dim)) * S[i * s.v_dim + j];
        }
        y.push_back(out);
      }
    }
  return y;
}

TEST(SsmDeltaNet, MatchesFloat64) {
  for (const Shape& s : {Shape{}, Shape{.tiled = 1}, Shape{1, 1, 1, 1}, Shape{2, 2, 33, 17}, Shape{1, 6, 64, 32, 1}}) {
    Random random(s.k_dim);
    const auto c = delta_net(s, kTwoSlots, random);
    std::vector<double> state;
    const auto expected = delta_net_in_double(c, s, kTwoSlots, state);
    const auto got = run(c);
    expect_near(got[0], expected, 5e-6, 5e-6, "delta net");
    expect_near(got[1], state, 5e-6, 5e-6, "state");
    expect_parts_give_the_whole(c, 7);
  }
}

struct ScanShape {
  std::uint32_t n_heads = 4, n_groups = 2, head_dim = 8, state_dim = 16;
  std::uint32_t columns() const { return n_heads * head_dim + 2 * n_groups * state_dim; }
};
constexpr ScanShape kScanShapes[] = {{}, {1, 1, 1, 1}, {6, 3, 17, 5}, {8, 1, 32, 64}, {3, 3, 33, 128}};

Case scan(const ScanShape& s, const Tokens& tokens, Random& random) {
  const auto n = std::uint32_t(tokens.pos.size());
  std::vector<float> a = random.normal(s.n_heads);
  for (float& v : a) v = -std::abs(v);
  const std::uint32_t state = s.n_heads * s.state_dim * s.head_dim, saved = s.columns() + s.n_heads;
  return {Op::SSM_SCAN,
          {f32({kTokens, s.columns()}, random.normal(n * s.columns())),
           f32({kTokens, s.n_heads}, random.normal(n * s.n_heads)), f32({s.n_heads, 1}, a),
           f32({s.n_heads}, random.normal(s.n_heads)), f32({s.n_heads, 1}, random.normal(s.n_heads)),
           i32({kTokens}, tokens.pos), i32({kTokens}, tokens.slot),
           f32({4, s.n_heads, s.state_dim, s.head_dim}, random.normal(4 * state)), runs_tensor(),
           f32({kSlots, 2, kSaved, saved}, random.normal(kSlots * 2 * kSaved * saved))},
          {{DType::kF32, {kTokens, s.n_heads * s.head_dim}}, update(7), update(9)},
          {{"n_heads", s.n_heads}, {"n_groups", s.n_groups}, {"head_dim", s.head_dim}, {"state_dim", s.state_dim}},
          {n, 0}};
}

TEST(SsmScan, MatchesFloat64) {
  for (const ScanShape& s : kScanShapes) {
    Random random(s.state_dim);
    const auto c = scan(s, kTwoSlots, random);
    const auto x = as<float>(c.inputs[0].bytes), dt = as<float>(c.inputs[1].bytes), a = as<float>(c.inputs[2].bytes),
               bias = as<float>(c.inputs[3].bytes), d = as<float>(c.inputs[4].bytes),
               initial = as<float>(c.inputs[7].bytes);
    std::vector<double> state(initial.begin(), initial.end()), expected;
    for (std::size_t t = 0; t < kTwoSlots.pos.size(); ++t)
      for (std::size_t h = 0; h < s.n_heads; ++h) {
        const float* row = &x[t * s.columns()];
        const float* b = row + s.n_heads * s.head_dim + h / (s.n_heads / s.n_groups) * s.state_dim;
        double* S = &state[(std::size_t(kTwoSlots.slot[t]) * s.n_heads + h) * s.state_dim * s.head_dim];
        if (kTwoSlots.pos[t] == 0) std::fill_n(S, s.state_dim * s.head_dim, 0.0);
        const double step = std::log1p(std::exp(double(dt[t * s.n_heads + h]) + bias[h]));
        for (std::size_t i = 0; i < s.head_dim; ++i) {
          const double value = row[h * s.head_dim + i];
          double y = d[h] * value;
          for (std::size_t j = 0; j < s.state_dim; ++j) {
            double& cell = S[j * s.head_dim + i];
            cell = cell * std::exp(step * a[h]) + b[j] * step * value;
            y += b[s.n_groups * s.state_dim + j] * cell;
          }
          expected.push_back(y);
        }
      }
    const auto got = run(c);
    expect_near(got[0], expected, 1e-5, 5e-6, "scan");
    expect_near(got[1], state, 5e-6, 5e-6, "state");
    expect_parts_give_the_whole(c, 7);
  }
}

TEST(SsmDeltaNet, PositionZeroForgetsAnyState) {
  Random random(9);
  const Shape s;
  auto c = delta_net(s, {{0, 1, 2}, {1, 1, 1}}, random);
  const auto first = run(c);
  c.inputs[7].bytes.assign(c.inputs[7].bytes.size(), std::byte{0xff});  // NaN
  EXPECT_EQ(run(c)[0], first[0]);
  auto recurrence = scan({}, {{0, 1, 2}, {1, 1, 1}}, random);
  const auto scanned = run(recurrence)[0];
  recurrence.inputs[7].bytes.assign(recurrence.inputs[7].bytes.size(), std::byte{0xff});
  EXPECT_EQ(run(recurrence)[0], scanned);
  auto convolution = conv(40, 4, {{0, 1}, {1, 1}}, random);
  const auto y = run(convolution)[0];
  convolution.inputs[5].bytes.assign(convolution.inputs[5].bytes.size(), std::byte{0xff});
  EXPECT_EQ(run(convolution)[0], y);
}

// The parts of a recurrent op's case that a step changes.
struct Memory {
  Bytes state, saved;
};

// Runs rows `rows` of a case, which are tokens of slot 1 from position `begin` on, as a step. Returns y.
Bytes step(const Case& c, std::size_t state_input, const std::vector<std::size_t>& rows, std::int32_t begin,
           const StateRun& run_of_slot, Memory& memory) {
  Case part = c;
  part.dims.n_tokens = std::uint32_t(rows.size());
  for (std::size_t i = 0; i < part.inputs.size(); ++i) {
    Tensor& t = part.inputs[i];
    if (t.absent || t.dims[0] != kTokens) continue;
    const std::size_t row = t.bytes.size() / c.dims.n_tokens;
    Bytes chosen;
    for (const std::size_t r : rows)
      chosen.insert(chosen.end(), t.bytes.begin() + std::ptrdiff_t(r * row),
                    t.bytes.begin() + std::ptrdiff_t((r + 1) * row));
    t.bytes = chosen;
  }
  std::vector<std::int32_t> pos(rows.size()), slot(rows.size(), 1);
  std::iota(pos.begin(), pos.end(), begin);
  part.inputs[state_input - 2] = i32({kTokens}, pos);
  part.inputs[state_input - 1] = i32({kTokens}, slot);
  part.inputs[state_input].bytes = memory.state;
  auto runs = all_certain();
  runs[1] = run_of_slot;
  part.inputs[state_input + 1].bytes = bytes_of(runs);
  part.inputs[state_input + 2].bytes = memory.saved;
  auto got = run(part);
  memory = {got[1], got[2]};
  return got[0];
}

// Rows 0, 1, ... of the case are tokens of one slot. Guesses do not change the stored state. Those that were right
// change it in the next step, to the same bits as without guesses.
void expect_guesses_are_replayed(const Case& c, std::size_t state_input) {
  constexpr std::int32_t kBegin = 30;
  constexpr StateRun kPlain{.n_replayed = 0, .n_certain = kAllCertain, .half = 0, .save_at = 0, .save_to = 0};
  const std::size_t entry_bytes = c.inputs[state_input].bytes.size() / 4;
  const auto entry = [&](const Memory& m, std::size_t i) {
    return Bytes(m.state.begin() + std::ptrdiff_t(i * entry_bytes),
                 m.state.begin() + std::ptrdiff_t((i + 1) * entry_bytes));
  };
  const Memory initial{c.inputs[state_input].bytes, c.inputs[state_input + 2].bytes};
  Memory plain = initial;
  std::vector<Bytes> y, states;
  for (std::size_t i = 0; i < 6; ++i) {
    y.push_back(step(c, state_input, {i}, kBegin + std::int32_t(i), kPlain, plain));
    states.push_back(entry(plain, 1));
  }
  const auto rows_of = [&](std::initializer_list<std::size_t> rows) {
    Bytes all;
    for (const std::size_t i : rows) all.insert(all.end(), y[i].begin(), y[i].end());
    return all;
  };
  Memory m = initial;
  // Tokens 0 and 1, and the guesses 2, 3 and 6; 6 is wrong.
  StateRun run{.n_replayed = 0, .n_certain = 2, .half = 0, .save_at = 0, .save_to = 0};
  Bytes got = step(c, state_input, {0, 1, 2, 3, 6}, kBegin, run, m);
  got.resize(4 * y[0].size());
  EXPECT_EQ(got, rows_of({0, 1, 2, 3}));
  EXPECT_EQ(entry(m, 1), states[1]) << "guesses leave the state alone";
  // The right guesses are replayed. The state between them is saved in entry 3. Token 4 follows, then the guess 5.
  run = {.n_replayed = 2, .n_certain = 1, .half = 1, .save_at = kBegin + 3, .save_to = 3};
  got = step(c, state_input, {4, 5}, kBegin + 4, run, m);
  EXPECT_EQ(got, rows_of({4, 5}));
  EXPECT_EQ(entry(m, 3), states[2]) << "the state among the replayed tokens";
  EXPECT_EQ(entry(m, 1), states[4]);
  // The guess 5 was wrong and is not replayed; 5 is computed again, as a token.
  run = {.n_replayed = 0, .n_certain = kAllCertain, .half = 0, .save_at = 0, .save_to = 0};
  EXPECT_EQ(step(c, state_input, {5}, kBegin + 5, run, m), y[5]);
  EXPECT_EQ(entry(m, 1), states[5]);
  for (const std::size_t other : {0, 2}) EXPECT_EQ(entry(m, other), entry(initial, other)) << "other slots";
}

TEST(SsmConv1d, GuessesAreReplayed) {
  for (const std::uint32_t channels : {1u, 255u, 257u})
    for (const std::uint32_t width : {2u, 3u, 4u, 6u}) {
      Random random(channels * width);
      expect_guesses_are_replayed(conv(channels, width, kTwoSlots, random), 5);
      expect_guesses_are_replayed(conv(channels, width, kTwoSlots, random, true, push::kConvNone), 5);
    }
}

TEST(SsmScan, GuessesAreReplayed) {
  for (const ScanShape& s : kScanShapes) {
    Random random(s.head_dim);
    expect_guesses_are_replayed(scan(s, kTwoSlots, random), 7);
  }
}

TEST(SsmDeltaNet, GuessesAreReplayed) {
  for (const Shape& s : {Shape{}, Shape{.tiled = 1}, Shape{1, 1, 1, 1}, Shape{2, 2, 33, 17}, Shape{1, 6, 64, 32, 1}}) {
    Random random(s.v_dim);
    expect_guesses_are_replayed(delta_net(s, kTwoSlots, random), 7);
  }
}

}  // namespace
}  // namespace zinc_rt::kernel_test
