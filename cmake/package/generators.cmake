# Read by cpack once a generator: what its package has that the other's has not.
if(CPACK_GENERATOR STREQUAL TGZ)
  set(CPACK_COMPONENTS_ALL program libraries)
  set(CPACK_COMPONENT_INCLUDE_TOPLEVEL_DIRECTORY ON)
  set(CPACK_PACKAGE_FILE_NAME ${CPACK_ARCHIVE_FILE_NAME})
  set(CPACK_PACKAGING_INSTALL_PREFIX /)
else()
  set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
endif()
