// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <ccan/minmax.h>

#include "compat.h"
#include "scalefabric.h"

#define SF_LOCK_SPINS 1000

void sf_lock_wait(struct sf_lock *lock)
{
	int spins = 0;

	while (pthread_spin_trylock(&lock->spin))
		if (++spins > SF_LOCK_SPINS)
			sched_yield();
}

static int sf_query_device_ex(struct ibv_context *context,
			      const struct ibv_query_device_ex_input *input,
			      struct ibv_device_attr_ex *attr, size_t attr_size)
{
	struct sf_query_device_resp resp = {};
	size_t resp_size = sizeof(resp);
	uint64_t fw;
	int ret;

	ret = ibv_cmd_query_device_any(context, input, attr, attr_size,
				       &resp.ibv_resp, &resp_size);
	if (ret)
		return ret;

	if (attr_size >= offsetof(typeof(*attr), max_wq_type_rq)) {
		attr->rss_caps.rx_hash_fields_mask =
			resp.drv_payload.rx_hash_fields;
		attr->rss_caps.rx_hash_function =
			resp.drv_payload.rx_hash_function;
	}
	fw = resp.ibv_resp.base.fw_ver;
	snprintf(attr->orig_attr.fw_ver, sizeof(attr->orig_attr.fw_ver),
		 "%" PRIu64 ".%" PRIu64 ".%" PRIu64, fw >> 32,
		 fw >> 16 & 0xffff, fw & 0xffff);
	return 0;
}

static int sf_query_port(struct ibv_context *context, uint8_t port,
			 struct ibv_port_attr *attr)
{
	struct ibv_query_port cmd;

	return ibv_cmd_query_port(context, port, attr, &cmd, sizeof(cmd));
}

static int sf_query_rt_values(struct ibv_context *context,
			      struct ibv_values_ex *values)
{
	if ((values->comp_mask & ~IBV_VALUES_MASK_RAW_CLOCK) ||
	    !to_sf_context(context)->clock_is_monotonic)
		return EOPNOTSUPP;
	if (values->comp_mask)
		clock_gettime(CLOCK_MONOTONIC, &values->raw_clock);
	return 0;
}

static void sf_free_context(struct ibv_context *context)
{
	struct sf_context *ctx = to_sf_context(context);

	pthread_mutex_destroy(&ctx->map_lock);
	pthread_mutex_destroy(&ctx->table_lock);
	verbs_uninit_context(&ctx->vctx);
	free(ctx);
}

static const struct verbs_context_ops sf_context_ops = {
	.advise_mr = ibv_cmd_advise_mr,
	.alloc_dm = sf_alloc_dm,
	.alloc_mw = sf_alloc_mw,
	.alloc_null_mr = sf_alloc_null_mr,
	.alloc_parent_domain = sf_alloc_parent_domain,
	.alloc_pd = sf_alloc_pd,
	.alloc_td = sf_alloc_td,
	.attach_counters_point_flow = sf_attach_counters_point_flow,
	.attach_mcast = ibv_cmd_attach_mcast,
	.bind_mw = sf_bind_mw,
	.close_xrcd = sf_close_xrcd,
	.create_ah = sf_create_ah,
	.create_counters = sf_create_counters,
	.create_cq = sf_create_cq,
	.create_cq_ex = sf_create_cq_ex,
	.create_flow = sf_create_flow,
	.create_qp = sf_create_qp,
	.create_qp_ex = sf_create_qp_ex,
	.create_rwq_ind_table = sf_create_rwq_ind_table,
	.create_srq = sf_create_srq,
	.create_srq_ex = sf_create_srq_ex,
	.create_wq = sf_create_wq,
	.dealloc_mw = sf_dealloc_mw,
	.dealloc_pd = sf_dealloc_pd,
	.dealloc_td = sf_dealloc_td,
	.dereg_mr = sf_dereg_mr,
	.destroy_ah = sf_destroy_ah,
	.destroy_counters = sf_destroy_counters,
	.destroy_cq = sf_destroy_cq,
	.destroy_flow = sf_destroy_flow,
	.destroy_qp = sf_destroy_qp,
	.destroy_rwq_ind_table = sf_destroy_rwq_ind_table,
	.destroy_srq = sf_destroy_srq,
	.destroy_wq = sf_destroy_wq,
	.detach_mcast = ibv_cmd_detach_mcast,
	.free_context = sf_free_context,
	.free_dm = sf_free_dm,
	.get_srq_num = sf_get_srq_num,
	.import_dm = sf_import_dm,
	.import_mr = sf_import_mr,
	.import_pd = sf_import_pd,
	.modify_cq = sf_modify_cq,
	.modify_qp = sf_modify_qp,
	.modify_srq = sf_modify_srq,
	.modify_wq = sf_modify_wq,
	.open_qp = sf_open_qp,
	.open_xrcd = sf_open_xrcd,
	.poll_cq = sf_poll_cq,
	.post_recv = sf_post_recv,
	.post_send = sf_post_send,
	.post_srq_recv = sf_post_srq_recv,
	.query_device_ex = sf_query_device_ex,
	.query_port = sf_query_port,
	.query_qp = sf_query_qp,
	.query_rt_values = sf_query_rt_values,
	.query_srq = sf_query_srq,
	.read_counters = sf_read_counters,
	.reg_dm_mr = sf_reg_dm_mr,
	.reg_dmabuf_mr = sf_reg_dmabuf_mr,
	.reg_mr = sf_reg_mr,
	.req_notify_cq = sf_req_notify_cq,
	.rereg_mr = sf_rereg_mr,
	.resize_cq = sf_resize_cq,
	.unimport_dm = sf_unimport_dm,
	.unimport_mr = sf_unimport_mr,
	.unimport_pd = sf_unimport_pd,
};

/* Take over what the device says, within what this format can express. */
static int sf_init_limits(struct sf_context *ctx,
			  const struct scalefabric_alloc_ucontext_resp *resp)
{
	if (resp->hw_version != SF_HW_VERSION) {
		verbs_err(&ctx->vctx, "device speaks version %u, not %u\n",
			  resp->hw_version, SF_HW_VERSION);
		return EPROTONOSUPPORT;
	}
	if (resp->sq_doorbell > SCALEFABRIC_DOORBELL_NOTIFY ||
	    resp->rq_doorbell > SCALEFABRIC_DOORBELL_NOTIFY ||
	    resp->srq_doorbell > SCALEFABRIC_DOORBELL_NOTIFY ||
	    resp->cq_doorbell > SCALEFABRIC_DOORBELL_NOTIFY) {
		verbs_err(&ctx->vctx, "unknown kind of doorbell\n");
		return EPROTONOSUPPORT;
	}

	ctx->clock_is_monotonic = resp->clock == SCALEFABRIC_CLOCK_MONOTONIC;
	ctx->sq_notify = resp->sq_doorbell == SCALEFABRIC_DOORBELL_NOTIFY;
	ctx->rq_notify = resp->rq_doorbell == SCALEFABRIC_DOORBELL_NOTIFY;
	ctx->srq_notify = resp->srq_doorbell == SCALEFABRIC_DOORBELL_NOTIFY;
	ctx->cq_notify = resp->cq_doorbell == SCALEFABRIC_DOORBELL_NOTIFY;
	ctx->max_send_sge =
		min_t(uint32_t, resp->max_send_sge, SF_MAX_SEND_SGE);
	ctx->max_inline = min_t(uint32_t, resp->max_inline, SF_MAX_INLINE);
	ctx->max_log_depth =
		min_t(uint32_t, resp->max_log_depth, SF_MAX_LOG_DEPTH);
	ctx->max_cq_log_depth =
		min_t(uint32_t, resp->max_cq_log_depth, SF_MAX_CQ_LOG_DEPTH);
	return 0;
}

static int sf_start_context(struct sf_context *ctx,
			    const struct scalefabric_alloc_ucontext_resp *resp)
{
	int err;

	err = sf_init_limits(ctx, resp);
	if (err)
		return err;
	pthread_mutex_init(&ctx->table_lock, NULL);
	pthread_mutex_init(&ctx->map_lock, NULL);
	verbs_set_ops(&ctx->vctx, &sf_context_ops);
	return 0;
}

static struct verbs_context *sf_import_context(struct ibv_device *device,
					       int cmd_fd)
{
	struct scalefabric_alloc_ucontext_resp resp = {};
	struct sf_context *ctx;
	int err;

	ctx = verbs_init_and_alloc_context(device, cmd_fd, ctx, vctx,
					   RDMA_DRIVER_UNKNOWN);
	if (!ctx)
		return NULL;

	err = ibv_cmd_query_context(&ctx->vctx.context, NULL);
	if (!err)
		err = sf_query_context(&ctx->vctx.context, &resp);
	if (!err)
		err = sf_start_context(ctx, &resp);
	if (!err)
		return &ctx->vctx;

	verbs_uninit_context(&ctx->vctx);
	free(ctx);
	errno = err;
	return NULL;
}

static struct verbs_context *sf_alloc_context(struct ibv_device *device,
					      int cmd_fd, void *private_data)
{
	struct sf_get_context_resp resp = {};
	struct sf_get_context cmd = {};
	struct sf_context *ctx;
	int err;

	(void)private_data;
	ctx = verbs_init_and_alloc_context(device, cmd_fd, ctx, vctx,
					   RDMA_DRIVER_UNKNOWN);
	if (!ctx)
		return NULL;

	err = sf_cmd_get_context(&ctx->vctx, &cmd.ibv_cmd, sizeof(cmd),
				 &resp.ibv_resp, sizeof(resp));
	if (err)
		goto err_uninit;
	err = sf_start_context(ctx, &resp.drv_payload);
	if (err)
		goto err_uninit;
	return &ctx->vctx;

err_uninit:
	verbs_uninit_context(&ctx->vctx);
	free(ctx);
	errno = err;
	return NULL;
}

static struct verbs_device *sf_alloc_device(struct verbs_sysfs_dev *sysfs_dev)
{
	struct sf_device *dev = calloc(1, sizeof(*dev));

	(void)sysfs_dev;
	return dev ? &dev->vdev : NULL;
}

static void sf_uninit_device(struct verbs_device *vdev)
{
	free(container_of(vdev, struct sf_device, vdev));
}

static bool sf_match_device(struct verbs_sysfs_dev *sysfs_dev)
{
	return sysfs_dev->match && sf_layout_matches();
}

/* The software RNIC, and the InfiniBand controllers (PCI class 0207) of 1cb8.
 */
static_assert(SCALEFABRIC_PCI_VENDOR == 0x1cb8, "the pattern spells it out");

static const struct verbs_match_ent sf_match_table[] = {
	VERBS_MODALIAS_MATCH(SCALEFABRIC_MODALIAS_PREFIX "*", NULL),
	VERBS_MODALIAS_MATCH("pci:v00001CB8d*sv*sd*bc02sc07i*", NULL),
	{},
};

static const struct verbs_device_ops sf_device_ops = {
	.name = "scalefabric",
	.match_min_abi_version = SCALEFABRIC_ABI_VERSION,
	.match_max_abi_version = SCALEFABRIC_ABI_VERSION,
	.match_table = sf_match_table,
	.match_device = sf_match_device,
	.alloc_context = sf_alloc_context,
	.import_context = sf_import_context,
	.alloc_device = sf_alloc_device,
	.uninit_device = sf_uninit_device,
};

PROVIDER_DRIVER(scalefabric, sf_device_ops);
