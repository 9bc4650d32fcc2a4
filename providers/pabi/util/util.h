/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef SF_PABI_UTIL_H
#define SF_PABI_UTIL_H

#include <stdbool.h>
#include <stdint.h>

/* Does @mask hold nothing but bits of @supported? */
static inline bool check_comp_mask(uint64_t mask, uint64_t supported)
{
	return !(mask & ~supported);
}

#endif
