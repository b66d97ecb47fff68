# `cmake --build build/release --target package`: a .deb with the program, its service and an example configuration.

include(GNUInstallDirs)
install(TARGETS zinc-rt RUNTIME DESTINATION bin COMPONENT program)
install(FILES ${PROJECT_SOURCE_DIR}/cmake/package/zinc-rt.service DESTINATION lib/systemd/system COMPONENT program)
install(FILES ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/docs/server.md ${PROJECT_SOURCE_DIR}/docs/tenancy.md
              ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION share/doc/zinc-rt COMPONENT program)

set(CPACK_GENERATOR DEB)
set(CPACK_COMPONENTS_ALL program)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_PACKAGE_NAME zinc-rt)
set(CPACK_PACKAGE_CONTACT "the ZINC_RT authors <zinc-rt@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "LLM server with OpenAI's API, many tenants and the same bits on every tier")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION net)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)  # wants dpkg-dev
include(CPack)
