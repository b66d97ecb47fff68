// The kernels that know weight formats, each format against the reference bit for bit: QUANTIZE, LINEAR, EMBED.
#include <limits>

#include "kernels/cpu/ops.h"
#include "kernels/cpu/quant/quant.h"
#include "kernels/vulkan/push.h"
#include "same_bits.h"
#include "tests_cpp/executor/random_weights.h"
#include "vulkan/model_memory.h"

namespace zinc_rt::vulkan {
namespace {

class Products : public ::testing::Test {
 protected:
  void SetUp() override {
    ZRT_NEED_VULKAN();
    device_ = open_device();
    ASSERT_TRUE(device_ && device_->free_all());
  }
  Buffer upload(std::span<const std::byte> bytes) {
    const auto buffer = device_->allocate(std::max<std::size_t>(bytes.size(), 4), Heap::kHostVisible);
    EXPECT_TRUE(buffer);
    std::memcpy(buffer->host, bytes.data(), bytes.size());
    return *buffer;
  }
  template <class Push>
  void run(const KernelKey& kernel, const Push& push, std::uint32_t x, std::uint32_t y) {
    const std::uint32_t counts[3] = {x, y, 1};
    const Buffer grid = upload(std::as_bytes(std::span(counts)));
    const Status made = device_->make_pipelines({&kernel, 1});
    ASSERT_TRUE(made) << made.error().message;
    const auto commands = device_->record(
        [&](Recorder& recorder) { recorder.dispatch(device_->pipeline(kernel), push, grid.handle, 0); });
    ASSERT_TRUE(commands);
    ASSERT_TRUE(device_->run({&*commands, 1}));
  }
  std::vector<float> floats(const Buffer& buffer, std::size_t n) const {
    const auto* values = reinterpret_cast<const float*>(buffer.host);
    return {values, values + n};
  }
  // The device's product of every row of x with every row of w, in each way that the kernel has.
  void expect_product(DType dtype, const Shape& s, bool is_float_x);
  std::shared_ptr<Device> device_;
};

constexpr std::uint32_t ceil_div(std::uint32_t n, std::uint32_t size) {
  return (n + size - 1) / size;
}
bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// Rows of blocks as the backend's kernels have them: codes, then what each block has beside them.
std::vector<std::byte> in_planes(const std::vector<std::byte>& rows, DType act, const Shape& s) {
  const std::size_t block = traits(act).block_bytes, n_codes = traits(act).block_elems,
                    n_planes = act == DType::kQ16A256 ? 2 : 1, head = block - n_planes * n_codes,
                    n_blocks = s.k / n_codes, pitch = activation_row_bytes(act, s.k);
  std::vector<std::byte> planes(s.n * pitch);
  for (std::size_t t = 0; t < s.n; ++t)
    for (std::size_t b = 0; b < n_blocks; ++b) {
      const std::byte* from = rows.data() + (t * n_blocks + b) * block;
      std::byte* to = planes.data() + t * pitch;
      for (std::size_t plane = 0; plane < n_planes; ++plane)
        std::memcpy(to + plane * s.k + b * n_codes, from + head + plane * n_codes, n_codes);
      const std::size_t n_digits = act == DType::kQ8A256 ? s.k / 8 : 0;
      std::memcpy(to + n_planes * s.k + n_digits + b * head, from, head);
      for (std::size_t i = 0; n_digits > 0 && i < 16; ++i) {
        std::int16_t sum;
        std::memcpy(&sum, from + sizeof(float) + 2 * i, sizeof(sum));
        to[s.k + 32 * b + i] = static_cast<std::byte>(sum & 255);
        to[s.k + 32 * b + 16 + i] = static_cast<std::byte>((sum + 128) >> 8 & 255);
      }
    }
  return planes;
}

void Products::expect_product(DType dtype, const Shape& s, bool is_float_x) {
  std::mt19937 rng(static_cast<unsigned>(dtype) + 1);
  const auto w = random_blocks(dtype, s, rng);
  auto x = random_rows(s, rng);
  // From the second group on every third row is so small that its products take the way of numbers that are not usual.
  for (std::uint32_t t = 1; t < s.n; t += 3)
    for (std::uint32_t i = 256; i < s.k; ++i) x[t * s.k + i] *= 0x1p-70f;
  const auto bias = random_rows({s.m, s.m, 1}, rng);
  const cpu::QuantFormat& format = *cpu::quant_format(dtype);
  const DType act = is_float_x ? DType::kF32 : format.act;
  const std::size_t x_row = row_bytes(act, s.k), w_row = row_bytes(dtype, s.k);
  std::vector<std::byte> packed(s.n * x_row);
  for (std::uint32_t t = 0; t < s.n; ++t) {
    if (act == DType::kF32)
      std::memcpy(packed.data() + t * x_row, x.data() + t * s.k, x_row);
    else
      cpu::quantize_row(x.data() + t * s.k, packed.data() + t * x_row, s.k, act);
  }
  std::vector<float> wanted;
  for (std::uint32_t t = 0; t < s.n; ++t)
    for (std::uint32_t m = 0; m < s.m; ++m) {
      const auto *row = w.data() + m * w_row, *x_at = packed.data() + t * x_row;
      const float v = act == DType::kF32 ? cpu::dot_f32(format, row, reinterpret_cast<const float*>(x_at), s.k)
                                         : format.dot(row, x_at, s.k);
      wanted.push_back(v + bias[m]);
    }
  const auto pitch = static_cast<std::uint32_t>(activation_row_bytes(act, s.k));
  Buffer x_buffer = upload(std::as_bytes(std::span(x)));
  if (act != DType::kF32) {
    const auto planes = in_planes(packed, act, s);
    // Matrices may read rows past the last one.
    const Buffer quantized =
        upload(std::vector<std::byte>(std::size_t{pitch} * ceil_div(s.n, push::kMatrixTokens) * push::kMatrixTokens));
    run({"quantize", {static_cast<std::uint32_t>(act)}},
        push::Quantize{x_buffer.address, quantized.address, s.k, pitch}, ceil_div(s.k, 4 * push::kWidth), s.n);
    EXPECT_EQ(std::memcmp(quantized.host, planes.data(), planes.size()), 0) << "quantized rows";
    x_buffer = quantized;
  }
  const Buffer w_buffer = upload(w), b_buffer = upload(std::as_bytes(std::span(bias))),
               n_rows = upload(std::as_bytes(std::span(&s.n, 1)));
  const auto format_number = static_cast<std::uint32_t>(dtype), x_number = static_cast<std::uint32_t>(act);
  struct Way {
    KernelKey kernel;
    std::uint32_t x, y;  // the grid
  };
  std::vector<Way> ways{
      {{"linear_tiled", {format_number, x_number}}, ceil_div(s.m, push::kWidth), ceil_div(s.n, push::kTile)}};
  if (traits(act).block_elems != 256) {
    ways.push_back({{"linear", {format_number, x_number}},
                    s.n,
                    ceil_div(s.m, push::kLinearWidth / device_->info().subgroup_size * push::kLinearRows)});
  } else {
    const std::uint32_t n_w = ceil_div(s.m, push::kRowRows);
    for (const std::uint32_t width : {32u, push::kRowWidth})
      ways.push_back({{"linear_row", {format_number, x_number, width, 1}}, s.n, n_w});
    ways.push_back({{"linear_row", {format_number, x_number, push::kRowWidth, push::kRowTokens}},
                    ceil_div(s.n, push::kRowTokens),
                    n_w});
    std::vector<const char*> of_matrices{"linear_matrix_by_hand"};
    if (device_->info().has_matrices) of_matrices.push_back("linear_matrix");
    for (const char* name : of_matrices)
      ways.push_back(
          {{name, {format_number, x_number}}, ceil_div(s.n, push::kMatrixTokens), ceil_div(s.m, push::kMatrixRows)});
  }
  for (const Way& way : ways) {
    const Buffer y = upload(std::vector<std::byte>(wanted.size() * sizeof(float)));
    run(way.kernel,
        push::Linear{x_buffer.address, w_buffer.address, b_buffer.address, y.address, n_rows.address, s.k, s.m, pitch,
                     static_cast<std::uint32_t>(w_row)},
        way.x, way.y);
    EXPECT_TRUE(same_bits(floats(y, wanted.size()), wanted))
        << to_string(dtype) << ", " << way.kernel.name << ", width " << s.k;
  }
  std::vector<float> widened(std::size_t{s.m} * s.k);
  for (std::uint32_t m = 0; m < s.m; ++m)
    format.dequantize_row(w.data() + m * w_row, widened.data() + std::size_t{m} * s.k, s.k);
  std::vector<std::int32_t> ids(s.m);
  for (std::uint32_t m = 0; m < s.m; ++m) ids[m] = static_cast<std::int32_t>(m);
  const Buffer id_buffer = upload(std::as_bytes(std::span(ids))),
               y = upload(std::vector<std::byte>(widened.size() * sizeof(float)));
  run({"embed", {format_number}},
      push::Embed{id_buffer.address, w_buffer.address, y.address, s.k, static_cast<std::uint32_t>(w_row), 1.0f},
      ceil_div(s.k, push::kWidth), s.m);
  EXPECT_TRUE(same_bits(floats(y, widened.size()), widened)) << to_string(dtype) << " widened";
}

// The formats that kernels/vulkan has: those up to FIXED16 in the order of DType.
std::vector<const cpu::QuantFormat*> vulkan_formats() {
  std::vector<const cpu::QuantFormat*> formats;
  for (const cpu::QuantFormat* format : cpu::quant_formats())
    if (format->dtype <= DType::kFixed16) formats.push_back(format);
  return formats;
}

TEST_F(Products, OfEveryFormat) {
  for (const cpu::QuantFormat* format : vulkan_formats()) {
    expect_product(format->dtype, {67, 1280, 11}, false);
    if (traits(format->act).block_elems == 256) {
      expect_product(format->dtype, {130, 512, 141}, false);
      expect_product(format->dtype, {6, 256 * 17, 1}, false);
    }
    if (traits(format->dtype).block_elems == 32) expect_product(format->dtype, {3, 288, 1}, false);
    if (traits(format->dtype).block_elems == 1) expect_product(format->dtype, {3, 70, 1}, false);
  }
}

TEST_F(Products, OfFloatRows) {
  for (const cpu::QuantFormat* format : vulkan_formats()) expect_product(format->dtype, {5, 512, 2}, true);
}

// The first of equals, both zeros being equal; a NaN never; none where it is no finite number.
TEST_F(Products, TheLargestLogit) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInfinity = std::numeric_limits<float>::infinity();
  constexpr std::uint32_t kWidth = 9001;  // more than a workgroup reads at once, and no multiple of anything
  struct Row {
    std::vector<std::pair<std::size_t, float>> values;  // the others are -3
    std::int32_t wanted;
  };
  const Row rows[] = {
      {{{8999, 2}, {9000, 2}}, 8999},        {{{17, kNan}, {600, -2}}, 600}, {{{0, kNan}}, 1},
      {{{5000, -0.0f}, {7000, 0.0f}}, 5000}, {{{4000, kInfinity}}, -1},      {{{9000, 0x1p-149f}, {3, 0}}, 9000}};
  std::vector<float> x;
  for (const Row& row : rows) {
    std::vector<float> logits(kWidth, -3);
    for (const auto& [at, value] : row.values) logits[at] = value;
    x.insert(x.end(), logits.begin(), logits.end());
  }
  for (const float all : {kNan, -kInfinity}) x.insert(x.end(), kWidth, all);
  constexpr std::uint32_t kRows = std::size(rows) + 2;
  const Buffer from = upload(std::as_bytes(std::span(x))), to = upload(std::vector<std::byte>(kRows * sizeof(int)));
  run({"argmax", {}}, push::Argmax{from.address, to.address, kWidth}, 1, kRows);
  std::int32_t got[kRows];
  std::memcpy(got, to.host, sizeof(got));
  for (std::uint32_t r = 0; r < kRows; ++r) EXPECT_EQ(got[r], r < std::size(rows) ? rows[r].wanted : -1) << "row " << r;
}

}  // namespace
}  // namespace zinc_rt::vulkan
