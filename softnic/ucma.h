/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The ABI of /dev/infiniband/rdma_cm: what a kernel would answer to write(2) on
 * it, as a library that does not know how a call reached it.  It runs inside
 * other programs' system calls: no malloc, no stdio, no lock.
 */
#ifndef SFNIC_UCMA_H
#define SFNIC_UCMA_H

#include <sys/types.h>
#include "softnic/cma.h"

/* What is behind the ABI.  int: 0 or a positive errno. */
struct ucma_ops {
	/* cma_command() on @req->channel. */
	int (*call)(struct cma_req *req, struct cma_rsp *rsp);
	/*
	 * Waits until @fd is readable, as its flags say, and makes it
	 * unreadable: EAGAIN, EINTR, or EIO when nobody is there any more.
	 */
	int (*wait)(int fd);
	/* @fd is unreadable now if nobody has told of an event since. */
	void (*quiet)(int fd, uint32_t channel);
	/* The channel that @fd stands for, or 0. */
	uint32_t (*channel)(int fd);
};

/* The software RNIC of this process. */
extern const struct ucma_ops ucma_real_ops;

/* write(@fd, @buf, @len) on @channel: @len or a negative errno. */
ssize_t ucma_write(const struct ucma_ops *ops, int fd, uint32_t channel,
		   const void *buf, size_t len);

#endif
