include(CheckCXXCompilerFlag)
include(CheckPIESupported)
check_pie_supported()  # without this call CMake compiles for PIE, and does not link so
check_cxx_compiler_flag(-fcf-protection INTERLOCK_HAS_CF_PROTECTION)  # x86 only

# Makes memory errors harder to exploit. Debug builds and those with sanitizers have better checks.
function(interlock_harden target)
  set(optimised $<CONFIG:Release,RelWithDebInfo,MinSizeRel>)
  # The compiler may have a level of its own by default, or the user's flags.
  set(options -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3 -D_GLIBCXX_ASSERTIONS
      -fstack-protector-strong -fstack-clash-protection)
  if(INTERLOCK_HAS_CF_PROTECTION)
    list(APPEND options -fcf-protection)
  endif()
  target_compile_options(${target} PRIVATE "$<${optimised}:${options}>")
  target_link_options(${target} PRIVATE
    "$<${optimised}:LINKER:-z,relro;LINKER:-z,now;LINKER:-z,noexecstack>")
endfunction()

# How every target of this project is compiled. A function and not an interface library, so that
# neither the warnings nor a target for them end up in the exported package.
function(interlock_target target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF POSITION_INDEPENDENT_CODE ON)
  if(INTERLOCK_HARDENING)
    interlock_harden(${target})
  endif()
  target_compile_options(${target} PRIVATE
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion
    # g++ 12 sees overlaps in std::string's operator+ that can't be (GCC bug 105651).
    $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
    # Files that are compiled together are included, as headers are, and have anonymous namespaces.
    $<$<AND:$<CXX_COMPILER_ID:GNU>,$<BOOL:${CMAKE_UNITY_BUILD}>>:-Wno-subobject-linkage>
    $<$<BOOL:${INTERLOCK_WERROR}>:-Werror>)
endfunction()

# A library of the installed package: libinterlock_<name>.a, used as interlock::<name> from a
# subdirectory and from an installed copy alike.
function(interlock_library target export_name)
  add_library(${target} STATIC ${ARGN})
  add_library(interlock::${export_name} ALIAS ${target})
  interlock_target(${target})
  target_include_directories(${target}
    PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>
    PRIVATE ${PROJECT_SOURCE_DIR}/src)
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${export_name})
  set_property(GLOBAL APPEND PROPERTY INTERLOCK_LIBRARIES ${target})
endfunction()

# A program at <build>/bin/<folder>/<name>, linked with the whole library.
function(interlock_program target folder)
  add_executable(${target} ${ARGN})
  interlock_target(${target})
  target_link_libraries(${target} PRIVATE interlock::interlock)
  set_target_properties(${target} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin/${folder})
endfunction()

# A shell script as a test, with the command under test in $INTERLOCK.
function(interlock_script_test name script)
  add_test(NAME ${name} COMMAND bash ${script})
  set_tests_properties(${name} PROPERTIES
    ENVIRONMENT INTERLOCK=$<TARGET_FILE:interlock_cli>
    TIMEOUT ${INTERLOCK_TEST_TIMEOUT})
endfunction()
