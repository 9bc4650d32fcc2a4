// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What goes wrong on a reliable connection, and what both sides see of it. */
#include "rnic_fixture.h"

#define KEEP 0x5a

struct rig {
	struct fx fx;
	struct fx_end a, b;
	struct fx_mr am, bm;
	uint64_t first; /* a's index of the request under test */
};

static void rig_open(struct rig *g, const struct fx_opts *o)
{
	fx_open(&g->fx, RNIC_INFINIBAND);
	fx_pair(&g->fx, &g->a, &g->b, o);
	g->am = fx_mr(&g->a, 1 << 20, FX_ALL_ACCESS);
	g->bm = fx_mr(&g->b, 1 << 20, FX_ALL_ACCESS);
	memset(g->am.ptr, 0x11, 65536);
	memset(g->bm.ptr, KEEP, 65536);
	g->first = g->a.sq_next;
}

static int setup(void **state)
{
	static struct rig g;

	rig_open(&g, &fx_defaults);
	*state = &g;
	return 0;
}

static int teardown(void **state)
{
	struct rig *g = *state;

	fx_close(&g->fx);
	return 0;
}

static void reopen(struct rig *g, const struct fx_opts *o)
{
	fx_close(&g->fx);
	rig_open(g, o);
}

static struct fx_wr request(const struct rig *g, uint32_t opcode, uint32_t len)
{
	struct fx_wr wr = {
		.opcode = opcode,
		.flags = SF_WQE_SIGNALED,
		.remote_addr = g->bm.addr,
		.rkey = g->bm.key,
		.n_sge = 1,
	};

	wr.sge[0] = fx_sge(&g->am, 0, len);
	return wr;
}

static void assert_kept(const uint8_t *p, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		assert_int_equal(p[i], KEEP);
}

/*
 * Posts @wr (unsignaled, too: failures always tell), one behind it and two
 * receives on each side; then a failed with @status, all else was flushed.
 */
static void fails_here(struct rig *g, struct fx_wr wr, uint32_t status,
		       uint32_t syndrome)
{
	struct fx_wr behind = request(g, SF_OP_WRITE, 8);
	uint64_t index;

	wr.flags &= ~SF_WQE_SIGNALED;
	behind.flags = 0;
	fx_recv_mr(&g->a, 50, &g->am, 0, 8);
	fx_recv_mr(&g->a, 51, &g->am, 0, 8);
	index = fx_post(&g->a, &wr);
	fx_post(&g->a, &behind);
	rnic_sq_ring(g->a.r, g->a.qpn);

	expect_cqe(&g->a.scq, wr.opcode, status, syndrome, index);
	expect_cqe(&g->a.scq, SF_OP_WRITE, SF_ST_WR_FLUSH_ERR, SF_SYN_QP_STATE,
		   index + 1);
	expect_no_cqe(&g->a.scq);
	expect_cqe(&g->a.rcq, SF_CQE_RECV, SF_ST_WR_FLUSH_ERR, SF_SYN_QP_STATE,
		   50);
	expect_cqe(&g->a.rcq, SF_CQE_RECV, SF_ST_WR_FLUSH_ERR, SF_SYN_QP_STATE,
		   51);
	expect_no_cqe(&g->a.rcq);
	expect_failed_line(&g->a, index, status, syndrome);
	assert_int_equal(fx_state(&g->a), RNIC_ERR);
}

/* a's own fault: b has not noticed. */
static void fails_locally(struct rig *g, struct fx_wr wr, uint32_t status,
			  uint32_t syndrome)
{
	uint32_t psn = fx_qp(&g->b)->resp.epsn;

	fails_here(g, wr, status, syndrome);
	assert_int_equal(fx_qp(&g->b)->resp.epsn, psn);
	assert_int_equal(fx_state(&g->b), RNIC_RTS);
	expect_line(&g->b, g->b.sq_next);
	expect_no_cqe(&g->b.rcq);
	expect_no_event(&g->fx);
	assert_kept(g->bm.ptr, 4096);
}

/* b refuses: its QP is in ERR, its line says so, it raises @event. */
static void fails_remotely(struct rig *g, struct fx_wr wr, uint32_t status,
			   uint32_t event)
{
	fails_here(g, wr, status, SF_SYN_PEER);
	assert_int_equal(fx_state(&g->b), RNIC_ERR);
	assert_int_equal(fx_line(&g->b)->word, g->b.sq_next | SF_LINE_ERROR);
	if (event != RNIC_EVENT_NONE)
		expect_event(&g->fx, event, 2, END_HANDLE(&g->b));
	expect_no_event(&g->fx);
	assert_kept(g->bm.ptr, 4096);
}

/* ---- local memory --------------------------------------------------- */

static const uint8_t gathers[] = {SF_OP_SEND,	    SF_OP_SEND_IMM,
				  SF_OP_WRITE,	    SF_OP_WRITE_IMM,
				  SF_OP_READ,	    SF_OP_ATOMIC_CAS,
				  SF_OP_ATOMIC_FADD};

static void bad_lkey_is_a_local_protection_error(void **state)
{
	struct rig *g = *state;
	size_t i;

	for (i = 0; i < sizeof(gathers); i++) {
		struct fx_wr wr = request(g, gathers[i], 8);
		static const uint32_t keys[] = {0, ~0u, 5000 << 8};

		wr.sge[0].lkey = keys[i % 3];
		fails_locally(g, wr, SF_ST_LOC_PROT_ERR, SF_SYN_KEY);
		reopen(g, &fx_defaults);
	}
}

static void second_entry_of_a_gather_list_is_checked_too(void **state)
{
	struct rig *g = *state;
	struct fx_wr wr = request(g, SF_OP_WRITE, 8);

	wr.n_sge = 2;
	wr.sge[1] = fx_sge(&g->am, 0, 8);
	wr.sge[1].lkey ^= 1; /* another tag */
	fails_locally(g, wr, SF_ST_LOC_PROT_ERR, SF_SYN_KEY);
}

static void lkey_of_another_domain_is_refused(void **state)
{
	struct rig *g = *state;
	struct fx_wr wr = request(g, SF_OP_WRITE, 8);

	wr.sge[0] = fx_sge(&g->bm, 0, 8);
	fails_locally(g, wr, SF_ST_LOC_PROT_ERR, SF_SYN_PD);
}

static void one_byte_out_of_bounds_is_refused_at_both_ends(void **state)
{
	struct rig *g = *state;
	struct fx_wr wr = request(g, SF_OP_WRITE, 8);

	wr.sge[0] = fx_sge(&g->am, g->am.len - 7, 8);
	fails_locally(g, wr, SF_ST_LOC_PROT_ERR, SF_SYN_BOUNDS);
	reopen(g, &fx_defaults);
	wr = request(g, SF_OP_WRITE, 8);
	wr.sge[0].addr = g->am.addr - 1;
	fails_locally(g, wr, SF_ST_LOC_PROT_ERR, SF_SYN_BOUNDS);
	reopen(g, &fx_defaults);
	wr = request(g, SF_OP_WRITE, 8);
	wr.sge[0].addr = ~0ull - 3; /* the end wraps */
	fails_locally(g, wr, SF_ST_LOC_PROT_ERR, SF_SYN_BOUNDS);
}

static void read_and_atomics_need_local_write(void **state)
{
	struct rig *g = *state;
	static const uint8_t ops[] = {SF_OP_READ, SF_OP_ATOMIC_CAS,
				      SF_OP_ATOMIC_FADD};
	size_t i;

	for (i = 0; i < sizeof(ops); i++) {
		struct fx_mr ro = fx_mr(&g->a, 4096, 0);
		struct fx_wr wr = request(g, ops[i], 8);

		wr.sge[0] = fx_sge(&ro, 0, 8);
		fails_locally(g, wr, SF_ST_LOC_PROT_ERR, SF_SYN_ACCESS);
		reopen(g, &fx_defaults);
	}
}

static void send_and_write_need_no_right_at_all(void **state)
{
	struct rig *g = *state;
	struct fx_mr ro = fx_mr(&g->a, 4096, 0);
	struct fx_wr wr = request(g, SF_OP_WRITE, 8);

	wr.sge[0] = fx_sge(&ro, 0, 8);
	fx_send(&g->a, &wr);
	expect_ok(&g->a.scq, SF_OP_WRITE, g->first);
}

static void
key_is_dead_after_destroy_also_when_its_entry_lives_again(void **state)
{
	struct rig *g = *state;
	struct fx_wr wr = request(g, SF_OP_WRITE, 8);

	assert_int_equal(rnic_mr_destroy(g->fx.r, 1, g->am.key), 0);
	/* The next region comes into the same entry. */
	g->fx.r->sh->keys.next = SF_KEY_INDEX(g->am.key);
	g->am = fx_mr(&g->a, 4096, FX_ALL_ACCESS);
	assert_int_equal(SF_KEY_INDEX(g->am.key), SF_KEY_INDEX(wr.sge[0].lkey));
	fails_locally(g, wr, SF_ST_LOC_PROT_ERR, SF_SYN_KEY);
}

static void unmapped_source_is_a_local_protection_error(void **state)
{
	struct rig *g = *state;
	struct fx_mr far = fx_mr_far(&g->a, 0, 65536, FX_ALL_ACCESS);
	struct fx_wr wr = request(g, SF_OP_WRITE, 8);

	g->fx.bad_va = far.addr + 4096;
	g->fx.bad_len = 4096;
	wr.sge[0] = fx_sge(&far, 4090, 8);
	fails_locally(g, wr, SF_ST_LOC_PROT_ERR, SF_SYN_FAULT);
}

static void unmapped_sink_of_a_read_is_a_local_protection_error(void **state)
{
	struct rig *g = *state;
	struct fx_mr far = fx_mr_far(&g->a, 0, 65536, FX_ALL_ACCESS);
	struct fx_wr wr = request(g, SF_OP_READ, 8);

	g->fx.bad_va = far.addr;
	g->fx.bad_len = 4096;
	wr.sge[0] = fx_sge(&far, 0, 8);
	fails_here(g, wr, SF_ST_LOC_PROT_ERR, SF_SYN_FAULT);
	assert_int_equal(fx_state(&g->b), RNIC_RTS);
}

static void
unmapped_result_of_an_atomic_is_a_local_protection_error(void **state)
{
	struct rig *g = *state;
	struct fx_mr far = fx_mr_far(&g->a, 0, 65536, FX_ALL_ACCESS);
	struct fx_wr wr = request(g, SF_OP_ATOMIC_FADD, 8);

	g->fx.bad_va = far.addr;
	g->fx.bad_len = 4096;
	wr.sge[0] = fx_sge(&far, 0, 8);
	fails_here(g, wr, SF_ST_LOC_PROT_ERR, SF_SYN_FAULT);
	assert_int_equal(fx_state(&g->b), RNIC_RTS);
}

/* ---- requests that are wrong in themselves -------------------------- */

static void unknown_opcodes_are_operation_errors(void **state)
{
	struct rig *g = *state;
	static const uint8_t ops[] = {0x0c, 0x7f, 0xff};
	size_t i;

	for (i = 0; i < sizeof(ops); i++) {
		fails_locally(g, request(g, ops[i], 8), SF_ST_LOC_QP_OP_ERR,
			      SF_SYN_OPCODE);
		reopen(g, &fx_defaults);
	}
}

static void flags_that_nobody_carries_out_are_operation_errors(void **state)
{
	struct rig *g = *state;
	uint32_t bit;

	for (bit = 0; bit < 16; bit++) {
		uint32_t known = SF_WQE_SIGNALED | SF_WQE_FENCE |
				 SF_WQE_SOLICITED | SF_WQE_INLINE |
				 SF_WQE_SIGNAL | SF_WQE_WEAK | SF_WQE_COUNTER;
		struct fx_wr wr = request(g, SF_OP_WRITE, 8);

		if (known & 1u << bit)
			continue;
		wr.flags |= 1u << bit;
		fails_locally(g, wr, SF_ST_LOC_QP_OP_ERR, SF_SYN_OPCODE);
		reopen(g, &fx_defaults);
	}
}

static void gather_list_longer_than_the_slot_is_refused(void **state)
{
	struct rig *g = *state;
	uint32_t log;

	for (log = SF_SLOT_LOG_MIN; log <= SF_SLOT_LOG_MAX; log++) {
		struct fx_opts o = fx_defaults;
		uint32_t max = ((1u << log) - SF_SLOT_DATA) / 16;
		struct fx_wr wr;

		o.sq_log_stride = log;
		reopen(g, &o);
		wr = request(g, SF_OP_WRITE, 0);
		wr.n_sge = max + 1;
		fails_locally(g, wr, SF_ST_LOC_QP_OP_ERR, SF_SYN_SLOT);
		reopen(g, &o);
		wr.n_sge = 255;
		fails_locally(g, wr, SF_ST_LOC_QP_OP_ERR, SF_SYN_SLOT);
		/* The operands of an atomic take the room of one. */
		reopen(g, &o);
		wr = request(g, SF_OP_ATOMIC_CAS, 8);
		wr.n_sge = max;
		fails_locally(g, wr, SF_ST_LOC_QP_OP_ERR, SF_SYN_SLOT);
	}
}

static void inline_data_longer_than_the_slot_is_refused(void **state)
{
	struct rig *g = *state;
	static const uint8_t data[0x10000];
	static const uint32_t lens[] = {128 - 32 + 1, 480, 0xffff};
	size_t i;

	for (i = 0; i < 3; i++) {
		struct fx_wr wr = request(g, SF_OP_WRITE, 0);

		wr.flags |= SF_WQE_INLINE;
		wr.n_sge = 0;
		wr.data = data;
		wr.len = lens[i];
		fails_locally(g, wr, SF_ST_LOC_QP_OP_ERR, SF_SYN_SLOT);
		reopen(g, &fx_defaults);
	}
}

static void inline_goes_with_a_payload_and_without_a_list(void **state)
{
	struct rig *g = *state;
	static const uint8_t ops[] = {SF_OP_READ, SF_OP_ATOMIC_CAS,
				      SF_OP_ATOMIC_FADD};
	struct fx_wr wr = request(g, SF_OP_WRITE, 8);
	size_t i;

	wr.flags |= SF_WQE_INLINE; /* and n_sge 1 */
	wr.data = "";
	fails_locally(g, wr, SF_ST_LOC_QP_OP_ERR, SF_SYN_SLOT);
	for (i = 0; i < sizeof(ops); i++) {
		reopen(g, &fx_defaults);
		wr = request(g, ops[i], 8);
		wr.flags |= SF_WQE_INLINE;
		wr.n_sge = 0;
		fails_locally(g, wr, SF_ST_LOC_QP_OP_ERR, SF_SYN_SLOT);
	}
}

static void message_above_2_gib_is_a_length_error(void **state)
{
	struct rig *g = *state;
	struct rnic_mr_attr attr = {.len = 1ull << 32,
				    .pdn = g->a.pdn,
				    .space = FX_FAR,
				    .access = FX_ALL_ACCESS};
	struct fx_wr wr = request(g, SF_OP_WRITE, 0);
	struct fx_mr mr = {0};

	assert_int_equal(rnic_mr_create(g->fx.r, 1, &attr, &mr.key), 0);
	wr.n_sge = 2;
	wr.sge[0] = fx_sge(&mr, 0, 1u << 31);
	wr.sge[1] = fx_sge(&mr, 0, 1);
	fails_locally(g, wr, SF_ST_LOC_LEN_ERR, SF_SYN_LENGTH);
}

static void atomic_result_takes_exactly_8_bytes(void **state)
{
	struct rig *g = *state;
	static const uint32_t lens[] = {0, 4, 7, 9, 16};
	size_t i;

	for (i = 0; i < 5; i++) {
		fails_locally(g, request(g, SF_OP_ATOMIC_FADD, lens[i]),
			      SF_ST_LOC_LEN_ERR, SF_SYN_LENGTH);
		reopen(g, &fx_defaults);
	}
}

static void reads_and_atomics_need_a_depth_at_both_ends(void **state)
{
	struct rig *g = *state;
	static const uint8_t ops[] = {SF_OP_READ, SF_OP_ATOMIC_CAS,
				      SF_OP_ATOMIC_FADD};
	size_t i;

	for (i = 0; i < 3; i++) {
		struct fx_opts o = fx_defaults;

		o.rd_atomic = 0;
		reopen(g, &o);
		fails_locally(g, request(g, ops[i], 8), SF_ST_LOC_QP_OP_ERR,
			      SF_SYN_DEPTH);
		reopen(g, &fx_defaults);
		fx_qp(&g->b)->attr.max_dest_rd_atomic = 0;
		fails_remotely(g, request(g, ops[i], 8), SF_ST_REM_INV_REQ_ERR,
			       RNIC_EVENT_QP_REQ_ERR);
	}
}

static void bad_request_waits_for_its_turn(void **state)
{
	struct rig *g = *state;
	struct fx_wr good = request(g, SF_OP_WRITE, 8);
	struct fx_wr bad = request(g, 0xee, 8);

	fx_post(&g->a, &good);
	fx_post(&g->a, &good);
	fx_post(&g->a, &bad);
	fx_post(&g->a, &good);
	rnic_sq_ring(g->a.r, g->a.qpn);

	expect_ok(&g->a.scq, SF_OP_WRITE, g->first);
	expect_ok(&g->a.scq, SF_OP_WRITE, g->first + 1);
	expect_cqe(&g->a.scq, 0xee, SF_ST_LOC_QP_OP_ERR, SF_SYN_OPCODE,
		   g->first + 2);
	expect_cqe(&g->a.scq, SF_OP_WRITE, SF_ST_WR_FLUSH_ERR, SF_SYN_QP_STATE,
		   g->first + 3);
	expect_failed_line(&g->a, g->first + 2, SF_ST_LOC_QP_OP_ERR,
			   SF_SYN_OPCODE);
}

static void garbage_in_the_ring_never_crashes(void **state)
{
	struct rig *g = *state;
	uint32_t seed;

	for (seed = 0; seed < 120; seed++) {
		uint64_t index = g->first;
		struct sf_wqe *wqe = fx_slot(&g->a, index);
		struct sf_cqe cqe;

		fx_fill(wqe, 128, seed);
		wqe->commit = (wqe->commit & 0xffffffff) |
			      (uint64_t)sf_lap(index, 4) << SF_COMMIT_LAP_SHIFT;
		/* Every other one with an opcode and a list that exist. */
		if (seed & 1)
			wqe->commit = sf_commit(seed / 2 % 9, seed % 3,
						seed & 8 ? SF_WQE_INLINE : 0,
						index, 4);
		rnic_sq_ring(g->a.r, g->a.qpn);
		fx_settle(&g->fx);
		while (fx_poll(&g->a.scq, &cqe))
			assert_int_equal(cqe.wr, index);
		reopen(g, &fx_defaults);
	}
}

/* ---- remote memory -------------------------------------------------- */

static const uint8_t remotes[] = {SF_OP_WRITE, SF_OP_WRITE_IMM, SF_OP_READ,
				  SF_OP_ATOMIC_CAS, SF_OP_ATOMIC_FADD};

static void bad_rkey_is_a_remote_access_error(void **state)
{
	struct rig *g = *state;
	struct rnic_counters a, b;
	size_t i;

	for (i = 0; i < sizeof(remotes); i++) {
		struct fx_wr wr = request(g, remotes[i], 8);

		wr.rkey ^= 1;
		fails_remotely(g, wr, SF_ST_REM_ACCESS_ERR,
			       RNIC_EVENT_QP_ACCESS_ERR);
		rnic_port_counters(g->fx.r, 0, 1, &a);
		rnic_port_counters(g->fx.r, 1, 1, &b);
		assert_int_equal(a.req_remote_access_errors, 1);
		assert_int_equal(a.req_cqe_error, 1);
		assert_int_equal(a.req_cqe_flush_error, 1);
		assert_int_equal(a.resp_cqe_flush_error, 2);
		assert_int_equal(b.resp_remote_access_errors, 1);
		reopen(g, &fx_defaults);
	}
}

static void rkey_of_another_domain_is_refused(void **state)
{
	struct rig *g = *state;
	size_t i;

	for (i = 0; i < sizeof(remotes); i++) {
		struct fx_wr wr = request(g, remotes[i], 8);

		wr.rkey = g->am.key;
		wr.remote_addr = g->am.addr;
		fails_remotely(g, wr, SF_ST_REM_ACCESS_ERR,
			       RNIC_EVENT_QP_ACCESS_ERR);
		reopen(g, &fx_defaults);
	}
}

static void remote_bounds_hold_to_the_byte(void **state)
{
	struct rig *g = *state;
	struct fx_wr wr;
	size_t i;

	for (i = 0; i < sizeof(remotes); i++) {
		wr = request(g, remotes[i], 8);
		wr.remote_addr = g->bm.addr + g->bm.len - (i < 3 ? 7 : 0);
		fails_remotely(g, wr, SF_ST_REM_ACCESS_ERR,
			       RNIC_EVENT_QP_ACCESS_ERR);
		reopen(g, &fx_defaults);
		wr = request(g, remotes[i], 8);
		wr.remote_addr -= 8;
		fails_remotely(g, wr, SF_ST_REM_ACCESS_ERR,
			       RNIC_EVENT_QP_ACCESS_ERR);
		reopen(g, &fx_defaults);
	}
}

static void long_write_out_of_bounds_places_nothing(void **state)
{
	struct rig *g = *state;
	struct fx_opts o = fx_defaults;
	struct fx_mr big;
	struct fx_wr wr;

	reopen(g, &o);
	big = fx_mr(&g->a, 4 << 20, 0);
	wr = request(g, SF_OP_WRITE, 0);
	wr.sge[0] = fx_sge(&big, 0, (1 << 20) + 1);
	memset(big.ptr, 1, 4096);
	fails_remotely(g, wr, SF_ST_REM_ACCESS_ERR, RNIC_EVENT_QP_ACCESS_ERR);
}

static void region_must_grant_the_right(void **state)
{
	struct rig *g = *state;
	static const uint32_t right[] = {RNIC_REMOTE_WRITE, RNIC_REMOTE_WRITE,
					 RNIC_REMOTE_READ, RNIC_REMOTE_ATOMIC,
					 RNIC_REMOTE_ATOMIC};
	size_t i;

	for (i = 0; i < sizeof(remotes); i++) {
		struct fx_mr mr = fx_mr(&g->b, 4096, FX_ALL_ACCESS & ~right[i]);
		struct fx_wr wr = request(g, remotes[i], 8);

		wr.rkey = mr.key;
		wr.remote_addr = mr.addr;
		fails_remotely(g, wr, SF_ST_REM_ACCESS_ERR,
			       RNIC_EVENT_QP_ACCESS_ERR);
		reopen(g, &fx_defaults);
	}
}

static void queue_pair_must_grant_the_right(void **state)
{
	struct rig *g = *state;
	static const uint32_t right[] = {RNIC_REMOTE_WRITE, RNIC_REMOTE_WRITE,
					 RNIC_REMOTE_READ, RNIC_REMOTE_ATOMIC,
					 RNIC_REMOTE_ATOMIC};
	size_t i;

	for (i = 0; i < sizeof(remotes); i++) {
		struct fx_opts o = fx_defaults;

		o.access &= ~right[i];
		reopen(g, &o);
		fails_remotely(g, request(g, remotes[i], 8),
			       SF_ST_REM_ACCESS_ERR, RNIC_EVENT_QP_ACCESS_ERR);
	}
}

static void unaligned_atomic_is_an_invalid_request(void **state)
{
	struct rig *g = *state;
	uint32_t off;

	for (off = 1; off < 8; off++) {
		struct fx_wr wr = request(
			g, off & 1 ? SF_OP_ATOMIC_CAS : SF_OP_ATOMIC_FADD, 8);

		wr.remote_addr += off;
		fails_remotely(g, wr, SF_ST_REM_INV_REQ_ERR,
			       RNIC_EVENT_QP_REQ_ERR);
		reopen(g, &fx_defaults);
	}
}

static void unmapped_target_is_a_remote_operation_error(void **state)
{
	struct rig *g = *state;
	static const uint8_t ops[] = {SF_OP_WRITE, SF_OP_READ, SF_OP_ATOMIC_CAS,
				      SF_OP_ATOMIC_FADD};
	size_t i;

	for (i = 0; i < sizeof(ops); i++) {
		struct fx_mr far = fx_mr_far(&g->b, 0, 65536, FX_ALL_ACCESS);
		struct fx_wr wr = request(g, ops[i], 8);

		g->fx.bad_va = far.addr;
		g->fx.bad_len = 4096;
		wr.rkey = far.key;
		wr.remote_addr = far.addr + 8;
		fails_remotely(g, wr, SF_ST_REM_OP_ERR, RNIC_EVENT_QP_FATAL);
		reopen(g, &fx_defaults);
	}
}

/* ---- the receiver's side -------------------------------------------- */

static void message_longer_than_its_buffer_fails_at_both_ends(void **state)
{
	struct rig *g = *state;
	struct rnic_counters b;

	fx_recv_mr(&g->b, 1, &g->bm, 8192, 7);
	fx_recv_mr(&g->b, 2, &g->bm, 8192, 8);
	fails_remotely(g, request(g, SF_OP_SEND, 8), SF_ST_REM_INV_REQ_ERR,
		       RNIC_EVENT_NONE);
	expect_cqe(&g->b.rcq, SF_CQE_RECV, SF_ST_LOC_LEN_ERR, SF_SYN_LENGTH, 1);
	expect_cqe(&g->b.rcq, SF_CQE_RECV, SF_ST_WR_FLUSH_ERR, SF_SYN_QP_STATE,
		   2);
	expect_no_cqe(&g->b.rcq);
	rnic_port_counters(g->fx.r, 1, 1, &b);
	assert_int_equal(b.resp_local_length_error, 1);
	assert_int_equal(b.resp_cqe_error, 1);
}

static void bad_receive_buffer_fails_at_both_ends(void **state)
{
	struct rig *g = *state;
	uint32_t kind;

	for (kind = 0; kind < 4; kind++) {
		struct fx_mr ro = fx_mr(&g->b, 4096, 0);
		struct sf_sge sge = fx_sge(&g->bm, 8192, 64);
		uint32_t syndrome = SF_SYN_KEY;

		if (kind == 0) {
			sge.lkey ^= 1;
		} else if (kind == 1) {
			sge.lkey = g->am.key;
			syndrome = SF_SYN_PD;
		} else if (kind == 2) {
			sge = fx_sge(&ro, 0, 64);
			syndrome = SF_SYN_ACCESS;
		} else {
			sge = fx_sge(&g->bm, g->bm.len - 63, 64);
			syndrome = SF_SYN_BOUNDS;
		}
		fx_recv(&g->b, 1, &sge, 1);
		fails_remotely(g, request(g, SF_OP_SEND, 8), SF_ST_REM_OP_ERR,
			       RNIC_EVENT_NONE);
		expect_cqe(&g->b.rcq, SF_CQE_RECV, SF_ST_LOC_PROT_ERR, syndrome,
			   1);
		reopen(g, &fx_defaults);
	}
}

static void only_what_a_message_reaches_is_checked(void **state)
{
	struct rig *g = *state;
	struct sf_sge sge[2] = {fx_sge(&g->bm, 0, 8), {0, 64, 0xdead}};
	struct fx_wr wr = request(g, SF_OP_SEND, 8);

	fx_recv(&g->b, 1, sge, 2);
	fx_send(&g->a, &wr);
	expect_ok(&g->b.rcq, SF_CQE_RECV, 1);
}

static void unmapped_receive_buffer_fails_at_both_ends(void **state)
{
	struct rig *g = *state;
	struct fx_mr far = fx_mr_far(&g->b, 0, 65536, FX_ALL_ACCESS);

	g->fx.bad_va = far.addr;
	g->fx.bad_len = 4096;
	fx_recv_mr(&g->b, 1, &far, 0, 64);
	fails_remotely(g, request(g, SF_OP_SEND, 8), SF_ST_REM_OP_ERR,
		       RNIC_EVENT_NONE);
	expect_cqe(&g->b.rcq, SF_CQE_RECV, SF_ST_LOC_PROT_ERR, SF_SYN_FAULT, 1);
}

static void senders_unmapped_memory_leaves_the_receiver_alone(void **state)
{
	struct rig *g = *state;
	struct fx_mr far = fx_mr_far(&g->a, 0, 65536, FX_ALL_ACCESS);
	struct fx_wr wr = request(g, SF_OP_SEND, 8);

	g->fx.bad_va = far.addr;
	g->fx.bad_len = 4096;
	wr.sge[0] = fx_sge(&far, 0, 8);
	fx_recv_mr(&g->b, 1, &g->bm, 0, 64);
	fails_locally(g, wr, SF_ST_LOC_PROT_ERR, SF_SYN_FAULT);
	/* The receive comes back when the QP is torn down, once. */
	assert_int_equal(fx_modify(&g->b, RNIC_ERR), 0);
	expect_cqe(&g->b.rcq, SF_CQE_RECV, SF_ST_WR_FLUSH_ERR, SF_SYN_QP_STATE,
		   1);
	expect_no_cqe(&g->b.rcq);
}

static void garbage_in_the_receive_queue_is_fatal_for_its_owner(void **state)
{
	struct rig *g = *state;
	struct sf_doorbell *db;
	uint32_t kind;

	for (kind = 0; kind < 3; kind++) {
		struct sf_rq_desc *desc =
			rnic_at(g->b.r, g->b.mem.queues + g->b.mem.rq);

		db = rnic_at(g->b.r, g->b.mem.doorbells);
		fx_recv_mr(&g->b, 1, &g->bm, 0, 64);
		if (kind == 0)
			db[1].value = 17; /* depth 16 */
		else if (kind == 1)
			db[1].value = ~0ull;
		else
			desc->n_sge = 4; /* three fit */
		fails_remotely(g, request(g, SF_OP_SEND, 8), SF_ST_REM_OP_ERR,
			       RNIC_EVENT_QP_FATAL);
		expect_no_cqe(&g->b.rcq);
		reopen(g, &fx_defaults);
	}
}

/* ---- no receive posted ---------------------------------------------- */

static void rnr_open(struct rig *g, uint8_t rnr_retry, uint8_t timer)
{
	struct fx_opts o = fx_defaults;

	o.rnr_retry = rnr_retry;
	o.min_rnr_timer = timer;
	o.retry_cnt = 0;
	reopen(g, &o);
}

static void rnr_retries_are_counted(void **state)
{
	struct rig *g = *state;
	static const uint8_t ops[] = {SF_OP_SEND, SF_OP_WRITE_IMM};
	uint32_t n, i;

	for (n = 0; n < 7; n++)
		for (i = 0; i < 2; i++) {
			struct fx_wr wr;
			uint32_t timers = 0;

			rnr_open(g, n, 1);
			wr = request(g, ops[i], 8);
			fx_send(&g->a, &wr);
			while (timers < 100 && fx_next_timer(&g->fx))
				timers++;
			assert_int_equal(timers, n);
			expect_cqe(&g->a.scq, ops[i], SF_ST_RNR_RETRY_EXC_ERR,
				   SF_SYN_RNR, g->first);
			expect_failed_line(&g->a, g->first,
					   SF_ST_RNR_RETRY_EXC_ERR, SF_SYN_RNR);
			assert_int_equal(
				fx_qp(&g->b)->resp.counters.rnr_nak_sent,
				n + 1);
			assert_int_equal(
				fx_qp(&g->a)->req.counters.rnr_nak_retry_err,
				1);
			assert_int_equal(fx_state(&g->b), RNIC_RTS);
			assert_kept(g->bm.ptr, 64);
		}
}

static void rnr_timer_is_the_one_that_the_receiver_asked_for(void **state)
{
	struct rig *g = *state;
	static const uint32_t us[32] = {
		655360, 10,    20,    30,     40,     60,     80,     120,
		160,	240,   320,   480,    640,    960,    1280,   1920,
		2560,	3840,  5120,  7680,   10240,  15360,  20480,  30720,
		40960,	61440, 81920, 122880, 163840, 245760, 327680, 491520,
	};
	uint32_t code;

	for (code = 0; code < 32; code++) {
		struct fx_wr wr;

		rnr_open(g, 7, code);
		wr = request(g, SF_OP_SEND, 8);
		fx_send(&g->a, &wr);
		assert_int_equal(g->fx.deadline,
				 g->fx.now + us[code] * 1000ull);
		fx_advance(&g->fx, us[code] * 1000ull - 1);
		assert_int_equal(fx_qp(&g->b)->resp.counters.rnr_nak_sent, 1);
		fx_advance(&g->fx, 1);
		assert_int_equal(fx_qp(&g->b)->resp.counters.rnr_nak_sent, 2);
	}
}

static void rnr_retry_7_means_for_ever(void **state)
{
	struct rig *g = *state;
	struct fx_wr wr;
	uint32_t i;

	rnr_open(g, 7, 1);
	wr = request(g, SF_OP_SEND, 8);
	fx_send(&g->a, &wr);
	for (i = 0; i < 1000; i++)
		assert_true(fx_next_timer(&g->fx));
	assert_int_equal(fx_state(&g->a), RNIC_RTS);
	expect_no_cqe(&g->a.scq);
	fx_recv_mr(&g->b, 1, &g->bm, 0, 64);
	expect_ok(&g->a.scq, SF_OP_SEND, g->first);
}

static void posting_a_receive_wakes_the_sender_without_a_timer(void **state)
{
	struct rig *g = *state;
	uint32_t i;

	rnr_open(g, 7, 1);
	for (i = 0; i < 10; i++) {
		struct fx_wr wr =
			request(g, i & 1 ? SF_OP_SEND : SF_OP_WRITE_IMM, 8);
		uint64_t index = fx_send(&g->a, &wr);

		expect_no_cqe(&g->a.scq);
		fx_recv_mr(&g->b, i, &g->bm, 0, 64);
		expect_ok(&g->a.scq, wr.opcode, index);
	}
	assert_int_equal(g->fx.now, 1000000000);
}

static void rnr_budget_is_full_again_after_progress(void **state)
{
	struct rig *g = *state;
	uint32_t round;

	rnr_open(g, 2, 1);
	for (round = 0; round < 4; round++) {
		struct fx_wr wr = request(g, SF_OP_SEND, 8);

		fx_send(&g->a, &wr);
		assert_true(fx_next_timer(&g->fx)); /* one is left */
		fx_recv_mr(&g->b, 1, &g->bm, 0, 64);
		expect_ok(&g->a.scq, SF_OP_SEND, g->a.sq_next - 1);
	}
}

static void requests_behind_an_rnr_wait_for_it(void **state)
{
	struct rig *g = *state;
	struct fx_wr send = request(g, SF_OP_SEND, 8);
	struct fx_wr write = request(g, SF_OP_WRITE, 8);

	fx_send(&g->a, &send);
	fx_send(&g->a, &write);
	expect_no_cqe(&g->a.scq);
	assert_kept(g->bm.ptr, 64);
	fx_recv_mr(&g->b, 1, &g->bm, 4096, 64);
	expect_ok(&g->a.scq, SF_OP_SEND, g->first);
	expect_ok(&g->a.scq, SF_OP_WRITE, g->first + 1);
}

/* ---- nobody answers ------------------------------------------------- */

/* a sends into the void: status, number of tries, time. */
static void times_out(struct rig *g, uint8_t timeout, uint8_t retry_cnt)
{
	uint64_t begin = g->fx.now, each = 4096ull << timeout;
	uint32_t timers = 0;
	struct fx_wr wr = request(g, SF_OP_WRITE, 8);
	uint64_t index = fx_send(&g->a, &wr);

	while (timers < 100 && fx_next_timer(&g->fx))
		timers++;
	assert_int_equal(timers, retry_cnt + 1);
	assert_int_equal(g->fx.now - begin, each * (retry_cnt + 1));
	expect_cqe(&g->a.scq, SF_OP_WRITE, SF_ST_RETRY_EXC_ERR, SF_SYN_TIMEOUT,
		   index);
	expect_failed_line(&g->a, index, SF_ST_RETRY_EXC_ERR, SF_SYN_TIMEOUT);
	assert_int_equal(fx_qp(&g->a)->req.counters.local_ack_timeout_err,
			 retry_cnt + 1);
	expect_no_event(&g->fx);
}

static void absent_peer_costs_retry_cnt_timeouts(void **state)
{
	struct rig *g = *state;
	uint32_t cnt, n;

	for (cnt = 0; cnt < 8; cnt++) {
		struct fx_opts o = fx_defaults;

		o.retry_cnt = cnt;
		o.timeout = 1 + cnt * 4;
		reopen(g, &o);
		assert_int_equal(rnic_qp_destroy(g->fx.r, 2, g->b.qpn, &n), 0);
		times_out(g, o.timeout, cnt);
	}
}

static void peer_in_the_wrong_state_does_not_answer(void **state)
{
	struct rig *g = *state;
	uint32_t s;

	for (s = RNIC_RESET; s <= RNIC_ERR; s++) {
		struct fx_opts o = fx_defaults;

		if (s >= RNIC_RTR && s <= RNIC_SQE)
			continue;
		o.retry_cnt = 2;
		reopen(g, &o);
		assert_int_equal(
			fx_modify(&g->b, s == RNIC_ERR ? s : RNIC_RESET), 0);
		if (s == RNIC_INIT)
			fx_connect(&g->b, &g->a, RNIC_INIT, &o, 0, 0);
		assert_int_equal(fx_state(&g->b), s);
		times_out(g, o.timeout, 2);
		assert_kept(g->bm.ptr, 64);
	}
}

static void
peer_on_another_device_than_the_path_says_does_not_answer(void **state)
{
	struct rig *g = *state;
	struct fx_opts o = fx_defaults;
	struct rnic_qp_attr attr;
	struct rnic_port_info port;
	uint32_t s, mask;

	reopen(g, &o);
	assert_int_equal(fx_modify(&g->a, RNIC_RESET), 0);
	fx_resync(&g->a);
	rnic_port_info(g->fx.r, 2, 1, &port);
	for (s = RNIC_INIT; s <= RNIC_RTS; s++) {
		mask = fx_attr(&g->a, &g->b, s, &o, o.psn, o.psn + 0x1000,
			       &attr);
		attr.av.dlid = port.lid;
		assert_int_equal(
			rnic_qp_modify(g->fx.r, 1, g->a.qpn, &attr, mask), 0);
	}
	g->first = g->a.sq_next;
	times_out(g, o.timeout, 7);
	assert_kept(g->bm.ptr, 64);
}

static void peer_that_is_connected_to_another_does_not_answer(void **state)
{
	struct rig *g = *state;
	struct fx_end c;

	fx_end_new(&c, &g->fx, g->fx.r, 3, 0, &fx_defaults);
	assert_int_equal(fx_modify(&g->b, RNIC_RESET), 0);
	fx_connect(&g->b, &c, RNIC_RTS, &fx_defaults, fx_defaults.psn + 0x1000,
		   fx_defaults.psn);
	times_out(g, fx_defaults.timeout, 7);
	assert_kept(g->bm.ptr, 64);
}

static void peer_that_comes_in_time_gets_the_request(void **state)
{
	struct rig *g = *state;
	struct fx_wr wr;

	assert_int_equal(fx_modify(&g->b, RNIC_RESET), 0);
	wr = request(g, SF_OP_WRITE, 8);
	fx_send(&g->a, &wr);
	fx_next_timer(&g->fx);
	fx_next_timer(&g->fx);
	fx_connect(&g->b, &g->a, RNIC_RTR, &fx_defaults,
		   fx_defaults.psn + 0x1000, fx_defaults.psn);
	fx_next_timer(&g->fx);
	expect_ok(&g->a.scq, SF_OP_WRITE, g->first);
	assert_memory_equal(g->bm.ptr, g->am.ptr, 8);
	assert_int_equal(fx_qp(&g->a)->req.retry_left, 7);
}

static void timeout_0_waits_for_ever(void **state)
{
	struct rig *g = *state;
	struct fx_opts o = fx_defaults;
	struct fx_wr wr;
	uint32_t n;

	o.timeout = 0;
	reopen(g, &o);
	assert_int_equal(rnic_qp_destroy(g->fx.r, 2, g->b.qpn, &n), 0);
	wr = request(g, SF_OP_WRITE, 8);
	fx_send(&g->a, &wr);
	assert_false(fx_next_timer(&g->fx));
	assert_int_equal(fx_state(&g->a), RNIC_RTS);
}

/* ---- completion queue full ------------------------------------------ */

static void overrun_of_the_send_cq_is_fatal_for_the_sender(void **state)
{
	struct rig *g = *state;
	struct fx_opts o = fx_defaults;
	struct fx_wr wr;
	uint32_t i;

	o.cq_log_depth = 2;
	reopen(g, &o);
	wr = request(g, SF_OP_WRITE, 8);
	for (i = 0; i < 4; i++)
		fx_send(&g->a, &wr);
	expect_no_event(&g->fx);

	fx_send(&g->a, &wr);

	assert_int_equal(g->fx.events, 2);
	for (i = 0; i < 2; i++) {
		bool cq = g->fx.event[i].type == RNIC_EVENT_CQ_ERR;

		assert_int_equal(g->fx.event[i].ctx, 1);
		assert_int_equal(g->fx.event[i].element,
				 cq ? 0xc0000001 : END_HANDLE(&g->a));
		assert_true(cq || g->fx.event[i].type == RNIC_EVENT_QP_FATAL);
	}
	assert_int_not_equal(g->fx.event[0].type, g->fx.event[1].type);
	assert_int_equal(fx_state(&g->a), RNIC_ERR);
	assert_true(fx_line(&g->a)->word & SF_LINE_ERROR);
	for (i = 0; i < 4; i++)
		expect_ok(&g->a.scq, SF_OP_WRITE, g->first + i);
	expect_no_cqe(&g->a.scq);
	/* A CQ in error takes nothing any more. */
	fx_send(&g->a, &wr);
	expect_no_cqe(&g->a.scq);
	assert_int_equal(g->fx.events, 2);
}

static void overrun_of_the_receive_cq_is_fatal_for_the_receiver(void **state)
{
	struct rig *g = *state;
	struct fx_opts o = fx_defaults;
	struct fx_wr wr;
	uint32_t i, seen = 0;
	struct sf_cqe cqe;

	o.cq_log_depth = 2;
	reopen(g, &o);
	wr = request(g, SF_OP_SEND, 8);
	for (i = 0; i < 5; i++) {
		fx_recv_mr(&g->b, i, &g->bm, 0, 64);
		fx_send(&g->a, &wr);
		assert_true(fx_poll(&g->a.scq, &cqe));
	}
	assert_int_equal(sf_cqe_status(cqe.word), SF_ST_REM_OP_ERR);
	assert_int_equal(fx_state(&g->b), RNIC_ERR);
	assert_true(fx_line(&g->b)->word & SF_LINE_ERROR);
	for (i = 0; i < g->fx.events; i++)
		seen |= 1u << g->fx.event[i].type;
	assert_int_equal(seen,
			 1 << RNIC_EVENT_CQ_ERR | 1 << RNIC_EVENT_QP_FATAL);
}

/* ---- ERR ------------------------------------------------------------ */

static void posting_in_err_flushes_at_once(void **state)
{
	struct rig *g = *state;
	struct fx_wr wr = request(g, SF_OP_WRITE, 8);
	uint32_t i;

	assert_int_equal(fx_modify(&g->a, RNIC_ERR), 0);
	assert_int_equal(fx_line(&g->a)->word, g->first | SF_LINE_ERROR);
	assert_true(fx_line(&g->a)->failed == SF_LINE_NO_FAILED);
	wr.flags = 0;
	for (i = 0; i < 40; i++) {
		uint64_t index = fx_send(&g->a, &wr);

		expect_cqe(&g->a.scq, SF_OP_WRITE, SF_ST_WR_FLUSH_ERR,
			   SF_SYN_QP_STATE, index);
		fx_recv_mr(&g->a, i, &g->am, 0, 8);
		expect_cqe(&g->a.rcq, SF_CQE_RECV, SF_ST_WR_FLUSH_ERR,
			   SF_SYN_QP_STATE, i);
	}
	expect_failed_line(&g->a, g->first, SF_ST_WR_FLUSH_ERR,
			   SF_SYN_QP_STATE);
	assert_kept(g->bm.ptr, 64);
	expect_no_event(&g->fx);
}

static void flush_waits_for_a_busy_completion_queue(void **state)
{
	struct rig *g = *state;
	struct fx_wr wr = request(g, SF_OP_WRITE, 8);

	fx_recv_mr(&g->a, 5, &g->am, 0, 8);
	fx_lock_busy(&fx_cq_state(&g->a.scq)->lock, 1);
	fx_lock_busy(&fx_cq_state(&g->a.rcq)->lock, 1);
	wr.opcode = 0xee;
	fx_send(&g->a, &wr);
	fx_settle(&g->fx);
	expect_cqe(&g->a.scq, 0xee, SF_ST_LOC_QP_OP_ERR, SF_SYN_OPCODE,
		   g->first);
	expect_cqe(&g->a.rcq, SF_CQE_RECV, SF_ST_WR_FLUSH_ERR, SF_SYN_QP_STATE,
		   5);
	expect_no_cqe(&g->a.scq);
	expect_no_cqe(&g->a.rcq);
}

static void hundred_requests_are_flushed_in_order(void **state)
{
	struct rig *g = *state;
	struct fx_opts o = fx_defaults;
	struct fx_wr wr;
	uint32_t i;

	o.sq_log_depth = o.rq_log_depth = 7;
	o.cq_log_depth = 8;
	reopen(g, &o);
	wr = request(g, SF_OP_SEND, 8);
	fx_send(&g->a, &wr); /* RNR */
	for (i = 1; i < 100; i++) {
		wr.flags = 0;
		fx_send(&g->a, &wr);
		fx_recv_mr(&g->a, i, &g->am, 0, 8);
	}
	assert_int_equal(fx_modify(&g->a, RNIC_ERR), 0);
	for (i = 0; i < 100; i++)
		expect_cqe(&g->a.scq, SF_OP_SEND, SF_ST_WR_FLUSH_ERR,
			   SF_SYN_QP_STATE, g->first + i);
	for (i = 1; i < 100; i++)
		expect_cqe(&g->a.rcq, SF_CQE_RECV, SF_ST_WR_FLUSH_ERR,
			   SF_SYN_QP_STATE, i);
	assert_int_equal(fx_line(&g->a)->word, g->first | SF_LINE_ERROR);
	assert_int_equal(fx_line(&g->a)->failed, g->first);
}

static void message_cut_off_in_the_middle_flushes_its_receive(void **state)
{
	struct rig *g = *state;
	struct fx_mr far = fx_mr_far(&g->a, 0, 4 << 20, 0);
	struct fx_mr big = fx_mr(&g->b, 4 << 20, FX_ALL_ACCESS);
	struct fx_wr wr = request(g, SF_OP_SEND, 0);

	/* The second MiB cannot be read any more. */
	g->fx.bad_va = far.addr + (1 << 20) + 5;
	g->fx.bad_len = 1;
	wr.sge[0] = fx_sge(&far, 0, 2 << 20);
	fx_recv_mr(&g->b, 1, &big, 0, 4 << 20);
	fails_here(g, wr, SF_ST_LOC_PROT_ERR, SF_SYN_FAULT);
	expect_no_cqe(&g->b.rcq);
	fx_modify(&g->b, RNIC_ERR);
	expect_cqe(&g->b.rcq, SF_CQE_RECV, SF_ST_WR_FLUSH_ERR, SF_SYN_QP_STATE,
		   1);
	expect_no_cqe(&g->b.rcq);
}

static struct fx_mr doomed;
static int doomed_after;

/* Deregisters once the responder has been locked so many times. */
static void destroy_mr_later(struct fx *fx, const struct rnic_lock *lock,
			     int rank)
{
	(void)lock;
	if (rank != FX_RANK_REQ || fx->helds || doomed_after--)
		return;
	fx->lock_hook = NULL;
	assert_int_equal(rnic_mr_destroy(fx->r, 2, doomed.key), 0);
}

static void region_that_goes_away_in_mid_message_ends_it(void **state)
{
	struct rig *g = *state;
	struct fx_mr big = fx_mr(&g->a, 4 << 20, 0);
	struct fx_wr wr = request(g, SF_OP_WRITE, 0);

	doomed = fx_mr(&g->b, 4 << 20, FX_ALL_ACCESS);
	memset(big.ptr, 7, 3 << 20);
	wr.sge[0] = fx_sge(&big, 0, 3 << 20);
	wr.remote_addr = doomed.addr;
	wr.rkey = doomed.key;
	/* Between the first MiB and the second nobody holds a lock. */
	doomed_after = 1;
	g->fx.lock_hook = destroy_mr_later;
	fails_here(g, wr, SF_ST_REM_ACCESS_ERR, SF_SYN_PEER);
	assert_int_equal(doomed.ptr[(1 << 20) - 1], 7);
	assert_int_equal(doomed.ptr[1 << 20], 0);
}

/* ---- busy locks ----------------------------------------------------- */

static void busy_responder_is_like_a_lost_packet(void **state)
{
	struct rig *g = *state;
	static const uint8_t ops[] = {SF_OP_SEND, SF_OP_WRITE, SF_OP_READ,
				      SF_OP_ATOMIC_FADD};
	size_t i;

	memset(g->bm.ptr, 0, 64);
	for (i = 0; i < sizeof(ops); i++) {
		struct fx_wr wr = request(g, ops[i], 8);

		wr.arg0 = 1;
		wr.remote_addr += 16 * i;
		fx_recv_mr(&g->b, i, &g->bm, 4096, 64);
		fx_lock_busy(&fx_qp(&g->b)->resp.lock, 2);
		fx_send(&g->a, &wr);
		expect_no_cqe(&g->a.scq);
		fx_settle(&g->fx);
		expect_ok(&g->a.scq, ops[i], g->a.sq_next - 1);
	}
	assert_int_equal(*(uint64_t *)(g->bm.ptr + 48), 1);
}

static void busy_receive_cq_delays_but_repeats_nothing(void **state)
{
	struct rig *g = *state;
	static const uint8_t ops[] = {SF_OP_SEND, SF_OP_WRITE_IMM};
	size_t i;

	for (i = 0; i < sizeof(ops); i++) {
		struct fx_wr wr = request(g, ops[i], 3000);
		struct sf_cqe cqe;

		fx_recv_mr(&g->b, i, &g->bm, 4096, 4096);
		fx_lock_busy(&fx_cq_state(&g->b.rcq)->lock, 3);
		fx_send(&g->a, &wr);
		expect_no_cqe(&g->b.rcq);
		fx_settle(&g->fx);
		expect_ok(&g->a.scq, ops[i], g->a.sq_next - 1);
		assert_true(fx_poll(&g->b.rcq, &cqe));
		assert_int_equal(cqe.wr, i);
		assert_int_equal(cqe.byte_len, 3000);
		expect_no_cqe(&g->b.rcq);
	}
	assert_int_equal(fx_qp(&g->b)->resp.rq_head, 2);
}

static void busy_send_cq_delays_but_repeats_nothing(void **state)
{
	struct rig *g = *state;
	static const uint8_t ops[] = {SF_OP_SEND, SF_OP_WRITE, SF_OP_READ,
				      SF_OP_ATOMIC_FADD, SF_OP_NOP};
	size_t i;

	memset(g->bm.ptr, 0, 64);
	for (i = 0; i < sizeof(ops); i++) {
		struct fx_wr wr = request(g, ops[i], 8);

		wr.arg0 = 1;
		wr.remote_addr += 16 * i;
		if (ops[i] == SF_OP_SEND)
			fx_recv_mr(&g->b, i, &g->bm, 4096, 64);
		fx_lock_busy(&fx_cq_state(&g->a.scq)->lock, 3);
		fx_send(&g->a, &wr);
		expect_no_cqe(&g->a.scq);
		fx_settle(&g->fx);
		expect_ok(&g->a.scq, ops[i], g->a.sq_next - 1);
		expect_no_cqe(&g->a.scq);
		expect_line(&g->a, g->a.sq_next);
	}
	assert_int_equal(*(uint64_t *)(g->bm.ptr + 48), 1);
	assert_int_equal(fx_qp(&g->b)->resp.counters.duplicate_request, 0);
}

static void ring_that_finds_the_engine_busy_leaves_a_mark(void **state)
{
	struct rig *g = *state;
	struct fx_wr wr = request(g, SF_OP_WRITE, 8);

	fx_post(&g->a, &wr);
	fx_lock_busy(&fx_qp(&g->a)->req.lock, 2);
	rnic_sq_ring(g->a.r, g->a.qpn);
	expect_no_cqe(&g->a.scq);
	assert_int_equal(fx_qp(&g->a)->req.mark, RNIC_MARK_RING);
	/* The engine takes it with it, whoever runs it next. */
	rnic_sq_ring(g->a.r, g->a.qpn);
	expect_ok(&g->a.scq, SF_OP_WRITE, g->first);
	assert_int_equal(fx_qp(&g->a)->req.mark, 0);
}

/* ---- the peer's process dies ---------------------------------------- */

static void who_waits_for_a_dead_peer_is_flushed(void **state)
{
	struct rig *g = *state;

	fx_recv_mr(&g->b, 60, &g->bm, 0, 8);
	fx_recv_mr(&g->b, 61, &g->bm, 0, 8);
	rnic_ctx_orphan_peers(g->fx.r, 1);
	rnic_ctx_reap(g->fx.r, 1);
	expect_cqe(&g->b.rcq, SF_CQE_RECV, SF_ST_WR_FLUSH_ERR, SF_SYN_QP_STATE,
		   60);
	expect_cqe(&g->b.rcq, SF_CQE_RECV, SF_ST_WR_FLUSH_ERR, SF_SYN_QP_STATE,
		   61);
	assert_int_equal(fx_state(&g->b), RNIC_ERR);
	expect_no_event(&g->fx);
}

static void request_to_a_dead_peer_ends_by_its_retries(void **state)
{
	struct rig *g = *state;
	struct fx_wr wr = request(g, SF_OP_SEND, 8);
	uint64_t index = fx_send(&g->a, &wr); /* no receive: waits */

	fx_recv_mr(&g->a, 62, &g->am, 0, 8);
	rnic_ctx_orphan_peers(g->fx.r, 2);
	rnic_ctx_reap(g->fx.r, 2);
	expect_no_cqe(&g->a.scq);
	fx_settle(&g->fx);
	expect_cqe(&g->a.scq, SF_OP_SEND, SF_ST_RETRY_EXC_ERR, SF_SYN_TIMEOUT,
		   index);
	expect_cqe(&g->a.rcq, SF_CQE_RECV, SF_ST_WR_FLUSH_ERR, SF_SYN_QP_STATE,
		   62);
}

static void death_of_a_stranger_is_not_noticed(void **state)
{
	struct rig *g = *state;
	struct fx_end c;

	/* It leads to b, but b does not lead there. */
	fx_end_new(&c, &g->fx, g->fx.r, 3, 0, &fx_defaults);
	fx_connect(&c, &g->b, RNIC_RTS, &fx_defaults, 1, 1);
	fx_recv_mr(&g->b, 60, &g->bm, 0, 8);
	rnic_ctx_orphan_peers(g->fx.r, 3);
	rnic_ctx_reap(g->fx.r, 3);
	expect_no_cqe(&g->b.rcq);
	assert_int_equal(fx_state(&g->b), RNIC_RTS);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		T(bad_lkey_is_a_local_protection_error),
		T(second_entry_of_a_gather_list_is_checked_too),
		T(lkey_of_another_domain_is_refused),
		T(one_byte_out_of_bounds_is_refused_at_both_ends),
		T(read_and_atomics_need_local_write),
		T(send_and_write_need_no_right_at_all),
		T(key_is_dead_after_destroy_also_when_its_entry_lives_again),
		T(unmapped_source_is_a_local_protection_error),
		T(unmapped_sink_of_a_read_is_a_local_protection_error),
		T(unmapped_result_of_an_atomic_is_a_local_protection_error),
		T(unknown_opcodes_are_operation_errors),
		T(flags_that_nobody_carries_out_are_operation_errors),
		T(gather_list_longer_than_the_slot_is_refused),
		T(inline_data_longer_than_the_slot_is_refused),
		T(inline_goes_with_a_payload_and_without_a_list),
		T(message_above_2_gib_is_a_length_error),
		T(atomic_result_takes_exactly_8_bytes),
		T(reads_and_atomics_need_a_depth_at_both_ends),
		T(bad_request_waits_for_its_turn),
		T(garbage_in_the_ring_never_crashes),
		T(bad_rkey_is_a_remote_access_error),
		T(rkey_of_another_domain_is_refused),
		T(remote_bounds_hold_to_the_byte),
		T(long_write_out_of_bounds_places_nothing),
		T(region_must_grant_the_right),
		T(queue_pair_must_grant_the_right),
		T(unaligned_atomic_is_an_invalid_request),
		T(unmapped_target_is_a_remote_operation_error),
		T(message_longer_than_its_buffer_fails_at_both_ends),
		T(bad_receive_buffer_fails_at_both_ends),
		T(only_what_a_message_reaches_is_checked),
		T(unmapped_receive_buffer_fails_at_both_ends),
		T(senders_unmapped_memory_leaves_the_receiver_alone),
		T(garbage_in_the_receive_queue_is_fatal_for_its_owner),
		T(rnr_retries_are_counted),
		T(rnr_timer_is_the_one_that_the_receiver_asked_for),
		T(rnr_retry_7_means_for_ever),
		T(posting_a_receive_wakes_the_sender_without_a_timer),
		T(rnr_budget_is_full_again_after_progress),
		T(requests_behind_an_rnr_wait_for_it),
		T(absent_peer_costs_retry_cnt_timeouts),
		T(peer_in_the_wrong_state_does_not_answer),
		T(peer_on_another_device_than_the_path_says_does_not_answer),
		T(peer_that_is_connected_to_another_does_not_answer),
		T(peer_that_comes_in_time_gets_the_request),
		T(timeout_0_waits_for_ever),
		T(overrun_of_the_send_cq_is_fatal_for_the_sender),
		T(overrun_of_the_receive_cq_is_fatal_for_the_receiver),
		T(posting_in_err_flushes_at_once),
		T(flush_waits_for_a_busy_completion_queue),
		T(hundred_requests_are_flushed_in_order),
		T(message_cut_off_in_the_middle_flushes_its_receive),
		T(region_that_goes_away_in_mid_message_ends_it),
		T(busy_responder_is_like_a_lost_packet),
		T(busy_receive_cq_delays_but_repeats_nothing),
		T(busy_send_cq_delays_but_repeats_nothing),
		T(ring_that_finds_the_engine_busy_leaves_a_mark),
		T(who_waits_for_a_dead_peer_is_flushed),
		T(request_to_a_dead_peer_ends_by_its_retries),
		T(death_of_a_stranger_is_not_noticed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
