/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the two ways to post share.  A batch is published as one: all bodies,
 * one fence, all commit words with the first one last, one doorbell.  The
 * device runs up to the first slot that is not committed, so it takes the whole
 * batch or nothing yet.
 */
#ifndef SF_WQE_H
#define SF_WQE_H

#include "doorbell.h"

/* What a work request of some opcode is made of. */
enum sf_wr_parts {
	SF_WR_KNOWN = 1 << 0,
	SF_WR_REMOTE = 1 << 1, /* remote address and rkey */
	SF_WR_IMM = 1 << 2,
	SF_WR_ATOMIC = 1 << 3, /* operands, and one SGE for the result */
	SF_WR_INLINE = 1 << 4, /* the payload may be inline */
	SF_WR_READS = 1 << 5,  /* brings something back */
	SF_WR_INV = 1 << 6,    /* invalidates a key of the target */
	SF_WR_LOCAL = 1 << 7,  /* changes a window here, has no data */
};

/* Which of them a transport does not have. */
static inline uint8_t sf_wr_no_parts(enum ibv_qp_type type)
{
	switch (type) {
	case IBV_QPT_UD:
		return SF_WR_REMOTE | SF_WR_ATOMIC | SF_WR_READS | SF_WR_INV |
		       SF_WR_LOCAL;
	case IBV_QPT_RAW_PACKET:
		return SF_WR_REMOTE | SF_WR_ATOMIC | SF_WR_READS | SF_WR_IMM |
		       SF_WR_INV | SF_WR_LOCAL;
	case IBV_QPT_UC:
		return SF_WR_ATOMIC | SF_WR_READS | SF_WR_INV;
	default:
		return 0;
	}
}

static inline uint32_t sf_wr_no_flags(enum ibv_qp_type type)
{
	uint32_t flags = IBV_SEND_FENCE | IBV_SEND_SIGNALED |
			 IBV_SEND_SOLICITED | IBV_SEND_INLINE;

	if (type == IBV_QPT_RAW_PACKET)
		flags |= IBV_SEND_IP_CSUM;
	return ~flags;
}

static inline void sf_put_ud_address(struct sf_wqe *wqe, struct ibv_ah *ah,
				     uint32_t remote_qpn, uint32_t remote_qkey)
{
	wqe->remote_addr = to_sf_ah(ah)->number | (uint64_t)remote_qpn << 32;
	wqe->rkey = remote_qkey;
}

/* Does each request say which SRQ it goes to? */
static inline bool sf_names_srq(const struct sf_qp *qp)
{
	return qp->vqp.qp.qp_type == IBV_QPT_XRC_SEND;
}

/* The low byte of the key is the caller's, the rest names the window. */
static inline void sf_put_bind(struct sf_wqe *wqe, const struct ibv_mw *mw,
			       uint32_t rkey,
			       const struct ibv_mw_bind_info *info)
{
	uint32_t tag = (1U << SF_KEY_TAG_BITS) - 1;
	struct sf_bind *bind = (struct sf_bind *)&wqe->sge0;

	wqe->remote_addr = info->addr;
	wqe->rkey = (mw->rkey & ~tag) | (rkey & tag);
	wqe->imm = info->mr ? info->mr->lkey : 0;
	bind->length = info->mr ? info->length : 0;
	bind->access = info->mw_access_flags;
	bind->reserved = 0;
}

static inline uint64_t sf_sq_mask(const struct sf_sq *sq)
{
	return (1ULL << sq->log_depth) - 1;
}

static inline struct sf_wqe *sf_sq_slot(const struct sf_sq *sq, uint64_t index)
{
	uint64_t slot = index & sf_sq_mask(sq);

	return (struct sf_wqe *)(sq->ring + (slot << sq->log_stride));
}

static inline bool sf_sq_full(const struct sf_sq *sq, uint64_t index)
{
	uint64_t tail = __atomic_load_n(&sq->tail, __ATOMIC_ACQUIRE);

	return index - tail >= 1ULL << sq->log_depth;
}

static inline bool sf_may_send(const struct ibv_qp *qp)
{
	return qp->state != IBV_QPS_RESET && qp->state != IBV_QPS_INIT;
}

static inline uint32_t sf_wqe_flags(const struct sf_qp *qp,
				    unsigned int send_flags)
{
	uint32_t flags = 0;

	if ((send_flags & IBV_SEND_SIGNALED) || qp->sq_sig_all)
		flags |= SF_WQE_SIGNALED;
	if (send_flags & IBV_SEND_FENCE)
		flags |= SF_WQE_FENCE;
	if (send_flags & IBV_SEND_SOLICITED)
		flags |= SF_WQE_SOLICITED;
	if (send_flags & IBV_SEND_INLINE)
		flags |= SF_WQE_INLINE;
	if (send_flags & IBV_SEND_IP_CSUM)
		flags |= SF_WQE_CHECKSUMS;
	return flags;
}

static inline void sf_put_sges(struct sf_sge *to, const struct ibv_sge *from,
			       int n)
{
	int i;

	for (i = 0; i < n; i++) {
		to[i].addr = from[i].addr;
		to[i].length = from[i].length;
		to[i].lkey = from[i].lkey;
	}
}

static inline void sf_put_desc(void *slot, uint32_t cookie,
			       const struct ibv_recv_wr *wr)
{
	struct sf_rq_desc *desc = slot;

	desc->cookie = cookie;
	desc->n_sge = wr->num_sge;
	desc->reserved0 = 0;
	desc->reserved1 = 0;
	sf_put_sges((struct sf_sge *)(desc + 1), wr->sg_list, wr->num_sge);
}

static inline void sf_store_commit(const struct sf_sq *sq, uint64_t index)
{
	sf_store_release(&sf_sq_slot(sq, index)->commit,
			 sq->shadow[index & sf_sq_mask(sq)].commit);
}

/*
 * Make [head, end) real.  The head moves first: a completion may be polled
 * before the last store here is done, and must find its index outstanding.
 */
static inline void sf_sq_publish(struct sf_sq *sq, uint64_t end)
{
	uint64_t first = sq->head, index;

	__atomic_store_n(&sq->head, end, __ATOMIC_RELAXED);
	sf_publish_fence();
	for (index = first + 1; index != end; index++)
		sf_store_commit(sq, index);
	sf_store_commit(sq, first);
	sf_ring(sq->doorbell, end);
}

#endif
