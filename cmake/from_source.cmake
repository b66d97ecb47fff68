# Libraries as targets of this build, for systems whose libraries Debian does not have.
enable_language(C)

# The sources lie where `need_source` of scripts/lib.sh unpacks them: those of the release that this system links natively,
# so that patterns mean the same (Unicode's tables are in the library).
function(zrt_from_source_PCRE2)
  set(source ${PROJECT_SOURCE_DIR}/build/sources/pcre2/src)
  if(NOT EXISTS ${source}/pcre2_compile.c)
    message(FATAL_ERROR "${source} has no sources of PCRE2; this fetches them: bash -c 'source scripts/lib.sh && need_source pcre2 libpcre2-dev'")
  endif()
  set(made ${CMAKE_BINARY_DIR}/pcre2)  # what a system without autotools copies (the file NON-AUTOTOOLS-BUILD)
  configure_file(${source}/config.h.generic ${made}/config.h COPYONLY)
  configure_file(${source}/pcre2.h.generic ${made}/pcre2.h COPYONLY)
  configure_file(${source}/pcre2_chartables.c.dist ${made}/pcre2_chartables.c COPYONLY)
  file(GLOB sources ${source}/pcre2_*.c)
  # Programs, and files that others include.
  list(FILTER sources EXCLUDE REGEX "pcre2_(dftables|fuzzsupport|jit_match|jit_misc|jit_test|printint|ucptables|chartables)[.]c$")
  add_library(zrt_pcre2 STATIC ${sources} ${made}/pcre2_chartables.c)
  target_include_directories(zrt_pcre2 PUBLIC ${made} PRIVATE ${source})
  target_compile_definitions(zrt_pcre2 PRIVATE HAVE_CONFIG_H SUPPORT_UNICODE PCRE2_CODE_UNIT_WIDTH=8 PUBLIC PCRE2_STATIC)
  target_compile_options(zrt_pcre2 PRIVATE -w)
  add_library(PkgConfig::PCRE2 ALIAS zrt_pcre2)
endfunction()

function(zrt_from_source_XXHASH)  # its header has the code too
  set(source ${CMAKE_BINARY_DIR}/xxhash.c)
  file(CONFIGURE OUTPUT ${source} CONTENT "#define XXH_STATIC_LINKING_ONLY\n#define XXH_IMPLEMENTATION\n#include <xxhash.h>\n")
  add_library(zrt_xxhash STATIC ${source})
  find_path(XXHASH_INCLUDE_DIR xxhash.h REQUIRED)
  target_include_directories(zrt_xxhash PUBLIC ${XXHASH_INCLUDE_DIR})
  add_library(PkgConfig::XXHASH ALIAS zrt_xxhash)
endfunction()

macro(zrt_from_source name)
  cmake_language(CALL zrt_from_source_${name})
endmacro()
