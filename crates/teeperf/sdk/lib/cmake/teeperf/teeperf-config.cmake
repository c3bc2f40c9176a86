# Hooks of teeperf in C and C++ programs; for gcc and clang, on Linux, x86-64. The folder can be moved as a whole.
#
#   teeperf::api           the header, teeperf.h, and nothing to link: what it has does something where hooks are linked
#   teeperf::scopes        scopes, marks and counters of teeperf.h alone are recorded
#   teeperf::hooks         hooks in all functions of a target, and scopes; a program has the runtime in itself, a shared
#                          library needs none
#   teeperf::hooks_shared  likewise, with the runtime as a library, libteeperf.so

get_filename_component(_teeperf_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

if(NOT TARGET teeperf::api)
  add_library(teeperf::api INTERFACE IMPORTED)
  set_target_properties(teeperf::api PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${_teeperf_prefix}/include")
endif()

if(NOT (CMAKE_SYSTEM_NAME STREQUAL "Linux" AND CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$"))
  # The header does nothing there, and needs nothing.
  if(teeperf_FIND_REQUIRED_hooks OR NOT teeperf_FIND_COMPONENTS)
    set(teeperf_FOUND FALSE)
    set(teeperf_NOT_FOUND_MESSAGE
      "teeperf has hooks for programs of Linux on x86-64 alone, and this is ${CMAKE_SYSTEM_NAME} on \
${CMAKE_SYSTEM_PROCESSOR}: ask for the header alone with find_package(teeperf COMPONENTS api), which does nothing here")
    return()
  endif()
  set(teeperf_api_FOUND TRUE)
  return()
endif()

foreach(_teeperf_component IN LISTS teeperf_FIND_COMPONENTS)
  if(NOT _teeperf_component MATCHES "^(api|hooks)$")
    set(teeperf_FOUND FALSE)
    set(teeperf_NOT_FOUND_MESSAGE "teeperf has no ${_teeperf_component}: its components are api and hooks")
    return()
  endif()
  set(teeperf_${_teeperf_component}_FOUND TRUE)
endforeach()

if(NOT TARGET teeperf::hooks)
  set(_teeperf_all @LINK_ALL@)
  set(_teeperf_scopes @LINK_SCOPES@)
  set(_teeperf_executable @LINK_EXECUTABLE@)
  set(_teeperf_library @LINK_LIBRARY@)
  set(_teeperf_clang @LINK_CLANG@)
  # Functions of the system's headers have no hooks: a hooked std::sort alone can make hundreds of millions of events.
  string(REPLACE ";" "," _teeperf_headers "/usr/include;/usr/local/include;${CMAKE_C_IMPLICIT_INCLUDE_DIRECTORIES};${CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES}")
  string(REGEX REPLACE ",+$" "" _teeperf_headers "${_teeperf_headers}")
  string(REGEX REPLACE ",,+" "," _teeperf_headers "${_teeperf_headers}")
  foreach(_teeperf_language C CXX)
    set(_teeperf_is_gcc "$<COMPILE_LANG_AND_ID:${_teeperf_language},GNU>")
    set(_teeperf_is_clang "$<COMPILE_LANG_AND_ID:${_teeperf_language},Clang>")
    list(APPEND _teeperf_compile
      "$<${_teeperf_is_gcc}:-finstrument-functions>"
      "$<${_teeperf_is_gcc}:-finstrument-functions-exclude-file-list=${_teeperf_headers}>"
      "$<${_teeperf_is_clang}:SHELL:@CLANG_HOOKS@>"
      "$<${_teeperf_is_clang}:SHELL:-isystem \"${_teeperf_prefix}/include/teeperf-clang\">")
  endforeach()
  set(_teeperf_is_program "$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>")
  set(_teeperf_is_cxx_clang "$<LINK_LANG_AND_ID:CXX,Clang>")
  foreach(_teeperf_kind scopes hooks hooks_shared)
    add_library(teeperf::${_teeperf_kind} INTERFACE IMPORTED)
    set(_teeperf_link "${_teeperf_prefix}/lib/teeperf_stub.o")
    if(_teeperf_kind STREQUAL "scopes")
      list(APPEND _teeperf_link ${_teeperf_scopes})
    else()
      list(APPEND _teeperf_link ${_teeperf_all})
      foreach(_teeperf_flag IN LISTS _teeperf_clang)
        list(APPEND _teeperf_link "$<${_teeperf_is_cxx_clang}:${_teeperf_flag}>")
      endforeach()
    endif()
    foreach(_teeperf_flag IN LISTS _teeperf_executable)
      list(APPEND _teeperf_link "$<${_teeperf_is_program}:${_teeperf_flag}>")
    endforeach()
    foreach(_teeperf_flag IN LISTS _teeperf_library)
      list(APPEND _teeperf_link "$<$<NOT:${_teeperf_is_program}>:${_teeperf_flag}>")
    endforeach()
    # Behind the target's own objects: a link takes the wrappers that it needs.
    set(_teeperf_behind "${_teeperf_prefix}/lib/libteeperf_wrap.a")
    if(NOT _teeperf_kind STREQUAL "hooks_shared")
      list(APPEND _teeperf_link "$<${_teeperf_is_program}:${_teeperf_prefix}/lib/teeperf_rt.o>")
    else()
      # Hooks refer to it weakly, for which linkers take no library with --as-needed.
      list(APPEND _teeperf_behind "-Wl,--push-state,--no-as-needed" teeperf::runtime "-Wl,--pop-state")
    endif()
    if(NOT _teeperf_kind STREQUAL "scopes")
      set_target_properties(teeperf::${_teeperf_kind} PROPERTIES INTERFACE_COMPILE_OPTIONS "${_teeperf_compile}")
    endif()
    set_target_properties(teeperf::${_teeperf_kind} PROPERTIES
      INTERFACE_LINK_OPTIONS "${_teeperf_link}"
      INTERFACE_LINK_LIBRARIES "teeperf::api;${_teeperf_behind}")
  endforeach()
  add_library(teeperf::runtime SHARED IMPORTED)
  set_target_properties(teeperf::runtime PROPERTIES
    IMPORTED_LOCATION "${_teeperf_prefix}/lib/libteeperf.so"
    IMPORTED_SONAME libteeperf.so)
  foreach(_teeperf_used all scopes executable library clang headers language is_gcc is_clang compile is_program is_cxx_clang kind
      link flag behind)
    unset(_teeperf_${_teeperf_used})
  endforeach()
  unset(_teeperf_used)
endif()
unset(_teeperf_prefix)
unset(_teeperf_component)
