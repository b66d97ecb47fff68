// zinc-rt asm: shows the resources of a compute unit that AMD kernels need, and the symbols of .zrt files.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/print.h"
#include "ring/amd/code_object.h"
#include "tools/device_checks.h"
#include "tools/disassembler.h"
#include "tools/table.h"

namespace zinc_rt::tools {
namespace {

struct AsmOptions {
  std::string file, kernel, tier, target = "gfx1201", out;
  std::vector<std::string> patches;
  bool text = false, json = false;
};

// A class of instructions, by how their names begin. The first row that matches counts.
struct ClassRow {
  std::string_view prefix;
  const char* name;
};
constexpr ClassRow kInstructionClasses[] = {{"v_wmma", "wmma"},
                                            {"v_swmma", "wmma"},
                                            {"v_exp_", "approximate"},
                                            {"v_log_", "approximate"},
                                            {"v_rcp_", "approximate"},
                                            {"v_rsq_", "approximate"},
                                            {"v_sqrt_", "approximate"},
                                            {"v_sin_", "approximate"},
                                            {"v_cos_", "approximate"},
                                            {"v_", "valu"},
                                            {"s_load", "smem"},
                                            {"s_buffer", "smem"},
                                            {"s_wait", "wait"},
                                            {"s_", "salu"},
                                            {"ds_", "lds"},
                                            {"global_", "vmem"},
                                            {"buffer_", "vmem"},
                                            {"flat_", "vmem"},
                                            {"scratch_", "scratch"}};
constexpr const char* kColumns[] = {"valu", "wmma", "approximate", "salu", "smem", "vmem", "lds", "wait", "scratch"};

// Limits per SIMD (LDS: per compute unit) of RDNA3 and RDNA4 cards with 192 KiB of registers, for waves of 32 lanes.
constexpr std::uint32_t kVgprsOfASimd = 1536, kVgprStep = 24, kMostWaves = 16, kLdsOfAUnit = 64 << 10;
std::uint32_t waves_by_vgprs(std::uint32_t n) {
  return std::min(kMostWaves, kVgprsOfASimd / ((n + kVgprStep - 1) / kVgprStep * kVgprStep));
}

// Counts the instructions from `first` on, by class, until the code ends or the next kernel begins.
std::map<std::string, std::uint64_t> count(const Disassembler& disassembler, std::span<const std::byte> image,
                                           std::uint64_t first, std::uint64_t end, bool text) {
  std::map<std::string, std::uint64_t> counts;
  for (std::uint64_t at = first; at < end;) {
    const auto instruction = disassembler.at(image.subspan(at, end - at), at);
    if (instruction.bytes == 0 || instruction.text.starts_with("s_code_end")) break;
    if (text) print_out("{:8x}  {}\n", at - first, instruction.text);
    const auto* row = std::ranges::find_if(kInstructionClasses,
                                           [&](const ClassRow& c) { return instruction.text.starts_with(c.prefix); });
    ++counts[row == std::end(kInstructionClasses) ? "other" : row->name];
    ++counts["all"];
    counts["bytes"] += instruction.bytes;
    at += instruction.bytes;
  }
  return counts;
}

class Listing {
 public:
  explicit Listing(const AsmOptions& options) : options_(options) {
    table_.push_back({"KERNEL", "VGPRS", "WAVES", "LDS", "GROUPS", "BYTES", "ALL"});
    for (const char* column : kColumns) table_[0].push_back(column);
  }
  Status add(std::span<const std::byte> elf, std::string_view name, const std::string& target) {
    ZRT_TRY(auto object, ring::read_code_object(elf, name));
    ZRT_TRY(const auto disassembler, Disassembler::open(target));
    std::ranges::sort(object.kernels, {}, &ring::KernelCode::entry);
    for (std::size_t i = 0; i < object.kernels.size(); ++i) {
      const auto& kernel = object.kernels[i];
      if (!options_.kernel.empty() && kernel.name.find(options_.kernel) == std::string::npos) continue;
      const std::uint64_t end = i + 1 < object.kernels.size() ? object.kernels[i + 1].entry : object.image.size();
      if (options_.text) print_out("{}:\n", kernel.name);
      auto counts = count(disassembler, object.image, kernel.entry, end, options_.text);
      // Number of workgroups that fit into a compute unit's LDS; 0 if the kernel uses no LDS.
      const std::uint32_t groups = kernel.lds_bytes == 0 ? 0 : kLdsOfAUnit / kernel.lds_bytes;
      std::vector<std::string> row{kernel.name,
                                   std::to_string(kernel.n_vgprs()),
                                   std::to_string(waves_by_vgprs(kernel.n_vgprs())),
                                   std::to_string(kernel.lds_bytes),
                                   groups == 0 ? "-" : std::to_string(groups),
                                   std::to_string(counts["bytes"]),
                                   std::to_string(counts["all"])};
      nlohmann::ordered_json json{{"kernel", kernel.name},
                                  {"vgprs", kernel.n_vgprs()},
                                  {"waves_by_vgprs", waves_by_vgprs(kernel.n_vgprs())},
                                  {"lds_bytes", kernel.lds_bytes},
                                  {"scratch_bytes", 0},
                                  {"code_bytes", counts["bytes"]},
                                  {"instructions", counts["all"]}};
      for (const char* column : kColumns) {
        row.push_back(std::to_string(counts[column]));
        json[column] = counts[column];
      }
      table_.push_back(std::move(row));
      list_.push_back(std::move(json));
    }
    return {};
  }
  int show() const {
    if (options_.json)
      print_out("{}\n", list_.dump());
    else
      print_out(
          "{}{}\n", as_text(table_),
          "WAVES: of a SIMD, by its registers; GROUPS: of a compute unit, by LDS. Scratch is 0: others are refused.");
    return kDone;
  }

 private:
  const AsmOptions& options_;
  Table table_;
  nlohmann::ordered_json list_ = nlohmann::ordered_json::array();
};

Status patch(kernel::ZrtFile& file, const std::string& text) {
  const auto equals = text.rfind('=');
  char* end = nullptr;
  const std::uint64_t value = equals == std::string::npos ? 0 : std::strtoull(text.c_str() + equals + 1, &end, 0);
  if (end == nullptr || *end != '\0' || end == text.c_str() + equals + 1 || value > UINT32_MAX)
    return fail(StatusCode::kInvalidArgument, "--patch is {}, SYMBOL=NUMBER is wanted, as dim:M=64", text);
  return file.patch(text.substr(0, equals), static_cast<std::uint32_t>(value));
}

Result<int> show_zrt(const AsmOptions& o, std::span<const std::byte> bytes) {
  ZRT_TRY(auto file, kernel::read_zrt(bytes));
  for (const auto& text : o.patches) ZRT_CHECK_OK(patch(file, text));
  if (!o.out.empty()) {
    const auto patched = kernel::write_zrt(file);
    ZRT_CHECK_OK(write_whole(o.out, std::string(reinterpret_cast<const char*>(patched.data()), patched.size())));
  }
  nlohmann::ordered_json symbols = nlohmann::ordered_json::object();
  Table table{{"SYMBOL", "AT", "VALUE"}};
  for (const auto& symbol : file.symbols) {
    std::uint32_t value = 0;
    std::memcpy(&value, file.code.data() + symbol.code_offset, sizeof(value));
    symbols[symbol.name] = value;
    table.push_back({symbol.name, std::to_string(symbol.code_offset),
                     value == kernel::kPlaceholder ? "not patched" : std::to_string(value)});
  }
  if (o.json) {
    print_out("{}\n", nlohmann::ordered_json{{"kernel", file.name},
                                             {"target", to_string(file.target)},
                                             {"code_bytes", file.code.size()},
                                             {"buffers", file.buffer_count},
                                             {"push_bytes", file.push_const_bytes},
                                             {"vgprs", file.vgpr_count},
                                             {"lds_bytes", file.lds_bytes},
                                             {"symbols", symbols}}
                          .dump());
    return kDone;
  }
  print_out("kernel {} for {}: {} bytes of code, {} buffers, {} bytes of push constants, workgroup {} x {} x {}\n",
            file.name, to_string(file.target), file.code.size(), file.buffer_count, file.push_const_bytes,
            file.workgroup_size[0], file.workgroup_size[1], file.workgroup_size[2]);
  print_out("{}", as_text(table));
  return kDone;
}

Result<int> show_images(const AsmOptions& o) {
  Listing listing(o);
  bool is_any = false;
  for (const ring::Tier* tier : ring::tiers()) {
    if (tier->diagnostics == nullptr || (!o.tier.empty() && tier->name != o.tier) || is_any) continue;
    for (const auto& image : tier->diagnostics->images()) {
      if (to_string(image.target) != o.target) continue;
      ZRT_CHECK_OK(listing.add(image.code, image.name, o.target));
      is_any = true;
    }
  }
  if (!is_any) return fail(StatusCode::kUnavailable, "this build has no kernels for {}; name a file", o.target);
  return listing.show();
}

Result<int> show(const AsmOptions& o) {
  if (o.file.empty() && !o.patches.empty())
    return fail(StatusCode::kInvalidArgument, "--patch is for .zrt files, and none is named");
  if (o.file.empty()) return show_images(o);
  ZRT_TRY(const auto file, MappedFile::open(o.file));
  std::uint32_t magic = 0;
  if (file.bytes().size() >= sizeof(magic)) std::memcpy(&magic, file.bytes().data(), sizeof(magic));
  if (magic == kernel::kZrtMagic) return show_zrt(o, file.bytes());
  if (!o.patches.empty()) return fail(StatusCode::kInvalidArgument, "--patch is for .zrt files; {} is none", o.file);
  Listing listing(o);
  ZRT_CHECK_OK(listing.add(file.bytes(), o.file, o.target));
  ZRT_CHECK_OK(file.is_whole());
  return listing.show();
}

}  // namespace

void add_asm(CLI::App& app, int& exit) {
  auto o = std::make_shared<AsmOptions>();
  auto& command = *app.add_subcommand("asm", "what AMD kernels take of a compute unit; symbols of .zrt files");
  command.footer(
      "Without a file: the kernels of this build. With a code object (.hsaco): its kernels. Registers and LDS bound "
      "how\n"
      "many waves run beside each other; instructions are counted as they stand in the code, by libLLVM 22, not as "
      "they\n"
      "run. With a .zrt file: its symbols, which --patch sets.\n"
      "Example: zinc-rt asm --kernel linear\n"
      "A file: zinc-rt asm kernel.hsaco --target gfx1100 --text | less\n"
      "A symbol: zinc-rt asm add.zrt --patch dim:N=64 -o add64.zrt");
  command.add_option("FILE", o->file, "a .zrt file or a code object");
  command.add_option("--kernel", o->kernel, "only kernels whose names have this in them");
  command.add_option("--target", o->target, "of the code: gfx1201, gfx1151 or gfx1100")
      ->check(CLI::IsMember({"gfx1201", "gfx1151", "gfx1100"}))
      ->capture_default_str();
  command.add_option("--tier", o->tier, "whose kernels, without a file");
  command.add_option("--patch", o->patches, "SYMBOL=NUMBER, of a .zrt file; several times");
  command.add_option("-o,--out", o->out, "the patched .zrt file");
  command.add_flag("--text", o->text, "the instructions, too");
  command.add_flag("--json", o->json, "a JSON array, an object a kernel");
  command.callback([o, &exit] {
    const auto done = show(*o);
    exit = done ? *done : report(done.error());
  });
}

}  // namespace zinc_rt::tools
