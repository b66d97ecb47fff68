#include "tools/disassembler.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace zinc_rt::tools {
namespace {

// Older versions of LLVM misread 16-bit registers of gfx11.
constexpr const char* kLibraries[] = {"libLLVM.so.22.1", "libLLVM-22.so.1", "libLLVM-22.so"};

}  // namespace

Result<Disassembler> Disassembler::open(const std::string& processor) {
  void* library = nullptr;
  for (const char* name : kLibraries)
    if (library == nullptr) library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return fail(StatusCode::kUnavailable, "no {}, whose disassembler counts instructions (package libllvm22)",
                kLibraries[0]);
  for (const char* name :
       {"LLVMInitializeAMDGPUTargetInfo", "LLVMInitializeAMDGPUTargetMC", "LLVMInitializeAMDGPUDisassembler"})
    reinterpret_cast<void (*)()>(::dlsym(library, name))();
  using Create = void* (*)(const char*, const char*, void*, int, void*, void*);
  Disassembler made;
  made.disassemble_ = reinterpret_cast<decltype(disassemble_)>(::dlsym(library, "LLVMDisasmInstruction"));
  made.dispose_ = reinterpret_cast<decltype(dispose_)>(::dlsym(library, "LLVMDisasmDispose"));
  made.context_ = reinterpret_cast<Create>(::dlsym(library, "LLVMCreateDisasmCPU"))(
      "amdgcn-amd-amdhsa", processor.c_str(), nullptr, 0, nullptr, nullptr);
  if (made.context_ == nullptr) return fail(StatusCode::kUnavailable, "libLLVM knows no processor {}", processor);
  return made;
}

Disassembler::Disassembler(Disassembler&& other) noexcept
    : context_(std::exchange(other.context_, nullptr)), dispose_(other.dispose_), disassemble_(other.disassemble_) {}

Disassembler::~Disassembler() {
  if (context_ != nullptr) dispose_(context_);
}

Disassembler::Instruction Disassembler::at(std::span<const std::byte> code, std::uint64_t address) const {
  constexpr std::size_t kLongest = 32;
  std::uint8_t copy[kLongest] = {};
  char text[512] = {};
  const std::size_t n = std::min(code.size(), kLongest);
  std::memcpy(copy, code.data(), n);
  const std::size_t bytes = disassemble_(context_, copy, n, address, text, sizeof(text));
  return {text + std::strspn(text, "\t "), bytes};
}

}  // namespace zinc_rt::tools
