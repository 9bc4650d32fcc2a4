/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What this process has mapped where, from /proc/self/maps. */
#ifndef SFNIC_MAPS_H
#define SFNIC_MAPS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct mapping {
	uint64_t start, end;
	uint64_t off;
	uint64_t ino;
	dev_t dev;
	bool readable;
	bool writable; /* and readable */
	bool shared;
	bool special; /* [stack], [vvar], ... */
};

/*
 * The mappings that overlap [start, end), ascending, clipped to it.  Returns
 * how many, at most @max, or -1.  Neither malloc nor stdio.
 */
int maps_read(uint64_t start, uint64_t end, struct mapping *maps, int max);
/*
 * May the process whose /proc/self/maps @fd is read, or also write, all of
 * @len bytes at @va?
 */
bool maps_allow(int fd, uint64_t va, uint64_t len, bool write);
/* Threads of this process, or -1. */
int maps_threads(void);

#endif
