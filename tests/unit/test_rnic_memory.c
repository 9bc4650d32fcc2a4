// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Registered memory: attributes, keys, segments, copies, exact atomics. */
#include <stdlib.h>

#include "rnic_fixture.h"

#define BASE 0x550000000000ull

struct rig {
	struct fx fx;
	struct fx_end a, b;
	struct fx_mr am, bm;
};

static int setup(void **state)
{
	static struct rig g;

	fx_open(&g.fx, RNIC_INFINIBAND);
	fx_pair(&g.fx, &g.a, &g.b, &fx_defaults);
	g.am = fx_mr(&g.a, 65536, FX_ALL_ACCESS);
	g.bm = fx_mr(&g.b, 65536, FX_ALL_ACCESS);
	*state = &g;
	return 0;
}

static int teardown(void **state)
{
	struct rig *g = *state;

	fx_close(&g->fx);
	return 0;
}

static struct fx_wr request(const struct fx_mr *from, const struct fx_mr *to,
			    uint32_t opcode, uint32_t len)
{
	struct fx_wr wr = {
		.opcode = opcode,
		.flags = SF_WQE_SIGNALED,
		.remote_addr = to->addr,
		.rkey = to->key,
		.n_sge = 1,
	};

	wr.sge[0] = fx_sge(from, 0, len);
	return wr;
}

static struct rnic_mr_attr plain(const struct rig *g)
{
	return (struct rnic_mr_attr){
		.addr = BASE,
		.len = 65536,
		.iova = BASE,
		.access = FX_ALL_ACCESS,
		.pdn = g->a.pdn,
		.space = FX_FAR,
	};
}

static void create_refuses_impossible_regions(void **state)
{
	struct rig *g = *state;
	struct rnic_mr_attr a;
	uint32_t key, i;

	for (i = 0; i < 13; i++) {
		a = plain(g);
		a.nseg = 1;
		a.seg[0] = (struct rnic_mr_seg){BASE, 4096, RNIC_ARENA_DYNAMIC};
		switch (i) {
		case 0:
			a.pdn = g->b.pdn;
			break;
		case 1:
			a.pdn = RNIC_MAX_PD;
			break;
		case 2:
			a.addr = ~0ull - 100;
			break;
		case 3:
			a.iova = ~0ull - 100;
			break;
		case 4:
			a.access = RNIC_REMOTE_WRITE;
			break;
		case 5:
			a.access = RNIC_REMOTE_ATOMIC | RNIC_REMOTE_READ;
			break;
		case 6:
			a.nseg = RNIC_MR_SEGS + 1;
			break;
		case 7:
			a.seg[0].va = BASE - 1;
			break;
		case 8:
			a.seg[0].len = 65537;
			break;
		case 9:
			a.seg[0].off = RNIC_ARENA_DYNAMIC - 1; /* tables */
			break;
		case 10:
			a.seg[0].off = FX_ARENA - 4095;
			break;
		case 11:
			a.seg[0].off = ~0ull - 4000;
			break;
		default: /* they overlap */
			a.nseg = 2;
			a.seg[1] = a.seg[0];
		}
		assert_int_equal(rnic_mr_create(g->fx.r, 1, &a, &key), EINVAL);
	}
	a = plain(g);
	a.access = RNIC_REMOTE_READ;
	assert_int_equal(rnic_mr_create(g->fx.r, 1, &a, &key), 0);
}

static void destroy_wants_the_exact_key_of_the_owner(void **state)
{
	struct rig *g = *state;

	assert_int_equal(rnic_mr_destroy(g->fx.r, 1, g->am.key ^ 1), EINVAL);
	assert_int_equal(rnic_mr_destroy(g->fx.r, 2, g->am.key), EINVAL);
	assert_int_equal(rnic_mr_destroy(g->fx.r, 1, 0), EINVAL);
	assert_int_equal(rnic_mr_destroy(g->fx.r, 1, ~0u), EINVAL);
	assert_int_equal(rnic_mr_destroy(g->fx.r, 1, g->am.key), 0);
	assert_int_equal(rnic_mr_destroy(g->fx.r, 1, g->am.key), EINVAL);
}

static void key_of_an_entry_changes_each_time(void **state)
{
	struct rig *g = *state;
	struct rnic_mr_attr a = plain(g);
	uint32_t key, last = 0, i;

	for (i = 0; i < 600; i++) {
		g->fx.r->sh->keys.next = 9;
		assert_int_equal(rnic_mr_create(g->fx.r, 1, &a, &key), 0);
		assert_int_equal(SF_KEY_INDEX(key), 9);
		assert_int_not_equal(key, last);
		last = key;
		assert_int_equal(rnic_mr_destroy(g->fx.r, 1, key), 0);
	}
}

static void destroy_waits_for_whoever_is_inside(void **state)
{
	struct rig *g = *state;
	struct fx_wr wr;

	fx_lock_busy(&fx_qp(&g->a)->resp.lock, 1);
	assert_int_equal(rnic_mr_destroy(g->fx.r, 1, g->am.key), EBUSY);
	/* The key is dead all the same, and the next attempt ends it. */
	wr = request(&g->am, &g->bm, SF_OP_WRITE, 8);
	fx_send(&g->a, &wr);
	expect_cqe(&g->a.scq, SF_OP_WRITE, SF_ST_LOC_PROT_ERR, SF_SYN_KEY,
		   g->a.sq_next - 1);
	assert_int_equal(rnic_mr_destroy(g->fx.r, 1, g->am.key), 0);
}

static void iova_names_the_first_byte(void **state)
{
	struct rig *g = *state;
	uint64_t off = fx_pages(&g->fx, 8192);
	struct rnic_mr_attr a = {
		.addr = BASE + 13,
		.len = 5000,
		.iova = 0, /* as zero-based regions have it */
		.access = FX_ALL_ACCESS,
		.pdn = g->b.pdn,
		.space = FX_FAR,
		.nseg = 1,
		.seg = {{BASE + 13, 5000, off + 13}},
	};
	struct fx_mr m = {0};
	struct fx_wr wr;
	uint8_t *at = rnic_at(g->fx.r, off);

	assert_int_equal(rnic_mr_create(g->fx.r, 2, &a, &m.key), 0);
	fx_fill(g->am.ptr, 5000, 1);
	wr = request(&g->am, &m, SF_OP_WRITE, 5000);
	fx_send(&g->a, &wr);
	expect_ok(&g->a.scq, SF_OP_WRITE, g->a.sq_next - 1);
	assert_memory_equal(at + 13, g->am.ptr, 5000);
	assert_int_equal(at[12] | at[5013], 0);

	/* Byte 3 lies at a multiple of 8, but 8 is not aligned there. */
	wr = request(&g->am, &m, SF_OP_ATOMIC_FADD, 8);
	wr.arg0 = 1;
	fx_send(&g->a, &wr);
	assert_int_not_equal(g->fx.copies, 0); /* no CPU atomic took place */
}

/* A region half in the arena, half in the far space, in alternation. */
static struct fx_mr patchwork(struct rig *g, struct fx_end *e, uint8_t **seg)
{
	struct rnic_mr_attr a = {
		.addr = FX_FAR_BASE,
		.len = 0x5000,
		.iova = FX_FAR_BASE + 0x777000,
		.access = FX_ALL_ACCESS,
		.pdn = e->pdn,
		.space = FX_FAR,
		.nseg = 3,
	};
	struct fx_mr m = {.addr = a.iova, .len = a.len};
	uint32_t i;

	for (i = 0; i < 3; i++) {
		uint64_t off = fx_pages(&g->fx, 4096);

		/* 0x800..0x17ff, 0x1800..0x27ff (adjacent), 0x3000..0x3fff */
		a.seg[i].va =
			FX_FAR_BASE + (i < 2 ? 0x800 + i * 0x1000 : 0x3000);
		a.seg[i].len = 0x1000;
		a.seg[i].off = off;
		seg[i] = rnic_at(g->fx.r, off);
	}
	assert_int_equal(rnic_mr_create(e->r, e->ctx, &a, &m.key), 0);
	return m;
}

/* Byte @i of the patchwork, wherever it is. */
static uint8_t *patch_at(struct rig *g, uint8_t **seg, uint32_t i)
{
	if (i >= 0x800 && i < 0x1800)
		return seg[0] + (i - 0x800);
	if (i >= 0x1800 && i < 0x2800)
		return seg[1] + (i - 0x1800);
	if (i >= 0x3000 && i < 0x4000)
		return seg[2] + (i - 0x3000);
	return (uint8_t *)g->fx.far + i;
}

static void copies_cross_every_border_of_a_patchwork(void **state)
{
	struct rig *g = *state;
	static const uint32_t marks[] = {0,	 0x7ff,	 0x800,	 0x801,	 0x17ff,
					 0x1800, 0x27f9, 0x2800, 0x2fff, 0x3000,
					 0x3ffc, 0x4000, 0x4fff, 0x5000};
	uint8_t *seg[3];
	struct fx_mr m = patchwork(g, &g->b, seg);
	size_t i, k;
	uint32_t p;

	for (i = 0; i < 14; i++)
		for (k = i + 1; k < 14; k++) {
			uint32_t len = marks[k] - marks[i];
			struct fx_wr wr = request(&g->am, &m, SF_OP_WRITE, len);

			fx_fill(g->am.ptr, len, i * 20 + k);
			wr.remote_addr += marks[i];
			fx_send(&g->a, &wr);
			expect_ok(&g->a.scq, SF_OP_WRITE, g->a.sq_next - 1);
			for (p = 0; p < len; p++)
				assert_int_equal(*patch_at(g, seg,
							   marks[i] + p),
						 g->am.ptr[p]);
			memset(g->am.ptr, 0, len);
			wr.opcode = SF_OP_READ;
			fx_send(&g->a, &wr);
			expect_ok(&g->a.scq, SF_OP_READ, g->a.sq_next - 1);
			for (p = 0; p < len; p++)
				assert_int_equal(g->am.ptr[p],
						 *patch_at(g, seg,
							   marks[i] + p));
		}
}

static void atomics_work_in_every_part_of_a_patchwork(void **state)
{
	struct rig *g = *state;
	static const uint32_t at[] = {0,      0x7f8,  0x800, 0x17f8,
				      0x1800, 0x2800, 0x3ff8};
	uint8_t *seg[3];
	struct fx_mr m = patchwork(g, &g->b, seg);
	size_t i;

	for (i = 0; i < 7; i++) {
		struct fx_wr wr = request(&g->am, &m, SF_OP_ATOMIC_FADD, 8);
		uint64_t v = 41;

		memcpy(patch_at(g, seg, at[i]), &v, 8);
		wr.remote_addr += at[i];
		wr.arg0 = 1;
		fx_send(&g->a, &wr);
		expect_ok(&g->a.scq, SF_OP_ATOMIC_FADD, g->a.sq_next - 1);
		memcpy(&v, patch_at(g, seg, at[i]), 8);
		assert_int_equal(v, 42);
		wr.opcode = SF_OP_ATOMIC_CAS;
		wr.arg0 = 7;
		wr.arg1 = 42;
		fx_send(&g->a, &wr);
		expect_ok(&g->a.scq, SF_OP_ATOMIC_CAS, g->a.sq_next - 1);
		memcpy(&v, patch_at(g, seg, at[i]), 8);
		assert_int_equal(v, 7);
		assert_int_equal(*(uint64_t *)g->am.ptr, 42);
	}
}

static void far_memory_works_on_both_sides(void **state)
{
	struct rig *g = *state;
	struct fx_mr fa = fx_mr_far(&g->a, 0, 1 << 20, FX_ALL_ACCESS);
	struct fx_mr fb = fx_mr_far(&g->b, 1 << 20, 1 << 20, FX_ALL_ACCESS);
	struct fx_wr wr = request(&fa, &fb, SF_OP_WRITE, 300000);

	fx_fill(fa.ptr, 300000, 3);
	fx_send(&g->a, &wr);
	expect_ok(&g->a.scq, SF_OP_WRITE, g->a.sq_next - 1);
	assert_memory_equal(fa.ptr, fb.ptr, 300000);
	wr = request(&fa, &fb, SF_OP_READ, 64);
	memset(fb.ptr, 9, 64);
	fx_send(&g->a, &wr);
	expect_ok(&g->a.scq, SF_OP_READ, g->a.sq_next - 1);
	assert_memory_equal(fa.ptr, fb.ptr, 64);
}

static void pointers_of_this_process_work_too(void **state)
{
	struct rig *g = *state;
	uint8_t *buf = malloc(4096);
	struct rnic_mr_attr a = {
		.addr = (uintptr_t)buf,
		.len = 4096,
		.iova = (uintptr_t)buf,
		.access = FX_ALL_ACCESS,
		.pdn = g->b.pdn,
		.space = RNIC_SPACE_RAW,
	};
	struct fx_mr m = {.addr = a.iova};
	struct fx_wr wr;

	assert_int_equal(rnic_mr_create(g->fx.r, 2, &a, &m.key), 0);
	fx_fill(g->am.ptr, 4096, 4);
	wr = request(&g->am, &m, SF_OP_WRITE, 4096);
	fx_send(&g->a, &wr);
	expect_ok(&g->a.scq, SF_OP_WRITE, g->a.sq_next - 1);
	assert_memory_equal(buf, g->am.ptr, 4096);
	free(buf);
}

static void overlapping_source_and_target_are_moved(void **state)
{
	struct rig *g = *state;
	struct fx_end e;
	struct fx_mr m;
	int32_t shift;
	uint32_t len;

	fx_end_new(&e, &g->fx, g->fx.r, 3, 0, &fx_defaults);
	fx_connect(&e, &e, RNIC_RTS, &fx_defaults, 5, 5);
	m = fx_mr(&e, 4096, FX_ALL_ACCESS);
	for (len = 1; len <= 40; len++)
		for (shift = -20; shift <= 20; shift++) {
			struct fx_wr wr = request(&m, &m, SF_OP_WRITE, len);
			uint8_t want[40];

			fx_fill(m.ptr, 200, len);
			memcpy(want, m.ptr + 64, len);
			wr.sge[0].addr += 64;
			wr.remote_addr += 64 + shift;
			fx_send(&e, &wr);
			expect_ok(&e.scq, SF_OP_WRITE, e.sq_next - 1);
			assert_memory_equal(m.ptr + 64 + shift, want, len);
		}
}

static void bytes_around_a_copy_stay_as_they_are(void **state)
{
	struct rig *g = *state;
	uint32_t len, align, i;

	for (len = 0; len <= 40; len++)
		for (align = 0; align < 8; align++) {
			struct fx_wr wr =
				request(&g->am, &g->bm, SF_OP_WRITE, len);

			fx_fill(g->am.ptr, 64, len);
			memset(g->bm.ptr, 0x77, 128);
			wr.remote_addr += 32 + align;
			fx_send(&g->a, &wr);
			expect_ok(&g->a.scq, SF_OP_WRITE, g->a.sq_next - 1);
			for (i = 0; i < 128; i++) {
				uint32_t in = i - 32 - align;

				assert_int_equal(g->bm.ptr[i],
						 in < len ? g->am.ptr[in] :
							    0x77);
			}
		}
}

static void failed_host_atomic_changes_nothing(void **state)
{
	struct rig *g = *state;
	struct fx_mr far = fx_mr_far(&g->b, 0, 4096, FX_ALL_ACCESS);
	struct fx_wr wr = request(&g->am, &far, SF_OP_ATOMIC_FADD, 8);

	*(uint64_t *)far.ptr = 5;
	wr.arg0 = 1;
	g->fx.copies_left = 2; /* the way back fails */
	fx_send(&g->a, &wr);
	expect_cqe(&g->a.scq, SF_OP_ATOMIC_FADD, SF_ST_REM_OP_ERR, SF_SYN_PEER,
		   g->a.sq_next - 1);
	assert_int_equal(*(uint64_t *)far.ptr, 5);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		T(create_refuses_impossible_regions),
		T(destroy_wants_the_exact_key_of_the_owner),
		T(key_of_an_entry_changes_each_time),
		T(destroy_waits_for_whoever_is_inside),
		T(iova_names_the_first_byte),
		T(copies_cross_every_border_of_a_patchwork),
		T(atomics_work_in_every_part_of_a_patchwork),
		T(far_memory_works_on_both_sides),
		T(pointers_of_this_process_work_too),
		T(overlapping_source_and_target_are_moved),
		T(bytes_around_a_copy_stay_as_they_are),
		T(failed_host_atomic_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
