// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Reading a completion queue.  A CQE is taken in three steps: sf_cq_peek() sees
 * that it is there, sf_cqe_claim() gives its work request back to the queue it
 * came from, and then it is copied out.  What claim cannot attribute is
 * consumed without a word: it is of a QP that was destroyed, or of a life
 * before RESET.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include <ccan/minmax.h>

#include "doorbell.h"

static inline const struct sf_cqe *sf_cq_peek(const struct sf_cq *cq,
					      uint64_t index, uint64_t *word)
{
	uint64_t mask = (1ULL << cq->log_depth) - 1;
	const struct sf_cqe *cqe = &cq->ring[index & mask];

	*word = __atomic_load_n(&cqe->word, __ATOMIC_ACQUIRE);
	if (sf_cqe_lap(*word) != (sf_lap(index, cq->log_depth) & 0xff))
		return NULL;

	/* Nothing else of the CQE counts before its word. */
	udma_from_device_barrier();
	return cqe;
}

/* Tell the device what is free again; one store for all that was polled. */
static inline void sf_cq_publish(struct sf_cq *cq)
{
	sf_store_release(&cq->ctrl->consumer, cq->consumer);
}

/* A send completion frees every earlier WQE with it: queues run in order. */
static inline bool sf_sq_retire(struct sf_sq *sq, uint64_t index,
				uint64_t *wr_id)
{
	uint64_t mask = (1ULL << sq->log_depth) - 1;
	uint64_t head = __atomic_load_n(&sq->head, __ATOMIC_RELAXED);

	if (unlikely(!sf_outstanding(index, sq->tail, head)))
		return false;

	*wr_id = sq->shadow[index & mask].wr_id;
	sf_store_release(&sq->tail, index + 1);
	return true;
}

/*
 * Copy an inline payload to where the receive wanted it.  The descriptor is
 * still in the ring: only the store of rq->tail lets the poster reuse it.
 */
static void sf_rq_scatter(const struct sf_rq *rq, uint64_t index,
			  const struct sf_cqe *cqe)
{
	uint64_t slot = index & ((1ULL << rq->log_depth) - 1);
	const struct sf_rq_desc *desc =
		(const void *)(rq->ring + (slot << rq->log_stride));
	const struct sf_sge *sge = (const void *)(desc + 1);
	uint32_t left = min_t(uint32_t, cqe->byte_len, SF_CQE_INLINE_MAX);
	uint32_t max = ((1U << rq->log_stride) - sizeof(*desc)) / sizeof(*sge);
	uint32_t n = min_t(uint32_t, desc->n_sge, max);
	const uint8_t *from = cqe->data;
	uint32_t len;

	for (; n && left; n--, sge++) {
		len = min_t(uint32_t, sge->length, left);
		memcpy((void *)(uintptr_t)sge->addr, from, len);
		from += len;
		left -= len;
	}
}

/* The cookie is the low half of the index. */
static inline bool sf_rq_retire(struct sf_rq *rq, const struct sf_cqe *cqe,
				uint64_t word, uint64_t *wr_id)
{
	uint64_t mask = (1ULL << rq->log_depth) - 1;
	uint64_t head = __atomic_load_n(&rq->head, __ATOMIC_RELAXED);
	uint64_t index = rq->tail + (uint32_t)(cqe->wr - rq->tail);

	if (unlikely(!sf_outstanding(index, rq->tail, head)))
		return false;

	if (sf_cqe_flags(word) & SF_CQE_INLINE)
		sf_rq_scatter(rq, index, cqe);
	*wr_id = rq->wr_ids[index & mask];
	sf_store_release(&rq->tail, index + 1);
	return true;
}

static inline bool sf_cqe_is_recv(uint64_t word)
{
	return sf_cqe_opcode(word) & SF_CQE_RECV;
}

/* A target's receive is its SRQ's: the target may be another process's. */
static bool sf_xrc_claim(struct sf_cq *cq, const struct sf_cqe *cqe,
			 uint64_t word, uint64_t *wr_id)
{
	struct sf_cq_link *link;

	if (!(sf_cqe_flags(word) & SF_CQE_XRC))
		return false;
	link = sf_cq_find(&cq->srqs, cqe->srqn);
	return link && sf_srq_retire(link->srq, cqe->wr, wr_id);
}

static inline bool sf_cqe_claim(struct sf_cq *cq, const struct sf_cqe *cqe,
				uint64_t word, uint64_t *wr_id)
{
	struct sf_cq_link *link = sf_cq_find(&cq->qps, cqe->qpn);
	struct sf_qp *qp;

	if (unlikely(!link))
		return sf_xrc_claim(cq, cqe, word, wr_id);
	qp = link->qp;
	if (sf_cqe_is_recv(word) && qp->srq)
		return sf_srq_retire(qp->srq, cqe->wr, wr_id);
	if (sf_cqe_is_recv(word))
		return sf_rq_retire(&qp->rq, cqe, word, wr_id);
	return sf_sq_retire(&qp->sq, cqe->wr, wr_id);
}

/* The next CQE that means something, already consumed; NULL if there is none.
 */
static inline const struct sf_cqe *sf_cq_next(struct sf_cq *cq, uint64_t *word,
					      uint64_t *wr_id)
{
	const struct sf_cqe *cqe;

	do {
		cqe = sf_cq_peek(cq, cq->consumer, word);
		if (!cqe)
			return NULL;
		cq->consumer++;
	} while (unlikely(!sf_cqe_claim(cq, cqe, *word, wr_id)));
	return cqe;
}

/*
 * The QP is about to leave: what it has taken from its SRQ and nobody has
 * polled is free again, since polling will not find the QP.  Caller holds the
 * CQ's lock.
 */
void sf_cq_return_srq_receives(struct sf_cq *cq, struct sf_qp *qp)
{
	const struct sf_cqe *cqe;
	uint64_t index = cq->consumer, word, wr_id;

	for (; (cqe = sf_cq_peek(cq, index, &word)); index++)
		if (cqe->qpn == qp->vqp.qp.qp_num && sf_cqe_is_recv(word))
			sf_srq_retire(qp->srq, cqe->wr, &wr_id);
}

/* ------------------------------------------------------------------------
 * Fields
 */

static enum ibv_wc_opcode sf_wc_opcode(uint64_t word)
{
	switch (sf_cqe_opcode(word)) {
	case SF_OP_SEND:
	case SF_OP_SEND_IMM:
	case SF_OP_SEND_INV:
		return IBV_WC_SEND;
	case SF_OP_WRITE:
	case SF_OP_WRITE_IMM:
		return IBV_WC_RDMA_WRITE;
	case SF_OP_READ:
		return IBV_WC_RDMA_READ;
	case SF_OP_ATOMIC_CAS:
		return IBV_WC_COMP_SWAP;
	case SF_OP_ATOMIC_FADD:
		return IBV_WC_FETCH_ADD;
	case SF_OP_ATOMIC_WRITE:
		return IBV_WC_ATOMIC_WRITE;
	case SF_OP_LOCAL_INV:
		return IBV_WC_LOCAL_INV;
	case SF_OP_BIND_MW:
		return IBV_WC_BIND_MW;
	case SF_CQE_RECV:
		return IBV_WC_RECV;
	case SF_CQE_RECV_RDMA_IMM:
		return IBV_WC_RECV_RDMA_WITH_IMM;
	default:
		return IBV_WC_DRIVER1;
	}
}

/* The hardware contract takes the numbers of libibverbs. */
static_assert((int)SF_ST_LOC_PROT_ERR == IBV_WC_LOC_PROT_ERR, "");
static_assert((int)SF_ST_WR_FLUSH_ERR == IBV_WC_WR_FLUSH_ERR, "");
static_assert((int)SF_ST_REM_ACCESS_ERR == IBV_WC_REM_ACCESS_ERR, "");
static_assert((int)SF_ST_RNR_RETRY_EXC_ERR == IBV_WC_RNR_RETRY_EXC_ERR, "");
static_assert((int)SF_ST_GENERAL_ERR == IBV_WC_GENERAL_ERR, "");

static inline enum ibv_wc_status sf_wc_status(uint64_t word)
{
	return min_t(uint32_t, sf_cqe_status(word), IBV_WC_GENERAL_ERR);
}

static inline unsigned int sf_wc_flags(uint64_t word)
{
	uint32_t flags = sf_cqe_flags(word);

	return (flags & SF_CQE_GRH ? IBV_WC_GRH : 0) |
	       (flags & SF_CQE_CHECKSUMS_OK ? IBV_WC_IP_CSUM_OK : 0) |
	       (flags & SF_CQE_IMM ? IBV_WC_WITH_IMM : 0) |
	       (flags & SF_CQE_INV ? IBV_WC_WITH_INV : 0);
}

static void sf_fill_wc(struct ibv_wc *wc, const struct sf_cqe *cqe,
		       uint64_t word, uint64_t wr_id)
{
	wc->wr_id = wr_id;
	wc->status = sf_wc_status(word);
	wc->opcode = sf_wc_opcode(word);
	wc->vendor_err = sf_cqe_syndrome(word);
	wc->byte_len = cqe->byte_len;
	wc->invalidated_rkey = cqe->imm; /* the same bytes as imm_data */
	wc->qp_num = cqe->qpn;
	wc->src_qp = cqe->src_qpn;
	wc->wc_flags = sf_wc_flags(word);
	wc->pkey_index = cqe->pkey_index;
	wc->slid = cqe->slid;
	wc->sl = cqe->sl;
	wc->dlid_path_bits = cqe->path_bits;
}

/* ------------------------------------------------------------------------
 * ibv_poll_cq()
 */

int sf_poll_cq(struct ibv_cq *ibcq, int num_entries, struct ibv_wc *wc)
{
	struct sf_cq *cq = to_sf_cq(ibcq);
	const struct sf_cqe *cqe;
	uint64_t start, word, wr_id;
	int n;

	sf_lock(&cq->lock);
	start = cq->consumer;
	for (n = 0; n < num_entries; n++) {
		cqe = sf_cq_next(cq, &word, &wr_id);
		if (!cqe)
			break;
		sf_fill_wc(wc + n, cqe, word, wr_id);
	}
	if (cq->consumer != start)
		sf_cq_publish(cq);
	sf_unlock(&cq->lock);
	return n;
}

/* ------------------------------------------------------------------------
 * Extended poll.  The lock is held from a start that found something to the
 * end, and the consumer index is stored at the end: what cur points to stays.
 */

static int sf_next_poll(struct ibv_cq_ex *ibcq)
{
	struct sf_cq *cq = to_sf_cq_ex(ibcq);
	uint64_t wr_id;

	cq->cur = sf_cq_next(cq, &cq->cur_word, &wr_id);
	if (!cq->cur)
		return ENOENT;

	ibcq->wr_id = wr_id;
	ibcq->status = sf_wc_status(cq->cur_word);
	return 0;
}

static void sf_end_poll(struct ibv_cq_ex *ibcq)
{
	struct sf_cq *cq = to_sf_cq_ex(ibcq);

	sf_cq_publish(cq);
	sf_unlock(&cq->lock);
}

static int sf_start_poll(struct ibv_cq_ex *ibcq, struct ibv_poll_cq_attr *attr)
{
	struct sf_cq *cq = to_sf_cq_ex(ibcq);
	int err;

	if (unlikely(attr->comp_mask))
		return EINVAL;

	sf_lock(&cq->lock);
	err = sf_next_poll(ibcq);
	if (err)
		sf_end_poll(ibcq);
	return err;
}

static enum ibv_wc_opcode sf_read_opcode(struct ibv_cq_ex *cq)
{
	return sf_wc_opcode(to_sf_cq_ex(cq)->cur_word);
}

static uint32_t sf_read_vendor_err(struct ibv_cq_ex *cq)
{
	return sf_cqe_syndrome(to_sf_cq_ex(cq)->cur_word);
}

static uint32_t sf_read_byte_len(struct ibv_cq_ex *cq)
{
	return to_sf_cq_ex(cq)->cur->byte_len;
}

static __be32 sf_read_imm_data(struct ibv_cq_ex *cq)
{
	return to_sf_cq_ex(cq)->cur->imm;
}

static uint32_t sf_read_qp_num(struct ibv_cq_ex *cq)
{
	return to_sf_cq_ex(cq)->cur->qpn;
}

static uint32_t sf_read_src_qp(struct ibv_cq_ex *cq)
{
	return to_sf_cq_ex(cq)->cur->src_qpn;
}

static unsigned int sf_read_wc_flags(struct ibv_cq_ex *cq)
{
	return sf_wc_flags(to_sf_cq_ex(cq)->cur_word);
}

static uint32_t sf_read_slid(struct ibv_cq_ex *cq)
{
	return to_sf_cq_ex(cq)->cur->slid;
}

static uint8_t sf_read_sl(struct ibv_cq_ex *cq)
{
	return to_sf_cq_ex(cq)->cur->sl;
}

static uint8_t sf_read_dlid_path_bits(struct ibv_cq_ex *cq)
{
	return to_sf_cq_ex(cq)->cur->path_bits;
}

static uint64_t sf_read_completion_ts(struct ibv_cq_ex *cq)
{
	return to_sf_cq_ex(cq)->cur->timestamp;
}

/* No frame has an immediate. */
static uint32_t sf_read_flow_tag(struct ibv_cq_ex *cq)
{
	return to_sf_cq_ex(cq)->cur->imm;
}

static uint64_t sf_clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

/* What the clock on the wall said then, by what both say now. */
static uint64_t sf_read_completion_wallclock_ns(struct ibv_cq_ex *cq)
{
	return to_sf_cq_ex(cq)->cur->timestamp +
	       (sf_clock_ns(CLOCK_REALTIME) - sf_clock_ns(CLOCK_MONOTONIC));
}

void sf_cq_set_extended_poll(struct sf_cq *cq, uint64_t wc_flags)
{
	struct ibv_cq_ex *ex = &cq->vcq.cq_ex;

	ex->start_poll = sf_start_poll;
	ex->next_poll = sf_next_poll;
	ex->end_poll = sf_end_poll;
	ex->read_opcode = sf_read_opcode;
	ex->read_vendor_err = sf_read_vendor_err;
	ex->read_wc_flags = sf_read_wc_flags;
	if (wc_flags & IBV_WC_EX_WITH_BYTE_LEN)
		ex->read_byte_len = sf_read_byte_len;
	if (wc_flags & IBV_WC_EX_WITH_IMM)
		ex->read_imm_data = sf_read_imm_data;
	if (wc_flags & IBV_WC_EX_WITH_QP_NUM)
		ex->read_qp_num = sf_read_qp_num;
	if (wc_flags & IBV_WC_EX_WITH_SRC_QP)
		ex->read_src_qp = sf_read_src_qp;
	if (wc_flags & IBV_WC_EX_WITH_SLID)
		ex->read_slid = sf_read_slid;
	if (wc_flags & IBV_WC_EX_WITH_SL)
		ex->read_sl = sf_read_sl;
	if (wc_flags & IBV_WC_EX_WITH_DLID_PATH_BITS)
		ex->read_dlid_path_bits = sf_read_dlid_path_bits;
	if (wc_flags & IBV_WC_EX_WITH_FLOW_TAG)
		ex->read_flow_tag = sf_read_flow_tag;
	if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)
		ex->read_completion_ts = sf_read_completion_ts;
	if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
		ex->read_completion_wallclock_ns =
			sf_read_completion_wallclock_ns;
}

/* ------------------------------------------------------------------------
 * Arm
 */

static void sf_cq_arm(struct sf_cq *cq, enum sf_cq_arm mode)
{
	uint64_t arm = (cq->consumer & SF_CQ_INDEX_MASK) |
		       (uint64_t)mode << SF_CQ_ARM_SHIFT;

	__atomic_store_n(&cq->ctrl->arm, arm, __ATOMIC_RELAXED);
	/*
	 * Against a device that stores a CQE and then reads the arm word:
	 * either it sees the word, or the poll that follows arming sees the
	 * CQE.
	 */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	sf_ring(cq->doorbell, cq->consumer);
}

int sf_req_notify_cq(struct ibv_cq *ibcq, int solicited_only)
{
	struct sf_cq *cq = to_sf_cq(ibcq);

	sf_lock(&cq->lock);
	sf_cq_arm(cq, solicited_only ? SF_CQ_ARM_SOLICITED : SF_CQ_ARM_ANY);
	sf_unlock(&cq->lock);
	return cq->notify ? ibv_cmd_req_notify_cq(ibcq, solicited_only) : 0;
}
