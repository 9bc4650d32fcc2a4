/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The uverbs ABI of the software RNIC: what a kernel would answer to ioctl(2)
 * and write(2) on /dev/infiniband/uverbsN, as a library that does not know how
 * a call reached it.  It runs inside other programs' system calls: no malloc,
 * no stdio, no lock.
 *
 * Numbers of the device (pdn, cqn, qpn, memory key) are the uverbs handles; the
 * backend checks that they belong to @ctx.
 */
#ifndef SFNIC_UVERBS_H
#define SFNIC_UVERBS_H

#include <sys/types.h>
#include "softnic/proto.h"

/* What is behind the ABI.  int: 0 or a positive errno, unless said. */
struct uverbs_ops {
	/* See client.h, sfnic_*() of the same names. */
	int (*call)(struct sfnic_req *req, int send_fd, struct sfnic_rsp *rsp,
		    int *recv_fd);
	int (*channel)(uint32_t ctx, int *fd, uint32_t *channel);
	int (*async_fd)(uint32_t ctx, int *fd);
	void (*lock_events)(void);
	void (*unlock_events)(void);
	uint32_t (*drop_events)(int fd, uint64_t record, uint32_t size);
	uint32_t (*fd_channel)(int fd);
	int (*channel_fd)(uint32_t channel);
	int (*async_read_fd)(uint32_t ctx);
	int (*inode_fd)(int fd);
	void (*close_fd)(int fd);
	int (*reg_mr)(uint32_t ctx, struct rnic_mr_attr *attr, uint32_t *key);
	int (*dereg_mr)(uint32_t ctx, uint32_t key);
	int (*reg_dmabuf)(uint32_t ctx, int fd, struct rnic_mr_attr *attr,
			  uint32_t *key);
	int (*rereg_mr)(uint32_t ctx, uint32_t key, uint32_t mask,
			struct rnic_mr_attr *attr);
	int (*prefetch)(uint64_t addr, uint64_t len, bool write);

	/* See rnic.h, rnic_*() of the same names. */
	void (*sq_ring)(uint32_t qpn);
	void (*rq_ring)(uint32_t qpn);
	void (*srq_ring)(uint32_t srqn);
	void (*cq_arm)(uint32_t cqn);
	int (*query_pd)(uint32_t ctx, uint32_t pdn);
	int (*query_mr)(uint32_t ctx, uint32_t key, struct rnic_mr_attr *attr);
	int (*query_dm)(uint32_t ctx, uint32_t dm, uint64_t *off,
			uint64_t *len);
	int (*device_info)(uint32_t dev, struct rnic_device_info *info);
	int (*port_info)(uint32_t dev, uint32_t port,
			 struct rnic_port_info *info);
};

/* The software RNIC of this process: client.h and rnic.h. */
extern const struct uverbs_ops uverbs_real_ops;

/* ioctl(RDMA_VERBS_IOCTL, @arg): 0 or a positive errno. */
int uverbs_ioctl(const struct uverbs_ops *ops, uint32_t ctx, uint32_t dev,
		 void *arg);
/* write(@buf, @len): @len or a negative errno. */
ssize_t uverbs_write(const struct uverbs_ops *ops, uint32_t ctx, uint32_t dev,
		     const void *buf, size_t len);

#endif
