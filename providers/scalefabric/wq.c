// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Work queues, the tables in which a hash finds them, and the queue pair that
 * hashes.  A work queue is the receive half of a queue pair, and is posted to
 * and polled as one.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <util/util.h>

#include "wqe.h"

struct sf_wq {
	struct ibv_wq ibv_wq;
	struct sf_qp qp;
};

static struct sf_wq *to_sf_wq(struct ibv_wq *wq)
{
	return container_of(wq, struct sf_wq, ibv_wq);
}

/* ------------------------------------------------------------------------
 * Create
 */

static int sf_check_wq_attr(const struct sf_context *ctx,
			    const struct ibv_wq_init_attr *attr)
{
	if (!check_comp_mask(attr->comp_mask, IBV_WQ_INIT_ATTR_FLAGS))
		return EOPNOTSUPP;
	if ((attr->comp_mask & IBV_WQ_INIT_ATTR_FLAGS) && attr->create_flags)
		return EOPNOTSUPP;
	if (attr->wq_type != IBV_WQT_RQ || !attr->pd || !attr->cq)
		return EINVAL;
	if (attr->max_wr > 1U << ctx->max_log_depth ||
	    attr->max_sge > SF_MAX_RECV_SGE)
		return EINVAL;
	return 0;
}

static struct sf_wq *sf_new_wq(struct sf_context *ctx,
			       const struct ibv_wq_init_attr *attr)
{
	struct sf_wq *wq = calloc(1, sizeof(*wq));
	struct ibv_qp *ibqp;

	if (!wq)
		return NULL;
	ibqp = &wq->qp.vqp.qp;
	ibqp->context = &ctx->vctx.context;
	ibqp->pd = attr->pd;
	ibqp->recv_cq = attr->cq;
	ibqp->qp_type = IBV_QPT_RAW_PACKET;
	ibqp->state = IBV_QPS_INIT; /* receives may be posted */
	wq->qp.cap.max_recv_wr = attr->max_wr;
	wq->qp.cap.max_recv_sge = attr->max_sge;
	wq->qp.rq_notify = ctx->rq_notify;
	sf_shape_rq(&wq->qp.rq, &wq->qp.cap);
	return wq;
}

static int sf_map_wq(struct sf_context *ctx, struct sf_qp *qp,
		     const struct scalefabric_create_wq_resp *resp)
{
	int err;

	err = sf_map_region(ctx, &resp->rq, sf_rq_size(&qp->rq), &qp->rq_view);
	if (!err)
		err = sf_map_region(ctx, &resp->doorbell,
				    sizeof(struct sf_doorbell),
				    &qp->rq_doorbell_view);
	if (err)
		sf_unmap_qp(ctx, qp);
	return err;
}

static int sf_post_wq_recv(struct ibv_wq *wq, struct ibv_recv_wr *wr,
			   struct ibv_recv_wr **bad_wr)
{
	return sf_post_recv(&to_sf_wq(wq)->qp.vqp.qp, wr, bad_wr);
}

static int sf_cmd_create_wq(struct sf_context *ctx, struct sf_wq *wq,
			    const struct ibv_wq_init_attr *attr)
{
	struct ibv_wq_init_attr core_attr = *attr;
	struct sf_create_wq_resp resp = {};
	struct sf_create_wq cmd = {};
	int err;

	core_attr.max_wr = wq->qp.cap.max_recv_wr;
	core_attr.max_sge = wq->qp.cap.max_recv_sge;
	cmd.drv_payload.rq.fd = -1;
	cmd.drv_payload.log_depth = wq->qp.rq.log_depth;
	cmd.drv_payload.log_stride = wq->qp.rq.log_stride;
	err = ibv_cmd_create_wq(&ctx->vctx.context, &core_attr, &wq->ibv_wq,
				&cmd.ibv_cmd, sizeof(cmd), &resp.ibv_resp,
				sizeof(resp));
	if (err)
		return err;
	err = sf_map_wq(ctx, &wq->qp, &resp.drv_payload);
	if (err) {
		ibv_cmd_destroy_wq(&wq->ibv_wq);
		return err;
	}
	wq->qp.vqp.qp.handle = wq->ibv_wq.handle;
	wq->qp.vqp.qp.qp_num = wq->ibv_wq.wq_num;
	sf_start_rq(&wq->qp, wq->ibv_wq.handle, resp.drv_payload.start);
	return 0;
}

struct ibv_wq *sf_create_wq(struct ibv_context *context,
			    struct ibv_wq_init_attr *attr)
{
	struct sf_context *ctx = to_sf_context(context);
	struct sf_wq *wq;
	int err;

	err = sf_check_wq_attr(ctx, attr);
	if (err)
		goto err_check;
	wq = sf_new_wq(ctx, attr);
	err = ENOMEM;
	if (!wq)
		goto err_check;
	err = sf_init_rq(&wq->qp.rq, attr->pd);
	if (err)
		goto err_new;
	err = sf_cmd_create_wq(ctx, wq, attr);
	if (err)
		goto err_rq;

	sf_domain_join(attr->pd);
	sf_qp_attach(&wq->qp);
	wq->ibv_wq.wq_context = attr->wq_context;
	wq->ibv_wq.state = IBV_WQS_RESET;
	wq->ibv_wq.post_recv = sf_post_wq_recv;
	attr->max_wr = wq->qp.cap.max_recv_wr;
	attr->max_sge = wq->qp.cap.max_recv_sge;
	return &wq->ibv_wq;

err_rq:
	sf_fini_rq(&wq->qp.rq);
err_new:
	free(wq);
err_check:
	errno = err;
	return NULL;
}

/* ------------------------------------------------------------------------
 * Modify, destroy
 */

/* What was posted is gone after RESET; no poster between the two. */
int sf_modify_wq(struct ibv_wq *ibwq, struct ibv_wq_attr *attr)
{
	struct sf_wq *wq = to_sf_wq(ibwq);
	struct sf_rq *rq = &wq->qp.rq;
	struct ibv_modify_wq cmd = {};
	int err;

	if (!(attr->attr_mask & IBV_WQ_ATTR_STATE) ||
	    attr->wq_state != IBV_WQS_RESET)
		return ibv_cmd_modify_wq(ibwq, attr, &cmd, sizeof(cmd));

	sf_lock(&rq->lock);
	err = ibv_cmd_modify_wq(ibwq, attr, &cmd, sizeof(cmd));
	if (!err) {
		sf_lock_cqs(&wq->qp.vqp.qp);
		rq->tail = rq->head;
		sf_unlock_cqs(&wq->qp.vqp.qp);
	}
	sf_unlock(&rq->lock);
	return err;
}

int sf_destroy_wq(struct ibv_wq *ibwq)
{
	struct sf_context *ctx = to_sf_context(ibwq->context);
	struct sf_wq *wq = to_sf_wq(ibwq);
	struct ibv_pd *pd = ibwq->pd;
	int err;

	err = ibv_cmd_destroy_wq(ibwq);
	if (err)
		return err;

	sf_qp_detach(&wq->qp);
	sf_unmap_qp(ctx, &wq->qp);
	sf_fini_rq(&wq->qp.rq);
	sf_domain_leave(pd);
	free(wq);
	return 0;
}

/* ------------------------------------------------------------------------
 * Indirection tables
 */

#define SF_MAX_LOG_IND_TABLE 13 /* what libibverbs takes from the stack */

struct ibv_rwq_ind_table *
sf_create_rwq_ind_table(struct ibv_context *context,
			struct ibv_rwq_ind_table_init_attr *attr)
{
	struct ib_uverbs_ex_create_rwq_ind_table_resp resp = {};
	struct ibv_rwq_ind_table *table;
	int err;

	if (!check_comp_mask(attr->comp_mask, 0)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	if (attr->log_ind_tbl_size > SF_MAX_LOG_IND_TABLE) {
		errno = EINVAL;
		return NULL;
	}
	table = calloc(1, sizeof(*table));
	if (!table)
		return NULL;
	err = ibv_cmd_create_rwq_ind_table(context, attr, table, &resp,
					   sizeof(resp));
	if (err) {
		free(table);
		errno = err;
		return NULL;
	}
	return table;
}

int sf_destroy_rwq_ind_table(struct ibv_rwq_ind_table *table)
{
	int err = ibv_cmd_destroy_rwq_ind_table(table);

	if (!err)
		free(table);
	return err;
}

/* ------------------------------------------------------------------------
 * The queue pair that hashes: it has no queues.
 */

#define SF_HASH_QP_MASK                                   \
	(IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_RX_HASH | \
	 IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_CREATE_FLAGS)
#define SF_HASH_QP_NEEDS                                  \
	(IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_RX_HASH | \
	 IBV_QP_INIT_ATTR_IND_TABLE)

static int sf_check_hash_qp(const struct ibv_qp_init_attr_ex *attr)
{
	const struct ibv_rx_hash_conf *hash = &attr->rx_hash_conf;
	const size_t key_len =
		sizeof(((struct scalefabric_create_hash_qp_req *)0)->rx_key);

	if (!check_comp_mask(attr->comp_mask, SF_HASH_QP_MASK) ||
	    ((attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) &&
	     attr->create_flags))
		return EOPNOTSUPP;
	if ((attr->comp_mask & SF_HASH_QP_NEEDS) != SF_HASH_QP_NEEDS ||
	    attr->qp_type != IBV_QPT_RAW_PACKET || !attr->rwq_ind_tbl ||
	    !attr->pd)
		return EINVAL;
	/* It receives by the work queues, and does not send. */
	if (attr->recv_cq || attr->srq || attr->cap.max_recv_wr ||
	    attr->cap.max_recv_sge)
		return EINVAL;
	if (attr->cap.max_send_wr ||
	    hash->rx_hash_function != IBV_RX_HASH_FUNC_TOEPLITZ)
		return EOPNOTSUPP;
	return hash->rx_hash_key_len == key_len && hash->rx_hash_key ? 0 :
								       EINVAL;
}

static int sf_cmd_create_hash_qp(struct sf_context *ctx, struct sf_qp *qp,
				 const struct ibv_qp_init_attr_ex *attr)
{
	const struct ibv_rx_hash_conf *hash = &attr->rx_hash_conf;
	struct ibv_qp_init_attr_ex core_attr = *attr;
	struct sf_create_hash_qp_resp resp = {};
	struct sf_create_hash_qp cmd = {};

	core_attr.send_cq = NULL;
	memset(&core_attr.cap, 0, sizeof(core_attr.cap));
	cmd.drv_payload.rx_hash_fields = hash->rx_hash_fields_mask;
	cmd.drv_payload.rx_hash_function = SCALEFABRIC_RX_HASH_TOEPLITZ;
	cmd.drv_payload.rx_key_len = hash->rx_hash_key_len;
	memcpy(cmd.drv_payload.rx_key, hash->rx_hash_key,
	       hash->rx_hash_key_len);
	return ibv_cmd_create_qp_ex2(&ctx->vctx.context, &qp->vqp, &core_attr,
				     &cmd.ibv_cmd, sizeof(cmd), &resp.ibv_resp,
				     sizeof(resp));
}

struct ibv_qp *sf_create_hash_qp(struct sf_context *ctx,
				 const struct ibv_qp_init_attr_ex *attr)
{
	struct sf_qp *qp;
	int err;

	err = sf_check_hash_qp(attr);
	if (err)
		goto err_check;
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return NULL;
	qp->hashes = true;
	sf_lock_init(&qp->sq.lock, true);
	sf_lock_init(&qp->rq.lock, true);
	err = sf_cmd_create_hash_qp(ctx, qp, attr);
	if (err)
		goto err_create;
	sf_domain_join(attr->pd);
	return &qp->vqp.qp;

err_create:
	free(qp);
err_check:
	errno = err;
	return NULL;
}
