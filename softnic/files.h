/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Registered memory that is a file, such as a dmabuf: whoever copies to or from
 * it maps the file itself.  Neither malloc nor stdio.
 */
#ifndef SFNIC_FILES_H
#define SFNIC_FILES_H

#include <stdbool.h>
#include "softnic/host.h"

/* Address spaces with this bit are files: addresses in them are offsets. */
#define SFNIC_SPACE_FILE (1u << 31)

static inline bool sfnic_space_is_file(uint32_t space)
{
	return space & SFNIC_SPACE_FILE && space != RNIC_SPACE_ARENA &&
	       space != RNIC_SPACE_NULL;
}

/*
 * Is @fd a dmabuf that can be mapped, also for writing?  0 and its size, EBADF,
 * EINVAL (no dmabuf), EACCES, EOPNOTSUPP (not for CPUs).
 */
int files_check(int fd, bool write, uint64_t *size);
/* Copies between @buf and @off of the file that is @space; false: it cannot. */
bool files_copy(const struct sfnic_host *h, uint32_t space, uint64_t off,
		char *buf, uint64_t len, bool write);
/* Its region is gone, and nobody uses it any more. */
void files_forget(uint32_t space);

#endif
