# Toolchain file: macOS 14.4 or later on 64-bit ARM, by Zig's C++ compiler, which brings libc++ and the symbols of macOS's
# libraries. It is the Python package ziglang; ZRT_ZIG of the environment names the program if it is not in .venv.
set(CMAKE_SYSTEM_NAME Darwin)
set(CMAKE_SYSTEM_PROCESSOR arm64)
set(CMAKE_C_COMPILER ${CMAKE_CURRENT_LIST_DIR}/zig/cc)
set(CMAKE_CXX_COMPILER ${CMAKE_CURRENT_LIST_DIR}/zig/c++)
set(CMAKE_INSTALL_NAME_TOOL not-there)  # CMake wants a name; only shared libraries need the tool
set(CMAKE_AR ${CMAKE_CURRENT_LIST_DIR}/zig/ar)
set(CMAKE_RANLIB ${CMAKE_CURRENT_LIST_DIR}/zig/ranlib)
include(${CMAKE_CURRENT_LIST_DIR}/foreign_headers.cmake)
