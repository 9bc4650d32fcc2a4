/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The functions through which the RNIC core reaches the world, the same for a
 * verbs program and for the daemon but for where descriptors come from.
 */
#ifndef SFNIC_HOST_H
#define SFNIC_HOST_H

#include "softnic/proto.h"

struct sfnic_host {
	struct sfnic_shared *shared;
	uint64_t size;	/* of the arena */
	uint32_t space; /* this process's own address space */
	int kick_fd;	/* eventfd that wakes the daemon */
	/*
	 * How long anyone may hold a lock before others take him for stopped.
	 * A program on a crowded machine may lose its CPU for long.
	 */
	uint32_t lock_wait_ms;
	/*
	 * The descriptor of a pipe or of an address space; -1 if it is gone.
	 * It stays this module's property.
	 */
	int (*get_fd)(uint32_t kind, uint32_t id);
	/* get_fd() keeps descriptors of files; else they are the caller's. */
	bool lends_files;
	/* A pipe is full: deliver it when it no longer is. */
	void (*event_later)(const struct rnic_event *event);
};

/* Everything but mem_alloc and mem_free. */
extern const struct rnic_host_ops sfnic_host_ops;

/* Writes the record of an event; 0, EAGAIN when the pipe is full, or EPIPE. */
int sfnic_event_write(int fd, const struct rnic_event *event);

enum rnic_copy_result sfnic_copy(void *host, const struct rnic_ref *dst,
				 const struct rnic_ref *src);

#endif
