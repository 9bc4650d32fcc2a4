// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The ibv_wr_ builder.  A session writes slots that are not committed, so an
 * abort or an error has nothing to take back.
 */
#include <errno.h>
#include <string.h>

#include <util/util.h>

#include "wqe.h"

#define SF_UD_SEND_OPS (IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM)
#define SF_UC_SEND_OPS                                                   \
	(SF_UD_SEND_OPS | IBV_QP_EX_WITH_RDMA_WRITE |                    \
	 IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_LOCAL_INV | \
	 IBV_QP_EX_WITH_BIND_MW)
#define SF_RC_SEND_OPS                                                        \
	(SF_UC_SEND_OPS | IBV_QP_EX_WITH_RDMA_READ |                          \
	 IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |                                  \
	 IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_SEND_WITH_INV | \
	 IBV_QP_EX_WITH_ATOMIC_WRITE)

static inline struct sf_qp *to_sf_qp_ex(struct ibv_qp_ex *qp)
{
	return container_of(qp, struct sf_qp, vqp.qp_ex);
}

/* The slot of the next request, with no payload yet; NULL after an error. */
static struct sf_wqe *sf_begin(struct sf_qp *qp, uint32_t opcode, uint8_t parts)
{
	struct sf_session *s = &qp->session;
	struct sf_send_shadow *shadow;
	unsigned int flags;

	if (unlikely(s->err))
		return NULL;
	if (unlikely(sf_sq_full(&qp->sq, s->end))) {
		s->err = ENOMEM;
		return NULL;
	}

	shadow = &qp->sq.shadow[s->end & sf_sq_mask(&qp->sq)];
	shadow->wr_id = qp->vqp.qp_ex.wr_id;
	/* Inline or not is said by the setter. */
	flags = qp->vqp.qp_ex.wr_flags & ~IBV_SEND_INLINE;
	shadow->commit = sf_commit(opcode, 0, sf_wqe_flags(qp, flags), s->end,
				   qp->sq.log_depth);
	s->wqe = sf_sq_slot(&qp->sq, s->end);
	s->commit = &shadow->commit;
	s->parts = parts;
	s->end++;
	return s->wqe;
}

/* ------------------------------------------------------------------------
 * Requests
 */

static void sf_begin_remote(struct ibv_qp_ex *qpx, uint32_t opcode,
			    uint8_t parts, uint32_t rkey, uint64_t remote_addr,
			    uint32_t imm)
{
	struct sf_wqe *wqe = sf_begin(to_sf_qp_ex(qpx), opcode, parts);

	if (unlikely(!wqe))
		return;
	wqe->remote_addr = remote_addr;
	wqe->rkey = rkey;
	wqe->imm = imm;
}

static void sf_begin_atomic(struct ibv_qp_ex *qpx, uint32_t opcode,
			    uint32_t rkey, uint64_t remote_addr, uint64_t arg0,
			    uint64_t arg1)
{
	struct sf_wqe *wqe = sf_begin(to_sf_qp_ex(qpx), opcode, SF_WR_ATOMIC);

	if (unlikely(!wqe))
		return;
	wqe->remote_addr = remote_addr;
	wqe->rkey = rkey;
	wqe->arg0 = arg0;
	wqe->arg1 = arg1;
}

static void sf_wr_send(struct ibv_qp_ex *qpx)
{
	sf_begin(to_sf_qp_ex(qpx), SF_OP_SEND, SF_WR_INLINE);
}

static void sf_wr_send_imm(struct ibv_qp_ex *qpx, __be32 imm_data)
{
	struct sf_wqe *wqe = sf_begin(to_sf_qp_ex(qpx), SF_OP_SEND_IMM,
				      SF_WR_IMM | SF_WR_INLINE);

	if (likely(wqe))
		wqe->imm = imm_data;
}

static void sf_wr_rdma_write(struct ibv_qp_ex *qpx, uint32_t rkey,
			     uint64_t remote_addr)
{
	sf_begin_remote(qpx, SF_OP_WRITE, SF_WR_REMOTE | SF_WR_INLINE, rkey,
			remote_addr, 0);
}

static void sf_wr_rdma_write_imm(struct ibv_qp_ex *qpx, uint32_t rkey,
				 uint64_t remote_addr, __be32 imm_data)
{
	sf_begin_remote(qpx, SF_OP_WRITE_IMM,
			SF_WR_REMOTE | SF_WR_IMM | SF_WR_INLINE, rkey,
			remote_addr, imm_data);
}

static void sf_wr_rdma_read(struct ibv_qp_ex *qpx, uint32_t rkey,
			    uint64_t remote_addr)
{
	sf_begin_remote(qpx, SF_OP_READ, SF_WR_REMOTE, rkey, remote_addr, 0);
}

static void sf_wr_atomic_cmp_swp(struct ibv_qp_ex *qpx, uint32_t rkey,
				 uint64_t remote_addr, uint64_t compare,
				 uint64_t swap)
{
	sf_begin_atomic(qpx, SF_OP_ATOMIC_CAS, rkey, remote_addr, swap,
			compare);
}

static void sf_wr_atomic_fetch_add(struct ibv_qp_ex *qpx, uint32_t rkey,
				   uint64_t remote_addr, uint64_t add)
{
	sf_begin_atomic(qpx, SF_OP_ATOMIC_FADD, rkey, remote_addr, add, 0);
}

static void sf_wr_atomic_write(struct ibv_qp_ex *qpx, uint32_t rkey,
			       uint64_t remote_addr, const void *atomic_wr)
{
	struct sf_qp *qp = to_sf_qp_ex(qpx);

	sf_begin_remote(qpx, SF_OP_ATOMIC_WRITE, SF_WR_REMOTE | SF_WR_INLINE,
			rkey, remote_addr, 0);
	if (unlikely(qp->session.err))
		return;
	/* Fits into any slot, whatever the caller's limit for inline data. */
	memcpy(&qp->session.wqe->sge0, atomic_wr, sizeof(uint64_t));
	qp->session.wqe->inline_len = sizeof(uint64_t);
	*qp->session.commit |= (uint64_t)SF_WQE_INLINE << SF_COMMIT_FLAGS_SHIFT;
}

static void sf_wr_send_inv(struct ibv_qp_ex *qpx, uint32_t invalidate_rkey)
{
	struct sf_wqe *wqe =
		sf_begin(to_sf_qp_ex(qpx), SF_OP_SEND_INV, SF_WR_INLINE);

	if (likely(wqe))
		wqe->imm = invalidate_rkey;
}

static void sf_wr_local_inv(struct ibv_qp_ex *qpx, uint32_t invalidate_rkey)
{
	struct sf_wqe *wqe =
		sf_begin(to_sf_qp_ex(qpx), SF_OP_LOCAL_INV, SF_WR_LOCAL);

	if (likely(wqe))
		wqe->imm = invalidate_rkey;
}

static void sf_wr_bind_mw(struct ibv_qp_ex *qpx, struct ibv_mw *mw,
			  uint32_t rkey,
			  const struct ibv_mw_bind_info *bind_info)
{
	struct sf_wqe *wqe =
		sf_begin(to_sf_qp_ex(qpx), SF_OP_BIND_MW, SF_WR_LOCAL);

	if (likely(wqe))
		sf_put_bind(wqe, mw, rkey, bind_info);
}

/* ------------------------------------------------------------------------
 * Payload of the last request
 */

static void sf_set_n_sge(struct sf_session *s, uint32_t n)
{
	*s->commit &= ~(0xffULL << SF_COMMIT_NSGE_SHIFT);
	*s->commit |= (uint64_t)n << SF_COMMIT_NSGE_SHIFT;
}

static void sf_wr_set_sge_list(struct ibv_qp_ex *qpx, size_t num_sge,
			       const struct ibv_sge *sg_list)
{
	struct sf_qp *qp = to_sf_qp_ex(qpx);
	struct sf_session *s = &qp->session;

	if (unlikely(s->err))
		return;
	/* The operands of an atomic lie where a second SGE would. */
	if (unlikely(num_sge > qp->cap.max_send_sge ||
		     ((s->parts & SF_WR_ATOMIC) && num_sge != 1))) {
		s->err = EINVAL;
		return;
	}

	sf_put_sges(&s->wqe->sge0, sg_list, num_sge);
	sf_set_n_sge(s, num_sge);
}

static void sf_wr_set_sge(struct ibv_qp_ex *qpx, uint32_t lkey, uint64_t addr,
			  uint32_t length)
{
	struct sf_session *s = &to_sf_qp_ex(qpx)->session;

	if (unlikely(s->err))
		return;
	s->wqe->sge0.addr = addr;
	s->wqe->sge0.length = length;
	s->wqe->sge0.lkey = lkey;
	sf_set_n_sge(s, 1);
}

static void sf_wr_set_inline_data_list(struct ibv_qp_ex *qpx, size_t num_buf,
				       const struct ibv_data_buf *buf_list)
{
	struct sf_qp *qp = to_sf_qp_ex(qpx);
	struct sf_session *s = &qp->session;
	size_t left = qp->cap.max_inline_data, i;
	uint8_t *to;

	if (unlikely(s->err))
		return;
	to = (uint8_t *)s->wqe + SF_SLOT_DATA;
	for (i = 0; i < num_buf && (s->parts & SF_WR_INLINE); i++) {
		if (buf_list[i].length == 0)
			continue;
		if (buf_list[i].length > left)
			break;
		memcpy(to, buf_list[i].addr, buf_list[i].length);
		to += buf_list[i].length;
		left -= buf_list[i].length;
	}
	if (unlikely(i < num_buf || !(s->parts & SF_WR_INLINE))) {
		s->err = EINVAL;
		return;
	}

	s->wqe->inline_len = qp->cap.max_inline_data - left;
	*s->commit |= (uint64_t)SF_WQE_INLINE << SF_COMMIT_FLAGS_SHIFT;
}

static void sf_wr_set_inline_data(struct ibv_qp_ex *qpx, void *addr,
				  size_t length)
{
	struct ibv_data_buf buf = {.addr = addr, .length = length};

	sf_wr_set_inline_data_list(qpx, 1, &buf);
}

static void sf_wr_set_ud_addr(struct ibv_qp_ex *qpx, struct ibv_ah *ah,
			      uint32_t remote_qpn, uint32_t remote_qkey)
{
	struct sf_session *s = &to_sf_qp_ex(qpx)->session;

	if (likely(!s->err))
		sf_put_ud_address(s->wqe, ah, remote_qpn, remote_qkey);
}

static void sf_wr_set_xrc_srqn(struct ibv_qp_ex *qpx, uint32_t remote_srqn)
{
	struct sf_session *s = &to_sf_qp_ex(qpx)->session;

	if (likely(!s->err))
		s->wqe->xrc_srqn = remote_srqn;
}

/* ------------------------------------------------------------------------
 * Session.  Opened in the error case too: complete or abort will unlock.
 */

static void sf_wr_start(struct ibv_qp_ex *qpx)
{
	struct sf_qp *qp = to_sf_qp_ex(qpx);
	struct sf_session *s = &qp->session;

	sf_lock(&qp->sq.lock);
	s->end = qp->sq.head;
	s->err = sf_may_send(&qp->vqp.qp) ? 0 : EINVAL;
}

static int sf_wr_complete(struct ibv_qp_ex *qpx)
{
	struct sf_qp *qp = to_sf_qp_ex(qpx);
	struct sf_session *s = &qp->session;
	bool posted = !s->err && s->end != qp->sq.head;
	int err = s->err;

	if (likely(posted))
		sf_sq_publish(&qp->sq, s->end);
	sf_unlock(&qp->sq.lock);

	if (posted && qp->sq_notify)
		sf_notify_device(qp->vqp.qp.context, &qp->sq.notify);
	return err;
}

static void sf_wr_abort(struct ibv_qp_ex *qpx)
{
	sf_unlock(&to_sf_qp_ex(qpx)->sq.lock);
}

/* ------------------------------------------------------------------------
 * Which of these a QP has
 */

bool sf_send_ops_supported(enum ibv_qp_type type, uint64_t send_ops_flags)
{
	switch (type) {
	case IBV_QPT_RAW_PACKET:
		return check_comp_mask(send_ops_flags, IBV_QP_EX_WITH_SEND);
	case IBV_QPT_UD:
		return check_comp_mask(send_ops_flags, SF_UD_SEND_OPS);
	case IBV_QPT_UC:
		return check_comp_mask(send_ops_flags, SF_UC_SEND_OPS);
	case IBV_QPT_XRC_RECV:
		return !send_ops_flags;
	default:
		return check_comp_mask(send_ops_flags, SF_RC_SEND_OPS);
	}
}

static void sf_set_requests(struct ibv_qp_ex *qpx, uint64_t flags)
{
	if (flags & IBV_QP_EX_WITH_SEND)
		qpx->wr_send = sf_wr_send;
	if (flags & IBV_QP_EX_WITH_SEND_WITH_IMM)
		qpx->wr_send_imm = sf_wr_send_imm;
	if (flags & IBV_QP_EX_WITH_RDMA_WRITE)
		qpx->wr_rdma_write = sf_wr_rdma_write;
	if (flags & IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM)
		qpx->wr_rdma_write_imm = sf_wr_rdma_write_imm;
	if (flags & IBV_QP_EX_WITH_RDMA_READ)
		qpx->wr_rdma_read = sf_wr_rdma_read;
	if (flags & IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP)
		qpx->wr_atomic_cmp_swp = sf_wr_atomic_cmp_swp;
	if (flags & IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD)
		qpx->wr_atomic_fetch_add = sf_wr_atomic_fetch_add;
	if (flags & IBV_QP_EX_WITH_ATOMIC_WRITE)
		qpx->wr_atomic_write = sf_wr_atomic_write;
	if (flags & IBV_QP_EX_WITH_SEND_WITH_INV)
		qpx->wr_send_inv = sf_wr_send_inv;
	if (flags & IBV_QP_EX_WITH_LOCAL_INV)
		qpx->wr_local_inv = sf_wr_local_inv;
	if (flags & IBV_QP_EX_WITH_BIND_MW)
		qpx->wr_bind_mw = sf_wr_bind_mw;
}

void sf_set_send_ops(struct sf_qp *qp, uint64_t send_ops_flags)
{
	struct ibv_qp_ex *qpx = &qp->vqp.qp_ex;

	sf_set_requests(qpx, send_ops_flags);
	qpx->wr_set_sge = sf_wr_set_sge;
	qpx->wr_set_sge_list = sf_wr_set_sge_list;
	qpx->wr_set_inline_data = sf_wr_set_inline_data;
	qpx->wr_set_inline_data_list = sf_wr_set_inline_data_list;
	if (qp->vqp.qp.qp_type == IBV_QPT_UD)
		qpx->wr_set_ud_addr = sf_wr_set_ud_addr;
	if (sf_names_srq(qp))
		qpx->wr_set_xrc_srqn = sf_wr_set_xrc_srqn;
	qpx->wr_start = sf_wr_start;
	qpx->wr_complete = sf_wr_complete;
	qpx->wr_abort = sf_wr_abort;
	qp->vqp.comp_mask |= VERBS_QP_EX;
}
