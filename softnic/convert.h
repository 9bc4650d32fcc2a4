/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Registered memory that others can reach without a system call: whole pages
 * of it are moved into the arena, in place.
 */
#ifndef SFNIC_CONVERT_H
#define SFNIC_CONVERT_H

#include "rnic/rnic.h"

/*
 * Checks that the region is mapped as @attr->access needs (EFAULT if not),
 * converts what can be converted, fills in attr->seg.
 */
int convert_acquire(struct rnic_mr_attr *attr);
/* Gives back what convert_acquire() took for this range. */
void convert_release(uint64_t addr, uint64_t len);
/* The range belongs to @key from now on; convert_forget() releases it. */
int convert_note(uint32_t key, uint64_t addr, uint64_t len);
void convert_forget(uint32_t key);

/* How many threads of this process are ours. */
void convert_helper_threads(int n);

/* A forked child gets copies: its memory is not the parent's. */
void convert_before_fork(void);
void convert_parent_after_fork(void);
void convert_child_after_fork(void);

#endif
