/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The responder: checks a request's PSN and its place in the message, carries
 * it out, answers (IBTA vol. 1, 9.7.4, 9.7.5.1, 9.9.3).
 *
 * A request has no lasting effect before resp.progress moves: what comes again
 * is placed again.  The receive CQE and an atomic are the exceptions:
 * resp.intent and resp.atomic[] cover them.
 */
#include "rnic/internal.h"

/* One request on its way through. */
struct request {
	struct rnic_call *call;
	struct rnic_qp *qp;
	const struct rnic_packet *pkt;
	struct rnic_reply *reply;
	uint32_t pdn; /* of the memory that it may reach */
};

static enum rnic_copy_result answer(struct request *q, uint8_t op,
				    uint8_t syndrome, uint32_t psn)
{
	struct rnic_packet ans = {
		.op = op,
		.syndrome = syndrome,
		.src_qpn = q->qp->qpn,
		.dest_qpn = q->qp->attr.dest_qpn,
		.psn = psn & RNIC_PSN_MASK,
		.msn = q->qp->resp.msn,
	};

	/* A fault of the requester's is his own business, told on the way. */
	if (unlikely(!rnic_reliable(q->qp) && op != RNIC_PKT_LOCAL_FAULT))
		return RNIC_COPY_OK;
	return q->reply->send(q->reply, &ans);
}

static uint32_t last_psn(const struct rnic_packet *pkt)
{
	return rnic_psn_add(pkt->psn, pkt->npkts - 1);
}

static void ack(struct request *q)
{
	answer(q, RNIC_PKT_ACK, RNIC_AETH_ACK, last_psn(q->pkt));
}

/* A NAK after which the QP is in ERR (IBTA vol. 1, table 61). */
static void nak_fatal(struct request *q, uint8_t syndrome, uint32_t event)
{
	if (syndrome == RNIC_AETH_NAK_ACCESS)
		q->qp->resp.counters.resp_remote_access_errors++;
	/* The peer is not told of what may yet not happen. */
	rnic_qp_fail(q->call, q->qp, event);
	answer(q, RNIC_PKT_NAK, syndrome, q->pkt->psn);
}

/* Unreliable: no message is under way, and @psn is the next. */
static void restart(struct rnic_responder *resp, uint32_t psn)
{
	uint64_t sel = (resp->placed_sel & 1) ^ 1;
	uint64_t msn = resp->msn & RNIC_PSN_MASK;

	resp->placed[sel] = 0;
	store_release(&resp->progress, psn | sel << 24 | msn << 32 |
					       (uint64_t)RNIC_PKT_NONE << 56);
}

/* The rest of the message finds none under way: it is dropped, too. */
static void drop(struct request *q)
{
	restart(&q->qp->resp, rnic_psn_add(q->pkt->psn, q->pkt->npkts));
}

static void nak_invalid(struct request *q)
{
	if (!rnic_reliable(q->qp)) {
		drop(q);
		return;
	}
	nak_fatal(q, RNIC_AETH_NAK_INVALID, RNIC_EVENT_QP_REQ_ERR);
}

static void nak_access(struct request *q)
{
	if (!rnic_reliable(q->qp)) {
		drop(q);
		return;
	}
	nak_fatal(q, RNIC_AETH_NAK_ACCESS, RNIC_EVENT_QP_ACCESS_ERR);
}

/* ---- receive queue -------------------------------------------------- */

uint64_t rnic_recv_producer(const struct rnic *r, uint64_t doorbell,
			    uint64_t head)
{
	const struct sf_doorbell *db;

	if (!rnic_in_arena(r, doorbell, sizeof(*db)))
		return head;
	db = rnic_at(r, doorbell);
	return __atomic_load_n(&db->value, __ATOMIC_SEQ_CST);
}

enum rnic_take rnic_recv_peek(const struct rnic *r, struct rnic_responder *resp,
			      const struct rnic_recv_ring *ring)
{
	uint64_t depth = 1ull << ring->log_depth;
	uint64_t stride = 1ull << ring->log_stride;
	uint64_t posted =
		rnic_recv_producer(r, ring->doorbell, ring->head) - ring->head;
	uint64_t off = ring->off + (ring->head & (depth - 1)) * stride;
	const struct sf_rq_desc *desc;
	uint32_t n;

	if (!posted)
		return RNIC_TAKE_EMPTY;
	if (posted > depth || !rnic_in_arena(r, off, stride))
		return RNIC_TAKE_GARBAGE;
	desc = rnic_at(r, off);
	n = desc->n_sge;
	if (sizeof(*desc) + n * sizeof(struct sf_sge) > stride)
		return RNIC_TAKE_GARBAGE;
	resp->rqe_cookie = desc->cookie;
	resp->rqe_nsge = n;
	resp->rqe_index = ring->head;
	memcpy(resp->rqe_sge, desc + 1, n * sizeof(struct sf_sge));
	return RNIC_TAKEN;
}

static bool have_rqe(const struct rnic_responder *resp)
{
	return resp->rq_head != resp->rq_done;
}

/* What rnic_recv_peek() has copied is in hand. */
static enum rnic_take rq_take(const struct rnic *r, struct rnic_qp *qp)
{
	struct rnic_responder *resp = &qp->resp;
	struct rnic_recv_ring ring = {qp->rq, qp->rq_doorbell, resp->rq_head,
				      qp->init.rq_log_depth,
				      qp->init.rq_log_stride};
	enum rnic_take res = rnic_recv_peek(r, resp, &ring);

	if (res)
		return res;
	store_release(&resp->rq_head, resp->rq_head + 1);
	return RNIC_TAKEN;
}

/* It has its CQE. */
static void rqe_done(struct rnic_responder *resp)
{
	store_release(&resp->rq_done, resp->rq_head);
}

static enum rnic_take take_rqe(struct rnic_call *call, struct rnic_qp *qp)
{
	return unlikely(rnic_uses_srq(qp)) ? rnic_srq_take(call, qp) :
					     rq_take(call->r, qp);
}

/* Who posts after this sees the flag and wakes the peer. */
static void wait_rqe(const struct rnic *r, struct rnic_qp *qp)
{
	__atomic_store_n(&qp->resp.rnr_waiter, 1, __ATOMIC_SEQ_CST);
	if (rnic_uses_srq(qp))
		rnic_srq_wait(r, qp);
}

/* XRC: the message says which SRQ it goes to (IBTA vol. 1, annex A14). */
static bool choose_srq(struct request *q)
{
	struct rnic_responder *resp = &q->qp->resp;

	if (resp->srqn == q->pkt->srqn)
		return true;
	if (have_rqe(resp)) { /* of another one */
		nak_invalid(q);
		return false;
	}
	store_release(&resp->srqn, q->pkt->srqn);
	return true;
}

/*
 * A card receives while its host computes; here, sender and receiver may share
 * a CPU.  What is lost only because the receiver's turn has not come is not
 * lost: a QP that has received since gets that long to post the next receive.
 */
#define PATIENCE 50000000ull /* ns */

static __attribute__((noinline)) enum rnic_take wait_for_turn(struct request *q)
{
	const struct rnic *r = q->call->r;
	struct rnic_responder *resp = &q->qp->resp;
	enum rnic_take res = RNIC_TAKE_EMPTY;
	uint64_t end;

	if (!resp->patient || !r->ops->yield || r->bounded)
		return res;
	resp->patient = 0;
	end = r->ops->now(r->host) + PATIENCE;
	while (res == RNIC_TAKE_EMPTY && r->ops->now(r->host) < end) {
		r->ops->yield(r->host);
		res = take_rqe(q->call, q->qp);
	}
	return res;
}

/* The receive that this message goes to; false: answered, if at all. */
static bool need_rqe(struct request *q)
{
	struct rnic_responder *resp = &q->qp->resp;
	enum rnic_take res;

	if (rnic_is_xrc(q->qp) && !choose_srq(q))
		return false;
	if (have_rqe(resp))
		return true;
	res = take_rqe(q->call, q->qp);
	if (unlikely(res == RNIC_TAKE_EMPTY)) {
		if (rnic_reliable(q->qp)) {
			wait_rqe(q->call->r, q->qp);
			res = take_rqe(q->call, q->qp);
			if (res == RNIC_TAKEN)
				store_relaxed(&resp->rnr_waiter, 0);
		} else {
			res = wait_for_turn(q);
		}
	}
	if (likely(res == RNIC_TAKEN)) {
		resp->patient = 1;
		return true;
	}
	if (res == RNIC_TAKE_BUSY)
		return false; /* no answer: the requester comes again */
	if (res == RNIC_TAKE_GARBAGE) {
		nak_fatal(q, RNIC_AETH_NAK_OP, RNIC_EVENT_QP_FATAL);
		return false;
	}
	if (!rnic_reliable(q->qp)) {
		drop(q);
		return false;
	}
	resp->counters.rnr_nak_sent++;
	answer(q, RNIC_PKT_NAK,
	       RNIC_AETH_RNR | (q->qp->attr.min_rnr_timer & 31), q->pkt->psn);
	return false;
}

/* Where receives of an XRC target complete: where those of the SRQ do. */
static uint32_t xrc_cqn(const struct rnic *r, const struct rnic_qp *qp)
{
	const struct rnic_srq *srq = rnic_resp_srq(r, qp);

	return srq ? srq->cqn : 0;
}

/* When it is there, requests have come as far as @progress. */
static enum rnic_push_result recv_cqe(struct rnic_call *call,
				      struct rnic_qp *qp, struct sf_cqe *cqe,
				      uint64_t progress)
{
	uint32_t cqn = qp->init.recv_cqn;

	if (rnic_is_xrc(qp)) {
		cqn = xrc_cqn(call->r, qp);
		cqe->srqn = qp->resp.srqn;
		cqe->word |= (uint64_t)SF_CQE_XRC << SF_CQE_FLAGS_SHIFT;
	}
	qp->resp.intent_progress = progress;
	cqe->wr = qp->resp.rqe_cookie;
	cqe->qpn = qp->qpn;
	if (!rnic_datagrams(qp)) { /* else each says so itself */
		cqe->src_qpn = qp->attr.dest_qpn;
		cqe->slid = qp->attr.av.is_global ? 0 : qp->attr.av.dlid;
		cqe->sl = qp->attr.av.sl;
	}
	cqe->pkey_index = qp->attr.pkey_index;
	return rnic_cq_push(call, cqn, cqe, &qp->resp.intent);
}

/*
 * The receive in hand fails, and the QP is in ERR.  The CQE is made by the
 * flush, so that it is written once whatever happens here.
 */
static void rqe_fail(struct request *q, uint32_t status, uint32_t syndrome,
		     uint8_t nak)
{
	struct rnic_responder *resp = &q->qp->resp;

	resp->fail_status = status;
	resp->fail_syndrome = syndrome;
	resp->counters.resp_cqe_error++;
	if (status == SF_ST_LOC_LEN_ERR)
		resp->counters.resp_local_length_error++;
	/* The CQE tells the owner: no event. */
	nak_fatal(q, nak, RNIC_EVENT_NONE);
}

/* ---- progress ------------------------------------------------------- */

/* Bytes of the message that is arriving. */
static uint64_t placed(const struct rnic_responder *resp)
{
	return resp->placed[resp->placed_sel & 1];
}

/* resp.progress once @pkt is carried out. */
static uint64_t progress_after(struct rnic_responder *resp,
			       const struct rnic_packet *pkt)
{
	bool last = pkt->flags & RNIC_PKT_LAST;
	uint64_t sel = (resp->placed_sel & 1) ^ 1;
	uint64_t msn = (resp->msn + last) & RNIC_PSN_MASK;
	uint64_t op = last ? RNIC_PKT_NONE : pkt->op;

	resp->placed[sel] = last ? 0 : placed(resp) + pkt->len;
	return rnic_psn_add(pkt->psn, pkt->npkts) | sel << 24 | msn << 32 |
	       op << 56;
}

static void advance(struct request *q)
{
	struct rnic_responder *resp = &q->qp->resp;

	resp->nak_sent = 0;
	store_release(&resp->progress, progress_after(resp, q->pkt));
}

/* The message is complete: tell the owner.  False: not now, come again. */
static bool deliver(struct request *q, struct sf_cqe *cqe, uint32_t opcode)
{
	const struct rnic_packet *pkt = q->pkt;
	struct rnic_responder *resp = &q->qp->resp;
	uint32_t flags = sf_cqe_flags(cqe->word);
	enum rnic_push_result res;
	uint64_t progress;

	if (pkt->flags & RNIC_PKT_IMM) {
		flags |= SF_CQE_IMM;
		cqe->imm = pkt->imm;
	}
	if (pkt->flags & RNIC_PKT_INV) {
		flags |= SF_CQE_INV;
		cqe->imm = pkt->imm;
	}
	if (pkt->flags & RNIC_PKT_SOLICITED)
		flags |= SF_CQE_SOLICITED;
	cqe->word = sf_cqe_word(opcode, SF_ST_SUCCESS, flags, 0, 0, 0);
	progress = progress_after(resp, pkt);
	res = recv_cqe(q->call, q->qp, cqe, progress);
	if (unlikely(res == RNIC_PUSH_BUSY))
		return false; /* no answer: the requester comes again */
	if (unlikely(res == RNIC_PUSH_OVERRUN)) {
		nak_fatal(q, RNIC_AETH_NAK_OP, RNIC_EVENT_QP_FATAL);
		return false;
	}
	rqe_done(resp);
	resp->nak_sent = 0;
	store_release(&resp->progress, progress);
	store_release(&resp->intent.set, 0);
	return true;
}

static void finish(struct request *q)
{
	advance(q);
	ack(q);
}

/* ---- SEND ----------------------------------------------------------- */

/* The buffers of the receive in hand; false: one of them is not ours. */
static bool rqe_scatter(struct request *q, struct rnic_sgl *sgl,
			uint64_t needed, uint32_t *syndrome)
{
	const struct rnic_responder *resp = &q->qp->resp;
	uint32_t pdn = rnic_is_xrc(q->qp) ? q->pdn : q->qp->recv_pdn;
	uint32_t i;

	rnic_sgl_init(sgl);
	/* Only what the message reaches is checked (IBTA vol. 1, 10.7.3.2). */
	for (i = 0; i < resp->rqe_nsge && sgl->total < needed; i++) {
		const struct sf_sge *sge = &resp->rqe_sge[i];
		const struct rnic_mr *mr;

		if (!sge->length)
			continue;
		mr = rnic_mr_check(q->call->r, sge->lkey, pdn, sge->addr,
				   sge->length, RNIC_LKEY | RNIC_LOCAL_WRITE,
				   syndrome);
		if (!mr)
			return false;
		rnic_sgl_add(sgl, mr, sge->addr, sge->length);
	}
	return true;
}

static void fault(struct request *q, enum rnic_copy_result res)
{
	if (res == RNIC_FAULT_SRC) {
		/* The requester's own memory: nothing has arrived. */
		answer(q, RNIC_PKT_LOCAL_FAULT, 0, q->pkt->psn);
		return;
	}
	if (q->pkt->op == RNIC_PKT_SEND)
		rqe_fail(q, SF_ST_LOC_PROT_ERR, SF_SYN_FAULT, RNIC_AETH_NAK_OP);
	else if (!rnic_reliable(q->qp))
		drop(q);
	else
		nak_fatal(q, RNIC_AETH_NAK_OP, RNIC_EVENT_QP_FATAL);
}

/* Who polls stores it: only where that is the same as what we would do. */
static bool fits_cqe(const struct request *q, const struct rnic_sgl *to)
{
	uint32_t whole = RNIC_PKT_FIRST | RNIC_PKT_LAST, i;

	if (!q->qp->init.inline_recv || !q->pkt->len ||
	    q->pkt->len > SF_CQE_INLINE_MAX || (q->pkt->flags & whole) != whole)
		return false;
	for (i = 0; i < to->n; i++) {
		const struct rnic_mr *mr = to->v[i].mr;

		if (unlikely(mr->iova != mr->addr ||
			     mr->space != q->qp->init.space ||
			     mr->access & RNIC_ON_DEMAND))
			return false;
	}
	return true;
}

/* False: there is no such window of this QP, and the receive has failed. */
static bool invalidate(struct request *q)
{
	uint32_t syndrome = rnic_mw_remote_invalidate(
		q->call->r, q->qp, q->pkt->imm, last_psn(q->pkt));

	if (syndrome)
		rqe_fail(q, SF_ST_LOC_ACCESS_ERR, syndrome,
			 RNIC_AETH_NAK_ACCESS);
	return !syndrome;
}

static void receive_send(struct request *q)
{
	const struct rnic_packet *pkt = q->pkt;
	struct rnic_responder *resp = &q->qp->resp;
	struct sf_cqe cqe = {0};
	struct rnic_sgl to;
	enum rnic_copy_result res;
	uint64_t offset;
	uint32_t syndrome;

	offset = placed(resp);
	if (!need_rqe(q))
		return;
	if (!rqe_scatter(q, &to, offset + pkt->len, &syndrome)) {
		rqe_fail(q, SF_ST_LOC_PROT_ERR, syndrome, RNIC_AETH_NAK_OP);
		return;
	}
	if (offset + pkt->len > to.total) {
		rqe_fail(q, SF_ST_LOC_LEN_ERR, SF_SYN_LENGTH,
			 RNIC_AETH_NAK_INVALID);
		return;
	}
	if (fits_cqe(q, &to)) {
		rnic_sgl_init(&to);
		rnic_sgl_add(&to, NULL, (uintptr_t)cqe.data, pkt->len);
		cqe.word = sf_cqe_word(0, 0, SF_CQE_INLINE, 0, 0, 0);
	}
	res = rnic_sgl_copy(q->call->r, &to, offset, pkt->payload,
			    pkt->payload_off, pkt->len);
	if (unlikely(res)) {
		fault(q, res);
		return;
	}
	resp->counters.rcv_bytes += pkt->len;
	if (!(pkt->flags & RNIC_PKT_LAST)) {
		finish(q);
		return;
	}
	if (unlikely(pkt->flags & RNIC_PKT_INV) && !invalidate(q))
		return;
	resp->counters.rx_send_requests++;
	cqe.byte_len = offset + pkt->len;
	if (!deliver(q, &cqe, SF_CQE_RECV))
		return;
	resp->inv_key = 0;
	ack(q);
}

/* ---- datagrams (IBTA vol. 1, 9.8.3) ---------------------------------- */

/* Bytes that follow the GRH: BTH, DETH, immediate, payload, pad, ICRC. */
static uint32_t grh_payload(const struct rnic_packet *pkt)
{
	return 12 + 8 + (pkt->flags & RNIC_PKT_IMM ? 4 : 0) +
	       ((pkt->len + 3) & ~3u) + 4;
}

static void put_be16(uint8_t *to, uint32_t v)
{
	to[0] = v >> 8;
	to[1] = v;
}

static bool is_ipv4(const uint8_t gid[16])
{
	static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};

	return !memcmp(gid, prefix, sizeof(prefix));
}

/* RoCE v2 over IPv4: the header is the last 20 bytes of the 40. */
static void build_ipv4(uint8_t grh[RNIC_GRH], const struct rnic_packet *pkt,
		       const uint8_t sgid[16])
{
	uint8_t *ip = grh + 20;
	uint32_t sum = 0, i;

	ip[0] = 0x45;
	ip[1] = pkt->ah->av.traffic_class;
	put_be16(ip + 2, 20 + 8 + grh_payload(pkt));
	put_be16(ip + 6, 0x4000); /* do not fragment */
	ip[8] = pkt->ah->av.hop_limit;
	ip[9] = 17; /* UDP */
	memcpy(ip + 12, sgid + 12, 4);
	memcpy(ip + 16, pkt->ah->av.dgid + 12, 4);
	for (i = 0; i < 20; i += 2)
		sum += (uint32_t)ip[i] << 8 | ip[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	put_be16(ip + 10, ~(sum + (sum >> 16)) & 0xffff);
}

/* The sender's port. */
static const struct rnic_port_info *source_port(const struct rnic *r,
						const struct rnic_ah *ah)
{
	return &r->sh->device[ah->dev % RNIC_MAX_DEVICES]
			.port[(ah->av.port_num - 1u) % RNIC_MAX_PORTS]
			.info;
}

/* What comes before the payload in memory; false: it has no GRH. */
static bool build_grh(const struct rnic *r, const struct rnic_packet *pkt,
		      uint8_t grh[RNIC_GRH])
{
	const struct rnic_av *av = &pkt->ah->av;
	const struct rnic_port_info *port = source_port(r, pkt->ah);
	const uint8_t *sgid = port->gid[av->sgid_index % RNIC_MAX_GIDS];
	bool roce = port->link_layer == RNIC_ETHERNET;

	if (!av->is_global)
		return false;
	memset(grh, 0, RNIC_GRH);
	if (roce && is_ipv4(av->dgid)) {
		build_ipv4(grh, pkt, sgid);
		return true;
	}
	grh[0] = 0x60 | av->traffic_class >> 4;
	grh[1] = av->traffic_class << 4 | (av->flow_label >> 16 & 0xf);
	put_be16(grh + 2, av->flow_label & 0xffff);
	put_be16(grh + 4, grh_payload(pkt) + (roce ? 8 : 0));
	grh[6] = roce ? 17 : 0x1b; /* UDP; IBA transport */
	grh[7] = av->hop_limit;
	memcpy(grh + 8, sgid, 16);
	memcpy(grh + 24, av->dgid, 16);
	return true;
}

static void datagram_cqe(const struct request *q, bool grh, struct sf_cqe *cqe)
{
	const struct rnic_packet *pkt = q->pkt;
	const struct rnic_av *av = &pkt->ah->av;
	const struct rnic_port_info *port = source_port(q->call->r, pkt->ah);

	cqe->src_qpn = pkt->src_qpn;
	cqe->byte_len = RNIC_GRH + pkt->len;
	if (port->link_layer == RNIC_ETHERNET) {
		cqe->sl = is_ipv4(av->dgid) ? SF_CQE_SL_IPV4 : SF_CQE_SL_IPV6;
	} else {
		cqe->sl = av->sl;
		cqe->slid = port->lid | av->src_path_bits;
		cqe->path_bits = av->dlid & ((1u << port->lmc) - 1);
	}
	cqe->word = sf_cqe_word(0, 0, grh ? SF_CQE_GRH : 0, 0, 0, 0);
}

static void frame_cqe(const struct request *q, struct sf_cqe *cqe)
{
	cqe->byte_len = q->pkt->len;
	cqe->imm = q->pkt->imm;
	cqe->word = sf_cqe_word(0, 0,
				rnic_frame_checksums_ok(q->pkt->frame) ?
					SF_CQE_CHECKSUMS_OK :
					0,
				0, 0, 0);
}

/* A wrong Q_Key is a silent drop. */
static bool datagram_wanted(const struct request *q)
{
	const struct rnic_packet *pkt = q->pkt;

	if (pkt->op != RNIC_PKT_SEND)
		return false;
	if (q->qp->init.type != RNIC_QPT_UD)
		return pkt->frame;
	return pkt->ah && pkt->rkey == q->qp->attr.qkey;
}

static void receive_datagram(struct request *q)
{
	const struct rnic_packet *pkt = q->pkt;
	const uint32_t head = pkt->frame ? 0 : RNIC_GRH;
	struct rnic_responder *resp = &q->qp->resp;
	enum rnic_copy_result res = RNIC_COPY_OK;
	uint8_t grh[RNIC_GRH];
	struct sf_cqe cqe = {0};
	struct rnic_sgl to, raw;
	uint32_t syndrome;
	bool has_grh;

	if (!datagram_wanted(q) || !need_rqe(q))
		return;
	if (!rqe_scatter(q, &to, head + pkt->len, &syndrome)) {
		rqe_fail(q, SF_ST_LOC_PROT_ERR, syndrome, RNIC_AETH_NAK_OP);
		return;
	}
	if (head + pkt->len > to.total) {
		rqe_fail(q, SF_ST_LOC_LEN_ERR, SF_SYN_LENGTH,
			 RNIC_AETH_NAK_INVALID);
		return;
	}
	has_grh = head && build_grh(q->call->r, pkt, grh);
	if (has_grh) {
		rnic_sgl_init(&raw);
		rnic_sgl_add(&raw, NULL, (uintptr_t)grh, RNIC_GRH);
		res = rnic_sgl_copy(q->call->r, &to, 0, &raw, 0, RNIC_GRH);
	}
	if (!res)
		res = rnic_sgl_copy(q->call->r, &to, head, pkt->payload,
				    pkt->payload_off, pkt->len);
	if (unlikely(res)) {
		fault(q, res);
		return;
	}
	resp->counters.rcv_bytes += pkt->len;
	resp->counters.rx_send_requests++;
	if (pkt->frame)
		frame_cqe(q, &cqe);
	else
		datagram_cqe(q, has_grh, &cqe);
	deliver(q, &cqe, SF_CQE_RECV);
}

/* ---- RDMA ----------------------------------------------------------- */

static const struct rnic_mr *remote_mr(struct request *q, uint64_t va,
				       uint64_t len, uint32_t access)
{
	const struct rnic_mr *mr;
	uint32_t syndrome;

	if (!(q->qp->attr.access & access))
		return NULL;
	mr = rnic_mr_check(q->call->r, q->pkt->rkey, q->pdn, va, len, access,
			   &syndrome);
	/* A window of type 2 is open to one QP. */
	if (mr && unlikely(mr->qpn && mr->qpn != q->qp->qpn))
		return NULL;
	return mr;
}

static void receive_write(struct request *q)
{
	const struct rnic_packet *pkt = q->pkt;
	struct rnic_responder *resp = &q->qp->resp;
	struct sf_cqe cqe = {0};
	const struct rnic_mr *mr = NULL;
	struct rnic_sgl to;
	enum rnic_copy_result res;
	uint64_t offset;

	if (pkt->flags & RNIC_PKT_FIRST) {
		resp->write_va = pkt->va;
		resp->write_len = pkt->dma_len;
		resp->write_rkey = pkt->rkey;
		/* All of the message, before its first byte is placed. */
		if (pkt->dma_len &&
		    !remote_mr(q, pkt->va, pkt->dma_len, RNIC_REMOTE_WRITE)) {
			nak_access(q);
			return;
		}
	}
	offset = placed(resp);
	if (offset + pkt->len > resp->write_len ||
	    (pkt->flags & RNIC_PKT_LAST &&
	     offset + pkt->len != resp->write_len)) {
		nak_invalid(q);
		return;
	}
	if (pkt->flags & RNIC_PKT_IMM && !need_rqe(q))
		return;
	rnic_sgl_init(&to);
	if (pkt->len) {
		mr = remote_mr(q, resp->write_va + offset, pkt->len,
			       RNIC_REMOTE_WRITE);
		if (!mr) { /* deregistered meanwhile */
			nak_access(q);
			return;
		}
		rnic_sgl_add(&to, mr, resp->write_va + offset, pkt->len);
	}
	res = rnic_sgl_copy(q->call->r, &to, 0, pkt->payload, pkt->payload_off,
			    pkt->len);
	if (unlikely(res)) {
		fault(q, res);
		return;
	}
	resp->counters.rcv_bytes += pkt->len;
	if (pkt->flags & RNIC_PKT_LAST)
		resp->counters.rx_write_requests++;
	if (!(pkt->flags & RNIC_PKT_IMM)) {
		finish(q);
		return;
	}
	cqe.byte_len = resp->write_len;
	if (deliver(q, &cqe, SF_CQE_RECV_RDMA_IMM))
		ack(q);
}

static void receive_read(struct request *q, bool again)
{
	const struct rnic_packet *pkt = q->pkt;
	struct rnic_responder *resp = &q->qp->resp;
	const struct rnic_mr *mr = NULL;
	struct rnic_sgl from;
	enum rnic_copy_result res;
	struct rnic_packet ans;

	if (!q->qp->attr.max_dest_rd_atomic) {
		nak_invalid(q);
		return;
	}
	if (pkt->len) {
		mr = remote_mr(q, pkt->va, pkt->len, RNIC_REMOTE_READ);
		if (!mr) {
			nak_access(q);
			return;
		}
	}
	rnic_sgl_init(&from);
	if (mr)
		rnic_sgl_add(&from, mr, pkt->va, pkt->len);
	if (!again) {
		resp->counters.rx_read_requests +=
			!!(pkt->flags & RNIC_PKT_LAST);
		advance(q);
	}
	ans = (struct rnic_packet){
		.op = RNIC_PKT_READ_RESPONSE,
		.syndrome = RNIC_AETH_ACK,
		.src_qpn = q->qp->qpn,
		.dest_qpn = q->qp->attr.dest_qpn,
		.psn = pkt->psn,
		.npkts = pkt->npkts,
		.msn = resp->msn,
		.len = pkt->len,
		.payload = &from,
	};
	res = q->reply->send(q->reply, &ans);
	if (res == RNIC_FAULT_SRC) { /* source of an answer: our memory */
		nak_fatal(q, RNIC_AETH_NAK_OP, RNIC_EVENT_QP_FATAL);
	} else if (res == RNIC_FAULT_DST) {
		answer(q, RNIC_PKT_LOCAL_FAULT, 0, pkt->psn);
	} else {
		resp->counters.xmit_bytes += pkt->len;
		/* One was counted at its arrival. */
		resp->counters.xmit_packets += pkt->npkts - 1;
	}
}

static void answer_atomic(struct request *q, uint64_t value)
{
	struct rnic_packet ans = {
		.op = RNIC_PKT_ATOMIC_RESPONSE,
		.syndrome = RNIC_AETH_ACK,
		.src_qpn = q->qp->qpn,
		.dest_qpn = q->qp->attr.dest_qpn,
		.psn = q->pkt->psn,
		.npkts = 1,
		.msn = q->qp->resp.msn,
		.len = 8,
		.arg0 = value,
	};

	q->reply->send(q->reply, &ans);
}

/* Those that are done once, and whose result is kept. */
static bool is_atomic(uint8_t op)
{
	return op == RNIC_PKT_CAS || op == RNIC_PKT_FADD ||
	       op == RNIC_PKT_ATOMIC_WRITE;
}

static enum rnic_copy_result do_atomic(struct request *q,
				       const struct rnic_mr *mr,
				       struct rnic_atomic_slot *slot)
{
	const struct rnic_packet *pkt = q->pkt;
	enum rnic_atomic_op op = pkt->op == RNIC_PKT_CAS ? RNIC_CAS : RNIC_FADD;
	enum rnic_copy_result res;
	struct rnic_sgl raw;
	uint64_t value;

	if (pkt->op != RNIC_PKT_ATOMIC_WRITE)
		return rnic_atomic(q->call->r, mr, pkt->va, op, pkt->arg0,
				   pkt->arg1, slot);
	rnic_sgl_init(&raw);
	rnic_sgl_add(&raw, NULL, (uintptr_t)&value, sizeof(value));
	res = rnic_sgl_copy(q->call->r, &raw, 0, pkt->payload, pkt->payload_off,
			    sizeof(value));
	return res ? RNIC_FAULT_SRC :
		     rnic_atomic(q->call->r, mr, pkt->va, RNIC_SWAP, value, 0,
				 slot);
}

static void receive_atomic(struct request *q)
{
	const struct rnic_packet *pkt = q->pkt;
	struct rnic_responder *resp = &q->qp->resp;
	bool write = pkt->op == RNIC_PKT_ATOMIC_WRITE;
	struct rnic_atomic_slot *slot;
	enum rnic_copy_result res;
	const struct rnic_mr *mr;

	/* IBTA vol. 1, 9.4.5: the address is a multiple of 8. */
	if (pkt->va & 7 || !q->qp->attr.max_dest_rd_atomic ||
	    (write && pkt->len != 8)) {
		nak_invalid(q);
		return;
	}
	mr = remote_mr(q, pkt->va, 8,
		       write ? RNIC_REMOTE_WRITE : RNIC_REMOTE_ATOMIC);
	if (!mr) {
		nak_access(q);
		return;
	}
	slot = &resp->atomic[resp->atomics % RNIC_MAX_RD_ATOMIC];
	store_release(&slot->state, RNIC_ATOMIC_NONE);
	slot->psn = pkt->psn;
	res = do_atomic(q, mr, slot);
	if (res == RNIC_COPY_BUSY)
		return; /* no answer: the requester comes again */
	if (res == RNIC_FAULT_SRC) {
		answer(q, RNIC_PKT_LOCAL_FAULT, 0, pkt->psn);
		return;
	}
	if (res) {
		nak_fatal(q, RNIC_AETH_NAK_OP, RNIC_EVENT_QP_FATAL);
		return;
	}
	if (write)
		resp->counters.rx_write_requests++;
	else
		resp->counters.rx_atomic_requests++;
	advance(q);
	resp->atomics++;
	answer_atomic(q, slot->value);
}

/* ---- sequence (IBTA vol. 1, 9.7.4.1) -------------------------------- */

static const struct rnic_atomic_slot *find_atomic(const struct rnic_qp *qp,
						  uint32_t psn)
{
	uint32_t i;

	for (i = 0; i < RNIC_MAX_RD_ATOMIC; i++) {
		const struct rnic_atomic_slot *slot = &qp->resp.atomic[i];

		if (slot->state == RNIC_ATOMIC_DONE && slot->psn == psn)
			return slot;
	}
	return NULL;
}

/* What was carried out already is not carried out again. */
static void duplicate(struct request *q)
{
	struct rnic_responder *resp = &q->qp->resp;
	const struct rnic_atomic_slot *slot;

	resp->counters.duplicate_request++;
	switch (q->pkt->op) {
	case RNIC_PKT_READ:
		receive_read(q, true);
		break;
	case RNIC_PKT_CAS:
	case RNIC_PKT_FADD:
	case RNIC_PKT_ATOMIC_WRITE:
		slot = find_atomic(q->qp, q->pkt->psn);
		if (slot)
			answer_atomic(q, slot->value);
		break;
	default:
		answer(q, RNIC_PKT_ACK, RNIC_AETH_ACK,
		       rnic_psn_add(resp->epsn, -1));
	}
}

/* Does the packet go on where the message stands? */
static bool in_order(const struct rnic_responder *resp,
		     const struct rnic_packet *pkt)
{
	if (pkt->op == RNIC_PKT_READ || is_atomic(pkt->op))
		return resp->in_message == RNIC_PKT_NONE ||
		       resp->in_message == pkt->op;
	if (pkt->flags & RNIC_PKT_FIRST)
		return resp->in_message == RNIC_PKT_NONE;
	return resp->in_message == pkt->op;
}

static void expected(struct request *q)
{
	if (!in_order(&q->qp->resp, q->pkt)) {
		nak_invalid(q);
		return;
	}
	switch (q->pkt->op) {
	case RNIC_PKT_SEND:
		receive_send(q);
		break;
	case RNIC_PKT_WRITE:
		receive_write(q);
		break;
	case RNIC_PKT_READ:
		receive_read(q, false);
		break;
	case RNIC_PKT_CAS:
	case RNIC_PKT_FADD:
	case RNIC_PKT_ATOMIC_WRITE:
		receive_atomic(q);
		break;
	default:
		nak_invalid(q);
	}
}

/*
 * A gap ends the message: what is left of it is dropped, and the next first
 * packet begins another one (IBTA vol. 1, 9.8.2.2).
 */
static void receive_unreliable(struct request *q)
{
	struct rnic_responder *resp = &q->qp->resp;
	const struct rnic_packet *pkt = q->pkt;

	if (pkt->flags & RNIC_PKT_FIRST) {
		if (pkt->psn != resp->epsn || resp->in_message)
			restart(resp, pkt->psn);
	} else if (pkt->psn != resp->epsn || resp->in_message != pkt->op) {
		resp->counters.out_of_sequence++;
		drop(q);
		return;
	}
	if (pkt->op == RNIC_PKT_SEND)
		receive_send(q);
	else if (pkt->op == RNIC_PKT_WRITE)
		receive_write(q);
}

/*
 * XRC: each request names an SRQ, of the target's domain, and acts on memory of
 * that SRQ's protection domain (IBTA vol. 1, annex A14).
 */
static bool take_xrceth(struct request *q)
{
	const struct rnic_srq *srq = rnic_srq_get(q->call->r, q->pkt->srqn);

	if (!srq || !srq->domain || srq->domain != q->qp->domain)
		return false;
	q->pdn = srq->pdn;
	return true;
}

/* The first message that comes before RTS (IBTA vol. 1, 11.6.3.1). */
static void comm_est(struct rnic_call *call, struct rnic_qp *qp)
{
	if (qp->comm_est || rnic_datagrams(qp))
		return;
	store_release(&qp->comm_est, RNIC_EVENT_COMM_EST | RNIC_DUE);
	rnic_qp_event(call, qp, RNIC_EVENT_COMM_EST);
}

static bool may_receive(uint32_t state)
{
	return state >= RNIC_RTR && state <= RNIC_SQE;
}

void rnic_responder_receive(struct rnic_call *call, struct rnic_qp *qp,
			    const struct rnic_packet *pkt,
			    struct rnic_reply *reply)
{
	struct request q = {call, qp, pkt, reply, qp->init.pdn};
	struct rnic_responder *resp = &qp->resp;
	uint32_t state = load_acquire(&qp->state);
	int32_t ahead;

	if (!may_receive(state) || !pkt->npkts)
		return;
	if (rnic_datagrams(qp)) {
		resp->counters.rcv_packets++;
		receive_datagram(&q);
		return;
	}
	if (pkt->src_qpn != qp->attr.dest_qpn ||
	    (pkt->flags & RNIC_PKT_TRANSPORT) != rnic_transport(qp) ||
	    unlikely(qp->init.type == RNIC_QPT_XRC_SEND))
		return;
	resp->counters.rcv_packets += pkt->payload ? pkt->npkts : 1;
	if (unlikely(state == RNIC_RTR))
		comm_est(call, qp);
	if (unlikely(!rnic_reliable(qp))) {
		receive_unreliable(&q);
		return;
	}
	resp->counters.xmit_packets++;
	ahead = rnic_psn_diff(pkt->psn, resp->epsn);
	if (rnic_is_xrc(qp) && !take_xrceth(&q)) {
		if (!ahead)
			nak_invalid(&q);
		return;
	}
	if (likely(!ahead)) {
		expected(&q);
	} else if (ahead < 0) {
		duplicate(&q);
	} else if (!resp->nak_sent) {
		resp->nak_sent = 1;
		resp->counters.out_of_sequence++;
		answer(&q, RNIC_PKT_NAK, RNIC_AETH_NAK_PSN, resp->epsn);
	}
}

/* ---- flushing, locks, life ------------------------------------------ */

/* False: CQ busy. */
static bool flush_rqe(struct rnic_call *call, struct rnic_qp *qp)
{
	struct rnic_responder *resp = &qp->resp;
	uint32_t status = SF_ST_WR_FLUSH_ERR, syndrome = SF_SYN_QP_STATE;
	struct sf_cqe cqe = {0};

	if (resp->fail_status) {
		status = resp->fail_status;
		syndrome = resp->fail_syndrome;
	} else {
		resp->counters.resp_cqe_flush_error++;
	}
	cqe.word = sf_cqe_word(SF_CQE_RECV, status, 0, syndrome, 0, 0);
	if (recv_cqe(call, qp, &cqe, resp->progress) == RNIC_PUSH_BUSY)
		return false;
	resp->fail_status = 0;
	rqe_done(resp);
	store_release(&resp->intent.set, 0);
	return true;
}

/* This QP takes no more from its SRQ (IBTA vol. 1, 11.6.3.1). */
static void last_wqe_reached(struct rnic_call *call, struct rnic_qp *qp)
{
	if (qp->resp.last_wqe)
		return;
	store_release(&qp->resp.last_wqe,
		      RNIC_EVENT_QP_LAST_WQE_REACHED | RNIC_DUE);
	rnic_qp_event(call, qp, RNIC_EVENT_QP_LAST_WQE_REACHED);
}

/* True: there is more. */
static bool flush(struct rnic_call *call, struct rnic_qp *qp)
{
	for (;;) {
		if (rnic_call_crowded(call))
			return true;
		if (!have_rqe(&qp->resp)) {
			if (rnic_uses_srq(qp)) {
				last_wqe_reached(call, qp);
				return false;
			}
			if (rnic_is_xrc(qp))
				return false; /* it receives nothing */
			if (rq_take(call->r, qp) != RNIC_TAKEN)
				return false;
		}
		if (!flush_rqe(call, qp)) {
			/* The requester's timer brings us here again. */
			rnic_timer_arm(call->r, qp,
				       call->r->ops->now(call->r->host) +
					       1000000);
			return false;
		}
	}
}

bool rnic_responder_lock(struct rnic *r, struct rnic_qp *qp)
{
	enum rnic_lock_result res = r->ops->lock(r->host, &qp->resp.lock);

	if (unlikely(res == RNIC_LOCK_REPAIR))
		rnic_responder_repair(r, qp);
	return res != RNIC_LOCK_BUSY;
}

void rnic_responder_unlock(struct rnic_call *call, struct rnic_qp *qp)
{
	call->r->ops->unlock(call->r->host, &qp->resp.lock);
	rnic_fence_after_unlock();
	if (unlikely(load_relaxed(&qp->resp.mark)))
		rnic_call_flush_qp(call, qp);
}

void rnic_responder_kick(struct rnic_call *call, struct rnic_qp *qp)
{
	struct rnic *r = call->r;
	bool more;

	do {
		enum rnic_lock_result res =
			r->ops->trylock(r->host, &qp->resp.lock);

		if (res == RNIC_LOCK_BUSY) {
			__atomic_store_n(&qp->resp.mark, 1, __ATOMIC_SEQ_CST);
			res = r->ops->trylock(r->host, &qp->resp.lock);
			if (res == RNIC_LOCK_BUSY)
				return;
		}
		if (res == RNIC_LOCK_REPAIR)
			rnic_responder_repair(r, qp);
		__atomic_store_n(&qp->resp.mark, 0, __ATOMIC_SEQ_CST);
		more = load_relaxed(&qp->qpn) &&
		       load_acquire(&qp->state) == RNIC_ERR && flush(call, qp);
		r->ops->unlock(r->host, &qp->resp.lock);
		rnic_fence_after_unlock();
		if (call->events || call->kicks)
			rnic_call_end(call);
	} while (more || load_relaxed(&qp->resp.mark));
}

void rnic_responder_reset(struct rnic *r, struct rnic_qp *qp)
{
	struct rnic_responder *resp = &qp->resp;
	uint32_t i;

	resp->mark = 0;
	resp->intent.set = 0;
	resp->fail_status = 0;
	resp->progress = 0;
	resp->placed[0] = 0;
	resp->rnr_waiter = 0;
	resp->nak_sent = 0;
	resp->last_wqe = 0;
	resp->inv_key = 0;
	for (i = 0; i < RNIC_MAX_RD_ATOMIC; i++)
		resp->atomic[i].state = RNIC_ATOMIC_NONE;
	resp->rq_head = rnic_recv_producer(r, qp->rq_doorbell, resp->rq_head);
	resp->rq_done = resp->rq_head;
}

void rnic_responder_start(struct rnic_qp *qp, uint32_t psn)
{
	qp->resp.progress = psn & RNIC_PSN_MASK;
	qp->resp.placed[0] = 0;
}

void rnic_responder_repair(struct rnic *r, struct rnic_qp *qp)
{
	struct rnic_responder *resp = &qp->resp;
	const struct rnic_atomic_slot *slot;
	struct rnic_packet atomic = {
		.psn = resp->epsn,
		.npkts = 1,
		.flags = RNIC_PKT_LAST,
	};

	if (resp->srqn)
		rnic_srq_pass(r, resp->srqn); /* before rq_done moves */
	if (rnic_cq_pushed(r,
			   rnic_is_xrc(qp) ? xrc_cqn(r, qp) : qp->init.recv_cqn,
			   &resp->intent)) {
		resp->fail_status = 0;
		rqe_done(resp);
		store_release(&resp->progress, resp->intent_progress);
	}
	/* The receive in hand failed, but nobody knows: it comes again. */
	if (load_acquire(&qp->state) != RNIC_ERR)
		resp->fail_status = 0;
	store_release(&resp->intent.set, 0);
	slot = &resp->atomic[resp->atomics % RNIC_MAX_RD_ATOMIC];
	if (slot->state == RNIC_ATOMIC_BEGUN)
		rnic_atomic_settle(r, slot);
	if (slot->state != RNIC_ATOMIC_DONE)
		return;
	/* Done, then noted by one or both of these. */
	if (slot->psn == resp->epsn)
		store_release(&resp->progress, progress_after(resp, &atomic));
	if (rnic_psn_add(slot->psn, 1) == resp->epsn)
		resp->atomics++;
}
