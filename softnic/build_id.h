/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Two sides that share memory are of one layout: this number is compared. */
#ifndef SFNIC_BUILD_ID_H
#define SFNIC_BUILD_ID_H

#include "rnic/state.h"
#include "softnic/proto.h"

#define SFNIC_BUILD_ID                                                        \
	((uint64_t)SF_HW_VERSION << 56 | (uint64_t)RNIC_STATE_VERSION << 48 | \
	 (uint64_t)sizeof(struct sfnic_req) << 36 |                           \
	 (uint64_t)sizeof(struct rnic_qp) << 24 |                             \
	 (sizeof(struct rnic_shared) & 0xffffff))

#endif
