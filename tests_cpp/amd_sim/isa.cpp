#include "amd_sim/isa.h"

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>

namespace amd_sim {
namespace {

std::vector<std::string> split(const std::string& s, char at) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (const char c : s) {
    if (c == '[' || c == '(') ++depth;
    if (c == ']' || c == ')') --depth;
    if (c == at && depth == 0) {
      parts.emplace_back();
    } else if (c != ' ' || !parts.back().empty() || at == ' ') {
      parts.back() += c;
    }
  }
  for (auto& p : parts)
    while (!p.empty() && p.back() == ' ') p.pop_back();
  return parts;
}

bool begins(const std::string& s, const char* with) {
  return s.rfind(with, 0) == 0;
}

std::vector<int> numbers(const std::string& s) {  // of "[1,0,3]"
  std::vector<int> out;
  for (const auto& p : split(s.substr(1, s.size() - 2), ',')) out.push_back(std::atoi(p.c_str()));
  return out;
}

std::uint32_t bits(const std::string& s) {
  std::uint32_t mask = 0;
  const auto list = numbers(s);
  for (std::size_t i = 0; i < list.size(); ++i) mask |= static_cast<std::uint32_t>(list[i] & 1) << i;
  return mask;
}

bool range(const std::string& t, const char* prefix, int base, Operand& o) {  // "v7", "v[8:9]", "ttmp[4:5]"
  const std::size_t k = std::strlen(prefix);
  if (!begins(t, prefix) || t.size() == k || (t[k] != '[' && (t[k] < '0' || t[k] > '9'))) return false;
  char* end = nullptr;
  const char* at = t.c_str() + k + (t[k] == '[' ? 1 : 0);
  const long first = std::strtol(at, &end, 10);
  long last = first;
  if (t[k] == '[' && *end == ':') last = std::strtol(end + 1, &end, 10);
  o.reg = static_cast<std::uint16_t>(base + first);
  o.n = static_cast<std::uint8_t>(last - first + 1);
  return true;
}

Operand operand(std::string t) {
  Operand o;
  for (;;) {
    if (t.size() > 1 && t[0] == '-' && (t[1] < '0' || t[1] > '9')) {
      o.neg = true;
      t = t.substr(1);
    } else if (t.size() > 2 && t.front() == '|') {
      o.abs = true;
      t = t.substr(1, t.size() - 2);
    } else if (begins(t, "neg(")) {
      o.neg = true;
      t = t.substr(4, t.size() - 5);
    } else {
      break;
    }
  }
  const bool lit = begins(t, "lit(") || begins(t, "lit64(");
  if (lit) t = t.substr(t.find('(') + 1), t.pop_back();
  o.kind = Kind::sgpr;
  if (t == "off") return Operand{};
  if (t == "vcc_lo") return o.reg = kVcc, o;
  if (t == "vcc_hi") return o.reg = kVcc + 1, o;
  if (t == "vcc") return o.reg = kVcc, o.n = 2, o;
  if (t == "exec_lo") return o.reg = kExec, o;
  if (t == "exec_hi") return o.reg = kExec + 1, o;
  if (t == "exec") return o.reg = kExec, o.n = 2, o;
  if (t == "m0") return o.reg = kM0, o;
  if (t == "null") return o.reg = kNull, o;
  if (t == "src_scc") return o.reg = kScc, o;
  if (range(t, "ttmp", kTtmp, o) || range(t, "s", 0, o)) return o;
  o.kind = Kind::vgpr;
  if (t[0] == 'v' && t.size() > 3 && t[t.size() - 2] == '.') {
    o.high = t.back() == 'h';
    t.resize(t.size() - 2);
  }
  if (range(t, "v", 0, o)) return o;
  char* end = nullptr;
  if (t.find('.') != std::string::npos) {
    o.kind = Kind::fimm;
    o.f = std::strtod(t.c_str(), &end);
  } else {
    o.kind = Kind::imm;
    o.literal = lit || begins(t, "0x") || begins(t, "-0x");
    o.imm = begins(t, "0x") ? std::strtoull(t.c_str(), &end, 16)
                            : static_cast<std::uint64_t>(std::strtoll(t.c_str(), &end, 0));
  }
  if (end == t.c_str() || *end != 0) throw Fault(kMalformed, "operand '" + t + "' is not known");
  return o;
}

bool modifier(const std::string& t, Inst& i) {
  const std::size_t colon = t.find(':');
  const std::string key = t.substr(0, colon), value = colon == std::string::npos ? "" : t.substr(colon + 1);
  const auto number = [&] { return static_cast<std::int32_t>(std::strtol(value.c_str(), nullptr, 0)); };
  const auto row = [&](Dpp d) {
    return i.dpp = d, i.sel[0] = static_cast<std::uint8_t>(value.empty() ? 0 : number()), true;
  };
  if (key == "offset") return i.offset = begins(value, "swizzle") ? 0 : number(), true;
  if (key == "offset0") return i.offset0 = number(), true;
  if (key == "offset1") return i.offset1 = number(), true;
  if (key == "op_sel") return i.op_sel = bits(value), true;
  if (key == "op_sel_hi") return i.op_sel_hi = bits(value), i.has_op_sel_hi = true;
  if (key == "neg_lo") return i.neg_lo = bits(value), true;
  if (key == "neg_hi") return i.neg_hi = bits(value), true;
  if (key == "clamp") return i.clamp = true;
  if (key == "mul") return i.omod = value == "2" ? 1 : 2, true;
  if (key == "div") return i.omod = 3, true;
  if (key == "row_mask") return i.row_mask = static_cast<std::uint8_t>(number()), true;
  if (key == "bank_mask") return i.bank_mask = static_cast<std::uint8_t>(number()), true;
  if (key == "bound_ctrl") return i.bound_ctrl = number() != 0, true;
  if (key == "fi") return i.fi = number() != 0, true;
  if (key == "quad_perm" || key == "dpp8") {
    i.dpp = key == "dpp8" ? Dpp::dpp8 : Dpp::quad_perm;
    const auto list = numbers(value);
    for (std::size_t k = 0; k < list.size() && k < 8; ++k) i.sel[k] = static_cast<std::uint8_t>(list[k]);
    return true;
  }
  if (key == "row_shl") return row(Dpp::row_shl);
  if (key == "row_shr") return row(Dpp::row_shr);
  if (key == "row_ror") return row(Dpp::row_ror);
  if (key == "row_mirror") return row(Dpp::row_mirror);
  if (key == "row_half_mirror") return row(Dpp::row_half_mirror);
  if (key == "row_share") return row(Dpp::row_share);
  if (key == "row_xmask") return row(Dpp::row_xmask);
  if (key == "glc" || t == "th:TH_ATOMIC_RETURN" ||
      (key == "th" && t.find("ATOMIC") != std::string::npos && t.find("RETURN") != std::string::npos))
    return i.returns = true;
  if (key == "offen") return i.offen = true;
  return key == "scope" || key == "th" || key == "slc" || key == "dlc" || key == "nv";
}

}  // namespace

std::unique_ptr<Inst> parse(const std::string& line, std::uint64_t pc, std::uint32_t size, std::uint32_t word0) {
  auto i = std::make_unique<Inst>();
  i->pc = pc, i->size = size, i->word0 = word0;
  std::string s = line;
  while (!s.empty() && (s[0] == '\t' || s[0] == ' ')) s.erase(0, 1);
  i->full = s;
  if (const auto pair = s.find(" :: "); pair != std::string::npos) {
    i->second = parse(s.substr(pair + 4), pc, size, word0);
    s = s.substr(0, pair);
  }
  i->text = s;
  const std::size_t space = s.find(' ');
  i->name = s.substr(0, space);
  for (const char* end : {"_e64_dpp", "_dpp", "_e64", "_e32"})
    if (const std::size_t k = std::strlen(end);
        i->name.size() > k && i->name.compare(i->name.size() - k, k, end) == 0) {
      i->name.resize(i->name.size() - k);
      break;
    }
  if (begins(i->name, "v_dual_")) i->name = "v_" + i->name.substr(7);
  // Their operands are not registers, or are read from the encoding.
  for (const char* raw : {"s_wait", "s_delay_alu", "s_sendmsg", "s_getreg", "s_setreg", "s_clause", "s_branch",
                          "s_cbranch", "s_nop", "s_sleep", "s_setprio", "s_endpgm", "s_code_end", "s_barrier",
                          "s_icache", "s_dcache", "s_prefetch", "s_ttrace", "s_set_inst_prefetch"})
    if (begins(i->name, raw) && i->name != "s_getreg_b32") return i;
  if (i->name == "s_getreg_b32") {
    i->op.push_back(operand(split(s.substr(space + 1), ',')[0]));
    return i;
  }
  if (space == std::string::npos) return i;
  for (const auto& piece : split(s.substr(space + 1), ',')) {
    for (const auto& token : split(piece, ' ')) {
      if (token.empty() || modifier(token, *i)) continue;
      i->op.push_back(operand(token));
    }
  }
  return i;
}

Disassembler::Disassembler(const std::string& mcpu) {
  // As new as the compiler, or newer: an older one may read new encodings wrongly (16-bit registers of gfx11).
  void* lib = nullptr;
  for (const char* path : {std::getenv("LIBLLVM"), const_cast<char*>("libLLVM.so.22.1"),
                           const_cast<char*>("libLLVM.so.20.1"), const_cast<char*>("libLLVM.so.19.1")})
    if (path != nullptr && lib == nullptr) lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (lib == nullptr)
    throw Fault(kMalformed,
                std::string("libLLVM is not found (apt-get install libllvm22, or set LIBLLVM): ") + dlerror());
  for (const char* init :
       {"LLVMInitializeAMDGPUTargetInfo", "LLVMInitializeAMDGPUTargetMC", "LLVMInitializeAMDGPUDisassembler"})
    reinterpret_cast<void (*)()>(dlsym(lib, init))();
  using Create = void* (*)(const char*, const char*, void*, int, void*, void*);
  context_ = reinterpret_cast<Create>(dlsym(lib, "LLVMCreateDisasmCPU"))("amdgcn-amd-amdhsa", mcpu.c_str(), nullptr, 0,
                                                                         nullptr, nullptr);
  if (context_ == nullptr) throw Fault(kMalformed, "LLVM knows no processor " + mcpu);
  disassemble_ = reinterpret_cast<decltype(disassemble_)>(dlsym(lib, "LLVMDisasmInstruction"));
  dispose_ = reinterpret_cast<decltype(dispose_)>(dlsym(lib, "LLVMDisasmDispose"));
}

Disassembler::~Disassembler() {
  dispose_(context_);
}

std::unique_ptr<Inst> Disassembler::at(const std::uint8_t* bytes, std::uint64_t available, std::uint64_t pc) {
  char text[512];
  std::uint8_t copy[32] = {};
  const std::uint64_t n = available < 32 ? available : 32;
  std::memcpy(copy, bytes, n);
  const std::size_t size = disassemble_(context_, copy, n, pc, text, sizeof text);
  std::uint32_t word0;
  std::memcpy(&word0, copy, 4);
  char where[64];
  std::snprintf(where, sizeof where, "pc 0x%llx (%08x): ", static_cast<unsigned long long>(pc), word0);
  if (size == 0) throw Fault(kMalformed, std::string(where) + "no instruction");
  try {
    auto inst = parse(text, pc, static_cast<std::uint32_t>(size), word0);
    bind(*inst);
    return inst;
  } catch (const Fault& f) {
    throw Fault(f.code, where + std::string(text + 1) + ": " + f.what());
  }
}

}  // namespace amd_sim
