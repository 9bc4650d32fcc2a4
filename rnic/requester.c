/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The requester: takes committed WQEs in order, sends their packets, treats
 * the answers, completes (IBTA vol. 1, 9.7.3, 9.7.5, 9.7.6, 9.9.2).
 *
 * una is the oldest WQE that is not complete, cur the one to be sent next;
 * una <= cur <= una + depth.  On a link that answers at once they move
 * together.  Whoever inherits the lock of a dead holder falls back to una and
 * sends again: the responder recognises what it already has by its PSN.
 */
#include "rnic/internal.h"

/* A WQE as it was read from its slot, checked. */
struct wqe {
	uint32_t opcode;
	uint32_t flags;
	uint32_t rkey;
	uint32_t imm;
	uint64_t remote_addr;
	uint64_t arg0, arg1;
	struct rnic_ah ah; /* datagrams */
	uint32_t status; /* what is wrong with it */
	uint32_t syndrome;
	uint32_t reads; /* how much it counts against max_rd_atomic */
	uint32_t packets;
	struct rnic_sgl sgl;
	union {
		uint8_t bytes[1 << SF_SLOT_LOG_MAX];
		struct sf_wqe head;
	} slot;
};

/* What the engine knows about an opcode. */
struct op_info {
	uint8_t packet; /* 0: not an operation of this device */
	uint16_t flags; /* of the last packet */
	uint16_t types; /* bit mask of QP types that have it; 0: unknown */
	uint8_t reads; /* counts against max_rd_atomic, writes local memory */
	uint8_t atomic;
	uint8_t store; /* 8 bytes, stored as one; answered like an atomic */
	uint8_t local; /* changes a window of its own side, has no data */
};

/* All that RC can, XRC can. */
#define RC (1 << RNIC_QPT_RC | 1 << RNIC_QPT_XRC_SEND)
#define UC (1 << RNIC_QPT_UC)
#define UD (1 << RNIC_QPT_UD)
#define RAW (1 << RNIC_QPT_RAW_PACKET)

static const struct op_info op_table[] = {
	[SF_OP_NOP] = {.types = RC | UC | UD | RAW},
	[SF_OP_SEND] = {.types = RC | UC | UD | RAW, .packet = RNIC_PKT_SEND},
	[SF_OP_SEND_IMM] = {.types = RC | UC | UD,
			    .packet = RNIC_PKT_SEND,
			    .flags = RNIC_PKT_IMM},
	[SF_OP_WRITE] = {.types = RC | UC, .packet = RNIC_PKT_WRITE},
	[SF_OP_WRITE_IMM] = {.types = RC | UC,
			     .packet = RNIC_PKT_WRITE,
			     .flags = RNIC_PKT_IMM},
	[SF_OP_READ] = {.types = RC, .packet = RNIC_PKT_READ, .reads = 1},
	[SF_OP_ATOMIC_CAS] = {.types = RC,
			      .packet = RNIC_PKT_CAS,
			      .reads = 1,
			      .atomic = 1},
	[SF_OP_ATOMIC_FADD] = {.types = RC,
			       .packet = RNIC_PKT_FADD,
			       .reads = 1,
			       .atomic = 1},
	[SF_OP_SEND_INV] = {.types = RC,
			    .packet = RNIC_PKT_SEND,
			    .flags = RNIC_PKT_INV},
	[SF_OP_ATOMIC_WRITE] = {.types = RC,
				.packet = RNIC_PKT_ATOMIC_WRITE,
				.reads = 1,
				.store = 1},
	[SF_OP_LOCAL_INV] = {.types = RC | UC, .local = 1},
	[SF_OP_BIND_MW] = {.types = RC | UC, .local = 1},
};

static const struct op_info *op_info(uint32_t opcode)
{
	static const struct op_info none;

	return opcode < sizeof(op_table) / sizeof(op_table[0]) ?
		       &op_table[opcode] :
		       &none;
}

/* Flags that go with every operation. */
#define FLAGS_PLAIN \
	(SF_WQE_SIGNALED | SF_WQE_FENCE | SF_WQE_SOLICITED | SF_WQE_INLINE)
/* Others that this device carries out; the rest is an operation error. */
#define FLAGS_SPECIAL \
	(SF_WQE_SIGNAL | SF_WQE_WEAK | SF_WQE_COUNTER | SF_WQE_NOFETCH | \
	 SF_WQE_CHECKSUMS)

/*
 * A fused signal is one more packet of its WRITE, the last: a FETCH_ADD whose
 * result nobody wants.  Order, protection and "exactly once" are an atomic's.
 */
static bool signals(const struct wqe *w)
{
	return w->flags & SF_WQE_SIGNAL;
}

/* Is all that is posted flushed? */
static bool sq_dead(const struct rnic_qp *qp)
{
	uint32_t state = load_acquire(&qp->state);

	return state == RNIC_ERR || state == RNIC_SQE;
}

static struct rnic_position *una(struct rnic_requester *req)
{
	return &req->una[load_relaxed(&req->una_sel) & 1];
}

/* One store moves index and PSN. */
static void una_move(struct rnic_requester *req, uint64_t index, uint32_t psn)
{
	uint32_t other = (load_relaxed(&req->una_sel) & 1) ^ 1;

	req->una[other].index = index;
	req->una[other].psn = psn;
	store_release(&req->una_sel, other);
}

static const struct sf_wqe *sq_slot(const struct rnic *r,
				    const struct rnic_qp *qp, uint64_t index)
{
	uint64_t mask = (1ull << qp->init.sq_log_depth) - 1;
	uint64_t off = qp->sq + ((index & mask) << qp->init.sq_log_stride);

	return rnic_in_arena(r, off, 1ull << qp->init.sq_log_stride) ?
		       rnic_at(r, off) :
		       NULL;
}

static struct sf_send_line *send_line(const struct rnic *r,
				      const struct rnic_qp *qp)
{
	return rnic_in_arena(r, qp->line, sizeof(struct sf_send_line)) ?
		       rnic_at(r, qp->line) :
		       NULL;
}

/* ---- reading a WQE -------------------------------------------------- */

static void wqe_bad(struct wqe *w, uint32_t status, uint32_t syndrome)
{
	if (!w->status) {
		w->status = status;
		w->syndrome = syndrome;
	}
}

static void wqe_inline(struct wqe *w, uint32_t stride, int args)
{
	uint32_t len = w->slot.head.inline_len;
	uint32_t gap = SF_SLOT_ARGS - SF_SLOT_DATA, first = len;

	if (len > sf_slot_capacity(stride, args)) {
		wqe_bad(w, SF_ST_LOC_QP_OP_ERR, SF_SYN_SLOT);
		return;
	}
	if (args && first > gap)
		first = gap;
	rnic_sgl_add(&w->sgl, NULL,
		     (uintptr_t)&w->slot.bytes[SF_SLOT_DATA], first);
	if (len > first)
		rnic_sgl_add(&w->sgl, NULL,
			     (uintptr_t)&w->slot.bytes[sf_slot_data_offset(
				     first, args)],
			     len - first);
}

/* Local protection: IBTA vol. 1, 10.6.3.1. */
static void wqe_gather(const struct rnic *r, const struct rnic_qp *qp,
		       struct wqe *w, uint32_t n, int args, uint32_t access)
{
	uint32_t i, syndrome;

	for (i = 0; i < n; i++) {
		const struct rnic_mr *mr;
		struct sf_sge sge;

		memcpy(&sge, &w->slot.bytes[sf_slot_data_offset(i * 16, args)],
		       sizeof(sge));
		if (!sge.length)
			continue;
		mr = rnic_mr_check(r, sge.lkey, qp->init.pdn, sge.addr,
				   sge.length, access | RNIC_LKEY, &syndrome);
		if (unlikely(!mr)) {
			wqe_bad(w, SF_ST_LOC_PROT_ERR, syndrome);
			return;
		}
		rnic_sgl_add(&w->sgl, mr, sge.addr, sge.length);
	}
}

static void wqe_data(const struct rnic *r, const struct rnic_qp *qp,
		     struct wqe *w, const struct op_info *op, uint32_t n_sge)
{
	uint32_t stride = 1u << qp->init.sq_log_stride;
	int args = op->atomic || signals(w);
	bool fetches = op->reads && !op->store;

	if (unlikely(op->local)) {
		if (n_sge || w->flags & SF_WQE_INLINE)
			wqe_bad(w, SF_ST_LOC_QP_OP_ERR, SF_SYN_SLOT);
		return;
	}
	if (w->flags & SF_WQE_INLINE) {
		if (n_sge || fetches)
			wqe_bad(w, SF_ST_LOC_QP_OP_ERR, SF_SYN_SLOT);
		else
			wqe_inline(w, stride, args);
	} else if (n_sge * 16 > sf_slot_capacity(stride, args)) {
		wqe_bad(w, SF_ST_LOC_QP_OP_ERR, SF_SYN_SLOT);
	} else {
		wqe_gather(r, qp, w, n_sge, args,
			   fetches ? RNIC_LOCAL_WRITE : 0);
	}
	if (w->sgl.total > SF_MAX_MSG)
		wqe_bad(w, SF_ST_LOC_LEN_ERR, SF_SYN_LENGTH);
	if (((op->atomic && !(w->flags & SF_WQE_NOFETCH)) || op->store) &&
	    w->sgl.total != 8)
		wqe_bad(w, SF_ST_LOC_LEN_ERR, SF_SYN_LENGTH);
}

static uint32_t port_mtu(const struct rnic *r, const struct rnic_qp *qp)
{
	const struct rnic_device *dev = &r->sh->device[qp->init.dev];
	uint32_t port = qp->attr.port_num ? qp->attr.port_num - 1u : 0;

	return rnic_mtu_bytes(dev->port[port % RNIC_MAX_PORTS].info.mtu);
}

/* A datagram is one packet, and its address comes with it. */
static void wqe_datagram(const struct rnic *r, const struct rnic_qp *qp,
			 struct wqe *w, const struct op_info *op)
{
	uint32_t syndrome;

	if (!op->packet)
		return;
	if (qp->init.type == RNIC_QPT_RAW_PACKET) { /* a frame says it all */
		if (w->sgl.total < RNIC_MIN_FRAME ||
		    w->sgl.total > RNIC_MAX_FRAME)
			wqe_bad(w, SF_ST_LOC_LEN_ERR, SF_SYN_LENGTH);
		return;
	}
	if (w->sgl.total > port_mtu(r, qp))
		wqe_bad(w, SF_ST_LOC_LEN_ERR, SF_SYN_LENGTH);
	else if (!rnic_ah_get(r, qp, (uint32_t)w->remote_addr, &w->ah,
			      &syndrome))
		wqe_bad(w, SF_ST_LOC_QP_OP_ERR, syndrome);
	/* IBTA vol. 1, 10.2.5: the QP's own instead of a privileged one. */
	if (w->rkey & 1u << 31)
		w->rkey = qp->attr.qkey;
}

/* Bytes of the slot that may matter, rounded up to lines. */
static uint32_t wqe_used(uint32_t flags, uint32_t n_sge, uint32_t inline_len)
{
	uint32_t data = flags & SF_WQE_INLINE ? inline_len : n_sge * 16;

	return (SF_SLOT_DATA + SF_SLOT_ARGS_SIZE + data + 63) & ~63u;
}

static void wqe_counter(const struct rnic *r, const struct rnic_qp *qp,
			struct wqe *w)
{
	const struct rnic_counter *c =
		rnic_counter_get(r, w->slot.head.counter_id);

	if (!c)
		wqe_bad(w, SF_ST_LOC_PROT_ERR, SF_SYN_KEY);
	else if (c->pdn != qp->init.pdn)
		wqe_bad(w, SF_ST_LOC_PROT_ERR, SF_SYN_PD);
}

/* Flags that do not go with every operation. */
static void wqe_special(const struct rnic *r, const struct rnic_qp *qp,
			struct wqe *w, const struct op_info *op, uint32_t n_sge)
{
	if (w->flags & ~(FLAGS_PLAIN | FLAGS_SPECIAL) ||
	    (w->flags & SF_WQE_NOFETCH && (!op->atomic || n_sge)) ||
	    (w->flags & SF_WQE_CHECKSUMS &&
	     qp->init.type != RNIC_QPT_RAW_PACKET) ||
	    (signals(w) && (w->opcode != SF_OP_WRITE || !rnic_reliable(qp))))
		wqe_bad(w, SF_ST_LOC_QP_OP_ERR, SF_SYN_OPCODE);
	else if (w->flags & SF_WQE_COUNTER)
		wqe_counter(r, qp, w);
}

static uint32_t wqe_packets(const struct rnic_qp *qp, const struct wqe *w)
{
	if (!op_info(w->opcode)->packet)
		return 0;
	if (op_info(w->opcode)->atomic || !w->sgl.total ||
	    rnic_datagrams(qp))
		return 1; /* a signal alone: no WRITE before it */
	return rnic_mtu_packets(qp->attr.path_mtu, w->sgl.total) + signals(w);
}

/* Is there a committed WQE at @index?  Then reads and checks it. */
static bool wqe_load(const struct rnic *r, const struct rnic_qp *qp,
		     uint64_t index, struct wqe *w)
{
	const struct sf_wqe *slot = sq_slot(r, qp, index);
	const struct op_info *op;
	uint32_t n_sge, used;
	uint64_t commit;

	if (unlikely(!slot))
		return false;
	/* Acquire: body and payload are not read before the commit word. */
	commit = load_acquire(&slot->commit);
	if (sf_commit_lap(commit) != sf_lap(index, qp->init.sq_log_depth))
		return false;

	n_sge = sf_commit_nsge(commit);
	w->opcode = sf_commit_opcode(commit);
	w->flags = sf_commit_flags(commit);
	w->status = 0;
	w->syndrome = 0;
	rnic_sgl_init(&w->sgl);
	used = wqe_used(w->flags, n_sge, slot->inline_len);
	if (used > 1u << qp->init.sq_log_stride)
		used = 1u << qp->init.sq_log_stride;
	memcpy(w->slot.bytes, slot, used);
	w->rkey = w->slot.head.rkey;
	w->imm = w->slot.head.imm;
	w->remote_addr = w->slot.head.remote_addr;
	w->arg0 = w->slot.head.arg0;
	w->arg1 = w->slot.head.arg1;

	op = op_info(w->opcode);
	w->reads = op->reads | signals(w);
	if (unlikely(!(op->types & 1u << qp->init.type)))
		wqe_bad(w, SF_ST_LOC_QP_OP_ERR, SF_SYN_OPCODE);
	else if (unlikely(w->flags & ~FLAGS_PLAIN))
		wqe_special(r, qp, w, op, n_sge);
	if (likely(!w->status))
		wqe_data(r, qp, w, op, n_sge);
	if (rnic_datagrams(qp) && !w->status)
		wqe_datagram(r, qp, w, op);
	if (unlikely(w->reads && !qp->attr.max_rd_atomic))
		wqe_bad(w, SF_ST_LOC_QP_OP_ERR, SF_SYN_DEPTH);
	w->packets = wqe_packets(qp, w);
	return true;
}

/* ---- completing ----------------------------------------------------- */

static bool wqe_signaled(const struct rnic_qp *qp, const struct wqe *w)
{
	return w->flags & SF_WQE_SIGNALED || qp->init.sq_sig_all;
}

static enum rnic_push_result push_cqe(struct rnic_call *call,
				      struct rnic_qp *qp, const struct wqe *w,
				      uint64_t index, uint32_t status,
				      uint32_t syndrome)
{
	struct sf_cqe cqe = {
		.wr = index,
		.qpn = qp->qpn,
		.src_qpn = qp->attr.dest_qpn,
		.byte_len = (uint32_t)w->sgl.total,
		.word = sf_cqe_word(w->opcode, status, 0, syndrome, 0, 0),
	};

	if (op_info(w->opcode)->atomic)
		cqe.byte_len = 8;
	qp->req.intent_wqe = index;
	return rnic_cq_push(call, qp->init.send_cqn, &cqe, &qp->req.intent);
}

/*
 * Counts WQE @index in its counter, once: should the holder of our lock die, or
 * its CQE have to wait, the slot tells the next who comes.  False: not now.
 */
static bool count(struct rnic *r, struct rnic_qp *qp, const struct wqe *w,
		  uint64_t index, bool success)
{
	struct rnic_atomic_slot *slot = &qp->req.counted;
	const struct rnic_counter *c;

	if (likely(!(w->flags & SF_WQE_COUNTER)) ||
	    (slot->state == RNIC_ATOMIC_DONE && slot->psn == (uint32_t)index))
		return true;
	c = rnic_counter_get(r, w->slot.head.counter_id);
	if (!c || c->pdn != qp->init.pdn)
		return true; /* destroyed meanwhile */
	store_release(&slot->state, RNIC_ATOMIC_NONE);
	slot->psn = (uint32_t)index;
	return rnic_atomic_arena(
		       r,
		       c->memory +
			       (success ? offsetof(struct sf_counter, success) :
					  offsetof(struct sf_counter, error)),
		       1, slot) != RNIC_COPY_BUSY;
}

static void line_store(const struct rnic *r, const struct rnic_qp *qp,
		       uint64_t word)
{
	struct sf_send_line *line = send_line(r, qp);

	if (line)
		store_release(&line->word, word & SF_LINE_INDEX_MASK);
}

/* WQE una succeeded.  False: its CQE could not be written now. */
static bool complete(struct rnic_call *call, struct rnic_qp *qp,
		     const struct wqe *w)
{
	struct rnic_requester *req = &qp->req;
	const struct rnic_position at = *una(req);

	if (unlikely(!count(call->r, qp, w, at.index, true)))
		return false;
	if (wqe_signaled(qp, w)) {
		enum rnic_push_result res =
			push_cqe(call, qp, w, at.index, SF_ST_SUCCESS, 0);

		if (unlikely(res == RNIC_PUSH_BUSY))
			return false;
		if (unlikely(res == RNIC_PUSH_OVERRUN)) {
			rnic_qp_fail(call, qp, RNIC_EVENT_QP_FATAL);
			return false;
		}
	}
	una_move(req, at.index + 1, rnic_psn_add(at.psn, w->packets));
	store_release(&req->intent.set, 0);
	req->reads -= w->reads;
	line_store(call->r, qp, at.index + 1);
	return true;
}

/*
 * WQE una failed: it completes with @status, and the QP is in ERR.  The CQE is
 * made by the flush, so that it is written once whatever happens here.
 */
static void fail(struct rnic_call *call, struct rnic_qp *qp, uint32_t status,
		 uint32_t syndrome)
{
	qp->req.fail_status = status;
	qp->req.fail_syndrome = syndrome;
	qp->req.wait = RNIC_WAIT_NONE;
	qp->req.counters.req_cqe_error++;
	if (status == SF_ST_REM_ACCESS_ERR)
		qp->req.counters.req_remote_access_errors++;
	/* The CQE tells it. */
	if (rnic_reliable(qp))
		rnic_qp_fail(call, qp, RNIC_EVENT_NONE);
	else
		rnic_sq_fail(call, qp);
}

/* ---- flushing (IBTA vol. 1, 10.3.1.5) ------------------------------- */

static void flush_line(const struct rnic *r, struct rnic_qp *qp,
		       uint64_t failed, uint32_t status, uint32_t syndrome)
{
	struct sf_send_line *line = send_line(r, qp);

	if (!line)
		return;
	if (failed != SF_LINE_NO_FAILED && !qp->req.failed) {
		line->status = status;
		line->syndrome = syndrome;
		store_release(&line->failed, failed);
		qp->req.failed = 1;
	}
	if (!(line->word & SF_LINE_ERROR))
		store_release(&line->word, line->word | SF_LINE_ERROR);
}

/* Error completions for all that is committed.  False: CQ busy, try again. */
static bool flush(struct rnic_call *call, struct rnic_qp *qp)
{
	struct rnic_requester *req = &qp->req;
	struct wqe w;

	req->wait = RNIC_WAIT_NONE;
	while (!rnic_call_crowded(call) &&
	       wqe_load(call->r, qp, una(req)->index, &w)) {
		const struct rnic_position at = *una(req);
		uint32_t status = SF_ST_WR_FLUSH_ERR;
		uint32_t syndrome = SF_SYN_QP_STATE;

		if (req->fail_status) {
			status = req->fail_status;
			syndrome = req->fail_syndrome;
		} else {
			req->counters.req_cqe_flush_error++;
		}
		flush_line(call->r, qp, at.index, status, syndrome);
		if (!count(call->r, qp, &w, at.index, false))
			return false;
		/* A CQ in error takes nothing: its queues are lost. */
		if (push_cqe(call, qp, &w, at.index, status, syndrome) ==
		    RNIC_PUSH_BUSY)
			return false;
		una_move(req, at.index + 1, at.psn);
		req->fail_status = 0;
		store_release(&req->intent.set, 0);
	}
	flush_line(call->r, qp, SF_LINE_NO_FAILED, 0, 0);
	req->cur = una(req)->index;
	req->cur_off = 0;
	return true;
}

/* ---- answers -------------------------------------------------------- */

/* RNR NAK timer, IBTA vol. 1, table 45; in units of 10 us. */
static const uint32_t rnr_timer[32] = {
	65536, 1,   2,	 3,   4,   6,	8,    12,   16,	  24,	32,
	48,    64,  96,	 128, 192, 256, 384,  512,  768,  1024, 1536,
	2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
};

/* All from una on is sent again. */
static void go_back(struct rnic_requester *req)
{
	req->cur = una(req)->index;
	req->cur_off = 0;
	req->cur_member = 0;
	req->next_psn = una(req)->psn;
	req->acked_psn = una(req)->psn;
	req->reads = 0;
}

/* Packets that were sent and not answered. */
static uint32_t in_flight(const struct rnic_requester *req)
{
	return (req->next_psn - req->acked_psn) & RNIC_PSN_MASK;
}

static void wait_until(struct rnic_call *call, struct rnic_qp *qp,
		       enum rnic_wait why, uint64_t delay)
{
	uint64_t deadline = call->r->ops->now(call->r->host) + delay;

	qp->req.wait = why;
	rnic_timer_arm(call->r, qp, deadline);
}

/* Local ACK timeout, IBTA vol. 1, 9.7.6.1.3: 4.096 us * 2^timeout, 0: never. */
static void wait_ack(struct rnic_call *call, struct rnic_qp *qp)
{
	uint32_t code = qp->attr.timeout & 31;

	if (code) {
		wait_until(call, qp, RNIC_WAIT_ACK, 4096ull << code);
	} else {
		qp->req.wait = RNIC_WAIT_ACK;
		qp->req.deadline = 0;
	}
}

static void answer_rnr(struct rnic_call *call, struct rnic_qp *qp,
		       uint32_t code)
{
	struct rnic_requester *req = &qp->req;

	if (!req->rnr_left) {
		req->counters.rnr_nak_retry_err++;
		fail(call, qp, SF_ST_RNR_RETRY_EXC_ERR, SF_SYN_RNR);
		return;
	}
	if (req->rnr_left != 7) /* 7: for ever */
		req->rnr_left--;
	go_back(req);
	wait_until(call, qp, RNIC_WAIT_RNR, rnr_timer[code & 31] * 10000ull);
}

/* False: retry_cnt used up. */
static bool retry(struct rnic_call *call, struct rnic_qp *qp, uint32_t syndrome)
{
	if (!qp->req.retry_left) {
		fail(call, qp, SF_ST_RETRY_EXC_ERR, syndrome);
		return false;
	}
	qp->req.retry_left--;
	go_back(&qp->req);
	return true;
}

/* A packet was lost.  What else tells of it does not count. */
static void lost(struct rnic_call *call, struct rnic_qp *qp)
{
	if (!qp->req.went_back && retry(call, qp, SF_SYN_PSN))
		qp->req.went_back = 1;
}

static void answer_nak(struct rnic_call *call, struct rnic_qp *qp,
		       uint32_t syndrome)
{
	if ((syndrome & 0xe0) == RNIC_AETH_RNR) {
		answer_rnr(call, qp, syndrome);
		return;
	}
	switch (syndrome) {
	case RNIC_AETH_NAK_PSN:
		qp->req.counters.packet_seq_err++;
		lost(call, qp);
		break;
	case RNIC_AETH_NAK_INVALID:
		fail(call, qp, SF_ST_REM_INV_REQ_ERR, SF_SYN_PEER);
		break;
	case RNIC_AETH_NAK_ACCESS:
		fail(call, qp, SF_ST_REM_ACCESS_ERR, SF_SYN_PEER);
		break;
	case RNIC_AETH_NAK_OP:
		fail(call, qp, SF_ST_REM_OP_ERR, SF_SYN_PEER);
		break;
	default:
		fail(call, qp, SF_ST_BAD_RESP_ERR, SF_SYN_PEER);
	}
}

/* @psn is answered, and with it all before it: a sign of life. */
static void progress(struct rnic_qp *qp, uint32_t psn)
{
	struct rnic_requester *req = &qp->req;

	if (rnic_psn_diff(psn, req->acked_psn) < 0)
		return;
	req->acked_psn = rnic_psn_add(psn, 1);
	req->went_back = 0;
	req->retry_left = qp->attr.retry_cnt;
	/* What was answered before it was sent again brings no receive. */
	if (rnic_psn_diff(req->acked_psn, req->best_psn) > 0) {
		req->best_psn = req->acked_psn;
		req->rnr_left = qp->attr.rnr_retry;
	}
	if (req->wait == RNIC_WAIT_ACK)
		req->wait = RNIC_WAIT_NONE;
}

enum acked {
	ACKED,
	ACKED_LATER, /* a CQE could not be written now */
	ACKED_GAP, /* the answer to a READ or an atomic was lost */
};

/*
 * The peer has carried out everything up to @psn.  That answers whatever
 * brings nothing back (IBTA vol. 1, 9.7.5.1.1).  @w is WQE una if the caller
 * has it at hand, else scratch.
 */
static enum acked acked(struct rnic_call *call, struct rnic_qp *qp,
			uint32_t psn, struct wqe *w, bool loaded)
{
	struct rnic_requester *req = &qp->req;

	/* A repeated request is answered with what the peer has got to. */
	if (rnic_psn_diff(psn, req->next_psn) >= 0)
		psn = rnic_psn_add(req->next_psn, -1);
	while (una(req)->index < req->cur || req->cur_off) {
		uint32_t end;

		if (!loaded && !wqe_load(call->r, qp, una(req)->index, w))
			break;
		loaded = false;
		end = rnic_psn_add(una(req)->psn, w->packets);
		if (!op_info(w->opcode)->reads)
			progress(qp, rnic_psn_diff(psn, end) < 0 ?
					     psn :
					     rnic_psn_add(end, -1));
		else if (rnic_psn_diff(req->acked_psn, end) < 0 &&
			 rnic_psn_diff(psn, req->acked_psn) >= 0)
			return ACKED_GAP;
		if (rnic_psn_diff(req->acked_psn, end) < 0 ||
		    una(req)->index == req->cur)
			break;
		if (!complete(call, qp, w))
			return ACKED_LATER;
	}
	return ACKED;
}

static uint32_t first_psn(const struct rnic_packet *answer)
{
	return rnic_psn_add(answer->psn,
			    answer->npkts ? 1 - answer->npkts : 0);
}

/* Stores what a READ or an atomic brought to where the WQE wants it. */
static bool place(struct rnic_call *call, struct rnic_qp *qp,
		  const struct wqe *w, const struct rnic_packet *answer)
{
	struct rnic_sgl raw;
	uint64_t off;

	rnic_sgl_init(&raw);
	if (answer->op == RNIC_PKT_ATOMIC_RESPONSE) {
		if (w->flags & (SF_WQE_NOFETCH | SF_WQE_SIGNAL) ||
		    op_info(w->opcode)->store)
			return true;
		rnic_sgl_add(&raw, NULL, (uintptr_t)&answer->arg0, 8);
		return !rnic_sgl_copy(call->r, &w->sgl, 0, &raw, 0, 8);
	}
	if (answer->op != RNIC_PKT_READ_RESPONSE || !answer->payload)
		return true; /* nothing, or the link has placed it */
	off = (uint64_t)rnic_psn_diff(first_psn(answer), una(&qp->req)->psn) *
	      rnic_mtu_bytes(qp->attr.path_mtu);
	if (off > w->sgl.total || answer->len > w->sgl.total - off)
		return false;
	return !rnic_sgl_copy(call->r, &w->sgl, off, answer->payload,
			      answer->payload_off, answer->len);
}

/* complete() said no: its CQE is due, unless the QP is lost. */
static void complete_later(struct rnic_call *call, struct rnic_qp *qp)
{
	if (!sq_dead(qp))
		wait_until(call, qp, RNIC_WAIT_CQE, 1000000);
}

/* Treats what an answer says about all before it.  False: that was all. */
static bool treat_acked(struct rnic_call *call, struct rnic_qp *qp,
			uint32_t psn, struct wqe *w, bool loaded)
{
	switch (acked(call, qp, psn, w, loaded)) {
	case ACKED:
		return true;
	case ACKED_LATER:
		complete_later(call, qp);
		return false;
	default:
		lost(call, qp);
		return false;
	}
}

/* READ responses and results of atomics come in order, or some were lost. */
static bool treat_response(struct rnic_call *call, struct rnic_qp *qp,
			   const struct rnic_packet *answer, struct wqe *w,
			   bool loaded)
{
	struct rnic_requester *req = &qp->req;
	uint32_t first = first_psn(answer);

	if (!loaded) {
		if (!treat_acked(call, qp, rnic_psn_add(first, -1), w, false))
			return false;
		if (first != req->acked_psn ||
		    !wqe_load(call->r, qp, una(req)->index, w) || !w->reads)
			return true; /* a ghost */
	}
	if (!place(call, qp, w, answer)) {
		fail(call, qp, SF_ST_LOC_PROT_ERR, SF_SYN_FAULT);
		return false;
	}
	progress(qp, answer->psn);
	return treat_acked(call, qp, answer->psn, w, true);
}

/* False: stop sending for now. */
static bool treat_answer(struct rnic_call *call, struct rnic_qp *qp,
			 const struct rnic_packet *answer, struct wqe *w,
			 bool loaded)
{
	switch (answer->op) {
	case RNIC_PKT_READ_RESPONSE:
	case RNIC_PKT_ATOMIC_RESPONSE:
		return treat_response(call, qp, answer, w, loaded);
	case RNIC_PKT_ACK:
		return treat_acked(call, qp, answer->psn, w, loaded);
	case RNIC_PKT_LOCAL_FAULT:
		fail(call, qp, SF_ST_LOC_PROT_ERR, SF_SYN_FAULT);
		return false;
	default:
		/* All before the one that was refused has arrived. */
		if (loaded || treat_acked(call, qp,
					  rnic_psn_add(answer->psn, -1), w,
					  false))
			answer_nak(call, qp, answer->syndrome);
		return false;
	}
}

/* ---- sending -------------------------------------------------------- */

/* The signal of a WRITE whose payload was sent. */
static void build_signal(const struct rnic_qp *qp, const struct wqe *w,
			 struct rnic_packet *pkt)
{
	*pkt = (struct rnic_packet){
		.op = RNIC_PKT_FADD,
		.flags = RNIC_PKT_FIRST | RNIC_PKT_LAST | rnic_transport(qp),
		.src_qpn = qp->qpn,
		.dest_qpn = qp->attr.dest_qpn,
		.psn = qp->req.next_psn,
		.npkts = 1,
		.srqn = w->slot.head.xrc_srqn,
		.rkey = (uint32_t)w->arg1,
		.va = w->arg0,
		.arg0 = (uint64_t)(int64_t)(int32_t)(w->arg1 >> 32),
	};
}

static void build_packet(const struct rnic_qp *qp, const struct wqe *w,
			 const struct rnic_link_ops *link,
			 struct rnic_packet *pkt)
{
	const struct op_info *op = op_info(w->opcode);
	uint32_t mtu = rnic_mtu_bytes(qp->attr.path_mtu);
	uint32_t burst = link->burst ? link->burst : mtu;
	uint64_t left = w->sgl.total - qp->req.cur_off;
	uint32_t len = left < burst ? left : burst;

	*pkt = (struct rnic_packet){
		.op = op->packet,
		.flags = rnic_transport(qp),
		.src_qpn = qp->qpn,
		.dest_qpn = qp->attr.dest_qpn,
		.psn = qp->req.next_psn,
		.npkts = len ? rnic_mtu_packets(qp->attr.path_mtu, len) : 1,
		.rkey = w->rkey,
		.srqn = w->slot.head.xrc_srqn,
		.va = w->remote_addr,
		.len = len,
		.dma_len = w->sgl.total,
	};
	if (qp->init.type == RNIC_QPT_UD) {
		pkt->dest_qpn = w->remote_addr >> 32 & RNIC_QPN_MASK;
		pkt->npkts = 1;
		pkt->ah = &w->ah;
		pkt->member = qp->req.cur_member;
	}
	if (qp->init.type == RNIC_QPT_RAW_PACKET) {
		pkt->npkts = 1;
		pkt->flags |= RNIC_PKT_RAW;
		if (w->flags & SF_WQE_CHECKSUMS)
			pkt->flags |= RNIC_PKT_CHECKSUMS;
	}
	if (!qp->req.cur_off)
		pkt->flags |= RNIC_PKT_FIRST;
	if (len == left) {
		pkt->flags |= RNIC_PKT_LAST | op->flags;
		pkt->imm = w->imm;
		if (w->flags & SF_WQE_SOLICITED)
			pkt->flags |= RNIC_PKT_SOLICITED;
	}
	if (op->atomic) {
		pkt->arg0 = w->arg0;
		pkt->arg1 = w->arg1;
		pkt->npkts = 1;
		pkt->flags |= RNIC_PKT_FIRST | RNIC_PKT_LAST;
	} else if (op->reads && !op->store) {
		pkt->va += qp->req.cur_off;
		pkt->sink = &w->sgl;
		pkt->sink_off = qp->req.cur_off;
	} else {
		pkt->payload = &w->sgl;
		pkt->payload_off = qp->req.cur_off;
	}
}

/* @pkt of WQE cur is out; @last: that was all of it. */
static void sent(struct rnic_requester *req, const struct rnic_packet *pkt,
		 bool last)
{
	req->next_psn = rnic_psn_add(pkt->psn, pkt->npkts);
	if (rnic_psn_diff(req->next_psn, req->sent_psn) > 0)
		req->sent_psn = req->next_psn;
	req->cur_off += pkt->len;
	if (last) {
		req->cur++;
		req->cur_off = 0;
		req->counters.tx_requests++;
	}
	if (pkt->payload)
		req->counters.xmit_bytes += pkt->len;
	req->counters.xmit_packets += pkt->payload ? pkt->npkts : 1;
}

/*
 * Unreliable: nobody tells what comes twice, so nothing is sent twice.  False:
 * one who died had begun with WQE cur.
 */
static bool begin(struct rnic_requester *req)
{
	if (req->cur_off || req->cur_member)
		return true;
	if (req->begun == req->cur)
		return false;
	store_release(&req->begun, req->cur);
	return true;
}

/* Sent, as far as it was: what did not arrive is lost. */
static bool send_rest(struct rnic_call *call, struct rnic_qp *qp,
		      struct wqe *w, bool first)
{
	struct rnic_requester *req = &qp->req;

	req->next_psn = rnic_psn_add(req->next_psn, w->packets);
	if (rnic_psn_diff(req->next_psn, req->sent_psn) > 0)
		req->sent_psn = req->next_psn;
	req->cur++;
	return treat_acked(call, qp, rnic_psn_add(req->next_psn, -1), w, first);
}

/* Sent is done, unless our own memory failed. */
static bool send_unreliable(struct rnic_call *call, struct rnic_qp *qp,
			    struct wqe *w, const struct rnic_packet *pkt)
{
	bool first = una(&qp->req)->index == qp->req.cur;
	struct rnic_packet answer;

	if (unlikely(!begin(&qp->req)))
		return send_rest(call, qp, w, first);
	switch (call->r->links[qp->link]->send(call, qp, pkt, &answer)) {
	case RNIC_LINK_PART:
		qp->req.cur_member = answer.member;
		return true;
	case RNIC_LINK_SENT:
		answer = (struct rnic_packet){
			.op = RNIC_PKT_ACK,
			.psn = rnic_psn_add(pkt->psn, pkt->npkts - 1)};
		break;
	case RNIC_LINK_ANSWERED:
		break;
	}
	qp->req.cur_member = 0;
	sent(&qp->req, pkt, pkt->flags & RNIC_PKT_LAST);
	return treat_answer(call, qp, &answer, w, first);
}

/* Sends the next packet of WQE cur.  False: stop for now. */
static bool send_packet(struct rnic_call *call, struct rnic_qp *qp,
			struct wqe *w)
{
	struct rnic_requester *req = &qp->req;
	const struct rnic_link_ops *link = call->r->links[qp->link];
	struct rnic_packet pkt, answer;
	bool first = una(req)->index == req->cur, last = true;

	if (!req->cur_off)
		req->reads += w->reads;
	if (unlikely(signals(w)) && req->cur_off == w->sgl.total) {
		build_signal(qp, w, &pkt);
	} else {
		build_packet(qp, w, link, &pkt);
		last = pkt.flags & RNIC_PKT_LAST && !signals(w);
	}
	if (unlikely(!rnic_reliable(qp)))
		return send_unreliable(call, qp, w, &pkt);
	sent(req, &pkt, last);
	if (link->send(call, qp, &pkt, &answer) == RNIC_LINK_ANSWERED) {
		if (answer.op == RNIC_PKT_READ_RESPONSE) {
			req->counters.rcv_bytes += pkt.len;
			req->counters.rcv_packets += pkt.npkts;
		} else {
			req->counters.rcv_packets++;
		}
		return treat_answer(call, qp, &answer, w, first);
	}
	if (req->wait == RNIC_WAIT_NONE)
		wait_ack(call, qp);
	return true;
}

/* 0, a syndrome or RNIC_BIND_LATER. */
static uint32_t change_window(struct rnic_call *call, struct rnic_qp *qp,
			      const struct wqe *w)
{
	const struct sf_bind *bind = (const void *)&w->slot.bytes[SF_SLOT_DATA];
	struct rnic_bind what = {
		.key = w->rkey,
		.lkey = w->imm,
		.access = bind->access,
		.addr = w->remote_addr,
		.len = bind->length,
	};

	if (w->opcode == SF_OP_LOCAL_INV)
		return rnic_mw_invalidate(call, qp, w->imm, &qp->req.begun,
					  qp->req.cur);
	return rnic_mw_bind(call, qp, &what, &qp->req.begun, qp->req.cur);
}

/* A WQE without packets waits for all before it, then completes. */
static bool send_nothing(struct rnic_call *call, struct rnic_qp *qp,
			 struct wqe *w)
{
	uint32_t syndrome = 0;

	if (una(&qp->req)->index != qp->req.cur)
		return false;
	if (op_info(w->opcode)->local)
		syndrome = change_window(call, qp, w);
	if (syndrome == RNIC_BIND_LATER) {
		complete_later(call, qp);
		return false;
	}
	if (syndrome) {
		fail(call, qp, SF_ST_MW_BIND_ERR, syndrome);
		return false;
	}
	qp->req.cur++;
	if (complete(call, qp, w))
		return true;
	complete_later(call, qp);
	return false;
}

/* A WQE that cannot be sent fails when all before it are complete. */
static bool send_bad(struct rnic_call *call, struct rnic_qp *qp, struct wqe *w)
{
	if (una(&qp->req)->index == qp->req.cur)
		fail(call, qp, w->status, w->syndrome);
	return false;
}

/* Must WQE cur wait for the answers to others (IBTA vol. 1, 10.8.3.3)? */
static bool held_up(const struct rnic_qp *qp, const struct wqe *w)
{
	const struct rnic_requester *req = &qp->req;

	if (req->cur_off)
		return false;
	return (w->flags & SF_WQE_FENCE && req->reads) ||
	       (w->reads && req->reads >= qp->attr.max_rd_atomic);
}

bool rnic_sq_drained(const struct rnic_qp *qp)
{
	const struct rnic_requester *req = &qp->req;

	return req->una[load_relaxed(&req->una_sel) & 1].index == req->cur &&
	       !req->cur_off && !req->cur_member;
}

bool rnic_sq_idle(const struct rnic_qp *qp)
{
	return rnic_sq_drained(qp) && qp->req.wait == RNIC_WAIT_NONE;
}

static bool may_send(const struct rnic *r, const struct rnic_qp *qp)
{
	uint32_t state = load_acquire(&qp->state);

	/* SQD: what has begun is finished. */
	if (state != RNIC_RTS &&
	    !(state == RNIC_SQD && (qp->req.cur_off || qp->req.cur_member)))
		return false;
	return qp->req.wait == RNIC_WAIT_NONE ||
	       (qp->req.wait == RNIC_WAIT_ACK &&
		in_flight(&qp->req) < r->links[qp->link]->window);
}

/* True: there is more, but others should get a turn first. */
static bool run(struct rnic_call *call, struct rnic_qp *qp)
{
	struct rnic_requester *req = &qp->req;
	uint64_t moved = 0;
	struct wqe w;

	while (may_send(call->r, qp)) {
		if (moved >= RNIC_BURST || rnic_call_crowded(call))
			return true;
		if (!wqe_load(call->r, qp, req->cur, &w))
			break;
		moved += 64 + (w.sgl.total - req->cur_off);
		if (unlikely(w.status)) {
			if (!send_bad(call, qp, &w))
				break;
		} else if (unlikely(!op_info(w.opcode)->packet)) {
			if (!send_nothing(call, qp, &w))
				break;
		} else if (unlikely(held_up(qp, &w)) ||
			   !send_packet(call, qp, &w)) {
			break;
		}
	}
	if (unlikely(load_relaxed(&req->drained) == 1) && rnic_sq_drained(qp) &&
	    load_acquire(&qp->state) == RNIC_SQD) {
		store_release(&req->drained, RNIC_EVENT_SQ_DRAINED | RNIC_DUE);
		rnic_qp_event(call, qp, RNIC_EVENT_SQ_DRAINED);
	}
	if (sq_dead(qp)) {
		if (!flush(call, qp))
			wait_until(call, qp, RNIC_WAIT_ACK, 1000000);
		else
			return rnic_call_crowded(call);
	}
	return false;
}

/* The wait is over if its time has come or its reason has gone. */
static void check_wait(struct rnic_call *call, struct rnic_qp *qp,
		       uint32_t mark)
{
	struct rnic_requester *req = &qp->req;
	struct wqe w;

	if (req->wait == RNIC_WAIT_NONE || sq_dead(qp))
		return;
	if (req->wait == RNIC_WAIT_RNR && mark & RNIC_MARK_RNR_OVER) {
		req->wait = RNIC_WAIT_NONE;
		return;
	}
	if (!req->deadline ||
	    call->r->ops->now(call->r->host) < req->deadline)
		return;
	if (req->wait == RNIC_WAIT_CQE) {
		req->wait = RNIC_WAIT_NONE;
		if (treat_acked(call, qp, rnic_psn_add(req->acked_psn, -1), &w,
				false) &&
		    in_flight(req))
			wait_ack(call, qp);
		return;
	}
	if (req->wait == RNIC_WAIT_ACK) {
		req->counters.local_ack_timeout_err++;
		req->went_back = 0;
		if (!retry(call, qp, SF_SYN_TIMEOUT))
			return;
	}
	req->wait = RNIC_WAIT_NONE;
}

bool rnic_requester_lock(struct rnic *r, struct rnic_qp *qp)
{
	enum rnic_lock_result res = r->ops->lock(r->host, &qp->req.lock);

	if (res == RNIC_LOCK_REPAIR)
		rnic_requester_repair(r, qp);
	return res != RNIC_LOCK_BUSY;
}

void rnic_requester_kick(struct rnic_call *call, struct rnic_qp *qp,
			 uint32_t mark)
{
	struct rnic *r = call->r;
	uint32_t marks = mark;
	bool more;

	do {
		enum rnic_lock_result res =
			r->ops->trylock(r->host, &qp->req.lock);

		if (res == RNIC_LOCK_BUSY) {
			/* The holder looks at the mark after its unlock. */
			__atomic_fetch_or(&qp->req.mark, mark,
					  __ATOMIC_SEQ_CST);
			res = r->ops->trylock(r->host, &qp->req.lock);
			if (res == RNIC_LOCK_BUSY)
				return;
		}
		if (unlikely(res == RNIC_LOCK_REPAIR))
			rnic_requester_repair(r, qp);
		if (load_relaxed(&qp->req.mark))
			marks |= __atomic_exchange_n(&qp->req.mark, 0,
						     __ATOMIC_SEQ_CST);
		more = false;
		if (likely(load_relaxed(&qp->qpn))) {
			if (unlikely(qp->req.wait != RNIC_WAIT_NONE))
				check_wait(call, qp, marks);
			more = run(call, qp);
		}
		r->ops->unlock(r->host, &qp->req.lock);
		rnic_fence_after_unlock();
		if (unlikely(call->events || call->kicks))
			rnic_call_end(call);
		marks = 0;
		more |= load_relaxed(&qp->req.mark) != 0;
		/* Who rings all the time would keep us here for ever. */
		if (more && call->bounded) {
			rnic_timer_soon(r, qp);
			return;
		}
	} while (more);
}

void rnic_requester_receive(struct rnic_call *call, struct rnic_qp *qp,
			    const struct rnic_packet *answer)
{
	struct rnic_requester *req = &qp->req;
	uint32_t state;
	struct wqe w;

	if (!rnic_requester_lock(call->r, qp))
		return; /* as if lost */
	state = load_acquire(&qp->state);
	/* Ghosts: answers to what is answered, or to what was never sent. */
	if ((state == RNIC_RTS || state == RNIC_SQD) &&
	    req->wait != RNIC_WAIT_CQE &&
	    rnic_psn_diff(answer->psn, req->acked_psn) >= 0 &&
	    rnic_psn_diff(answer->psn, answer->op == RNIC_PKT_ACK ?
					       req->sent_psn :
					       req->next_psn) < 0) {
		treat_answer(call, qp, answer, &w, false);
		if (req->wait == RNIC_WAIT_NONE && in_flight(req))
			wait_ack(call, qp);
	}
	call->r->ops->unlock(call->r->host, &qp->req.lock);
	rnic_requester_kick(call, qp, RNIC_MARK_RING);
}

/* ---- life ----------------------------------------------------------- */

void rnic_requester_reset(struct rnic *r, struct rnic_qp *qp, uint64_t start)
{
	struct rnic_requester *req = &qp->req;
	struct sf_send_line *line = send_line(r, qp);

	req->mark = 0;
	req->wait = RNIC_WAIT_NONE;
	req->deadline = 0;
	req->intent.set = 0;
	req->counted.state = RNIC_ATOMIC_NONE;
	req->begun = 0;
	req->fail_status = 0;
	req->failed = 0;
	una_move(req, start, 0);
	go_back(req);
	if (!line)
		return;
	line->status = 0;
	line->syndrome = 0;
	line->failed = SF_LINE_NO_FAILED;
	store_release(&line->word, start);
}

bool rnic_requester_resume(struct rnic *r, struct rnic_qp *qp)
{
	struct rnic_requester *req = &qp->req;
	uint32_t state = RNIC_SQE;
	struct rnic_call call;
	bool done;

	rnic_call_begin(&call, r);
	if (!rnic_requester_lock(r, qp))
		return false;
	/* What was posted until now fails; what is posted from now on runs. */
	done = load_acquire(&qp->state) == RNIC_SQE && flush(&call, qp) &&
	       !rnic_call_crowded(&call);
	if (done) {
		req->failed = 0;
		go_back(req);
		if (send_line(r, qp))
			send_line(r, qp)->failed = SF_LINE_NO_FAILED;
		line_store(r, qp, una(req)->index);
		done = __atomic_compare_exchange_n(&qp->state, &state, RNIC_RTS,
						   false, __ATOMIC_SEQ_CST,
						   __ATOMIC_SEQ_CST);
	}
	r->ops->unlock(r->host, &req->lock);
	rnic_call_end(&call);
	return done;
}

void rnic_requester_start(struct rnic_qp *qp, uint32_t psn)
{
	una_move(&qp->req, una(&qp->req)->index, psn & RNIC_PSN_MASK);
	go_back(&qp->req);
	qp->req.sent_psn = qp->req.next_psn;
	qp->req.best_psn = qp->req.acked_psn;
	qp->req.went_back = 0;
	qp->req.retry_left = qp->attr.retry_cnt;
	qp->req.rnr_left = qp->attr.rnr_retry;
}

/* Before one has failed, all that is complete has succeeded. */
static void line_repair(const struct rnic *r, const struct rnic_qp *qp)
{
	struct sf_send_line *line = send_line(r, qp);
	uint64_t index = qp->req.una[load_relaxed(&qp->req.una_sel) & 1].index;

	if (line && !qp->req.failed)
		store_release(&line->word,
			      index | (line->word & SF_LINE_ERROR));
}

void rnic_requester_repair(struct rnic *r, struct rnic_qp *qp)
{
	struct rnic_requester *req = &qp->req;
	const struct rnic_position at = *una(req);
	struct wqe w;

	if (req->counted.state == RNIC_ATOMIC_BEGUN)
		rnic_atomic_settle(r, &req->counted);
	if (rnic_cq_pushed(r, qp->init.send_cqn, &req->intent)) {
		/* Its WQE is done; perhaps una has moved past it already. */
		if (req->intent_wqe == at.index &&
		    wqe_load(r, qp, at.index, &w))
			una_move(req, at.index + 1,
				 rnic_psn_add(at.psn, w.packets));
		req->fail_status = 0;
	}
	/* It failed, but nobody knows: it is sent again. */
	if (!sq_dead(qp))
		req->fail_status = 0;
	store_release(&req->intent.set, 0);
	line_repair(r, qp);
	go_back(req);
	req->wait = RNIC_WAIT_NONE;
}
