/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <sys/mman.h>
#include "softnic/convert.h"
#include "softnic/raw.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

int convert_acquire(struct rnic_mr_attr *attr)
{
	uint64_t mask = RNIC_PAGE - 1;
	uint64_t start = attr->addr & ~mask;
	uint64_t end = (attr->addr + attr->len + mask) & ~mask;
	bool wr = attr->access & RNIC_LOCAL_WRITE;
	long err;

	attr->nseg = 0;
	if (!attr->len)
		return 0;
	if (end < start)
		return EINVAL;
	err = RAW(SYS_madvise, start, end - start,
		  wr ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
	if (err == -ENOMEM || err == -EFAULT)
		return EFAULT;
	return 0;
}

void convert_release(uint64_t addr, uint64_t len)
{
	(void)addr;
	(void)len;
}

int convert_note(uint32_t key, uint64_t addr, uint64_t len)
{
	(void)key;
	(void)addr;
	(void)len;
	return 0;
}

void convert_forget(uint32_t key)
{
	(void)key;
}

void convert_helper_threads(int n)
{
	(void)n;
}

void convert_before_fork(void)
{
}

void convert_parent_after_fork(void)
{
}

void convert_child_after_fork(void)
{
}
