// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Life of a queue pair.  How work requests get onto it: wr.c. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <ccan/minmax.h>
#include <util/util.h>

#include "wqe.h"

#define SF_QP_SUPPORTED_MASK                                     \
	(IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS | \
	 IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_XRCD)

/* ------------------------------------------------------------------------
 * Is it possible?  Nothing is allocated before these have said yes.
 */

static bool sf_type_supported(enum ibv_qp_type type)
{
	switch (type) {
	case IBV_QPT_RC:
	case IBV_QPT_UC:
	case IBV_QPT_UD:
	case IBV_QPT_RAW_PACKET:
	case IBV_QPT_XRC_SEND:
	case IBV_QPT_XRC_RECV:
		return true;
	default:
		return false;
	}
}

static int sf_check_qp_attr(const struct ibv_qp_init_attr_ex *attr)
{
	if (!check_comp_mask(attr->comp_mask, SF_QP_SUPPORTED_MASK))
		return EOPNOTSUPP;
	if ((attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) &&
	    attr->create_flags)
		return EOPNOTSUPP;
	if (!sf_type_supported(attr->qp_type))
		return EOPNOTSUPP;
	if ((attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) &&
	    !sf_send_ops_supported(attr->qp_type, attr->send_ops_flags))
		return EOPNOTSUPP;
	if (attr->qp_type == IBV_QPT_XRC_RECV)
		return attr->comp_mask & IBV_QP_INIT_ATTR_XRCD && attr->xrcd ?
			       0 :
			       EINVAL;
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || !attr->pd)
		return EINVAL;
	if (!attr->send_cq)
		return EINVAL;
	return attr->recv_cq || attr->qp_type == IBV_QPT_XRC_SEND ? 0 : EINVAL;
}

static int sf_check_qp_cap(const struct sf_context *ctx,
			   const struct ibv_qp_cap *cap, bool srq)
{
	uint32_t max_depth = 1U << ctx->max_log_depth;

	if (cap->max_send_wr > max_depth ||
	    cap->max_send_sge > ctx->max_send_sge)
		return EINVAL;
	if (!srq && (cap->max_recv_wr > max_depth ||
		     cap->max_recv_sge > SF_MAX_RECV_SGE))
		return EINVAL;
	if (cap->max_inline_data > ctx->max_inline)
		return EINVAL;
	return 0;
}

/* ------------------------------------------------------------------------
 * Shape of the queues
 */

static size_t sf_sq_size(const struct sf_sq *sq)
{
	return (size_t)1 << (sq->log_depth + sq->log_stride);
}

size_t sf_rq_size(const struct sf_rq *rq)
{
	return (size_t)1 << (rq->log_depth + rq->log_stride);
}

/* A gather list or inline data, whichever is larger, decides the slot. */
static void sf_shape_sq(const struct sf_context *ctx, struct sf_sq *sq,
			struct ibv_qp_cap *cap)
{
	uint32_t data = max_t(uint32_t, cap->max_inline_data,
			      cap->max_send_sge * sizeof(struct sf_sge));
	uint32_t room;

	sq->log_depth = sf_log2_up(cap->max_send_wr);
	sq->log_stride = max_t(uint8_t, sf_log2_up(SF_SLOT_DATA + data),
			       SF_SLOT_LOG_MIN);

	room = sf_slot_capacity(1U << sq->log_stride, 0);
	cap->max_send_wr = 1U << sq->log_depth;
	cap->max_send_sge = min_t(uint32_t, room / sizeof(struct sf_sge),
				  ctx->max_send_sge);
	cap->max_inline_data = min_t(uint32_t, room, ctx->max_inline);
}

uint8_t sf_recv_log_stride(uint32_t max_sge)
{
	size_t size =
		sizeof(struct sf_rq_desc) + max_sge * sizeof(struct sf_sge);

	return max_t(uint8_t, sf_log2_up(size), SF_RQ_LOG_MIN);
}

uint32_t sf_recv_max_sge(uint8_t log_stride)
{
	return ((1U << log_stride) - sizeof(struct sf_rq_desc)) /
	       sizeof(struct sf_sge);
}

void sf_shape_rq(struct sf_rq *rq, struct ibv_qp_cap *cap)
{
	rq->log_depth = sf_log2_up(cap->max_recv_wr);
	rq->log_stride = sf_recv_log_stride(cap->max_recv_sge);
	cap->max_recv_wr = 1U << rq->log_depth;
	cap->max_recv_sge = sf_recv_max_sge(rq->log_stride);
}

/* The receives are the SRQ's: stride 0 says so to the device. */
static void sf_shape_no_rq(struct ibv_qp_cap *cap)
{
	cap->max_recv_wr = 0;
	cap->max_recv_sge = 0;
}

static int sf_init_sq(struct sf_sq *sq, struct ibv_pd *pd)
{
	int err;

	err = sf_mem_alloc(&sq->shadow_mem, pd, (size_t)1 << sq->log_depth,
			   sizeof(*sq->shadow));
	if (err)
		return err;
	sq->shadow = sq->shadow_mem.addr;
	err = sf_lock_init(&sq->lock, !sf_domain_single_threaded(pd));
	if (err)
		sf_mem_free(&sq->shadow_mem);
	return err;
}

static void sf_fini_sq(struct sf_sq *sq)
{
	sf_lock_destroy(&sq->lock);
	sf_mem_free(&sq->shadow_mem);
}

int sf_init_rq(struct sf_rq *rq, struct ibv_pd *pd)
{
	int err;

	err = sf_mem_alloc(&rq->wr_ids_mem, pd, (size_t)1 << rq->log_depth,
			   sizeof(*rq->wr_ids));
	if (err)
		return err;
	rq->wr_ids = rq->wr_ids_mem.addr;
	err = sf_lock_init(&rq->lock, !sf_domain_single_threaded(pd));
	if (err)
		sf_mem_free(&rq->wr_ids_mem);
	return err;
}

void sf_fini_rq(struct sf_rq *rq)
{
	sf_lock_destroy(&rq->lock);
	sf_mem_free(&rq->wr_ids_mem);
}

/* ------------------------------------------------------------------------
 * What the device answers
 */

void sf_unmap_qp(struct sf_context *ctx, struct sf_qp *qp)
{
	sf_unmap_region(ctx, &qp->rq_doorbell_view);
	sf_unmap_region(ctx, &qp->sq_doorbell_view);
	sf_unmap_region(ctx, &qp->rq_view);
	sf_unmap_region(ctx, &qp->line_view);
	sf_unmap_region(ctx, &qp->sq_view);
}

static int sf_map_qp(struct sf_context *ctx, struct sf_qp *qp,
		     const struct scalefabric_create_qp_resp *resp)
{
	const size_t cell = sizeof(struct sf_doorbell);
	int err;

	err = sf_map_region(ctx, &resp->sq, sf_sq_size(&qp->sq), &qp->sq_view);
	if (!err)
		err = sf_map_region(ctx, &resp->line, sizeof(*qp->sq.line),
				    &qp->line_view);
	if (!err)
		err = sf_map_region(ctx, &resp->sq_doorbell, cell,
				    &qp->sq_doorbell_view);
	if (!err && qp->rq.log_stride)
		err = sf_map_region(ctx, &resp->rq, sf_rq_size(&qp->rq),
				    &qp->rq_view);
	if (!err && qp->rq.log_stride)
		err = sf_map_region(ctx, &resp->rq_doorbell, cell,
				    &qp->rq_doorbell_view);
	if (err)
		sf_unmap_qp(ctx, qp);
	return err;
}

void sf_init_notify(struct sf_notify *notify, uint32_t handle, uint32_t command,
		    uint32_t wqe_size)
{
	notify->hdr.command = command;
	notify->hdr.in_words = offsetof(struct sf_notify, bad_wr) / 4;
	notify->hdr.out_words = sizeof(notify->bad_wr) / 4;
	notify->response = (uintptr_t)&notify->bad_wr;
	notify->handle = handle;
	notify->wqe_size = wqe_size;
}

/* sf_notify spells out a core struct that ends in a flexible array. */
#define SF_NOTIFY_AT(member, core)                                   \
	static_assert(offsetof(struct sf_notify, member) ==          \
			      sizeof(struct ib_uverbs_cmd_hdr) +     \
				      offsetof(struct core, member), \
		      #member " moved")
static_assert(offsetof(struct sf_notify, handle) ==
		      sizeof(struct ib_uverbs_cmd_hdr) +
			      offsetof(struct ib_uverbs_post_send, qp_handle),
	      "handle moved");
static_assert(offsetof(struct ib_uverbs_post_send, qp_handle) ==
			      offsetof(struct ib_uverbs_post_recv, qp_handle) &&
		      offsetof(struct ib_uverbs_post_send, qp_handle) ==
			      offsetof(struct ib_uverbs_post_srq_recv,
				       srq_handle),
	      "one place for the handle");
SF_NOTIFY_AT(response, ib_uverbs_post_send);
SF_NOTIFY_AT(wr_count, ib_uverbs_post_send);
SF_NOTIFY_AT(wqe_size, ib_uverbs_post_send);
SF_NOTIFY_AT(response, ib_uverbs_post_recv);
SF_NOTIFY_AT(wr_count, ib_uverbs_post_recv);
SF_NOTIFY_AT(wqe_size, ib_uverbs_post_recv);
SF_NOTIFY_AT(response, ib_uverbs_post_srq_recv);
SF_NOTIFY_AT(wr_count, ib_uverbs_post_srq_recv);
SF_NOTIFY_AT(wqe_size, ib_uverbs_post_srq_recv);

void sf_start_rq(struct sf_qp *qp, uint32_t handle, uint64_t start)
{
	qp->rq.ring = qp->rq_view.addr;
	qp->rq.doorbell = qp->rq_doorbell_view.addr;
	qp->rq.head = start;
	qp->rq.tail = start;
	sf_init_notify(&qp->rq.notify, handle, IB_USER_VERBS_CMD_POST_RECV,
		       sizeof(struct ib_uverbs_recv_wr));
}

static void sf_start_queues(struct sf_qp *qp,
			    const struct scalefabric_create_qp_resp *resp)
{
	qp->sq.ring = qp->sq_view.addr;
	qp->sq.line = qp->line_view.addr;
	qp->sq.doorbell = qp->sq_doorbell_view.addr;
	qp->sq.head = resp->sq_start;
	qp->sq.tail = resp->sq_start;
	sf_init_notify(&qp->sq.notify, qp->vqp.qp.handle,
		       IB_USER_VERBS_CMD_POST_SEND,
		       sizeof(struct ib_uverbs_send_wr));
	if (qp->rq.log_stride)
		sf_start_rq(qp, qp->vqp.qp.handle, resp->rq_start);
}

/* ------------------------------------------------------------------------
 * Create
 */

static void sf_fill_create_req(const struct sf_qp *qp, bool datagram,
			       struct scalefabric_create_qp_req *req)
{
	req->sq.fd = -1;
	req->line.fd = -1;
	req->rq.fd = -1;
	/*
	 * An SRQ's descriptor may be another's before its CQE is polled; a
	 * datagram comes with its GRH, and a frame is longer.
	 */
	if (qp->rq.log_stride && !datagram)
		req->flags = SCALEFABRIC_QP_INLINE_RECV;
	req->sq_log_depth = qp->sq.log_depth;
	req->sq_log_stride = qp->sq.log_stride;
	req->rq_log_depth = qp->rq.log_depth;
	req->rq_log_stride = qp->rq.log_stride;
}

static int sf_cmd_create_qp(struct sf_context *ctx, struct sf_qp *qp,
			    const struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_qp_init_attr_ex core_attr = *attr;
	struct sf_create_qp_resp resp = {};
	struct sf_create_qp cmd = {};
	int err;

	core_attr.cap = qp->cap;
	core_attr.comp_mask &= ~IBV_QP_INIT_ATTR_CREATE_FLAGS; /* none */
	sf_fill_create_req(qp,
			   attr->qp_type == IBV_QPT_UD ||
				   attr->qp_type == IBV_QPT_RAW_PACKET,
			   &cmd.drv_payload);
	err = ibv_cmd_create_qp_ex(&ctx->vctx.context, &qp->vqp, &core_attr,
				   &cmd.ibv_cmd, sizeof(cmd), &resp.ibv_resp,
				   sizeof(resp));
	if (err)
		return err;

	err = sf_map_qp(ctx, qp, &resp.drv_payload);
	if (err) {
		ibv_cmd_destroy_qp(&qp->vqp.qp);
		return err;
	}
	sf_start_queues(qp, &resp.drv_payload);
	if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)
		sf_set_send_ops(qp, attr->send_ops_flags);
	return 0;
}

static int sf_build_qp(struct sf_context *ctx, struct sf_qp *qp,
		       const struct ibv_qp_init_attr_ex *attr)
{
	int err;

	err = sf_init_sq(&qp->sq, attr->pd);
	if (err)
		return err;
	err = sf_init_rq(&qp->rq, attr->pd);
	if (err)
		goto err_sq;
	err = sf_cmd_create_qp(ctx, qp, attr);
	if (err)
		goto err_rq;
	sf_domain_join(attr->pd);
	sf_qp_attach(qp);
	return 0;

err_rq:
	sf_fini_rq(&qp->rq);
err_sq:
	sf_fini_sq(&qp->sq);
	return err;
}

static struct sf_qp *sf_new_qp(struct sf_context *ctx,
			       const struct ibv_qp_init_attr_ex *attr)
{
	struct sf_qp *qp = calloc(1, sizeof(*qp));

	if (!qp)
		return NULL;
	qp->cap = attr->cap;
	sf_shape_sq(ctx, &qp->sq, &qp->cap);
	if (attr->srq || attr->qp_type == IBV_QPT_XRC_SEND)
		sf_shape_no_rq(&qp->cap);
	else
		sf_shape_rq(&qp->rq, &qp->cap);
	qp->srq = attr->srq ? to_sf_srq(attr->srq) : NULL;
	qp->no_parts = sf_wr_no_parts(attr->qp_type);
	qp->no_flags = sf_wr_no_flags(attr->qp_type);
	qp->sq_sig_all = attr->sq_sig_all;
	qp->sq_notify = ctx->sq_notify;
	qp->rq_notify = ctx->rq_notify;
	return qp;
}

/* Nothing of it is here: the domain and the device have it all. */
static struct ibv_qp *sf_create_target(struct ibv_context *context,
				       struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_qp_init_attr_ex core_attr = {
		.qp_context = attr->qp_context,
		.qp_type = IBV_QPT_XRC_RECV,
		.comp_mask = IBV_QP_INIT_ATTR_XRCD,
		.xrcd = attr->xrcd,
		/* Needless, but librdmacm takes the PD of an id from its QP. */
		.pd = attr->comp_mask & IBV_QP_INIT_ATTR_PD ? attr->pd : NULL,
	};
	struct sf_create_qp_resp resp = {};
	struct sf_create_qp cmd = {};
	struct sf_qp *qp;
	int err;

	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return NULL;
	cmd.drv_payload.sq.fd = -1;
	cmd.drv_payload.line.fd = -1;
	cmd.drv_payload.rq.fd = -1;
	err = ibv_cmd_create_qp_ex(context, &qp->vqp, &core_attr, &cmd.ibv_cmd,
				   sizeof(cmd), &resp.ibv_resp, sizeof(resp));
	if (err) {
		free(qp);
		errno = err;
		return NULL;
	}
	attr->cap = core_attr.cap;
	return &qp->vqp.qp;
}

struct ibv_qp *sf_create_qp_ex(struct ibv_context *context,
			       struct ibv_qp_init_attr_ex *attr)
{
	struct sf_context *ctx = to_sf_context(context);
	struct sf_qp *qp;
	int err;

	if (attr->comp_mask &
	    (IBV_QP_INIT_ATTR_RX_HASH | IBV_QP_INIT_ATTR_IND_TABLE))
		return sf_create_hash_qp(ctx, attr);
	err = sf_check_qp_attr(attr);
	if (!err && attr->qp_type == IBV_QPT_XRC_RECV)
		return sf_create_target(context, attr);
	if (!err)
		err = sf_check_qp_cap(ctx, &attr->cap,
				      attr->srq || attr->qp_type ==
							   IBV_QPT_XRC_SEND);
	if (err)
		goto err_check;

	qp = sf_new_qp(ctx, attr);
	if (!qp)
		return NULL;
	err = sf_build_qp(ctx, qp, attr);
	if (err)
		goto err_build;

	attr->cap = qp->cap;
	return &qp->vqp.qp;

err_build:
	free(qp);
err_check:
	errno = err;
	return NULL;
}

struct ibv_qp *sf_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex ex = {
		.qp_context = attr->qp_context,
		.send_cq = attr->send_cq,
		.recv_cq = attr->recv_cq,
		.srq = attr->srq,
		.cap = attr->cap,
		.qp_type = attr->qp_type,
		.sq_sig_all = attr->sq_sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = pd,
	};
	struct ibv_qp *qp = sf_create_qp_ex(pd->context, &ex);

	if (qp)
		attr->cap = ex.cap;
	return qp;
}

/* ------------------------------------------------------------------------
 * Query, modify, destroy
 */

int sf_query_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int attr_mask,
		struct ibv_qp_init_attr *init_attr)
{
	struct sf_qp *qp = to_sf_qp(ibqp);
	struct ibv_query_qp cmd;
	int err;

	if (qp->hashes)
		return EOPNOTSUPP; /* neither states nor attributes */

	err = ibv_cmd_query_qp(ibqp, attr, attr_mask, init_attr, &cmd,
			       sizeof(cmd));
	if (err)
		return err;

	init_attr->cap = qp->cap;
	init_attr->sq_sig_all = qp->sq_sig_all;
	attr->cap = qp->cap;
	return 0;
}

static int sf_cmd_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr,
			    int attr_mask)
{
	struct ibv_modify_qp cmd = {};

	return ibv_cmd_modify_qp(qp, attr, attr_mask, &cmd, sizeof(cmd));
}

/*
 * Both queues are empty now.  Neither index ever goes back, so CQEs of the old
 * life name indices that are not outstanding, and polling drops them.
 */
static void sf_empty_queues(struct sf_qp *qp)
{
	uint64_t word = __atomic_load_n(&qp->sq.line->word, __ATOMIC_ACQUIRE);

	sf_lock_cqs(&qp->vqp.qp);
	qp->sq.head = word & SF_LINE_INDEX_MASK;
	qp->sq.tail = qp->sq.head;
	qp->rq.tail = qp->rq.head;
	sf_unlock_cqs(&qp->vqp.qp);
}

/* No poster between the device's new start and ours. */
static int sf_reset_qp(struct sf_qp *qp, struct ibv_qp_attr *attr,
		       int attr_mask)
{
	int err;

	sf_lock(&qp->sq.lock);
	sf_lock(&qp->rq.lock);
	err = sf_cmd_modify_qp(&qp->vqp.qp, attr, attr_mask);
	if (!err)
		sf_empty_queues(qp);
	sf_unlock(&qp->rq.lock);
	sf_unlock(&qp->sq.lock);
	return err;
}

int sf_modify_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int attr_mask)
{
	if (to_sf_qp(ibqp)->hashes)
		return EOPNOTSUPP; /* it is ready all its life */
	if ((attr_mask & IBV_QP_STATE) && attr->qp_state == IBV_QPS_RESET &&
	    !sf_is_target(to_sf_qp(ibqp)))
		return sf_reset_qp(to_sf_qp(ibqp), attr, attr_mask);
	return sf_cmd_modify_qp(ibqp, attr, attr_mask);
}

int sf_destroy_qp(struct ibv_qp *ibqp)
{
	struct sf_context *ctx = to_sf_context(ibqp->context);
	struct sf_qp *qp = to_sf_qp(ibqp);
	struct ibv_pd *pd = ibqp->pd;
	int err;

	err = ibv_cmd_destroy_qp(ibqp);
	if (err)
		return err;
	if (sf_is_target(qp)) {
		free(qp);
		return 0;
	}

	sf_qp_detach(qp);
	sf_unmap_qp(ctx, qp);
	sf_fini_rq(&qp->rq);
	sf_fini_sq(&qp->sq);
	sf_domain_leave(pd);
	free(qp);
	return 0;
}
