# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Fuzz targets: fuzz/NAME.c has LLVMFuzzerTestOneInput(), fuzz/corpus/NAME/ holds
# inputs.  Every compiler replays the corpus as a test; with SF_FUZZERS and clang
# it is a libFuzzer program.

# sf_fuzz_target(NAME [SOURCES path from the top ...] [LIBS ...])
function(sf_fuzz_target name)
  cmake_parse_arguments(arg "" "" "SOURCES;LIBS" ${ARGN})
  set(dir ${CMAKE_SOURCE_DIR}/tests/fuzz)
  if(NOT EXISTS ${dir}/${name}.c)
    return()
  endif()
  set(flags -fsanitize=address,undefined -fno-sanitize-recover=undefined)
  set(main ${dir}/replay.c)
  if(SF_FUZZERS AND CMAKE_C_COMPILER_ID MATCHES Clang)
    list(APPEND flags -fsanitize=fuzzer)
    set(main)
  endif()
  list(TRANSFORM arg_SOURCES PREPEND ${CMAKE_SOURCE_DIR}/)
  add_executable(${name} ${dir}/${name}.c ${main} ${arg_SOURCES})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR} ${dir})
  target_compile_definitions(${name} PRIVATE)
  target_compile_options(${name} PRIVATE ${flags} -UNDEBUG -g)
  target_link_options(${name} PRIVATE ${flags})
  target_link_libraries(${name} PRIVATE
    sf_contract Threads::Threads ${CMAKE_DL_LIBS} ${arg_LIBS})
  set_target_properties(${name} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz)
  if(main AND NOT SF_TESTS STREQUAL OFF)
    add_test(NAME fuzz/${name} COMMAND ${name} ${dir}/corpus/${name})
    set_tests_properties(fuzz/${name} PROPERTIES LABELS fuzz TIMEOUT 120)
  endif()
endfunction()

sf_fuzz_target(fuzz_uverbs SOURCES
  softnic/uverbs.c softnic/uverbs_ah.c softnic/uverbs_cq.c softnic/uverbs_device.c
  softnic/uverbs_flow.c softnic/uverbs_wq.c
  softnic/uverbs_ioctl.c softnic/uverbs_mr.c softnic/uverbs_qp.c
  softnic/uverbs_qp_attr.c softnic/uverbs_srq.c softnic/uverbs_user.c
  softnic/uverbs_xrc.c)
sf_fuzz_target(fuzz_queues SOURCES
  rnic/core.c rnic/cq.c rnic/datagram.c rnic/flow.c rnic/frame.c
  rnic/link_direct.c rnic/memory.c rnic/mr.c rnic/port.c rnic/qp.c
  rnic/requester.c rnic/responder.c rnic/srq.c rnic/window.c
  rnic/xrc.c)
sf_fuzz_target(fuzz_frame SOURCES rnic/frame.c)
sf_fuzz_target(fuzz_cm SOURCES rnic/cm.c rnic/cm_msg.c)
sf_fuzz_target(fuzz_ucma SOURCES
  softnic/cma.c softnic/cma_addr.c softnic/cma_event.c softnic/cma_mcast.c
  softnic/cma_query.c softnic/ucma.c
  softnic/uverbs_user.c rnic/cm.c rnic/cm_msg.c)
