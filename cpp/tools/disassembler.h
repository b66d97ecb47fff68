// Disassembler turns AMD GPU instructions into text, with libLLVM, which is loaded on first use.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "zinc_rt/status.h"

namespace zinc_rt::tools {

class Disassembler {
 public:
  // `processor` is a name such as "gfx1201". Errors: kUnavailable if no libLLVM is installed that is at least as new as
  // the compiler of the kernels.
  static Result<Disassembler> open(const std::string& processor);
  Disassembler(Disassembler&& other) noexcept;
  Disassembler& operator=(Disassembler&& other) = delete;
  ~Disassembler();

  struct Instruction {
    std::string text;
    std::size_t bytes = 0;  // 0 if the bytes are not an instruction
  };
  Instruction at(std::span<const std::byte> code, std::uint64_t address) const;

 private:
  Disassembler() = default;
  void* context_ = nullptr;
  void (*dispose_)(void*) = nullptr;
  std::size_t (*disassemble_)(void*, std::uint8_t*, std::uint64_t, std::uint64_t, char*, std::size_t) = nullptr;
};

}  // namespace zinc_rt::tools
