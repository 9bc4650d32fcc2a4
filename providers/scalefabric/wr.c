// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* ibv_post_send() and ibv_post_recv(); a chain of send requests is one batch.
 */
#include <errno.h>
#include <string.h>

#include "wqe.h"

struct sf_wr_kind {
	uint8_t opcode;
	uint8_t parts;
};

static const struct sf_wr_kind sf_wr_kinds[] = {
	[IBV_WR_RDMA_WRITE] = {SF_OP_WRITE,
			       SF_WR_KNOWN | SF_WR_REMOTE | SF_WR_INLINE},
	[IBV_WR_RDMA_WRITE_WITH_IMM] = {SF_OP_WRITE_IMM,
					SF_WR_KNOWN | SF_WR_REMOTE | SF_WR_IMM |
						SF_WR_INLINE},
	[IBV_WR_SEND] = {SF_OP_SEND, SF_WR_KNOWN | SF_WR_INLINE},
	[IBV_WR_SEND_WITH_IMM] = {SF_OP_SEND_IMM,
				  SF_WR_KNOWN | SF_WR_IMM | SF_WR_INLINE},
	[IBV_WR_RDMA_READ] = {SF_OP_READ,
			      SF_WR_KNOWN | SF_WR_REMOTE | SF_WR_READS},
	[IBV_WR_ATOMIC_CMP_AND_SWP] = {SF_OP_ATOMIC_CAS,
				       SF_WR_KNOWN | SF_WR_ATOMIC},
	[IBV_WR_ATOMIC_FETCH_AND_ADD] = {SF_OP_ATOMIC_FADD,
					 SF_WR_KNOWN | SF_WR_ATOMIC},
	[IBV_WR_ATOMIC_WRITE] = {SF_OP_ATOMIC_WRITE,
				 SF_WR_KNOWN | SF_WR_REMOTE | SF_WR_INLINE |
					 SF_WR_READS},
	/* The key lies where an immediate would, in ibv_send_wr as well. */
	[IBV_WR_SEND_WITH_INV] = {SF_OP_SEND_INV, SF_WR_KNOWN | SF_WR_IMM |
							  SF_WR_INLINE |
							  SF_WR_INV},
	[IBV_WR_LOCAL_INV] = {SF_OP_LOCAL_INV,
			      SF_WR_KNOWN | SF_WR_IMM | SF_WR_LOCAL},
	[IBV_WR_BIND_MW] = {SF_OP_BIND_MW, SF_WR_KNOWN | SF_WR_LOCAL},
};

static const struct sf_wr_kind *sf_wr_kind(enum ibv_wr_opcode opcode)
{
	size_t i = opcode;

	if (i >= sizeof(sf_wr_kinds) / sizeof(sf_wr_kinds[0]) ||
	    !(sf_wr_kinds[i].parts & SF_WR_KNOWN))
		return NULL;
	return &sf_wr_kinds[i];
}

/* ------------------------------------------------------------------------
 * One work request into its slot; the commit word stays as it is.
 */

static int sf_check_send_wr(const struct sf_qp *qp,
			    const struct ibv_send_wr *wr, uint8_t parts)
{
	if (wr->send_flags & qp->no_flags)
		return EINVAL;
	if (parts & qp->no_parts)
		return EINVAL;
	if ((wr->send_flags & IBV_SEND_INLINE) && !(parts & SF_WR_INLINE))
		return EINVAL;
	if ((parts & SF_WR_ATOMIC) && wr->num_sge != 1)
		return EINVAL;
	if (wr->num_sge < 0)
		return EINVAL;
	/* Inline data counts in bytes, however many pieces it comes in. */
	if (!(wr->send_flags & IBV_SEND_INLINE) &&
	    (uint32_t)wr->num_sge > qp->cap.max_send_sge)
		return EINVAL;
	return 0;
}

static int sf_put_inline(const struct sf_qp *qp, struct sf_wqe *wqe,
			 const struct ibv_send_wr *wr)
{
	uint8_t *to = (uint8_t *)wqe + SF_SLOT_DATA;
	uint32_t left = qp->cap.max_inline_data;
	int i;

	for (i = 0; i < wr->num_sge; i++) {
		const struct ibv_sge *sge = &wr->sg_list[i];

		if (sge->length == 0)
			continue;
		if (sge->length > left)
			return EINVAL;
		memcpy(to, (const void *)(uintptr_t)sge->addr, sge->length);
		to += sge->length;
		left -= sge->length;
	}
	wqe->inline_len = qp->cap.max_inline_data - left;
	return 0;
}

static void sf_put_atomic(struct sf_wqe *wqe, const struct ibv_send_wr *wr)
{
	wqe->remote_addr = wr->wr.atomic.remote_addr;
	wqe->rkey = wr->wr.atomic.rkey;
	if (wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
		wqe->arg0 = wr->wr.atomic.swap;
		wqe->arg1 = wr->wr.atomic.compare_add;
	} else {
		wqe->arg0 = wr->wr.atomic.compare_add;
	}
}

static void sf_put_address(struct sf_wqe *wqe, const struct ibv_send_wr *wr,
			   uint8_t parts)
{
	if (parts & SF_WR_REMOTE) {
		wqe->remote_addr = wr->wr.rdma.remote_addr;
		wqe->rkey = wr->wr.rdma.rkey;
	}
	if (parts & SF_WR_IMM)
		wqe->imm = wr->imm_data;
	if (parts & SF_WR_ATOMIC)
		sf_put_atomic(wqe, wr);
}

/* Fills slot and shadow of @index. */
static int sf_build_wqe(struct sf_qp *qp, uint64_t index,
			const struct ibv_send_wr *wr)
{
	const struct sf_wr_kind *kind = sf_wr_kind(wr->opcode);
	struct sf_wqe *wqe = sf_sq_slot(&qp->sq, index);
	struct sf_send_shadow *shadow;
	uint32_t n_sge = 0;
	int err;

	if (unlikely(!kind))
		return EINVAL;
	err = sf_check_send_wr(qp, wr, kind->parts);
	if (unlikely(err))
		return err;

	if (wr->send_flags & IBV_SEND_INLINE) {
		err = sf_put_inline(qp, wqe, wr);
		if (unlikely(err))
			return err;
	} else if (likely(!(kind->parts & SF_WR_LOCAL))) {
		n_sge = wr->num_sge;
		sf_put_sges(&wqe->sge0, wr->sg_list, n_sge);
	}
	sf_put_address(wqe, wr, kind->parts);
	if (unlikely(wr->opcode == IBV_WR_BIND_MW))
		sf_put_bind(wqe, wr->bind_mw.mw, wr->bind_mw.rkey,
			    &wr->bind_mw.bind_info);
	if (qp->vqp.qp.qp_type == IBV_QPT_UD)
		sf_put_ud_address(wqe, wr->wr.ud.ah, wr->wr.ud.remote_qpn,
				  wr->wr.ud.remote_qkey);
	if (sf_names_srq(qp))
		wqe->xrc_srqn = wr->qp_type.xrc.remote_srqn;

	shadow = &qp->sq.shadow[index & sf_sq_mask(&qp->sq)];
	shadow->wr_id = wr->wr_id;
	shadow->commit =
		sf_commit(kind->opcode, n_sge, sf_wqe_flags(qp, wr->send_flags),
			  index, qp->sq.log_depth);
	return 0;
}

/* ------------------------------------------------------------------------
 * The batch
 */

/* Builds as much of the chain as is right; @end is behind the last one. */
static int sf_build_chain(struct sf_qp *qp, struct ibv_send_wr *wr,
			  struct ibv_send_wr **bad_wr, uint64_t *end)
{
	int err = 0;

	for (; wr; wr = wr->next) {
		if (unlikely(!sf_may_send(&qp->vqp.qp)))
			err = EINVAL;
		else if (unlikely(sf_sq_full(&qp->sq, *end)))
			err = ENOMEM;
		else
			err = sf_build_wqe(qp, *end, wr);
		if (unlikely(err)) {
			*bad_wr = wr;
			break;
		}
		++*end;
	}
	return err;
}

int sf_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr,
		 struct ibv_send_wr **bad_wr)
{
	struct sf_qp *qp = to_sf_qp(ibqp);
	struct sf_sq *sq = &qp->sq;
	bool posted;
	uint64_t end;
	int err;

	if (unlikely(!sq->ring)) { /* a target */
		*bad_wr = wr;
		return EINVAL;
	}
	sf_lock(&sq->lock);
	end = sq->head;
	err = sf_build_chain(qp, wr, bad_wr, &end);
	posted = end != sq->head;
	if (likely(posted))
		sf_sq_publish(sq, end);
	sf_unlock(&sq->lock);

	if (posted && qp->sq_notify)
		sf_notify_device(ibqp->context, &sq->notify);
	return err;
}

/* ------------------------------------------------------------------------
 * Receive
 */

static inline bool sf_rq_full(const struct sf_rq *rq, uint64_t index)
{
	uint64_t tail = __atomic_load_n(&rq->tail, __ATOMIC_ACQUIRE);

	return index - tail >= 1ULL << rq->log_depth;
}

static void sf_put_recv(struct sf_rq *rq, uint64_t index,
			const struct ibv_recv_wr *wr)
{
	uint64_t slot = index & ((1ULL << rq->log_depth) - 1);

	sf_put_desc(rq->ring + (slot << rq->log_stride), index, wr);
	rq->wr_ids[slot] = wr->wr_id;
}

static int sf_build_recv(struct sf_qp *qp, uint64_t index,
			 const struct ibv_recv_wr *wr)
{
	if (unlikely(qp->vqp.qp.state == IBV_QPS_RESET || !qp->rq.ring))
		return EINVAL;
	if (unlikely(wr->num_sge < 0 ||
		     (uint32_t)wr->num_sge > qp->cap.max_recv_sge))
		return EINVAL;
	if (unlikely(sf_rq_full(&qp->rq, index)))
		return ENOMEM;

	sf_put_recv(&qp->rq, index, wr);
	return 0;
}

static int sf_build_recv_chain(struct sf_qp *qp, struct ibv_recv_wr *wr,
			       struct ibv_recv_wr **bad_wr, uint64_t *end)
{
	int err = 0;

	for (; wr; wr = wr->next) {
		err = sf_build_recv(qp, *end, wr);
		if (unlikely(err)) {
			*bad_wr = wr;
			break;
		}
		++*end;
	}
	return err;
}

/* The doorbell is the producer index itself, so it is stored under the lock. */
static void sf_rq_publish(struct sf_rq *rq, uint64_t end)
{
	__atomic_store_n(&rq->head, end, __ATOMIC_RELAXED);
	sf_ring(rq->doorbell, end);
}

int sf_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr,
		 struct ibv_recv_wr **bad_wr)
{
	struct sf_qp *qp = to_sf_qp(ibqp);
	struct sf_rq *rq = &qp->rq;
	bool posted;
	uint64_t end;
	int err;

	sf_lock(&rq->lock);
	end = rq->head;
	err = sf_build_recv_chain(qp, wr, bad_wr, &end);
	posted = end != rq->head;
	if (likely(posted))
		sf_rq_publish(rq, end);
	sf_unlock(&rq->lock);

	if (posted && qp->rq_notify)
		sf_notify_device(ibqp->context, &rq->notify);
	return err;
}
