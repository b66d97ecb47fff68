// What compiled code calls of the compiler's runtime, and no library of Debian's for WebAssembly has.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

extern "C" {

// The guard of the stack, for libraries that were compiled with it.
extern std::uintptr_t __stack_chk_guard;
std::uintptr_t __stack_chk_guard = 0x5AFE57AC;
[[noreturn]] void __stack_chk_fail();
void __stack_chk_fail() {
  std::abort();
}

// There are no exceptions: to throw one ends the program.
[[noreturn]] void* __cxa_allocate_exception(std::size_t);
void* __cxa_allocate_exception(std::size_t) {
  std::abort();
}
[[noreturn]] void __cxa_throw(void*, void*, void (*)(void*));
void __cxa_throw(void*, void*, void (*)(void*)) {
  std::abort();
}

}  // extern "C"
