# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Run by cpack before it packs: manual pages as Debian wants them.
file(GLOB_RECURSE pages ${CPACK_TEMPORARY_DIRECTORY}/*.[1-9])
list(FILTER pages INCLUDE REGEX "/man/man[1-9]/[^/]*$")
foreach(page ${pages})
  execute_process(COMMAND gzip -9n ${page} RESULT_VARIABLE rc)
  if(rc)
    message(FATAL_ERROR "gzip ${page}: ${rc}")
  endif()
endforeach()
