// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Links that lose, repeat, delay and reorder.  One answers at once or never;
 * the other is a wire: packets of one MTU, serialised, answers come later.
 */
#include "rnic_fixture.h"

/* ---- a wire --------------------------------------------------------- */

#define WIRE_WINDOW 4
#define WIRE_QUEUE 64

struct wire_packet {
	struct rnic_packet pkt;
	uint8_t bytes[4096];
};

struct wire_queue {
	struct wire_packet p[WIRE_QUEUE];
	uint32_t n;
};

struct rig {
	struct fx fx;
	struct fx_end a, b;
	struct fx_mr am, bm;
	uint64_t first;
	struct wire_queue to_b, to_a;
	uint32_t sent; /* requests that the wire was given */
	uint32_t seed;
};

static struct rig *rig; /* links have no argument for it */

/* Copies what a packet only refers to: afterwards it stands alone. */
static bool wire_put(struct wire_queue *q, const struct rnic_packet *pkt)
{
	struct wire_packet *w = &q->p[q->n];
	struct rnic_sgl raw;

	assert_true(q->n < WIRE_QUEUE);
	w->pkt = *pkt;
	w->pkt.sink = NULL;
	w->pkt.payload = NULL;
	w->pkt.payload_off = 0;
	if (pkt->payload) {
		assert_true(pkt->len <= sizeof(w->bytes));
		rnic_sgl_init(&raw);
		rnic_sgl_add(&raw, NULL, (uintptr_t)w->bytes, pkt->len);
		if (rnic_sgl_copy(rig->fx.r, &raw, 0, pkt->payload,
				  pkt->payload_off, pkt->len))
			return false;
	}
	q->n++;
	return true;
}

static struct wire_packet wire_take(struct wire_queue *q, uint32_t i)
{
	struct wire_packet w = q->p[i];

	assert_true(i < q->n);
	memmove(&q->p[i], &q->p[i + 1], (q->n - i - 1) * sizeof(q->p[0]));
	q->n--;
	return w;
}

static void wire_drop(struct wire_queue *q, uint32_t i)
{
	(void)wire_take(q, i);
}

static void wire_repeat(struct wire_queue *q, uint32_t i)
{
	assert_true(q->n < WIRE_QUEUE);
	memmove(&q->p[i + 1], &q->p[i], (q->n - i) * sizeof(q->p[0]));
	q->n++;
}

static enum rnic_link_result wire_send(struct rnic_call *call,
				       struct rnic_qp *qp,
				       const struct rnic_packet *pkt,
				       struct rnic_packet *answer)
{
	(void)call;
	(void)qp;
	(void)answer;
	rig->sent++;
	assert_true(wire_put(&rig->to_b, pkt));
	return RNIC_LINK_SENT;
}

static const struct rnic_link_ops wire = {
	.burst = 0,
	.window = WIRE_WINDOW,
	.send = wire_send,
};

static enum rnic_copy_result wire_reply(struct rnic_reply *reply,
					const struct rnic_packet *answer)
{
	(void)reply;
	return wire_put(&rig->to_a, answer) ? RNIC_COPY_OK : RNIC_FAULT_SRC;
}

/* The payload of a packet that came off the wire. */
static void wire_payload(struct wire_packet *w, struct rnic_sgl *raw)
{
	rnic_sgl_init(raw);
	rnic_sgl_add(raw, NULL, (uintptr_t)w->bytes, w->pkt.len);
	w->pkt.payload = raw;
}

static bool has_payload(const struct rnic_packet *pkt)
{
	return pkt->op == RNIC_PKT_SEND || pkt->op == RNIC_PKT_WRITE ||
	       pkt->op == RNIC_PKT_READ_RESPONSE;
}

/* Request number @i of those under way reaches b. */
static void request_arrives(uint32_t i)
{
	struct wire_packet w = wire_take(&rig->to_b, i);
	struct rnic_reply reply = {.send = wire_reply};
	struct rnic_qp *qp = rnic_qp_get(rig->b.r, w.pkt.dest_qpn);
	struct rnic_call call;
	struct rnic_sgl raw;

	if (!qp)
		return;
	if (has_payload(&w.pkt))
		wire_payload(&w, &raw);
	rnic_call_begin(&call, rig->b.r);
	assert_true(rnic_responder_lock(rig->b.r, qp));
	rnic_responder_receive(&call, qp, &w.pkt, &reply);
	rnic_responder_unlock(&call, qp);
	rnic_call_end(&call);
}

/* Answer number @i of those under way reaches a. */
static void answer_arrives(uint32_t i)
{
	struct wire_packet w = wire_take(&rig->to_a, i);
	struct rnic_qp *qp = rnic_qp_get(rig->a.r, w.pkt.dest_qpn);
	struct rnic_call call;
	struct rnic_sgl raw;

	if (!qp)
		return;
	if (has_payload(&w.pkt))
		wire_payload(&w, &raw);
	rnic_call_begin(&call, rig->a.r);
	rnic_requester_receive(&call, qp, &w.pkt);
	rnic_call_end(&call);
}

/* Everything arrives until nothing is under way. */
static void wire_settle(void)
{
	uint32_t i;

	for (i = 0; i < 20000 && rig->to_a.n + rig->to_b.n; i++)
		if (rig->to_b.n)
			request_arrives(0);
		else
			answer_arrives(0);
	assert_true(i < 20000);
}

/* ---- a link that answers at once, or not ---------------------------- */

static uint32_t dice(uint32_t sides)
{
	rig->seed = rig->seed * 1664525u + 1013904223u;
	return (rig->seed >> 16) % sides;
}

static enum rnic_link_result moody_send(struct rnic_call *call,
					struct rnic_qp *qp,
					const struct rnic_packet *pkt,
					struct rnic_packet *answer)
{
	struct rnic_packet ignored;

	rig->sent++;
	switch (dice(8)) {
	case 0: /* the request is lost */
		return RNIC_LINK_SENT;
	case 1: /* the answer is lost */
		(void)rnic_link_direct.send(call, qp, pkt, &ignored);
		return RNIC_LINK_SENT;
	case 2: /* it comes twice; the first answer counts */
		if (rnic_link_direct.send(call, qp, pkt, answer))
			return RNIC_LINK_SENT;
		(void)rnic_link_direct.send(call, qp, pkt, &ignored);
		return RNIC_LINK_ANSWERED;
	case 3: /* ... or the second */
		(void)rnic_link_direct.send(call, qp, pkt, &ignored);
		return rnic_link_direct.send(call, qp, pkt, answer);
	default:
		return rnic_link_direct.send(call, qp, pkt, answer);
	}
}

static const struct rnic_link_ops moody = {
	.burst = 4096,
	.window = 1,
	.send = moody_send,
};

/* ---- set-up --------------------------------------------------------- */

static void rig_open(const struct rnic_link_ops *link)
{
	struct fx_opts o = fx_defaults;

	o.cq_log_depth = 8;
	o.sq_log_depth = 6;
	fx_open(&rig->fx, RNIC_INFINIBAND);
	fx_pair(&rig->fx, &rig->a, &rig->b, &o);
	rig->fx.r->links[RNIC_LINK_WIRE] = link;
	fx_qp(&rig->a)->link = RNIC_LINK_WIRE;
	rig->am = fx_mr(&rig->a, 1 << 20, FX_ALL_ACCESS);
	rig->bm = fx_mr(&rig->b, 1 << 20, FX_ALL_ACCESS);
	rig->first = rig->a.sq_next;
	rig->to_a.n = rig->to_b.n = 0;
	rig->sent = 0;
	rig->seed = 1;
}

static int setup_wire(void **state)
{
	static struct rig g;

	rig = &g;
	rig_open(&wire);
	*state = rig;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	fx_close(&rig->fx);
	return 0;
}

static struct fx_wr request(uint32_t opcode, uint32_t len)
{
	struct fx_wr wr = {
		.opcode = opcode,
		.flags = SF_WQE_SIGNALED,
		.remote_addr = rig->bm.addr,
		.rkey = rig->bm.key,
		.n_sge = opcode == SF_OP_NOP ? 0 : 1,
		.arg0 = 1,
	};

	wr.sge[0] = fx_sge(&rig->am, 0, len);
	return wr;
}

static uint64_t submit(uint32_t opcode, uint32_t len)
{
	struct fx_wr wr = request(opcode, len);

	return fx_send(&rig->a, &wr);
}

static void expect_done(uint32_t opcode, uint64_t index)
{
	expect_ok(&rig->a.scq, opcode, index);
}

static uint64_t *word(const struct fx_mr *mr, uint64_t off)
{
	return (uint64_t *)(mr->ptr + off);
}

/* ---- answers at once, or never -------------------------------------- */

/*
 * Many requests, each of which must have its effect once: a counter that is
 * incremented, a message that arrives once and in order, bytes that are right.
 */
static void post_mix(uint32_t i)
{
	struct fx_wr wr = request(SF_OP_ATOMIC_FADD, 8);

	switch (i % 5) {
	case 0:
		break;
	case 1:
		wr = request(SF_OP_SEND, 3000);
		wr.sge[0] = fx_sge(&rig->am, 8192, 3000);
		fx_recv_mr(&rig->b, i, &rig->bm, 8192, 4096);
		break;
	case 2:
		wr = request(SF_OP_WRITE_IMM, 10000);
		wr.imm = i;
		wr.sge[0] = fx_sge(&rig->am, 16384, 10000);
		wr.remote_addr += 16384;
		fx_recv_mr(&rig->b, i, &rig->bm, 0, 0);
		break;
	case 3:
		wr = request(SF_OP_READ, 9000);
		wr.sge[0] = fx_sge(&rig->am, 65536, 9000);
		wr.remote_addr += 65536;
		break;
	default:
		wr = request(SF_OP_NOP, 0);
	}
	fx_post(&rig->a, &wr);
}

static void check_mix(uint32_t i)
{
	static const uint8_t ops[] = {SF_OP_ATOMIC_FADD, SF_OP_SEND,
				      SF_OP_WRITE_IMM, SF_OP_READ, SF_OP_NOP};
	struct sf_cqe cqe;

	expect_done(ops[i % 5], rig->first + i);
	switch (i % 5) {
	case 0:
		assert_int_equal(*word(&rig->am, 0), i / 5);
		break;
	case 1:
	case 2:
		assert_true(fx_poll(&rig->b.rcq, &cqe));
		assert_int_equal(cqe.wr, i);
		assert_int_equal(cqe.byte_len, i % 5 == 1 ? 3000 : 10000);
		assert_memory_equal(rig->bm.ptr + 8192, rig->am.ptr + 8192,
				    i % 5 == 1 ? 3000 : 0);
		assert_memory_equal(rig->bm.ptr + 16384, rig->am.ptr + 16384,
				    i % 5 == 2 ? 10000 : 0);
		break;
	case 3:
		assert_memory_equal(rig->bm.ptr + 65536, rig->am.ptr + 65536,
				    9000);
	}
}

static void new_bytes(uint32_t i)
{
	fx_fill(rig->am.ptr + 8192, 32768, i);
	fx_fill(rig->bm.ptr + 65536, 9000, i + 1);
	memset(rig->am.ptr + 65536, 0, 9000);
}

static void lost_and_repeated_packets_change_nothing(void **state)
{
	uint32_t seed, i;

	(void)state;
	for (seed = 1; seed < 12; seed++) {
		fx_close(&rig->fx);
		rig_open(&moody);
		rig->seed = seed;
		for (i = 0; i < 100; i++) {
			new_bytes(i);
			post_mix(i);
			rnic_sq_ring(rig->a.r, rig->a.qpn);
			fx_settle(&rig->fx);
			check_mix(i);
		}
		assert_int_equal(*word(&rig->bm, 0), 20);
		assert_true(fx_qp(&rig->b)->resp.counters.duplicate_request);
		expect_no_cqe(&rig->b.rcq);
		expect_no_cqe(&rig->a.scq);
		assert_int_equal(fx_qp(&rig->b)->resp.msn, 80);
	}
}

/* ---- the wire ------------------------------------------------------- */

static void wire_that_loses_nothing_carries_every_opcode(void **state)
{
	uint32_t i;

	(void)state;
	for (i = 0; i < 100; i++) {
		new_bytes(i);
		post_mix(i);
		rnic_sq_ring(rig->a.r, rig->a.qpn);
		wire_settle();
		check_mix(i);
	}
	assert_int_equal(*word(&rig->bm, 0), 20);
	assert_int_equal(fx_qp(&rig->b)->resp.counters.duplicate_request, 0);
}

static void no_more_packets_are_under_way_than_the_window_allows(void **state)
{
	(void)state;
	submit(SF_OP_WRITE, 20000);
	assert_int_equal(rig->to_b.n, WIRE_WINDOW);
	request_arrives(0);
	assert_int_equal(rig->to_b.n, WIRE_WINDOW - 1);
	wire_settle();
	expect_done(SF_OP_WRITE, rig->first);
	assert_int_equal(rig->sent, 20);
}

static void window_is_shared_by_requests(void **state)
{
	uint32_t i;

	(void)state;
	for (i = 0; i < 6; i++)
		submit(SF_OP_WRITE, 8);
	assert_int_equal(rig->to_b.n, WIRE_WINDOW);
	expect_no_cqe(&rig->a.scq);
	expect_line(&rig->a, rig->first);
	wire_settle();
	for (i = 0; i < 6; i++)
		expect_done(SF_OP_WRITE, rig->first + i);
}

static void window_moves_with_every_answer(void **state)
{
	(void)state;
	submit(SF_OP_WRITE, 20000);
	request_arrives(0);
	answer_arrives(0);
	assert_int_equal(rig->to_b.n, WIRE_WINDOW);
	assert_int_equal(rig->sent, WIRE_WINDOW + 1);
}

static void new_request_does_not_wait_for_the_answers_to_others(void **state)
{
	(void)state;
	submit(SF_OP_WRITE, 8);
	submit(SF_OP_WRITE, 8);
	request_arrives(0);
	answer_arrives(0);
	expect_done(SF_OP_WRITE, rig->first);
	submit(SF_OP_WRITE, 8);
	assert_int_equal(rig->to_b.n, 2);
}

static void lost_request_is_sent_again_after_the_timeout(void **state)
{
	(void)state;
	submit(SF_OP_ATOMIC_FADD, 8);
	wire_drop(&rig->to_b, 0);
	assert_true(fx_next_timer(&rig->fx));
	assert_int_equal(rig->to_b.n, 1);
	wire_settle();
	expect_done(SF_OP_ATOMIC_FADD, rig->first);
	assert_int_equal(*word(&rig->bm, 0), 1);
	assert_int_equal(fx_qp(&rig->a)->req.counters.local_ack_timeout_err, 1);
}

static void timeout_counts_from_the_last_sign_of_life(void **state)
{
	uint64_t timeout = 4096ull << fx_defaults.timeout;

	(void)state;
	submit(SF_OP_WRITE, 2048); /* two packets */
	fx_advance(&rig->fx, timeout - 10);
	request_arrives(0);
	answer_arrives(0);
	fx_advance(&rig->fx, timeout - 10);
	assert_int_equal(rig->sent, 2);
	fx_advance(&rig->fx, 10);
	assert_int_equal(rig->sent, 4);
}

static void lost_answer_makes_a_duplicate_that_is_not_executed(void **state)
{
	(void)state;
	submit(SF_OP_ATOMIC_FADD, 8);
	request_arrives(0);
	wire_drop(&rig->to_a, 0);
	*word(&rig->bm, 0) = 50; /* what others do meanwhile */
	assert_true(fx_next_timer(&rig->fx));
	wire_settle();
	expect_done(SF_OP_ATOMIC_FADD, rig->first);
	assert_int_equal(*word(&rig->bm, 0), 50);
	assert_int_equal(*word(&rig->am, 0), 0);
}

static void gap_is_told_once_and_all_is_sent_again(void **state)
{
	uint32_t i;

	(void)state;
	for (i = 0; i < 4; i++)
		submit(SF_OP_ATOMIC_FADD, 8);
	wire_drop(&rig->to_b, 0);
	for (i = 0; i < 3; i++)
		request_arrives(0);
	assert_int_equal(rig->to_a.n, 1);
	assert_int_equal(rig->to_a.p[0].pkt.syndrome, RNIC_AETH_NAK_PSN);
	wire_settle();
	for (i = 0; i < 4; i++)
		expect_done(SF_OP_ATOMIC_FADD, rig->first + i);
	assert_int_equal(*word(&rig->bm, 0), 4);
	assert_int_equal(fx_qp(&rig->a)->req.counters.packet_seq_err, 1);
	assert_int_equal(fx_qp(&rig->b)->resp.counters.out_of_sequence, 1);
	assert_int_equal(fx_qp(&rig->a)->req.counters.local_ack_timeout_err, 0);
}

static void last_answer_speaks_for_those_before_it(void **state)
{
	uint32_t i;

	(void)state;
	for (i = 0; i < 4; i++)
		submit(SF_OP_WRITE, 8);
	for (i = 0; i < 4; i++)
		request_arrives(0);
	for (i = 0; i < 3; i++)
		wire_drop(&rig->to_a, 0);
	answer_arrives(0);
	for (i = 0; i < 4; i++)
		expect_done(SF_OP_WRITE, rig->first + i);
	/* The window is open again as if all four had come. */
	for (i = 0; i < 4; i++)
		submit(SF_OP_WRITE, 8);
	assert_int_equal(rig->to_b.n, 4);
}

static void repeated_answer_acknowledges_nothing_else(void **state)
{
	struct fx_wr nop = {.opcode = SF_OP_NOP, .flags = SF_WQE_SIGNALED};

	(void)state;
	fx_fill(rig->am.ptr, 2048, 1);
	submit(SF_OP_WRITE, 2048);
	fx_send(&rig->a, &nop);
	wire_drop(&rig->to_b, 1);
	request_arrives(0);
	wire_repeat(&rig->to_a, 0);
	answer_arrives(0);
	answer_arrives(0);
	expect_no_cqe(&rig->a.scq);
	assert_true(fx_next_timer(&rig->fx));
	expect_no_cqe(&rig->a.scq);
	wire_settle();
	expect_done(SF_OP_WRITE, rig->first);
	expect_done(SF_OP_NOP, rig->first + 1);
	assert_memory_equal(rig->bm.ptr, rig->am.ptr, 2048);
}

static void read_is_not_done_by_an_answer_to_a_later_request(void **state)
{
	(void)state;
	fx_fill(rig->bm.ptr, 8, 3);
	submit(SF_OP_READ, 8);
	submit(SF_OP_WRITE, 0);
	request_arrives(0);
	request_arrives(0);
	wire_drop(&rig->to_a, 0); /* the bytes */
	answer_arrives(0);
	expect_no_cqe(&rig->a.scq);
	fx_next_timer(&rig->fx);
	wire_settle();
	expect_done(SF_OP_READ, rig->first);
	expect_done(SF_OP_WRITE, rig->first + 1);
	assert_memory_equal(rig->am.ptr, rig->bm.ptr, 8);
}

static void answers_to_two_reads_find_their_places(void **state)
{
	struct fx_wr wr = request(SF_OP_READ, 8);

	(void)state;
	fx_fill(rig->bm.ptr, 16, 3);
	fx_send(&rig->a, &wr);
	wr.sge[0].addr += 8;
	wr.remote_addr += 8;
	fx_send(&rig->a, &wr);
	request_arrives(0);
	request_arrives(0);
	wire_drop(&rig->to_a, 0);
	answer_arrives(0); /* of the second, too early */
	fx_next_timer(&rig->fx);
	wire_settle();
	expect_done(SF_OP_READ, rig->first);
	expect_done(SF_OP_READ, rig->first + 1);
	assert_memory_equal(rig->am.ptr, rig->bm.ptr, 16);
}

static void refusal_hits_the_request_that_was_refused(void **state)
{
	struct fx_wr bad = request(SF_OP_WRITE, 8);

	(void)state;
	bad.rkey ^= 1;
	submit(SF_OP_WRITE, 8);
	fx_send(&rig->a, &bad);
	request_arrives(0);
	request_arrives(0);
	wire_drop(&rig->to_a, 0); /* the answer to the good one */
	wire_settle();
	expect_done(SF_OP_WRITE, rig->first);
	expect_cqe(&rig->a.scq, SF_OP_WRITE, SF_ST_REM_ACCESS_ERR, SF_SYN_PEER,
		   rig->first + 1);
}

static void not_ready_receiver_stops_all_behind_it(void **state)
{
	(void)state;
	submit(SF_OP_WRITE, 8);
	submit(SF_OP_SEND, 8);
	submit(SF_OP_WRITE, 8);
	wire_settle();
	expect_done(SF_OP_WRITE, rig->first);
	expect_no_cqe(&rig->a.scq);
	assert_int_equal(fx_qp(&rig->a)->req.wait, RNIC_WAIT_RNR);
	fx_recv_mr(&rig->b, 1, &rig->bm, 4096, 64);
	wire_settle();
	expect_done(SF_OP_SEND, rig->first + 1);
	expect_done(SF_OP_WRITE, rig->first + 2);
}

static void fence_waits_for_earlier_reads(void **state)
{
	struct fx_wr wr = request(SF_OP_WRITE, 8);

	(void)state;
	wr.flags |= SF_WQE_FENCE;
	submit(SF_OP_READ, 8);
	fx_send(&rig->a, &wr);
	assert_int_equal(rig->to_b.n, 1);
	wire_settle();
	expect_done(SF_OP_READ, rig->first);
	expect_done(SF_OP_WRITE, rig->first + 1);
}

static void no_more_reads_are_under_way_than_the_peer_takes(void **state)
{
	uint32_t i;

	(void)state;
	fx_qp(&rig->a)->attr.max_rd_atomic = 2;
	for (i = 0; i < 4; i++)
		submit(i & 1 ? SF_OP_READ : SF_OP_ATOMIC_FADD, 8);
	assert_int_equal(rig->to_b.n, 2);
	wire_settle();
	for (i = 0; i < 4; i++)
		expect_done(i & 1 ? SF_OP_READ : SF_OP_ATOMIC_FADD,
			    rig->first + i);
}

static void draining_finishes_what_was_sent(void **state)
{
	(void)state;
	submit(SF_OP_WRITE, 8);
	assert_int_equal(fx_modify(&rig->a, RNIC_SQD), 0);
	wire_settle();
	expect_done(SF_OP_WRITE, rig->first);
}

static void ghosts_are_ignored(void **state)
{
	struct wire_packet ghost;
	uint32_t i;

	(void)state;
	submit(SF_OP_WRITE, 8);
	request_arrives(0);
	wire_repeat(&rig->to_a, 0);
	ghost = rig->to_a.p[0];
	wire_settle();
	expect_done(SF_OP_WRITE, rig->first);
	submit(SF_OP_WRITE, 8);
	for (i = 0; i < 200; i++) {
		rig->to_a.p[0] = ghost;
		rig->to_a.n = 1;
		rig->to_a.p[0].pkt.psn = i * 83 + fx_defaults.psn + 2;
		rig->to_a.p[0].pkt.op = i & 1 ? RNIC_PKT_NAK : RNIC_PKT_ACK;
		rig->to_a.p[0].pkt.syndrome = RNIC_AETH_NAK_ACCESS;
		answer_arrives(0);
	}
	expect_no_cqe(&rig->a.scq);
	assert_int_equal(fx_state(&rig->a), RNIC_RTS);
	wire_settle();
	expect_done(SF_OP_WRITE, rig->first + 1);
}

static void dead_wire_ends_in_an_error(void **state)
{
	uint32_t i;

	(void)state;
	submit(SF_OP_WRITE, 8);
	for (i = 0; i < 50 && fx_next_timer(&rig->fx); i++)
		rig->to_b.n = 0;
	assert_int_equal(i, 8);
	expect_cqe(&rig->a.scq, SF_OP_WRITE, SF_ST_RETRY_EXC_ERR,
		   SF_SYN_TIMEOUT, rig->first);
}

/* Drops, repeats and reorders in both directions, 50 posts at a time. */
static void chaos_on_the_wire_changes_nothing(void **state)
{
	uint32_t seed, i, steps;

	(void)state;
	for (seed = 1; seed < 30; seed++) {
		fx_close(&rig->fx);
		rig_open(&wire);
		rig->seed = seed;
		new_bytes(seed);
		fx_qp(&rig->a)->attr.retry_cnt = 7;
		for (i = 0; i < 30; i++)
			post_mix(i);
		rnic_sq_ring(rig->a.r, rig->a.qpn);
		for (steps = 0; steps < 20000; steps++) {
			struct wire_queue *q =
				dice(2) ? &rig->to_a : &rig->to_b;

			if (!rig->to_a.n && !rig->to_b.n &&
			    !fx_next_timer(&rig->fx))
				break;
			if (!q->n)
				continue;
			i = dice(16) ? 0 : dice(q->n);
			switch (dice(20)) {
			case 0:
				wire_drop(q, i);
				break;
			case 1:
				if (q->n < WIRE_QUEUE / 2)
					wire_repeat(q, i);
				break;
			default:
				if (q == &rig->to_a)
					answer_arrives(i);
				else
					request_arrives(i);
			}
		}
		for (i = 0; i < 30; i++) {
			struct sf_cqe cqe;

			assert_true(fx_poll(&rig->a.scq, &cqe));
			assert_int_equal(sf_cqe_status(cqe.word), 0);
			assert_int_equal(cqe.wr, rig->first + i);
		}
		expect_no_cqe(&rig->a.scq);
		assert_int_equal(*word(&rig->bm, 0), 6);
		assert_int_equal(fx_qp(&rig->b)->resp.msn, 24);
		assert_memory_equal(rig->bm.ptr + 8192, rig->am.ptr + 8192,
				    3000);
		assert_memory_equal(rig->bm.ptr + 16384, rig->am.ptr + 16384,
				    10000);
		assert_memory_equal(rig->bm.ptr + 65536, rig->am.ptr + 65536,
				    9000);
		for (i = 0; i < 30; i++) {
			struct sf_cqe cqe;

			if (i % 5 != 1 && i % 5 != 2)
				continue;
			assert_true(fx_poll(&rig->b.rcq, &cqe));
			assert_int_equal(cqe.wr, i);
		}
		expect_no_cqe(&rig->b.rcq);
	}
}

#ifndef RNIC_PIPELINE
#define RNIC_PIPELINE 1
#endif

#define T(f) cmocka_unit_test_setup_teardown(f, setup_wire, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		T(lost_and_repeated_packets_change_nothing),
		T(wire_that_loses_nothing_carries_every_opcode),
		T(no_more_packets_are_under_way_than_the_window_allows),
		T(window_is_shared_by_requests),
		T(window_moves_with_every_answer),
		T(gap_is_told_once_and_all_is_sent_again),
		T(not_ready_receiver_stops_all_behind_it),
		T(ghosts_are_ignored),
	};

	/* What the requester owes to links with a window above one. */
	static const struct CMUnitTest pipelined[] = {
		T(new_request_does_not_wait_for_the_answers_to_others),
		T(lost_request_is_sent_again_after_the_timeout),
		T(timeout_counts_from_the_last_sign_of_life),
		T(lost_answer_makes_a_duplicate_that_is_not_executed),
		T(last_answer_speaks_for_those_before_it),
		T(repeated_answer_acknowledges_nothing_else),
		T(read_is_not_done_by_an_answer_to_a_later_request),
		T(answers_to_two_reads_find_their_places),
		T(refusal_hits_the_request_that_was_refused),
		T(fence_waits_for_earlier_reads),
		T(no_more_reads_are_under_way_than_the_peer_takes),
		T(draining_finishes_what_was_sent),
		T(dead_wire_ends_in_an_error),
		T(chaos_on_the_wire_changes_nothing),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	if (RNIC_PIPELINE)
		failed += cmocka_run_group_tests(pipelined, NULL, NULL);
	return failed;
}
