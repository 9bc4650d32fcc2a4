/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which paths the preload library leads into the tree.  Signal safe: no
 * allocation, no stdio, errno untouched.
 */
#ifndef SFNIC_PATHS_H
#define SFNIC_PATHS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Longest path below the runtime directory that is led there. */
#define PLACE_PATH_MAX 512

enum place_kind {
	PLACE_ELSEWHERE = 0, /* none of ours: the path as it was given */
	PLACE_TREE,	     /* a file or directory of the tree */
	PLACE_UVERBS,	     /* /dev/infiniband/uverbs<unit> */
	PLACE_UMAD,	     /* /dev/infiniband/umad<unit> */
	PLACE_RDMA_CM,	     /* /dev/infiniband/rdma_cm */
};

struct place {
	enum place_kind kind;
	uint32_t unit;
	const char *path; /* what to hand on */
	char buf[PLACE_PATH_MAX];
};

/*
 * Where @path, relative to @dirfd (AT_FDCWD: the working directory), leads when
 * the tree is below @dir.  Returns place->path.
 */
const char *place_find(struct place *place, const char *dir, int dirfd,
		       const char *path);
/*
 * The path that a program knows of: without @dir if it is one of the tree's.
 * Returns a pointer into @path.
 */
const char *place_shown(const char *dir, const char *path);

#endif
