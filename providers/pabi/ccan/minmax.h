/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef SF_PABI_MINMAX_H
#define SF_PABI_MINMAX_H

#define min_t(type, a, b)                    \
	({                                   \
		type sf_a = (a), sf_b = (b); \
		sf_a < sf_b ? sf_a : sf_b;   \
	})

#define max_t(type, a, b)                    \
	({                                   \
		type sf_a = (a), sf_b = (b); \
		sf_a > sf_b ? sf_a : sf_b;   \
	})

#endif
