/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A backend that keeps no objects but counts them and records what is asked. */
#ifndef UVERBS_FAKE_H
#define UVERBS_FAKE_H

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "softnic/uverbs.h"

#define FAKE_CTX 7u
#define FAKE_DEV 1u
#define FAKE_PDN 11u
#define FAKE_CQN 12u
#define FAKE_QPN 0x4013u
#define FAKE_XRCD 9u
#define FAKE_QP_REF 0x80000007u
#define FAKE_SRQN 14u
#define FAKE_AH 0x1601u
#define FAKE_FLOW 0x1701u
#define FAKE_KEY 0x1401u
#define FAKE_DM 17u
#define FAKE_CHANNEL 15u
#define FAKE_CHANNEL_FD 1000
#define FAKE_ASYNC_FD 1001

static struct fake {
	struct sfnic_req req; /* the last one */
	struct sfnic_rsp rsp; /* what the next one gets, but for the id */
	struct rnic_mr_attr mr;
	struct rnic_port_info port;
	int err; /* what the next call returns */
	int calls;
	int sent_fd;
	int pds, mrs, mws, dms, ahs, cqs, srqs, qps, xrcds, flows, fds;
	uint32_t mask; /* of the last re-registration */
	int prefetched;
	uint64_t prefetch_addr;
	bool prefetch_write;
	uint32_t sq_rung, rq_rung, srq_rung, armed;
	int locked;
	uint32_t unread; /* events that drop_events finds */
	int drop_fd[2];
	uint64_t drop_record[2];
	uint32_t drop_size[2];
	int drops;
} fake;

static uint32_t fake_object(uint32_t op)
{
	switch (op) {
	case SFNIC_ALLOC_PD:
		fake.pds++;
		return FAKE_PDN;
	case SFNIC_DEALLOC_PD:
		fake.pds--;
		return 0;
	case SFNIC_ALLOC_MW:
		fake.mws++;
		return FAKE_KEY;
	case SFNIC_DEALLOC_MW:
		fake.mws--;
		return 0;
	case SFNIC_ALLOC_DM:
		fake.dms++;
		return FAKE_DM;
	case SFNIC_FREE_DM:
		fake.dms--;
		return 0;
	case SFNIC_CREATE_CQ:
		fake.cqs++;
		return FAKE_CQN;
	case SFNIC_DESTROY_CQ:
		fake.cqs--;
		return 0;
	case SFNIC_CREATE_AH:
		fake.ahs++;
		return FAKE_AH;
	case SFNIC_DESTROY_AH:
		fake.ahs--;
		return 0;
	case SFNIC_CREATE_SRQ:
		fake.srqs++;
		return FAKE_SRQN;
	case SFNIC_DESTROY_SRQ:
		fake.srqs--;
		return 0;
	case SFNIC_OPEN_XRCD:
		fake.xrcds++;
		return FAKE_XRCD;
	case SFNIC_CLOSE_XRCD:
		fake.xrcds--;
		return 0;
	case SFNIC_OPEN_QP:
		fake.qps++;
		return FAKE_QP_REF;
	case SFNIC_CREATE_QP:
		fake.qps++;
		return FAKE_QPN;
	case SFNIC_DESTROY_QP:
		fake.qps--;
		return 0;
	/* Rules and what belongs to them. */
	case SFNIC_CREATE_FLOW:
	case SFNIC_CREATE_FLOW_COUNTERS:
	case SFNIC_CREATE_WQ_TABLE:
		fake.flows++;
		return FAKE_FLOW;
	case SFNIC_DESTROY_FLOW:
	case SFNIC_DESTROY_FLOW_COUNTERS:
	case SFNIC_DESTROY_WQ_TABLE:
		fake.flows--;
		return 0;
	default:
		return 0;
	}
}

static int fake_call(struct sfnic_req *req, int send_fd, struct sfnic_rsp *rsp,
		     int *recv_fd)
{
	(void)recv_fd;
	fake.sent_fd = send_fd;
	fake.calls++;
	fake.req = *req;
	if (fake.err)
		return fake.err;
	*rsp = fake.rsp;
	rsp->id = fake_object(req->op);
	return 0;
}

static int fake_channel(uint32_t ctx, int *fd, uint32_t *channel)
{
	(void)ctx;
	if (fake.err)
		return fake.err;
	fake.fds++;
	*fd = FAKE_CHANNEL_FD;
	*channel = FAKE_CHANNEL;
	return 0;
}

static int fake_async_fd(uint32_t ctx, int *fd)
{
	(void)ctx;
	if (fake.err)
		return fake.err;
	fake.fds++;
	*fd = FAKE_ASYNC_FD;
	return 0;
}

static void fake_lock_events(void)
{
	fake.locked++;
}

static void fake_unlock_events(void)
{
	fake.locked--;
}

static uint32_t fake_drop_events(int fd, uint64_t record, uint32_t size)
{
	int i = fake.drops++ & 1;

	if (fake.locked != 1)
		abort();

	fake.drop_fd[i] = fd;
	fake.drop_record[i] = record;
	fake.drop_size[i] = size;
	return fake.unread;
}

static uint32_t fake_fd_channel(int fd)
{
	return fd == FAKE_CHANNEL_FD ? FAKE_CHANNEL : 0;
}

static int fake_channel_fd(uint32_t channel)
{
	return channel == FAKE_CHANNEL ? FAKE_CHANNEL_FD : -1;
}

static int fake_async_read_fd(uint32_t ctx)
{
	return ctx == FAKE_CTX ? FAKE_ASYNC_FD : -1;
}

static int fake_inode_fd(int fd)
{
	if (fd < 0)
		return -EBADF;
	if (fake.err)
		return -fake.err;
	fake.fds++;
	return fd + 1000;
}

static void fake_close_fd(int fd)
{
	(void)fd;
	fake.fds--;
}

static int fake_reg_mr(uint32_t ctx, struct rnic_mr_attr *attr, uint32_t *key)
{
	(void)ctx;
	if (fake.err)
		return fake.err;
	fake.mrs++;
	fake.mr = *attr;
	*key = FAKE_KEY;
	return 0;
}

static int fake_dereg_mr(uint32_t ctx, uint32_t key)
{
	(void)ctx;
	if (key != FAKE_KEY)
		return EINVAL;
	fake.mrs--;
	return 0;
}

static int fake_reg_dmabuf(uint32_t ctx, int fd, struct rnic_mr_attr *attr,
			   uint32_t *key)
{
	return fd == 5 ? fake_reg_mr(ctx, attr, key) : EBADF;
}

static int fake_rereg_mr(uint32_t ctx, uint32_t key, uint32_t mask,
			 struct rnic_mr_attr *attr)
{
	(void)ctx;
	if (fake.err || key != FAKE_KEY)
		return fake.err ? fake.err : EINVAL;
	fake.mask = mask;
	fake.mr = *attr;
	return 0;
}

static int fake_prefetch(uint64_t addr, uint64_t len, bool write)
{
	(void)len;
	fake.prefetched++;
	fake.prefetch_addr = addr;
	fake.prefetch_write = write;
	return fake.err;
}

static int fake_query_pd(uint32_t ctx, uint32_t pdn)
{
	return ctx == FAKE_CTX && pdn == FAKE_PDN ? 0 : EINVAL;
}

static int fake_query_mr(uint32_t ctx, uint32_t key, struct rnic_mr_attr *attr)
{
	*attr = fake.mr;
	return ctx == FAKE_CTX && key == FAKE_KEY ? 0 : EINVAL;
}

static int fake_query_dm(uint32_t ctx, uint32_t dm, uint64_t *off,
			 uint64_t *len)
{
	*off = 0x7000000;
	*len = RNIC_PAGE + 4;
	return ctx == FAKE_CTX && dm == FAKE_DM ? 0 : EINVAL;
}

static void fake_sq_ring(uint32_t qpn)
{
	fake.sq_rung = qpn;
}

static void fake_rq_ring(uint32_t qpn)
{
	fake.rq_rung = qpn;
}

static void fake_srq_ring(uint32_t srqn)
{
	fake.srq_rung = srqn;
}

static void fake_cq_arm(uint32_t cqn)
{
	fake.armed = cqn;
}

static int fake_device_info(uint32_t dev, struct rnic_device_info *info)
{
	if (dev != FAKE_DEV)
		return EINVAL;
	*info = (struct rnic_device_info){
		.name = "fake",
		.node_guid = 0x0201020304050607,
		.sys_image_guid = 0x0201020304050600,
		.ports = RNIC_MAX_PORTS,
	};
	return 0;
}

static int fake_port_info(uint32_t dev, uint32_t port,
			  struct rnic_port_info *info)
{
	if (dev != FAKE_DEV || !port || port > RNIC_MAX_PORTS)
		return EINVAL;
	*info = fake.port;
	return 0;
}

static const struct uverbs_ops fake_ops = {
	.call = fake_call,
	.channel = fake_channel,
	.async_fd = fake_async_fd,
	.lock_events = fake_lock_events,
	.unlock_events = fake_unlock_events,
	.drop_events = fake_drop_events,
	.fd_channel = fake_fd_channel,
	.channel_fd = fake_channel_fd,
	.async_read_fd = fake_async_read_fd,
	.inode_fd = fake_inode_fd,
	.close_fd = fake_close_fd,
	.reg_mr = fake_reg_mr,
	.dereg_mr = fake_dereg_mr,
	.reg_dmabuf = fake_reg_dmabuf,
	.rereg_mr = fake_rereg_mr,
	.prefetch = fake_prefetch,
	.query_pd = fake_query_pd,
	.query_mr = fake_query_mr,
	.query_dm = fake_query_dm,
	.sq_ring = fake_sq_ring,
	.rq_ring = fake_rq_ring,
	.srq_ring = fake_srq_ring,
	.cq_arm = fake_cq_arm,
	.device_info = fake_device_info,
	.port_info = fake_port_info,
};

static void fake_reset(void)
{
	memset(&fake, 0, sizeof(fake));
	fake.port = (struct rnic_port_info){
		.link_layer = RNIC_INFINIBAND,
		.state = 4,
		.mtu = RNIC_MTU_1024,
		.max_mtu = RNIC_MTU_4096,
		.lid = 3,
		.sm_lid = 1,
		.gids = 3, /* the second one is empty */
	};
	memset(fake.port.gid[0], 0xa0, 16);
	memset(fake.port.gid[2], 0xa2, 16);
	fake.rsp.cq.mem =
		(struct rnic_cq_mem){0x4000000, 0x4000, 0x4010000, 256};
}

/* After cq.mem is of no more use: they share memory. */
static inline void fake_expect_qp(void)
{
	fake.rsp.qp.mem = (struct rnic_qp_mem){
		.queues = 0x5000000,
		.queues_len = 0x3000,
		.sq = 0x40,
		.line = 0,
		.rq = 0x2040,
		.doorbells = 0x5010000,
		.sq_start = 64,
		.rq_start = 0,
		.handle = FAKE_QPN,
	};
}

static inline void fake_expect_srq(void)
{
	fake.rsp.srq.mem = (struct rnic_srq_mem){
		.ring = 0x6000000,
		.ring_len = 0x2000,
		.doorbell = 0x6010000,
	};
	fake.rsp.srq.attr = (struct rnic_srq_attr){
		.log_depth = 7,
		.log_stride = 6,
		.limit = 5,
		.user_handle = 0x5299,
	};
}

#endif
