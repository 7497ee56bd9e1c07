# What a stranger gets: headers, static libraries, a CMake package, interlock.pc, the examples, the command with
# its man page and completions.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

get_property(libraries GLOBAL PROPERTY INTERLOCK_LIBRARIES)
get_property(stores GLOBAL PROPERTY INTERLOCK_STORES)
get_property(components GLOBAL PROPERTY INTERLOCK_COMPONENTS)
list(JOIN stores ", " stores_text)

# A component is a part that needs libraries, in an export of its own. All others are always there.
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/interlock)
set(needs "")
set(pkgconfig_modules "")
set(basic ${libraries})
foreach(component IN LISTS components)
  list(REMOVE_ITEM basic interlock_${component})
  install(TARGETS interlock_${component} EXPORT interlock_${component}
          ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(EXPORT interlock_${component} FILE interlock_${component}Targets.cmake
          NAMESPACE interlock:: DESTINATION ${package_dir})
  get_property(modules GLOBAL PROPERTY INTERLOCK_NEEDS_${component})
  string(APPEND needs "set(interlock_${component}_needs ${modules})\n")
  list(APPEND pkgconfig_modules ${modules})
endforeach()
list(REMOVE_DUPLICATES pkgconfig_modules)
set(basic_stores ${stores})
if(components)
  list(REMOVE_ITEM basic_stores ${components})
endif()
install(TARGETS ${basic} EXPORT interlock ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
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

# The libraries are static, so the order matters: a library that calls another comes before it.
set(pc_libraries -linterlock)
foreach(store IN LISTS stores)
  get_target_property(options interlock_${store} INTERFACE_LINK_OPTIONS)
  if(options)
    string(REPLACE "LINKER:" "-Wl," options "${options}")
    list(APPEND pc_libraries ${options})
  endif()
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

install(DIRECTORY examples/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples
        PATTERN *.sh PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
                                 WORLD_READ WORLD_EXECUTE)

if(TARGET interlock_cli)
  install(TARGETS interlock_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  if(TARGET interlock_cli_full)
    install(TARGETS interlock_cli_full RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/interlock)
  endif()
  install(FILES docs/man/interlock.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 OPTIONAL)
  install(FILES completions/interlock.bash RENAME interlock
          DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions OPTIONAL)
  install(FILES completions/_interlock
          DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions OPTIONAL)
  install(FILES completions/interlock.fish
          DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d OPTIONAL)
endif()
