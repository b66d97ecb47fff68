# Included by toolchain files of systems whose libraries Debian does not have. The headers of libraries, which lie in
# /usr/include among those of this machine's own C library, get a folder of their own. Libraries that are more than headers
# are compiled from their sources (from_source.cmake).
set(ZRT_FROM_SOURCE ON)
set(headers ${CMAKE_CURRENT_LIST_DIR}/../build/foreign_headers)
file(MAKE_DIRECTORY ${headers})
foreach(name fmt spdlog nlohmann xxhash.h)
  if(NOT EXISTS /usr/include/${name})
    message(FATAL_ERROR "/usr/include/${name} was not found; scripts/lib.sh lists the packages that are needed")
  endif()
  file(CREATE_LINK /usr/include/${name} ${headers}/${name} SYMBOLIC)
endforeach()
cmake_path(NORMAL_PATH headers)
set(CMAKE_CXX_STANDARD_INCLUDE_DIRECTORIES ${headers})
set(CMAKE_INCLUDE_PATH ${headers})
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE NEVER)
list(PREPEND CMAKE_MODULE_PATH ${CMAKE_CURRENT_LIST_DIR}/header_only ${CMAKE_CURRENT_LIST_DIR}/foreign)
