/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Registered memory that others can reach without a system call: whole pages
 * of it are moved into the arena, in place.
 */
#ifndef SFNIC_CONVERT_H
#define SFNIC_CONVERT_H

#include "rnic/rnic.h"
#include "scalefabric/sf_hw.h"

/* What a region holds. */
struct convert_hold {
	uint64_t addr, len;
	uint64_t seq;
};

/*
 * Checks that the region is mapped as @attr->access needs (EFAULT if not),
 * converts what can be converted, fills in attr->seg.
 */
int convert_acquire(struct rnic_mr_attr *attr, struct convert_hold *hold);
/*
 * The same for a region that is paged on demand: nothing is checked or
 * converted.
 */
void convert_none(struct rnic_mr_attr *attr, struct convert_hold *hold);
void convert_release(const struct convert_hold *hold);
/* The region got its key; convert_forget() releases what it holds. */
void convert_note(uint32_t key, const struct convert_hold *hold);
void convert_forget(uint32_t key);

/* Pages in; EFAULT if not all of it is mapped as @write needs. */
int convert_prefetch(uint64_t addr, uint64_t len, bool write);

/* Is any of it in the arena?  Takes no lock. */
bool convert_covers(uint64_t addr, uint64_t len);

/* How many threads of this process are ours. */
void convert_helper_threads(int n);

/* A forked child gets copies: its memory is not the parent's. */
void convert_before_fork(void);
void convert_parent_after_fork(void);
void convert_child_after_fork(void);

#endif
