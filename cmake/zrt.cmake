# Shared flags and the two helpers that every folder uses.

add_library(zrt_flags INTERFACE)
target_include_directories(zrt_flags INTERFACE ${PROJECT_SOURCE_DIR}/cpp ${PROJECT_SOURCE_DIR}/cpp/include ${PROJECT_SOURCE_DIR})
# -ffp-contract=off: a fused multiply-add exists only where the source writes fma (docs/arithmetic.md).
target_compile_options(zrt_flags INTERFACE -Wall -Wextra -ffp-contract=off $<$<BOOL:${ZRT_WERROR}>:-Werror>)
# g++ 12 reports these two on plain std::string and std::vector code (its bugs 105329 and 105651).
target_compile_options(zrt_flags INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict> $<$<CXX_COMPILER_ID:GNU>:-Wno-stringop-overread>)
# clang reports a deprecated function that libstdc++ 12's own stable_sort uses; g++ goes on checking ours.
target_compile_options(zrt_flags INTERFACE $<$<CXX_COMPILER_ID:Clang>:-Wno-deprecated-declarations>)
target_link_libraries(zrt_flags INTERFACE fmt::fmt Threads::Threads)
add_library(zrt_sanitizers INTERFACE)
target_link_libraries(zrt_flags INTERFACE zrt_sanitizers)
if(ZRT_SANITIZE)
  target_compile_options(zrt_sanitizers INTERFACE -fsanitize=${ZRT_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(zrt_sanitizers INTERFACE -fsanitize=${ZRT_SANITIZE})
  target_compile_definitions(zrt_sanitizers INTERFACE ZRT_SANITIZED=1)
endif()

# zrt_compile_in_groups(TARGET): eight files are compiled as one. Most of a file's compile time is the headers that it
# includes (the C++ library's, JSON above all), so eight as one cost little more than one alone.
function(zrt_compile_in_groups target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
endfunction()

# zrt_compile_quickly(TARGET): -O1, for code that runs a few times in a process (commands, downloads): it takes two thirds
# of the time to compile.
function(zrt_compile_quickly target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
endfunction()

# zrt_auto_option(NAME help): the cache variable NAME, one of AUTO, ON and OFF. Without it the variable of that name in
# the environment counts, as CXX and CXXFLAGS do; else it is AUTO.
function(zrt_auto_option name help)
  set(default AUTO)
  if(DEFINED ENV{${name}})
    set(default $ENV{${name}})
  endif()
  set(${name} ${default} CACHE STRING "${help}")
  set_property(CACHE ${name} PROPERTY STRINGS AUTO ON OFF)
  if(NOT ${name} MATCHES "^(AUTO|ON|OFF)$")
    message(FATAL_ERROR "${name} is \"${${name}}\"; one of: AUTO, ON, OFF")
  endif()
endfunction()

# zrt_library(NAME module): the target PkgConfig::NAME is a library that pkg-config knows by this name; for systems whose
# libraries this machine does not have, it is compiled from source.
macro(zrt_library name module)
  if(ZRT_FROM_SOURCE)
    zrt_from_source(${name})
  else()
    pkg_check_modules(${name} REQUIRED IMPORTED_TARGET ${module})
  endif()
endmacro()

# zrt_module(NAME [dependency ...]): a static library zrt_NAME of all .cpp files below this folder that no folder with a
# CMakeLists.txt of its own holds.
function(zrt_module name)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  file(GLOB_RECURSE owned CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*/CMakeLists.txt)
  foreach(list_file ${owned})
    get_filename_component(folder ${list_file} DIRECTORY)
    list(FILTER sources EXCLUDE REGEX "^${folder}/")
  endforeach()
  list(FILTER sources EXCLUDE REGEX "/platform/[a-z]+/")  # cpp/base/CMakeLists.txt chooses one of them
  if(NOT sources)
    return()
  endif()
  add_library(zrt_${name} STATIC ${sources})
  target_link_libraries(zrt_${name} PUBLIC zrt_flags ${ARGN})
  zrt_compile_in_groups(zrt_${name})
endfunction()
