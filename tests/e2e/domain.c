// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Traffic on what lives in a parent domain: an allocator, no locks. */
#include "pair.h"

static int allocs, frees, cases;

static void *take(struct ibv_pd *pd, void *pd_context, size_t size,
		  size_t alignment, uint64_t resource_type)
{
	(void)pd;
	(void)resource_type;
	CHECK(pd_context == &allocs);
	allocs++;
	return aligned_alloc(alignment,
			     (size + alignment - 1) & ~(alignment - 1));
}

static void give(struct ibv_pd *pd, void *pd_context, void *ptr,
		 uint64_t resource_type)
{
	(void)pd;
	(void)resource_type;
	CHECK(pd_context == &allocs);
	frees++;
	free(ptr);
}

static void send_one(struct ibv_qp *from, struct ibv_qp *to, struct ibv_cq *cq,
		     struct ibv_mr *mr)
{
	struct ibv_sge in = {(uintptr_t)mr->addr, 8, mr->lkey};
	struct ibv_sge out = {(uintptr_t)mr->addr + 64, 8, mr->lkey};
	struct ibv_recv_wr recv = {.wr_id = 1, .sg_list = &in, .num_sge = 1};
	struct ibv_send_wr send = {
		.wr_id = 2,
		.sg_list = &out,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_recv_wr *bad_recv;
	struct ibv_send_wr *bad_send;
	double end = seconds() + 10;
	struct ibv_wc wc;
	int n = 0;

	CHECK(!ibv_post_recv(to, &recv, &bad_recv));
	CHECK(!ibv_post_send(from, &send, &bad_send));
	while (n < 2) {
		CHECK(seconds() < end);
		if (!ibv_poll_cq(cq, 1, &wc))
			continue;
		CHECK(wc.status == IBV_WC_SUCCESS);
		n++;
	}
}

static void traffic(struct end *e, struct ibv_td *td)
{
	struct ibv_parent_domain_init_attr attr = {
		.pd = e->pd,
		.td = td,
		.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
			     IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT,
		.alloc = take,
		.free = give,
		.pd_context = &allocs,
	};
	struct ibv_cq_init_attr_ex cq_attr = {
		.cqe = 64,
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD,
	};
	struct ibv_pd *pd = e->pd;
	struct ibv_cq_ex *cq;
	struct ibv_qp *a, *b;
	struct ibv_mr *mr;
	int i;

	CHECK(cq_attr.parent_domain = ibv_alloc_parent_domain(e->ctx, &attr));
	CHECK(ibv_dealloc_pd(pd) == EBUSY);
	e->pd = cq_attr.parent_domain;
	CHECK(cq = ibv_create_cq_ex(e->ctx, &cq_attr));
	CHECK(mr = ibv_reg_mr(e->pd, shared_memory(4096), 4096, ALL_ACCESS));
	a = new_qp(e, ibv_cq_ex_to_cq(cq), ibv_cq_ex_to_cq(cq), 8);
	b = new_qp(e, ibv_cq_ex_to_cq(cq), ibv_cq_ex_to_cq(cq), 8);
	connect_qp(e, a, b->qp_num);
	connect_qp(e, b, a->qp_num);
	for (i = 0; i < 100; i++)
		send_one(i & 1 ? a : b, i & 1 ? b : a, ibv_cq_ex_to_cq(cq), mr);
	CHECK(ibv_dealloc_pd(e->pd) == EBUSY);
	CHECK(!ibv_destroy_qp(a));
	CHECK(!ibv_destroy_qp(b));
	CHECK(!ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
	CHECK(!ibv_dereg_mr(mr));
	CHECK(!ibv_dealloc_pd(e->pd));
	CHECK(allocs && allocs == frees);
	e->pd = pd;
	cases++;
}

int main(void)
{
	struct ibv_td_init_attr attr = {0};
	struct ibv_td *td;
	struct end e;

	end_open(&e);
	traffic(&e, NULL);
	CHECK(td = ibv_alloc_td(e.ctx, &attr));
	traffic(&e, td);
	CHECK(!ibv_dealloc_td(td));
	end_close(&e);
	printf("%d cases, all right\n", cases);
	return 0;
}
