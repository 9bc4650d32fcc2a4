// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Shared receive queues. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <util/util.h>

#include "wqe.h"

#define SF_SRQ_SUPPORTED_MASK                            \
	(IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | \
	 IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ)

/* ------------------------------------------------------------------------
 * Create
 */

static enum ibv_srq_type sf_srq_type(const struct ibv_srq_init_attr_ex *attr)
{
	return attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE ? attr->srq_type :
							  IBV_SRQT_BASIC;
}

static int sf_check_srq_attr(const struct sf_context *ctx,
			     const struct ibv_srq_init_attr_ex *attr)
{
	if (!check_comp_mask(attr->comp_mask, SF_SRQ_SUPPORTED_MASK))
		return EOPNOTSUPP;
	if (sf_srq_type(attr) != IBV_SRQT_BASIC &&
	    sf_srq_type(attr) != IBV_SRQT_XRC)
		return EOPNOTSUPP;
	if (sf_srq_type(attr) == IBV_SRQT_XRC &&
	    (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_XRCD) || !attr->xrcd ||
	     !(attr->comp_mask & IBV_SRQ_INIT_ATTR_CQ) || !attr->cq))
		return EINVAL;
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !attr->pd)
		return EINVAL;
	if (!attr->attr.max_wr ||
	    attr->attr.max_wr > 1U << ctx->max_log_depth ||
	    attr->attr.max_sge > SF_MAX_RECV_SGE)
		return EINVAL;
	return 0;
}

static size_t sf_srq_ring_size(const struct sf_srq *srq)
{
	return (size_t)1 << (srq->log_depth + srq->log_stride);
}

/* Cookies for @n slots; those that are out stay what they are. */
static int sf_grow_cookies(struct sf_srq *srq, struct ibv_pd *pd, uint32_t n)
{
	struct sf_mem wr_ids, next_free;
	uint32_t old = srq->cookies, i;

	if (n <= old)
		return 0;
	if (sf_mem_alloc(&wr_ids, pd, n, sizeof(*srq->wr_ids)))
		return ENOMEM;
	if (sf_mem_alloc(&next_free, pd, n, sizeof(*srq->next_free))) {
		sf_mem_free(&wr_ids);
		return ENOMEM;
	}
	if (old) {
		memcpy(wr_ids.addr, srq->wr_ids, old * sizeof(*srq->wr_ids));
		memcpy(next_free.addr, srq->next_free,
		       old * sizeof(*srq->next_free));
	}
	sf_mem_free(&srq->wr_ids_mem);
	sf_mem_free(&srq->next_free_mem);
	srq->wr_ids_mem = wr_ids;
	srq->wr_ids = wr_ids.addr;
	srq->next_free_mem = next_free;
	srq->next_free = next_free.addr;
	for (i = old; i < n; i++)
		srq->next_free[i] = i + 1;
	srq->next_free[n - 1] = srq->free;
	srq->free = old;
	srq->cookies = n;
	return 0;
}

static void sf_free_srq(struct sf_srq *srq)
{
	sf_mem_free(&srq->next_free_mem);
	sf_mem_free(&srq->wr_ids_mem);
	free(srq);
}

static struct sf_srq *sf_new_srq(const struct sf_context *ctx,
				 struct ibv_pd *pd,
				 const struct ibv_srq_attr *attr)
{
	struct sf_srq *srq = calloc(1, sizeof(*srq));

	if (!srq)
		return NULL;
	srq->log_depth = sf_log2_up(attr->max_wr);
	srq->log_stride = sf_recv_log_stride(attr->max_sge);
	srq->max_sge = sf_recv_max_sge(srq->log_stride);
	srq->needs_notify = ctx->srq_notify;
	srq->depth = 1U << srq->log_depth;
	srq->free = SF_SRQ_NONE;
	if (sf_grow_cookies(srq, pd, srq->depth)) {
		sf_free_srq(srq);
		return NULL;
	}
	return srq;
}

static void sf_unmap_srq(struct sf_context *ctx, struct sf_srq *srq)
{
	sf_unmap_region(ctx, &srq->doorbell_view);
	sf_unmap_region(ctx, &srq->ring_view);
}

static int sf_map_srq(struct sf_context *ctx, struct sf_srq *srq,
		      const struct scalefabric_create_srq_resp *resp)
{
	int err;

	err = sf_map_region(ctx, &resp->ring, sf_srq_ring_size(srq),
			    &srq->ring_view);
	if (!err)
		err = sf_map_region(ctx, &resp->doorbell,
				    sizeof(struct sf_doorbell),
				    &srq->doorbell_view);
	if (err)
		sf_unmap_srq(ctx, srq);
	return err;
}

static int sf_cmd_create_srq(struct sf_context *ctx, struct sf_srq *srq,
			     const struct ibv_srq_init_attr_ex *attr)
{
	struct ibv_srq_init_attr_ex core_attr = *attr;
	struct sf_create_srq_resp resp = {};
	struct sf_create_srq cmd = {};
	int err;

	core_attr.attr.max_wr = 1U << srq->log_depth;
	core_attr.attr.max_sge = srq->max_sge;
	cmd.drv_payload.ring.fd = -1;
	cmd.drv_payload.log_depth = srq->log_depth;
	cmd.drv_payload.log_stride = srq->log_stride;
	err = ibv_cmd_create_srq_ex(&ctx->vctx.context, &srq->vsrq, &core_attr,
				    &cmd.ibv_cmd, sizeof(cmd), &resp.ibv_resp,
				    sizeof(resp));
	if (err)
		return err;

	err = sf_map_srq(ctx, srq, &resp.drv_payload);
	if (err) {
		ibv_cmd_destroy_srq(&srq->vsrq.srq);
		return err;
	}
	srq->ring = srq->ring_view.addr;
	srq->doorbell = srq->doorbell_view.addr;
	srq->head = resp.drv_payload.start;
	sf_init_notify(&srq->notify, srq->vsrq.srq.handle,
		       IB_USER_VERBS_CMD_POST_SRQ_RECV,
		       sizeof(struct ib_uverbs_recv_wr));
	return 0;
}

struct ibv_srq *sf_create_srq_ex(struct ibv_context *context,
				 struct ibv_srq_init_attr_ex *attr)
{
	struct sf_context *ctx = to_sf_context(context);
	struct sf_srq *srq;
	int err;

	err = sf_check_srq_attr(ctx, attr);
	if (err)
		goto err_check;
	srq = sf_new_srq(ctx, attr->pd, &attr->attr);
	if (!srq) {
		err = ENOMEM;
		goto err_check;
	}
	err = sf_lock_init(&srq->lock, !sf_domain_single_threaded(attr->pd));
	if (err)
		goto err_new;
	err = sf_cmd_create_srq(ctx, srq, attr);
	if (err)
		goto err_lock;

	sf_domain_join(attr->pd);
	srq->domain = attr->pd;
	if (srq->vsrq.srq_type == IBV_SRQT_XRC)
		sf_srq_attach(srq);
	attr->attr.max_wr = 1U << srq->log_depth;
	attr->attr.max_sge = srq->max_sge;
	return &srq->vsrq.srq;

err_lock:
	sf_lock_destroy(&srq->lock);
err_new:
	sf_free_srq(srq);
err_check:
	errno = err;
	return NULL;
}

struct ibv_srq *sf_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct ibv_srq_init_attr_ex ex = {
		.srq_context = attr->srq_context,
		.attr = attr->attr,
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
		.srq_type = IBV_SRQT_BASIC,
		.pd = pd,
	};
	struct ibv_srq *srq = sf_create_srq_ex(pd->context, &ex);

	if (srq)
		attr->attr = ex.attr;
	return srq;
}

/* ------------------------------------------------------------------------
 * Modify, query, destroy
 */

/*
 * The device has moved the posted descriptors when the command returns.  If the
 * new ring cannot be mapped nothing can be posted any more.
 */
static int sf_cmd_resize_srq(struct sf_context *ctx, struct sf_srq *srq,
			     uint8_t log_depth)
{
	struct ibv_srq_attr attr = {.max_wr = 1U << log_depth};
	struct scalefabric_modify_srq_resp resp = {};
	struct sf_modify_srq cmd = {};
	struct sf_view new_view = {};
	int err;

	cmd.drv_payload.response = (uintptr_t)&resp;
	cmd.drv_payload.ring.fd = -1;
	cmd.drv_payload.log_depth = log_depth;
	err = ibv_cmd_modify_srq(&srq->vsrq.srq, &attr, IBV_SRQ_MAX_WR,
				 &cmd.ibv_cmd, sizeof(cmd));
	if (err)
		return err;

	srq->log_depth = log_depth;
	err = sf_map_region(ctx, &resp.ring, sf_srq_ring_size(srq), &new_view);
	srq->depth = err ? 0 : 1U << log_depth;
	if (err) {
		verbs_err(&ctx->vctx, "resized SRQ %u cannot be mapped\n",
			  srq->vsrq.srq.handle);
		return err;
	}
	sf_unmap_region(ctx, &srq->ring_view);
	srq->ring_view = new_view;
	srq->ring = new_view.addr;
	return 0;
}

static int sf_resize_srq(struct sf_context *ctx, struct sf_srq *srq,
			 uint32_t max_wr)
{
	uint8_t log_depth = sf_log2_up(max_wr);
	int err = 0;

	/* Nobody may post until the rings are swapped. */
	sf_lock(&srq->lock);
	if (log_depth != srq->log_depth) {
		err = sf_grow_cookies(srq, srq->domain, 1U << log_depth);
		if (!err)
			err = sf_cmd_resize_srq(ctx, srq, log_depth);
	}
	sf_unlock(&srq->lock);
	return err;
}

static int sf_check_resize(const struct sf_context *ctx,
			   const struct ibv_srq_attr *attr, int attr_mask)
{
	if (!attr->max_wr || attr->max_wr > 1U << ctx->max_log_depth)
		return EINVAL;
	if (attr_mask & IBV_SRQ_LIMIT && attr->srq_limit > attr->max_wr)
		return EINVAL;
	return attr_mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT) ? EINVAL : 0;
}

int sf_modify_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr,
		  int attr_mask)
{
	struct sf_context *ctx = to_sf_context(ibsrq->context);
	struct ibv_modify_srq cmd = {};
	int err;

	if (attr_mask & IBV_SRQ_MAX_WR) {
		err = sf_check_resize(ctx, attr, attr_mask);
		if (!err)
			err = sf_resize_srq(ctx, to_sf_srq(ibsrq),
					    attr->max_wr);
		attr_mask &= ~IBV_SRQ_MAX_WR;
		if (err || !attr_mask)
			return err;
	}
	return ibv_cmd_modify_srq(ibsrq, attr, attr_mask, &cmd, sizeof(cmd));
}

int sf_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
	struct ibv_query_srq cmd = {};

	return ibv_cmd_query_srq(srq, attr, &cmd, sizeof(cmd));
}

/* As work requests of XRC name it. */
int sf_get_srq_num(struct ibv_srq *ibsrq, uint32_t *srq_num)
{
	const struct sf_srq *srq = to_sf_srq(ibsrq);

	if (srq->vsrq.srq_type != IBV_SRQT_XRC)
		return EOPNOTSUPP;
	*srq_num = srq->vsrq.srq_num;
	return 0;
}

int sf_destroy_srq(struct ibv_srq *ibsrq)
{
	struct sf_context *ctx = to_sf_context(ibsrq->context);
	struct sf_srq *srq = to_sf_srq(ibsrq);
	struct ibv_pd *domain = srq->domain;
	int err;

	err = ibv_cmd_destroy_srq(ibsrq);
	if (err)
		return err;

	if (srq->vsrq.srq_type == IBV_SRQT_XRC)
		sf_srq_detach(srq);
	sf_unmap_srq(ctx, srq);
	sf_lock_destroy(&srq->lock);
	sf_free_srq(srq);
	sf_domain_leave(domain);
	return 0;
}

/* ------------------------------------------------------------------------
 * Post, and what polling gives back
 */

static int sf_build_srq_recv(struct sf_srq *srq, uint64_t index,
			     const struct ibv_recv_wr *wr)
{
	uint64_t slot = index & ((1ULL << srq->log_depth) - 1);
	uint32_t cookie = srq->free;

	if (unlikely(wr->num_sge < 0 || (uint32_t)wr->num_sge > srq->max_sge))
		return EINVAL;
	if (unlikely(srq->used >= srq->depth))
		return ENOMEM;

	srq->used++;
	srq->free = srq->next_free[cookie];
	srq->wr_ids[cookie] = wr->wr_id;
	sf_put_desc(srq->ring + (slot << srq->log_stride), cookie, wr);
	return 0;
}

/* The doorbell is the producer index itself, so it is stored under the lock. */
int sf_post_srq_recv(struct ibv_srq *ibsrq, struct ibv_recv_wr *wr,
		     struct ibv_recv_wr **bad_wr)
{
	struct sf_srq *srq = to_sf_srq(ibsrq);
	bool posted;
	uint64_t end;
	int err = 0;

	sf_lock(&srq->lock);
	for (end = srq->head; wr; wr = wr->next, end++) {
		err = sf_build_srq_recv(srq, end, wr);
		if (unlikely(err)) {
			*bad_wr = wr;
			break;
		}
	}
	posted = end != srq->head;
	if (likely(posted)) {
		srq->head = end;
		sf_ring(srq->doorbell, end);
	}
	sf_unlock(&srq->lock);

	if (posted && srq->needs_notify)
		sf_notify_device(ibsrq->context, &srq->notify);
	return err;
}

bool sf_srq_retire(struct sf_srq *srq, uint32_t cookie, uint64_t *wr_id)
{
	bool ok;

	sf_lock(&srq->lock);
	ok = likely(cookie < srq->cookies);
	if (ok) {
		*wr_id = srq->wr_ids[cookie];
		srq->next_free[cookie] = srq->free;
		srq->free = cookie;
		srq->used--;
	}
	sf_unlock(&srq->lock);
	return ok;
}
