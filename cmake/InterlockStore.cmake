# A store is a directory src/backends/<name> with a CMakeLists.txt that calls interlock_add_store.
# It is read only while INTERLOCK_STORE_<NAME> is on, so it may look for whatever it needs.
function(interlock_add_stores)
  file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/backends/*/CMakeLists.txt)
  foreach(file IN LISTS files)
    cmake_path(GET file PARENT_PATH directory)
    cmake_path(GET directory FILENAME name)
    string(TOUPPER ${name} upper)
    option(INTERLOCK_STORE_${upper} "Build the ${name} store" ON)
    if(INTERLOCK_STORE_${upper})
      add_subdirectory(${directory})
    endif()
  endforeach()
endfunction()

# interlock_add_store(NAME <name> [FORMAT <number>] [DECORATOR] [HEADERS <targets>] [PKGCONFIG <modules>])
#
#   FORMAT     the number of its records' format, which `interlock --version` tells without loading the store. It
#              stands in the store's code, too, and the store does not compile if the two differ (INTERLOCK_FORMAT)
#   DECORATOR  wraps another store, so no URL opens it and the registry leaves it out
#   HEADERS    header-only targets that compile the store; users of the package never see them
#   PKGCONFIG  libraries to link; the store's component of the installed package asks for them, too
#
# Makes interlock_<name>, alias interlock::<name>, from all *.cpp next to the calling file. A program that links
# the store can open its URLs.
function(interlock_add_store)
  cmake_parse_arguments(STORE "DECORATOR" "NAME;FORMAT" "HEADERS;PKGCONFIG" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS *.cpp)
  if(NOT sources)
    return()
  endif()

  set(target interlock_${STORE_NAME})
  interlock_library(${target} ${STORE_NAME} ${sources})
  target_link_libraries(${target} PUBLIC interlock_core)
  foreach(header_target IN LISTS STORE_HEADERS)
    target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:${header_target}>)
  endforeach()
  interlock_needs(${STORE_NAME} ${STORE_PKGCONFIG})
  if(STORE_FORMAT)
    target_compile_definitions(${target} PRIVATE INTERLOCK_FORMAT=${STORE_FORMAT})
    set_property(GLOBAL APPEND PROPERTY INTERLOCK_FORMATS "${STORE_NAME} ${STORE_FORMAT}")
  endif()

  set_property(GLOBAL APPEND PROPERTY INTERLOCK_STORES ${STORE_NAME})
  if(NOT STORE_DECORATOR)
    set_property(GLOBAL APPEND PROPERTY INTERLOCK_URL_STORES ${STORE_NAME})
    # The registry only looks whether interlock::stores::<name>() is there, which takes nothing out of an archive.
    string(LENGTH ${STORE_NAME} length)
    target_link_options(${target} INTERFACE
                        LINKER:-u,_ZN9interlock6stores${length}${STORE_NAME}Ev)
  endif()
endfunction()

# interlock_needs(<part> <modules>): links interlock_<part> to libraries that pkg-config knows. The part is then a
# component of the installed package, which asks for them if the component is asked for.
function(interlock_needs part)
  if(NOT ARGN)
    return()
  endif()
  find_package(PkgConfig REQUIRED)
  foreach(module IN LISTS ARGN)
    # GLOBAL: a target that links the part from another directory has to see the library as well.
    pkg_check_modules(${module} REQUIRED IMPORTED_TARGET GLOBAL ${module})
    target_link_libraries(interlock_${part} PRIVATE PkgConfig::${module})
  endforeach()
  set_property(GLOBAL APPEND PROPERTY INTERLOCK_COMPONENTS ${part})
  set_property(GLOBAL PROPERTY INTERLOCK_NEEDS_${part} ${ARGN})
endfunction()

# Writes the one file that knows the names of all stores: interlock::stores::all().
function(interlock_write_registry output)
  get_property(stores GLOBAL PROPERTY INTERLOCK_URL_STORES)
  set(declarations "")
  set(calls "")
  foreach(store IN LISTS stores)
    string(APPEND declarations "[[gnu::weak]] StoreEntry ${store}();\n")
    string(APPEND calls "  if (${store} != nullptr) entries.push_back(${store}());\n")
  endforeach()
  configure_file(${PROJECT_SOURCE_DIR}/cmake/stores.cpp.in ${output} @ONLY)
endfunction()
