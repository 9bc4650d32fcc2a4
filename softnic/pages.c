/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include "rnic/rnic.h"
#include "softnic/pages.h"

struct extent {
	uint64_t off, len;
};

/* Free extents, ascending, never touching each other. */
static struct extent *extents;
static size_t count, room;
static uint64_t used;
static int file;

static uint64_t round_up(uint64_t len)
{
	return (len + RNIC_PAGE - 1) & ~(uint64_t)(RNIC_PAGE - 1);
}

static int insert(size_t at, uint64_t off, uint64_t len)
{
	if (count == room) {
		size_t n = room ? room * 2 : 64;
		struct extent *more = realloc(extents, n * sizeof(*more));

		if (!more)
			return ENOMEM;
		extents = more;
		room = n;
	}
	memmove(&extents[at + 1], &extents[at],
		(count - at) * sizeof(*extents));
	extents[at] = (struct extent){off, len};
	count++;
	return 0;
}

static void delete (size_t at)
{
	count--;
	memmove(&extents[at], &extents[at + 1],
		(count - at) * sizeof(*extents));
}

int pages_init(int fd, uint64_t start, uint64_t end)
{
	file = fd;
	return insert(0, start, end - start);
}

uint64_t pages_alloc(uint64_t len)
{
	size_t i;
	uint64_t off;

	len = round_up(len);
	if (!len)
		return 0;
	for (i = 0; i < count; i++) {
		if (extents[i].len < len)
			continue;
		off = extents[i].off;
		extents[i].off += len;
		extents[i].len -= len;
		if (!extents[i].len)
			delete (i);
		used += len;
		return off;
	}
	return 0;
}

/* Index of the first extent above @off. */
static size_t above(uint64_t off)
{
	size_t lo = 0, hi = count;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (extents[mid].off > off)
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

void pages_free(uint64_t off, uint64_t len)
{
	size_t at = above(off);
	bool before, after;

	len = round_up(len);
	if (!len)
		return;
	fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)off,
		  (off_t)len);
	used -= len;
	before = at && extents[at - 1].off + extents[at - 1].len == off;
	after = at < count && off + len == extents[at].off;
	if (before && after) {
		extents[at - 1].len += len + extents[at].len;
		delete (at);
	} else if (before) {
		extents[at - 1].len += len;
	} else if (after) {
		extents[at].off = off;
		extents[at].len += len;
	} else {
		/* No memory for the note: the pages are lost until exit. */
		(void)insert(at, off, len);
	}
}

uint64_t pages_used(void)
{
	return used;
}
