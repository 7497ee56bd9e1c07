# What a stranger gets: headers, static libraries, a CMake package, interlock.pc, the command with
# its man page and completions.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

get_property(libraries GLOBAL PROPERTY INTERLOCK_LIBRARIES)
get_property(stores GLOBAL PROPERTY INTERLOCK_STORES)
get_property(pkgconfig_modules GLOBAL PROPERTY INTERLOCK_PKGCONFIG)
list(REMOVE_DUPLICATES pkgconfig_modules)
list(JOIN stores ", " stores_text)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/interlock)
install(TARGETS ${libraries} EXPORT interlock ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/interlock DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN *.hpp)
install(EXPORT interlock FILE interlockTargets.cmake NAMESPACE interlock::
        DESTINATION ${package_dir})
configure_package_config_file(cmake/interlockConfig.cmake.in generated/interlockConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
# Before 1.0 a minor version may break its users.
write_basic_package_version_file(generated/interlockConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/generated/interlockConfig.cmake
              ${PROJECT_BINARY_DIR}/generated/interlockConfigVersion.cmake
        DESTINATION ${package_dir})

# The libraries are static, so the order matters: whoever calls comes before whoever is called.
set(pc_libraries -linterlock)
foreach(store IN LISTS stores)
  list(APPEND pc_libraries -linterlock_${store})
endforeach()
if(TARGET interlock_tracing)
  list(APPEND pc_libraries -linterlock_tracing)
endif()
list(APPEND pc_libraries -linterlock_core -pthread)
list(JOIN pc_libraries " " pc_libraries)
list(JOIN pkgconfig_modules " " pc_requires)
# Found relative to the .pc file, so an installed tree may be moved.
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX
           BASE_DIRECTORY ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig OUTPUT_VARIABLE pc_prefix)
configure_file(cmake/interlock.pc.in generated/interlock.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/generated/interlock.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

if(TARGET interlock_cli)
  install(TARGETS interlock_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  install(FILES docs/man/interlock.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 OPTIONAL)
  install(FILES completions/interlock.bash RENAME interlock
          DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions OPTIONAL)
  install(FILES completions/_interlock
          DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions OPTIONAL)
endif()
