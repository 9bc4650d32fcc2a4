# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Debian packages, made by scripts/package: one for each install component.

option(SF_PACKAGE "Debian packages by cpack" OFF)
if(NOT SF_PACKAGE)
  return()
endif()

set(SF_PACKAGING ${CMAKE_SOURCE_DIR}/packaging)

# The changelog says which version this is, and whose.
file(STRINGS ${SF_PACKAGING}/changelog SF_CHANGELOG_HEAD LIMIT_COUNT 1)
if(NOT SF_CHANGELOG_HEAD MATCHES "^scalefabric \\(([0-9.]+)-([0-9]+)\\) ")
  message(FATAL_ERROR "packaging/changelog does not begin with a version")
endif()
set(SF_UPSTREAM_VERSION ${CMAKE_MATCH_1})
set(SF_PACKAGE_RELEASE ${CMAKE_MATCH_2})
if(NOT SF_UPSTREAM_VERSION STREQUAL PROJECT_VERSION)
  message(FATAL_ERROR "packaging/changelog has version ${SF_UPSTREAM_VERSION},"
    " the project has ${PROJECT_VERSION}")
endif()
file(STRINGS ${SF_PACKAGING}/changelog SF_SIGNATURE REGEX "^ -- ")
if(NOT SF_SIGNATURE MATCHES "^ -- ([^>;]+>)  ")
  message(FATAL_ERROR "packaging/changelog names no maintainer")
endif()
set(SF_MAINTAINER ${CMAKE_MATCH_1})
set(SF_PACKAGE_VERSION ${SF_UPSTREAM_VERSION}-${SF_PACKAGE_RELEASE})

# What every package carries.  Man pages are compressed by compress.cmake.
set(SF_CHANGELOG ${CMAKE_BINARY_DIR}/changelog.Debian.gz)
execute_process(COMMAND gzip -9nc ${SF_PACKAGING}/changelog
  OUTPUT_FILE ${SF_CHANGELOG} RESULT_VARIABLE SF_GZIP)
if(SF_GZIP)
  message(FATAL_ERROR "gzip: ${SF_GZIP}")
endif()
foreach(component provider softnic dev)
  install(FILES ${SF_PACKAGING}/copyright ${SF_CHANGELOG}
    DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/scalefabric-${component}
    COMPONENT ${component})
endforeach()
install(FILES ${CMAKE_SOURCE_DIR}/docs/hardware.md
  DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/scalefabric-dev COMPONENT dev)

# libibverbs' interface to its providers is that of one release: structures
# grow under the same name, and prototypes change.
find_package(PkgConfig REQUIRED)
pkg_check_modules(SF_IBVERBS REQUIRED libibverbs)
if(NOT SF_IBVERBS_VERSION MATCHES "^[0-9]+[.][0-9]+[.]([0-9]+)([.]|$)")
  message(FATAL_ERROR "libibverbs.pc has version ${SF_IBVERBS_VERSION}: "
    "which release of rdma-core is that?")
endif()
set(SF_RDMA_CORE ${CMAKE_MATCH_1})
math(EXPR SF_RDMA_CORE_NEXT "${SF_RDMA_CORE} + 1")

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME scalefabric)
set(CPACK_PACKAGE_CONTACT ${SF_MAINTAINER})
set(CPACK_PACKAGE_VERSION ${SF_UPSTREAM_VERSION})
set(CPACK_COMPONENTS_ALL provider softnic dev)
set(CPACK_STRIP_FILES ON)
# /etc is outside of the prefix.
set(CPACK_SET_DESTDIR ON)
set(CPACK_INSTALL_PREFIX ${CMAKE_INSTALL_PREFIX})
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE
  GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_SOURCE_DIR}/cmake/compress.cmake)

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE ${SF_PACKAGE_RELEASE})
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)

set(CPACK_DEBIAN_PROVIDER_PACKAGE_NAME scalefabric-provider)
set(CPACK_DEBIAN_PROVIDER_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_PROVIDER_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PROVIDER_PACKAGE_DEPENDS
  "libibverbs1 (>= ${SF_RDMA_CORE}), libibverbs1 (<< ${SF_RDMA_CORE_NEXT})")
set(CPACK_COMPONENT_PROVIDER_DESCRIPTION
"libibverbs provider for scaleFabric network cards
Every program that uses libibverbs works with it on scaleFabric cards and on
their software model, unchanged.
.
This build is for libibverbs of rdma-core ${SF_RDMA_CORE}. Its interface to
providers is private and changes from release to release.")
set(SF_CONFFILES ${CMAKE_BINARY_DIR}/packaging/conffiles)
file(WRITE ${SF_CONFFILES}
  "${CMAKE_INSTALL_FULL_SYSCONFDIR}/libibverbs.d/scalefabric.driver\n")
set(CPACK_DEBIAN_PROVIDER_PACKAGE_CONTROL_EXTRA ${SF_CONFFILES})

set(CPACK_DEBIAN_SOFTNIC_PACKAGE_NAME scalefabric-softnic)
set(CPACK_DEBIAN_SOFTNIC_PACKAGE_SECTION net)
set(CPACK_DEBIAN_SOFTNIC_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_SOFTNIC_PACKAGE_DEPENDS
  "scalefabric-provider (= ${SF_PACKAGE_VERSION})")
set(CPACK_DEBIAN_SOFTNIC_PACKAGE_RECOMMENDS ibverbs-utils)
set(CPACK_DEBIAN_SOFTNIC_PACKAGE_SUGGESTS perftest)
set(CPACK_COMPONENT_SOFTNIC_DESCRIPTION
"software RDMA network card without kernel module or root
The command sfnic runs unmodified RDMA programs on a scaleFabric card that is
made of software. Programs of one user reach each other through shared memory,
in a container or a CI job as well as on a desk.")

set(CPACK_DEBIAN_DEV_PACKAGE_NAME scalefabric-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_DEV_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_DEV_PACKAGE_RECOMMENDS linux-libc-dev)
set(CPACK_COMPONENT_DEV_DESCRIPTION
"hardware and kernel interface of scaleFabric network cards
Headers for programs and GPU kernels that drive the queues of a scaleFabric
card by themselves (C, C++, CUDA, HIP and OpenCL C), the interface between
provider and kernel driver, and the document that describes the hardware.")

include(CPack)
