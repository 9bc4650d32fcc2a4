/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef SF_PABI_CONTAINER_OF_H
#define SF_PABI_CONTAINER_OF_H

#include <stddef.h>

/* The struct that holds @member, which @ptr points to. */
#define container_of(ptr, type, member)                               \
	({                                                            \
		__typeof__(((type *)0)->member) *sf_member = (ptr);   \
		(type *)((char *)sf_member - offsetof(type, member)); \
	})

#endif
