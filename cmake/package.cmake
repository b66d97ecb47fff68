# scripts/package.sh: a .deb, which takes libraries from the system, and a .tar.gz, which brings them along.

include(GNUInstallDirs)
install(TARGETS zinc-rt RUNTIME_DEPENDENCY_SET libraries RUNTIME DESTINATION bin COMPONENT program)
install(FILES ${PROJECT_SOURCE_DIR}/cmake/package/zinc-rt.service DESTINATION lib/systemd/system COMPONENT program)
install(FILES ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/docs/server.md ${PROJECT_SOURCE_DIR}/docs/tenancy.md
              ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION share/doc/zinc-rt COMPONENT program)
# The program itself writes what shells and `man` read.
set(made ${PROJECT_BINARY_DIR}/package)
install(CODE "
  file(MAKE_DIRECTORY ${made})
  foreach(what bash zsh fish man)
    execute_process(COMMAND $<TARGET_FILE:zinc-rt> completion \${what} OUTPUT_FILE ${made}/\${what} COMMAND_ERROR_IS_FATAL ANY)
  endforeach()
  file(ARCHIVE_CREATE OUTPUT ${made}/man.gz PATHS ${made}/man FORMAT raw COMPRESSION GZip)" COMPONENT program)
install(FILES ${made}/bash RENAME zinc-rt DESTINATION share/bash-completion/completions COMPONENT program)
install(FILES ${made}/zsh RENAME _zinc-rt DESTINATION share/zsh/vendor-completions COMPONENT program)
install(FILES ${made}/fish RENAME zinc-rt.fish DESTINATION share/fish/vendor_completions.d COMPONENT program)
install(FILES ${made}/man.gz RENAME zinc-rt.1.gz DESTINATION share/man/man1 COMPONENT program)

# The C and C++ runtimes are the system's, as every distribution has them; the others lie where only this program looks.
# DT_RPATH, unlike DT_RUNPATH, also counts for the libraries that the libraries want.
set_target_properties(zinc-rt PROPERTIES INSTALL_RPATH "$ORIGIN/../lib/zinc-rt")
target_link_options(zinc-rt PRIVATE -Wl,--disable-new-dtags)
install(RUNTIME_DEPENDENCY_SET libraries
        PRE_EXCLUDE_REGEXES "^(libc|libm|libdl|libpthread|librt|libstdc\\+\\+|libgcc_s)\\.so" "^ld-linux"
        LIBRARY DESTINATION lib/zinc-rt COMPONENT libraries)
install(CODE "
  set(root \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}\")
  execute_process(COMMAND ${CMAKE_COMMAND} -DLIBRARIES=\${root}/lib/zinc-rt -DTO=\${root}/share/doc/zinc-rt/libraries
                  -P ${PROJECT_SOURCE_DIR}/cmake/package/notices.cmake COMMAND_ERROR_IS_FATAL ANY)" COMPONENT libraries)

set(CPACK_COMPONENTS_ALL program)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)
set(CPACK_PROJECT_CONFIG_FILE ${PROJECT_SOURCE_DIR}/cmake/package/generators.cmake)
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
set(CPACK_STRIP_FILES ON)
set(CPACK_THREADS 0)
set(CPACK_PACKAGE_NAME zinc-rt)
set(CPACK_PACKAGE_CONTACT "the ZINC_RT authors <zinc-rt@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "LLM server with OpenAI's API, many tenants and the same bits on every tier")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION net)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)  # wants dpkg-dev
string(TOLOWER ${CMAKE_SYSTEM_NAME} system)
set(CPACK_ARCHIVE_FILE_NAME zinc-rt-${PROJECT_VERSION}-${system}-${CMAKE_SYSTEM_PROCESSOR})
include(CPack)
