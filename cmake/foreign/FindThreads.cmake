# Threads for systems where CMake's own module cannot ask: macOS has them in its C library, and WASI has none.
if(NOT TARGET Threads::Threads)
  add_library(Threads::Threads INTERFACE IMPORTED GLOBAL)
endif()
set(Threads_FOUND TRUE)
