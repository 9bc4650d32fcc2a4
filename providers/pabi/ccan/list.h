/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Only the space that a list node takes: libibverbs owns the lists. */
#ifndef SF_PABI_LIST_H
#define SF_PABI_LIST_H

struct list_node {
	struct list_node *next;
	struct list_node *prev;
};

#endif
