# Toolchain file: WebAssembly with the system interface WASI, by clang 22 with wasi-libc and libc++ of Debian. The target has
# one thread. cpp/base/platform/wasi/std has what its C++ library leaves out for that.
set(CMAKE_SYSTEM_NAME WASI)
set(CMAKE_SYSTEM_PROCESSOR wasm32)
set(CMAKE_C_COMPILER clang-22)
set(CMAKE_C_COMPILER_TARGET wasm32-wasi)
set(CMAKE_CXX_COMPILER clang++-22)
set(CMAKE_CXX_COMPILER_TARGET wasm32-wasi)
set(CMAKE_SYSROOT /usr)
set(CMAKE_CROSSCOMPILING_EMULATOR node --no-warnings ${CMAKE_CURRENT_LIST_DIR}/run_wasm.mjs)
include(${CMAKE_CURRENT_LIST_DIR}/foreign_headers.cmake)
list(PREPEND CMAKE_CXX_STANDARD_INCLUDE_DIRECTORIES ${CMAKE_CURRENT_LIST_DIR}/../cpp/base/platform/wasi/std)
# The C++ library has no exceptions: what would throw one traps. -Werror=shift-count-overflow finds what has another
# width than on 64-bit systems. Debian's folders have the name wasm32-wasi, which clang calls deprecated.
set(CMAKE_CXX_FLAGS_INIT "-stdlib=libc++ -msimd128 -fexceptions -fignore-exceptions -Wno-deprecated -D_WASI_EMULATED_SIGNAL -DSPDLOG_NO_TLS -Werror=shift-count-overflow")
set(ZRT_OPTIMIZE -Os)  # a page downloads the module; only kernels compute much
set(CMAKE_C_FLAGS_INIT "-msimd128 -Wno-deprecated")
# printscan-long-double: without it strtod, by which JSON reads 0.7, ends the program.
set(CMAKE_EXE_LINKER_FLAGS_INIT "-stdlib=libc++ -lwasi-emulated-signal -lwasi-emulated-getpid -lc-printscan-long-double -Wl,-z,stack-size=1048576 -Wl,--max-memory=4294967296")
