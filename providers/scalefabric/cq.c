// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Life of a completion queue.  How it is read: poll.c. */
#include <errno.h>
#include <stdlib.h>

#include <util/util.h>

#include "compat.h"
#include "scalefabric.h"

#define SF_CQ_SUPPORTED_MASK \
	(IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD)
#define SF_CQ_SUPPORTED_FLAGS IBV_CREATE_CQ_ATTR_SINGLE_THREADED
#define SF_CQ_TIMESTAMPS                       \
	(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | \
	 IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
#define SF_CQ_SUPPORTED_WC \
	(IBV_WC_STANDARD_FLAGS | SF_CQ_TIMESTAMPS | IBV_WC_EX_WITH_FLOW_TAG)

/* NULL if it is in none. */
static struct ibv_pd *sf_cq_domain(const struct ibv_cq_init_attr_ex *attr)
{
	return attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD ?
		       attr->parent_domain :
		       NULL;
}

static int sf_check_cq_attr(const struct sf_context *ctx,
			    const struct ibv_cq_init_attr_ex *attr)
{
	if (!check_comp_mask(attr->comp_mask, SF_CQ_SUPPORTED_MASK))
		return EOPNOTSUPP;
	if ((attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) &&
	    !check_comp_mask(attr->flags, SF_CQ_SUPPORTED_FLAGS))
		return EOPNOTSUPP;
	if (!check_comp_mask(attr->wc_flags, SF_CQ_SUPPORTED_WC))
		return EOPNOTSUPP;
	/* The hour is known of the host's own clock only. */
	if ((attr->wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK) &&
	    !ctx->clock_is_monotonic)
		return EOPNOTSUPP;
	if (sf_cq_domain(attr) && !to_sf_pd(sf_cq_domain(attr))->protection)
		return EINVAL;
	return 0;
}

static bool sf_cq_size_valid(const struct sf_context *ctx, uint32_t cqe)
{
	return cqe > 0 && cqe <= 1U << ctx->max_cq_log_depth;
}

static bool sf_cq_is_single_threaded(const struct ibv_cq_init_attr_ex *attr)
{
	if (sf_domain_single_threaded(sf_cq_domain(attr)))
		return true;
	return (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) &&
	       (attr->flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED);
}

static size_t sf_cq_ring_size(uint8_t log_depth)
{
	return sizeof(struct sf_cqe) << log_depth;
}

static void sf_unmap_cq(struct sf_context *ctx, struct sf_cq *cq)
{
	sf_unmap_region(ctx, &cq->doorbell_view);
	sf_unmap_region(ctx, &cq->ctrl_view);
	sf_unmap_region(ctx, &cq->ring_view);
}

static int sf_map_cq(struct sf_context *ctx, struct sf_cq *cq,
		     const struct scalefabric_create_cq_resp *resp)
{
	int err;

	err = sf_map_region(ctx, &resp->ring, sf_cq_ring_size(cq->log_depth),
			    &cq->ring_view);
	if (!err)
		err = sf_map_region(ctx, &resp->ctrl, sizeof(*cq->ctrl),
				    &cq->ctrl_view);
	if (!err)
		err = sf_map_region(ctx, &resp->doorbell,
				    sizeof(struct sf_doorbell),
				    &cq->doorbell_view);
	if (err) {
		sf_unmap_cq(ctx, cq);
		return err;
	}

	cq->ring = cq->ring_view.addr;
	cq->ctrl = cq->ctrl_view.addr;
	cq->doorbell = cq->doorbell_view.addr;
	return 0;
}

static int sf_cmd_create_cq(struct sf_context *ctx, struct sf_cq *cq,
			    const struct ibv_cq_init_attr_ex *attr)
{
	struct sf_create_cq_resp resp = {};
	struct sf_create_cq cmd = {};
	struct ibv_cq_init_attr_ex core_attr = *attr;
	int err;

	core_attr.cqe = 1U << cq->log_depth;
	core_attr.comp_mask &= ~IBV_CQ_INIT_ATTR_MASK_PD; /* our business */
	cmd.drv_payload.ring.fd = -1;
	cmd.drv_payload.ctrl.fd = -1;
	cmd.drv_payload.log_depth = cq->log_depth;
	if (attr->wc_flags & SF_CQ_TIMESTAMPS)
		cmd.drv_payload.flags |= SCALEFABRIC_CQ_TIMESTAMP;

	err = sf_cmd_create_cq_ex(&ctx->vctx.context, &core_attr, &cq->vcq,
				  &cmd.ibv_cmd, sizeof(cmd), &resp.ibv_resp,
				  sizeof(resp),
				  CREATE_CQ_CMD_FLAGS_TS_IGNORED_EX);
	if (err)
		return err;

	err = sf_map_cq(ctx, cq, &resp.drv_payload);
	if (err) {
		ibv_cmd_destroy_cq(&cq->vcq.cq);
		return err;
	}
	cq->consumer = resp.drv_payload.start;
	cq->vcq.cq.cqe = 1U << cq->log_depth;
	return 0;
}

static int sf_build_cq(struct sf_context *ctx, struct sf_cq *cq,
		       const struct ibv_cq_init_attr_ex *attr)
{
	int err;

	err = sf_lock_init(&cq->lock, !sf_cq_is_single_threaded(attr));
	if (err)
		return err;
	/* A CQ of few entries serves few QPs. */
	err = sf_cq_table_init(&cq->qps, 1U << cq->log_depth);
	if (err)
		goto err_lock;
	err = sf_cq_table_init(&cq->srqs, 1);
	if (err)
		goto err_qps;
	err = sf_cmd_create_cq(ctx, cq, attr);
	if (err)
		goto err_srqs;
	return 0;

err_srqs:
	sf_cq_table_destroy(&cq->srqs);
err_qps:
	sf_cq_table_destroy(&cq->qps);
err_lock:
	sf_lock_destroy(&cq->lock);
	return err;
}

static struct sf_cq *sf_new_cq(struct ibv_context *context,
			       const struct ibv_cq_init_attr_ex *attr)
{
	struct sf_context *ctx = to_sf_context(context);
	struct sf_cq *cq;
	int err;

	if (!sf_cq_size_valid(ctx, attr->cqe)) {
		errno = EINVAL;
		return NULL;
	}
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return NULL;

	cq->log_depth = sf_log2_up(attr->cqe);
	cq->notify = ctx->cq_notify;
	err = sf_build_cq(ctx, cq, attr);
	if (err) {
		free(cq);
		errno = err;
		return NULL;
	}
	return cq;
}

struct ibv_cq *sf_create_cq(struct ibv_context *context, int cqe,
			    struct ibv_comp_channel *channel, int comp_vector)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = cqe < 0 ? 0 : cqe,
		.channel = channel,
		.comp_vector = comp_vector,
	};
	struct sf_cq *cq = sf_new_cq(context, &attr);

	return cq ? &cq->vcq.cq : NULL;
}

struct ibv_cq_ex *sf_create_cq_ex(struct ibv_context *context,
				  struct ibv_cq_init_attr_ex *attr)
{
	struct sf_cq *cq;
	int err;

	err = sf_check_cq_attr(to_sf_context(context), attr);
	if (err) {
		errno = err;
		return NULL;
	}
	cq = sf_new_cq(context, attr);
	if (!cq)
		return NULL;

	cq->domain = sf_cq_domain(attr);
	sf_domain_join(cq->domain);
	sf_cq_set_extended_poll(cq, attr->wc_flags);
	return &cq->vcq.cq_ex;
}

/*
 * The device has moved the outstanding CQEs when the command returns; from then
 * on it writes to the new ring only.  If that cannot be mapped the CQ falls
 * silent, but polling it stays safe.
 */
static int sf_cmd_resize_cq(struct sf_context *ctx, struct sf_cq *cq,
			    uint8_t log_depth)
{
	struct sf_resize_cq_resp resp = {};
	struct sf_resize_cq cmd = {};
	struct sf_view new_view = {};
	int err;

	cmd.drv_payload.ring.fd = -1;
	cmd.drv_payload.log_depth = log_depth;
	err = ibv_cmd_resize_cq(&cq->vcq.cq, 1U << log_depth, &cmd.ibv_cmd,
				sizeof(cmd), &resp.ibv_resp, sizeof(resp));
	if (err)
		return err;

	err = sf_map_region(ctx, &resp.drv_payload.ring,
			    sf_cq_ring_size(log_depth), &new_view);
	if (err) {
		verbs_err(&ctx->vctx, "resized CQ %u cannot be mapped\n",
			  cq->vcq.cq.handle);
		return err;
	}

	sf_unmap_region(ctx, &cq->ring_view);
	cq->ring_view = new_view;
	cq->ring = new_view.addr;
	cq->log_depth = log_depth;
	cq->vcq.cq.cqe = 1U << log_depth;
	return 0;
}

int sf_resize_cq(struct ibv_cq *ibcq, int cqe)
{
	struct sf_context *ctx = to_sf_context(ibcq->context);
	struct sf_cq *cq = to_sf_cq(ibcq);
	uint8_t log_depth;
	int err = 0;

	if (cqe <= 0 || !sf_cq_size_valid(ctx, cqe))
		return EINVAL;
	log_depth = sf_log2_up(cqe);

	/* Nobody may poll until the rings are swapped. */
	sf_lock(&cq->lock);
	if (log_depth != cq->log_depth) {
		__atomic_store_n(&cq->ctrl->consumer, cq->consumer,
				 __ATOMIC_RELEASE);
		err = sf_cmd_resize_cq(ctx, cq, log_depth);
	}
	sf_unlock(&cq->lock);
	return err;
}

int sf_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr)
{
	struct ibv_modify_cq cmd = {};

	return ibv_cmd_modify_cq(cq, attr, &cmd, sizeof(cmd));
}

int sf_destroy_cq(struct ibv_cq *ibcq)
{
	struct sf_context *ctx = to_sf_context(ibcq->context);
	struct sf_cq *cq = to_sf_cq(ibcq);
	int err;

	err = ibv_cmd_destroy_cq(ibcq);
	if (err)
		return err;

	sf_unmap_cq(ctx, cq);
	sf_cq_table_destroy(&cq->srqs);
	sf_cq_table_destroy(&cq->qps);
	sf_lock_destroy(&cq->lock);
	sf_domain_leave(cq->domain);
	free(cq);
	return 0;
}
