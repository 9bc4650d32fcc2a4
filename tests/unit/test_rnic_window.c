// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Memory windows (IBTA vol. 1, 10.6.7), re-registration, device memory, the
 * null region, regions on demand, atomic writes.
 */
#include "rnic_fixture.h"

#define LEN 4096u
#define READ_WRITE (SF_ACCESS_REMOTE_READ | SF_ACCESS_REMOTE_WRITE)
#define ALL (FX_ALL_ACCESS | RNIC_MW_BIND)

/* b's memory is the target; a asks for it. */
struct rig {
	struct fx fx;
	struct fx_end a, b;
	struct fx_mr am, bm;
	uint32_t mw; /* number of a window of b's PD */
};

static struct rig *rig(uint32_t type)
{
	static struct rig g;

	memset(&g, 0, sizeof(g));
	fx_open(&g.fx, RNIC_INFINIBAND);
	fx_pair(&g.fx, &g.a, &g.b, &fx_defaults);
	g.am = fx_mr(&g.a, LEN, FX_ALL_ACCESS);
	g.bm = fx_mr(&g.b, LEN, ALL);
	fx_fill(g.am.ptr, LEN, 1);
	if (type)
		assert_int_equal(rnic_mw_create(g.fx.r, g.b.ctx, g.b.pdn, type,
						&g.mw),
				 0);
	return &g;
}

static uint32_t with_tag(uint32_t key, uint32_t tag)
{
	return (key & ~0xffu) | (tag & 0xff);
}

static struct fx_wr bind_wr(const struct rig *g, uint32_t key, uint64_t off,
			    uint64_t len, uint32_t access)
{
	return (struct fx_wr){
		.opcode = SF_OP_BIND_MW,
		.flags = SF_WQE_SIGNALED,
		.remote_addr = g->bm.addr + off,
		.rkey = key,
		.imm = g->bm.key,
		.bind = {.length = len, .access = access},
	};
}

static void bind(struct rig *g, uint32_t key, uint64_t off, uint64_t len,
		 uint32_t access)
{
	struct fx_wr wr = bind_wr(g, key, off, len, access);
	uint64_t index = fx_send(&g->b, &wr);

	expect_ok(&g->b.scq, SF_OP_BIND_MW, index);
	expect_line(&g->b, index + 1);
}

static void restart(struct rig *g)
{
	assert_int_equal(fx_modify(&g->a, RNIC_RESET), 0);
	assert_int_equal(fx_modify(&g->b, RNIC_RESET), 0);
	fx_resync(&g->a);
	fx_resync(&g->b);
	fx_connect(&g->a, &g->b, RNIC_RTS, &fx_defaults, 1, 2);
	fx_connect(&g->b, &g->a, RNIC_RTS, &fx_defaults, 2, 1);
	g->fx.events_seen = g->fx.events;
}

static struct fx_wr rdma_wr(const struct rig *g, uint32_t opcode, uint32_t key,
			    uint64_t addr, uint32_t len)
{
	return (struct fx_wr){
		.opcode = opcode,
		.flags = SF_WQE_SIGNALED,
		.remote_addr = addr,
		.rkey = key,
		.n_sge = 1,
		.sge = {fx_sge(&g->am, 0, len)},
	};
}

static void works(struct rig *g, uint32_t opcode, uint32_t key, uint64_t addr,
		  uint32_t len)
{
	struct fx_wr wr = rdma_wr(g, opcode, key, addr, len);

	expect_ok(&g->a.scq, opcode, fx_send(&g->a, &wr));
}

/* A remote access error; both ends start anew. */
static void is_refused(struct rig *g, uint32_t opcode, uint32_t key,
		       uint64_t addr, uint32_t len)
{
	struct fx_wr wr = rdma_wr(g, opcode, key, addr, len);
	uint64_t index = fx_send(&g->a, &wr);

	expect_cqe(&g->a.scq, opcode, SF_ST_REM_ACCESS_ERR, SF_SYN_PEER, index);
	restart(g);
}

static void bind_fails(struct rig *g, const struct fx_wr *wr, uint32_t syndrome)
{
	uint64_t index = fx_send(&g->b, wr);

	expect_cqe(&g->b.scq, wr->opcode, SF_ST_MW_BIND_ERR, syndrome, index);
	restart(g);
}

/* ---- type 1 ---------------------------------------------------------- */

static void a_window_opens_its_part_of_the_region(void **state)
{
	struct rig *g = rig(1);
	uint32_t key = g->mw + 1;

	(void)state;
	is_refused(g, SF_OP_WRITE, g->mw, g->bm.addr, 8);
	bind(g, key, 64, 128, READ_WRITE);
	works(g, SF_OP_WRITE, key, g->bm.addr + 64, 128);
	assert_memory_equal(g->bm.ptr + 64, g->am.ptr, 128);
	works(g, SF_OP_READ, key, g->bm.addr + 190, 2);
	is_refused(g, SF_OP_WRITE, key, g->bm.addr + 63, 2);
	is_refused(g, SF_OP_WRITE, key, g->bm.addr + 191, 2);
	fx_close(&g->fx);
}

static void a_window_has_the_rights_of_its_bind(void **state)
{
	struct rig *g = rig(1);

	(void)state;
	bind(g, g->mw + 1, 0, LEN, SF_ACCESS_REMOTE_READ);
	works(g, SF_OP_READ, g->mw + 1, g->bm.addr, 8);
	is_refused(g, SF_OP_WRITE, g->mw + 1, g->bm.addr, 8);
	is_refused(g, SF_OP_ATOMIC_FADD, g->mw + 1, g->bm.addr, 8);
	bind(g, g->mw + 2, 0, LEN, SF_ACCESS_REMOTE_ATOMIC);
	works(g, SF_OP_ATOMIC_FADD, g->mw + 2, g->bm.addr, 8);
	is_refused(g, SF_OP_READ, g->mw + 2, g->bm.addr, 8);
	fx_close(&g->fx);
}

static void rebinding_ends_the_old_key(void **state)
{
	struct rig *g = rig(1);

	(void)state;
	bind(g, g->mw + 1, 0, 64, READ_WRITE);
	bind(g, g->mw + 2, 64, 64, READ_WRITE);
	works(g, SF_OP_WRITE, g->mw + 2, g->bm.addr + 64, 64);
	is_refused(g, SF_OP_WRITE, g->mw + 1, g->bm.addr, 8);
	fx_close(&g->fx);
}

static void a_bind_of_no_bytes_closes_a_window_of_type_1(void **state)
{
	struct rig *g = rig(1);

	(void)state;
	bind(g, g->mw + 1, 0, 64, READ_WRITE);
	bind(g, g->mw + 2, 0, 0, 0);
	is_refused(g, SF_OP_WRITE, g->mw + 1, g->bm.addr, 8);
	is_refused(g, SF_OP_WRITE, g->mw + 2, g->bm.addr, 8);
	assert_int_equal(rnic_mr_destroy(g->fx.r, g->b.ctx, g->bm.key), 0);
	fx_close(&g->fx);
}

/* ---- type 2 ---------------------------------------------------------- */

static void a_window_of_type_2_has_the_key_that_its_owner_chose(void **state)
{
	struct rig *g = rig(2);
	uint32_t key = with_tag(g->mw, 0x77);

	(void)state;
	bind(g, key, 0, 64, READ_WRITE);
	works(g, SF_OP_WRITE, key, g->bm.addr, 64);
	is_refused(g, SF_OP_WRITE, g->mw, g->bm.addr, 8);
	fx_close(&g->fx);
}

static void a_zero_based_window_counts_from_zero(void **state)
{
	struct rig *g = rig(2);

	(void)state;
	bind(g, g->mw, 100, 64, READ_WRITE | SF_ACCESS_ZERO_BASED);
	works(g, SF_OP_WRITE, g->mw, 0, 64);
	assert_memory_equal(g->bm.ptr + 100, g->am.ptr, 64);
	is_refused(g, SF_OP_WRITE, g->mw, 1, 64);
	fx_close(&g->fx);
}

/* Another connection of the same protection domains. */
static void third_pair(struct rig *g, struct fx_end *c, struct fx_end *d)
{
	*c = g->a;
	*d = g->b;
	assert_int_equal(
		rnic_qp_create(c->r, c->ctx, &c->init, &c->qpn, &c->mem), 0);
	assert_int_equal(
		rnic_qp_create(d->r, d->ctx, &d->init, &d->qpn, &d->mem), 0);
	c->sq_next = c->mem.sq_start;
	d->sq_next = d->mem.sq_start;
	fx_connect(c, d, RNIC_RTS, &fx_defaults, 5, 6);
	fx_connect(d, c, RNIC_RTS, &fx_defaults, 6, 5);
}

static void
a_window_of_type_2_is_open_to_the_queue_pair_of_its_bind(void **state)
{
	struct rig *g = rig(2);
	struct fx_end c, d;
	struct fx_wr wr;

	(void)state;
	third_pair(g, &c, &d);
	bind(g, g->mw, 0, 64, READ_WRITE);
	works(g, SF_OP_WRITE, g->mw, g->bm.addr, 8);
	wr = rdma_wr(g, SF_OP_WRITE, g->mw, g->bm.addr, 8);
	expect_cqe(&g->a.scq, SF_OP_WRITE, SF_ST_REM_ACCESS_ERR, SF_SYN_PEER,
		   fx_send(&c, &wr));
	fx_close(&g->fx);
}

static void a_window_of_type_1_is_open_to_all_of_its_domain(void **state)
{
	struct rig *g = rig(1);
	struct fx_end c, d;
	struct fx_wr wr;

	(void)state;
	third_pair(g, &c, &d);
	bind(g, g->mw + 1, 0, 64, READ_WRITE);
	works(g, SF_OP_WRITE, g->mw + 1, g->bm.addr, 8);
	wr = rdma_wr(g, SF_OP_WRITE, g->mw + 1, g->bm.addr, 8);
	expect_ok(&g->a.scq, SF_OP_WRITE, fx_send(&c, &wr));
	fx_close(&g->fx);
}

static void a_bound_window_of_type_2_is_not_bound_again(void **state)
{
	struct rig *g = rig(2);
	struct fx_wr wr = bind_wr(g, g->mw + 1, 0, 64, READ_WRITE);

	(void)state;
	bind(g, g->mw, 0, 64, READ_WRITE);
	bind_fails(g, &wr, SF_SYN_KEY);
	works(g, SF_OP_WRITE, g->mw, g->bm.addr, 8); /* as before */
	fx_close(&g->fx);
}

/* ---- what a bind must not ask for ------------------------------------ */

static void a_bind_stays_within_region_and_rights(void **state)
{
	struct rig *g = rig(2);
	struct fx_mr plain = fx_mr(&g->b, 64, FX_ALL_ACCESS);
	struct fx_mr read_only =
		fx_mr(&g->b, 64, RNIC_REMOTE_READ | RNIC_MW_BIND);
	struct fx_wr wr;

	(void)state;
	wr = bind_wr(g, g->mw, 1, LEN, READ_WRITE);
	bind_fails(g, &wr, SF_SYN_BOUNDS);
	wr = bind_wr(g, g->mw, 0, 0, READ_WRITE);
	bind_fails(g, &wr, SF_SYN_LENGTH);
	wr = bind_wr(g, g->mw, 0, 8, READ_WRITE);
	wr.imm = plain.key; /* not for windows */
	wr.remote_addr = plain.addr;
	bind_fails(g, &wr, SF_SYN_ACCESS);
	wr.imm = read_only.key; /* C10-74: no write where none is */
	wr.remote_addr = read_only.addr;
	bind_fails(g, &wr, SF_SYN_ACCESS);
	wr.imm = g->bm.key ^ 1;
	bind_fails(g, &wr, SF_SYN_KEY);
	wr = bind_wr(g, g->mw, 0, 8, RNIC_ON_DEMAND);
	bind_fails(g, &wr, SF_SYN_ACCESS);
	fx_close(&g->fx);
}

static void only_a_window_of_the_domain_is_bound(void **state)
{
	struct rig *g = rig(1);
	struct fx_wr wr = bind_wr(g, g->bm.key, 0, 8, READ_WRITE);
	uint32_t foreign;

	(void)state;
	bind_fails(g, &wr, SF_SYN_KEY); /* a region */
	wr.rkey = 0xffffff00u;
	bind_fails(g, &wr, SF_SYN_KEY);
	assert_int_equal(
		rnic_mw_create(g->fx.r, g->a.ctx, g->a.pdn, 1, &foreign), 0);
	wr.rkey = foreign + 1;
	bind_fails(g, &wr, SF_SYN_PD);
	wr = bind_wr(g, g->mw + 1, 0, 8, READ_WRITE | SF_ACCESS_ZERO_BASED);
	bind_fails(g, &wr, SF_SYN_ACCESS); /* type 2 only */
	fx_close(&g->fx);
}

static void a_bind_has_no_data(void **state)
{
	struct rig *g = rig(1);
	struct fx_wr wr = bind_wr(g, g->mw + 1, 0, 8, READ_WRITE);
	uint64_t index;

	(void)state;
	wr.n_sge = 1;
	index = fx_send(&g->b, &wr);
	expect_cqe(&g->b.scq, SF_OP_BIND_MW, SF_ST_LOC_QP_OP_ERR, SF_SYN_SLOT,
		   index);
	fx_close(&g->fx);
}

static void a_window_is_no_local_key(void **state)
{
	struct rig *g = rig(1);
	struct fx_wr wr;
	uint64_t index;

	(void)state;
	bind(g, g->mw + 1, 0, 64, READ_WRITE);
	wr = (struct fx_wr){
		.opcode = SF_OP_SEND,
		.n_sge = 1,
		.sge = {{g->bm.addr, 8, g->mw + 1}},
	};
	index = fx_send(&g->b, &wr);
	expect_cqe(&g->b.scq, SF_OP_SEND, SF_ST_LOC_PROT_ERR, SF_SYN_ACCESS,
		   index);
	fx_close(&g->fx);
}

/* ---- invalidation ---------------------------------------------------- */

static struct fx_wr inv_wr(uint32_t opcode, uint32_t key)
{
	return (struct fx_wr){
		.opcode = opcode, .flags = SF_WQE_SIGNALED, .imm = key};
}

static void local_invalidation_closes_a_window(void **state)
{
	struct rig *g = rig(2);
	struct fx_wr wr = inv_wr(SF_OP_LOCAL_INV, g->mw);

	(void)state;
	bind(g, g->mw, 0, 64, READ_WRITE);
	expect_ok(&g->b.scq, SF_OP_LOCAL_INV, fx_send(&g->b, &wr));
	is_refused(g, SF_OP_WRITE, g->mw, g->bm.addr, 8);
	bind(g, g->mw + 1, 0, 64, READ_WRITE);
	works(g, SF_OP_WRITE, g->mw + 1, g->bm.addr, 8);
	fx_close(&g->fx);
}

static void only_an_open_window_of_type_2_is_invalidated(void **state)
{
	struct rig *g = rig(2);
	struct fx_wr wr = inv_wr(SF_OP_LOCAL_INV, g->mw);
	uint32_t type_1;

	(void)state;
	bind_fails(g, &wr, SF_SYN_KEY); /* closed */
	bind(g, g->mw, 0, 64, READ_WRITE);
	wr.imm = g->mw + 1;
	bind_fails(g, &wr, SF_SYN_KEY);
	wr.imm = g->bm.key;
	bind_fails(g, &wr, SF_SYN_KEY);
	assert_int_equal(
		rnic_mw_create(g->fx.r, g->b.ctx, g->b.pdn, 1, &type_1), 0);
	bind(g, type_1 + 1, 0, 64, READ_WRITE);
	wr.imm = type_1 + 1;
	bind_fails(g, &wr, SF_SYN_ACCESS);
	works(g, SF_OP_WRITE, g->mw, g->bm.addr, 8);
	works(g, SF_OP_WRITE, type_1 + 1, g->bm.addr, 8);
	fx_close(&g->fx);
}

static void a_send_invalidates_a_window_of_its_target(void **state)
{
	struct rig *g = rig(2);
	struct fx_wr wr = inv_wr(SF_OP_SEND_INV, g->mw);
	struct sf_cqe cqe;

	(void)state;
	bind(g, g->mw, 0, 64, READ_WRITE);
	fx_recv_mr(&g->b, 3, &g->bm, 512, 64);
	wr.n_sge = 1;
	wr.sge[0] = fx_sge(&g->am, 0, 40);
	expect_ok(&g->a.scq, SF_OP_SEND_INV, fx_send(&g->a, &wr));
	cqe = expect_ok(&g->b.rcq, SF_CQE_RECV, 3);
	assert_int_equal(sf_cqe_flags(cqe.word), SF_CQE_INV);
	assert_int_equal(cqe.imm, g->mw);
	assert_int_equal(cqe.byte_len, 40);
	assert_memory_equal(g->bm.ptr + 512, g->am.ptr, 40);
	is_refused(g, SF_OP_WRITE, g->mw, g->bm.addr, 8);
	fx_close(&g->fx);
}

static void a_send_that_invalidates_nothing_fails_at_both_ends(void **state)
{
	struct rig *g = rig(2);
	struct fx_wr wr = inv_wr(SF_OP_SEND_INV, g->mw);
	uint64_t index;

	(void)state;
	fx_recv_mr(&g->b, 3, &g->bm, 512, 64);
	index = fx_send(&g->a, &wr);
	expect_cqe(&g->a.scq, SF_OP_SEND_INV, SF_ST_REM_ACCESS_ERR, SF_SYN_PEER,
		   index);
	expect_cqe(&g->b.rcq, SF_CQE_RECV, SF_ST_LOC_ACCESS_ERR, SF_SYN_KEY, 3);
	assert_int_equal(fx_state(&g->b), RNIC_ERR);
	fx_close(&g->fx);
}

static void a_repeated_invalidating_send_invalidates_once(void **state)
{
	struct rig *g = rig(2);
	struct fx_wr wr = inv_wr(SF_OP_SEND_INV, g->mw);
	uint64_t index;

	(void)state;
	bind(g, g->mw, 0, 64, READ_WRITE);
	fx_recv_mr(&g->b, 3, &g->bm, 512, 64);
	/* The message is carried out, but its CQE has to wait. */
	fx_lock_busy(&fx_cq_state(&g->b.rcq)->lock, 1);
	index = fx_send(&g->a, &wr);
	expect_no_cqe(&g->a.scq);
	fx_settle(&g->fx);
	expect_ok(&g->a.scq, SF_OP_SEND_INV, index);
	expect_ok(&g->b.rcq, SF_CQE_RECV, 3);
	fx_close(&g->fx);
}

static void a_bind_that_finds_a_responder_busy_comes_again(void **state)
{
	struct rig *g = rig(2);
	struct fx_wr wr = bind_wr(g, g->mw, 0, 64, READ_WRITE);
	uint64_t index;

	(void)state;
	fx_lock_busy(&fx_qp(&g->b)->resp.lock, 1);
	index = fx_send(&g->b, &wr);
	expect_no_cqe(&g->b.scq);
	fx_settle(&g->fx);
	expect_ok(&g->b.scq, SF_OP_BIND_MW, index);
	works(g, SF_OP_WRITE, g->mw, g->bm.addr, 8);
	fx_close(&g->fx);
}

/* UC: WRITE through a window works, what is refused is dropped. */
static void windows_work_on_unreliable_connections(void **state)
{
	struct fx_opts o = fx_defaults;
	static struct rig g;
	struct fx_wr wr;
	uint64_t index;

	(void)state;
	o.type = RNIC_QPT_UC;
	memset(&g, 0, sizeof(g));
	fx_open(&g.fx, RNIC_INFINIBAND);
	fx_pair(&g.fx, &g.a, &g.b, &o);
	g.am = fx_mr(&g.a, LEN, FX_ALL_ACCESS);
	g.bm = fx_mr(&g.b, LEN, ALL);
	fx_fill(g.am.ptr, LEN, 1);
	assert_int_equal(rnic_mw_create(g.fx.r, g.b.ctx, g.b.pdn, 2, &g.mw), 0);
	bind(&g, g.mw, 0, 64, READ_WRITE);
	works(&g, SF_OP_WRITE, g.mw, g.bm.addr, 64);
	assert_memory_equal(g.bm.ptr, g.am.ptr, 64);
	wr = inv_wr(SF_OP_LOCAL_INV, g.mw);
	expect_ok(&g.b.scq, SF_OP_LOCAL_INV, fx_send(&g.b, &wr));
	memset(g.bm.ptr, 0, 64);
	works(&g, SF_OP_WRITE, g.mw, g.bm.addr, 64);
	assert_int_equal(g.bm.ptr[0] | g.bm.ptr[63], 0);
	/* A bind that fails is the send queue's own error: SQE. */
	index = fx_send(&g.b, &wr);
	expect_cqe(&g.b.scq, SF_OP_LOCAL_INV, SF_ST_MW_BIND_ERR, SF_SYN_KEY,
		   index);
	assert_int_equal(fx_state(&g.b), RNIC_SQE);
	wr = inv_wr(SF_OP_SEND_INV, g.mw);
	index = fx_send(&g.a, &wr);
	expect_cqe(&g.a.scq, SF_OP_SEND_INV, SF_ST_LOC_QP_OP_ERR, SF_SYN_OPCODE,
		   index);
	fx_close(&g.fx);
}

/* ---- life ------------------------------------------------------------ */

static void a_region_with_windows_stays(void **state)
{
	struct rig *g = rig(2);
	struct rnic_mr_attr attr = {.access = RNIC_LOCAL_WRITE};

	(void)state;
	bind(g, g->mw, 0, 64, READ_WRITE);
	assert_int_equal(rnic_mr_destroy(g->fx.r, g->b.ctx, g->bm.key), EBUSY);
	assert_int_equal(rnic_mr_modify(g->fx.r, g->b.ctx, g->bm.key,
					RNIC_MR_ACCESS, &attr),
			 EBUSY);
	works(g, SF_OP_WRITE, g->bm.key, g->bm.addr, 8);
	works(g, SF_OP_WRITE, g->mw, g->bm.addr, 8);
	assert_int_equal(rnic_mw_destroy(g->fx.r, g->b.ctx, g->mw), 0);
	assert_int_equal(rnic_mr_destroy(g->fx.r, g->b.ctx, g->bm.key), 0);
	fx_close(&g->fx);
}

static void a_window_that_is_gone_opens_nothing(void **state)
{
	struct rig *g = rig(2);
	uint32_t again;

	(void)state;
	bind(g, g->mw + 5, 0, 64, READ_WRITE);
	assert_int_equal(rnic_mw_destroy(g->fx.r, g->b.ctx, g->mw), 0);
	assert_int_equal(rnic_mw_destroy(g->fx.r, g->b.ctx, g->mw), EINVAL);
	is_refused(g, SF_OP_WRITE, g->mw + 5, g->bm.addr, 8);
	/* Its entry's next user gets a key that it never had. */
	g->fx.r->sh->keys.next = SF_KEY_INDEX(g->mw);
	assert_int_equal(rnic_mw_create(g->fx.r, g->b.ctx, g->b.pdn, 1, &again),
			 0);
	assert_int_equal(again, g->mw + 6);
	fx_close(&g->fx);
}

static void windows_are_counted_and_of_two_types(void **state)
{
	struct rig *g = rig(1);
	uint32_t key;

	(void)state;
	assert_int_equal(rnic_mw_create(g->fx.r, g->b.ctx, g->b.pdn, 3, &key),
			 EINVAL);
	assert_int_equal(rnic_mw_create(g->fx.r, g->a.ctx, g->b.pdn, 1, &key),
			 EINVAL);
	assert_int_equal(rnic_pd_destroy(g->fx.r, g->b.ctx, g->b.pdn), EBUSY);
	g->fx.r->sh->windows += RNIC_MAX_MW - 2;
	assert_int_equal(rnic_mw_create(g->fx.r, g->b.ctx, g->b.pdn, 1, &key),
			 ENOMEM);
	g->fx.r->sh->windows -= RNIC_MAX_MW - 2;
	/* Of a window nothing is a region's. */
	assert_int_equal(rnic_mr_destroy(g->fx.r, g->b.ctx, g->mw), EINVAL);
	assert_int_equal(rnic_mw_destroy(g->fx.r, g->b.ctx, g->bm.key), EINVAL);
	fx_close(&g->fx);
}

static void windows_of_a_dead_process_close(void **state)
{
	struct rig *g = rig(2);
	struct fx_wr wr = rdma_wr(g, SF_OP_WRITE, g->mw, g->bm.addr, 0);
	struct rnic_objects n;

	(void)state;
	bind(g, g->mw, 0, 64, READ_WRITE);
	wr.flags |= SF_WQE_INLINE;
	wr.data = "dead";
	wr.len = 4;
	rnic_space_reap(g->fx.r, FX_FAR);
	rnic_count_objects(g->fx.r, ~0u, &n);
	assert_int_equal(n.mrs, 0);
	assert_int_equal(n.mws, 1);
	wr.n_sge = 0;
	expect_cqe(&g->a.scq, SF_OP_WRITE, SF_ST_REM_ACCESS_ERR, SF_SYN_PEER,
		   fx_send(&g->a, &wr));
	fx_close(&g->fx);
}

/* ---- re-registration ------------------------------------------------- */

static void reregistration_keeps_the_key_and_ends_what_was(void **state)
{
	struct rig *g = rig(0);
	struct fx_mr other = fx_mr(&g->b, LEN, 0);
	struct rnic_mr_attr attr = {
		.addr = other.addr,
		.len = 64,
		.iova = other.addr,
		.space = FX_FAR,
		.nseg = 1,
		.seg = {{other.addr, 64,
			 (uint64_t)(other.ptr - (uint8_t *)g->fx.r->sh)}},
	};

	(void)state;
	assert_int_equal(rnic_mr_modify(g->fx.r, g->b.ctx, g->bm.key,
					RNIC_MR_TRANSLATION, &attr),
			 0);
	works(g, SF_OP_WRITE, g->bm.key, other.addr, 64);
	assert_memory_equal(other.ptr, g->am.ptr, 64);
	is_refused(g, SF_OP_WRITE, g->bm.key, g->bm.addr, 8);
	is_refused(g, SF_OP_WRITE, g->bm.key, other.addr + 60, 8);
	fx_close(&g->fx);
}

static void reregistration_changes_rights(void **state)
{
	struct rig *g = rig(0);
	struct rnic_mr_attr attr = {.access = RNIC_REMOTE_READ, .nseg = 0};

	(void)state;
	assert_int_equal(rnic_mr_modify(g->fx.r, g->b.ctx, g->bm.key,
					RNIC_MR_ACCESS, &attr),
			 0);
	is_refused(g, SF_OP_WRITE, g->bm.key, g->bm.addr, 8);
	attr.access = RNIC_REMOTE_WRITE; /* without the local one */
	assert_int_equal(rnic_mr_modify(g->fx.r, g->b.ctx, g->bm.key,
					RNIC_MR_ACCESS, &attr),
			 EINVAL);
	fx_close(&g->fx);
}

static void reregistration_moves_to_another_domain(void **state)
{
	struct rig *g = rig(0);
	struct rnic_mr_attr attr = {};

	(void)state;
	assert_int_equal(rnic_pd_create(g->fx.r, g->b.ctx, 0, &attr.pdn), 0);
	assert_int_equal(rnic_mr_modify(g->fx.r, g->b.ctx, g->bm.key,
					RNIC_MR_PD, &attr),
			 0);
	is_refused(g, SF_OP_WRITE, g->bm.key, g->bm.addr, 8);
	assert_int_equal(rnic_pd_destroy(g->fx.r, g->b.ctx, attr.pdn), EBUSY);
	attr.pdn = g->b.pdn;
	assert_int_equal(rnic_mr_modify(g->fx.r, g->b.ctx, g->bm.key,
					RNIC_MR_PD, &attr),
			 0);
	works(g, SF_OP_WRITE, g->bm.key, g->bm.addr, 8);
	attr.pdn = g->a.pdn; /* another context's */
	assert_int_equal(rnic_mr_modify(g->fx.r, g->b.ctx, g->bm.key,
					RNIC_MR_PD, &attr),
			 EINVAL);
	fx_close(&g->fx);
}

/* ---- other kinds of regions ------------------------------------------ */

static struct fx_mr dm_mr(struct rig *g, struct fx_end *e, uint32_t *dm,
			  uint64_t len)
{
	struct rnic_mr_attr attr = {
		.len = len,
		.access = FX_ALL_ACCESS | RNIC_ZERO_BASED,
		.pdn = e->pdn,
	};
	struct fx_mr mr = {.len = len};
	uint64_t off;

	assert_int_equal(rnic_dm_create(g->fx.r, e->ctx, 0, len, dm, &off), 0);
	attr.dm = *dm;
	mr.ptr = rnic_at(g->fx.r, off);
	assert_int_equal(rnic_mr_create(g->fx.r, e->ctx, &attr, &mr.key), 0);
	return mr;
}

static void device_memory_is_memory(void **state)
{
	struct rig *g = rig(0);
	uint32_t dm;
	struct fx_mr mr = dm_mr(g, &g->b, &dm, 256);
	struct fx_wr wr;

	(void)state;
	works(g, SF_OP_WRITE, mr.key, 16, 64);
	assert_memory_equal(mr.ptr + 16, g->am.ptr, 64);
	memset(mr.ptr + 128, 0, 8);
	wr = rdma_wr(g, SF_OP_ATOMIC_FADD, mr.key, 128, 8);
	wr.arg0 = 5;
	expect_ok(&g->a.scq, SF_OP_ATOMIC_FADD, fx_send(&g->a, &wr));
	assert_int_equal(*(uint64_t *)(mr.ptr + 128), 5);
	is_refused(g, SF_OP_WRITE, mr.key, 200, 64);
	fx_close(&g->fx);
}

static void device_memory_stays_while_a_region_lies_in_it(void **state)
{
	struct rig *g = rig(0);
	struct rnic_mr_attr attr = {.len = 257, .pdn = g->b.pdn};
	uint32_t dm, key;
	struct fx_mr mr = dm_mr(g, &g->b, &dm, 256);
	uint64_t off;

	(void)state;
	attr.dm = dm;
	assert_int_equal(rnic_mr_create(g->fx.r, g->b.ctx, &attr, &key),
			 EINVAL);
	assert_int_equal(rnic_dm_destroy(g->fx.r, g->b.ctx, dm), EBUSY);
	assert_int_equal(rnic_mr_modify(g->fx.r, g->b.ctx, mr.key,
					RNIC_MR_TRANSLATION, &attr),
			 EINVAL);
	assert_int_equal(rnic_mr_destroy(g->fx.r, g->b.ctx, mr.key), 0);
	assert_int_equal(rnic_dm_destroy(g->fx.r, g->a.ctx, dm), EINVAL);
	assert_int_equal(rnic_dm_destroy(g->fx.r, g->b.ctx, dm), 0);
	assert_int_equal(rnic_dm_create(g->fx.r, g->b.ctx, 0,
					RNIC_MAX_DM_SIZE + 1, &dm, &off),
			 ENOMEM);
	fx_close(&g->fx);
}

static struct fx_mr null_mr(struct fx_end *e)
{
	struct rnic_mr_attr attr = {
		.len = UINT64_MAX,
		.access = RNIC_LOCAL_WRITE,
		.pdn = e->pdn,
		.space = RNIC_SPACE_NULL,
	};
	struct fx_mr mr = {.len = UINT64_MAX};

	assert_int_equal(rnic_mr_create(e->r, e->ctx, &attr, &mr.key), 0);
	return mr;
}

static void a_null_region_reads_as_zeros_and_drops_what_is_written(void **state)
{
	struct rig *g = rig(0);
	struct fx_mr null = null_mr(&g->a), far;
	struct fx_wr wr = rdma_wr(g, SF_OP_WRITE, g->bm.key, g->bm.addr, 0);

	(void)state;
	memset(g->bm.ptr, 0x55, 200);
	/* Gathered: 10 bytes of ours, zeros, 10 bytes of ours. */
	wr.n_sge = 3;
	wr.sge[0] = fx_sge(&g->am, 0, 10);
	wr.sge[1] = (struct sf_sge){~0ull - 100, 80, null.key};
	wr.sge[2] = fx_sge(&g->am, 10, 10);
	expect_ok(&g->a.scq, SF_OP_WRITE, fx_send(&g->a, &wr));
	assert_memory_equal(g->bm.ptr, g->am.ptr, 10);
	assert_int_equal(g->bm.ptr[10] | g->bm.ptr[89], 0);
	assert_memory_equal(g->bm.ptr + 90, g->am.ptr + 10, 10);
	/* Scattered: the middle is dropped. */
	wr.opcode = SF_OP_READ;
	wr.sge[0] = fx_sge(&g->am, 100, 10);
	wr.sge[2] = fx_sge(&g->am, 110, 10);
	fx_fill(g->bm.ptr, 100, 9);
	expect_ok(&g->a.scq, SF_OP_READ, fx_send(&g->a, &wr));
	assert_memory_equal(g->am.ptr + 100, g->bm.ptr, 10);
	assert_memory_equal(g->am.ptr + 110, g->bm.ptr + 90, 10);
	/* To memory that only the host can reach, more than a piece. */
	far = fx_mr_far(&g->b, 0, 40000, FX_ALL_ACCESS);
	memset(far.ptr, 0x55, 40001);
	wr = rdma_wr(g, SF_OP_WRITE, far.key, far.addr, 0);
	wr.sge[0] = (struct sf_sge){0, 40000, null.key};
	expect_ok(&g->a.scq, SF_OP_WRITE, fx_send(&g->a, &wr));
	assert_int_equal(far.ptr[0] | far.ptr[20000] | far.ptr[39999], 0);
	assert_int_equal(far.ptr[40000], 0x55);
	fx_close(&g->fx);
}

static void a_null_region_is_nobodys_target(void **state)
{
	struct rig *g = rig(0);
	struct fx_mr null = null_mr(&g->b);

	(void)state;
	is_refused(g, SF_OP_WRITE, null.key, 0, 8);
	is_refused(g, SF_OP_READ, null.key, 0, 8);
	fx_close(&g->fx);
}

/* What the host hears about memory that nobody has looked at. */
static struct rnic_ref seen_dst;

static enum rnic_copy_result see_copy(void *host, const struct rnic_ref *dst,
				      const struct rnic_ref *src)
{
	(void)host;
	(void)src;
	seen_dst = *dst;
	return RNIC_FAULT_DST;
}

static void what_is_on_demand_is_said_to_the_host(void **state)
{
	struct rig *g = rig(2);
	struct fx_mr far = fx_mr_far(&g->b, 64, 64, ALL | RNIC_ON_DEMAND);
	struct fx_wr wr = bind_wr(g, g->mw, 0, 64, READ_WRITE);
	uint64_t index;

	(void)state;
	wr.imm = far.key;
	wr.remote_addr = far.addr;
	index = fx_send(&g->b, &wr);
	expect_ok(&g->b.scq, SF_OP_BIND_MW, index);
	g->fx.ops.copy = see_copy;
	/* Through the region and through a window: a fault is the target's. */
	wr = rdma_wr(g, SF_OP_WRITE, far.key, far.addr, 8);
	expect_cqe(&g->a.scq, SF_OP_WRITE, SF_ST_REM_OP_ERR, SF_SYN_PEER,
		   fx_send(&g->a, &wr));
	assert_int_equal(seen_dst.on_demand, RNIC_ON_DEMAND);
	restart(g);
	seen_dst.on_demand = 0;
	wr.rkey = g->mw;
	expect_cqe(&g->a.scq, SF_OP_WRITE, SF_ST_REM_OP_ERR, SF_SYN_PEER,
		   fx_send(&g->a, &wr));
	assert_int_equal(seen_dst.on_demand, RNIC_ON_DEMAND);
	fx_close(&g->fx);
}

/* Inline data is stored by who polls, at the address of the entry. */
static void nothing_is_inline_where_addresses_are_not_pointers(void **state)
{
	struct fx_opts o = fx_defaults;
	struct rig *g = rig(0);
	struct rnic_mr_attr attr = {
		.addr = FX_FAR_BASE,
		.len = 64,
		.iova = 0,
		.access = RNIC_LOCAL_WRITE,
		.pdn = g->b.pdn,
		.space = FX_FAR,
	};
	struct fx_mr zero = {.len = 64, .ptr = (uint8_t *)g->fx.far}, demand;
	struct fx_mr on[3];
	struct fx_wr wr = rdma_wr(g, SF_OP_SEND, 0, 0, 12);
	struct sf_cqe cqe;
	uint32_t dm, i;

	(void)state;
	(void)o;
	fx_qp(&g->b)->init.inline_recv = 1;
	assert_int_equal(rnic_mr_create(g->fx.r, g->b.ctx, &attr, &zero.key),
			 0);
	demand = fx_mr_far(&g->b, 0, 64, RNIC_LOCAL_WRITE | RNIC_ON_DEMAND);
	on[0] = zero;
	on[1] = demand;
	on[2] = dm_mr(g, &g->b, &dm, 64);
	for (i = 0; i < 3; i++) {
		memset(on[i].ptr, 0, 64);
		fx_recv_mr(&g->b, i, &on[i], 0, 64);
		expect_ok(&g->a.scq, SF_OP_SEND, fx_send(&g->a, &wr));
		cqe = expect_ok(&g->b.rcq, SF_CQE_RECV, i);
		assert_int_equal(sf_cqe_flags(cqe.word) & SF_CQE_INLINE, 0);
		assert_memory_equal(on[i].ptr, g->am.ptr, 12);
	}
	/* And it is where they are. */
	fx_recv_mr(&g->b, 7, &g->bm, 0, 64);
	expect_ok(&g->a.scq, SF_OP_SEND, fx_send(&g->a, &wr));
	cqe = expect_ok(&g->b.rcq, SF_CQE_RECV, 7);
	assert_true(sf_cqe_flags(cqe.word) & SF_CQE_INLINE);
	fx_close(&g->fx);
}

/* ---- atomic write ---------------------------------------------------- */

static void an_atomic_write_stores_eight_bytes(void **state)
{
	struct rig *g = rig(0);
	struct fx_wr wr =
		rdma_wr(g, SF_OP_ATOMIC_WRITE, g->bm.key, g->bm.addr + 8, 8);
	uint64_t value = 0x1122334455667788ull;
	struct sf_cqe cqe;

	(void)state;
	cqe = expect_ok(&g->a.scq, SF_OP_ATOMIC_WRITE, fx_send(&g->a, &wr));
	assert_int_equal(cqe.byte_len, 8);
	assert_memory_equal(g->bm.ptr + 8, g->am.ptr, 8);
	/* Inline, and in two pieces. */
	wr.flags |= SF_WQE_INLINE;
	wr.n_sge = 0;
	wr.data = &value;
	wr.len = 8;
	expect_ok(&g->a.scq, SF_OP_ATOMIC_WRITE, fx_send(&g->a, &wr));
	assert_memory_equal(g->bm.ptr + 8, &value, 8);
	wr.flags = SF_WQE_SIGNALED;
	wr.len = 0;
	wr.n_sge = 2;
	wr.sge[0] = fx_sge(&g->am, 1, 3);
	wr.sge[1] = fx_sge(&g->am, 4, 5);
	expect_ok(&g->a.scq, SF_OP_ATOMIC_WRITE, fx_send(&g->a, &wr));
	assert_memory_equal(g->bm.ptr + 8, g->am.ptr + 1, 8);
	assert_memory_equal(g->bm.ptr, "\0\0\0\0\0\0\0", 8);
	fx_close(&g->fx);
}

static void an_atomic_write_needs_the_right_to_write(void **state)
{
	struct rig *g = rig(0);
	struct fx_mr mr =
		fx_mr(&g->b, 64,
		      RNIC_LOCAL_WRITE | RNIC_REMOTE_READ | RNIC_REMOTE_ATOMIC);

	(void)state;
	is_refused(g, SF_OP_ATOMIC_WRITE, mr.key, mr.addr, 8);
	fx_close(&g->fx);
}

static void an_atomic_write_is_aligned_and_of_eight_bytes(void **state)
{
	struct rig *g = rig(0);
	struct fx_wr wr =
		rdma_wr(g, SF_OP_ATOMIC_WRITE, g->bm.key, g->bm.addr + 4, 8);

	(void)state;
	expect_cqe(&g->a.scq, SF_OP_ATOMIC_WRITE, SF_ST_REM_INV_REQ_ERR,
		   SF_SYN_PEER, fx_send(&g->a, &wr));
	restart(g);
	wr.remote_addr = g->bm.addr;
	wr.sge[0].length = 4;
	expect_cqe(&g->a.scq, SF_OP_ATOMIC_WRITE, SF_ST_LOC_LEN_ERR,
		   SF_SYN_LENGTH, fx_send(&g->a, &wr));
	fx_close(&g->fx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_window_opens_its_part_of_the_region),
		cmocka_unit_test(a_window_has_the_rights_of_its_bind),
		cmocka_unit_test(rebinding_ends_the_old_key),
		cmocka_unit_test(a_bind_of_no_bytes_closes_a_window_of_type_1),
		cmocka_unit_test(
			a_window_of_type_2_has_the_key_that_its_owner_chose),
		cmocka_unit_test(a_zero_based_window_counts_from_zero),
		cmocka_unit_test(
			a_window_of_type_2_is_open_to_the_queue_pair_of_its_bind),
		cmocka_unit_test(
			a_window_of_type_1_is_open_to_all_of_its_domain),
		cmocka_unit_test(a_bound_window_of_type_2_is_not_bound_again),
		cmocka_unit_test(a_bind_stays_within_region_and_rights),
		cmocka_unit_test(only_a_window_of_the_domain_is_bound),
		cmocka_unit_test(a_bind_has_no_data),
		cmocka_unit_test(a_window_is_no_local_key),
		cmocka_unit_test(local_invalidation_closes_a_window),
		cmocka_unit_test(only_an_open_window_of_type_2_is_invalidated),
		cmocka_unit_test(a_send_invalidates_a_window_of_its_target),
		cmocka_unit_test(
			a_send_that_invalidates_nothing_fails_at_both_ends),
		cmocka_unit_test(a_repeated_invalidating_send_invalidates_once),
		cmocka_unit_test(
			a_bind_that_finds_a_responder_busy_comes_again),
		cmocka_unit_test(windows_work_on_unreliable_connections),
		cmocka_unit_test(a_region_with_windows_stays),
		cmocka_unit_test(a_window_that_is_gone_opens_nothing),
		cmocka_unit_test(windows_are_counted_and_of_two_types),
		cmocka_unit_test(windows_of_a_dead_process_close),
		cmocka_unit_test(
			reregistration_keeps_the_key_and_ends_what_was),
		cmocka_unit_test(reregistration_changes_rights),
		cmocka_unit_test(reregistration_moves_to_another_domain),
		cmocka_unit_test(device_memory_is_memory),
		cmocka_unit_test(device_memory_stays_while_a_region_lies_in_it),
		cmocka_unit_test(
			a_null_region_reads_as_zeros_and_drops_what_is_written),
		cmocka_unit_test(a_null_region_is_nobodys_target),
		cmocka_unit_test(what_is_on_demand_is_said_to_the_host),
		cmocka_unit_test(
			nothing_is_inline_where_addresses_are_not_pointers),
		cmocka_unit_test(an_atomic_write_stores_eight_bytes),
		cmocka_unit_test(an_atomic_write_needs_the_right_to_write),
		cmocka_unit_test(an_atomic_write_is_aligned_and_of_eight_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
