// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Reliable connections, as long as nothing goes wrong. */
#include "rnic_fixture.h"

#define KEEP 0x5a

struct rig {
	struct fx fx;
	struct fx_end a, b;
	struct fx_mr am, bm;
};

static void rig_open(struct rig *g, const struct fx_opts *o)
{
	fx_open(&g->fx, RNIC_INFINIBAND);
	fx_pair(&g->fx, &g->a, &g->b, o);
	g->am = fx_mr(&g->a, 8 << 20, FX_ALL_ACCESS);
	g->bm = fx_mr(&g->b, 8 << 20, FX_ALL_ACCESS);
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

/* A request of @len bytes from the start of a's memory. */
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

/* Bytes of @mr outside [from, to) are still KEEP, for @around bytes. */
static void assert_kept(const struct fx_mr *mr, uint64_t from, uint64_t to,
			uint64_t around)
{
	uint64_t i;

	for (i = from > around ? from - around : 0; i < from; i++)
		assert_int_equal(mr->ptr[i], KEEP);
	for (i = to; i < to + around && i < mr->len; i++)
		assert_int_equal(mr->ptr[i], KEEP);
}

/* ---- the opcodes ---------------------------------------------------- */

static void send_fills_the_posted_receive(void **state)
{
	struct rig *g = *state;
	struct fx_wr wr = request(g, SF_OP_SEND, 100);
	struct sf_cqe cqe;
	uint64_t index;

	fx_fill(g->am.ptr, 100, 1);
	memset(g->bm.ptr, KEEP, 4096);
	fx_recv_mr(&g->b, 77, &g->bm, 512, 1000);

	index = fx_send(&g->a, &wr);

	cqe = expect_ok(&g->a.scq, SF_OP_SEND, index);
	assert_int_equal(cqe.qpn, g->a.qpn);
	assert_int_equal(sf_cqe_flags(cqe.word), 0);
	cqe = expect_ok(&g->b.rcq, SF_CQE_RECV, 77);
	assert_int_equal(cqe.qpn, g->b.qpn);
	assert_int_equal(cqe.src_qpn, g->a.qpn);
	assert_int_equal(cqe.byte_len, 100);
	assert_int_equal(sf_cqe_flags(cqe.word), 0);
	assert_int_equal(cqe.timestamp, 0);
	assert_memory_equal(g->bm.ptr + 512, g->am.ptr, 100);
	assert_kept(&g->bm, 512, 612, 512);
	expect_line(&g->a, index + 1);
	expect_no_cqe(&g->a.scq);
	expect_no_cqe(&g->a.rcq);
	expect_no_cqe(&g->b.scq);
	expect_no_event(&g->fx);
}

static void send_with_immediate_delivers_its_bytes_as_sent(void **state)
{
	struct rig *g = *state;
	struct fx_wr wr = request(g, SF_OP_SEND_IMM, 8);
	static const uint8_t bytes[4] = {0xde, 0xad, 0xbe, 0xef};
	struct sf_cqe cqe;

	memcpy(&wr.imm, bytes, 4);
	fx_recv_mr(&g->b, 1, &g->bm, 0, 8);

	fx_send(&g->a, &wr);

	cqe = expect_ok(&g->b.rcq, SF_CQE_RECV, 1);
	assert_int_equal(sf_cqe_flags(cqe.word), SF_CQE_IMM);
	assert_memory_equal(&cqe.imm, bytes, 4);
}

static void write_places_bytes_and_tells_nobody_over_there(void **state)
{
	struct rig *g = *state;
	struct fx_wr wr = request(g, SF_OP_WRITE, 300);
	struct sf_cqe cqe;
	uint64_t index;

	fx_fill(g->am.ptr, 300, 2);
	memset(g->bm.ptr, KEEP, 4096);
	wr.remote_addr += 1001;

	index = fx_send(&g->a, &wr);

	cqe = expect_ok(&g->a.scq, SF_OP_WRITE, index);
	assert_int_equal(cqe.byte_len, 300);
	assert_memory_equal(g->bm.ptr + 1001, g->am.ptr, 300);
	assert_kept(&g->bm, 1001, 1301, 1000);
	expect_no_cqe(&g->b.rcq);
	assert_int_equal(fx_qp(&g->b)->resp.rq_head, 0);
}

static void
write_with_immediate_takes_a_receive_but_not_its_buffer(void **state)
{
	struct rig *g = *state;
	struct fx_wr wr = request(g, SF_OP_WRITE_IMM, 300);
	struct sf_cqe cqe;

	fx_fill(g->am.ptr, 300, 3);
	memset(g->bm.ptr, KEEP, 4096);
	wr.imm = 0x01020304;
	wr.remote_addr += 2048;
	fx_recv_mr(&g->b, 9, &g->bm, 0, 300);

	fx_send(&g->a, &wr);

	cqe = expect_ok(&g->b.rcq, SF_CQE_RECV_RDMA_IMM, 9);
	assert_int_equal(cqe.byte_len, 300);
	assert_int_equal(cqe.imm, 0x01020304);
	assert_int_equal(sf_cqe_flags(cqe.word), SF_CQE_IMM);
	assert_memory_equal(g->bm.ptr + 2048, g->am.ptr, 300);
	assert_kept(&g->bm, 2048, 2348, 1000);
}

static void read_brings_remote_bytes(void **state)
{
	struct rig *g = *state;
	struct fx_wr wr = request(g, SF_OP_READ, 5000);
	struct sf_cqe cqe;
	uint64_t index;

	fx_fill(g->bm.ptr, 8192, 4);
	memset(g->am.ptr, KEEP, 8192);
	wr.sge[0] = fx_sge(&g->am, 100, 5000);
	wr.remote_addr += 7;

	index = fx_send(&g->a, &wr);

	cqe = expect_ok(&g->a.scq, SF_OP_READ, index);
	assert_int_equal(cqe.byte_len, 5000);
	assert_memory_equal(g->am.ptr + 100, g->bm.ptr + 7, 5000);
	assert_kept(&g->am, 100, 5100, 100);
	expect_no_cqe(&g->b.rcq);
}

static uint64_t *word(const struct fx_mr *mr, uint64_t off)
{
	return (uint64_t *)(mr->ptr + off);
}

static void compare_and_swap_swaps_only_what_it_expected(void **state)
{
	struct rig *g = *state;
	struct fx_wr wr = request(g, SF_OP_ATOMIC_CAS, 8);
	struct sf_cqe cqe;

	*word(&g->bm, 64) = 5;
	wr.remote_addr += 64;
	wr.arg0 = 100; /* swap */
	wr.arg1 = 5;   /* compare */
	fx_send(&g->a, &wr);
	cqe = expect_ok(&g->a.scq, SF_OP_ATOMIC_CAS, g->a.sq_next - 1);
	assert_int_equal(cqe.byte_len, 8);
	assert_int_equal(*word(&g->bm, 64), 100);
	assert_int_equal(*word(&g->am, 0), 5);

	fx_send(&g->a, &wr);
	expect_ok(&g->a.scq, SF_OP_ATOMIC_CAS, g->a.sq_next - 1);
	assert_int_equal(*word(&g->bm, 64), 100);
	assert_int_equal(*word(&g->am, 0), 100);
}

static void
fetch_and_add_wraps_at_64_bits_and_returns_the_old_value(void **state)
{
	struct rig *g = *state;
	struct fx_wr wr = request(g, SF_OP_ATOMIC_FADD, 8);

	*word(&g->bm, 0) = ~0ull - 1;
	*word(&g->bm, 8) = 7;
	wr.arg0 = 5;

	fx_send(&g->a, &wr);

	expect_ok(&g->a.scq, SF_OP_ATOMIC_FADD, g->a.sq_next - 1);
	assert_int_equal(*word(&g->bm, 0), 3);
	assert_int_equal(*word(&g->bm, 8), 7);
	assert_true(*word(&g->am, 0) == ~0ull - 1);
}

static void atomic_without_fetch_needs_no_buffer(void **state)
{
	struct rig *g = *state;
	struct fx_wr wr = request(g, SF_OP_ATOMIC_FADD, 8);

	memset(g->am.ptr, KEEP, 64);
	wr.flags |= SF_WQE_NOFETCH;
	wr.n_sge = 0;
	wr.arg0 = 1;

	fx_send(&g->a, &wr);

	expect_ok(&g->a.scq, SF_OP_ATOMIC_FADD, g->a.sq_next - 1);
	assert_int_equal(*word(&g->bm, 0), 1);
	assert_kept(&g->am, 0, 0, 64);
}

static void nop_completes_in_order_and_sends_nothing(void **state)
{
	struct rig *g = *state;
	struct fx_wr nop = {.opcode = SF_OP_NOP, .flags = SF_WQE_SIGNALED};
	struct fx_wr wr = request(g, SF_OP_WRITE, 8);
	uint32_t psn;

	fx_post(&g->a, &wr);
	fx_post(&g->a, &nop);
	fx_post(&g->a, &wr);
	psn = fx_qp(&g->b)->resp.epsn;
	rnic_sq_ring(g->a.r, g->a.qpn);

	expect_ok(&g->a.scq, SF_OP_WRITE, g->a.sq_next - 3);
	expect_ok(&g->a.scq, SF_OP_NOP, g->a.sq_next - 2);
	expect_ok(&g->a.scq, SF_OP_WRITE, g->a.sq_next - 1);
	assert_int_equal(fx_qp(&g->b)->resp.epsn, psn + 2);
	expect_line(&g->a, g->a.sq_next);
}

static void messages_of_zero_bytes_work_for_every_opcode(void **state)
{
	struct rig *g = *state;
	static const uint8_t ops[] = {SF_OP_SEND, SF_OP_SEND_IMM, SF_OP_WRITE,
				      SF_OP_WRITE_IMM, SF_OP_READ};
	struct sf_cqe cqe;
	size_t i;

	memset(g->bm.ptr, KEEP, 64);
	for (i = 0; i < sizeof(ops); i++) {
		bool takes = ops[i] != SF_OP_WRITE && ops[i] != SF_OP_READ;
		struct fx_wr wr = request(g, ops[i], 0);
		uint32_t psn = fx_qp(&g->b)->resp.epsn;

		/* No access takes place: the key does not matter. */
		wr.rkey = 0xdead;
		wr.sge[0].lkey = 0xdead;
		if (takes)
			fx_recv_mr(&g->b, i, &g->bm, 0, 64);
		fx_send(&g->a, &wr);
		cqe = expect_ok(&g->a.scq, ops[i], g->a.sq_next - 1);
		assert_int_equal(cqe.byte_len, 0);
		assert_int_equal(fx_qp(&g->b)->resp.epsn, psn + 1);
		if (takes) {
			assert_true(fx_poll(&g->b.rcq, &cqe));
			assert_int_equal(sf_cqe_status(cqe.word), 0);
			assert_int_equal(cqe.byte_len, 0);
			assert_int_equal(cqe.wr, i);
		}
		wr.n_sge = 0;
		if (takes)
			fx_recv(&g->b, i, NULL, 0);
		fx_send(&g->a, &wr);
		expect_ok(&g->a.scq, ops[i], g->a.sq_next - 1);
		if (takes)
			assert_true(fx_poll(&g->b.rcq, &cqe));
	}
	assert_kept(&g->bm, 0, 0, 64);
}

/* ---- payload -------------------------------------------------------- */

static void inline_data_fills_every_stride_to_its_last_byte(void **state)
{
	struct rig *g = *state;
	uint8_t data[SF_MAX_INLINE];
	uint32_t log;

	fx_fill(data, sizeof(data), 5);
	for (log = SF_SLOT_LOG_MIN; log <= SF_SLOT_LOG_MAX; log++) {
		struct fx_opts o = fx_defaults;
		uint32_t max = (1u << log) - SF_SLOT_DATA, len;

		o.sq_log_stride = log;
		reopen(g, &o);
		for (len = 0; len <= max; len++) {
			struct fx_wr wr = request(g, SF_OP_WRITE, 0);

			memset(g->bm.ptr, KEEP, 1024);
			wr.flags |= SF_WQE_INLINE;
			wr.n_sge = 0;
			wr.data = data;
			wr.len = len;
			wr.remote_addr += 8;
			fx_send(&g->a, &wr);
			expect_ok(&g->a.scq, SF_OP_WRITE, g->a.sq_next - 1);
			assert_memory_equal(g->bm.ptr + 8, data, len);
			assert_kept(&g->bm, 8, 8 + len, 8);
		}
	}
}

static void gather_lists_of_every_length_arrive_in_order(void **state)
{
	struct rig *g = *state;
	struct fx_opts o = fx_defaults;
	uint8_t want[SF_MAX_SEND_SGE * 40];
	uint32_t n, i;

	o.sq_log_stride = SF_SLOT_LOG_MAX;
	reopen(g, &o);
	fx_fill(g->am.ptr, 65536, 6);
	for (n = 1; n <= SF_MAX_SEND_SGE; n++) {
		struct fx_wr wr = request(g, SF_OP_SEND, 0);
		uint32_t len = 0;
		struct sf_cqe cqe;

		wr.n_sge = n;
		for (i = 0; i < n; i++) {
			uint32_t part = (i * 7 + n) % 40; /* 0 too */

			wr.sge[i] = fx_sge(&g->am, (n - i) * 1000, part);
			memcpy(want + len, g->am.ptr + (n - i) * 1000, part);
			len += part;
		}
		memset(g->bm.ptr, KEEP, 4096);
		fx_recv_mr(&g->b, n, &g->bm, 8, 2048);
		fx_send(&g->a, &wr);
		cqe = expect_ok(&g->b.rcq, SF_CQE_RECV, n);
		assert_int_equal(cqe.byte_len, len);
		assert_memory_equal(g->bm.ptr + 8, want, len);
		assert_kept(&g->bm, 8, 8 + len, 8);
		expect_ok(&g->a.scq, SF_OP_SEND, g->a.sq_next - 1);
	}
}

static void read_scatters_over_its_list(void **state)
{
	struct rig *g = *state;
	struct fx_wr wr = request(g, SF_OP_READ, 0);

	fx_fill(g->bm.ptr, 8192, 7);
	memset(g->am.ptr, KEEP, 65536);
	wr.n_sge = 3;
	wr.sge[0] = fx_sge(&g->am, 40000, 3);
	wr.sge[1] = fx_sge(&g->am, 20000, 4097);
	wr.sge[2] = fx_sge(&g->am, 1000, 1);

	fx_send(&g->a, &wr);

	expect_ok(&g->a.scq, SF_OP_READ, g->a.sq_next - 1);
	assert_memory_equal(g->am.ptr + 40000, g->bm.ptr, 3);
	assert_memory_equal(g->am.ptr + 20000, g->bm.ptr + 3, 4097);
	assert_memory_equal(g->am.ptr + 1000, g->bm.ptr + 4100, 1);
	assert_kept(&g->am, 40000, 40003, 100);
	assert_kept(&g->am, 20000, 24097, 100);
	assert_kept(&g->am, 1000, 1001, 100);
}

static void receive_scatters_over_31_entries(void **state)
{
	struct rig *g = *state;
	struct fx_opts o = fx_defaults;
	struct sf_sge sge[SF_MAX_RECV_SGE];
	struct fx_wr wr;
	uint32_t i, pos = 0;

	o.rq_log_stride = SF_RQ_LOG_MAX;
	reopen(g, &o);
	wr = request(g, SF_OP_SEND, 31 * 33);
	fx_fill(g->am.ptr, 31 * 33, 8);
	memset(g->bm.ptr, KEEP, 8192);
	for (i = 0; i < SF_MAX_RECV_SGE; i++)
		sge[i] = fx_sge(&g->bm, i * 100 + 10, 33);
	fx_recv(&g->b, 5, sge, SF_MAX_RECV_SGE);

	fx_send(&g->a, &wr);

	expect_ok(&g->b.rcq, SF_CQE_RECV, 5);
	for (i = 0; i < SF_MAX_RECV_SGE; i++, pos += 33) {
		assert_memory_equal(g->bm.ptr + i * 100 + 10, g->am.ptr + pos,
				    33);
		assert_kept(&g->bm, i * 100 + 10, i * 100 + 43, 10);
	}
}

static void inline_receive_puts_up_to_16_bytes_into_the_cqe(void **state)
{
	struct rig *g = *state;
	struct fx_opts o = fx_defaults;
	uint32_t len;

	o.inline_recv = SF_CQE_INLINE_MAX;
	reopen(g, &o);
	fx_fill(g->am.ptr, 64, 9);
	for (len = 0; len <= 20; len++) {
		struct fx_wr wr = request(g, SF_OP_SEND, len);
		bool in = len && len <= SF_CQE_INLINE_MAX;
		struct sf_cqe cqe;

		memset(g->bm.ptr, KEEP, 64);
		fx_recv_mr(&g->b, len, &g->bm, 0, 64);
		fx_send(&g->a, &wr);
		cqe = expect_ok(&g->b.rcq, SF_CQE_RECV, len);
		assert_int_equal(cqe.byte_len, len);
		assert_int_equal(sf_cqe_flags(cqe.word),
				 in ? SF_CQE_INLINE : 0);
		assert_memory_equal(in ? cqe.data : g->bm.ptr, g->am.ptr, len);
		assert_kept(&g->bm, 0, in ? 0 : len, 32);
	}
}

static const uint32_t sizes[] = {1,	  255,		 256,
				 257,	  4096,		 65537,
				 1 << 20, (1 << 20) + 1, (3 << 20) + 12345};

static uint32_t packets(uint32_t len, uint32_t mtu)
{
	return len ? (len + mtu - 1) / mtu : 1;
}

static void sizes_around_mtu_and_burst_arrive_at_every_mtu(void **state)
{
	struct rig *g = *state;
	static const uint8_t ops[] = {SF_OP_SEND, SF_OP_WRITE, SF_OP_READ,
				      SF_OP_WRITE_IMM};
	uint32_t mtu, msn;
	size_t i, k;

	for (mtu = RNIC_MTU_256; mtu <= RNIC_MTU_4096; mtu++) {
		struct fx_opts o = fx_defaults;
		uint32_t psn;

		o.mtu = mtu;
		reopen(g, &o);
		psn = o.psn;
		msn = 0;
		for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
			for (k = 0; k < sizeof(ops); k++) {
				struct fx_wr wr = request(g, ops[k], sizes[i]);
				struct fx_mr *to =
					ops[k] == SF_OP_READ ? &g->am : &g->bm;
				struct fx_mr *from =
					to == &g->am ? &g->bm : &g->am;
				bool takes = ops[k] == SF_OP_SEND ||
					     ops[k] == SF_OP_WRITE_IMM;

				fx_fill(from->ptr, sizes[i], mtu * 100 + i);
				memset(to->ptr, KEEP, sizes[i] + 64);
				if (takes)
					fx_recv_mr(&g->b, i, &g->bm, 0,
						   8 << 20);
				fx_send(&g->a, &wr);
				expect_ok(&g->a.scq, ops[k], g->a.sq_next - 1);
				assert_memory_equal(to->ptr, from->ptr,
						    sizes[i]);
				assert_kept(to, 0, sizes[i], 64);
				psn += packets(sizes[i], 128u << mtu);
				msn++;
				assert_int_equal(fx_qp(&g->b)->resp.epsn, psn);
				assert_int_equal(fx_qp(&g->b)->resp.msn, msn);
				if (takes) {
					struct sf_cqe cqe;

					assert_true(fx_poll(&g->b.rcq, &cqe));
					assert_int_equal(cqe.byte_len,
							 sizes[i]);
				}
			}
	}
}

static void long_message_does_not_keep_the_lock(void **state)
{
	struct rig *g = *state;
	struct fx_wr wr = request(g, SF_OP_WRITE, 6 << 20);
	unsigned int before = g->fx.locks;

	fx_send(&g->a, &wr);

	/* Requester and responder for each MiB, one CQ. */
	assert_true(g->fx.locks - before >= 6 * 2 + 1);
	expect_ok(&g->a.scq, SF_OP_WRITE, g->a.sq_next - 1);
}

/* ---- numbers -------------------------------------------------------- */

static void psn_and_msn_wrap_at_24_bits(void **state)
{
	struct rig *g = *state;
	struct fx_opts o = fx_defaults;
	uint32_t i;

	o.mtu = RNIC_MTU_256;
	o.psn = 0xfffffe;
	reopen(g, &o);
	fx_qp(&g->b)->resp.msn = 0xfffffd;
	for (i = 0; i < 6; i++) {
		struct fx_wr wr =
			request(g, i & 1 ? SF_OP_READ : SF_OP_WRITE, 700);

		fx_send(&g->a, &wr); /* 3 packets */
		expect_ok(&g->a.scq, wr.opcode, g->a.sq_next - 1);
		assert_int_equal(fx_qp(&g->b)->resp.epsn,
				 (0xfffffe + 3 * (i + 1)) & 0xffffff);
		assert_int_equal(fx_qp(&g->b)->resp.msn,
				 (0xfffffd + i + 1) & 0xffffff);
	}
	assert_int_equal(fx_qp(&g->b)->resp.counters.duplicate_request, 0);
}

static void ring_serves_many_laps(void **state)
{
	struct rig *g = *state;
	struct fx_opts o = fx_defaults;
	uint32_t i;

	o.sq_log_depth = 1;
	o.cq_log_depth = 1;
	reopen(g, &o);
	assert_int_equal(g->a.mem.sq_start, 2);
	for (i = 0; i < 3000; i++) {
		struct fx_wr wr = request(g, SF_OP_ATOMIC_FADD, 8);

		wr.arg0 = 1;
		fx_send(&g->a, &wr);
		expect_ok(&g->a.scq, SF_OP_ATOMIC_FADD, 2 + i);
		expect_line(&g->a, 3 + i);
	}
	assert_int_equal(*word(&g->bm, 0), 3000);
}

static void lap_wraps_at_32_bits(void **state)
{
	struct rig *g = *state;
	uint64_t start = (1ull << (32 + 4)) - 20;
	uint32_t i;

	/* As if 2^36 requests had been executed. */
	rnic_requester_reset(g->fx.r, fx_qp(&g->a), start & ~15ull);
	rnic_requester_start(fx_qp(&g->a), fx_defaults.psn);
	g->a.sq_next = start & ~15ull;
	for (i = 0; i < 64; i++) {
		struct fx_wr wr = request(g, SF_OP_ATOMIC_FADD, 8);

		wr.arg0 = 1;
		fx_send(&g->a, &wr);
		expect_ok(&g->a.scq, SF_OP_ATOMIC_FADD, (start & ~15ull) + i);
	}
	assert_int_equal(*word(&g->bm, 0), 64);
}

static void receive_index_goes_round_many_times(void **state)
{
	struct rig *g = *state;
	uint32_t i;

	for (i = 0; i < 200; i++) {
		struct fx_wr wr = request(g, SF_OP_SEND, 4);

		memcpy(g->am.ptr, &i, 4);
		fx_recv_mr(&g->b, i * 3, &g->bm, 0, 4);
		fx_send(&g->a, &wr);
		expect_ok(&g->b.rcq, SF_CQE_RECV, i * 3);
		expect_ok(&g->a.scq, SF_OP_SEND, g->a.sq_next - 1);
		assert_memory_equal(g->bm.ptr, &i, 4);
	}
}

/* ---- signaling and order -------------------------------------------- */

static void unsignaled_requests_move_the_line_only(void **state)
{
	struct rig *g = *state;
	struct fx_wr wr = request(g, SF_OP_WRITE, 8);
	uint32_t i;

	wr.flags = 0;
	for (i = 0; i < 40; i++) {
		fx_send(&g->a, &wr);
		expect_line(&g->a, g->a.sq_next);
	}
	expect_no_cqe(&g->a.scq);
}

static void sq_sig_all_makes_a_cqe_for_each(void **state)
{
	struct rig *g = *state;
	struct fx_opts o = fx_defaults;
	struct fx_wr wr;

	o.sig_all = 1;
	reopen(g, &o);
	wr = request(g, SF_OP_WRITE, 8);
	wr.flags = 0;
	fx_send(&g->a, &wr);
	expect_ok(&g->a.scq, SF_OP_WRITE, g->a.sq_next - 1);
}

static void batch_completes_in_order(void **state)
{
	struct rig *g = *state;
	static const uint8_t ops[] = {SF_OP_WRITE, SF_OP_READ, SF_OP_NOP,
				      SF_OP_ATOMIC_FADD, SF_OP_ATOMIC_CAS};
	uint64_t first = g->a.sq_next;
	uint32_t i;

	for (i = 0; i < 15; i++) {
		struct fx_wr wr = request(g, ops[i % 5], 8);

		if (wr.opcode == SF_OP_NOP)
			wr.n_sge = 0;
		fx_post(&g->a, &wr);
	}
	rnic_sq_ring(g->a.r, g->a.qpn);
	for (i = 0; i < 15; i++)
		expect_ok(&g->a.scq, ops[i % 5], first + i);
	expect_no_cqe(&g->a.scq);
}

static void uncommitted_slot_holds_up_all_behind_it(void **state)
{
	struct rig *g = *state;
	struct fx_wr wr = request(g, SF_OP_WRITE, 8);
	uint64_t i0 = fx_post(&g->a, &wr), commit;
	uint64_t i1 = fx_post(&g->a, &wr), i2 = fx_post(&g->a, &wr);

	commit = fx_slot(&g->a, i1)->commit;
	fx_slot(&g->a, i1)->commit = 0;
	rnic_sq_ring(g->a.r, g->a.qpn);
	expect_ok(&g->a.scq, SF_OP_WRITE, i0);
	expect_no_cqe(&g->a.scq);
	expect_line(&g->a, i1);

	/* The word of another lap is as good as none. */
	fx_slot(&g->a, i1)->commit = commit + (1ull << SF_COMMIT_LAP_SHIFT);
	rnic_sq_ring(g->a.r, g->a.qpn);
	fx_slot(&g->a, i1)->commit = commit - (1ull << SF_COMMIT_LAP_SHIFT);
	rnic_sq_ring(g->a.r, g->a.qpn);
	expect_no_cqe(&g->a.scq);

	fx_slot(&g->a, i1)->commit = commit;
	rnic_sq_ring(g->a.r, g->a.qpn);
	expect_ok(&g->a.scq, SF_OP_WRITE, i1);
	expect_ok(&g->a.scq, SF_OP_WRITE, i2);
}

static void doorbell_is_only_a_hint(void **state)
{
	struct rig *g = *state;
	struct sf_doorbell *db = rnic_at(g->a.r, g->a.mem.doorbells);
	static const uint64_t values[] = {0, ~0ull, 3, 1ull << 40};
	struct fx_wr wr = request(g, SF_OP_WRITE, 8);
	uint32_t i;

	for (i = 0; i < 4; i++) {
		uint64_t index = fx_post(&g->a, &wr);

		db->value = values[i];
		rnic_sq_ring(g->a.r, g->a.qpn);
		rnic_sq_ring(g->a.r, g->a.qpn);
		expect_ok(&g->a.scq, SF_OP_WRITE, index);
		expect_no_cqe(&g->a.scq);
	}
}

static void solicited_shows_in_the_receive_cqe(void **state)
{
	struct rig *g = *state;
	static const uint8_t ops[] = {SF_OP_SEND, SF_OP_SEND_IMM,
				      SF_OP_WRITE_IMM};
	size_t i;

	for (i = 0; i < sizeof(ops); i++) {
		struct fx_wr wr = request(g, ops[i], 3000);
		struct sf_cqe cqe;

		wr.flags |= SF_WQE_SOLICITED;
		fx_recv_mr(&g->b, i, &g->bm, 0, 4096);
		fx_send(&g->a, &wr);
		assert_true(fx_poll(&g->b.rcq, &cqe));
		assert_true(sf_cqe_flags(cqe.word) & SF_CQE_SOLICITED);
	}
}

static void lid_of_the_sender_is_in_the_receive_cqe(void **state)
{
	struct rig *g = *state;
	struct fx_wr wr = request(g, SF_OP_SEND, 8);
	struct rnic_port_info port;
	struct sf_cqe cqe;

	rnic_port_info(g->fx.r, 0, 1, &port);
	fx_recv_mr(&g->b, 1, &g->bm, 0, 64);
	fx_send(&g->a, &wr);
	cqe = expect_ok(&g->b.rcq, SF_CQE_RECV, 1);
	assert_int_equal(cqe.slid, port.lid);
	assert_int_equal(cqe.pkey_index, 0);
}

static void both_directions_work_at_once(void **state)
{
	struct rig *g = *state;
	uint32_t i;

	for (i = 0; i < 50; i++) {
		struct fx_wr wr = request(g, SF_OP_SEND, 64);
		struct fx_wr back = {.opcode = SF_OP_SEND, .n_sge = 1};

		back.sge[0] = fx_sge(&g->bm, 0, 64);
		fx_recv_mr(&g->b, i, &g->bm, 4096, 64);
		fx_recv_mr(&g->a, i, &g->am, 4096, 64);
		fx_send(&g->a, &wr);
		fx_send(&g->b, &back);
		expect_ok(&g->b.rcq, SF_CQE_RECV, i);
		expect_ok(&g->a.rcq, SF_CQE_RECV, i);
		expect_ok(&g->a.scq, SF_OP_SEND, g->a.sq_next - 1);
	}
}

static void queue_pair_can_talk_to_itself(void **state)
{
	struct rig *g = *state;
	struct fx_end e;
	struct fx_mr mr;
	struct fx_wr wr = {
		.opcode = SF_OP_SEND, .flags = SF_WQE_SIGNALED, .n_sge = 1};

	fx_end_new(&e, &g->fx, g->fx.r, 3, 0, &fx_defaults);
	fx_connect(&e, &e, RNIC_RTS, &fx_defaults, 5, 5);
	mr = fx_mr(&e, 8192, FX_ALL_ACCESS);
	fx_fill(mr.ptr, 100, 1);
	wr.sge[0] = fx_sge(&mr, 0, 100);
	fx_recv_mr(&e, 4, &mr, 4096, 100);

	fx_send(&e, &wr);

	expect_ok(&e.scq, SF_OP_SEND, e.sq_next - 1);
	expect_ok(&e.rcq, SF_CQE_RECV, 4);
	assert_memory_equal(mr.ptr, mr.ptr + 4096, 100);
}

static void ethernet_devices_connect_by_gid(void **state)
{
	struct rig *g = *state;
	uint8_t gid[16] = {0xfe, 0x80, [15] = 1};
	struct fx_mr m;
	struct fx_wr wr = {.opcode = SF_OP_WRITE,
			   .flags = SF_WQE_SIGNALED | SF_WQE_INLINE,
			   .data = "hello",
			   .len = 5};
	uint32_t dev;

	fx_close(&g->fx);
	fx_open(&g->fx, RNIC_ETHERNET);
	/* Two devices on one interface: the same address. */
	for (dev = 0; dev < 3; dev++)
		assert_int_equal(rnic_port_add_gid(g->fx.r, dev, 1, gid), 0);
	fx_pair(&g->fx, &g->a, &g->b, &fx_defaults);
	m = fx_mr(&g->b, 4096, FX_ALL_ACCESS);
	wr.remote_addr = m.addr;
	wr.rkey = m.key;

	fx_send(&g->a, &wr);

	expect_ok(&g->a.scq, SF_OP_WRITE, g->a.sq_next - 1);
	assert_memory_equal(m.ptr, "hello", 5);
}

static void two_mappings_of_one_arena_agree(void **state)
{
	struct rig *g = *state;
	uint32_t i;

	fx_close(&g->fx);
	fx_open(&g->fx, RNIC_INFINIBAND);
	fx_second_view(&g->fx);
	assert_ptr_not_equal(g->fx.view[0].r.sh, g->fx.view[1].r.sh);
	fx_pair(&g->fx, &g->a, &g->b, &fx_defaults);
	assert_ptr_equal(g->b.r, &g->fx.view[1].r);
	g->am = fx_mr(&g->a, 1 << 20, FX_ALL_ACCESS);
	g->bm = fx_mr(&g->b, 1 << 20, FX_ALL_ACCESS);
	for (i = 0; i < 100; i++) {
		static const uint8_t ops[] = {SF_OP_SEND, SF_OP_WRITE,
					      SF_OP_READ, SF_OP_ATOMIC_FADD};
		uint32_t op = ops[i % 4];
		uint32_t len = op == SF_OP_ATOMIC_FADD ? 8 : 1 + i * 50;
		struct fx_wr wr = request(g, op, len);
		struct fx_mr *from = op == SF_OP_READ ? &g->bm : &g->am;
		struct fx_mr *to = op == SF_OP_READ ? &g->am : &g->bm;

		fx_fill(from->ptr, len, i);
		wr.arg0 = 0;
		if (op == SF_OP_SEND)
			fx_recv_mr(&g->b, i, &g->bm, 0, 65536);
		/* Each is served in turn by the one and the other mapping. */
		fx_post(&g->a, &wr);
		rnic_sq_ring(&g->fx.view[i / 4 & 1].r, g->a.qpn);
		expect_ok(&g->a.scq, op, g->a.sq_next - 1);
		if (op == SF_OP_SEND)
			expect_ok(&g->b.rcq, SF_CQE_RECV, i);
		if (op != SF_OP_ATOMIC_FADD)
			assert_memory_equal(to->ptr, from->ptr, len);
	}
}

static void attach_refuses_what_another_build_formatted(void **state)
{
	struct rig *g = *state;
	struct rnic_shared *sh = g->fx.r->sh;
	struct rnic r;

	assert_int_equal(rnic_attach(&r, sh, FX_ARENA, &g->fx.ops, g), 0);
	assert_int_equal(rnic_attach(&r, sh, FX_ARENA - 4096, &g->fx.ops, g),
			 EPROTO);
	sh->version++;
	assert_int_equal(rnic_attach(&r, sh, FX_ARENA, &g->fx.ops, g), EPROTO);
	sh->version--;
	sh->size_of_state++;
	assert_int_equal(rnic_attach(&r, sh, FX_ARENA, &g->fx.ops, g), EPROTO);
	sh->size_of_state--;
	sh->magic = 0;
	assert_int_equal(rnic_attach(&r, sh, FX_ARENA, &g->fx.ops, g), EPROTO);
	sh->magic = RNIC_MAGIC;
}

/* ---- counters ------------------------------------------------------- */

static void counters_count_work_that_was_done(void **state)
{
	struct rig *g = *state;
	static const uint8_t ops[] = {SF_OP_SEND, SF_OP_WRITE, SF_OP_READ,
				      SF_OP_ATOMIC_FADD};
	static const uint32_t lens[] = {2500, 3 << 20, (2 << 20) + 1, 8};
	struct rnic_counters a, b;
	size_t i;

	for (i = 0; i < 4; i++) {
		struct fx_wr wr = request(g, ops[i], lens[i]);

		fx_recv_mr(&g->b, i, &g->bm, 0, 4096);
		fx_send(&g->a, &wr);
	}
	rnic_port_counters(g->fx.r, 0, 1, &a);
	rnic_port_counters(g->fx.r, 1, 1, &b);
	assert_int_equal(a.tx_requests, 4);
	assert_int_equal(a.xmit_bytes, 2500 + (3 << 20));
	assert_int_equal(b.rcv_bytes, 2500 + (3 << 20));
	assert_int_equal(a.rcv_bytes, (2 << 20) + 1);
	assert_int_equal(b.xmit_bytes, (2 << 20) + 1);
	assert_int_equal(b.rx_send_requests, 1);
	assert_int_equal(b.rx_write_requests, 1);
	assert_int_equal(b.rx_read_requests, 1);
	assert_int_equal(b.rx_atomic_requests, 1);
	assert_int_equal(a.rcv_packets, b.xmit_packets);
	assert_int_equal(b.rcv_packets, a.xmit_packets);
	assert_int_equal(a.local_ack_timeout_err | b.duplicate_request |
				 b.out_of_sequence | a.packet_seq_err,
			 0);
}

static void counters_survive_the_queue_pair(void **state)
{
	struct rig *g = *state;
	struct fx_wr wr = request(g, SF_OP_WRITE, 100);
	struct rnic_counters c;
	uint32_t n;

	fx_send(&g->a, &wr);
	rnic_qp_destroy(g->fx.r, 1, g->a.qpn, &n);
	rnic_port_counters(g->fx.r, 0, 1, &c);
	assert_int_equal(c.xmit_bytes, 100);
	assert_int_equal(fx_modify(&g->b, RNIC_RESET), 0);
	rnic_port_counters(g->fx.r, 1, 1, &c);
	assert_int_equal(c.rcv_bytes, 100);
	rnic_port_counters(g->fx.r, 1, 2, &c);
	assert_int_equal(c.rcv_bytes, 0);
}

static void tools_see_the_queues(void **state)
{
	struct rig *g = *state;
	struct fx_wr wr = request(g, SF_OP_SEND, 4);
	struct rnic_qp_info q[2];
	uint32_t it = 0;

	fx_recv_mr(&g->b, 0, &g->bm, 0, 4);
	fx_recv_mr(&g->b, 0, &g->bm, 0, 4);
	fx_send(&g->a, &wr);
	assert_true(rnic_qp_next(g->fx.r, &it, &q[0]));
	assert_true(rnic_qp_next(g->fx.r, &it, &q[1]));
	assert_false(rnic_qp_next(g->fx.r, &it, &q[0]));
	assert_int_equal(q[0].qpn, g->a.qpn);
	assert_int_equal(q[0].dest_qpn, g->b.qpn);
	assert_int_equal(q[0].state, RNIC_RTS);
	assert_int_equal(q[0].sq_head, g->a.sq_next);
	assert_int_equal(q[0].sq_posted, g->a.sq_next);
	assert_int_equal(q[1].rq_head, 1);
	assert_int_equal(q[1].rq_posted, 2);
	assert_int_equal(q[1].ctx, 2);
	assert_int_equal(q[1].dev, 1);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		T(send_fills_the_posted_receive),
		T(send_with_immediate_delivers_its_bytes_as_sent),
		T(write_places_bytes_and_tells_nobody_over_there),
		T(write_with_immediate_takes_a_receive_but_not_its_buffer),
		T(read_brings_remote_bytes),
		T(compare_and_swap_swaps_only_what_it_expected),
		T(fetch_and_add_wraps_at_64_bits_and_returns_the_old_value),
		T(atomic_without_fetch_needs_no_buffer),
		T(nop_completes_in_order_and_sends_nothing),
		T(messages_of_zero_bytes_work_for_every_opcode),
		T(inline_data_fills_every_stride_to_its_last_byte),
		T(gather_lists_of_every_length_arrive_in_order),
		T(read_scatters_over_its_list),
		T(receive_scatters_over_31_entries),
		T(inline_receive_puts_up_to_16_bytes_into_the_cqe),
		T(sizes_around_mtu_and_burst_arrive_at_every_mtu),
		T(long_message_does_not_keep_the_lock),
		T(psn_and_msn_wrap_at_24_bits),
		T(ring_serves_many_laps),
		T(lap_wraps_at_32_bits),
		T(receive_index_goes_round_many_times),
		T(unsignaled_requests_move_the_line_only),
		T(sq_sig_all_makes_a_cqe_for_each),
		T(batch_completes_in_order),
		T(uncommitted_slot_holds_up_all_behind_it),
		T(doorbell_is_only_a_hint),
		T(solicited_shows_in_the_receive_cqe),
		T(lid_of_the_sender_is_in_the_receive_cqe),
		T(both_directions_work_at_once),
		T(queue_pair_can_talk_to_itself),
		T(ethernet_devices_connect_by_gid),
		T(two_mappings_of_one_arena_agree),
		T(attach_refuses_what_another_build_formatted),
		T(counters_count_work_that_was_done),
		T(counters_survive_the_queue_pair),
		T(tools_see_the_queues),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
