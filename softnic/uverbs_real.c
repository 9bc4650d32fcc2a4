// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The backend of a process that has the software RNIC. */
#include <errno.h>

#include "softnic/client.h"
#include "softnic/convert.h"
#include "softnic/uverbs.h"

static void real_sq_ring(uint32_t qpn)
{
	struct rnic *r = sfnic_rnic();

	if (r)
		rnic_sq_ring(r, qpn);
}

static void real_rq_ring(uint32_t qpn)
{
	struct rnic *r = sfnic_rnic();

	if (r)
		rnic_rq_ring(r, qpn);
}

static void real_srq_ring(uint32_t srqn)
{
	struct rnic *r = sfnic_rnic();

	if (r)
		rnic_srq_ring(r, srqn);
}

static void real_cq_arm(uint32_t cqn)
{
	struct rnic *r = sfnic_rnic();

	if (r)
		rnic_cq_arm(r, cqn);
}

static int real_query_pd(uint32_t ctx, uint32_t pdn)
{
	const struct rnic *r = sfnic_rnic();

	return r ? rnic_pd_query(r, ctx, pdn) : EIO;
}

static int real_query_mr(uint32_t ctx, uint32_t key, struct rnic_mr_attr *attr)
{
	const struct rnic *r = sfnic_rnic();

	return r ? rnic_mr_query(r, ctx, key, attr) : EIO;
}

static int real_query_dm(uint32_t ctx, uint32_t dm, uint64_t *off,
			 uint64_t *len)
{
	const struct rnic *r = sfnic_rnic();

	return r ? rnic_dm_query(r, ctx, dm, off, len) : EIO;
}

static int real_device_info(uint32_t dev, struct rnic_device_info *info)
{
	const struct rnic *r = sfnic_rnic();

	return r ? rnic_device_info(r, dev, info) : EIO;
}

static int real_port_info(uint32_t dev, uint32_t port,
			  struct rnic_port_info *info)
{
	const struct rnic *r = sfnic_rnic();

	return r ? rnic_port_info(r, dev, port, info) : EIO;
}

const struct uverbs_ops uverbs_real_ops = {
	.call = sfnic_call,
	.channel = sfnic_channel,
	.async_fd = sfnic_async_fd,
	.lock_events = sfnic_lock_events,
	.unlock_events = sfnic_unlock_events,
	.drop_events = sfnic_drop_events,
	.fd_channel = sfnic_fd_channel,
	.channel_fd = sfnic_channel_fd,
	.async_read_fd = sfnic_async_read_fd,
	.inode_fd = sfnic_inode_fd,
	.close_fd = sfnic_close_fd,
	.reg_mr = sfnic_reg_mr,
	.dereg_mr = sfnic_dereg_mr,
	.reg_dmabuf = sfnic_reg_dmabuf,
	.rereg_mr = sfnic_rereg_mr,
	.prefetch = convert_prefetch,
	.sq_ring = real_sq_ring,
	.rq_ring = real_rq_ring,
	.srq_ring = real_srq_ring,
	.cq_arm = real_cq_arm,
	.query_pd = real_query_pd,
	.query_mr = real_query_mr,
	.query_dm = real_query_dm,
	.device_info = real_device_info,
	.port_info = real_port_info,
};
