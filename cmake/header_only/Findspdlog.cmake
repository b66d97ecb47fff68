# spdlog from its headers alone, with Debian's choice of fmt as a library of its own.
find_path(spdlog_INCLUDE_DIR spdlog/spdlog.h REQUIRED)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(spdlog REQUIRED_VARS spdlog_INCLUDE_DIR)
if(NOT TARGET spdlog::spdlog)
  add_library(spdlog::spdlog INTERFACE IMPORTED GLOBAL)
  set_target_properties(spdlog::spdlog PROPERTIES INTERFACE_COMPILE_DEFINITIONS SPDLOG_FMT_EXTERNAL=1 INTERFACE_LINK_LIBRARIES fmt::fmt)
endif()
