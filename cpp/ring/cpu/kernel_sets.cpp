#include "ring/cpu/kernel_sets.h"

#include <fmt/format.h>

#include "base/error.h"
#if defined(ZRT_CPU_SIMD) || defined(ZRT_CPU_SIMD_NEON) || defined(ZRT_CPU_SIMD_WASM)
#include "kernels/cpu_simd/units.h"
#endif

namespace zinc_rt::ring {
namespace {

// A variant of a kernel set for arithmetic `fast`, and a function that tells whether this processor can run it.
struct FastForm {
  cpu::KernelSet set = {};
  bool (*runs_here)() = nullptr;
};
struct Entry {
  cpu::KernelSet set;
  bool (*runs_here)();
  Int8Products int8_products = nullptr;
  FastForm fast[2] = {};  // forms of the set for arithmetic `fast`, the faster form first
};

#if defined(ZRT_CPU_SIMD_VNNI)
bool has_amx_int8() {
  static const bool kHas = cpu_simd::has_amx_int8();
  return kHas;
}
bool has_amx_bf16() {
  static const bool kHas = cpu_simd::has_amx_bf16();
  return kHas;
}
#endif

// kSets lists all kernel sets of this build, the fastest first.
const Entry kSets[] = {
#if defined(ZRT_CPU_SIMD_VNNI)
    {{"amx_int8", true, cpu_simd::linear_rows_amx_int8, cpu_simd::attend_avx512, &cpu_simd::kRowsAvx512},
     has_amx_int8,
     cpu_simd::int8_products_avx512_vnni,
     {{{"amx_int8+amx_bf16", true, cpu_simd::linear_rows_amx_bf16, cpu_simd::attend_avx512, &cpu_simd::kRowsAmxBf16},
       has_amx_bf16},
      {{"amx_int8+avx512_bf16", true, cpu_simd::linear_rows_amx_int8, cpu_simd::attend_avx512,
        &cpu_simd::kRowsAvx512Bf16},
       cpu_simd::has_avx512_bf16}}},
    {{"avx512_vnni", true, cpu_simd::linear_rows_avx512_vnni, cpu_simd::attend_avx512, &cpu_simd::kRowsAvx512},
     cpu_simd::has_avx512_vnni,
     cpu_simd::int8_products_avx512_vnni,
     {{{"avx512_vnni+avx512_bf16", true, cpu_simd::linear_rows_avx512_vnni, cpu_simd::attend_avx512,
        &cpu_simd::kRowsAvx512Bf16},
       cpu_simd::has_avx512_bf16}}},
    {{"avx_vnni", true, cpu_simd::linear_rows_avx_vnni, cpu_simd::attend_avx_vnni, &cpu_simd::kRowsAvx2},
     cpu_simd::has_avx_vnni,
     cpu_simd::int8_products_avx_vnni},
#endif
#if defined(ZRT_CPU_SIMD)
    {{"avx2", true, cpu_simd::linear_rows_avx2, cpu_simd::attend_avx2, &cpu_simd::kRowsAvx2},
     cpu_simd::has_avx2,
     cpu_simd::int8_products_avx2},
#endif
#if defined(ZRT_CPU_SIMD_NEON)
    {{"neon_i8mm", true, cpu_simd::linear_rows_neon_i8mm, cpu_simd::attend_neon, &cpu_simd::kRowsNeon},
     cpu_simd::has_neon_i8mm},
    {{"neon_dotprod", true, cpu_simd::linear_rows_neon_dotprod, cpu_simd::attend_neon, &cpu_simd::kRowsNeon},
     cpu_simd::has_neon_dotprod},
    {{"neon", true, cpu_simd::linear_rows_neon, cpu_simd::attend_neon, &cpu_simd::kRowsNeon}, cpu_simd::has_neon},
#endif
#if defined(ZRT_CPU_SIMD_WASM)
    {{"wasm128", true, cpu_simd::linear_rows_wasm128, cpu_simd::attend_wasm128, &cpu_simd::kRowsWasm128},
     cpu_simd::has_wasm128},
#endif
    {{"ref"}, [] { return true; }},
};

}  // namespace

Result<const cpu::KernelSet*> find_kernel_set(const std::string& name) {
  std::string usable;
  for (const Entry& entry : kSets) {
    if (!entry.runs_here()) continue;
    if (name.empty() || name == "auto" || name == entry.set.name) return &entry.set;
    usable += (usable.empty() ? "" : ", ") + std::string(entry.set.name);
  }
  return fail(StatusCode::kUnavailable, "[t_cpu] no kernel set \"{}\" runs on this machine; auto, {} do", name, usable);
}

const cpu::KernelSet* fast_form_of(const cpu::KernelSet& set) {
  for (const Entry& entry : kSets) {
    if (&entry.set != &set) continue;
    for (const FastForm& form : entry.fast)
      if (form.runs_here != nullptr && form.runs_here()) return &form.set;
  }
  return nullptr;
}

Int8Products int8_products_of(const cpu::KernelSet& set) {
  for (const Entry& entry : kSets)
    if (&entry.set == &set) return entry.int8_products;
  return nullptr;
}

std::string describe_kernel_sets() {
  std::string chosen, others, absent;
  const cpu::KernelSet* fast = fast_form_of(**find_kernel_set("auto"));
  for (const Entry& entry : kSets) {
    std::string& list = !entry.runs_here() ? absent : chosen.empty() ? chosen : others;
    list += (list.empty() ? "" : ", ") + std::string(entry.set.name);
  }
  return fmt::format("kernels {}, in arithmetic fast {}{}{}", chosen, fast != nullptr ? fast->name : "the same",
                     others.empty() ? "" : "; also run here: " + others,
                     absent.empty() ? "" : "; this processor or system lacks: " + absent);
}

std::string list_kernel_sets() {
  std::string names;
  for (const Entry& entry : kSets) names += (names.empty() ? "kernels " : ", ") + std::string(entry.set.name);
  return names;
}

}  // namespace zinc_rt::ring
