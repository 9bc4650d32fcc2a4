/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An rdma-core tree generates a file of this name, with tagless copies of the
 * structs.  The provider reaches its driver parts through drv_payload and needs
 * none of them.
 */
#include <rdma/scalefabric-abi.h>
