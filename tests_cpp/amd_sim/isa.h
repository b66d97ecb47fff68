// An instruction of gfx11 or gfx12, taken from what LLVM's disassembler prints for it.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace amd_sim {

// What a device would leave undefined, or the emulator does not know.
enum FaultCode : std::uint8_t {
  kMalformed,    // packets or instructions that are none, or that the emulator does not know
  kMemoryFault,  // an address outside the memory, a write to what is read-only
  kHang,
  kHazard,  // a missing wait, a race, a register that the wave does not have, packets that forget a cache
};
struct Fault : std::runtime_error {
  FaultCode code;
  std::uint64_t va;  // of a memory fault
  Fault(FaultCode c, const std::string& what, std::uint64_t at = 0) : std::runtime_error(what), code(c), va(at) {}
};

enum class Kind : std::uint8_t { none, vgpr, sgpr, imm, fimm };
constexpr std::uint16_t kVcc = 106, kTtmp = 108, kNull = 124, kM0 = 125, kExec = 126, kScc = 253;

struct Operand {
  Kind kind = Kind::none;
  std::uint16_t reg = 0;
  std::uint8_t n = 1;                                            // registers in the range
  bool neg = false, abs = false, literal = false, high = false;  // high: the upper half of a register (v3.h)
  std::uint64_t imm = 0;
  double f = 0;
};

enum class Dpp : std::uint8_t {
  none,
  quad_perm,
  row_shl,
  row_shr,
  row_ror,
  row_mirror,
  row_half_mirror,
  row_share,
  row_xmask,
  dpp8
};

struct Wave;
struct Inst;
using Run = void (*)(Wave&, const Inst&);

// What an instruction costs, for counting.
enum Class : std::uint8_t {
  kSalu,
  kValu,
  kTrans,
  kWmma,
  kSmem,
  kVload,
  kVstore,
  kLds,
  kBranch,
  kWait,
  kOther,
  kClasses
};

// What an instruction is to the hazard of scalar registers (hazards.cpp).
struct SgprRange {
  int first, n;
};
struct HazardInfo {
  enum Kind : std::uint8_t { kNothing, kClears, kWaits, kVector, kScalar } kind = kNothing;
  bool is_jump = false, is_call = false;
  std::vector<SgprRange> uses, defs;
};

struct Inst {
  std::uint64_t pc = 0;
  std::uint32_t size = 0, word0 = 0;
  std::string text, full, name;  // full: as printed; name: without the suffix of the encoding
  std::vector<Operand> op;
  std::int32_t offset = 0, offset0 = 0, offset1 = 0;
  bool clamp = false, returns = false, offen = false;
  int omod = 0;  // 1: times 2, 2: times 4, 3: half
  std::uint32_t op_sel = 0, op_sel_hi = 0, neg_lo = 0, neg_hi = 0;
  bool has_op_sel_hi = false;
  Dpp dpp = Dpp::none;
  std::uint8_t sel[8] = {}, row_mask = 15, bank_mask = 15;
  bool bound_ctrl = false, fi = false;
  std::unique_ptr<Inst> second;  // VOPD
  Run run = nullptr;
  const void* table = nullptr;  // of a generic VALU op
  Class cls = kOther;
  bool approximate =
      false;  // its result is not rounded rightly on hardware, so the emulator's may differ in the last bit
  HazardInfo hazard;
  mutable const Inst* following = nullptr;  // behind it in memory, once that was fetched
};

// Parses one line of the disassembler ("v_add_f32_e32 v0, s1, v2").
std::unique_ptr<Inst> parse(const std::string& text, std::uint64_t pc, std::uint32_t size, std::uint32_t word0);
// Finds the function that executes it. Throws kMalformed for an instruction that is not known.
void bind(Inst& inst);
HazardInfo hazard_of(const Inst& inst);

// libLLVM's disassembler, loaded at run time: no headers, no link to it.
class Disassembler {
 public:
  explicit Disassembler(const std::string& mcpu);
  Disassembler(const Disassembler&) = delete;
  Disassembler& operator=(const Disassembler&) = delete;
  ~Disassembler();
  std::unique_ptr<Inst> at(const std::uint8_t* bytes, std::uint64_t available, std::uint64_t pc);

 private:
  void* context_ = nullptr;
  void (*dispose_)(void*) = nullptr;
  std::size_t (*disassemble_)(void*, std::uint8_t*, std::uint64_t, std::uint64_t, char*, std::size_t) = nullptr;
};

}  // namespace amd_sim
